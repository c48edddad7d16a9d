//! Reasons for rejecting a command line, and the message about an invalid value.

use std::ffi::OsStr;
use std::fmt::Display;

use onrush_plan::secrets;
use onrush_text::escape_controls;

use super::flags::Flag;
use super::spelling::Spelling;

/// The reason why a command line has no plan, and what to print.
#[derive(Debug)]
pub enum PlanRefusal {
    /// No error: help was requested.
    Help(Length),
    /// An error that only the usage explains.
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

/// Rejects an invalid value. The message has the option, the value without its secrets, and the reason or right form.
pub fn wrong(flag: &Flag, value: &OsStr, reason: impl Display) -> PlanRefusal {
    const SHOWN_MAX: usize = 80;
    let text = value.to_string_lossy();
    let text = if is_url(value) { secrets::misspelt_url(&text) } else { secrets::redact_text(&text) };
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    PlanRefusal::Misused(format!("--{} {shown:?}{dots}: {reason}", flag.spelling.long))
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
