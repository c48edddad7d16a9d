//! The commands `onrush lab`, `onrush sweep` and `onrush vs`: experiments of many runs.
//!
//! `draft` parses the arguments into an experiment, and `runner` executes it. Other modules hold its parts: the `order`
//! of the runs, the [`ExperimentOrigin`], facts about the [`LabHost`], the printed [`words`], and the commands around
//! the runs: a [`Hook`], a [`TargetProcess`].

pub(crate) mod draft;
mod folder;
mod hook;
mod host;
mod order;
mod output;
mod process_group;
mod runner;
mod target;
pub mod words;

pub use folder::{AttachedFile, ExperimentOrigin, Folder, FolderExists, TARGETS};
pub use hook::{Hook, HookEnded};
pub use host::LabHost;
pub use order::{PlannedTurn, order_turns};
pub use process_group::{ProcessGroups, describe_exit};
pub use target::{TargetNotReady, TargetProcess, TargetStart};

use draft::{LAB_ARGUMENTS, LabCommand};
use onrush_load::cli::{Command, CommandWork, CompletionWord};

/// `onrush lab`: an experiment from a file.
pub const LAB: Command = Command {
    name: "lab",
    about: "run an experiment",
    help: || LAB_ARGUMENTS.help(),
    options: || LAB_ARGUMENTS.described_options(),
    word: CompletionWord::File,
    parse: |args| Ok(draft::parse(args)?.map(lab_work)),
};

/// `onrush sweep`: a run at each of several loads.
pub const SWEEP: Command = Command {
    name: "sweep",
    about: "measure several loads in turn",
    help: draft::sweep_help,
    options: draft::sweep_options,
    word: CompletionWord::Url,
    parse: |args| Ok(draft::parse_sweep(args)?.map(lab_work)),
};

/// `onrush vs`: compares targets.
pub const VERSUS: Command = Command {
    name: "vs",
    about: "measure several servers in turn",
    help: draft::versus_help,
    options: draft::versus_options,
    word: CompletionWord::Url,
    parse: |args| Ok(draft::parse_versus(args)?.map(lab_work)),
};

fn lab_work(lab: LabCommand) -> CommandWork {
    CommandWork::new(|| runner::run_lab(lab))
}
