//! An experiment as the user wrote it: all values parsed, nothing decided.

use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::Order;
use onrush_plan::experiment::Hooks;

use super::options::OptionMap;

/// An experiment as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExperimentOutline {
    pub name: String,
    pub rounds: u32,
    pub order: Order,
    pub seed: u64,
    pub retries: u32,
    /// The baseline level of each factor, by its label or value.
    pub baseline: Vec<(String, String)>,
    pub attach: Vec<PathBuf>,
    /// Options that all runs have in common.
    pub run: OptionMap,
    pub factors: Vec<OutlineFactor>,
    pub server: Option<OutlineServer>,
    pub hooks: Hooks,
}

/// A factor with the levels over which it varies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutlineFactor {
    pub name: String,
    pub levels: Vec<OutlineLevel>,
}

/// Setting of a level, and its label if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutlineLevel {
    pub label: Option<String>,
    pub sets: Vec<(String, Vec<String>)>,
}

/// The command that starts the target for each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineServer {
    pub command: Option<String>,
    pub ready: Option<String>,
    pub timeout: Duration,
}

/// Default time for the target to become ready after its command was started.
pub(super) const READY: Duration = Duration::from_secs(30);

/// Maximum number of rounds in an experiment.
pub(super) const ROUNDS_MAX: u64 = 1_000;

/// Maximum number of times that a failed run is repeated.
pub(super) const RETRIES_MAX: u64 = 100;
