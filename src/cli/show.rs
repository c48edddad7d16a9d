//! The command line of `onrush show`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::arguments::{Subcommand, switch, text};
use crate::report::form::Form;
use crate::show::Show;

/// What `onrush show --help` prints.
pub(super) const HELP: &str = "\
onrush show prints saved results of onrush as the reports of their runs, with
their notes.

Usage: onrush show [options] FILE.json...

  -L, --latency      print more percentiles, as in a run with -L
      --format FORM  wrk, wrk-cmm or wrk2: that tool's report with everything it
                     can print; json: the document; cmm-json: the output of
                     wrk-cmm's script json.lua; md: Markdown for a ticket
  -h, --help         print this text

The format only changes the layout; the figures are those of the result, where
latencies are as measured, unless the run imitated another tool. A file may be
compressed (.json.gz); - is standard input.
";

pub(super) const SHOW: Subcommand<Show> = Subcommand {
    name: "show",
    options: &[
        switch("-L, --latency", |show| show.percentiles = true),
        text("--format FORM", |show, name| {
            let named = Form::NAMED.iter().find(|(_, known)| name == *known);
            let (form, _) = named.ok_or("unknown; write wrk, wrk-cmm, wrk2, json, cmm-json or md")?;
            show.form = *form;
            Ok(())
        }),
    ],
    word: |show, path| {
        show.inputs.push(PathBuf::from(path));
        Ok(())
    },
};

/// Parses the arguments of `show`; `None` if the help was asked for. The error says what is wrong.
pub(super) fn parse(args: &[OsString]) -> Result<Option<Show>, String> {
    let show = SHOW.read(args, Show { inputs: Vec::new(), form: Form::default(), percentiles: false })?;
    if show.as_ref().is_some_and(|show| show.inputs.is_empty()) {
        return Err("no file; try onrush show result.json".to_owned());
    }
    Ok(show)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Show>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args)
    }

    #[test]
    fn files_and_options_come_in_any_order() {
        let show = parsed("a.json --format cmm-json -L -").unwrap().unwrap();
        assert_eq!(show.inputs, ["a.json", "-"].map(PathBuf::from));
        assert_eq!((show.form, show.percentiles), (Form::CmmJson, true));
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
