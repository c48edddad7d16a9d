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
    /// Length of its part since measuring began, or of the part whose measurements have arrived.
    pub elapsed: Duration,
    /// The share of a processor that its busiest thread took; `None`: unknown.
    pub busiest: Option<f64>,
    /// The shortest round trip to it.
    pub round_trip: Duration,
    /// How much later than the others it began to measure.
    pub late: Duration,
    /// Drift of its clock against the coordinator's, in nanoseconds; `None`: unknown.
    pub drift_ns: Option<i64>,
    /// The verdict's name and sentence, if the machine itself limited its part.
    pub limit: Option<(String, String)>,
    /// Why it was lost; its measurements after its last row are missing.
    pub lost: Option<String>,
}

impl MachineShare {
    /// True if it was lost, and some of its part is missing before this time after measuring began.
    pub fn is_missing_before(&self, until_ns: u64) -> bool {
        self.lost.is_some() && nanos(self.elapsed) < until_ns
    }

    /// Counts machines for which [`Self::is_missing_before`] holds.
    pub fn count_missing<'a>(machines: impl IntoIterator<Item = &'a Self>, until_ns: u64) -> u64 {
        machines.into_iter().filter(|machine| machine.is_missing_before(until_ns)).count() as u64
    }
}
