//! onrush: an HTTP load generator for Linux.
//!
//! The modules, in the order in which a run passes through them: [`cli`] parses the command line into a plan
//! ([`onrush_plan`]), [`single`] shows a run and decides how it ends, [`session`] takes a run from a name to an
//! outcome, and [`run`] has the threads that carry it out, each with an engine ([`onrush_engine`]) and an optional
//! [`script`]. They record into statistics ([`onrush_stats`]). A finished run is a [`record`]: [`judge`] decides from
//! it what limited the run, [`report`] prints it, and [`files`] keep it; [`live`] shows the progress.
//!
//! Every other command has a module with its options, its work and its ending: [`search`] looks for the highest load at
//! which a condition holds; [`lab`] carries out experiments of many runs, for which [`sysctl`] changes kernel settings
//! that [`restore`] restores; [`show`] and [`merge`] print [`saved`] results and add them up, [`tables`] makes tables
//! of them, and [`compare`] tells how much they differ. [`serve`] is the embedded target.
//!
//! The library exists for the binary and its tests; its interface is not stable.

#![deny(unsafe_code)]

pub mod cli;
pub mod compare;
pub mod failure;
pub mod figures;
pub mod files;
pub mod judge;
pub mod kubernetes;
pub mod lab;
pub mod live;
pub mod merge;
pub mod probe;
pub mod program;
pub mod record;
pub mod report;
pub mod requests;
pub mod restore;
pub mod run;
pub mod saved;
#[allow(unsafe_code)]
pub mod script;
pub mod search;
pub mod serve;
pub mod session;
pub mod show;
pub mod single;
pub mod sysctl;
pub mod tables;
pub mod worker;

#[cfg(test)]
pub(crate) mod fixtures;
mod proc;

/// Commands besides a single run.
pub const COMMANDS: cli::Commands = cli::Commands {
    named: &[
        serve::COMMAND,
        merge::COMMAND,
        show::COMMAND,
        compare::COMMAND,
        tables::COMMAND,
        lab::LAB,
        lab::SWEEP,
        lab::VERSUS,
        worker::COMMAND,
        kubernetes::COMMAND,
        restore::COMMAND,
    ],
    instead: search::SEARCH,
};
