//! The command line: turns the arguments into a plan, or into a text to print.
//!
//! An option is one definition (`flag::Flag`) in the table of its section: `load`, `pace`, `search`, `request`,
//! `timeouts`, `connect`, `tls`, `http`, `machines`, `output`, `internals`. The file of a section also has its part of
//! the draft of a plan, and makes its part of the plan.
//!
//! No name is resolved, no socket opened and nothing started here; only files that options name are read. One parser
//! serves onrush and the tools it imitates: `lexer` reads options and words, each option of `flags` sets a part of the
//! `draft`, and `decide` makes the plan. Only the texts of a `refusal` differ: `hints` has the native ones,
//! `compat` those of getopt and wrk. Named commands have a simpler parser, `arguments`. The tables of their options are
//! in their own rooms; this module only knows `commands`.

pub mod arguments;
mod checks;
pub mod command_line;
mod commands;
mod compat;
mod condition;
mod connect;
pub mod decide;
pub mod described;
pub mod draft;
mod filter;
pub mod flag;
pub mod flags;
mod flaw;
mod foreign;
mod form;
mod framing;
mod gates;
mod generate;
mod help;
pub mod hints;
mod http;
mod internals;
pub mod levels;
pub mod lexer;
mod list;
pub mod load;
mod machines;
mod multipart;
mod output;
pub mod pace;
pub mod probe;
mod proxy;
pub mod refusal;
mod request;
mod request_log;
mod samples;
mod sampling;
mod search;
mod slurm;
pub mod spelling;
mod templates;
mod timeouts;
mod tls;
pub mod units;
mod until;
pub mod values;

use std::env;
use std::ffi::OsString;

use onrush_engine::backend;
use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{Dialect, Io, Plan, secrets};
use onrush_text::escape_controls_in_lines;

pub use commands::{Command, CommandWork, Commands, InsteadOfRun, PlanAction};
pub use condition::parse_saved_gate;
pub use described::CompletionWord;
use draft::PlanDraft;
use lexer::ArgLexer;
use refusal::{Length, PlanRefusal};
pub use search::SearchDraft;

use crate::input::InputFiles;

/// The result of parsing a command line.
#[derive(Debug)]
pub enum Invocation {
    /// A single run.
    Run {
        /// The plan of the run.
        plan: Box<Plan>,
        /// Lines for standard error before the run, without line endings.
        warnings: Vec<String>,
    },
    /// A command other than a single run.
    Command {
        /// The work of the command.
        work: CommandWork,
        /// Lines for standard error before the work, without line endings.
        warnings: Vec<String>,
    },
    /// Texts to print before exiting: help, the version, or an error.
    Print {
        /// Text for standard output.
        stdout: String,
        /// Text for standard error.
        stderr: String,
        /// The exit code.
        exit: u8,
    },
}

/// Parses a command line; the first argument is the program's name. Named files are read, and with `POSIXLY_CORRECT` in
/// the environment the first word ends the options.
pub fn parse(args: impl IntoIterator<Item = OsString>, commands: &Commands) -> Invocation {
    let args: Vec<OsString> = args.into_iter().collect();
    parse_ordered(&args, commands, env::var_os("POSIXLY_CORRECT").is_some(), &InputFiles::default(), &mut |_| ())
}

/// Parses a command line that cannot contain a named command; the first argument is the program's name. `show` gets the
/// resulting plan before anything else uses it, and may change it.
pub fn parse_with_plan_hook(
    args: &[OsString],
    instead: InsteadOfRun,
    files: &InputFiles,
    show: &mut dyn FnMut(&mut Plan),
) -> Invocation {
    parse_ordered(args, &Commands { named: &[], instead }, false, files, show)
}

/// The text that `--version` prints, with the name of the backend.
pub fn version(dialect: Dialect, backend: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let imitated = match dialect {
        Dialect::Native => return format!("onrush {version} [{backend}]"),
        Dialect::Wrk | Dialect::WrkCmm => "4.2.0",
        Dialect::Wrk2 => "4.0.0",
    };
    format!("wrk {imitated}-onrush-{version} [{backend}] Copyright (C) the onrush authors")
}

/// A value, and the warnings about it, one line each.
pub type Warned<T> = (T, Vec<String>);

