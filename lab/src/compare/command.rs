//! The command `onrush compare`: its arguments and its output.

use std::ffi::OsString;
use std::path::PathBuf;

use onrush_load::cli::arguments::{Subcommand, switch, text};
use onrush_load::cli::{Command, CommandWork, CompletionWord};
use onrush_load::program::{print, say};

use super::{Compare, ComparisonForm, RegressionLimit, is_compared};

/// The command `onrush compare`.
pub const COMMAND: Command = Command {
    name: COMPARE.name,
    about: "tell whether two results differ",
    help: || COMPARE.help(),
    options: || COMPARE.described_options(),
    word: CompletionWord::File,
    parse: |args| Ok(parse(args)?.map(|compare| CommandWork::new(move || run(&compare)))),
};

pub(crate) const COMPARE: Subcommand<Compare> = Subcommand {
    name: "compare",
    help: (
        "\
onrush compare tells whether saved results differ, by how much, and with what
certainty. A is the baseline; ratios are B/A.

Usage: onrush compare [options] A B
       onrush compare [options] FOLDER",
        "\
A and B are files, folders, or PATH:LABEL, the runs in PATH with that level,
label, name or heading. A FOLDER has one experiment (onrush vs, sweep, lab):
every level is compared with the baseline.

If the rounds of an experiment are interleaved, the runs of a round are compared
with each other. Otherwise the runs are compared as two groups, which does not
cancel out what changed meanwhile. One run on each side cannot show random
variation. The rate decides, or with -R the 99th percentile of the latency since
requests were due; other metrics are exploratory. The plans may differ in one
respect. The files are results of onrush and wrk-cmm (.json, .json.gz) or the
text that onrush, wrk, wrk-cmm and wrk2 print.",
    ),
    options: &[
        text("--fail-if-worse [METRIC:]PCT", |compare: &mut Compare, text| {
            parse_limit(text).map(|limit| compare.limits.push(limit))
        })
        .help(
            "exit with code 3 if the whole 95 % interval is worse by\n\
                 more than PCT per cent, and with 6 if part of it is or\n\
                 nothing is known; may be repeated. METRIC is rate, mean,\n\
                 p99 or any other percentile, or one of a class of status\n\
                 (p99.2xx); without it, the one that decides",
        ),
        switch("--force", |compare: &mut Compare| compare.force = true).help("compare runs of different plans too"),
        text("--format FORM", |compare: &mut Compare, name| parse_form(name).map(|form| compare.form = form))
            .one_of(&["text", "json"])
            .help("text (the default) or json, with every figure"),
    ],
    word: |compare, path| {
        compare.inputs.push(PathBuf::from(path));
        Ok(())
    },
};

/// Parses the arguments of `compare`; `None` if help was requested. The error says what is wrong.
fn parse(args: &[OsString]) -> Result<Option<Compare>, String> {
    let compare = Compare { inputs: Vec::new(), force: false, limits: Vec::new(), form: ComparisonForm::default() };
    let Some(compare) = COMPARE.read(args, compare)? else { return Ok(None) };
    match &compare.inputs[..] {
        [a, b] if a == b => Err(format!("A and B are both {a:?}; name two results")),
        [] | [_] | [_, _] => Ok(Some(compare)),
        [_, _, third, ..] => Err(format!("{third:?} is one too many; name two results, A and B")),
    }
}

/// Prints the comparisons and the messages about them; returns the exit code.
fn run(compare: &Compare) -> u8 {
    let compared = super::compare_files(compare);
    let exit = print("onrush compare", Ok(compared.text), compared.exit);
    compared.said.iter().for_each(|line| say(&format!("onrush compare: {line}")));
    exit
}

/// Parses the limit `[METRIC:]PCT`.
fn parse_limit(text: &str) -> Result<RegressionLimit, String> {
    let wrong = |what: &str| format!("{what}; try 5 or p99:10");
    let (metric, percent) = text.rsplit_once(':').map_or((None, text), |(metric, percent)| (Some(metric), percent));
    if let Some(share) = metric.filter(|metric| ["errors", "unavailable"].contains(metric)) {
        let words = "is usually 0, and a percentage of 0 says nothing; use a gate in the runs";
        return Err(format!("{share} {words}: --fail-if '{share}>1%'"));
    }
    let known = |metric: &str| metric.parse().ok().filter(|metric| is_compared(*metric));
    let metric = metric.map(|name| {
        known(name).ok_or_else(|| {
            wrong("the metric must be rate, mean or a percentile, perhaps of a class of status (p99.2xx)")
        })
    });
    let percent = percent.strip_suffix('%').unwrap_or(percent).trim();
    let percent = percent.parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent >= 0.0);
    let percent = percent.ok_or_else(|| wrong("the limit must be a percentage, 0 or more"))?;
    Ok(RegressionLimit { metric: metric.transpose()?, share: percent / 100.0 })
}

fn parse_form(name: &str) -> Result<ComparisonForm, String> {
    match name {
        "text" => Ok(ComparisonForm::Text),
        "json" => Ok(ComparisonForm::Json),
        _ => Err("unknown; write text or json".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Compare>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args)
    }

    #[test]
    fn files_and_options_come_in_any_order() {
        let compare =
            parsed("a --fail-if-worse 5 b:x --format=json --fail-if-worse p99.9:7.5% --force").unwrap().unwrap();
        assert_eq!(compare.inputs, ["a", "b:x"].map(PathBuf::from));
        let limits = [
            RegressionLimit { metric: None, share: 0.05 },
            RegressionLimit { metric: "p99.9".parse().ok(), share: 0.075 },
        ];
        assert_eq!((&compare.limits[..], compare.force, compare.form), (&limits[..], true, ComparisonForm::Json));
        assert_eq!(parsed("folder").unwrap().unwrap().inputs.len(), 1);
        assert!(parsed("a --help").unwrap().is_none());
    }

    #[test]
    fn mistakes_are_named() {
        for (line, words) in [
            ("a a", "both \"a\""),
            ("a b c", "\"c\" is one too many"),
            ("a b --format csv", "text or json"),
            ("a b --fail-if-worse", "--fail-if-worse needs a value"),
            ("a b --fail-if-worse much", "must be a percentage"),
            ("a b --fail-if-worse -1", "0 or more"),
            ("a b --fail-if-worse unavailable:1", "use a gate in the runs: --fail-if 'unavailable>1%'"),
            ("a b --fail-if-worse p0:1", "the metric must be rate, mean or a percentile, perhaps of a class of status"),
            ("a b --fail-if-worse max.2xx:1", "the metric must be rate, mean or a percentile"),
            ("a b --bogus", "all options: onrush compare --help"),
        ] {
            assert!(parsed(line).unwrap_err().contains(words), "{line}: {:?}", parsed(line));
        }
    }
}
