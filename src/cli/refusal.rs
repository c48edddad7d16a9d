//! Why there is no plan, and what is said about a value that cannot be read.

use std::ffi::OsStr;
use std::fmt::Display;

use super::flags::Flag;

/// Why there is no plan.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Help was asked for.
    Help,
    /// There is nothing to add to the usage.
    Usage,
    /// The command line is wrong: one line, behind the program's name.
    Misused(String),
    /// The same in words of wrk, which stand alone.
    Wrk(String),
    /// The command line is right, but it cannot be done: one line, behind the program's name. No usage follows.
    Cannot(String),
}

/// A value that cannot be read: the option, the value, and what would be right.
pub(super) fn wrong(flag: &Flag, value: &OsStr, reason: impl Display) -> Refusal {
    const SHOWN_MAX: usize = 80;
    let text = value.to_string_lossy();
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    Refusal::Misused(format!("--{} {shown:?}{dots}: {reason}", flag.long))
}
