//! The figures of a distribution that wrk's table contains.

use onrush_stats::{Binned, Distribution};

/// Mean, deviation, extremes, and the share within one deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SummaryStatistics {
    /// Arithmetic mean; zero without values.
    pub mean: f64,
    /// Sample standard deviation.
    pub stdev: f64,
    /// Maximum; zero without values.
    pub max: f64,
    /// Minimum; zero without values.
    pub min: f64,
    /// Share (0 to 1) of values within one deviation of the mean; `None` without values.
    pub within: Option<f64>,
}

impl SummaryStatistics {
    /// The exact figures of a distribution, each divided by `unit`; zero without values.
    pub fn from_distribution(distribution: &Distribution<u64>, unit: f64) -> Self {
        Self {
            mean: distribution.mean().unwrap_or(0.0) / unit,
            stdev: distribution.stdev() / unit,
            max: distribution.max().unwrap_or(0) as f64 / unit,
            min: distribution.min().unwrap_or(0) as f64 / unit,
            within: distribution.share_within_stdev(),
        }
    }

    /// The figures as wrk2 computes them from its bins. Without values, most are NaN.
    pub fn from_bins(distribution: Binned<'_>) -> Self {
        Self {
            mean: distribution.mean(),
            stdev: distribution.stdev(),
            max: distribution.max() as f64,
            min: distribution.min() as f64,
            within: Some(distribution.share_within_stdev()),
        }
    }
}
