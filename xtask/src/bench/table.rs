//! Figures as tables: aligned text for the terminal, Markdown and CSV for the document, JSON for programs.

use serde_json::{Value, json};

use super::measure::{MeasureComparison, MeasureLimit, RATE_MIN, ValueSource, Verdict};
use super::median::MedianEstimate;
use super::rounds::{ComparisonFigures, ComparisonResult, Series};
use super::rows::BenchRow;

const HEADING: [&str; 9] =
    ["row", "work", "measured", "requests/s", "compared", "limit", "median", "interval", "verdict"];

/// Lines shown in the document, by row, unit and programs: those that answer users' questions. The CSV contains all
/// lines.
const SHOWN: [(&str, &str, &str); 13] = [
    ("small", "µs CPU/request", "onrush ÷ wrk"),
    ("small", "µs CPU/request", "onrush (epoll) ÷ wrk"),
    ("small", "µs CPU/request", "onrush ÷ oha"),
    ("thousand", "µs CPU/request", "onrush ÷ wrk"),
    ("script-format", "µs CPU/request", "onrush ÷ wrk"),
    ("script-response", "µs CPU/request", "onrush ÷ wrk"),
    ("big", "GB/CPU-second", "onrush ÷ wrk"),
    ("upload", "µs CPU/request", "onrush ÷ wrk"),
    ("reconnect", "µs CPU/request", "onrush ÷ wrk"),
    ("tls", "µs CPU/request", "onrush ÷ wrk"),
    ("idle", "MB peak memory", "onrush ÷ wrk"),
    ("rate-1k", "µs late at the median", "onrush -R --spin off"),
    ("rate-1k", "µs late at the 99th percentile", "onrush -R --spin off"),
];
/// Indices of the columns shown in the document.
const SHOWN_COLUMNS: [usize; 7] = [0, 1, 2, 3, 4, 6, 7];

/// One line of the table.
#[derive(Debug)]
pub struct TableLine {
    /// The row of the line.
    pub row: &'static BenchRow,
    pub comparison: MeasureComparison,
    /// The figures, or the reason why there are none.
    pub outcome: ComparisonResult,
}

impl TableLine {
    /// Compares the figures with the limit and, for processor time, the rates with [`RATE_MIN`]. `None` without a limit
    /// or figures.
    fn verdict(&self) -> Option<Verdict> {
        let of_figures = self.comparison.limit?.judge(&self.outcome.as_ref().ok()?.estimate);
        Some(self.rates().map_or(of_figures, |rates| of_figures.max(RATE_MIN.judge(&rates))))
    }

    /// Ratios of the rates, for processor time.
    fn rates(&self) -> Option<MedianEstimate> {
        self.outcome.as_ref().ok()?.rates.filter(|_| self.comparison.measure.is_cpu())
    }

    fn is_counted(&self) -> bool {
        matches!(self.comparison.measure.how, ValueSource::Counted(_))
    }

    /// True if the document shows the line.
    fn is_shown(&self) -> bool {
        let compared = compared_programs(&self.comparison);
        SHOWN.iter().any(|&(row, unit, programs)| {
            row == self.row.name && unit == self.comparison.measure.unit && programs == compared
        })
    }

    /// True if a count exceeds its limit. Unlike times, counts are not noisy.
    pub fn is_broken(&self) -> bool {
        self.is_counted() && self.verdict() == Some(Verdict::Missed)
    }
}

/// A table with its heading.
#[derive(Debug)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// A table of all lines and columns.
    pub fn from_lines(lines: &[TableLine]) -> Self {
        Self([HEADING.map(str::to_owned).to_vec()].into_iter().chain(lines.iter().map(cells)).collect())
    }

    /// A table of the columns and lines shown in the document.
    pub fn shown(lines: &[TableLine]) -> Self {
        let shown = lines.iter().filter(|line| line.is_shown()).map(cells);
        let rows = [HEADING.map(str::to_owned).to_vec()].into_iter().chain(shown);
        Self(rows.map(|cells| SHOWN_COLUMNS.map(|column| cells[column].clone()).to_vec()).collect())
    }

    /// The table with its heading as comma-separated values: quoted as in RFC 4180, lines ended by `\n`. Cells must not
    /// contain line breaks.
    pub fn csv(&self) -> String {
        let cell = |cell: &String| match cell.contains(['"', ',']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        self.0.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n").collect()
    }

    /// The table as text with aligned columns, for the terminal.
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

    pub fn markdown(&self) -> String {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        let rule = format!("|{}\n", " --- |".repeat(self.0.first().map_or(0, Vec::len)));
        let mut rows = self.0.iter().map(line);
        rows.next().into_iter().chain([rule]).chain(rows).collect()
    }
}

fn compared_programs(MeasureComparison { ours, other, .. }: &MeasureComparison) -> String {
    other.map_or(ours.title(), |other| format!("{} ÷ {}", ours.title(), other.title()))
}

