//! The command line: turns what was typed into a plan, or into a text to print.
//!
//! It resolves no name, opens no socket and starts nothing; it reads only the file of `--body` and that of an
//! experiment. One parser serves onrush and the tools it imitates: `front` reads options and words, `typed` collects
//! them, `values` reads their values, `decide` makes the plan. Only the texts of a `refusal` differ: `hints` has the
//! native ones, `compat` those of getopt and wrk. Subcommands have a simpler parser, `arguments`.

mod arguments;
mod command;
mod compare;
mod compat;
mod condition;
mod connect;
mod decide;
mod draft;
mod filter;
mod flag;
mod flags;
mod flaw;
mod foreign;
mod framing;
mod front;
mod help;
mod hints;
mod lab;
mod levels;
mod merge;
mod pace;
mod proxy;
mod refusal;
mod request;
mod restore;
mod sampling;
mod search;
mod serve;
mod show;
mod spelling;
mod table;
mod tls;
mod typed;
pub mod units;
mod until;
mod values;

use std::env;
use std::ffi::{OsStr, OsString};

use onrush_engine::backend;
use onrush_plan::{Dialect, Io, Plan, Search, secrets};
use onrush_text::printable_lines;

use crate::compare::Compare;
use crate::merge::Merge;
use crate::show::Show;
use crate::tables::Table;
use draft::Draft;
use front::Front;
pub use lab::Lab;
use refusal::{Length, Refusal};
use typed::Typed;

/// What a command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// A run.
    Run {
        /// Its plan.
        plan: Box<Plan>,
        /// Lines for standard error before the run, without line ends.
        warnings: Vec<String>,
    },
    /// A search for the highest load at which a condition holds.
    Search {
        /// The search with its plan.
        search: Box<Search>,
        /// As for a run.
        warnings: Vec<String>,
    },
    /// Merge saved results into one.
    Merge(Merge),
    /// Print saved results as reports.
    Show(Show),
    /// Carry out an experiment.
    Lab(Lab),
    /// Make tables of saved results.
    Table(Table),
    /// Compare saved results.
    Compare(Compare),
    /// Restore the settings that an experiment left changed.
    Restore,
    /// Run the embedded target.
    Serve(crate::serve::Asked),
    /// Print texts and exit: the help, the version, a mistake.
    Print {
        /// What goes to standard output.
        stdout: String,
        /// What goes to standard error.
        stderr: String,
        /// The exit code.
        exit: u8,
    },
}

/// Parses a command line; the first argument is the program's name.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Invocation {
    let args: Vec<OsString> = args.into_iter().collect();
    parse_ordered(&args, env::var_os("POSIXLY_CORRECT").is_some())
}

/// The line that `--version` prints.
pub fn version(dialect: Dialect, backend: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let imitated = match dialect {
        Dialect::Native => return format!("onrush {version} [{backend}]"),
        Dialect::Wrk | Dialect::WrkCmm => "4.2.0",
        Dialect::Wrk2 => "4.0.0",
    };
    format!("wrk {imitated}-onrush-{version} [{backend}] Copyright (C) the onrush authors")
}

/// A decision and its warnings, one line each.
type Warned<T> = (T, Vec<String>);

fn parse_ordered(args: &[OsString], words_end_options: bool) -> Invocation {
    let dialect = compat::dialect(args, words_end_options);
    let (program, rest) = args.split_first().map_or((None, &[][..]), |(program, rest)| (Some(program), rest));
    if !dialect.is_compat() && rest.is_empty() {
        return print(String::new(), help::usage(dialect), 1);
    }
    if let Some(invocation) = rest.first().filter(|_| !dialect.is_compat()).and_then(|word| named(word, &rest[1..])) {
        return invocation;
    }
    let mut typed = Typed::new(dialect);
    let read = typed.read(&mut Front::new(rest, dialect, words_end_options));
    let version = if typed.version { version(dialect, backend(&typed.io)) + "\n" } else { String::new() };
    if read.is_ok() && typed.version && typed.words.is_empty() && !dialect.is_compat() {
        return print(version, String::new(), 0);
    }
    let name = if dialect.is_compat() { program.map(|name| name.to_string_lossy()) } else { None };
    let name = name.as_deref().unwrap_or("onrush");
    // A mistyped command is reported first: its options may be unknown here.
    let command = if dialect.is_compat() { None } else { hints::command(&typed.words, typed.script.is_some()) };
    let read = command.map_or(read, |line| Err(Refusal::Misused(line)));
    let drafted = read.and_then(|()| Draft::take(&mut typed));
    match drafted.and_then(|draft| Ok((draft, decide::decide(typed)?))) {
        Ok((draft, (mut plan, warnings))) => {
            plan.show.command = command::shown(args, &plan);
            let warnings = warnings.iter().filter(|_| !plan.show.is_quiet);
            let warnings = warnings.map(|line| format!("{name}: {line}")).collect();
            match draft {
                Some(draft) => Invocation::Search { search: Box::new(draft.of(plan)), warnings },
                None => Invocation::Run { plan: Box::new(plan), warnings },
            }
        }
        Err(refusal) => refused(refusal, dialect, name, version),
    }
}

