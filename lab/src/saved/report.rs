//! Reads one report of wrk or of a fork, line by line.

use onrush_plan::Metric;
use onrush_plan::metric::{ErrorKind, LatencyView, Statistic};

use super::line::{ReportLine, ReportRow};
use super::measured::{MetricValues, fill_in};
use super::units::{self, Unprinted};

/// A report, of which all or only the first lines have been read.
#[derive(Clone, Debug, Default)]
pub struct ParsedReport {
    /// Number of the line that starts the report.
    pub line: usize,
    /// The heading above the report.
    pub section: Option<String>,
    /// The nearest line above the report that may be a label.
    pub label: Option<String>,
    /// The URL of the target as typed.
    pub url: String,
    /// Number of threads, and number of connections.
    pub load: Option<(u64, u64)>,
    /// The requested rate, which only onrush prints.
    pub rate: Option<String>,
    /// The program that measured, as far as the lines so far show.
    pub tool: &'static str,
    /// The figures read so far.
    pub figures: MetricValues,
    /// The lines of the report as text.
    pub text: String,
    /// The block of JSON below the report, from wrk-cmm's script.
    pub json: Option<String>,
    /// [Position](ReportLine::position) of the previous line.
    place: u8,
    has_minimum: bool,
    /// True while reading percentiles of wrk2's uncorrected latency.
    is_uncorrected: bool,
    has_latency: bool,
}

/// The kinds of wrk's socket errors in printed order, followed by their sum.
const FAILURES: [ErrorKind; 5] =
    [ErrorKind::Connect, ErrorKind::Read, ErrorKind::Write, ErrorKind::Timeout, ErrorKind::Socket];

/// Effect of a line on the current report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineEffect {
    /// The report continues.
    More,
    /// The report ends.
    End,
    /// The line belongs to another report, written into this file at the same time.
    Mixed,
    /// The line is omitted for this reason, and the report continues.
    Unread(String),
}

impl ParsedReport {
    /// Starts a report at its first line. Its tool is assumed to be wrk until a line shows otherwise.
    pub fn start(line: usize, url: &str, section: Option<&str>, label: Option<&str>) -> Self {
        let [section, label] = [section, label].map(|text| text.map(str::to_owned));
        Self { line, url: url.to_owned(), section, label, tool: "wrk", ..Self::default() }
    }

    /// Reads the next line and returns its effect on the report.
    pub fn take_line(&mut self, line: &ReportLine<'_>) -> LineEffect {
        let place = line.position();
        let is_again = match line {
            ReportLine::Percentile { percent, .. } => {
                !self.is_uncorrected && self.figures.contains_key(&Metric::percentile(*percent))
            }
            line => place == self.place && !line.may_repeat(),
        };
        if place < self.place || is_again {
            return LineEffect::Mixed;
        }
        self.place = place;
        match self.parse_line(line) {
            Ok(()) if matches!(line, ReportLine::Transfer(_)) => LineEffect::End,
            Ok(()) => LineEffect::More,
            Err(what) => LineEffect::Unread(what),
        }
    }

