//! How many requests of a run may be in flight, slot by slot: how a probe varies the load without opening or closing
//! anything.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::levels::Levels;

/// The slots of a run: times in which only so many requests are in flight. Connections without any stay open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// How many requests may be in flight over time; each stage is a slot.
    pub active: Levels,
    /// How often workers hand over what they measured. Slots begin and end with a whole multiple of it.
    pub sample: Duration,
}
