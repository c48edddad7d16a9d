//! The requests that were open at the end of a run that goes on, and how they have ended since.

use onrush_proto::Nanos;
use onrush_stats::OpenLoopStats;

/// How the requests that were due by the end of a run have ended since.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// When the run ended.
    pub begun_at: Nanos,
    /// True once events do not count any more: everything up to the end has been counted.
    pub has_begun: bool,
    /// Requests whose end is not known yet.
    pub unsettled: u64,
    /// Only the latencies and ages that the run lacked.
    pub found: OpenLoopStats<u32>,
}

impl Unsettled {
    /// Records that so many requests have ended; returns the place for their outcomes.
    pub fn learned(&mut self, requests: u64) -> Option<&mut OpenLoopStats<u32>> {
        debug_assert!(self.unsettled >= requests, "they were counted");
        self.unsettled = self.unsettled.saturating_sub(requests);
        Some(&mut self.found)
    }
}
