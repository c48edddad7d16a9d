//! A planned run of a search.

use std::time::Duration;

/// A run that the search is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Load of the run, in the unit of the varied quantity.
    pub load: u64,
    /// Settling time before measuring starts: queues take time to form under a new load.
    pub settle: Duration,
    /// Length of the measured part of the run.
    pub length: Duration,
    /// True if the run is to confirm the load.
    pub confirms: bool,
}

impl PlannedRun {
    /// Time from the start of the run until its last request is due.
    pub fn last_due_after(&self) -> Duration {
        self.settle + self.length
    }
}