fn parse_ordered(
    args: &[OsString],
    commands: &Commands,
    words_end_options: bool,
    files: &InputFiles,
    show: &mut dyn FnMut(&mut Plan),
) -> Invocation {
    let dialect = compat::choose_dialect(args, words_end_options);
    let (program, rest) = args.split_first().map_or((None, &[][..]), |(program, rest)| (Some(program), rest));
    if !dialect.is_compat() && rest.is_empty() {
        return print(String::new(), help::usage(dialect), 1);
    }
    let is_named = |word: &OsString, command: &&Command| !dialect.is_compat() && word == command.name;
    if let Some(word) = rest.first()
        && let Some(command) = commands.named.iter().find(|command| is_named(word, command))
    {
        return parse_named_command(command, &rest[1..]);
    }
    if let Some(generated) = generate::generate_if_requested(rest, commands).filter(|_| !dialect.is_compat()) {
        return match generated {
            Ok(text) => print(text, String::new(), 0),
            Err(reason) => print(String::new(), shown(&format!("onrush: {reason}")), 1),
        };
    }
    let mut draft = PlanDraft::new(dialect);
    let read = draft.read(&mut ArgLexer::new(rest, dialect, words_end_options));
    let version = match draft.has("version") {
        true => version(dialect, backend_name(&draft.internals.io)) + "\n",
        false => String::new(),
    };
    if read.is_ok() && !version.is_empty() && draft.words.is_empty() && !draft.has("urls") && !dialect.is_compat() {
        return print(version, String::new(), 0);
    }
    let name = if dialect.is_compat() { program.map(|name| name.to_string_lossy()) } else { None };
    let name = name.as_deref().unwrap_or("onrush");
    // A mistyped command is reported first, because its options may be unknown here.
    let command = || hints::command_hint(&draft.words, draft.has("script"), commands.command_names());
    let command = if dialect.is_compat() { None } else { command() };
    let read = command.map_or(read, |line| Err(PlanRefusal::Misused(line)));
    let instead = read.and_then(|()| commands.instead.0(&mut draft));
    let decided = instead.and_then(|instead| {
        if instead.is_some() {
            probe::forbid_probe(&mut draft.load.probe)?;
        }
        Ok((instead, decide::decide(draft, files)?))
    });
    match decided {
        Ok((instead, (mut plan, warnings))) => {
            if let Some((worker, args)) = find_worker_command(&plan, commands) {
                return parse_named_command(worker, &args);
            }
            plan.output.command = command_line::redacted_command_line(args, &plan);
            show(&mut plan);
            let warnings = warnings.iter().filter(|_| !plan.output.is_quiet);
            let hidden = |line: &String| match plan.output.keeps_secrets {
                true => line.clone(),
                false => command_line::find_secrets(args).hide_in(line),
            };
            let warnings = warnings.map(|line| format!("{name}: {}", hidden(line))).collect();
            match instead {
                Some(of_plan) => Invocation::Command { work: CommandWork::new(|| of_plan(plan)), warnings },
                None => Invocation::Run { plan: Box::new(plan), warnings },
            }
        }
        Err(refusal) => print_refusal(refusal, dialect, name, version, &command_line::find_secrets(args)),
    }
}

/// The worker command and its arguments, if another process coordinates the run. This process then takes part in the
/// run instead of executing the plan itself.
fn find_worker_command<'a>(plan: &Plan, commands: &'a Commands) -> Option<(&'a Command, Vec<OsString>)> {
    let machines = plan.output.machines.as_ref()?;
    let place = machines.place.as_ref().filter(|place| place.rank > 0)?;
    let worker = commands.named.iter().find(|command| command.name == "worker")?;
    Some((worker, machines.worker_arguments(place)))
}

/// Parses the arguments of a named command, without its name.
fn parse_named_command(command: &Command, args: &[OsString]) -> Invocation {
    match (command.parse)(args) {
        Ok(Some(work)) => Invocation::Command { work, warnings: Vec::new() },
        Ok(None) => print((command.help)(), String::new(), 0),
        Err(reason) => {
            let reason = command_line::find_secrets(args).hide_in(&reason);
            print(String::new(), shown(&format!("onrush {}: {reason}", command.name)), 1)
        }
    }
}

/// Formats a refusal: natively one line on standard error, in the compat dialects also wrk's usage on standard output,
/// preceded by the version if requested. No line contains any of the `secrets`, except lines in wrk's words.
fn print_refusal(
    refusal: PlanRefusal,
    dialect: Dialect,
    name: &str,
    version: String,
    secrets: &KnownSecrets,
) -> Invocation {
    let usage = if dialect.is_compat() { version + &help::usage(dialect) } else { String::new() };
    let said = |line: String| if dialect.is_compat() { line + "\n" } else { shown(&line) };
    let hidden = |line: String| secrets.hide_in(&line);
    match refusal {
        PlanRefusal::Help(_) if dialect.is_compat() => print(usage, String::new(), 1),
        PlanRefusal::Help(Length::Short) => print(help::short_help(), String::new(), 0),
        PlanRefusal::Help(Length::Common) => print(help::help(false), String::new(), 0),
        PlanRefusal::Help(Length::All) => print(help::help(true), String::new(), 0),
        PlanRefusal::Usage => print(usage, String::new(), 1),
        PlanRefusal::Misused(line) => print(usage, said(format!("{name}: {}", hidden(line))), 1),
        PlanRefusal::Wrk(line) => print(usage, said(line), 1),
        PlanRefusal::Cannot(line) => print(String::new(), said(format!("{name}: {}", hidden(line))), 1),
    }
}

/// The line of a refusal, which often quotes the command line, without users in URLs and without control characters.
fn shown(line: &str) -> String {
    escape_controls_in_lines(&secrets::users(line)) + "\n"
}

fn print(stdout: String, stderr: String, exit: u8) -> Invocation {
    Invocation::Print { stdout, stderr, exit }
}

/// The name of the backend that a run will use.
fn backend_name(io: &Io) -> &'static str {
    match io {
        Io::Auto => backend::default_name(),
        Io::Uring => "uring",
        Io::Epoll => "epoll",
        Io::Sim(_) => "sim",
    }
}

#[cfg(test)]
mod tests;
