//! The figures of a distribution that wrk's table shows.

use onrush_stats::{Binned, Distribution};

/// Mean, deviation, extremes, and the share within one deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SummaryStatistics {
    /// The arithmetic mean; zero if there is no value.
    pub mean: f64,
    /// The sample standard deviation.
    pub stdev: f64,
    /// The largest value; zero if there is none.
    pub max: f64,
    /// The smallest value; zero if there is none.
    pub min: f64,
    /// The share (0 to 1) of values at most one deviation from the mean; `None` if there is no value.
    pub within: Option<f64>,
}

impl SummaryStatistics {
    /// The exact figures of a distribution, divided by `unit`.
    pub fn measured(distribution: &Distribution<u64>, unit: f64) -> Self {
        Self {
            mean: distribution.mean().unwrap_or(0.0) / unit,
            stdev: distribution.stdev() / unit,
            max: distribution.max().unwrap_or(0) as f64 / unit,
            min: distribution.min().unwrap_or(0) as f64 / unit,
            within: distribution.share_within_stdev(),
        }
    }

    /// The figures as wrk2 computes them from the bins; without values, most are NaN.
    pub fn binned(distribution: Binned<'_>) -> Self {
        Self {
            mean: distribution.mean(),
            stdev: distribution.stdev(),
            max: distribution.max() as f64,
            min: distribution.min() as f64,
            within: Some(distribution.share_within_stdev()),
        }
    }
}
