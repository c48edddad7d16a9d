//! What an open loop measures besides the latencies, as a document has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::NS_PER_US;
use super::super::bounds::Bounds;
use super::{Distribution, distribution};
use crate::plan::Percent;
use crate::stats;

/// What is measured of requests that are due by a schedule, besides their latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenLoop {
    /// Requests that were due per second.
    pub due_per_s: f64,
    /// Requests that were sent per second.
    pub sent_per_s: f64,
    /// From the moment at which a request was due to the handover of its first byte to the kernel.
    pub lateness: Distribution,
    /// The time since requests without a complete response were due: those dropped or abandoned, and those in flight or
    /// unsent at the end. Each would have lasted at least that long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Distribution>,
    /// With `--send-slice`, responses gathered without a usable kernel timestamp: they count as having arrived when
    /// they were noticed, up to a slice later. Left out if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimestamped: Option<u64>,
    /// Bounds of the percentiles of the scheduled latency of all requests that were due.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Between>"))]
    pub percentiles_us: BTreeMap<Percent, Between>,
}

/// The bounds of a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Between {
    /// If every request without a complete response had lasted only as long as its age.
    pub lower: f64,
    /// If each of them had lasted for ever; left out if the percentile would be infinite, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl OpenLoop {
    /// The figures at these rates, with these percentiles or the default ones.
    pub fn of(
        measured: &stats::OpenLoop<u64>,
        percents: Option<&[Percent]>,
        (due_per_s, sent_per_s): (f64, f64),
    ) -> Self {
        let &stats::OpenLoop { ref scheduled, ref lateness, ref censored, untimestamped, .. } = measured;
        Self {
            due_per_s,
            sent_per_s,
            lateness: distribution(lateness, percents),
            censored: (censored.count() > 0).then(|| distribution(censored, percents)),
            untimestamped: (untimestamped > 0).then_some(untimestamped),
            percentiles_us: between(scheduled, censored, Percent::asked_or_usual(percents)),
        }
    }
}

/// The bounds of these percentiles; empty if there was no request.
pub(super) fn between(
    scheduled: &stats::Distribution<u64>,
    censored: &stats::Distribution<u64>,
    percents: Vec<Percent>,
) -> BTreeMap<Percent, Between> {
    let bounds = Bounds::new(scheduled, censored);
    let us = |ns: u64| ns as f64 / NS_PER_US;
    let between = |percent: Percent| {
        let lower = us(bounds.least().percentile(percent.value()));
        (percent, Between { lower, upper: bounds.upper_ns(percent.value()).map(us) })
    };
    percents.into_iter().filter(|_| bounds.least().count() > 0).map(between).collect()
}
