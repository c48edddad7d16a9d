//! Parts of a run with separate latencies: stages, requests by name, and responses by status class.

use onrush_stats::{Corrupt, Distribution as Values, has_enough_beyond};
use onrush_text::units::{format_duration_exact, format_per_second, format_percentage, format_thousands, format_us};
use onrush_text::{escape_controls, escape_markdown};
use std::cmp::Reverse;
use std::time::Duration;

use crate::figures::NS_PER_US;
use crate::record::{Document, OfName, StageRow};

/// Classes with at most this share of the responses are hidden.
const CLASS_SHARE_MIN: f64 = 0.01;
/// Medians differ if the ratio of the largest to the smallest exceeds this.
const MEDIANS_DIFFER: f64 = 1.25;

/// Label for the requests without a name.
const OTHERS: &str = "(others)";

const MACHINES_SHOWN: usize = 50;

const NAMES_SHOWN: usize = 50;

/// A small table with one row per part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsTable {
    /// The headings of the columns. The first heads the names of the parts.
    pub headings: Vec<&'static str>,
    /// Cells of each part; the first is its name.
    pub rows: Vec<Vec<String>>,
}

impl PartsTable {
    /// The table as text, with names on the left and figures on the right.
    pub fn text(&self) -> String {
        let headings: Vec<String> = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&headings).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..headings.len())
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (index, line) in lines.into_iter().enumerate() {
            // The names are indented below their heading.
            let name = if index == 0 { format!("  {}", line[0]) } else { format!("    {}", line[0]) };
            text += &format!("{name:<0$}", widths[0] + 4);
            line[1..]
                .iter()
                .zip(&widths[1..])
                .for_each(|(cell, width)| text += &format!("{cell:>0$}", width.max(&6) + 3));
            text.truncate(text.trim_end().len());
            text += "\n";
        }
        text
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<&str> =
            self.headings.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "--:" }).collect();
        let rows = self.rows.iter().map(|cells| {
            let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
            row(cells.iter().map(String::as_str).collect())
        });
        row(self.headings.clone()) + &row(rule) + &rows.collect::<String>()
    }
}

