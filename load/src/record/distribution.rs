//! A distribution as a document has it.

use std::collections::BTreeMap;

use onrush_plan::Percent;
use onrush_plan::metric::Statistic;
use onrush_stats::{Corrupt, Moments};
use serde::Serialize;

use super::bins::Bins;
use crate::figures::NS_PER_US;

/// The distribution of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many values there are.
    pub count: u64,
    /// The arithmetic mean, from the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us: Option<f64>,
    /// The sample standard deviation, from the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdev_us: Option<f64>,
    /// The smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_us: Option<f64>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// Percentiles: of N values in ascending order, the one at rank floor(p/100 N) + 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "BTreeMap<String, f64>"))]
    pub percentiles_us: BTreeMap<Percent, f64>,
    /// The exact sums, in nanoseconds.
    #[serde(skip)]
    pub sums: (u128, u128),
    /// The values, in nanoseconds.
    #[serde(skip)]
    pub bins: Bins,
}

/// A measured distribution with these percentiles, or the default ones.
pub fn distribution(measured: &onrush_stats::Distribution<u64>, percents: Option<&[Percent]>) -> Distribution {
    let percents = Percent::asked_or_usual(percents);
    let moments = measured.moments();
    let us = |ns: u64| ns as f64 / NS_PER_US;
    Distribution {
        count: measured.count(),
        mean_us: moments.map(|moments| figure(moments.mean / NS_PER_US)),
        stdev_us: moments.map(|moments| figure(moments.stdev / NS_PER_US)),
        min_us: moments.map(|moments| us(moments.min)),
        max_us: moments.map(|moments| us(moments.max)),
        percentiles_us: percents
            .into_iter()
            .filter(|_| moments.is_some())
            .map(|percent| (percent, us(measured.percentile(percent.value()))))
            .collect(),
        sums: (measured.sum(), measured.sum_of_squares()),
        bins: Bins::of(measured),
    }
}

/// A statistic of these latencies, in microseconds.
pub(super) fn statistic_us(values: &onrush_stats::Distribution<u64>, statistic: Statistic) -> Option<f64> {
    let ns = match statistic {
        Statistic::Mean => values.mean()?,
        Statistic::Least => values.min()? as f64,
        Statistic::Max => values.max()? as f64,
        Statistic::Stdev => values.mean().map(|_| values.stdev())?,
        Statistic::Percentile(percent) => (values.count() > 0).then(|| values.percentile(percent.value()) as f64)?,
    };
    Some(ns / NS_PER_US)
}

/// Rounds to 14 significant digits, so that a figure that is read and computed again, and differs in its last bits,
/// rounds to the same.
pub(super) fn figure(number: f64) -> f64 {
    format!("{number:.13e}").parse().unwrap_or(number)
}

impl Distribution {
    /// Reads the values back.
    ///
    /// # Errors
    ///
    /// When the histogram cannot be read, or the figures do not match it.
    pub fn values(&self) -> Result<onrush_stats::Distribution<u64>, Corrupt> {
        let mut values = self.bins.values()?;
        values.set_moments(self.moments())?;
        Ok(values)
    }

    /// The figures, in nanoseconds.
    fn moments(&self) -> Moments {
        let ns = |us: Option<f64>| us.unwrap_or(0.0) * NS_PER_US;
        Moments {
            count: self.count,
            mean: ns(self.mean_us),
            stdev: ns(self.stdev_us),
            min: ns(self.min_us).round() as u64,
            max: ns(self.max_us).round() as u64,
            sum: Some(self.sums.0),
            squares: Some(self.sums.1),
        }
    }
}
