//! What an open loop measures besides the latencies, as a document has it.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_plan::Percent;
use onrush_stats::{Corrupt, Counters, OpenLoopStats, has_enough_beyond};
use serde::Serialize;

use super::result::{OpenLoopFacts, RunFacts};
use super::{Distribution, Document, Unavailable, distribution};
use crate::figures::IncompleteRequests;
use crate::figures::NS_PER_US;
use crate::figures::estimate::{DueRequests, KnownPercentile, PercentileEstimates};
use crate::figures::rate::count_per_second;

/// What is measured of requests that are due by a schedule, besides their latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct OpenLoop {
    /// Requests that were due per second.
    pub due_per_s: f64,
    /// Requests that were sent per second.
    pub sent_per_s: f64,
    /// Requests that the schedule, continued beyond `-n`, had due per second.
    pub asked_per_s: f64,
    /// `asked_per_s` without the requests that a target which keeps up has in flight at the end, or, where the last response of
    /// `-n` ends the run, without those that it would have.
    pub asked_by_end_per_s: f64,
    /// From the moment at which a request was due to the handover of its first byte to the kernel.
    pub lateness: Distribution,
    /// How long the schedule went on after the end of the run, uncounted, because a gate needed to know how the requests
    /// that were due had ended. In a sum: the longest of its runs.
    #[serde(default, skip_serializing_if = "is_none")]
    pub run_on_s: f64,
    /// The latencies of those that had a response then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Distribution>,
    /// How many of them failed then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub later_failed: u64,
    /// How many of them were dropped then (`--max-late`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub later_dropped: u64,
    /// The ages, since they were due, of requests without a complete response: when they were abandoned, at `--max-late`
    /// where they were dropped, and else when the run stopped. Each would have lasted at least that long. Those that failed
    /// are not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Distribution>,
    /// Of these, those that were in flight or unsent when the run stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Distribution>,
    /// Set if open requests may take longer than others of their age: requests were still unsent at the end of the run, more were in
    /// flight than the latencies account for, or it ended in an outage. Left out if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unsteady: bool,
    /// The ages, when measuring began, of the requests of the warm-up that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<Distribution>,
    /// With `--send-slice`, responses gathered without a usable kernel timestamp: they count as having arrived when
    /// they were noticed, up to a slice later. Left out if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimestamped: Option<u64>,
    /// For how long all connections that a thread may open were busy while requests were due, over all threads.
    #[serde(default, skip_serializing_if = "is_none")]
    pub all_busy_s: f64,
    /// The longest such time of a thread. In a sum: of all runs.
    #[serde(default, skip_serializing_if = "is_none")]
    pub all_busy_max_s: f64,
    /// For how long connections paused for the script, over all connections.
    #[serde(default, skip_serializing_if = "is_none")]
    pub paused_s: f64,
    /// Requests that only `--catch-up` kept from being sent by the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_back: u64,
    /// How much of the time the target was unavailable; left out if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Percentiles of the scheduled latency over all requests that were due.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "BTreeMap<String, Between>"))]
    pub percentiles_us: BTreeMap<Percent, Between>,
}

