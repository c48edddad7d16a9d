//! onrush: an HTTP load generator for Linux.
//!
//! The modules, in the order in which a run passes through them: [`cli`] parses the command line into a plan
//! ([`onrush_plan`]), [`program`] shows a test and decides how it ends, [`session`] takes a run from a name to an
//! outcome, and [`run`] has the threads that carry it out, each with an engine ([`onrush_engine`]) and an optional
//! [`script`]. They record into statistics ([`onrush_stats`]), which [`report`] and [`live`] show. [`lab`] carries out
//! experiments of many runs, and [`sysctl`] changes kernel settings temporarily. [`tables`] reads saved results, and
//! [`compare`] tells how much they differ. [`serve`] is the embedded target. The library exists for the binary and its
//! tests; its interface is not stable.

pub mod cli;
pub mod compare;
pub mod lab;
pub mod live;
pub mod program;
pub mod report;
pub mod run;
pub mod script;
pub mod search;
pub mod serve;
pub mod session;
pub mod sysctl;
pub mod tables;
pub mod verdict;

mod proc;
