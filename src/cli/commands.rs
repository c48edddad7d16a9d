//! The commands other than a single run. Each has a room of its own, which reads its arguments and carries it out; the
//! program lists them, and hands the list to [`super::parse`].

use std::ffi::OsString;
use std::fmt;

use onrush_plan::Plan;

use super::described::{CompletionWord, Described};
use super::refusal::PlanRefusal;
use super::typed::Typed;

/// The commands that a command line can ask for.
#[derive(Debug)]
pub struct Commands {
    /// Commands named by the first word.
    pub named: &'static [Command],
    /// Commands that options of a run ask for in its place.
    pub instead: InsteadOfRun,
}

impl Commands {
    /// None: a command line asks for a run, or is a mistake.
    pub const NONE: Self = Self { named: &[], instead: InsteadOfRun(|_| Ok(None)) };

    /// The words that name them.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.named.iter().map(|command| command.name)
    }
}

/// A command with a name.
#[derive(Debug)]
pub struct Command {
    /// The word that names it.
    pub name: &'static str,
    /// Its purpose, in a few words.
    pub about: &'static str,
    /// The text of its `--help`.
    pub help: fn() -> String,
    /// Its options, the help among them.
    pub(crate) options: fn() -> Vec<Described>,
    /// The kind of its arguments that are no options.
    pub(crate) word: CompletionWord,
    /// Reads its arguments; `None` if the help was asked for. The error names their fault in one line.
    pub parse: fn(&[OsString]) -> Result<Option<CommandWork>, String>,
}

/// A command that options of a run ask for in its place: takes its own from the typed ones, if they are there, and then
/// the plan that is made of the others.
#[derive(Debug)]
pub struct InsteadOfRun(pub(crate) fn(&mut Typed) -> Result<Option<PlanAction>, PlanRefusal>);

/// Work on a plan; returns the exit code.
pub type PlanAction = Box<dyn FnOnce(Plan) -> u8>;

/// Work of a command; returns the exit code.
pub struct CommandWork(Box<dyn FnOnce() -> u8>);

impl CommandWork {
    /// Work that returns the exit code.
    pub fn new(work: impl FnOnce() -> u8 + 'static) -> Self {
        Self(Box::new(work))
    }

    /// Carries the work out; returns the exit code.
    pub fn carry_out(self) -> u8 {
        (self.0)()
    }
}

impl fmt::Debug for CommandWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}
