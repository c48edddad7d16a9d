//! The latency that the text report shows: as measured, or as the imitated tool would show it.

use std::borrow::Cow;

use onrush_plan::{Dialect, Plan};
use onrush_stats::{Distribution, OpenLoopStats, Totals};

use super::NS_PER_US;
use super::SummaryStatistics;
use super::correct::{CorrectedLatencies, rewrite_as_wrk};
use crate::run::Outcome;

/// The latency that the text report shows.
pub enum ShownLatency<'a> {
    /// Latencies as measured; with a schedule, since requests were due.
    Measured(Cow<'a, Distribution<u64>>),
    /// Latencies corrected as the imitated tool would.
    Rewritten(CorrectedLatencies),
    /// The latencies that wrk2 would record, in whole microseconds.
    Wrk2(Cow<'a, Distribution<u64>>),
}

impl<'a> ShownLatency<'a> {
    /// The latency that the text report of a run shows.
    pub fn from_outcome(plan: &Plan, outcome: &'a Outcome) -> Self {
        let Totals { latency, open_loop, .. } = &outcome.totals;
        match (open_loop.as_deref(), plan.dialect) {
            (Some(OpenLoopStats { wrk2: Some(wrk2), .. }), _) => Self::Wrk2(Cow::Borrowed(&wrk2.recorded)),
            (Some(open_loop), _) => Self::Measured(Cow::Borrowed(&open_loop.scheduled)),
            (None, Dialect::Native) => Self::Measured(Cow::Borrowed(latency)),
            (None, Dialect::Wrk | Dialect::WrkCmm | Dialect::Wrk2) => Self::Rewritten(rewrite_as_wrk(plan, outcome)),
        }
    }

    /// The figures of the report's latency row, in microseconds.
    pub fn summary_us(&self) -> SummaryStatistics {
        match self {
            Self::Measured(latency) => SummaryStatistics::from_distribution(latency, NS_PER_US),
            Self::Rewritten(latency) => latency.summary_us(),
            Self::Wrk2(latency) => SummaryStatistics::from_bins(latency.binned()),
        }
    }

    /// A percentile (`percent` from 0 to 100) in microseconds.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        match self {
            Self::Measured(latency) => latency.percentile(percent) as f64 / NS_PER_US,
            Self::Rewritten(latency) => latency.percentile_us(percent) as f64,
            Self::Wrk2(latency) => latency.binned().percentile(percent) as f64,
        }
    }
}