    fn parse_line(&mut self, line: &ReportLine<'_>) -> Result<(), String> {
        let figures = &mut self.figures;
        match line {
            ReportLine::Running { .. }
            | ReportLine::Interim
            | ReportLine::Row { row: ReportRow::Phase | ReportRow::Rate, .. } => {}
            ReportLine::Load { threads, connections } => self.load = Some((*threads, *connections)),
            ReportLine::Due { rate } => (self.rate, self.tool) = (Some((*rate).to_owned()), "onrush"),
            ReportLine::Max | ReportLine::Counts => self.tool = "onrush",
            // onrush also prints wrk2's blocks and spectrum.
            ReportLine::Calibration | ReportLine::Spectrum if self.tool == "onrush" => {}
            ReportLine::Calibration | ReportLine::Spectrum => self.tool = "wrk2",
            ReportLine::Heading => {}
            ReportLine::Row { row: ReportRow::Latency, cells } => return self.parse_latency_row(cells),
            ReportLine::Distribution { kind } => {
                if kind.is_some() && self.rate.is_none() {
                    self.tool = "wrk2";
                }
                self.is_uncorrected = kind.is_some_and(|kind| kind.contains("Uncorrected"));
            }
            ReportLine::Percentile { .. } if self.is_uncorrected => {}
            ReportLine::Percentile { percent, cell } => {
                let us = units::time_us(cell).map_err(unprinted_message(cell))?;
                figures.extend(us.map(|us| (Metric::percentile(*percent), us)));
            }
            ReportLine::Totals { requests, time, bytes } => {
                figures.insert(Metric::Requests, *requests as f64);
                let us = units::time_us(time).map_err(unprinted_message(time))?;
                figures.extend(us.map(|us| (Metric::Duration, us)));
                figures.insert(Metric::Received, units::bytes(bytes).map_err(unprinted_message(bytes))?.round());
                // The following lines are printed only if their count is not zero.
                figures.extend(
                    FAILURES
                        .into_iter()
                        .chain([ErrorKind::Status, ErrorKind::Check])
                        .map(|kind| (Metric::ErrorsOf(kind), 0.0)),
                );
            }
            ReportLine::Errors(counts) => {
                let [connect, read, write, timeout] = counts.map(|count| count as f64);
                let counts =
                    FAILURES.into_iter().zip([connect, read, write, timeout, connect + read + write + timeout]);
                figures.extend(counts.map(|(kind, count)| (Metric::ErrorsOf(kind), count)));
            }
            ReportLine::Statuses(status) => _ = figures.insert(Metric::ErrorsOf(ErrorKind::Status), *status as f64),
            ReportLine::Checks(checks) => {
                figures.insert(Metric::ErrorsOf(ErrorKind::Check), *checks as f64);
                self.tool = "onrush";
            }
            ReportLine::Rate(rate) => {
                let per_s = units::metric(rate).map_err(unprinted_message(rate))?;
                figures.extend(per_s.map(|per_s| (Metric::Rate, per_s)));
            }
            ReportLine::Transfer(bytes) => {
                figures.insert(Metric::Transfer, units::bytes(bytes).map_err(unprinted_message(bytes))?);
            }
        }
        Ok(())
    }

    /// Reads the latency row: mean, deviation, maximum, in wrk-cmm also the minimum, and the share within one
    /// deviation.
    fn parse_latency_row(&mut self, cells: &[&str]) -> Result<(), String> {
        self.has_latency = true;
        let times = match cells {
            // Only onrush prints `responses`; earlier versions printed `answers`.
            ["no", "responses" | "answers"] => {
                self.tool = "onrush";
                return Ok(());
            }
            // Nothing was measured: the minimum is that of an empty histogram, the other figures are zero.
            [.., share] if share.trim_start_matches('-').starts_with("nan") => return Ok(()),
            [times @ .., share] if share.ends_with('%') && (3..=4).contains(&times.len()) => times,
            _ => return Err(format!("{:?} is not a row of latencies as wrk prints it", cells.join(" "))),
        };
        let us = times.iter().map(|cell| units::time_us(cell).map_err(unprinted_message(cell)));
        let us = us.collect::<Result<Vec<Option<f64>>, String>>()?;
        self.has_minimum = times.len() == 4;
        let statistics = [Statistic::Mean, Statistic::Stdev, Statistic::Max, Statistic::Least];
        let figures = statistics.into_iter().zip(us);
        self.figures
            .extend(figures.filter_map(|(statistic, us)| Some((Metric::Latency(LatencyView::Shown, statistic), us?))));
        Ok(())
    }

    /// Replaces figures by the exact ones from the JSON of wrk-cmm's script, whose source is `text`.
    pub fn refine(&mut self, json: MetricValues, text: String) {
        let printed = std::mem::replace(&mut self.figures, json);
        fill_in(&mut self.figures, printed);
        self.json = Some(text);
        self.tool = "wrk-cmm";
    }

    /// The program that measured, as far as the lines so far show.
    pub fn tool(&self) -> &'static str {
        if self.has_minimum { "wrk-cmm" } else { self.tool }
    }

    /// True if the report contains a number of requests or a rate.
    pub fn has_figures(&self) -> bool {
        [Metric::Requests, Metric::Rate].iter().any(|metric| self.figures.contains_key(metric))
    }

    /// The lines that every report has, but this one lacks.
    pub fn missing_lines(&self) -> Vec<&'static str> {
        let lines = [
            (self.load.is_some(), "threads and connections"),
            (self.has_latency, "Latency"),
            (self.figures.contains_key(&Metric::ErrorsOf(ErrorKind::Socket)), "requests in"),
            (self.place >= ReportLine::Rate("").position(), "Requests/sec"),
        ];
        lines.into_iter().filter(|(is_there, _)| !is_there).map(|(_, name)| name).collect()
    }
}

/// Message for a number that wrk does not print.
fn unprinted_message(cell: &str) -> impl FnOnce(Unprinted) -> String {
    let cell = cell.to_owned();
    move |Unprinted| format!("{cell:?} has a unit that wrk never prints there")
}
