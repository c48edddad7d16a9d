//! A row of the timeline as a line of JSON, while the run is in progress.

use crate::record::Row;
use crate::run::TimelineRow;

/// The line with its line ending.
pub fn timeline_line(second: &TimelineRow) -> String {
    let row = Row::of(&second.figures, second.from_ns, second.until_ns).without(second.machines_lost);
    let mut line = serde_json::to_string(&row).expect("numbers and lists can always be written");
    line.push('\n');
    line
}
