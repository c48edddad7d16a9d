//! Reads saved output of onrush, wrk, wrk-cmm and wrk2: any number of reports, with any text in between.

use serde_json::Value;

use super::cmm_json;
use super::line::ReportLine;
use super::report::{LineEffect, ParsedReport};

/// Everything found in saved output.
#[derive(Debug, Default)]
pub struct Log {
    /// The reports, and JSON blocks that belong to no report.
    pub reports: Vec<ParsedReport>,
    /// Problems, each with its line number.
    pub problems: Vec<(usize, String)>,
}

/// Reads a whole text. Problems do not stop the reading.
pub fn read(text: &str) -> Log {
    let mut reader = LogReader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.read_line(number, line.trim_end());
    }
    reader.end();
    reader.log
}

/// State of a partially read text.
#[derive(Default)]
struct LogReader {
    log: Log,
    section: Option<String>,
    label: Option<String>,
    /// The previous line, if it may be a heading.
    above: Option<String>,
    open: Option<ParsedReport>,
    /// True while lines are skipped up to the next report: either they belong to an omitted report, or the problem has
    /// been reported.
    is_adrift: bool,
    /// True if the previous report was truncated.
    is_after_cut: bool,
    /// True if a JSON block that follows belongs to the previous report.
    is_json_due: bool,
    json: Option<Json>,
}

/// An unfinished JSON block.
struct Json {
    line: usize,
    text: String,
    depth: usize,
}

impl LogReader {
    fn read_line(&mut self, number: usize, text: &str) {
        if let Some(mut json) = self.json.take() {
            json.take(text);
            return self.continue_json(json);
        }
        match ReportLine::parse(text) {
            Some(ReportLine::Running { url }) => self.start_report(number, url, text),
            Some(line) if self.open.is_some() => self.add_line(number, &line, text),
            // The end of the report above may belong to an earlier report, and these lines to the report above.
            Some(_) if self.is_after_cut && self.is_json_due => {
                self.skip_to_next_report();
                if let Some(report) = self.log.reports.pop() {
                    self.drop_mixed_report(number, &report);
                }
            }
            Some(line @ (ReportLine::Rate(_) | ReportLine::Transfer(_))) => self.report_orphan(number, &line),
            _ if text.trim() == "{" => {
                let mut json = Json { line: number, text: String::new(), depth: 0 };
                json.take(text);
                self.continue_json(json);
            }
            Some(_) if self.is_adrift => {}
            _ => self.handle_other_text(text),
        }
    }

    fn start_report(&mut self, number: usize, url: &str, text: &str) {
        self.is_after_cut = self.end_truncated_report();
        let mut report = ParsedReport::start(number, url, self.section.as_deref(), self.label.as_deref());
        report.text = format!("{}\n", text.trim());
        self.open = Some(report);
        self.is_adrift = false;
        self.is_json_due = false;
        self.above = None;
    }

    fn add_line(&mut self, number: usize, line: &ReportLine<'_>, text: &str) {
        let Some(mut report) = self.open.take() else { return };
        self.above = None;
        report.text += &format!("{}\n", text.trim());
        match report.take_line(line) {
            LineEffect::More => self.open = Some(report),
            LineEffect::Unread(what) => {
                self.log.problems.push((number, format!("{what}: left out")));
                if matches!(line, ReportLine::Transfer(_)) {
                    self.finish_report(report)
                } else {
                    self.open = Some(report)
                }
            }
            LineEffect::End => self.finish_report(report),
            LineEffect::Mixed => {
                self.is_adrift = true;
                self.drop_mixed_report(number, &report);
            }
        }
    }

    fn finish_report(&mut self, report: ParsedReport) {
        let missing = report.missing_lines();
        if !missing.is_empty() {
            self.log.problems.push((report.line, format!("the run lacks the line {:?}", missing.join("\", \""))));
        }
        self.is_json_due = true;
        self.log.reports.push(report);
    }

    /// Omits a report mixed with lines of another one, because it is unknown which lines belong to which.
    fn drop_mixed_report(&mut self, number: usize, report: &ParsedReport) {
        let line = report.line;
        let words = format!("the run that begins on line {line} contains a line of another run, and is left out");
        self.log.problems.push((number, words));
    }

