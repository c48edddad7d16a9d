//! What an open loop measures beside the latencies, as a document has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::NS_PER_US;
use super::super::bounds::Bounds;
use super::{Distribution, distribution};
use crate::plan::Percent;
use crate::stats;

/// What is measured of requests that are due at moments of a schedule, beside their latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenLoop {
    /// Requests that were due per second.
    pub due_per_s: f64,
    /// Requests that were sent per second.
    pub sent_per_s: f64,
    /// From the moment at which a request was due to that at which its first byte was handed to the kernel.
    pub lateness: Distribution,
    /// How long ago requests were due that have no complete response: those that were dropped or abandoned, and at the end
    /// those that were open or unsent. Each would have lasted at least that long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Distribution>,
    /// With `--send-slice`, receives that were gathered without a kernel timestamp that could be believed: they count as having
    /// arrived when they were noticed, up to a slice later. Left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimestamped: Option<u64>,
    /// The percentiles of the scheduled latency of all requests that were due.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Between>"))]
    pub percentiles_us: BTreeMap<Percent, Between>,
}

/// Between which values a percentile is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Between {
    /// If every request without a complete response had lasted no longer than it was waited for.
    pub lower: f64,
    /// If each of them had lasted for ever; left out: the percentile would have, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl OpenLoop {
    /// What was measured at these rates, with these percentiles or the usual ones.
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

/// The bounds of these percentiles; none of no request.
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
