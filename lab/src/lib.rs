//! Many runs of a load generator, and what is learned from their results.
//!
//! [`experiment`] carries out planned runs, with kernel settings that [`sysctl`] changes, and [`restore`] resets if
//! they were left behind. [`search`] looks for the highest load at which a condition holds. [`saved`] reads results,
//! and the saved text of other tools; [`tables`] makes tables of them, and [`compare`] computes their differences.
//!
//! Each command has its options, its work and its exit in one of these modules. The interface is not stable.

#![forbid(unsafe_code)]

pub mod compare;
pub mod experiment;
pub mod restore;
pub mod saved;
pub mod search;
pub mod sysctl;
pub mod tables;
