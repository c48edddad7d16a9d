//! The names of the columns that tables of runs can have. No label has one of them: a label is a column, too.

use super::Metric;

/// The fields that distinguish runs, beside the factors of an experiment.
pub const FIELDS: [&str; 15] = [
    "folder",
    "file",
    "line",
    "name",
    "tool",
    "section",
    "label",
    "url",
    "host",
    "threads",
    "connections",
    "protocol",
    "streams",
    "rate",
    "verdict",
];

/// The column with the number of a run.
pub const RUN: &str = "run";

/// The columns that are computed from several runs.
pub const COMPUTED: [&str; 5] =
    ["runs", "median_requests_per_sec", "min_requests_per_sec", "max_requests_per_sec", "spread_percent"];

/// True if tables can have a column of this name, whatever labels runs have.
pub fn is_column(name: &str) -> bool {
    name == RUN || FIELDS.contains(&name) || COMPUTED.contains(&name) || Metric::of_column(name).is_some()
}
