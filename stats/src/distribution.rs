//! A distribution of values: the bins of an HDR histogram, with the exact count, mean, deviation and extremes.
//!
//! It has no units and reads no clock; latencies are recorded in nanoseconds, rates in requests per second.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::bins::{Bins, COARSE, Count, FINE, HIGHEST, values_in_same_bin};
use super::corrupt::Corrupt;
use super::moments::{Moments, sample_stdev};
use super::rank;

/// The distribution of the values of one quantity; `STEP`: number of bins per doubling, as a power of two.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "", try_from = "Unchecked<C, STEP>")]
pub struct Distribution<C: Count, const STEP: u32 = FINE> {
    pub(super) bins: Bins<C, STEP>,
    sum: u128,
    sum_of_squares: u128,
    /// `u64::MAX` while empty.
    min: u64,
    /// Zero while empty.
    max: u64,
    /// Number of values above [`HIGHEST`], recorded as [`HIGHEST`].
    pub clamped: u64,
}

/// A distribution from another source, whose statistics may contradict each other.
#[derive(Deserialize)]
#[serde(bound = "")]
struct Unchecked<C: Count, const STEP: u32> {
    bins: Bins<C, STEP>,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
    clamped: u64,
}

impl<C: Count, const STEP: u32> TryFrom<Unchecked<C, STEP>> for Distribution<C, STEP> {
    type Error = Corrupt;

    fn try_from(
        Unchecked { bins, sum, sum_of_squares, min, max, clamped }: Unchecked<C, STEP>,
    ) -> Result<Self, Corrupt> {
        let is_empty = bins.total() == 0 && (sum, sum_of_squares, min, max) == (0, 0, u64::MAX, 0);
        let count = u128::from(bins.total());
        // The sum of squares is smallest if all values are as near as possible to the mean.
        let (whole, rest) = (sum / count.max(1), sum % count.max(1));
        let least_squares = || count.saturating_mul(whole * whole).saturating_add(2 * whole * rest);
        let is_possible = min <= max
            && max <= HIGHEST
            && (u128::from(min) * count..=u128::from(max) * count).contains(&sum)
            && (least_squares()..=u128::from(max).saturating_mul(sum)).contains(&sum_of_squares);
        if is_empty || (count > 0 && is_possible) {
            Ok(Self { bins, sum, sum_of_squares, min, max, clamped })
        } else {
            Err(Corrupt::Figures)
        }
    }
}

impl<C: Count, const STEP: u32> Distribution<C, STEP> {
    /// A hash of all values, as precise as the bins. The fingerprint of a sum is the sum of its parts' fingerprints,
    /// modulo 2⁶⁴.
    pub fn fingerprint(&self) -> u64 {
        self.bins.fingerprint()
    }

    /// An empty distribution. All memory that it will ever need is allocated now (about 130 KB for `u32`, 260 KB for
    /// `u64`); with two digits it grows with the values, to at most an eighth of that.
    pub fn new() -> Self {
        Self { bins: Bins::new(), sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0, clamped: 0 }
    }

