//! The share of one machine in a finished run on several machines.

use std::time::Duration;

use super::{Shortage, nanos};

/// One machine's share of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineShare {
    /// Name of the machine.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Name of the backend used.
    pub backend: String,
    /// Number of worker threads on this machine.
    pub threads: u32,
    /// Number of available processors.
    pub processors: u32,
    /// Maximum number of connections ...
    pub connections: u64,
    /// ... and the open-file limit that kept it below the plan, if any.
    pub shortage: Option<Shortage>,
    /// Number of requests sent.
    pub started: u64,
    /// Number of complete responses received.
    pub completed: u64,
    /// Number of errors, as in the metric `errors`.
    pub failures: u64,
    /// Time from the start of measuring to the end of this share, or to the last row received.
    pub elapsed: Duration,
    /// Share (0 to 1) of its time that the busiest thread worked; `None` if unknown.
    pub busiest: Option<f64>,
    /// Shortest round trip between the coordinator and this machine.
    pub round_trip: Duration,
    /// How much later than the other machines this one started measuring.
    pub late: Duration,
    /// Clock drift against the coordinator, in nanoseconds; `None` if unknown.
    pub drift_ns: Option<i64>,
    /// Name and sentence of the verdict, if this machine rather than the target limited its share.
    pub limit: Option<(String, String)>,
    /// Reason the machine was lost; measurements after its last row are missing.
    pub lost: Option<String>,
}

impl MachineShare {
    /// True if the machine was lost and some of its measurements from before this time (since measuring began) are
    /// missing.
    pub fn is_missing_before(&self, until_ns: u64) -> bool {
        self.lost.is_some() && nanos(self.elapsed) < until_ns
    }

    /// Counts machines for which [`Self::is_missing_before`] holds.
    pub fn count_missing<'a>(machines: impl IntoIterator<Item = &'a Self>, until_ns: u64) -> u64 {
        machines.into_iter().filter(|machine| machine.is_missing_before(until_ns)).count() as u64
    }
}
