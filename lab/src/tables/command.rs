//! The command `onrush table`: its arguments and its output.

use std::ffi::OsString;
use std::path::PathBuf;

use onrush_load::cli::arguments::{Subcommand, text};
use onrush_load::cli::{Command, CommandWork, CompletionWord};
use onrush_load::program::{EXIT_WRONG, print, say};

use super::{Columns, RunParts, Sort, TableForm, TableOptions, WRK_CMM};

/// The command `onrush table`.
pub const COMMAND: Command = Command {
    name: TABLE.name,
    about: "make tables of saved results",
    help: || TABLE.help(),
    options: || TABLE.described_options(),
    word: CompletionWord::File,
    parse: |args| Ok(parse(args)?.map(|table| CommandWork::new(move || print_tables(&table)))),
};

pub(crate) const TABLE: Subcommand<TableOptions> = Subcommand {
    name: "table",
    help: (
        "\
onrush table makes tables of saved results: the .json files of onrush and
wrk-cmm, and the text that wrk, wrk-cmm and wrk2 print, with any number of runs
per file. Runs that differ only in their number share a row: the median of their
rates, how far these are apart, percentiles of all their requests, and errors.

Usage: onrush table [options] FILE|FOLDER...",
        "\
Fields: folder, file, line, name, tool, section (the underlined heading above a
run), label (the line above it), url, host, threads, connections, protocol,
streams (of a connection), rate (the one asked for), verdict, and factors: the
labels of a result (--label) and those in its file name, such as rmem_max and c
of run 2 in x-rmem_max-4096-c-10-2.json.
Figures: onrush table --columns help lists them.
A file may be compressed (.json.gz); - is standard input. In a folder, files
that end in .json, .log or .txt are read; x.json and x.log are one run.",
    ),
    options: &[
        text("--by A,B", |table: &mut TableOptions, list| {
            table.by = Some(split_names(list));
            Ok(())
        })
        .help("runs that are equal in these fields belong together; by\ndefault the factors in file names and all else that\ndiffers"),
        text("--columns A,B", |table: &mut TableOptions, list| {
            table.columns = parse_columns(list)?;
            Ok(())
        })
        .help(
            "print a row for every run, with these columns, and\n\
             averages; wrk-cmm: the tables of wrk-cmm's scripts;\n\
             stages: a row for each stage of --stages;\n\
             names: a row for each name=X of --urls;\n\
             help: a list of the figures",
        ),
        text("--sort COL", |table: &mut TableOptions, column| {
            table.sort = Some(parse_sort(column));
            Ok(())
        })
        .help("sort by a column; COL:desc: the largest first"),
        text("--format FORM", |table: &mut TableOptions, name| parse_form(name).map(|form| table.form = form))
            .one_of(&["md", "text", "csv", "json"])
            .help("md (the default), text, csv or json; the last two have\na row per run, by default with everything"),
    ],
    word: |table, path| {
        table.inputs.push(PathBuf::from(path));
        Ok(())
    },
};

/// Parses the arguments of `table`; `None` if help was requested. The error names what is wrong.
fn parse(args: &[OsString]) -> Result<Option<TableOptions>, String> {
    let table =
        TableOptions { inputs: Vec::new(), by: None, columns: Columns::Short, sort: None, form: TableForm::default() };
    let table = TABLE.read(args, table)?;
    if table.as_ref().is_some_and(|table| table.inputs.is_empty() && table.columns != Columns::Help) {
        return Err("no file; try onrush table results/".to_owned());
    }
    Ok(table)
}

/// Prints the tables on standard output and messages about the files on standard error. Returns the
/// exit code.
fn print_tables(table: &TableOptions) -> u8 {
    let tables = super::run(table);
    tables.said.iter().for_each(|line| say(&format!("onrush table: {line}")));
    let exit = if tables.text.is_empty() { EXIT_WRONG } else { 0 };
    print("onrush table", Ok(tables.text), exit)
}

/// Splits a list at its commas; an empty text gives no names.
fn split_names(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn parse_columns(value: &str) -> Result<Columns, String> {
    let names = split_names(value);
    let parts = |name: &str| RunParts::ALL.into_iter().find(|parts| parts.name() == name);
    if let [only] = &names[..]
        && let Some(parts) = parts(only)
    {
        return Ok(Columns::Parts(parts));
    }
    match &names[..] {
        [only] if only == WRK_CMM => Ok(Columns::WrkCmm),
        [only] if only == super::HELP => Ok(Columns::Help),
        _ => match names.iter().find(|name| *name == WRK_CMM || parts(name).is_some()) {
            Some(whole) => {
                Err(format!("{whole} stands for whole tables; leave out the other columns, or name all of them"))
            }
            None => Ok(Columns::Named(names)),
        },
    }
}

fn parse_sort(value: &str) -> Sort {
    let (column, descends) = match value.rsplit_once(':') {
        Some((column, "desc")) => (column, true),
        Some((column, "asc")) => (column, false),
        _ => (value, false),
    };
    Sort { column: column.to_owned(), descends }
}

fn parse_form(value: &str) -> Result<TableForm, String> {
    match value {
        "md" => Ok(TableForm::Markdown),
        "text" => Ok(TableForm::Text),
        "csv" => Ok(TableForm::Csv),
        "json" => Ok(TableForm::Json),
        _ => Err("unknown; write md, text, csv or json".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<TableOptions>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args)
    }

    #[test]
    fn files_and_options_come_in_any_order() {
        let table = parsed("a --by x,y b.json --sort p99_us:desc --format=csv --columns host -").unwrap().unwrap();
        assert_eq!(table.inputs, ["a", "b.json", "-"].map(PathBuf::from));
        assert_eq!(table.by, Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(table.columns, Columns::Named(vec!["host".to_owned()]));
        assert_eq!(table.sort, Some(Sort { column: "p99_us".to_owned(), descends: true }));
        assert_eq!(table.form, TableForm::Csv);
        assert!(parsed("a --help").unwrap().is_none());
        let columns = |line: &str| parsed(line).unwrap().unwrap().columns;
        assert_eq!((columns("a"), columns("a --columns wrk-cmm")), (Columns::Short, Columns::WrkCmm));
        assert_eq!(
            (columns("--columns help"), columns("a --columns stages")),
            (Columns::Help, Columns::Parts(RunParts::Stages))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (line, words) in [
            ("a --columns wrk-cmm,errors", "leave out the other columns"),
            ("a --columns p99,stages", "stages stands for whole tables"),
            ("", "no file"),
            ("a --format xml", "md, text, csv or json"),
            ("a --sort", "--sort needs a value: --sort COL"),
            ("a --bogus", "all options: onrush table --help"),
        ] {
            assert!(parsed(line).unwrap_err().contains(words), "{line}");
        }
    }
}
