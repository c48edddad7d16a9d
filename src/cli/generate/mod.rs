//! The manual page, and completions for shells, from the tables of options: `--generate` prints one of them. Packages
//! install them.

mod bash;
mod fish;
mod man;
mod zsh;

use std::ffi::OsString;

use onrush_plan::Dialect;

use super::commands::Commands;
use super::described::{CompletionWord, Described};
use super::flags;

/// The option that asks for one of them. It is none of a run's, and only packages need it.
const OPTION: &str = "--generate";

/// Things that can be generated, and how.
const ALL: [(&str, Generate); 4] = [
    ("man", man::page),
    ("complete-bash", bash::script),
    ("complete-zsh", zsh::script),
    ("complete-fish", fish::script),
];

/// Writes one of them.
type Generate = fn(&KnownProgram) -> String;

/// Commands and options of the program.
struct KnownProgram {
    /// Its own options: with a name for the section they are in.
    sections: Vec<(&'static str, Vec<Described>)>,
    commands: Vec<KnownCommand>,
    /// The options of wrk and its forks, under whose names it can be called.
    wrk: Vec<Described>,
}

struct KnownCommand {
    name: &'static str,
    about: &'static str,
    options: Vec<Described>,
    /// True if it takes the options of a run, too.
    runs: bool,
    word: CompletionWord,
    help: String,
}

impl KnownProgram {
    fn from_commands(commands: &Commands) -> Self {
        let described =
            |flag: &flags::Flag| Described { spelling: flag.spelling, help: flag.help, choices: flag.choices };
        let known = |command: &super::Command| KnownCommand {
            name: command.name,
            about: command.about,
            options: (command.options)(),
            runs: command.word == CompletionWord::Url,
            word: command.word,
            help: (command.help)(),
        };
        let is_wrks = |flag: &&flags::Flag| flag.is_listed_by(Dialect::WrkCmm) || flag.is_listed_by(Dialect::Wrk2);
        Self {
            sections: flags::SECTIONS
                .iter()
                .map(|(title, flags)| (*title, flags.iter().map(described).collect()))
                .collect(),
            commands: commands.named.iter().map(known).collect(),
            wrk: flags::all().filter(is_wrks).map(described).collect(),
        }
    }

    /// All options of a run.
    fn options(&self) -> impl Iterator<Item = &Described> {
        self.sections.iter().flat_map(|(_, options)| options)
    }

    /// The options after a command.
    fn options_of<'a>(&'a self, command: &'a KnownCommand) -> impl Iterator<Item = &'a Described> {
        let own = |name: &str| command.options.iter().any(|option| option.spelling.long == name);
        let of_runs =
            self.options().filter(move |option| command.runs && is_of_series(option) && !own(option.spelling.long));
        command.options.iter().chain(of_runs)
    }
}

/// True if the commands that make many runs take an option of a run. They have their own `-v` and help.
fn is_of_series(option: &Described) -> bool {
    let id = flags::by_name(option.spelling.long).map(|flag| flag.id);
    id.is_none_or(|id| id != flags::Id::Version && !flags::OF_ONE_RUN.contains(&id))
}

/// Generates the thing that the arguments ask for, if any.
///
/// # Errors
///
/// One line: what can be generated.
pub(super) fn asked(args: &[OsString], commands: &Commands) -> Option<Result<String, String>> {
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

/// A help in one line.
fn in_short(help: &str) -> String {
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
