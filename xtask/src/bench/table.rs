//! Figures as tables: aligned text for the terminal, Markdown for the document, JSON for programs.

use serde_json::{Value, json};

use super::experiment::{Limit, Summary};
use super::instructions::Count;
use super::measure::{Figures, Line, Series, Verdict};
use super::median::Estimate;

/// The heading of the table of comparisons.
const HEADING: [&str; 9] =
    ["row", "work", "measured", "requests/s", "compared", "limit", "median", "interval", "verdict"];
/// The heading of the table of instructions.
const HEADING_INSTRUCTIONS: [&str; 4] = ["operation", "instructions", "reference", "verdict"];

/// A table, its heading first.
#[derive(Debug)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// The table of comparisons.
    pub fn of_lines(lines: &[Line]) -> Self {
        Self([HEADING.map(str::to_owned).to_vec()].into_iter().chain(lines.iter().map(cells)).collect())
    }

    /// The table of instructions.
    pub fn of_counts(counts: &[Count]) -> Self {
        let cells = |count: &Count| {
            let reference = count.reference.map_or("–".to_owned(), |reference| format!("{reference:.1}"));
            vec![count.operation.clone(), format!("{:.1}", count.instructions), reference, count.verdict().to_owned()]
        };
        let heading = HEADING_INSTRUCTIONS.map(str::to_owned).to_vec();
        Self([heading].into_iter().chain(counts.iter().map(cells)).collect())
    }

    /// Aligned columns.
    pub fn text(&self) -> String {
        let columns = self.0.first().map_or(0, Vec::len);
        let width = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        self.0.iter().map(line).collect()
    }

    /// A table of Markdown.
    pub fn markdown(&self) -> String {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        let rule = format!("|{}\n", " --- |".repeat(self.0.first().map_or(0, Vec::len)));
        let mut rows = self.0.iter().map(line);
        rows.next().into_iter().chain([rule]).chain(rows).collect()
    }
}

fn cells(line: &Line) -> Vec<String> {
    let ours = line.comparison.ours.name();
    let compared = line.comparison.other.map_or(ours.to_owned(), |other| format!("{ours} ÷ {}", other.name()));
    let limit = match line.comparison.limit {
        Some(Limit::AtMost(limit)) => format!("≤ {limit:.2}"),
        Some(Limit::AtLeast(limit)) => format!("≥ {limit:.2}"),
        None => "–".to_owned(),
    };
    let none = || "–".to_owned();
    let (measured, rates, median, interval) = match &line.outcome {
        Err(_) => (line.unit.to_owned(), none(), none(), none()),
        Ok(figures) => {
            let measured = format!("{} {}", medians(figures, |side| &side.values).unwrap_or_else(none), line.unit);
            let rates = medians(figures, |side| &side.rates).unwrap_or_else(none);
            let Estimate { median, low, high, .. } = figures.estimate;
            let which = if figures.summary == Summary::Lowest { " (best round)" } else { "" };
            (measured, rates, format!("{median:.3}{which}"), format!("{low:.3}–{high:.3}"))
        }
    };
    vec![line.row.to_owned(), line.work.to_owned(), measured, rates, compared, limit, median, interval, verdict(line)]
}

/// The medians of a series of both sides, or of one if there is no other; `None` if neither has values.
fn medians(figures: &Figures, of: impl Fn(&Series) -> &Vec<f64>) -> Option<String> {
    let estimates = [&figures.ours, &figures.others].into_iter().filter_map(|side| Estimate::of(of(side)));
    let medians: Vec<String> = estimates.map(|estimate| short(estimate.median)).collect();
    (!medians.is_empty()).then(|| medians.join(" ÷ "))
}

/// The verdict about the limit, or why there are no figures.
fn verdict(line: &Line) -> String {
    let figures = match &line.outcome {
        Ok(figures) => figures,
        Err(why) => return why.replace(['|', '\n'], " "),
    };
    let mut verdict = line.verdict().map_or("–", Verdict::name).to_owned();
    if !figures.estimate.is_sure() {
        verdict += ", too few rounds";
    }
    if figures.repeated > 0 {
        verdict += &format!(", failed runs repeated: {}", figures.repeated);
    }
    verdict
}

