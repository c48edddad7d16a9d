//! A run's position in an experiment.

use serde::{Deserialize, Serialize};

/// A run's position in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct Position {
    /// The experiment's name.
    pub name: String,
    /// ID shared by all results of one experiment, and by no others.
    pub id: String,
    /// The order of the experiment's runs.
    pub order: Order,
    /// Number of planned rounds.
    pub rounds: u32,
    /// The round, from 1.
    pub round: u32,
    /// Number of runs planned before this one.
    #[serde(rename = "position")]
    pub before: u32,
    /// The number of the point, from 1, in the order of the plan.
    pub point: u32,
    /// The factors in the plan's order, each with the level of this run.
    pub levels: Vec<FactorLevel>,
    /// The reason why the run does not count; absent if it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A varied factor and its level in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct FactorLevel {
    /// The name of the factor.
    pub factor: String,
    /// The factor's level in this run, in words.
    pub level: String,
    /// The number of the level, from 1, in the order of the plan.
    pub index: u32,
    /// True if this level is the baseline of the comparisons.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
}

/// The order of the runs of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Each round has every point once, in a balanced order: the only order in which the runs of a round are paired.
    #[default]
    Interleaved,
    /// All runs in one random order.
    Random,
    /// All rounds of a point, then all rounds of the next point.
    Sequential,
}
