//! What an open loop measures besides the latencies, as a document has it.

use std::collections::BTreeMap;

use onrush_plan::{Percent, Plan};
use onrush_stats::{Corrupt, has_enough_beyond};
use serde::{Deserialize, Serialize};

use super::{Distribution, Document, Unavailable, distribution};
use crate::figures::Incomplete;
use crate::figures::NS_PER_US;
use crate::figures::bounds::{self, Bounds, Due};
use crate::figures::rate::{asked_by_end_per_s, asked_per_s};
use crate::figures::unavailable;
use crate::run::Outcome;

/// What is measured of requests that are due by a schedule, besides their latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenLoop {
    /// Requests that were due per second.
    pub due_per_s: f64,
    /// Requests that were sent per second.
    pub sent_per_s: f64,
    /// Requests that the schedule, continued beyond `-n`, had due per second; left out by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// `asked_per_s` without the requests that a target which keeps up has in flight at the end, or, where the last response of
    /// `-n` ends the run, without those that it would have; left out by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by_end_per_s: Option<f64>,
    /// From the moment at which a request was due to the handover of its first byte to the kernel.
    pub lateness: Distribution,
    /// The time since requests without a complete response were due: those dropped or abandoned, and those in flight or
    /// unsent at the end. Each would have lasted at least that long. Those that failed are not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Distribution>,
    /// Of these, those merely in flight at the end: not much older than the slowest response, and no more than the rate
    /// and the latencies account for. They count with their age in upper bounds, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Distribution>,
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
    /// Bounds of the percentiles of the scheduled latency of all requests that were due.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Between>"))]
    pub percentiles_us: BTreeMap<Percent, Between>,
}

/// The bounds of a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Between {
    /// If failed requests had taken as long as the others, and the others without a complete response only as long as
    /// their age.
    pub lower: f64,
    /// If each of them had lasted for ever, except those merely in flight at the end; left out if the percentile would
    /// be infinite, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl OpenLoop {
    /// The figures of a run with a schedule, at these rates.
    pub fn of(plan: &Plan, outcome: &Outcome, (due_per_s, sent_per_s): (f64, f64)) -> Option<Self> {
        let open_loop = outcome.totals.open_loop.as_deref()?;
        let onrush_stats::OpenLoop { lateness, censored, .. } = open_loop;
        let &onrush_stats::OpenLoop { untimestamped, all_busy_ns, all_busy_max_ns, paused_ns, held_back, .. } =
            open_loop;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let percents = plan.show.percents.as_deref();
        let view = |ages: &onrush_stats::Distribution<u64>| (ages.count() > 0).then(|| distribution(ages, percents));
        let bounds = Bounds::of(plan, outcome)?;
        Some(Self {
            due_per_s,
            sent_per_s,
            asked_per_s: asked_per_s(plan, outcome),
            asked_by_end_per_s: asked_by_end_per_s(plan, outcome),
            lateness: distribution(lateness, percents),
            censored: view(censored),
            in_flight: bounds::in_flight(plan, outcome).as_ref().and_then(view),
            unavailable: unavailable::Unavailable::of(plan, outcome).as_ref().map(Unavailable::of),
            untimestamped: (untimestamped > 0).then_some(untimestamped),
            all_busy_s: seconds(all_busy_ns),
            all_busy_max_s: seconds(all_busy_max_ns),
            paused_s: seconds(paused_ns),
            held_back,
            percentiles_us: percentiles_us(&bounds, Percent::asked_or_usual(percents)),
        })
    }

    /// The requests without a complete response, of which so many failed.
    pub fn incomplete(&self, failed: u64) -> Incomplete {
        let count = |ages: &Option<Distribution>| ages.as_ref().map_or(0, |ages| ages.count);
        Incomplete::of(count(&self.censored), count(&self.in_flight), failed)
    }

    /// The ages of requests without a complete response, and of those merely in flight.
    fn ages(&self) -> Result<[onrush_stats::Distribution<u64>; 2], Corrupt> {
        let values = |ages: Option<&Distribution>| ages.map_or_else(|| Ok(Default::default()), Distribution::values);
        Ok([values(self.censored.as_ref())?, values(self.in_flight.as_ref())?])
    }

    /// The bounds of these latencies' percentiles if this many more requests failed.
    ///
    /// # Errors
    ///
    /// When a distribution cannot be read.
    pub fn bounds(&self, completed: &onrush_stats::Distribution<u64>, failed: u64) -> Result<Bounds, Corrupt> {
        let [censored, in_flight] = self.ages()?;
        Ok(Bounds::new(Due { completed, censored: &censored, in_flight: Some(&in_flight), failed }))
    }
}

impl Document {
    /// The requests without a complete response, where the percentiles are lower bounds.
    pub fn incomplete(&self) -> Incomplete {
        self.bounded().map(|open_loop| open_loop.incomplete(self.requests.failed())).unwrap_or_default()
    }

    /// Whether enough values lie beyond a percentile that nobody asked for.
    pub fn is_sure_of(&self, percent: Percent) -> bool {
        has_enough_beyond(percent.value(), self.shown_latency().count + self.incomplete().with_age())
    }

    /// The latencies to compute percentiles from: where those are lower bounds, the ages of requests without a response
    /// are included.
    ///
    /// # Errors
    ///
    /// When a distribution cannot be read.
    pub fn least(&self) -> Result<onrush_stats::Distribution<u64>, Corrupt> {
        Ok(self.bounds()?.into_least())
    }

    /// The bounds of the percentiles of the latency that the text shows; without a schedule both are the same.
    ///
    /// # Errors
    ///
    /// When a distribution cannot be read.
    pub fn bounds(&self) -> Result<Bounds, Corrupt> {
        let latency = self.shown_latency().values()?;
        match self.bounded() {
            Some(open_loop) => open_loop.bounds(&latency, self.requests.failed()),
            None => Ok(Bounds::new(Due {
                completed: &latency,
                censored: &onrush_stats::Distribution::new(),
                in_flight: None,
                failed: 0,
            })),
        }
    }
}

/// The bounds of these percentiles; empty if there was no request.
pub(super) fn percentiles_us(bounds: &Bounds, percents: Vec<Percent>) -> BTreeMap<Percent, Between> {
    let us = |ns: u64| ns as f64 / NS_PER_US;
    let between = |percent: Percent| {
        let between = bounds.percentile(percent.value())?;
        Some((percent, Between { lower: us(between.lower_ns), upper: between.upper_ns.map(us) }))
    };
    percents.into_iter().filter_map(between).collect()
}
