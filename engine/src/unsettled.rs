//! The requests open at the end of a run that continues uncounted, and their outcomes since.

use onrush_proto::Nanos;
use onrush_stats::OpenLoopStats;

/// Outcomes, since the end of a run, of the requests due by the end.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// End of the run.
    pub begun_at: Nanos,
    /// True once events no longer count: everything up to the end has been counted.
    pub has_begun: bool,
    /// Number of requests without a known outcome.
    pub unsettled: u64,
    /// Contains only the latencies and ages that the run lacked.
    pub found: OpenLoopStats<u32>,
}

impl Unsettled {
    /// Records the end of this many requests. Returns the place for their outcomes.
    pub fn take_outcome_place(&mut self, requests: u64) -> Option<&mut OpenLoopStats<u32>> {
        debug_assert!(self.unsettled >= requests, "they were counted");
        self.unsettled = self.unsettled.saturating_sub(requests);
        Some(&mut self.found)
    }
}
