//! One second of a run in progress as a line of JSON: a row of the time line.

use super::super::result::Row;
use crate::run::Second;

/// The line, with its end.
pub fn line(second: &Second) -> String {
    let row = Row::of(&second.stretch, second.from_ns, second.until_ns);
    let mut line = serde_json::to_string(&row).expect("numbers and lists can always be written");
    line.push('\n');
    line
}
