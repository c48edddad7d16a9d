//! Column names of tables of runs. No label may use one: labels are columns too.

use super::Metric;

/// The fields that distinguish runs, apart from the factors of an experiment.
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

/// Name of the column with the numbers of runs.
pub const RUN: &str = "run";

/// The columns computed from several runs.
pub const COMPUTED: [&str; 5] =
    ["runs", "median_requests_per_sec", "min_requests_per_sec", "max_requests_per_sec", "spread_percent"];

/// True if tables may have a column of this name, independent of the labels.
pub fn is_column(name: &str) -> bool {
    name == RUN || FIELDS.contains(&name) || COMPUTED.contains(&name) || Metric::of_column(name).is_some()
}