    /// Ends an open report as truncated: reports the problem, and keeps the report if it has figures. True if a report
    /// was open.
    fn end_truncated_report(&mut self) -> bool {
        let Some(report) = self.open.take() else { return false };
        let words = if report.has_figures() { "the rest is shown" } else { "left out" };
        self.log.problems.push((report.line, format!("the run that begins here is cut off: {words}")));
        self.log.reports.extend(report.has_figures().then_some(report));
        true
    }

    /// Handles the end of a report whose start is missing.
    fn report_orphan(&mut self, number: usize, line: &ReportLine<'_>) {
        if !self.is_adrift {
            let name = if matches!(line, ReportLine::Rate(_)) { "Requests/sec" } else { "Transfer/sec" };
            self.log.problems.push((number, format!("{name} without a run above it: left out")));
        }
        self.skip_to_next_report();
    }

    /// Skips the lines of a report without a start, until the next report.
    fn skip_to_next_report(&mut self) {
        self.is_adrift = true;
        self.is_json_due = false;
        self.above = None;
    }

    fn continue_json(&mut self, json: Json) {
        if json.depth > 0 {
            self.json = Some(json);
            return;
        }
        let is_due = std::mem::take(&mut self.is_json_due);
        let Ok(value) = serde_json::from_str::<Value>(&json.text) else { return };
        if !cmm_json::claims_format(&value) {
            return;
        }
        let figures = match cmm_json::read(&value) {
            Ok(figures) => figures,
            Err(error) => return self.log.problems.push((json.line, format!("JSON of wrk-cmm: {error}"))),
        };
        match self.log.reports.last_mut().filter(|_| is_due) {
            Some(report) => report.refine(figures, value.to_string()),
            None => {
                let mut report = ParsedReport::start(json.line, "", self.section.as_deref(), self.label.as_deref());
                report.refine(figures, value.to_string());
                self.log.reports.push(report);
            }
        }
    }

    /// Handles text between reports, or the output of a script within a report.
    fn handle_other_text(&mut self, text: &str) {
        let text = text.trim();
        let above = self.above.take();
        if text.is_empty() {
            return;
        }
        if text == "JSON Output" || self.is_json_due && is_underline(text) {
            return;
        }
        self.is_json_due = false;
        if let Some(above) = above.filter(|_| is_underline(text)) {
            self.section = Some(above);
            self.label = None;
            return;
        }
        let Some(label) = parse_label(text) else { return };
        self.above = Some(label.clone());
        self.label = Some(label);
    }

    fn end(&mut self) {
        self.end_truncated_report();
        if let Some(json) = self.json.take() {
            self.log.problems.push((json.line, "the JSON that begins here is cut off: left out".to_owned()));
        }
    }
}

impl Json {
    fn take(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '{' => self.depth += 1,
                '}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.text += text;
        self.text.push('\n');
    }
}

/// True if the line underlines a heading above it.
fn is_underline(text: &str) -> bool {
    text.len() >= 3 && (text.bytes().all(|byte| byte == b'=') || text.bytes().all(|byte| byte == b'-'))
}

/// Beginnings of lines that onrush prints around a report.
const OURS: [&str; 4] = ["verdict: ", "note: ", "onrush: ", "::error"];

/// The label for the report below. `None` if the line concerns the report above, or is a command, a prompt or
/// decoration.
fn parse_label(text: &str) -> Option<String> {
    if OURS.iter().any(|beginning| text.starts_with(beginning)) {
        return None;
    }
    let is_prompt = text.starts_with('(') && text.ends_with(')') && !text.contains(' ');
    let is_wrk = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        name.starts_with("wrk") || name == "onrush"
    };
    let is_command = text.contains("://") && text.split_whitespace().any(is_wrk);
    let label =
        text.trim_start_matches(|c: char| c.is_whitespace() || "#*->=`".contains(c)).trim_end_matches(':').trim();
    (!is_prompt && !is_command && !text.starts_with("```") && !label.is_empty()).then(|| label.to_owned())
}
