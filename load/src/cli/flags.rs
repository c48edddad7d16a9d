//! All options of a run, by section, and lookups among them.

use onrush_plan::Dialect;

use super::flag::Flag;
use super::{connect, http, internals, load, machines, output, pace, request, search, timeouts, tls};

/// A section of the help and of `docs/command-line.md`.
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// A paragraph for the page, in Markdown; empty if the heading says it all.
    pub about: &'static str,
    /// The options, in the order of help and page.
    pub flags: &'static [Flag],
}

const fn section(title: &'static str, about: &'static str, flags: &'static [Flag]) -> Section {
    Section { title, about, flags }
}

/// All sections, in the order of the help and of `docs/command-line.md`.
pub const SECTIONS: [Section; 11] = [
    section("Load", "", load::OPTIONS),
    section(
        "Request rate",
        "With a rate the loop is [open](measuring.md#closed-loop-and-open-loop): requests are sent when due, on any \
         free connection, and latency counts from then.",
        pace::OPTIONS,
    ),
    section("Finding the highest load", "", search::OPTIONS),
    section("Requests", "", request::OPTIONS),
    section("Timeouts", "", timeouts::OPTIONS),
    section("Connections", "", connect::OPTIONS),
    section(
        "TLS",
        "[tls.md](tls.md) describes checks, defaults and failures. With an `http://` URL these options only cause a \
         warning.",
        tls::OPTIONS,
    ),
    section("HTTP/2", "[http2.md](http2.md) lists the differences from HTTP/1.1.", http::OPTIONS),
    section(
        "Several machines",
        "For the coordinating machine; the others run `onrush worker` ([machines.md](machines.md)). Not with imitated \
         tools, `--once`, `--probe`, `--sockets`, `--request-log` and `--sample-responses`.",
        machines::OPTIONS,
    ),
    section("Output", "", output::OPTIONS),
    section("Internals", "", internals::OPTIONS),
];

/// All options, in the order of the sections.
pub fn all() -> impl Iterator<Item = &'static Flag> + Clone {
    SECTIONS.iter().flat_map(|section| section.flags)
}

/// The option with this letter.
pub fn by_letter(letter: char) -> Option<&'static Flag> {
    all().find(|flag| flag.described.spelling.short == Some(letter))
}

/// The option with exactly this name.
pub fn by_name(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name() == name)
}

/// The option with a name that the code itself mentions.
pub fn named(name: &str) -> &'static Flag {
    by_name(name).unwrap_or_else(|| panic!("there is no option --{name}"))
}

/// The options in a dialect's own list whose names begin with `prefix`.
pub fn by_prefix(prefix: &str, dialect: Dialect) -> Vec<&'static Flag> {
    all().filter(|flag| flag.is_listed_by(dialect) && flag.name().starts_with(prefix)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn letters_and_names_are_unique() {
        let mut letters = HashSet::new();
        let mut names = HashSet::new();
        for flag in all() {
            assert!(flag.described.spelling.short.is_none_or(|letter| letters.insert(letter)), "{}", flag.name());
            assert!(names.insert(flag.name()), "{}", flag.name());
        }
    }

    #[test]
    fn every_option_has_a_name_and_a_help() {
        for flag in all() {
            assert!(flag.name().len() > 1, "{}", flag.name());
            assert!(
                flag.name().bytes().all(|byte| byte.is_ascii_lowercase() || b"-_.1246".contains(&byte)),
                "{}",
                flag.name()
            );
            assert!(flag.described.spelling.value.is_none_or(|name| !name.is_empty()), "{}", flag.name());
            assert!(!flag.described.help.is_empty(), "{}", flag.name());
        }
    }

    #[test]
    fn excluded_options_exist() {
        for (name, reason) in all().flat_map(|flag| flag.excludes) {
            assert!(by_name(name).is_some() && !reason.is_empty(), "{name}");
        }
    }

    #[test]
    fn abbreviations_mean_the_same_as_in_wrk() {
        let table = [
            ("c", "connections"),
            ("d", "duration"),
            ("th", "threads"),
            ("ti", "timeout"),
            ("s", "script"),
            ("l", "latency"),
            ("v", "version"),
            ("hea", "header"),
            ("hel", "help"),
        ];
        for (prefix, name) in table {
            for dialect in [Dialect::Native, Dialect::Wrk] {
                let found: Vec<&str> = by_prefix(prefix, dialect).iter().map(|flag| flag.name()).collect();
                assert_eq!(found, [name], "{prefix}");
            }
        }
    }

    #[test]
    fn no_name_of_ours_is_an_abbreviation_of_wrks() {
        for flag in all() {
            for other in by_prefix(flag.name(), Dialect::Wrk) {
                assert_eq!(flag.name(), other.name());
            }
        }
    }

    #[test]
    fn a_fork_adds_its_own_names_to_the_abbreviations() {
        let names = |prefix, dialect| {
            let mut names: Vec<&str> = by_prefix(prefix, dialect).iter().map(|flag| flag.name()).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names("d", Dialect::WrkCmm), ["delay-stats", "duration"]);
        assert_eq!(names("b", Dialect::WrkCmm), ["bind-ip", "breakout"]);
        assert_eq!(names("r", Dialect::Wrk2), ["rate"]);
        assert_eq!(names("r", Dialect::Native), [""; 0]);
        assert_eq!(names("t", Dialect::Wrk), ["threads", "timeout"]);
        assert_eq!(names("h", Dialect::Wrk), ["header", "help"]);
    }
}
