//! How many requests per second the threads completed, as a document has it.

use onrush_stats::Distribution;
use serde::Serialize;

use crate::figures::SummaryStatistics;

/// The threads' requests per second, sampled during the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct ThreadRates {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation.
    pub stdev: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// The share (0 to 1) of samples at most one standard deviation from the mean; left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

impl ThreadRates {
    /// Of these samples. As wrk2, every figure follows from the bins, except the maximum.
    pub fn of(rates: &Distribution<u64>, as_wrk2: bool) -> Self {
        // Without samples, wrk2's figures are no numbers.
        let SummaryStatistics { mean, stdev, min, max, within } = match rates.max() {
            None => SummaryStatistics::default(),
            Some(max) if as_wrk2 => {
                SummaryStatistics { max: max as f64, ..SummaryStatistics::from_bins(rates.binned()) }
            }
            Some(_) => SummaryStatistics::from_distribution(rates, 1.0),
        };
        Self { mean, stdev, min, max, within }
    }

    /// The figures as the table shows them.
    pub fn figures(&self, as_wrk2: bool) -> SummaryStatistics {
        let Self { mean, stdev, min, max, within } = *self;
        if as_wrk2 && within.is_none() {
            return SummaryStatistics::from_bins(Distribution::new().binned());
        }
        SummaryStatistics { mean, stdev, min, max, within }
    }
}
