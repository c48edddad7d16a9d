//! An experiment as written: all values parsed, nothing decided.

use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::Order;
use onrush_plan::experiment::Hooks;

use super::options::OptionMap;

/// An experiment as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExperimentOutline {
    pub name: String,
    pub rounds: u32,
    pub order: Order,
    pub seed: u64,
    pub retries: u32,
    /// The label or value of the baseline level, by factor.
    pub baseline: Vec<(String, String)>,
    pub attach: Vec<PathBuf>,
    /// Options of all runs.
    pub run: OptionMap,
    pub factors: Vec<OutlineFactor>,
    pub server: Option<OutlineServer>,
    pub hooks: Hooks,
}

/// A varied factor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutlineFactor {
    pub name: String,
    pub levels: Vec<OutlineLevel>,
}

/// The settings of a level, with its label if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutlineLevel {
    pub label: Option<String>,
    pub sets: Vec<(String, Vec<String>)>,
}

/// The target's command, started for each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineServer {
    pub command: Option<String>,
    pub ready: Option<String>,
    pub timeout: Duration,
}

/// Time for the target to become ready after its command was started.
pub(super) const READY: Duration = Duration::from_secs(30);

/// Maximum number of rounds.
pub(super) const ROUNDS_MAX: u64 = 1_000;

/// Maximum number of retries of a failed run.
pub(super) const RETRIES_MAX: u64 = 100;
