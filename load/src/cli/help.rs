//! The texts of `-h`, `--help` and the usage, rendered from the table in [`super::flags`].

use std::iter;

use onrush_plan::Dialect;

use super::described;
use super::flag::Flag;
use super::flags;

/// The options of `onrush -h`. The first line of their help must stand alone.
const MOST_USED: [&str; 10] =
    ["connections", "threads", "duration", "requests", "rate", "latency", "header", "script", "output", "warmup"];

/// The text of `onrush -h`, which fits one screen.
pub(super) fn short_help() -> String {
    let entry = |name: &&str| {
        let flag = flags::named(name);
        let first = flag.described.help.lines().next().unwrap_or_default();
        format_flag_help(flag, iter::once(first.trim_end_matches([';', ','])))
    };
    let options: String = MOST_USED.iter().map(entry).collect();
    format!(
        "onrush is an HTTP load generator with wrk's command line, report and scripts.\n\n\
         Usage: onrush [options] <url>\n\n{options}\n{SHORT_END}"
    )
}

/// The end of `onrush -h`.
const SHORT_END: &str = "\
A first run       onrush -c100 -d30s --latency http://127.0.0.1:8080/
At a rate         onrush -R 2000 -d1m http://127.0.0.1:8080/
As JSON           onrush -d10s --format json http://127.0.0.1:8080/
With a script     onrush -s login.lua http://127.0.0.1:8080/
The highest load  onrush --find-max 'p99<50ms' http://127.0.0.1:8080/

Commands: sweep, vs, lab, compare, table, show, merge, restore, serve, worker,
kubernetes; each has its own --help. More options, exit codes and examples:
onrush --help
";

/// The text of `onrush --help`: only the common options, or all of them with `has_all`.
pub(super) fn help(has_all: bool) -> String {
    let mut text = String::from(
        "onrush is an HTTP load generator with wrk's command line, report and scripts.\n\n\
         Usage: onrush [options] <url>\n       \
         onrush serve [options]      run the embedded target\n       \
         onrush merge FILE...        merge saved results into one\n       \
         onrush show FILE...         print saved results as reports\n       \
         onrush table FILE...        make tables of saved results\n       \
         onrush compare A B          tell whether two results differ\n       \
         onrush sweep -c 1,8,64 URL  measure several loads in turn\n       \
         onrush vs URL URL           measure several servers in turn\n       \
         onrush lab FILE.toml        run an experiment\n       \
         onrush restore              reset kernel settings that a killed lab left\n       \
         onrush worker               take part in a run on several machines\n       \
         onrush kubernetes           carry a run out in a Kubernetes cluster\n       \
         onrush --generate man       print the manual page; or complete-bash,\n       \
         \x20                           complete-zsh, complete-fish: completions\n\
         \n\
         Each command has its own --help. Defaults are in parentheses.\n",
    );
    for section in &flags::SECTIONS {
        let shown = section.flags.iter().filter(|flag| has_all || flag.is_common);
        let entries: String = shown.map(|flag| format_flag_help(flag, flag.described.help.lines())).collect();
        if !entries.is_empty() {
            text.push_str(&format!("\n{}\n{entries}", section.title));
        }
    }
    if !has_all {
        let more = flags::all().filter(|flag| !flag.is_common).count();
        text.push_str(&format!("\n{more} more options, for connections, TLS, pacing and files: onrush --help all\n"));
    }
    text + NOTATION
        + "\nExamples\n"
        + EXAMPLES
        + "\nCalled as wrk, wrk-cmm or wrk2 (through a link), onrush behaves like that tool.\n\nExit codes\n"
        + EXIT_CODES
        + "\nWhat \"see docs/...\" refers to: man onrush, or onrush --generate man | man -l -\n"
}

/// The usage printed for a wrong command line: the imitated tool's, or a few lines natively.
pub(super) fn usage(dialect: Dialect) -> String {
    if !dialect.is_compat() {
        return "Usage: onrush [options] <url>\n\
                For instance: onrush -c100 -d30s --latency http://127.0.0.1:8080/\n\
                All options: onrush --help all\n"
            .to_owned();
    }
    let mut text = String::from("Usage: wrk <options> <url>\n  Options:\n");
    for flag in flags::all().filter(|flag| flag.is_listed_by(dialect)) {
        text.push_str(&format_flag_help(flag, flag.described.help.lines().take(1)));
    }
    text.push_str(
        "\n  Numbers may have a unit: 1k, 1M, 1G\n  Times may have a unit: 2s, 2m, 2h\n  \
         For more options and their help: onrush --help\n",
    );
    text
}

/// Column in which the options' help starts.
const COLUMN: usize = 26;

/// One option: its spelling, followed by the lines of its help. A long spelling has its own line.
fn format_flag_help<'a>(flag: &Flag, help: impl Iterator<Item = &'a str>) -> String {
    described::format_option(&flag.described.spelling, help, COLUMN)
}

