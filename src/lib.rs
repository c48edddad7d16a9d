//! onrush: an HTTP load generator for Linux.
//!
//! The modules, in the order in which a run passes through them: [`cli`] parses the command line into a plan
//! ([`onrush_plan`]), [`program`] shows a test and decides how it ends, [`session`] takes a run from a name to an
//! outcome, and [`run`] has the threads that carry it out, each with an engine ([`onrush_engine`]) and an optional
//! [`script`]. They record into statistics ([`onrush_stats`]). What a run was is a [`record`], from which [`judge`] decides
//! what limited it, and which [`report`] prints and [`files`] keep; [`live`] shows the progress. [`lab`] carries out
//! experiments of many runs, and [`sysctl`] changes kernel settings temporarily. [`tables`] reads saved results, and
//! [`compare`] tells how much they differ. [`serve`] is the embedded target. The library exists for the binary and its
//! tests; its interface is not stable.

pub mod cli;
pub mod compare;
pub mod failure;
pub mod figures;
pub mod files;
pub mod judge;
pub mod lab;
pub mod live;
pub mod merge;
pub mod program;
pub mod record;
pub mod report;
pub mod run;
pub mod script;
pub mod search;
pub mod serve;
pub mod session;
pub mod show;
pub mod sysctl;
pub mod tables;
pub mod verdict;

#[cfg(test)]
pub(crate) mod fixtures;
mod proc;
