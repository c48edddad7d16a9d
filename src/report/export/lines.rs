//! What was done in a second of a run that still lasts, as one line of JSON: a row of the time line.

use super::super::result::Row;
use crate::run::Second;

/// The line, with its end.
pub fn line(second: &Second) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let row = Row::of(&second.stretch, seconds(second.from_ns), seconds(second.until_ns - second.from_ns));
    let mut line = serde_json::to_string(&row).expect("numbers and lists can always be written");
    line.push('\n');
    line
}
