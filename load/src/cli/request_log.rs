//! The options on the request log, as typed, and the resulting [`RequestLogOptions`].

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use onrush_plan::limits::REQUESTS_MAX;
use onrush_plan::{Dialect, RequestLogOptions};

use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};
use super::units;

/// File-name extensions of formats other than CSV, which are rejected.
const OTHERS: [&str; 6] = ["gz", "zst", "json", "ndjson", "xml", "md"];

/// The options on the request log, as typed.
#[derive(Debug, Default)]
pub struct TypedLog {
    file: Option<PathBuf>,
    /// `--log-sample`: only one in this many requests is logged.
    one_of: Option<u64>,
}

impl TypedLog {
    /// True if any of the options was typed.
    pub fn is_typed(&self) -> bool {
        self.file.is_some() || self.one_of.is_some()
    }

    /// Applies one option. If an option is repeated, the last one wins.
    pub fn apply_option(&mut self, flag: &'static Flag, value: OsString) -> Result<(), PlanRefusal> {
        match flag.id {
            Id::LogSample => self.one_of = Some(parse_sample_ratio(flag, &value)?),
            _ if value.is_empty() || value == "-" => {
                let reason = "not a file; standard output has the report, and a pipe is >(COMMAND) or its name";
                return Err(wrong(flag, &value, reason));
            }
            _ => {
                let path = PathBuf::from(value);
                let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
                if OTHERS.contains(&ending) {
                    let reason = "the log is CSV, which is not compressed; name it .csv, or write >(gzip >FILE)";
                    return Err(wrong(flag, path.as_os_str(), reason));
                }
                self.file = Some(path);
            }
        }
        Ok(())
    }

    /// Name of an option that was typed; `None` if none was.
    pub fn typed_option(&self) -> Option<&'static str> {
        let file = self.file.as_ref().map(|_| "--request-log");
        file.or(self.one_of.map(|_| "--log-sample"))
    }

    /// The request log of a run; `None` if no option was typed. Rejected in the compat dialects,
    /// and for a sample without a log.
    pub fn into_request_log_options(self, dialect: Dialect) -> Result<Option<RequestLogOptions>, PlanRefusal> {
        let Some(option) = self.typed_option() else { return Ok(None) };
        if dialect.is_compat() {
            return Err(PlanRefusal::Cannot(format!(
                "{option}: {} has no log of requests; leave it out",
                dialect.name()
            )));
        }
        let Some(path) = self.file else {
            let line = "--log-sample: there is no log; add --request-log, for instance --request-log requests.csv";
            return Err(PlanRefusal::Misused(line.to_owned()));
        };
        Ok(Some(RequestLogOptions { path, one_of: self.one_of.unwrap_or(1) }))
    }
}

/// Parses the N of `1/N`, the share of requests to log.
fn parse_sample_ratio(flag: &Flag, value: &OsStr) -> Result<u64, PlanRefusal> {
    let text = value.to_string_lossy();
    match text.strip_prefix("1/").and_then(|number| units::parse_count(number, Dialect::Native).ok()) {
        Some(0) => Err(wrong(flag, value, "one of none; write 1/1 or leave it out to log every request")),
        Some(one_of) if one_of <= REQUESTS_MAX => Ok(one_of),
        Some(_) => Err(wrong(flag, value, format_args!("at most 1/{REQUESTS_MAX}"))),
        None => Err(wrong(flag, value, "not one of N requests; write 1/N, for instance 1/100")),
    }
}
