//! A run that a search is to make.

use std::time::Duration;

/// A run to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its load.
    pub load: u64,
    /// How long the target settles before the run measures: queues of a new load take time to form.
    pub settle: Duration,
    /// How long the run measures.
    pub length: Duration,
    /// True if it is to confirm that the load holds.
    pub confirms: bool,
}

impl PlannedRun {
    /// How long it takes until the last request is due.
    pub fn ends(&self) -> Duration {
        self.settle + self.length
    }
}
