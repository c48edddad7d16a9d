//! A distribution as it stands in a document, and back.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::super::NS_PER_US;
use crate::plan::Percent;
use crate::stats::{self, Corrupt, Moments};

/// How the values of one quantity are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Of N values in ascending order, the one at rank floor(p/100 N) + 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, f64>"))]
    pub percentiles_us: BTreeMap<Percent, f64>,
    /// All values in nanoseconds: an HdrHistogram, V2 compressed, base64.
    pub hdr: String,
}

/// The percentiles that a document has unless others are asked for.
const USUAL: [&str; 8] = ["50", "75", "90", "95", "99", "99.9", "99.99", "99.999"];

/// What was measured, with these percentiles, or the usual ones.
pub fn distribution(measured: &stats::Distribution<u64>, percents: Option<&[Percent]>) -> Distribution {
    let usual = || USUAL.iter().filter_map(|text| text.parse().ok()).collect();
    let percents: Vec<Percent> = percents.map_or_else(usual, <[Percent]>::to_vec);
    let moments = measured.moments();
    let us = |ns: u64| ns as f64 / NS_PER_US;
    Distribution {
        count: measured.count(),
        mean_us: moments.map(|moments| moments.mean / NS_PER_US),
        stdev_us: moments.map(|moments| moments.stdev / NS_PER_US),
        min_us: moments.map(|moments| us(moments.min)),
        max_us: moments.map(|moments| us(moments.max)),
        percentiles_us: percents
            .into_iter()
            .filter(|_| moments.is_some())
            .map(|percent| (percent, us(measured.percentile(percent.value()))))
            .collect(),
        hdr: STANDARD.encode(measured.encode()),
    }
}

impl Distribution {
    /// The values again.
    ///
    /// # Errors
    ///
    /// When the histogram cannot be read, or the figures are not its.
    pub fn values(&self) -> Result<stats::Distribution<u64>, Corrupt> {
        let bytes = STANDARD.decode(&self.hdr).map_err(|_| Corrupt::Bytes)?;
        let ns = |us: Option<f64>| us.unwrap_or(0.0) * NS_PER_US;
        let moments = Moments {
            count: self.count,
            mean: ns(self.mean_us),
            stdev: ns(self.stdev_us),
            min: ns(self.min_us).round() as u64,
            max: ns(self.max_us).round() as u64,
        };
        stats::Distribution::decode(&bytes, moments)
    }

    /// The sum of both, with the percentiles that either has.
    ///
    /// # Errors
    ///
    /// As [`Distribution::values`].
    pub fn plus(&self, other: &Self) -> Result<Self, Corrupt> {
        let mut sum = self.values()?;
        sum += &other.values()?;
        let mut percents: Vec<Percent> =
            self.percentiles_us.keys().chain(other.percentiles_us.keys()).copied().collect();
        percents.sort_unstable();
        percents.dedup();
        Ok(distribution(&sum, (!percents.is_empty()).then_some(&percents)))
    }
}
