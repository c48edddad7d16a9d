//! The metrics that are compared: the rate, the mean latency and percentiles of the latency.

use std::fmt;
use std::str::FromStr;

use onrush_plan::Percent;

use crate::tables::Measured;

/// With fewer values in the share above it, a percentile of one run is left to chance.
const BEYOND_MIN: f64 = 20.0;

/// One figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Complete responses per second.
    Rate,
    /// The mean latency.
    Mean,
    /// A percentile of the latency.
    Percentile(Percent),
}

/// The percentile that decides between runs with a rate.
pub const DECISIVE: &str = "p99";

/// How many responses each of them needs for that.
pub const RESPONSES_NEEDED: u64 = (BEYOND_MIN * 100.0) as u64;

impl Metric {
    /// Its value in a run: responses per second, or microseconds. `None`: it is unknown, too few values are beyond it, or
    /// too many requests that were due have no response.
    pub fn of(self, run: &Measured) -> Option<f64> {
        let figures = &run.figures;
        let value = match self {
            Self::Rate => figures.rate_per_s,
            Self::Mean => figures.mean_us,
            Self::Percentile(percent) => {
                let beyond = values(run)? as f64 * (100.0 - percent.value()) / 100.0;
                let value = figures.percentiles_us.get(&percent).copied();
                value.filter(|_| beyond >= BEYOND_MIN && !has_no_bound(run, percent))
            }
        };
        value.filter(|value| *value > 0.0)
    }

    /// Whether it is a latency, so that less is better.
    pub fn is_latency(self) -> bool {
        self != Self::Rate
    }
}

/// Whether a percentile over all requests that were due may be of any size.
fn has_no_bound(run: &Measured, percent: Percent) -> bool {
    let open_loop = run.document.as_deref().and_then(|document| document.bounded());
    let between = open_loop.and_then(|open_loop| open_loop.percentiles_us.get(&percent));
    between.is_some_and(|between| between.upper.is_none())
}

/// The number of latencies that the percentiles of a run are computed from.
fn values(run: &Measured) -> Option<u64> {
    let Some(document) = run.document.as_deref() else { return run.figures.requests };
    let censored = document.bounded().and_then(|open_loop| open_loop.censored.as_ref());
    Some(document.shown_latency().count + censored.map_or(0, |censored| censored.count))
}

impl fmt::Display for Metric {
    /// Its name in options and in JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => f.pad("rate"),
            Self::Mean => f.pad("mean"),
            Self::Percentile(percent) => f.pad(&format!("p{percent}")),
        }
    }
}

impl FromStr for Metric {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "rate" => Ok(Self::Rate),
            "mean" => Ok(Self::Mean),
            _ => text.strip_prefix('p').and_then(|percent| percent.parse().ok()).map(Self::Percentile).ok_or(()),
        }
    }
}
