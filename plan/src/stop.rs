//! When a run ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The end of a run: whichever limit is reached first. At least one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The longest that the run may last.
    pub duration: Option<Duration>,
    /// The exact number of requests that are started.
    pub requests: Option<u64>,
}