/// The machines of a run on several machines; `None` for a run on one.
pub fn machines(document: &Document) -> Option<PartsTable> {
    let rows = (1..).zip(&document.machines).take(MACHINES_SHOWN).map(|(number, machine): (usize, _)| {
        let rate = (machine.duration_s > 0.0).then(|| machine.completed as f64 / machine.duration_s);
        let state = if machine.lost.is_some() { " (lost)" } else { "" };
        vec![
            format!("{number} {}{state}", escape_controls(&machine.name)),
            machine.connections.to_string(),
            format_thousands(machine.completed),
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", format_per_second(rate))),
            format_thousands(machine.failures),
            machine.busiest.map_or_else(|| "-".to_owned(), format_percentage),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if document.machines.len() > rows.len() {
        let mut row = vec![String::new(); 6];
        row[0] = format!("and {} more", document.machines.len() - rows.len());
        rows.push(row);
    }
    let headings = vec!["Machine", "connections", "responses", "rate", "errors", "busiest thread"];
    (!document.machines.is_empty()).then_some(PartsTable { headings, rows })
}

/// Requests by name, those with the most errors if there are too many; `None` if the list has no names.
///
/// # Errors
///
/// Fails if a histogram is unreadable.
pub fn names(document: &Document) -> Result<Option<PartsTable>, Corrupt> {
    if document.names.is_empty() {
        return Ok(None);
    }
    // Names with errors, and the row for unnamed requests, are always shown.
    let mut shown: Vec<usize> = (0..document.names.len()).collect();
    shown.sort_by_key(|index| {
        let it = &document.names[*index];
        (Reverse(it.name.is_none()), Reverse(it.errors()), *index)
    });
    shown.truncate(NAMES_SHOWN);
    shown.sort_unstable();
    let rows: Result<Vec<Vec<String>>, Corrupt> = shown.iter().map(|index| of_name(&document.names[*index])).collect();
    let mut parts = PartsTable { headings: vec!["Name", "50%", "99%", "responses", "errors"], rows: rows? };
    let more = document.names.len() - parts.rows.len();
    if more > 0 {
        let mut row = vec![String::new(); parts.headings.len()];
        row[0] = format!("and {more} more");
        parts.rows.push(row);
    }
    Ok(Some(parts))
}

/// The cells of the row for a name.
///
/// # Errors
///
/// Fails if a histogram is unreadable.
pub fn of_name(of_name: &OfName) -> Result<Vec<String>, Corrupt> {
    let latency = of_name.latency.values()?;
    Ok(vec![
        of_name.name.as_ref().map_or_else(|| OTHERS.to_owned(), |name| escape_controls(name)),
        format_percentile(&latency, 50.0),
        format_percentile(&latency, 99.0),
        format_thousands(of_name.completed),
        format_thousands(of_name.errors()),
    ])
}

/// The stages of a run; `None` if it has fewer than two.
///
/// # Errors
///
/// Fails if a histogram is unreadable.
pub fn stages(document: &Document) -> Result<Option<PartsTable>, Corrupt> {
    if document.stages.is_empty() {
        return Ok(None);
    }
    let has_rate = document.stages.iter().any(|stage| stage.late.is_some());
    let mut headings = vec!["Stage", "asked", "reached", "50%", "99%"];
    headings.extend(has_rate.then_some("late"));
    headings.push("errors");
    let rows: Result<Vec<Vec<String>>, Corrupt> = document.stages.iter().map(|stage| row(stage, has_rate)).collect();
    Ok(Some(PartsTable { headings, rows: rows? }))
}

/// The cells of the row for a stage. `has_rate`: adds a cell with the share of late requests.
///
/// # Errors
///
/// Fails if a histogram is unreadable.
pub fn row(stage: &StageRow, has_rate: bool) -> Result<Vec<String>, Corrupt> {
    let seconds = |s: f64| format_duration_exact(Duration::from_millis((s.clamp(0.0, 3e9) * 1e3).round() as u64));
    let connections =
        stage.connections.map(|(from, to)| if from == to { format!("c={to}") } else { format!("c={from}..{to}") });
    let rate = stage.asked_per_s.map(|per_s| format!("{}/s", format_per_second(per_s)));
    let asked: Vec<String> = rate.into_iter().chain(connections).collect();
    let latency = stage.latency.values()?;
    let mut cells = vec![
        format!("{}-{}", seconds(stage.start_s), seconds(stage.start_s + stage.length_s)),
        asked.join(" "),
        format!("{}/s", format_per_second(stage.rate_per_s)),
        format_percentile(&latency, 50.0),
        format_percentile(&latency, 99.0),
    ];
    if has_rate {
        let late = stage.late.unwrap_or_default() + stage.dropped.unwrap_or_default();
        let all = stage.started + stage.dropped.unwrap_or_default();
        cells.push(match (late, all) {
            (_, 0) => "-".to_owned(),
            (0, _) => "0 %".to_owned(),
            _ => format_percentage(late as f64 / all as f64),
        });
    }
    cells.push(format_thousands(stage.erroneous));
    Ok(cells)
}

/// A percentile with its unit; a dash if too few values lie beyond it.
fn format_percentile(latency: &Values<u64>, percent: f64) -> String {
    if !has_enough_beyond(percent, latency.count()) {
        return "-".to_owned();
    }
    format_us(latency.percentile(percent) as f64 / NS_PER_US)
}

/// Responses by status class; `None` unless several classes have a significant share and their medians differ.
///
/// # Errors
///
/// Fails if a histogram is unreadable.
pub fn classes(document: &Document) -> Result<Option<PartsTable>, Corrupt> {
    let by_class = &document.latency.by_class;
    let is_known = |status: u16| (200..600).contains(&status);
    if by_class.is_empty() || !document.status.keys().all(|status| is_known(*status)) {
        return Ok(None);
    }
    let mut classes = Vec::new();
    for class in 2..=5 {
        let latency = document.of_class(class)?;
        classes.extend(latency.map(|latency| (format!("{class}xx"), latency)));
    }
    let all = document.shown_latency().count.max(1);
    let share = |latency: &Values<u64>| latency.count() as f64 / all as f64;
    classes.retain(|(_, latency)| share(latency) > CLASS_SHARE_MIN);
    let medians: Vec<u64> = classes.iter().map(|(_, latency)| latency.percentile(50.0)).collect();
    let (least, most) = (medians.iter().min().copied().unwrap_or(0), medians.iter().max().copied().unwrap_or(0));
    if classes.len() < 2 || most as f64 <= least as f64 * MEDIANS_DIFFER {
        return Ok(None);
    }
    let rows = classes.iter().map(|(class, latency)| {
        vec![
            class.clone(),
            format_percentile(latency, 50.0),
            format_percentile(latency, 99.0),
            format_percentage(share(latency)),
        ]
    });
    Ok(Some(PartsTable { headings: vec!["Status", "50%", "99%", "responses"], rows: rows.collect() }))
}

#[cfg(test)]
mod tests {
    use onrush_plan::schedule::{Rate, Stage};
    use onrush_plan::{Dialect, Plan};
    use onrush_stats::Totals;

    use super::*;
    use crate::fixtures;
    use crate::run::Outcome;

    /// Two stages of five seconds at 100/s and 300/s; the second keeps up less well.
    fn staged() -> (Plan, Outcome) {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 10, 1, 1);
        let stage = |per_s| {
            let rate = Rate::from_per_second(per_s).unwrap();
            Stage { length: Some(Duration::from_secs(5)), from: rate, to: rate }
        };
        let mut schedule = fixtures::schedule(1);
        schedule.stages = vec![stage(100), stage(300)];
        plan.schedule = Some(schedule);
        let mut outcome = fixtures::flawless(1_500, 1);
        outcome.elapsed = Duration::from_secs(10);
        for (completed, late, ms) in [(500, 0, 1), (1_000, 700, 40)] {
            let mut totals = Totals::default();
            (totals.counters.started, totals.counters.completed) = (completed, completed);
            let open_loop = totals.open_loop.get_or_insert_default();
            open_loop.scheduled.record_many(ms * 1_000_000, completed);
            open_loop.late = late;
            outcome.totals.open_loop.get_or_insert_default().scheduled += &open_loop.scheduled;
            outcome.stages.push(totals);
        }
        (plan, outcome)
    }

    #[test]
    fn each_stage_has_a_row() {
        let (plan, outcome) = staged();
        let parts = stages(&Document::judged(&plan, &outcome)).unwrap().unwrap();
        let text = "  Stage         asked    reached       50%       99%     late   errors\n    \
                    0s-5s    100.00/s   100.00/s    1.00ms         -      0 %        0\n    \
                    5s-10s   300.00/s   200.00/s   40.00ms   40.00ms     70 %        0\n";
        assert_eq!(parts.text(), text);
        assert_eq!(
            parts.markdown().lines().last(),
            Some("| 5s-10s | 300.00/s | 200.00/s | 40.00ms | 40.00ms | 70 % | 0 |")
        );
        let mut single = plan;
        single.schedule.as_mut().unwrap().stages.truncate(1);
        assert_eq!(stages(&Document::judged(&single, &outcome)).unwrap(), None);
    }

    #[test]
    fn differing_frequent_classes_are_shown() {
        let plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        let shown = |errors: u64, ms: u64| {
            let mut outcome = fixtures::flawless(10_000 - errors, 1);
            outcome.totals.counters.completed = 10_000;
            for _ in 0..errors {
                outcome.totals.statuses.record(503);
                outcome.totals.latency.record(ms * 1_000_000);
                outcome.totals.by_class.get_or_insert_default().record(503, ms * 1_000_000);
            }
            classes(&Document::judged(&plan, &outcome)).unwrap().map(|parts| parts.rows)
        };
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let both = vec![row(["2xx", "1.00ms", "1.00ms", "75 %"]), row(["5xx", "20.00ms", "20.00ms", "25 %"])];
        assert_eq!(shown(2_500, 20), Some(both));
        assert_eq!(shown(2_500, 1), None, "as fast");
        assert_eq!(shown(100, 20), None, "one in a hundred");
        assert_eq!(shown(0, 1), None);
    }
}
