//! Sums a run stage by stage.
//!
//! Workers hand over at whole tenths of a second, and stages start and end at these times.

use onrush_plan::Plan;
use onrush_stats::timeline::row_index_of;
use onrush_stats::{Count, Stats, Totals};

use super::nanos;

/// The sums of the stages.
#[derive(Debug, Default)]
pub(super) struct Stages {
    /// End of each stage, in nanoseconds since measuring began.
    ends_ns: Vec<u64>,
    /// Totals of each stage.
    pub totals: Vec<Totals>,
}

impl Stages {
    /// The empty stages of a plan; none if the plan has fewer than two.
    pub fn for_plan(plan: &Plan) -> Self {
        let ends_ns: Vec<u64> = plan.stages().iter().map(|stage| nanos(stage.until)).collect();
        Self { totals: ends_ns.iter().map(|_| Totals::default()).collect(), ends_ns }
    }

    /// Adds an interval to its stage, or to the last stage if it is later.
    pub fn record_interval<C: Count>(&mut self, interval: &Stats<C>) {
        let index = self.ends_ns.partition_point(|end_ns| *end_ns <= row_index_of(interval, 1));
        if let Some(totals) = self.totals.get_mut(index.min(self.ends_ns.len().saturating_sub(1))) {
            *totals += interval;
        }
    }
}
