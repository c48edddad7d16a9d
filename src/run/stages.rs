//! Adds up a run stage by stage.
//!
//! Workers hand over at whole tenths of a second, with which stages begin and end.

use onrush_plan::Plan;
use onrush_stats::timeline::row_of;
use onrush_stats::{Count, Stats, Totals};

use super::nanos;

/// The sums of the stages.
#[derive(Debug, Default)]
pub(super) struct Stages {
    /// When each ends, in nanoseconds since measuring began.
    ends_ns: Vec<u64>,
    /// Totals of each stage.
    pub totals: Vec<Totals>,
}

impl Stages {
    /// The stages of a plan, without anything in them; none if it has fewer than two.
    pub fn for_plan(plan: &Plan) -> Self {
        let ends_ns: Vec<u64> = plan.stages().iter().map(|stage| nanos(stage.until)).collect();
        Self { totals: ends_ns.iter().map(|_| Totals::default()).collect(), ends_ns }
    }

    /// Adds an interval; after the last stage, to that stage.
    pub fn record<C: Count>(&mut self, interval: &Stats<C>) {
        let index = self.ends_ns.partition_point(|end_ns| *end_ns <= row_of(interval, 1));
        if let Some(totals) = self.totals.get_mut(index.min(self.ends_ns.len().saturating_sub(1))) {
            *totals += interval;
        }
    }
}
