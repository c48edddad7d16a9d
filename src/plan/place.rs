//! The place of a run in its experiment.

use serde::{Deserialize, Serialize};

/// Which run of an experiment a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// The experiment's name.
    pub name: String,
    /// The same in all results of one experiment, and in no others.
    pub id: String,
    /// In which order its runs were made.
    pub order: Order,
    /// How many rounds were planned.
    pub rounds: u32,
    /// The round, from 1 on.
    pub round: u32,
    /// How many runs of the experiment were planned before this one.
    pub position: u32,
    /// The number of the point, from 1 on, as the plan lists them.
    pub point: u32,
    /// What was varied, in the plan's order, and at which level it was.
    pub levels: Vec<PlacedLevel>,
    /// Why the run does not count, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One thing that was varied, and its level in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlacedLevel {
    /// What was varied.
    pub factor: String,
    /// Its level in this run, as people read it.
    pub level: String,
    /// The number of the level, from 1 on, as the plan lists them.
    pub index: u32,
    /// Whether all other levels are compared with this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
}

/// In which order the runs of an experiment are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Each round has every point once, in a balanced order: the only one whose rounds are pairs.
    #[default]
    Interleaved,
    /// All runs in one random order.
    Random,
    /// All rounds of a point, then those of the next.
    Sequential,
}
