//! onrush: an HTTP load generator for Linux.
//!
//! The modules, in the order in which a run passes through them: [`cli`] parses the command line into a plan
//! ([`onrush_plan`]), [`single`] presents a run and decides its exit code, [`session`] takes a run from a name to an
//! outcome, and [`run`] holds the threads that execute it, each with an engine ([`onrush_engine`]) and an optional
//! [`script`]. The threads record into statistics ([`onrush_stats`]). A finished run is a [`record`]: [`judge`] decides
//! what limited the run, [`report`] prints it, and [`files`] stores it. [`live`] shows the progress.
//!
//! Every other command has a module with its options, its work and its exit: [`search`] looks for the highest load at
//! which a condition holds. [`lab`] runs experiments of many runs; [`sysctl`] changes kernel settings for them, and
//! [`restore`] restores settings left behind. [`show`] and [`merge`] print and add up [`saved`] results, [`tables`]
//! makes tables of them, and [`compare`] computes their differences. [`serve`] is the embedded target.
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

/// All commands other than a single run.
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
