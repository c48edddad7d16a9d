//! A distribution as a document has it, written and read back.

use std::collections::BTreeMap;

use onrush_plan::Percent;
use onrush_plan::metric::Statistic;
use onrush_stats::{Corrupt, Moments};
use serde::{Deserialize, Serialize};

use super::exact::Exact;
use super::hdr::Hdr;
use crate::figures::NS_PER_US;

/// The distribution of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The sum of all values, in nanoseconds, in decimal digits; left out where `mean_us` times `count` rounds to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub sum_ns: Option<Exact>,
    /// The sum of their squares, in square nanoseconds, likewise; left out where it follows from `stdev_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub squares_ns2: Option<Exact>,
    /// All values in nanoseconds: an HdrHistogram, V2 compressed, base64.
    pub hdr: Hdr,
}

/// A measured distribution with these percentiles, or the default ones.
pub fn distribution(measured: &onrush_stats::Distribution<u64>, percents: Option<&[Percent]>) -> Distribution {
    let percents = Percent::asked_or_usual(percents);
    let moments = measured.moments();
    let us = |ns: u64| ns as f64 / NS_PER_US;
    let mut written = Distribution {
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
        sum_ns: None,
        squares_ns2: None,
        hdr: Hdr::of(measured),
    };
    // What follows from the squares follows from the sum, too.
    let follow = |written: &Distribution| written.moments().to_sums().unwrap_or_default();
    written.sum_ns = Exact::unless(measured.sum(), follow(&written).0);
    written.squares_ns2 = Exact::unless(measured.sum_of_squares(), follow(&written).1);
    written
}

/// The sum of these, with every percentile that any of them has.
pub(super) fn total<'a>(views: impl Iterator<Item = &'a Distribution>) -> Result<Option<Distribution>, Corrupt> {
    let views: Vec<&Distribution> = views.collect();
    if let [only] = views[..] {
        return Ok(Some(only.clone()));
    }
    let mut sum = onrush_stats::Distribution::new();
    for view in &views {
        sum += &view.values()?;
    }
    let mut percents: Vec<_> = views.iter().flat_map(|view| view.percentiles_us.keys().copied()).collect();
    percents.sort_unstable();
    percents.dedup();
    let shown = (!percents.is_empty()).then_some(&percents[..]);
    Ok((!views.is_empty()).then(|| distribution(&sum, shown)))
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
        let mut values = self.hdr.values()?;
        values.set_moments(self.moments())?;
        Ok(values)
    }

    /// The figures, in nanoseconds.
    fn moments(&self) -> Moments {
        let ns = |us: Option<f64>| us.unwrap_or(0.0) * NS_PER_US;
        let [sum, squares] = [self.sum_ns, self.squares_ns2].map(|number| number.map(|Exact(number)| number));
        Moments {
            count: self.count,
            mean: ns(self.mean_us),
            stdev: ns(self.stdev_us),
            min: ns(self.min_us).round() as u64,
            max: ns(self.max_us).round() as u64,
            sum,
            squares,
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;

    use super::*;

    /// A few values or millions, of any size, equal or different.
    fn random_distribution(random: &mut Random) -> onrush_stats::Distribution<u64> {
        let mut up_to = |bits| {
            let bits = random.below(bits);
            random.below(1 << bits)
        };
        let (base, spread, times) = (up_to(41), 1 + up_to(41), 1 + up_to(24));
        let mut measured = onrush_stats::Distribution::new();
        (0..=random.below(12)).for_each(|_| measured.record_many(base + random.below(spread), times));
        measured
    }

    #[test]
    fn what_is_written_is_read_as_the_same_figures() {
        let mut random = Random::new(1);
        for _ in 0..150 {
            let written = distribution(&random_distribution(&mut random), None);
            let text = serde_json::to_string(&written).unwrap();
            let read: Distribution = serde_json::from_str(&text).unwrap();
            let values = read.values().unwrap_or_else(|corrupt| panic!("{corrupt}: {text}"));
            let again = distribution(&values, None);
            let (mean, least, most) = (read.mean_us.unwrap(), read.min_us.unwrap(), read.max_us.unwrap());
            assert!((least..=most).contains(&mean), "{least} {mean} {most}");
            assert_eq!(again, written);
            // Where they are no text, exact figures are the closest that follow.
            let inexact = Distribution { sum_ns: None, squares_ns2: None, ..read };
            let stdev = distribution(&inexact.values().unwrap(), None).stdev_us.unwrap();
            let known = written.stdev_us.unwrap();
            assert!((stdev - known).abs() <= 1e-6 + known * 1e-9, "{stdev} instead of {known}");
        }
    }

    #[test]
    fn a_single_value_is_read_whatever_it_is() {
        for ns in (1..2_000_000).step_by(97) {
            let mut measured = onrush_stats::Distribution::new();
            measured.record(ns);
            let (mean, us) = (figure(ns as f64 / NS_PER_US), ns as f64 / NS_PER_US);
            assert_eq!(mean, us);
            let moments = Moments { count: 1, mean: us * NS_PER_US, min: ns, max: ns, ..Moments::default() };
            assert_eq!(measured.set_moments(moments), Ok(()), "{ns}");
        }
    }
}
