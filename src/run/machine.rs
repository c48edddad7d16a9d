//! One of the machines that carry a run out together, when the run is over.

use std::time::Duration;

use super::{Shortage, nanos};

/// One machine's part in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineShare {
    /// The name of the machine.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The backend that it used.
    pub backend: String,
    /// How many threads it had.
    pub threads: u32,
    /// How many processors it could use.
    pub processors: u32,
    /// The most connections that it could have ...
    pub connections: u64,
    /// ... and the limit on open files that kept it from having all that were planned, if there is one.
    pub shortage: Option<Shortage>,
    /// Requests it sent.
    pub started: u64,
    /// Complete responses it received.
    pub completed: u64,
    /// Failures of all kinds.
    pub failures: u64,
    /// How long its part took, or up to when what it measured has arrived, since measuring began.
    pub elapsed: Duration,
    /// The share of a processor that its busiest thread took; `None`: unknown.
    pub busiest: Option<f64>,
    /// The shortest round trip to it.
    pub round_trip: Duration,
    /// How much later than the others it began to measure.
    pub late: Duration,
    /// How far its clock moved away from the coordinator's, in nanoseconds; `None`: unknown.
    pub drift_ns: Option<i64>,
    /// What limited its part, if that was the machine itself: the name of the verdict and the sentence.
    pub limit: Option<(String, String)>,
    /// Why it was lost; what it measured after its last row is missing.
    pub lost: Option<String>,
}

impl MachineShare {
    /// Returns whether it was lost, and some of its part is missing before this time after measuring began.
    pub fn is_missing_before(&self, until_ns: u64) -> bool {
        self.lost.is_some() && nanos(self.elapsed) < until_ns
    }

    /// Counts those of which that is so.
    pub fn count_missing<'a>(machines: impl IntoIterator<Item = &'a Self>, until_ns: u64) -> u64 {
        machines.into_iter().filter(|machine| machine.is_missing_before(until_ns)).count() as u64
    }
}