/// A percentile, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Between {
    /// The estimate; left out if there is only a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// The estimate, or else what the percentile is at least.
    pub lower: f64,
    /// If requests that failed, were abandoned or were dropped had lasted for ever, and so had, unless the load was steady,
    /// those that were open when the run stopped; left out if the percentile would be infinite, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl OpenLoop {
    /// The figures of runs with a schedule, which took place in `elapsed`; `None` if a run has none.
    pub(super) fn from_runs(
        runs: &[RunFacts],
        open_loop: &OpenLoopStats<u64>,
        counters: &Counters,
        elapsed: Duration,
        percents: Option<&[Percent]>,
    ) -> Option<Self> {
        let facts: Vec<&OpenLoopFacts> = runs.iter().map(|run| run.open_loop.as_ref()).collect::<Option<_>>()?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let per_s = |count: u64| count_per_second(count, elapsed.as_secs_f64());
        let asked = |of: fn(&OpenLoopFacts) -> f64| match facts[..] {
            [only] => of(only),
            _ => {
                let asked = |(run, facts): (&RunFacts, &&OpenLoopFacts)| of(facts) * run.elapsed().as_secs_f64();
                let asked: f64 = runs.iter().zip(&facts).map(asked).sum();
                if elapsed.is_zero() { 0.0 } else { asked / elapsed.as_secs_f64() }
            }
        };
        let view = |ages: &onrush_stats::Distribution<u64>| (ages.count() > 0).then(|| distribution(ages, percents));
        let some = |ages: &Option<Box<onrush_stats::Distribution<u64>>>| ages.as_deref().and_then(view);
        let unsteady = facts.iter().any(|facts| facts.unsteady);
        let estimate = PercentileEstimates::from_open_loop(open_loop, counters.failed, !unsteady);
        Some(Self {
            due_per_s: per_s(open_loop.due),
            sent_per_s: per_s(counters.started),
            asked_per_s: asked(|facts| facts.asked_per_s),
            asked_by_end_per_s: asked(|facts| facts.asked_by_end_per_s),
            lateness: distribution(&open_loop.lateness, percents),
            run_on_s: facts.iter().map(|facts| seconds(facts.run_on_ns)).fold(0.0, f64::max),
            later: some(&open_loop.later),
            later_failed: open_loop.later_failed,
            later_dropped: open_loop.later_dropped,
            censored: view(&open_loop.censored),
            open: some(&open_loop.open),
            entered: some(&open_loop.entered),
            unavailable: Unavailable::of_runs(runs, elapsed),
            untimestamped: (open_loop.untimestamped > 0).then_some(open_loop.untimestamped),
            all_busy_s: seconds(open_loop.all_busy_ns),
            all_busy_max_s: seconds(open_loop.all_busy_max_ns),
            paused_s: seconds(open_loop.paused_ns),
            held_back: open_loop.held_back,
            unsteady,
            percentiles_us: percentiles_us(&estimate, Percent::asked_or_usual(percents)),
        })
    }

    /// The requests without a complete response, of which so many failed in the run.
    pub fn incomplete(&self, failed: u64) -> IncompleteRequests {
        let count = |ages: &Option<Distribution>| ages.as_ref().map_or(0, |ages| ages.count);
        let incomplete = IncompleteRequests::new(count(&self.censored), count(&self.open), failed + self.later_failed);
        IncompleteRequests { later: count(&self.later), ..incomplete }
    }

    /// The requests that were due, of which these had a response in the run, and so many failed in it.
    pub(super) fn due(&self, completed: onrush_stats::Distribution<u64>, failed: u64) -> Result<DueRequests, Corrupt> {
        let values =
            |times: &Option<Distribution>| times.as_ref().map_or_else(|| Ok(Default::default()), |it| it.values());
        let mut completed = completed;
        completed += &values(&self.later)?;
        Ok(DueRequests {
            completed,
            censored: values(&self.censored)?,
            open: values(&self.open)?,
            entered: values(&self.entered)?,
            failed: failed + self.later_failed,
            is_steady: !self.unsteady,
        })
    }
}

impl Document {
    /// The requests without a complete response, where the percentiles include them.
    pub fn incomplete(&self) -> IncompleteRequests {
        self.bounded().map(|open_loop| open_loop.incomplete(self.requests.failed())).unwrap_or_default()
    }

    /// Whether enough values lie beyond a percentile that nobody asked for.
    pub fn is_sure_of(&self, percent: Percent) -> bool {
        has_enough_beyond(percent.value(), self.shown_latency().count + self.incomplete().timed_count())
    }

    /// The percentiles of the latency that the text shows, over all requests that were due; without a schedule, or where
    /// wrk2 is imitated, over complete responses.
    ///
    /// # Errors
    ///
    /// When a distribution cannot be read.
    pub fn estimate(&self) -> Result<PercentileEstimates, Corrupt> {
        let completed = self.shown_latency().values()?;
        Ok(PercentileEstimates::new(match self.bounded() {
            Some(open_loop) => open_loop.due(completed, self.requests.failed())?,
            None => DueRequests { completed, is_steady: true, ..DueRequests::default() },
        }))
    }

    /// The percentiles of the latency since requests were due; `None` without a schedule.
    ///
    /// # Errors
    ///
    /// When a distribution cannot be read.
    pub fn estimate_since_due(&self) -> Result<Option<PercentileEstimates>, Corrupt> {
        let (Some(open_loop), Some(scheduled)) = (&self.open_loop, &self.latency.scheduled) else { return Ok(None) };
        Ok(Some(PercentileEstimates::new(open_loop.due(scheduled.values()?, self.requests.failed())?)))
    }
}

/// These percentiles; empty if there was no request.
fn percentiles_us(estimate: &PercentileEstimates, percents: Vec<Percent>) -> BTreeMap<Percent, Between> {
    let us = |ns: u64| ns as f64 / NS_PER_US;
    let between = |percent: Percent| {
        let between = estimate.bounds(percent.value())?;
        let known = match estimate.percentile(percent.value()) {
            Some(KnownPercentile::About(ns)) => Some(us(ns)),
            _ => None,
        };
        Some((percent, Between { estimate: known, lower: us(between.lower_ns), upper: between.upper_ns.map(us) }))
    };
    percents.into_iter().filter_map(between).collect()
}