/// A value with three significant digits, or more before the point.
fn short(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Everything that was measured, including the values of each round, for programs.
pub fn json(about: &[String], lines: &[Line], counts: &[Count]) -> Value {
    let lines = lines.iter().map(|line| {
        let limit = match line.comparison.limit {
            Some(Limit::AtMost(limit)) => json!({"at_most": limit}),
            Some(Limit::AtLeast(limit)) => json!({"at_least": limit}),
            None => Value::Null,
        };
        let mut entry = json!({
            "row": line.row, "work": line.work, "unit": line.unit, "ours": line.comparison.ours.name(),
            "other": line.comparison.other.map(|other| other.name()), "limit": limit, "verdict": line.verdict().map(Verdict::name),
        });
        match &line.outcome {
            Err(why) => entry["failure"] = json!(why),
            Ok(figures) => {
                let Estimate { median, low, high, confidence } = figures.estimate;
                entry["values_ours"] = json!(figures.ours.values);
                entry["values_other"] = json!(figures.others.values);
                entry["requests_per_second_ours"] = json!(figures.ours.rates);
                entry["requests_per_second_other"] = json!(figures.others.rates);
                entry["repeated"] = json!(figures.repeated);
                entry["estimate"] = json!({"median": median, "low": low, "high": high, "confidence": confidence});
            }
        }
        entry
    });
    let counts = counts.iter().map(
        |count| json!({"operation": count.operation, "instructions": count.instructions, "reference": count.reference}),
    );
    json!({"about": about, "comparisons": lines.collect::<Vec<_>>(), "instructions": counts.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::super::contender::Contender;
    use super::super::experiment::Comparison;
    use super::super::measure::Figures;
    use super::*;

    fn lines() -> [Line; 4] {
        let line = |other, limit, outcome| Line {
            row: "small",
            work: "13 bytes",
            unit: "µs",
            comparison: Comparison { ours: Contender::Uring, other, limit, measure: None },
            outcome,
        };
        let figures = |ours: &[f64], others: &[f64], median| Figures {
            ours: Series { values: ours.to_vec(), rates: vec![51_234.0; ours.len()] },
            others: Series { values: others.to_vec(), rates: vec![49_876.0; others.len()] },
            estimate: Estimate { median, low: median - 0.25, high: median + 0.25, confidence: 0.973 },
            repeated: 0,
            summary: Summary::Median,
        };
        let limit = Some(Limit::AtMost(0.76));
        let mut doubtful = figures(&[120.0], &[], 120.0);
        (doubtful.estimate.confidence, doubtful.repeated) = (0.5, 2);
        let mut counted = figures(&[3.0], &[3.0], 1.0);
        (counted.ours.rates, counted.others.rates) = (Vec::new(), Vec::new());
        [
            line(Some(Contender::Wrk), limit, Ok(figures(&[3.0, 4.0, 5.0], &[8.0, 80.0, 10.0], 0.5))),
            line(None, Some(Limit::AtMost(20.0)), Ok(doubtful)),
            line(Some(Contender::Without), limit, Ok(counted)),
            line(Some(Contender::Shb), limit, Err("not had: no network".to_owned())),
        ]
    }

    #[test]
    fn the_text_is_aligned_and_has_the_rates_of_both_sides() {
        let expected = "\
row    work      measured        requests/s     compared                 limit    median   interval         verdict
small  13 bytes  4.00 ÷ 10.0 µs  51234 ÷ 49876  onrush ÷ wrk             ≤ 0.76   0.500    0.250–0.750      reached
small  13 bytes  120 µs          51234          onrush                   ≤ 20.00  120.000  119.750–120.250  missed, too few rounds, failed runs repeated: 2
small  13 bytes  3.00 ÷ 3.00 µs  –              onrush ÷ onrush without  ≤ 0.76   1.000    0.750–1.250      within noise
small  13 bytes  µs              –              onrush ÷ shb             ≤ 0.76   –        –                not had: no network
";
        assert_eq!(Table::of_lines(&lines()).text(), expected);
    }

    #[test]
    fn the_document_has_the_same_cells() {
        let count = Count { operation: "parse".to_owned(), instructions: 812.04, reference: Some(800.0) };
        let expected = "\
| operation | instructions | reference | verdict |
| --- | --- | --- | --- |
| parse | 812.0 | 800.0 | as before |
";
        assert_eq!(Table::of_counts(&[count]).markdown(), expected);
    }

    #[test]
    fn programs_get_the_value_of_every_round() {
        let json = json(&["a machine".to_owned()], &lines(), &[]);
        assert_eq!(json["comparisons"][0]["values_other"], serde_json::json!([8.0, 80.0, 10.0]));
        assert_eq!(json["comparisons"][0]["limit"], serde_json::json!({"at_most": 0.76}));
        assert_eq!(json["comparisons"][1]["other"], Value::Null);
        assert_eq!(
            json["comparisons"][0]["requests_per_second_ours"],
            serde_json::json!([51_234.0, 51_234.0, 51_234.0])
        );
        assert_eq!(json["comparisons"][0]["verdict"], "reached");
        assert_eq!(json["comparisons"][3]["failure"], "not had: no network");
    }
}
