//! Computes statistics of a distribution as HdrHistogram's C library does: from the bins, within which values are
//! equal.

use std::ops::RangeInclusive;

use super::distribution::Distribution;
use super::rank::hdr_rank;

/// A distribution reduced to its bins.
#[derive(Clone, Copy, Debug)]
pub struct Binned<'a> {
    measured: &'a Distribution<u64>,
}

/// A row of a percentile spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectrumRow {
    /// Largest value of the bin in which the share is reached.
    pub value: u64,
    /// The percentile of this row, as a share of the values, 0 to 1.
    pub share: f64,
    /// Number of values up to the end of that bin.
    pub count: u64,
}

impl Distribution<u64> {
    /// A view of the distribution whose statistics are computed from the bins alone.
    pub fn binned(&self) -> Binned<'_> {
        Binned { measured: self }
    }
}

impl Binned<'_> {
    /// The arithmetic mean of the bins' middles; NaN without a value.
    pub fn mean(self) -> f64 {
        let sum: u128 = self.bins().map(|(values, count)| u128::from(bin_middle(&values)) * u128::from(count)).sum();
        sum as f64 / self.measured.count() as f64
    }

    /// The population standard deviation of the bins' middles; NaN without a value.
    pub fn stdev(self) -> f64 {
        let mean = self.mean();
        let squares: f64 =
            self.bins().map(|(values, count)| (bin_middle(&values) as f64 - mean).powi(2) * count as f64).sum();
        (squares / self.measured.count() as f64).sqrt()
    }

    /// Smallest value of the first bin; zero without a value.
    pub fn min(self) -> u64 {
        self.bins().next().map_or(0, |(values, _)| *values.start())
    }

    /// Smallest value of the last bin; zero without a value.
    pub fn max(self) -> u64 {
        self.bins().last().map_or(0, |(values, _)| *values.start())
    }

    /// Largest value of the bin with the value at [HdrHistogram's rank](hdr_rank); zero without a value.
    pub fn percentile(self, p: f64) -> u64 {
        let rank = hdr_rank(p, self.measured.count());
        let mut seen = 0;
        let reached = self.bins().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(0, |(values, _)| *values.end())
    }

    /// The share (0 to 1) of the values that wrk2 counts as within one deviation of the mean: bounds are whole numbers,
    /// a bin is entirely inside or outside, and the bin containing the value after the upper bound is still inside.
    /// Zero without a value.
    pub fn share_within_stdev(self) -> f64 {
        let (mean, stdev) = (self.mean(), self.stdev());
        let (lower, upper) = ((mean - stdev) as u64, (mean + stdev) as u64);
        let inside = self.bins().filter(|(values, _)| (lower..=upper + 1).contains(values.start()));
        let inside: u64 = inside.map(|(_, count)| count).sum();
        inside as f64 / self.measured.count().max(1) as f64
    }

    /// The percentile spectrum, with `ticks` steps each time the distance to 100 % halves. The last step is at 100 %.
    pub fn spectrum(self, ticks: u32) -> Vec<SpectrumRow> {
        let total = self.measured.count();
        // In per cent, every step is an exact binary fraction.
        let (mut steps, mut percent, mut count, mut value) = (Vec::new(), 0.0, 0, 0);
        for (values, here) in self.bins() {
            (value, count) = (*values.end(), count + here);
            while percent <= 100.0 * count as f64 / total as f64 {
                steps.push(SpectrumRow { value, share: percent / 100.0, count });
                let halvings = (100.0 / (100.0 - percent)).log2() as i32 + 1;
                percent += 100.0 / (f64::from(ticks) * 2f64.powi(halvings));
                if count == total {
                    break;
                }
            }
        }
        steps.push(SpectrumRow { value, share: 1.0, count });
        steps
    }

    /// The non-empty bins, each with its number of values.
    pub fn bins(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.measured.bins.used_bins()
    }
}