/// The subcommand that the first word names, if it does.
fn named(word: &OsStr, args: &[OsString]) -> Option<Invocation> {
    Some(match word.to_str()? {
        "serve" => subcommand("serve", &serve::help(), serve::parse(args), Invocation::Serve),
        "merge" => subcommand("merge", merge::HELP, merge::parse(args), Invocation::Merge),
        "show" => subcommand("show", show::HELP, show::parse(args), Invocation::Show),
        "compare" => subcommand("compare", compare::HELP, compare::parse(args), Invocation::Compare),
        "table" => subcommand("table", table::HELP, table::parse(args), Invocation::Table),
        "lab" => subcommand("lab", lab::LAB, lab::parse(args), Invocation::Lab),
        "sweep" => subcommand("sweep", lab::SWEEP, lab::sweep(args), Invocation::Lab),
        "vs" => subcommand("vs", lab::VERSUS, lab::versus(args), Invocation::Lab),
        "restore" => subcommand("restore", restore::HELP, restore::parse(args), |()| Invocation::Restore),
        _ => return None,
    })
}

/// The outcome of parsing a subcommand: the invocation made by `of`, its help, or the line that refuses it.
fn subcommand<T>(name: &str, help: &str, parsed: Result<Option<T>, String>, of: fn(T) -> Invocation) -> Invocation {
    match parsed {
        Ok(Some(asked)) => of(asked),
        Ok(None) => print(help.to_owned(), String::new(), 0),
        Err(reason) => print(String::new(), shown(&format!("onrush {name}: {reason}")), 1),
    }
}

/// Natively only a line on standard error; in the compat dialects also wrk's usage on standard output, after the
/// version if that was asked for.
fn refused(refusal: Refusal, dialect: Dialect, name: &str, version: String) -> Invocation {
    let usage = if dialect.is_compat() { version + &help::usage(dialect) } else { String::new() };
    let said = |line: String| if dialect.is_compat() { line + "\n" } else { shown(&line) };
    match refusal {
        Refusal::Help(_) if dialect.is_compat() => print(usage, String::new(), 1),
        Refusal::Help(Length::Short) => print(help::SHORT.to_owned(), String::new(), 0),
        Refusal::Help(Length::Common) => print(help::help(false), String::new(), 0),
        Refusal::Help(Length::All) => print(help::help(true), String::new(), 0),
        Refusal::Usage => print(usage, String::new(), 1),
        Refusal::Misused(line) => print(usage, said(format!("{name}: {line}")), 1),
        Refusal::Wrk(line) => print(usage, said(line), 1),
        Refusal::Cannot(line) => print(String::new(), said(format!("{name}: {line}")), 1),
    }
}

/// A line that refuses a command line, which is often quoted in it: without the users of URLs and what moves the cursor.
fn shown(line: &str) -> String {
    printable_lines(&secrets::users(line)) + "\n"
}

fn print(stdout: String, stderr: String, exit: u8) -> Invocation {
    Invocation::Print { stdout, stderr, exit }
}

/// The backend that a run would use.
fn backend(io: &Io) -> &'static str {
    match io {
        Io::Auto => backend::default_name(),
        Io::Uring => "uring",
        Io::Epoll => "epoll",
        Io::Sim(_) => "sim",
    }
}

#[cfg(test)]
mod tests;
