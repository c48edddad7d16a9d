//! Reasons for rejecting a command line.

use std::ffi::OsStr;
use std::fmt::Display;

use onrush_plan::secrets;
use onrush_text::escape_controls;

use super::spelling::Spelling;

/// The reason why a command line has no plan, and what to print.
#[derive(Debug)]
pub enum PlanRefusal {
    /// No error: help was requested.
    Help(Length),
    /// An error without a message of its own: only the usage is printed.
    Usage,
    /// A wrong command line: one line, after the program's name.
    Misused(String),
    /// A wrong command line: one line in wrk's words, printed without the program's name.
    Wrk(String),
    /// A correct command line that cannot be executed: one line, after the program's name. No usage follows.
    Cannot(String),
}

/// Length of the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One screen (`-h`).
    Short,
    /// The common options (`--help`).
    Common,
    /// Everything (`--help all`).
    All,
}

impl PlanRefusal {
    /// Rejects two options that cannot be combined.
    pub fn both(one: impl Display, other: impl Display, reason: &str) -> Self {
        Self::Misused(format!("{one} and {other}: {reason}; leave one of the two out"))
    }
}

/// True if a value is a URL with its scheme: the option may lack its value and have taken the URL instead.
pub fn is_url(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    text.starts_with("http://") || text.starts_with("https://")
}

/// One line about an option that took the URL as its value.
pub fn url_as_value_hint(spelling: &Spelling, url: &OsStr) -> String {
    let url = secrets::redact_url(&url.to_string_lossy());
    let (long, value) = (spelling.long, spelling.value.unwrap_or_default());
    format!(
        "--{long} lacks its value and took the URL {url:?} instead; write --{long} {value} {}",
        escape_controls(&url)
    )
}
