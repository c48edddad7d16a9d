//! A row of the timeline of a run in progress as a line of JSON.

use super::super::result::Row;
use crate::run::Second;

/// The line, including its line end.
pub fn line(second: &Second) -> String {
    let row = Row::of(&second.stretch, second.from_ns, second.until_ns);
    let mut line = serde_json::to_string(&row).expect("numbers and lists can always be written");
    line.push('\n');
    line
}
