//! An experiment as it was written: every value has been read, nothing decided.

use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::Order;
use onrush_plan::experiment::Hooks;

use super::options::OptionMap;

/// An experiment as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExperimentOutline {
    pub name: String,
    pub rounds: u32,
    pub order: Order,
    pub seed: u64,
    pub retries: u32,
    /// By factor, the label or value of the level that the others are compared with.
    pub baseline: Vec<(String, String)>,
    pub attach: Vec<PathBuf>,
    /// Options of all runs.
    pub run: OptionMap,
    pub factors: Vec<OutlineFactor>,
    pub server: Option<OutlineServer>,
    pub hooks: Hooks,
}

/// Something that is varied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutlineFactor {
    pub name: String,
    pub levels: Vec<OutlineLevel>,
}

/// Settings of one level, and its label if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutlineLevel {
    pub label: Option<String>,
    pub sets: Vec<(String, Vec<String>)>,
}

/// The target's command: started for each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineServer {
    pub command: Option<String>,
    pub ready: Option<String>,
    pub timeout: Duration,
}

/// How long the target's command has until the target is ready.
pub(super) const READY: Duration = Duration::from_secs(30);

/// The highest number of rounds.
pub(super) const ROUNDS_MAX: u64 = 1_000;

/// The highest number of retries of a failed run.
pub(super) const RETRIES_MAX: u64 = 100;
