//! The command `onrush show`: prints saved results.

use std::ffi::OsString;
use std::path::PathBuf;

use onrush_lab::saved;
use onrush_load::cli::arguments::{Subcommand, switch, text};
use onrush_load::cli::{Command, CommandWork, CompletionWord};
use onrush_load::program::{EXIT_WRONG, print_noted};
use onrush_load::record;
use onrush_load::report::form::{self, PrintedReport, ReportForm};

/// The command `onrush show`.
pub const COMMAND: Command = Command {
    name: SHOW.name,
    about: "print saved results as reports",
    help: || SHOW.help(),
    options: || SHOW.described_options(),
    word: CompletionWord::File,
    parse: |args| Ok(parse(args)?.map(|show| CommandWork::new(move || run(&show)))),
};

/// The results to show, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShowOptions {
    /// The files to show, at least one.
    inputs: Vec<PathBuf>,
    form: ReportForm,
    /// True to show percentiles even if the run's own report had none.
    percentiles: bool,
}

pub(crate) const SHOW: Subcommand<ShowOptions> = Subcommand {
    name: "show",
    help: (
        "\
onrush show prints saved results of onrush as the reports of their runs, with
their notes.

Usage: onrush show [options] FILE.json...",
        "\
The format only changes the layout; the figures are those of the result, where
latencies are as measured, unless the run imitated another tool. A file may be
compressed (.json.gz); - is standard input.",
    ),
    options: &[
        switch("-L, --latency", |show: &mut ShowOptions| show.percentiles = true)
            .help("print more percentiles, as in a run with -L"),
        text("--format FORM", |show: &mut ShowOptions, name| {
            let named = ReportForm::NAMED.iter().find(|(_, known)| name == *known);
            let (form, _) = named.ok_or("unknown; write wrk, wrk-cmm, wrk2, json, cmm-json or md")?;
            show.form = *form;
            Ok(())
        })
        .one_of(&["wrk", "wrk-cmm", "wrk2", "json", "cmm-json", "md"])
        .help(
            "wrk, wrk-cmm or wrk2: that tool's report with everything it\n\
             can print; json: the document; cmm-json: the output of\n\
             wrk-cmm's script json.lua; md: Markdown for a ticket",
        ),
    ],
    word: |show, path| {
        show.inputs.push(PathBuf::from(path));
        Ok(())
    },
};

/// Parses the arguments of `show`; `None` if help was requested. The error says what is wrong.
fn parse(args: &[OsString]) -> Result<Option<ShowOptions>, String> {
    let show = SHOW.read(args, ShowOptions { inputs: Vec::new(), form: ReportForm::default(), percentiles: false })?;
    if show.as_ref().is_some_and(|show| show.inputs.is_empty()) {
        return Err("no file; try onrush show result.json".to_owned());
    }
    Ok(show)
}

/// Reads and prints each file; returns the exit code, which is that of success if at least one result could be shown.
fn run(show: &ShowOptions) -> u8 {
    let codes = show.inputs.iter().map(|path| {
        let printed = saved::document(path).and_then(|document| {
            let printed = form::print(&document, show.form, show.percentiles);
            printed.map_err(|corrupt| record::damaged(path, corrupt))
        });
        print_noted("onrush show", printed.map(|PrintedReport { text, notes }| (text, notes)))
    });
    codes.min().unwrap_or(EXIT_WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<ShowOptions>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args)
    }

    #[test]
    fn files_and_options_come_in_any_order() {
        let show = parsed("a.json --format cmm-json -L -").unwrap().unwrap();
        assert_eq!(show.inputs, ["a.json", "-"].map(PathBuf::from));
        assert_eq!((show.form, show.percentiles), (ReportForm::CmmJson, true));
        assert!(parsed("a --help").unwrap().is_none());
    }

    #[test]
    fn mistakes_are_named() {
        for (line, words) in
            [("", "no file"), ("a --format csv", "cmm-json or md"), ("a --bogus", "all options: onrush show --help")]
        {
            assert!(parsed(line).unwrap_err().contains(words), "{line}");
        }
    }
}
