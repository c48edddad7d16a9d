//! The commands other than a single run. Each command has its own room for parsing its arguments and doing its work.
//! The program lists the commands, and passes the list to [`super::parse`].

use std::ffi::OsString;
use std::fmt;

use onrush_plan::Plan;

use super::described::{CompletionWord, Described};
use super::draft::PlanDraft;
use super::refusal::PlanRefusal;

/// The commands available on a command line.
#[derive(Debug)]
pub struct Commands {
    /// Commands selected by the first word.
    pub named: &'static [Command],
    /// Commands selected by options of a run, which they replace.
    pub instead: InsteadOfRun,
}

impl Commands {
    /// No commands: the command line can only describe a run.
    pub const NONE: Self = Self { named: &[], instead: InsteadOfRun(|_| Ok(None)) };

    /// Names of the commands that the first word can select.
    pub(super) fn command_names(&self) -> impl Iterator<Item = &'static str> {
        self.named.iter().map(|command| command.name)
    }
}

/// A command that the first word of a command line selects.
#[derive(Debug)]
pub struct Command {
    /// Name of the command, as it is typed.
    pub name: &'static str,
    /// Purpose in a few words, for completions and the manual page.
    pub about: &'static str,
    /// The text of its `--help`.
    pub help: fn() -> String,
    /// All options, including `--help`.
    pub options: fn() -> Vec<Described>,
    /// Kind of the arguments that are not options, for shell completions.
    pub word: CompletionWord,
    /// Parses the arguments, without the command's name; `None` if help was requested. The error is one line that names
    /// the fault.
    pub parse: fn(&[OsString]) -> Result<Option<CommandWork>, String>,
}

/// A command that options of a run select, and that replaces the run. It removes its own options from the draft,
/// and then gets the plan made from the others; `None` if its options are absent.
#[derive(Debug)]
pub struct InsteadOfRun(pub fn(&mut PlanDraft) -> Result<Option<PlanAction>, PlanRefusal>);

/// Work on a plan, such as a search; returns the exit code of the process.
pub type PlanAction = Box<dyn FnOnce(Plan) -> u8>;

/// The work of a command, ready to be done.
pub struct CommandWork(Box<dyn FnOnce() -> u8>);

impl CommandWork {
    /// Wraps work that returns the exit code.
    pub fn new(work: impl FnOnce() -> u8 + 'static) -> Self {
        Self(Box::new(work))
    }

    /// Does the work, and returns the exit code of the process.
    pub fn carry_out(self) -> u8 {
        (self.0)()
    }
}

impl fmt::Debug for CommandWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}
