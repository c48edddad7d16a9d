//! One run of a load generator, from the command line to its report and files.
//!
//! The modules, in the order in which a run passes through them: [`cli`] parses the command line into a plan
//! ([`onrush_plan`]), [`input`] reads the files that it needs, [`single`] presents a run and decides its exit code,
//! [`session`] takes a run from a name, which [`resolve`] looks up, to an outcome, and [`run`] holds the threads that
//! execute it, each with an engine ([`onrush_engine`]) and an optional [`script`]. The threads record into statistics
//! ([`onrush_stats`]). A finished run is a [`record`]: [`judge`] decides what limited the run, [`report`] prints it,
//! and [`files`] stores it. [`live`] shows the progress, and [`worker`] is the part of another machine in the run.
//!
//! Other commands use these modules, and none is known here: [`cli`] gets their table. The interface is not stable.

#![deny(unsafe_code)]

pub mod cli;
pub mod failure;
pub mod figures;
pub mod files;
pub mod fixtures;
pub mod input;
pub mod judge;
pub mod live;
pub mod probe;
pub mod proc;
pub mod program;
pub mod record;
pub mod report;
pub mod requests;
pub mod resolve;
pub mod run;
#[allow(unsafe_code)]
pub mod script;
pub mod session;
pub mod single;
pub mod token;
pub mod worker;