    /// Records one value. A value above [`HIGHEST`] is recorded as [`HIGHEST`] and counted in `clamped`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let known = value.min(HIGHEST);
        self.clamped += u64::from(known != value);
        self.bins.record(known, 1);
        self.sum += u128::from(known);
        self.sum_of_squares += u128::from(known) * u128::from(known);
        self.min = self.min.min(known);
        self.max = self.max.max(known);
    }

    /// Records a value `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let known = value.min(HIGHEST);
        self.clamped += if known == value { 0 } else { times };
        self.bins.record(known, times);
        self.sum += u128::from(known) * u128::from(times);
        self.sum_of_squares += u128::from(known) * u128::from(known) * u128::from(times);
        self.min = self.min.min(known);
        self.max = self.max.max(known);
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        if self.count() == 0 {
            return;
        }
        self.bins.clear();
        (self.sum, self.sum_of_squares) = (0, 0);
        (self.min, self.max) = (u64::MAX, 0);
        self.clamped = 0;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.bins.total()
    }

    /// The smallest value, exactly; `None` without a value.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }

    /// The largest value, exactly (up to [`HIGHEST`]); `None` without a value.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The arithmetic mean, from the values, not the bins; `None` without a value.
    pub fn mean(&self) -> Option<f64> {
        // Rounding may move the mean of equal values past them.
        (self.count() > 0).then(|| (self.sum as f64 / self.count() as f64).clamp(self.min as f64, self.max as f64))
    }

    /// The sum of all values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The sum of the squares of all values.
    pub fn sum_of_squares(&self) -> u128 {
        self.sum_of_squares
    }

    /// The sample standard deviation (divided by n − 1), from the values, not the bins; zero below two values.
    pub fn stdev(&self) -> f64 {
        sample_stdev(self.count(), self.sum, self.sum_of_squares)
    }

    /// The value at rank floor(`p` / 100 · count) + 1, at most count: wrk's definition, except that 100 gives the
    /// maximum. Zero without a value.
    pub fn percentile(&self, p: f64) -> u64 {
        self.at_rank(rank(p, self.count()))
    }

    /// The values that remain without those of `part`, as precise as the bins.
    pub fn without_part(&self, part: &Self) -> Self {
        let mut left = Self::new();
        let mut parts = part.bins.used_bins().peekable();
        for ((middle, count), (values, _)) in self.values().zip(self.bins.used_bins()) {
            let taken = parts.next_if(|(others, _)| *others == values).map_or(0, |(_, taken)| taken);
            left.record_many(middle, count.saturating_sub(taken));
        }
        left
    }

    /// The value at a rank in ascending order, from 1; past the last rank, the largest. Zero without a value.
    pub fn at_rank(&self, rank: u64) -> u64 {
        if rank >= self.count() {
            return self.max;
        }
        let mut seen = 0;
        let reached = self.values().find(|&(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(self.max, |(value, _)| value)
    }

    /// The share (0 to 1) of values at most one standard deviation away from the mean. A bin that contains a bound
    /// counts as inside, because the values within a bin cannot be distinguished. `None` without a value.
    pub fn share_within_stdev(&self) -> Option<f64> {
        let (mean, stdev) = (self.mean()?, self.stdev());
        let lowest = self.bin_start((mean - stdev).max(0.0).ceil() as u64);
        let highest = (mean + stdev) as u64;
        let inside = self.bins.used_bins().filter(|(values, _)| (lowest..=highest).contains(values.start()));
        let inside: u64 = inside.map(|(_, count)| count).sum();
        Some(inside as f64 / self.count() as f64)
    }

    /// The smallest value in the bin of `value`.
    pub fn bin_start(&self, value: u64) -> u64 {
        *values_in_same_bin::<STEP>(value.min(HIGHEST)).start()
    }

    /// The non-empty bins, ascending: the middle of the bin, clamped to min and max, and its count.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bins.used_bins().map(|(values, count)| {
            let middle = values.start() + (values.end() - values.start()).div_ceil(2);
            (middle.clamp(self.min, self.max), count)
        })
    }
}

impl Distribution<u64, COARSE> {
    /// Turns `fine` into a copy with bins of three digits. All values of a coarse bin are in the fine bin at its
    /// middle; the exact statistics are kept.
    pub fn copy_to_fine_bins(&self, fine: &mut Distribution<u64>) {
        fine.bins.clear();
        self.values().for_each(|(value, count)| fine.bins.record(value, count));
        (fine.sum, fine.sum_of_squares) = (self.sum, self.sum_of_squares);
        (fine.min, fine.max, fine.clamped) = (self.min, self.max, self.clamped);
    }
}

impl Distribution<u64> {
    /// Replaces the statistics computed from the recorded values with exact ones.
    ///
    /// # Errors
    ///
    /// If no values can have these statistics, or if the counts differ.
    pub fn set_moments(&mut self, moments: Moments) -> Result<(), Corrupt> {
        if self.count() != moments.count {
            return Err(Corrupt::Count);
        }
        if moments.count > 0 {
            (self.sum, self.sum_of_squares) = moments.to_sums()?;
            (self.min, self.max) = (moments.min, moments.max);
        }
        Ok(())
    }

    /// The exact statistics; `None` without a value.
    pub fn moments(&self) -> Option<Moments> {
        let (count, stdev, sum, squares) = (self.count(), self.stdev(), Some(self.sum), Some(self.sum_of_squares));
        Some(Moments { count, mean: self.mean()?, stdev, min: self.min()?, max: self.max()?, sum, squares })
    }
}

impl<C: Count, const STEP: u32> Default for Distribution<C, STEP> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Count, B: Count, const STEP: u32> AddAssign<&Distribution<B, STEP>> for Distribution<A, STEP> {
    fn add_assign(&mut self, other: &Distribution<B, STEP>) {
        if other.count() == 0 {
            return;
        }
        self.bins.add(&other.bins);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.clamped += other.clamped;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The distribution of these values.
    pub fn distribution(values: &[u64]) -> Distribution<u64> {
        let mut distribution = Distribution::new();
        values.iter().for_each(|&value| distribution.record(value));
        distribution
    }

    /// Values over the whole range, the same on every call.
    pub fn scattered(number: u64) -> Vec<u64> {
        (0..number).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (23 + i % 41)).collect()
    }

