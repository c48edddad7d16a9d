//! The end of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of a run, which ends at the one reached first. At least one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Longest duration of the run, counted from the end of the warm-up; `None`: no time limit.
    pub duration: Option<Duration>,
    /// The exact number of requests to send, unless `duration` ends the run earlier; `None`: no
    /// limit.
    pub requests: Option<u64>,
}
