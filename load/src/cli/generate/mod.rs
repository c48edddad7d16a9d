//! The manual page and shell completions, generated from the tables of options. `--generate` prints one of them for
//! packages to install.

mod bash;
mod fish;
mod man;
mod zsh;

use std::ffi::OsString;

use onrush_plan::Dialect;

use super::commands::Commands;
use super::described::{CompletionWord, Described};
use super::flag::Flag;
use super::flags;

/// The option that prints a generated text. It is not in the table of options, because only packages need it.
const OPTION: &str = "--generate";

/// Names of the generated texts, each with its generator.
const ALL: [(&str, Generate); 4] = [
    ("man", man::manual_page),
    ("complete-bash", bash::completion_script),
    ("complete-zsh", zsh::completion_script),
    ("complete-fish", fish::completion_script),
];

/// A function that generates one text.
type Generate = fn(&KnownProgram) -> String;

/// The commands of the program.
struct KnownProgram(Vec<KnownCommand>);

struct KnownCommand {
    name: &'static str,
    about: &'static str,
    options: Vec<Described>,
    /// True if the command also takes the options of a run.
    runs: bool,
    word: CompletionWord,
    help: String,
}

impl KnownProgram {
    fn from_commands(commands: &Commands) -> Self {
        let known = |command: &super::Command| KnownCommand {
            name: command.name,
            about: command.about,
            options: (command.options)(),
            runs: command.word == CompletionWord::Url,
            word: command.word,
            help: (command.help)(),
        };
        Self(commands.named.iter().map(known).collect())
    }
}

impl KnownCommand {
    /// The options that can follow the command. Those that make several runs have their own `-v` and help.
    fn all_options(&self) -> impl Iterator<Item = &Described> {
        let own = |name: &str| self.options.iter().any(|option| option.spelling.long == name);
        let is_of_series = |flag: &&Flag| flag.name() != "version" && flag.single_run_only.is_none();
        let of_runs = flags::all().filter(is_of_series).filter(move |flag| self.runs && !own(flag.name()));
        self.options.iter().chain(of_runs.map(|flag| &flag.described))
    }
}

/// All options that a run takes.
fn run_options() -> impl Iterator<Item = &'static Described> {
    flags::all().map(|flag| &flag.described)
}

/// Options of wrk and its forks, for when onrush is called by their names.
fn wrk_options() -> impl Iterator<Item = &'static Described> {
    let is_wrks = |flag: &&Flag| flag.is_listed_by(Dialect::WrkCmm) || flag.is_listed_by(Dialect::Wrk2);
    flags::all().filter(is_wrks).map(|flag| &flag.described)
}

/// Generates the text that `--generate` requests; `None` without this option.
///
/// # Errors
///
/// Returns one line with the names of the texts that can be generated.
pub(super) fn generate_if_requested(args: &[OsString], commands: &Commands) -> Option<Result<String, String>> {
    let first = args.first()?.to_str()?;
    let what = match first.strip_prefix(OPTION)?.strip_prefix('=') {
        Some(what) => what,
        None if first == OPTION => args.get(1).and_then(|what| what.to_str()).unwrap_or_default(),
        None => return None,
    };
    let known = ALL.iter().find(|(name, _)| *name == what);
    let names = || ALL.map(|(name, _)| name).join(", ");
    Some(match known {
        Some((_, generate)) => Ok(generate(&KnownProgram::from_commands(commands))),
        None => Err(format!("{OPTION} {what:?}: write one of {}", names())),
    })
}

/// A help text joined to one line.
fn help_on_one_line(help: &str) -> String {
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
