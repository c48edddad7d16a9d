//! When a run ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first of the two that is reached ends the run; at least one is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The longest the run may last.
    pub duration: Option<Duration>,
    /// Exactly how many requests are started.
    pub requests: Option<u64>,
}
