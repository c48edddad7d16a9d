//! How many requests per second the threads completed, as a document has it.

use onrush_plan::Dialect;
use onrush_stats::{Corrupt, Distribution, Moments};
use serde::{Deserialize, Serialize};

use super::Document;
use super::exact::Exact;
use super::hdr::Hdr;
use crate::figures::SummaryStatistics;

/// The threads' requests per second, sampled during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The sum of all samples, in decimal digits; left out where it follows from `mean` and their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub sum: Option<Exact>,
    /// The sum of their squares, likewise; left out where it follows from `stdev`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub squares: Option<Exact>,
    /// All samples, in whole requests per second: an HdrHistogram, V2 compressed, base64.
    pub hdr: Hdr,
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
        let mut written = Self { mean, stdev, min, max, within, sum: None, squares: None, hdr: Hdr::of(rates) };
        if !as_wrk2 {
            let follow = |written: &Self| written.moments(rates.count()).to_sums().unwrap_or_default();
            written.sum = Exact::unless(rates.sum(), follow(&written).0);
            written.squares = Exact::unless(rates.sum_of_squares(), follow(&written).1);
        }
        written
    }

    /// The figures as the table shows them.
    pub fn figures(&self, as_wrk2: bool) -> SummaryStatistics {
        let Self { mean, stdev, min, max, within, .. } = *self;
        if as_wrk2 && within.is_none() {
            return SummaryStatistics::from_bins(Distribution::new().binned());
        }
        SummaryStatistics { mean, stdev, min, max, within }
    }

    /// The samples.
    ///
    /// # Errors
    ///
    /// When the histogram cannot be read, or does not match the figures.
    pub(super) fn values(&self, as_wrk2: bool) -> Result<Distribution<u64>, Corrupt> {
        let mut values = self.hdr.values()?;
        // wrk2's figures are those of the bins.
        if !as_wrk2 {
            values.set_moments(self.moments(values.count()))?;
        }
        Ok(values)
    }

    /// The figures of so many samples.
    fn moments(&self, count: u64) -> Moments {
        let Self { mean, stdev, min, max, .. } = *self;
        let [min, max] = [min, max].map(|rate| rate.round() as u64);
        let [sum, squares] = [self.sum, self.squares].map(|number| number.map(|Exact(number)| number));
        Moments { count, mean, stdev, min, max, sum, squares }
    }

    /// The rates of all these runs.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be read.
    pub(super) fn sum(documents: &[&Document]) -> Result<Self, Corrupt> {
        if let [only] = documents {
            return Ok(only.thread_rates.clone());
        }
        let as_wrk2 = documents.iter().all(|document| document.imitates(Dialect::Wrk2));
        let (mut sum, mut max) = (Distribution::new(), 0.0_f64);
        for document in documents {
            sum += &document.thread_rates.values(document.imitates(Dialect::Wrk2))?;
            max = max.max(document.thread_rates.max);
        }
        Ok(Self { max, ..Self::of(&sum, as_wrk2) })
    }
}