    #[test]
    fn mean_and_deviation_are_exact() {
        let table: [(&[u64], f64, f64); 6] = [
            (&[7], 7.0, 0.0),
            (&[5, 5, 5], 5.0, 0.0),
            (&[1, 2], 1.5, 0.5_f64.sqrt()),
            (&[2, 4, 4, 4, 5, 5, 7, 9], 5.0, (32.0_f64 / 7.0).sqrt()),
            (&[0, 10], 5.0, 50.0_f64.sqrt()),
            // The bins are 2 ms wide here, so neither statistic may come from them.
            (&[3_000_000_000_001, 3_000_000_000_003], 3_000_000_000_002.0, 2.0_f64.sqrt()),
        ];
        for (values, mean, stdev) in table {
            let distribution = distribution(values);
            assert_eq!(distribution.mean(), Some(mean), "{values:?}");
            assert!((distribution.stdev() - stdev).abs() < 1e-9, "{values:?}: {}", distribution.stdev());
        }
    }

    #[test]
    fn a_billion_maximum_values_do_not_overflow() {
        let mut distribution = Distribution::<u64>::new();
        distribution.record_many(HIGHEST, 1_000_000_000);
        distribution.record_many(0, 1_000_000_000);
        assert_eq!(distribution.mean(), Some(HIGHEST as f64 / 2.0));
        assert!((distribution.stdev() / (HIGHEST as f64 / 2.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn empty_distributions_have_no_statistics() {
        let empty = Distribution::<u32>::new();
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.mean()), (0, None, None, None));
        assert_eq!((empty.stdev(), empty.percentile(50.0), empty.share_within_stdev()), (0.0, 0, None));
        assert_eq!(empty.values().count(), 0);
    }

    #[test]
    fn percentiles_are_the_value_at_their_rank() {
        let ten = distribution(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let table =
            [(0.0, 1), (9.9, 1), (10.0, 2), (50.0, 6), (75.0, 8), (89.9, 9), (90.0, 10), (99.0, 10), (100.0, 10)];
        for (p, value) in table {
            assert_eq!(ten.percentile(p), value, "{p} %");
        }
    }

    #[test]
    fn percentiles_are_exact_to_a_thousandth() {
        let values = scattered(1_000);
        let distribution = distribution(&values);
        let mut sorted = values;
        sorted.sort_unstable();
        for (tenths, &expected) in sorted.iter().enumerate() {
            let (p, expected) = (tenths as f64 / 10.0, expected as f64);
            let got = distribution.percentile(p) as f64;
            assert!((got - expected).abs() <= expected / 1000.0, "{p} %: {got} instead of {expected}");
        }
        assert_eq!(distribution.percentile(100.0), sorted[999]);
    }

    #[test]
    fn share_within_deviation_includes_bounds() {
        // Mean 5, deviation 5 · √(10/9): the values 0 and 10 lie just inside.
        assert_eq!(distribution(&[0, 0, 0, 0, 0, 10, 10, 10, 10, 10]).share_within_stdev(), Some(1.0));
        assert_eq!(distribution(&[4, 4, 4, 4, 4, 4, 4, 4, 4, 100]).share_within_stdev(), Some(0.9));
        assert_eq!(distribution(&[3]).share_within_stdev(), Some(1.0));
    }

    #[test]
    fn shares_within_one_deviation_are_nearly_exact() {
        // Eight latencies of about 100 µs, closer to each other than the width of a bin.
        assert_eq!(
            distribution(&[100_000, 100_003, 100_005, 100_007, 100_009, 100_011, 100_013, 100_020])
                .share_within_stdev(),
            Some(1.0)
        );
        let mut random = onrush_plan::Random::new(25);
        for round in 0..2_000 {
            let (base, spread) = (random.below(1 << (round % 40)), 1 + random.below(1 << (round % 37)));
            let values: Vec<u64> = (0..=random.below(20)).map(|_| base + random.below(spread)).collect();
            let distribution = distribution(&values);
            let (mean, stdev) = (distribution.mean().unwrap(), distribution.stdev());
            // A bin is at most a thousandth wide.
            let share = |slack: f64| {
                let (least, most) = ((mean - stdev) * (1.0 - slack), (mean + stdev) * (1.0 + slack));
                let inside = values.iter().filter(|&&value| (least..=most).contains(&(value as f64))).count();
                inside as f64 / values.len() as f64
            };
            let got = distribution.share_within_stdev().unwrap();
            assert!((share(-1e-12)..=share(1e-3)).contains(&got), "{got} for {values:?}");
            assert!(got > 0.0, "{values:?}");
        }
    }

    #[test]
    fn merging_equals_recording_together() {
        let values = scattered(5_000);
        let mut merged = Distribution::<u64>::new();
        for part in values.chunks(700) {
            let mut interval = Distribution::<u32>::new();
            part.iter().for_each(|&value| interval.record(value));
            merged += &interval;
        }
        let whole = distribution(&values);
        assert_eq!(merged.values().collect::<Vec<_>>(), whole.values().collect::<Vec<_>>());
        assert_eq!((merged.count(), merged.min(), merged.max()), (whole.count(), whole.min(), whole.max()));
        assert_eq!((merged.mean(), merged.stdev()), (whole.mean(), whole.stdev()));
    }

    #[test]
    fn merging_an_empty_distribution_changes_nothing() {
        let mut distribution = distribution(&[3, 9]);
        distribution += &Distribution::<u32>::new();
        assert_eq!((distribution.count(), distribution.min(), distribution.max()), (2, Some(3), Some(9)));
    }

    #[test]
    fn recording_many_equals_repeated_recording() {
        let mut many = Distribution::<u32>::new();
        many.record_many(12_345, 3);
        many.record_many(1, 0);
        let often = distribution(&[12_345, 12_345, 12_345]);
        assert_eq!((many.count(), many.min(), many.mean(), many.stdev()), (3, Some(12_345), often.mean(), 0.0));
    }

    #[test]
    fn values_above_an_hour_are_clamped() {
        let mut distribution = distribution(&[HIGHEST, HIGHEST + 1, u64::MAX]);
        distribution.record_many(u64::MAX, 2);
        assert_eq!((distribution.clamped, distribution.count()), (4, 5));
        assert_eq!((distribution.min(), distribution.max()), (Some(HIGHEST), Some(HIGHEST)));
        let mut merged = Distribution::<u64>::new();
        merged += &distribution;
        assert_eq!(merged.clamped, 4);
    }

    #[test]
    fn two_digit_percentiles_are_exact_to_a_hundredth() {
        let (mut coarse, mut values) = (Distribution::<u64, COARSE>::new(), scattered(1_000));
        values.iter().for_each(|&value| coarse.record(value));
        let (mut fine, exact) = (distribution(&[17]), distribution(&values));
        coarse.copy_to_fine_bins(&mut fine);
        values.sort_unstable();
        for (tenths, &expected) in values.iter().enumerate() {
            let (got, expected) = (fine.percentile(tenths as f64 / 10.0) as f64, expected as f64);
            assert!((got - expected).abs() <= expected / 100.0, "{tenths}: {got} instead of {expected}");
        }
        assert_eq!(fine.moments(), exact.moments());
        Distribution::<u64, COARSE>::new().copy_to_fine_bins(&mut fine);
        assert_eq!((fine.moments(), fine.count()), (None, 0));
    }

    #[test]
    fn cleared_distributions_are_empty() {
        let mut distribution = distribution(&[5, u64::MAX]);
        distribution.clear();
        assert_eq!(
            (distribution.count(), distribution.min(), distribution.mean(), distribution.clamped),
            (0, None, None, 0)
        );
        distribution.record(8);
        assert_eq!((distribution.min(), distribution.max(), distribution.mean()), (Some(8), Some(8), Some(8.0)));
        assert_eq!(distribution.values().collect::<Vec<_>>(), [(8, 1)]);
    }

    #[test]
    fn distributions_round_trip_and_contradictions_fail() {
        let mut sum = Distribution::<u64>::new();
        let mut prints = 0_u64;
        for part in [&scattered(500)[..], &[0, HIGHEST, u64::MAX], &[]] {
            let part = distribution(part);
            let sent = serde_json::to_string(&part).unwrap();
            let arrived: Distribution<u64> = serde_json::from_str(&sent).unwrap();
            assert_eq!(arrived.moments(), part.moments());
            assert!(arrived.values().eq(part.values()) && arrived.clamped == part.clamped);
            prints = prints.wrapping_add(part.fingerprint());
            sum += &arrived;
        }
        assert_eq!(sum.fingerprint(), prints);
        sum.record(7);
        assert_ne!(sum.fingerprint(), prints);
        let right = serde_json::to_value(distribution(&[5, 9])).unwrap();
        let is_read = |value| serde_json::from_value::<Distribution<u64>>(value).is_ok();
        assert!(is_read(right.clone()));
        for (field, wrong) in
            [("min", 20), ("max", HIGHEST + 1), ("max", 6), ("sum", 9), ("sum", 19), ("sum_of_squares", 9 * 14 + 1)]
        {
            let mut value = right.clone();
            value[field] = wrong.into();
            assert!(!is_read(value), "{field} {wrong}");
        }
        for bins in ["", "AAAA", "no base64", right["bins"].as_str().unwrap()] {
            let mut value = right.clone();
            value["bins"] = bins.into();
            value["max"] = 10.into();
            assert_eq!(is_read(value), bins.len() > 10, "{bins}");
        }
    }
}