/// The middle of a bin, rounded up.
fn bin_middle(values: &RangeInclusive<u64>) -> u64 {
    values.start() + (values.end() - values.start()).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use onrush_plan::Random;

    use super::super::distribution::tests::distribution;
    use super::*;

    /// wrk2's histogram: microseconds up to a day.
    fn theirs(values: &[u64]) -> Histogram<u64> {
        let mut theirs = Histogram::new_with_bounds(1, 24 * 3_600_000_000, 3).unwrap();
        values.iter().for_each(|&value| theirs.record(value).unwrap());
        theirs
    }

    #[test]
    fn statistics_match_hdrhistogram() {
        let mut random = Random::new(7);
        for round in 1..100 {
            let spread = 1 << (round % 36);
            let values: Vec<u64> = (0..1 + random.below(300)).map(|_| 1 + random.below(spread)).collect();
            let (measured, theirs) = (distribution(&values), theirs(&values));
            let ours = measured.binned();
            assert!((ours.mean() / theirs.mean() - 1.0).abs() < 1e-12, "{values:?}");
            assert!((ours.stdev() - theirs.stdev()).abs() <= 1e-9 * theirs.mean(), "{values:?}");
            assert_eq!(ours.max(), theirs.lowest_equivalent(theirs.max()));
            assert_eq!(ours.min(), theirs.lowest_equivalent(theirs.min()));
            for p in [0.0, 0.01, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.999, 100.0] {
                // The crate rounds ranks up. A value in the middle of a rank is rounded to that rank.
                let rank = ((p / 100.0 * values.len() as f64 + 0.5).floor()).max(1.0);
                let quantile = (rank - 0.5) / values.len() as f64;
                assert_eq!(ours.percentile(p), theirs.value_at_quantile(quantile), "{p} % of {values:?}");
            }
        }
    }

    #[test]
    fn spectrum_matches_hdrhistogram() {
        let mut random = Random::new(8);
        for round in 1..60 {
            // With a prime number of values, no share is a step; there, the crate's fractions are off in the last bit.
            let values: Vec<u64> = (0..1_009).map(|_| 1 + random.below(1 << (round % 30))).collect();
            let (measured, theirs, mut count) = (distribution(&values), theirs(&values), 0);
            let ours = measured.binned().spectrum(5);
            let expected: Vec<(u64, u64)> = theirs
                .iter_quantiles(5)
                .map(|step| {
                    count += step.count_since_last_iteration();
                    (step.value_iterated_to(), count)
                })
                .collect();
            assert_eq!(ours.iter().map(|step| (step.value, step.count)).collect::<Vec<_>>(), expected, "{round}");
            for (ours, theirs) in ours.iter().zip(theirs.iter_quantiles(5)) {
                assert!((ours.share - theirs.quantile_iterated_to()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn exact_shares_are_spectrum_rows() {
        let measured = distribution(&(1..=10).collect::<Vec<_>>());
        let rows = measured.binned().spectrum(5);
        let rows: Vec<(u64, f64)> = rows.iter().map(|step| (step.value, step.share)).collect();
        let halves = [(1, 0.0), (1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4), (5, 0.5), (6, 0.55), (6, 0.6)];
        assert_eq!(rows[..8], halves);
        assert_eq!(rows[rows.len() - 2..], [(10, 0.9125), (10, 1.0)]);
    }

    #[test]
    fn deviation_bounds_are_whole_and_inclusive() {
        // Mean 5, deviation 4.
        assert_eq!(distribution(&[1, 9]).binned().share_within_stdev(), 1.0);
        // Mean 10, deviation 1.79: from 8 to 11, and 12.
        assert_eq!(distribution(&[7, 8, 10, 11, 12, 10, 10, 10, 10, 12]).binned().share_within_stdev(), 0.9);
        // Mean 10, deviation 2.28: from 7 to 12, and 13.
        assert_eq!(distribution(&[6, 7, 10, 12, 13, 10, 10, 10, 10, 12]).binned().share_within_stdev(), 0.9);
    }

    #[test]
    fn empty_distributions_have_nan_statistics() {
        let measured = distribution(&[]);
        let nothing = measured.binned();
        assert!(nothing.mean().is_nan() && nothing.stdev().is_nan());
        assert_eq!((nothing.min(), nothing.max(), nothing.percentile(50.0)), (0, 0, 0));
        assert_eq!(nothing.share_within_stdev(), 0.0);
        assert_eq!(nothing.spectrum(5), [SpectrumRow { value: 0, share: 1.0, count: 0 }]);
    }
}