fn cells(line: &TableLine) -> Vec<String> {
    let MeasureComparison { measure, other, limit, .. } = &line.comparison;
    let none = || "–".to_owned();
    let limit = match limit {
        Some(MeasureLimit::AtMost(limit)) => format!("≤ {limit}"),
        Some(MeasureLimit::AtLeast(limit)) => format!("≥ {limit}"),
        None => none(),
    };
    let (measured, rates, median, interval) = match &line.outcome {
        Err(_) => (measure.unit.to_owned(), none(), none(), none()),
        Ok(figures) => {
            let digits = if line.is_counted() { 5 } else { 3 };
            let measured = medians(figures, digits, |side| &side.values).unwrap_or_else(none);
            let rates = medians(figures, 1, |side| &side.rates).unwrap_or_else(none);
            let MedianEstimate { median, low, high, .. } = figures.estimate;
            let which =
                if matches!(measure.how, ValueSource::Lowest(_)) && other.is_none() { " (best round)" } else { "" };
            let interval = if low < high { format!("{low:.3}–{high:.3}") } else { none() };
            (format!("{measured} {}", measure.unit), rates, format_significant(median, 4) + which, interval)
        }
    };
    let (name, work) = (line.row.name.to_owned(), line.row.sentence.to_owned());
    vec![name, work, measured, rates, compared_programs(&line.comparison), limit, median, interval, verdict(line)]
}

/// Medians of one series for both sides, or for ours alone; `None` without values.
fn medians(figures: &ComparisonFigures, digits: i32, of: impl Fn(&Series) -> &Vec<f64>) -> Option<String> {
    let estimates =
        [&figures.ours, &figures.others].into_iter().filter_map(|side| MedianEstimate::from_values(of(side)));
    let medians: Vec<String> = estimates.map(|estimate| format_significant(estimate.median, digits)).collect();
    (!medians.is_empty()).then(|| medians.join(" ÷ "))
}

/// The verdict on the limit, or the reason why there are no figures.
fn verdict(line: &TableLine) -> String {
    let figures = match &line.outcome {
        Ok(figures) => figures,
        Err(why) => return why.replace(['|', '\n'], " "),
    };
    let mut verdict = line.verdict().map_or("–", Verdict::name).to_owned();
    if let Some(rates) = line.rates().filter(|rates| RATE_MIN.judge(rates) != Verdict::Reached) {
        verdict += &format!(", {} of the other's rate", format_significant(rates.median, 3));
    }
    if !figures.estimate.is_sure() {
        verdict += ", too few rounds";
    }
    if figures.repeated > 0 {
        verdict += &format!(", failed runs repeated: {}", figures.repeated);
    }
    verdict
}

