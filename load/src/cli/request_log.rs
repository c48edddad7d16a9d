//! Parses the options on the request log.

use std::ffi::OsStr;
use std::path::PathBuf;

use onrush_plan::Dialect;
use onrush_plan::limits::REQUESTS_MAX;

use super::refusal::PlanRefusal;
use super::units;
use super::values::Value;

/// File-name extensions of formats other than CSV, which are rejected.
const OTHERS: [&str; 6] = ["gz", "zst", "json", "ndjson", "xml", "md"];

/// Parses the file of the log.
pub(super) fn parse_log_path(value: Value) -> Result<PathBuf, PlanRefusal> {
    if value.text.is_empty() || value.text == "-" {
        return Err(value.wrong("not a file; standard output has the report, and a pipe is >(COMMAND) or its name"));
    }
    let path = value.path();
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if OTHERS.contains(&ending) {
        return Err(value.wrong("the log is CSV, which is not compressed; name it .csv, or write >(gzip >FILE)"));
    }
    Ok(path)
}

/// Parses the N of `1/N`, the share of requests to log.
pub(super) fn parse_sample_ratio(value: Value) -> Result<u64, PlanRefusal> {
    let text = value.lossy();
    match text.strip_prefix("1/").and_then(|number| units::parse_count(number, Dialect::Native).ok()) {
        Some(0) => Err(value.wrong("one of none; write 1/1 or leave it out to log every request")),
        Some(one_of) if one_of <= REQUESTS_MAX => Ok(one_of),
        Some(_) => Err(value.wrong(format_args!("at most 1/{REQUESTS_MAX}"))),
        None => Err(value.wrong("not one of N requests; write 1/N, for instance 1/100")),
    }
}
