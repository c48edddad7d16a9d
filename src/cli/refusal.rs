//! Why a command line is refused, and the message about a value that cannot be read.

use std::ffi::OsStr;
use std::fmt::Display;

use super::flags::Flag;

/// Why a command line has no plan.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Help was asked for.
    Help(Length),
    /// The usage says everything.
    Usage,
    /// The command line is wrong: one line, after the program's name.
    Misused(String),
    /// The same in wrk's words, without the program's name.
    Wrk(String),
    /// The command line is right, but it cannot be done: one line, after the program's name. No usage follows.
    Cannot(String),
}

/// How much help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// What fits a screen (`-h`).
    Short,
    /// The common options (`--help`).
    Common,
    /// Everything (`--help all`).
    All,
}

/// A value that cannot be read: the option, the value, and what would be right.
pub(super) fn wrong(flag: &Flag, value: &OsStr, reason: impl Display) -> Refusal {
    const SHOWN_MAX: usize = 80;
    let text = value.to_string_lossy();
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    // Without its value an option takes the next word instead.
    let is_missing = matches!(flag.spelling.value, Some("N" | "T" | "F" | "LIST" | "NAME" | "WHEN" | "VERSION"))
        && text.contains("://");
    let reason = if is_missing {
        format!("a URL; --{} needs a value before it", flag.spelling.long)
    } else {
        reason.to_string()
    };
    Refusal::Misused(format!("--{} {shown:?}{dots}: {reason}", flag.spelling.long))
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Id, by_id};
    use super::*;

    #[test]
    fn a_url_where_a_value_should_be_is_said_to_be_one() {
        for (id, expected) in [
            (Id::Rate, "--rate \"http://h/\": a URL; --rate needs a value before it"),
            (Id::Stages, "--stages \"http://h/\": a URL; --stages needs a value before it"),
            (Id::Duration, "--duration \"http://h/\": a URL; --duration needs a value before it"),
            (Id::HttpProxy, "--http-proxy \"http://h/\": reason"),
        ] {
            let Refusal::Misused(line) = wrong(by_id(id), OsStr::new("http://h/"), "reason") else { panic!() };
            assert_eq!(line, expected);
        }
    }
}
