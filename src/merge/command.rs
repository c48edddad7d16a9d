//! The command `onrush merge`: its arguments and its output.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;

use onrush_load::cli::arguments::{Subcommand, path, switch};
use onrush_load::cli::{Command, CommandWork, CompletionWord};
use onrush_load::program::{
    EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT, ORDER,
    highest_precedence, print_noted, say, until_signal,
};
use onrush_load::record::Document;
use onrush_load::record::gate::Gate;
use onrush_load::report::form::PrintedReport;
use onrush_plan::{Output, OutputKind};
use onrush_text::escape_controls;

use super::Merge;

/// The command `onrush merge`.
pub const COMMAND: Command = Command {
    name: MERGE.name,
    about: "merge saved results into one",
    help: || MERGE.help(),
    options: || MERGE.described_options(),
    word: CompletionWord::File,
    parse: |args| Ok(parse(args)?.map(|merge| CommandWork::new(move || run(&merge)))),
};

pub(crate) const MERGE: Subcommand<Merge> = Subcommand {
    name: "merge",
    help: (
        "\
onrush merge makes one result of several by adding up histograms and counts. For
runs that took place at the same time it adds the rates, for others the times.

Usage: onrush merge [options] FILE.json...",
        "\
Results of different plans are refused. Start times, seeds and the names of
result files make no difference. The gates (--fail-if) that all of them have are
those of the sum, too: the exit code is 3 if one is met.",
    ),
    options: &[
        path("-o, --output FILE", |merge: &mut Merge, path| {
            if path.as_os_str() == "-" {
                merge.is_piped = true
            } else {
                merge.outputs.push(sum_output(path)?)
            }
            Ok(())
        })
        .help(
            "write the sum to a file: .json, .json.gz, .csv, .hgrm, .md\n\
             or .xml; may be repeated; - is standard output, as JSON.\n\
             Without it the sum is printed: on a terminal as a report,\n\
             otherwise as JSON",
        ),
        switch("--force", |merge: &mut Merge| merge.force = true).help("merge results of different plans too"),
    ],
    word: |merge, path| {
        merge.inputs.push(PathBuf::from(path));
        Ok(())
    },
};

/// Parses the arguments of `merge`; `None` if help was requested. The error says what is wrong.
fn parse(args: &[OsString]) -> Result<Option<Merge>, String> {
    let merge = Merge { inputs: Vec::new(), outputs: Vec::new(), is_piped: false, force: false };
    let merge = MERGE.read(args, merge)?;
    if let Some(Merge { inputs, .. }) = &merge {
        if inputs.is_empty() {
            return Err("no file; try onrush merge a.json b.json -o both.json".to_owned());
        }
        let mut known = HashSet::new();
        if let Some(path) = inputs.iter().find(|path| !known.insert(*path)) {
            return Err(format!("{path:?} is given twice; each result counts once"));
        }
    }
    Ok(merge)
}

/// Adds up the results, and prints the sum or the names of its files; returns the exit code.
fn run(merge: &Merge) -> u8 {
    until_signal(|signals| {
        let printed = super::run(merge, |states| states.abandon_before_quitting(signals));
        let (printed, (code, lines)) = match printed {
            Ok((sum, PrintedReport { text, notes })) => (Ok((text, notes)), judge_sum(&sum)),
            Err(error) => (Err(error), (0, Vec::new())),
        };
        let exit = print_noted("onrush merge", printed);
        lines.iter().for_each(|line| say(&format!("onrush: {line}")));
        if exit == 0 { code } else { exit }
    })
}

/// The exit code of a sum, which without gates is zero, otherwise equal to that of a run with the same figures, and
/// lines with the reasons for it.
fn judge_sum(sum: &Document) -> (u8, Vec<String>) {
    let broken = sum.gates.iter().filter(|gate| gate.broken);
    let undecided = sum.gates.iter().filter(|gate| gate.undecided);
    let lines: Vec<String> =
        broken.clone().chain(undecided.clone()).map(|gate| escape_controls(&gate.sentence())).collect();
    let is_asked = !sum.gates.is_empty();
    let codes = [
        (EXIT_NOTHING_COMPLETED, is_asked && sum.requests.completed == 0),
        (EXIT_BROKEN, broken.clone().any(|gate| !gate.is_strict())),
        (EXIT_OUR_FAULT, broken.clone().any(Gate::is_strict)),
        (EXIT_INCONCLUSIVE, is_asked && sum.incomplete.is_some() || undecided.count() > 0),
        (EXIT_INTERRUPTED, is_asked && sum.interrupted),
    ];
    let code = highest_precedence(ORDER, &codes);
    let why = match code {
        EXIT_NOTHING_COMPLETED => Some("no request completed, so the gates cannot pass"),
        EXIT_INCONCLUSIVE if sum.incomplete.is_some() => Some("a run is incomplete, so the gates cannot pass"),
        EXIT_INTERRUPTED => Some("a signal ended a run early, so the gates cannot pass"),
        _ => None,
    };
    (code, lines.into_iter().chain(why.map(str::to_owned)).collect())
}

fn sum_output(path: PathBuf) -> Result<Output, String> {
    match OutputKind::for_path(&path) {
        Some(OutputKind::Lines) => Err(".ndjson is only written during a run; write .csv".to_owned()),
        Some(kind) => Ok(Output { path, kind }),
        None => Err("its ending selects the format: .json, .json.gz, .csv, .hgrm, .md or .xml".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Merge>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args)
    }

    #[test]
    fn files_and_options_come_in_any_order() {
        let merge = parsed("a.json -o sum.JSON --force b.json --output=sum.md").unwrap().unwrap();
        assert_eq!(merge.inputs, ["a.json", "b.json"].map(PathBuf::from));
        assert_eq!(
            merge.outputs.iter().map(|output| output.kind).collect::<Vec<_>>(),
            [OutputKind::Json, OutputKind::Markdown]
        );
        assert!(merge.force && !merge.is_piped);
        let merge = parsed("a.json -o - -o sum.json.gz").unwrap().unwrap();
        assert!(merge.is_piped && merge.outputs[0].kind == OutputKind::Json);
        assert!(parsed("a.json -h").unwrap().is_none());
    }

    #[test]
    fn mistakes_are_named() {
        for (line, words) in [
            ("", "no file"),
            ("a.json -o x", "ending"),
            ("a.json -o x.csv.gz", "ending"),
            ("a.json -o x.ndjson", "during a run"),
            ("--bogus", "unknown option --bogus; all options: onrush merge --help"),
            ("a.json b.json a.json", "\"a.json\" is given twice"),
        ] {
            assert!(parsed(line).unwrap_err().contains(words), "{line}");
        }
    }
}