/// The notation of values, as a section of the help.
pub(super) const NOTATION: &str = "
N is a number, which may have a unit: k (thousand), M (million), G, T, P: 1.5M.
T is a time in us, ms, s, m (minutes) or h: 500ms, 2m; without a unit, seconds.
A URL without a scheme is an http:// URL. -- ends the options.
";

/// Example command lines and their effects.
pub(super) const EXAMPLES: &str = "  onrush http://127.0.0.1:8080/
      2 threads and 10 connections, for 10 seconds
  onrush -c400 -t4 -d30s --latency http://127.0.0.1:8080/
      the same command line as for wrk, with latencies as measured
  onrush -n 10k --body @order.json -H 'Content-Type: application/json' URL
      10,000 POST requests
  onrush -d30s --latency -o result.json -o result.csv URL
      the report on the terminal, the full result in files
  onrush --find-max 'p99<50ms,errors<0.1%' http://127.0.0.1:8080/
      the highest rate at which both hold, found within a minute (-d is the time
      for the whole search)
  onrush --once -H 'Host: www.example.com' http://127.0.0.1/
      one request, shown in full; do this before every run
";

pub(super) const EXIT_CODES: &str = "  0  a report was printed
  1  bad option, URL or file, a host that cannot be resolved, or a result
     file that could not be written
  2  the run could not start: every first connection or TLS handshake failed
  3  a --fail-if condition is met, or that of --find-max holds at no load
  4  with --strict: onrush itself limited the run
  5  no request completed; or with -n the target stayed unreachable; or the
     target of --find-max stopped responding
  6  --find-max was inconclusive, or could not confirm what it found; or a
     machine was lost in a run on several
130  ended by a second signal, or by a first one before --fail-if, --strict,
     --until, a search or an experiment could pass
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn help_lines_fit_80_columns() {
        for text in [
            short_help(),
            help(false),
            help(true),
            usage(Dialect::Native),
            usage(Dialect::Wrk),
            usage(Dialect::WrkCmm),
            usage(Dialect::Wrk2),
        ] {
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }

    #[test]
    fn help_lists_every_option_once() {
        let (common, all) = (help(false), help(true));
        let others = flags::all().filter(|flag| !flag.is_common).count();
        assert!(others > 30 && flags::all().count() - others > 20, "{others} others");
        assert!(common.contains(&format!("\n{others} more options, ")) && common.lines().count() < all.lines().count());
        for flag in flags::all() {
            let entry = format_flag_help(flag, flag.described.help.lines());
            let first = flag.described.help.lines().next().unwrap();
            assert!(all.contains(&entry), "{}", flag.name());
            assert_eq!(common.contains(&entry), flag.is_common, "{}", flag.name());
            let line = entry.lines().find(|line| line.contains(first)).unwrap();
            assert_eq!(line.find(first), Some(COLUMN), "{entry}");
            assert!(line[..COLUMN].ends_with(' '), "{entry}");
        }
    }

    #[test]
    fn compat_usage_shows_whole_help_entries() {
        // A sentence continued on the next line would end here in a short word or an open parenthesis.
        for flag in flags::all().filter(|flag| flag.is_listed_by(Dialect::WrkCmm) || flag.is_listed_by(Dialect::Wrk2)) {
            let first = flag.described.help.lines().next().unwrap();
            assert_eq!(first.matches('(').count(), first.matches(')').count(), "{first}");
            let last = first.rsplit(' ').next().unwrap();
            assert!(!["the", "a", "of", "longer", "behind", "and", "or", "to"].contains(&last), "{first}");
        }
    }

    #[test]
    fn help_and_manual_list_the_same_exit_codes() {
        let codes = |text: &str| -> BTreeSet<u8> {
            text.lines()
                .filter_map(|line| line.trim_start_matches(['|', ' ']).split(' ').next()?.parse().ok())
                .collect()
        };
        let manual = include_str!("../../../docs/command-line.md").split("\n## Exit codes\n\n").nth(1).unwrap();
        let manual = codes(manual.split("\n\n").next().unwrap());
        assert_eq!(codes(help(false).split("\nExit codes\n").nth(1).unwrap()), manual);
        assert_eq!(manual.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 130]);
    }

    #[test]
    fn help_entries_show_spelling_value_and_purpose() {
        let connections = flags::named("connections");
        assert_eq!(
            format_flag_help(connections, connections.described.help.lines()),
            "  -c, --connections N     connections to keep open, all threads together (10)\n"
        );
    }

    #[test]
    fn compat_usage_lists_only_the_tools_options() {
        let listed = |dialect| {
            let text = usage(dialect);
            assert!(text.starts_with("Usage: wrk <options> <url>\n  Options:\n"), "{text}");
            let listed = |name: &str| text.contains(&format!("--{name}"));
            [listed("script"), listed("breakout"), listed("u_latency"), listed("once")]
        };
        assert_eq!(listed(Dialect::Wrk), [true, false, false, false]);
        assert_eq!(listed(Dialect::WrkCmm), [true, true, false, false]);
        assert_eq!(listed(Dialect::Wrk2), [true, false, true, false]);
    }
}
