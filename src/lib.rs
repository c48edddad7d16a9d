//! onrush: an HTTP load generator for Linux.
//!
//! The modules in the order in which a run passes through them: [`cli`] what was typed, [`plan`] what was decided,
//! [`program`] how a test is shown and how it ends, [`session`] a run from a name to an outcome, [`run`] the threads that
//! carry it out, each with an [`engine`] on a [`backend`] and perhaps a [`script`], recording into [`stats`], which
//! [`report`] and [`live`] show. [`lab`] has experiments of many runs, [`settings`] changes those of the kernel for a while.
//! [`tables`] reads saved results, and [`compare`] says how far two of them differ. [`serve`] is the embedded target. The
//! library exists for the binary and its tests; it promises no stable interface.

pub mod backend;
pub mod cli;
pub mod compare;
pub mod engine;
pub mod lab;
pub mod live;
pub mod plan;
pub mod program;
pub mod report;
pub mod run;
pub mod script;
pub mod search;
pub mod serve;
pub mod session;
pub mod settings;
pub mod stats;
pub mod tables;
pub mod verdict;

mod digits;
mod random;
mod reason;
