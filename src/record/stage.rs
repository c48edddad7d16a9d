//! The stages of a run, each with figures of its own.

use onrush_plan::Plan;
use onrush_stats::{Errors, Totals};
use serde::{Deserialize, Serialize};

use super::{Distribution, distribution};
use crate::figures::rate::rate;
use crate::run::Outcome;

/// What was measured in one stage of `--stages`, whose times are rounded up to tenths of a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StageRow {
    /// When it began, in seconds since measuring began.
    pub start_s: f64,
    /// How long it lasted, until the end of the run at most.
    pub length_s: f64,
    /// The rate that was asked for, as the mean over its length; left out without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// The connections that were asked for, at its beginning and at its end; left out if the stages do not set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<(u32, u32)>,
    /// Requests whose first byte was handed to the kernel.
    pub started: u64,
    /// Complete responses.
    pub completed: u64,
    /// Complete responses per second.
    pub rate_per_s: f64,
    /// With a rate: requests that were sent more than a millisecond after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// With a rate: requests that were not sent because they would have been too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// wrk's five error totals.
    pub errors: Errors,
    /// The latency of complete responses: with a rate since requests were due.
    pub latency: Distribution,
}

impl StageRow {
    /// The stages that a run has begun.
    pub(super) fn of(plan: &Plan, outcome: &Outcome) -> Vec<Self> {
        let stages = plan.stages();
        let last = stages.len().saturating_sub(1);
        let begun = stages.into_iter().zip(&outcome.stages).enumerate();
        let rows = begun.filter(|(_, (stage, _))| stage.from < outcome.elapsed).map(|(index, (stage, totals))| {
            // What comes after the last stage belongs to it.
            let until = if index == last { outcome.elapsed } else { stage.until.min(outcome.elapsed) };
            let (from_s, until_s) = (stage.from.as_secs_f64(), until.as_secs_f64());
            let Totals { counters, open_loop, latency, ledger, .. } = totals;
            let open_loop = open_loop.as_deref();
            let shown = open_loop.map_or(latency, |open_loop| &open_loop.scheduled);
            Self {
                start_s: from_s,
                length_s: until_s - from_s,
                asked_per_s: plan.schedule.as_ref().map(|schedule| schedule.per_second_between(stage.from, until)),
                connections: plan.levels.as_ref().map(|levels| levels.between(stage.from, until)),
                started: counters.started,
                completed: counters.completed,
                rate_per_s: rate(counters.completed, until_s - from_s),
                late: open_loop.map(|open_loop| open_loop.late),
                dropped: open_loop.map(|open_loop| open_loop.dropped),
                errors: ledger.totals(),
                latency: distribution(shown, plan.show.percents.as_deref()),
            }
        });
        rows.collect()
    }
}
