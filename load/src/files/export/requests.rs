//! The request log as comma-separated values: one line per request.

use std::iter;

use onrush_plan::Plan;
use onrush_plan::secrets::KnownSecrets;
use onrush_stats::{Cause, Fate, LogEntry};
use onrush_text::csv;

use crate::failure::describe_cause;

/// The header line, with its line ending.
pub const HEAD: &str = "due,sent,first_byte,end,status,bytes,name,error\n";

/// Formats entries of the request log as lines.
pub struct RequestLines {
    /// Cells with the names of requests, in the order of their numbers. The first is for requests without a name.
    names: Vec<String>,
    /// The plan, on which descriptions of failures depend.
    plan: Plan,
    /// The plan's secrets.
    known: KnownSecrets,
}

impl RequestLines {
    /// Formats the requests of a plan.
    pub fn new(plan: &Plan) -> Self {
        let named = plan.list.iter().flat_map(|list| &list.names).map(|name| csv::csv_cell(name));
        let names = iter::once(String::new()).chain(named).collect();
        Self { names, plan: plan.clone(), known: KnownSecrets::from_plan(plan) }
    }

    /// The entries as newline-terminated lines.
    pub fn format(&self, entries: &[LogEntry]) -> String {
        let mut text = String::with_capacity(entries.len() * LINE);
        entries.iter().for_each(|entry| self.add(&mut text, entry));
        text
    }

    fn add(&self, text: &mut String, entry: &LogEntry) {
        for moment in [Some(entry.due_ns), Some(entry.sent_ns), entry.first_ns, entry.end_ns] {
            if let Some(ns) = moment {
                add_seconds(text, ns);
            }
            text.push(',');
        }
        if let Some(status) = entry.status {
            add_number(text, status.into());
        }
        text.push(',');
        add_number(text, entry.body_bytes);
        text.push(',');
        text.push_str(self.names.get(usize::from(entry.name)).map_or("", String::as_str));
        text.push(',');
        match entry.fate {
            Fate::Completed => {}
            Fate::Failed(_, cause) => text.push_str(&self.failure_cell(cause)),
            Fate::Abandoned => text.push_str("abandoned"),
            Fate::Open => text.push_str("in flight at the end"),
        }
        text.push('\n');
    }

    /// The cell that describes a failure. Only descriptions of checks contain text typed by the user.
    fn failure_cell(&self, cause: Cause) -> String {
        let words = describe_cause(cause, &self.plan);
        csv::csv_cell(&if matches!(cause, Cause::Check(_)) { self.known.redact_in(&words) } else { words })
    }
}

/// Approximate length of a line in bytes.
const LINE: usize = 80;

/// Appends a time in seconds with nine decimals. (`format!` takes several times as long.)
fn add_seconds(text: &mut String, ns: i64) {
    if ns < 0 {
        text.push('-');
    }
    let ns = ns.unsigned_abs();
    add_number(text, ns / 1_000_000_000);
    text.push('.');
    let mut unit = 100_000_000;
    while unit > 0 {
        text.push(digit(ns / unit));
        unit /= 10;
    }
}

fn add_number(text: &mut String, number: u64) {
    let mut unit = number.checked_ilog10().map_or(1, |exponent| 10_u64.pow(exponent));
    while unit > 0 {
        text.push(digit(number / unit));
        unit /= 10;
    }
}

/// The last digit of a number.
fn digit(number: u64) -> char {
    char::from(b'0' + (number % 10) as u8)
}

#[cfg(test)]
mod tests {
    use onrush_plan::Dialect;
    use onrush_proto::Error;
    use onrush_stats::Phase;

    use super::*;
    use crate::fixtures::{list, plan};

    #[test]
    fn every_logged_request_is_a_line() {
        let entry = LogEntry {
            due_ns: -1_500_000_001,
            sent_ns: 0,
            first_ns: Some(12_345_678_900_000_001),
            end_ns: Some(12_345_679_000_000_000),
            body_bytes: 1_234_567,
            status: Some(200),
            name: 0,
            fate: Fate::Completed,
        };
        let nothing = LogEntry { first_ns: None, end_ns: None, body_bytes: 0, status: None, name: 2, ..entry };
        let closed = Cause::Protocol(Error::ClosedBeforeResponse);
        let entries = [
            entry,
            LogEntry { end_ns: Some(10), name: 1, fate: Fate::Failed(Phase::Head, closed), ..nothing },
            LogEntry { end_ns: Some(999_999_999), fate: Fate::Abandoned, ..nothing },
            LogEntry { fate: Fate::Open, ..nothing },
        ];
        let list = list(["=a,\"b\"\n", "plain"]);
        let lines = RequestLines::new(&Plan { list: Some(list), ..plan(Dialect::Native, "http://h/", 1, 1, 1) });
        let expected = "\
-1.500000001,0.000000000,12345678.900000001,12345679.000000000,200,1234567,,
-1.500000001,0.000000000,,0.000000010,,0,\"'=a,\"\"b\"\"\\u{a}\",closed by the server before a response began
-1.500000001,0.000000000,,0.999999999,,0,plain,abandoned
-1.500000001,0.000000000,,,,0,plain,in flight at the end
";
        assert_eq!(lines.format(&entries), expected);
    }
}
