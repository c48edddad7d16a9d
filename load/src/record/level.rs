//! The planned number of connections over time, as a document has it.

use serde::{Deserialize, Serialize};

use onrush_plan::ConnectionLevels;

/// A stage in which the number of connections stays the same or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Level {
    /// How long it lasts.
    pub length_s: f64,
    /// Connections at its beginning.
    pub from: u32,
    /// Connections at its end.
    pub to: u32,
}

impl Level {
    /// All stages, even if only a part of their connections was opened from here.
    pub(super) fn of(levels: &ConnectionLevels) -> Vec<Self> {
        let level = |level: &onrush_plan::levels::ConnectionLevel| Self {
            length_s: level.length.as_secs_f64(),
            from: level.from,
            to: level.to,
        };
        levels.stages.iter().map(level).collect()
    }
}