/// A value with this many significant digits, or more before the decimal point.
fn format_significant(value: f64, digits: i32) -> String {
    let before_the_point = if value < 1.0 { 1 } else { value.log10() as i32 + 1 };
    let decimals = usize::try_from(digits - before_the_point).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Everything measured, including the values of each round, for programs.
pub fn json(about: &[String], lines: &[TableLine]) -> Value {
    let lines = lines.iter().map(|line| {
        let MeasureComparison { measure, ours, other, limit } = &line.comparison;
        let limit = match limit {
            Some(MeasureLimit::AtMost(limit)) => json!({"at_most": limit}),
            Some(MeasureLimit::AtLeast(limit)) => json!({"at_least": limit}),
            None => Value::Null,
        };
        let mut entry = json!({
            "row": line.row.name, "work": line.row.sentence, "unit": measure.unit, "ours": ours.title(),
            "other": other.map(|other| other.title()), "limit": limit, "verdict": line.verdict().map(Verdict::name),
        });
        match &line.outcome {
            Err(why) => entry["failure"] = json!(why),
            Ok(figures) => {
                let MedianEstimate { median, low, high, confidence } = figures.estimate;
                entry["values_ours"] = json!(figures.ours.values);
                entry["values_other"] = json!(figures.others.values);
                entry["requests_per_second_ours"] = json!(figures.ours.rates);
                entry["requests_per_second_other"] = json!(figures.others.rates);
                entry["requests_per_second_ratio"] = json!(figures.rates.map(|rates| rates.median));
                entry["repeated"] = json!(figures.repeated);
                entry["estimate"] = json!({"median": median, "low": low, "high": high, "confidence": confidence});
            }
        }
        entry
    });
    json!({"about": about, "comparisons": lines.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::super::contender::{ONRUSH, SHB, WRK};
    use super::super::measure::{CPU, INSTRUCTIONS, MEMORY};
    use super::super::rows::ROWS;
    use super::*;

    fn lines() -> [TableLine; 4] {
        let line = |measure, other, limit, outcome| TableLine {
            row: &ROWS[0],
            comparison: MeasureComparison { measure, ours: ONRUSH, other, limit: Some(limit) },
            outcome,
        };
        let figures = |ours: &[f64], others: &[f64], median| ComparisonFigures {
            ours: Series { values: ours.to_vec(), rates: vec![51_234.0; ours.len()] },
            others: Series { values: others.to_vec(), rates: vec![49_876.0; others.len()] },
            estimate: MedianEstimate { median, low: median - 0.25, high: median + 0.25, confidence: 0.973 },
            rates: None,
            repeated: 0,
        };
        let mut doubtful = figures(&[120.0], &[], 120.0);
        (doubtful.estimate.confidence, doubtful.repeated) = (0.5, 2);
        let mut counted = figures(&[4_206.5], &[4_180.25], 1.00628);
        (counted.ours.rates, counted.others.rates) = (Vec::new(), Vec::new());
        counted.estimate = MedianEstimate::exact(1.00628);
        let limit = MeasureLimit::AtMost(0.76);
        [
            line(CPU, Some(WRK), limit, Ok(figures(&[3.0, 4.0, 5.0], &[8.0, 80.0, 10.0], 0.5))),
            line(MEMORY, None, MeasureLimit::AtMost(20.0), Ok(doubtful)),
            line(INSTRUCTIONS, ONRUSH.before(), MeasureLimit::AtMost(1.005), Ok(counted)),
            line(CPU, Some(SHB), limit, Err("not had: no network".to_owned())),
        ]
    }

    #[test]
    fn table_text_is_aligned_and_shows_rates() {
        let expected = "\
row    work                                       measured                                         requests/s     compared                limit    median  interval         verdict
small  keep-alive, 13-byte body, 100 connections  4.00 ÷ 10.0 µs CPU/request                       51234 ÷ 49876  onrush ÷ wrk            ≤ 0.76   0.500   0.250–0.750      reached
small  keep-alive, 13-byte body, 100 connections  120 MB peak memory                               51234          onrush                  ≤ 20     120.0   119.750–120.250  missed, too few rounds, failed runs repeated: 2
small  keep-alive, 13-byte body, 100 connections  4206.5 ÷ 4180.2 instructions/request, simulated  –              onrush ÷ onrush before  ≤ 1.005  1.006   –                missed
small  keep-alive, 13-byte body, 100 connections  µs CPU/request                                   –              onrush ÷ shb            ≤ 0.76   –       –                not had: no network
";
        assert_eq!(Table::from_lines(&lines()).text(), expected);
    }

    #[test]
    fn every_shown_line_is_in_the_rows() {
        for (row, unit, programs) in SHOWN {
            let comparisons = ROWS.iter().filter(|known| known.name == row).flat_map(|row| row.comparisons);
            let found = comparisons.filter(|known| known.measure.unit == unit && compared_programs(known) == programs);
            assert_eq!(found.count(), 1, "{row}, {unit}, {programs}");
        }
    }

    #[test]
    fn csv_quotes_commas() {
        let csv = Table::from_lines(&lines()[3..]).csv();
        let last = "small,\"keep-alive, 13-byte body, 100 connections\",µs CPU/request,–,onrush ÷ shb,≤ 0.76,–,–,not had: no network";
        assert_eq!(csv.lines().last(), Some(last));
    }

    #[test]
    fn documents_have_the_same_cells() {
        let text = Table::from_lines(&lines()[3..]).markdown();
        let last = "| small | keep-alive, 13-byte body, 100 connections | µs CPU/request | – | onrush ÷ shb | ≤ 0.76 | – | – | not had: no network |";
        assert_eq!(text.lines().nth(1), Some("| --- | --- | --- | --- | --- | --- | --- | --- | --- |"));
        assert_eq!(text.lines().last(), Some(last));
    }

    #[test]
    fn only_exceeded_counts_fail() {
        assert_eq!(lines().map(|line| line.is_broken()), [false, false, true, false]);
    }

    #[test]
    fn sending_less_is_no_gain() {
        let shown = |low, median, high, measure| {
            let [mut line, ..] = lines();
            line.comparison.measure = measure;
            if let Ok(figures) = &mut line.outcome {
                figures.rates = Some(MedianEstimate { median, low, high, confidence: 0.97 });
            }
            verdict(&line)
        };
        assert_eq!(shown(1.0, 1.02, 1.1, CPU), "reached");
        assert_eq!(shown(0.9, 0.95, 1.0, CPU), "within noise, 0.95 of the other's rate");
        assert_eq!(shown(0.6, 0.7, 0.8, CPU), "missed, 0.70 of the other's rate");
        assert_eq!(shown(0.6, 0.7, 0.8, MEMORY), "reached");
    }

    #[test]
    fn json_has_the_value_of_every_round() {
        let json = json(&["a machine".to_owned()], &lines());
        assert_eq!(json["comparisons"][0]["values_other"], json!([8.0, 80.0, 10.0]));
        assert_eq!(json["comparisons"][0]["limit"], json!({"at_most": 0.76}));
        assert_eq!(json["comparisons"][1]["other"], Value::Null);
        assert_eq!(json["comparisons"][0]["requests_per_second_ours"], json!([51_234.0, 51_234.0, 51_234.0]));
        assert_eq!(json["comparisons"][0]["verdict"], "reached");
        assert_eq!(json["comparisons"][3]["failure"], "not had: no network");
    }
}
