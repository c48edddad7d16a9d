//! How values are spread: an HDR histogram with the exact count, mean, deviation and extremes beside it.
//!
//! It knows neither units nor clocks; latencies are recorded in nanoseconds, rates in requests per second.

use std::ops::AddAssign;

use hdrhistogram::{Counter, Histogram};

/// The largest value told apart: one hour in nanoseconds. Larger ones are recorded as this and counted.
pub const HIGHEST: u64 = 3_600_000_000_000;

/// Decimal digits kept by the bins.
const DIGITS: u8 = 3;

/// What a bin counts with: `u32` for 100 ms of one thread, `u64` for a whole run.
pub trait Count: Counter + Into<u64> {
    /// The number, or the largest there is.
    fn saturating_from(number: u64) -> Self;
}

impl Count for u32 {
    fn saturating_from(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Count for u64 {
    fn saturating_from(number: u64) -> Self {
        number
    }
}

/// How the values of one quantity are spread.
#[derive(Clone, Debug)]
pub struct Distribution<C: Count> {
    /// The bins, and the exact count.
    histogram: Histogram<C>,
    sum: u128,
    sum_of_squares: u128,
    /// `u64::MAX` while empty.
    min: u64,
    /// Zero while empty.
    max: u64,
    /// How many values were larger than [`HIGHEST`] and were recorded as [`HIGHEST`].
    pub clamped: u64,
}

impl<C: Count> Distribution<C> {
    /// An empty distribution; all memory it will ever need is taken now (about 130 KB for `u32`, 260 KB for `u64`).
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants and valid");
        Self { histogram, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0, clamped: 0 }
    }

    /// Takes note of one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let known = value.min(HIGHEST);
        self.clamped += u64::from(known != value);
        self.histogram.saturating_record(known);
        self.sum += u128::from(known);
        self.sum_of_squares += u128::from(known) * u128::from(known);
        self.min = self.min.min(known);
        self.max = self.max.max(known);
    }

    /// Takes note of the same value `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let known = value.min(HIGHEST);
        self.clamped += if known == value { 0 } else { times };
        self.histogram.saturating_record_n(known, C::saturating_from(times));
        self.sum += u128::from(known) * u128::from(times);
        self.sum_of_squares += u128::from(known) * u128::from(known) * u128::from(times);
        self.min = self.min.min(known);
        self.max = self.max.max(known);
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.sum, self.sum_of_squares) = (0, 0);
        (self.min, self.max) = (u64::MAX, 0);
        self.clamped = 0;
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The smallest value, exactly.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }

    /// The largest value, exactly (up to [`HIGHEST`]).
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The arithmetic mean, from the values and not from the bins.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The sample standard deviation (divided by n − 1), from the values and not from the bins; zero below two values.
    pub fn stdev(&self) -> f64 {
        sample_stdev(self.count(), self.sum, self.sum_of_squares)
    }

    /// The value at rank floor(`p` / 100 · count) + 1, at most count: wrk's definition, but 100 gives the maximum.
    /// Zero if there is no value.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = (p / 100.0 * self.count() as f64) as u64 + 1;
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

    /// The share (0 to 1) of values at most one standard deviation away from the mean.
    pub fn share_within_stdev(&self) -> Option<f64> {
        let (mean, stdev) = (self.mean()?, self.stdev());
        let within = |value: u64| (mean - stdev..=mean + stdev).contains(&(value as f64));
        let inside: u64 = self.values().filter(|&(value, _)| within(value)).map(|(_, count)| count).sum();
        Some(inside as f64 / self.count() as f64)
    }

    /// The bins that are not empty, ascending: the middle of the bin, moved into min to max, and its count.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram.iter_recorded().map(|bin| {
            let middle = self.histogram.median_equivalent(bin.value_iterated_to());
            (middle.clamp(self.min, self.max), bin.count_at_value().into())
        })
    }
}

impl<C: Count> Default for Distribution<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Count, B: Count> AddAssign<&Distribution<B>> for Distribution<A> {
    fn add_assign(&mut self, other: &Distribution<B>) {
        for bin in other.histogram.iter_recorded() {
            let count = A::saturating_from(bin.count_at_value().into());
            self.histogram.saturating_record_n(bin.value_iterated_to(), count);
        }
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.clamped += other.clamped;
    }
}

/// The sample standard deviation of `count` whole numbers with this sum and sum of squares; zero below two numbers.
pub(crate) fn sample_stdev(count: u64, sum: u128, sum_of_squares: u128) -> f64 {
    if count < 2 {
        return 0.0;
    }
    // Around the whole part of the mean everything is an exact integer that fits, and nothing cancels later.
    let number = u128::from(count);
    let (whole, rest) = (sum / number, sum % number);
    let squares = sum_of_squares - number * whole * whole - 2 * whole * rest;
    let squares = squares as f64 - rest as f64 * (rest as f64 / count as f64);
    (squares.max(0.0) / (count - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Distribution<u64> {
        let mut distribution = Distribution::new();
        values.iter().for_each(|&value| distribution.record(value));
        distribution
    }

    /// Values over the whole range, the same every time.
    fn scattered(number: u64) -> Vec<u64> {
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
            // The bins are 2 ms wide here: neither figure may come from them.
            (&[3_000_000_000_001, 3_000_000_000_003], 3_000_000_000_002.0, 2.0_f64.sqrt()),
        ];
        for (values, mean, stdev) in table {
            let distribution = of(values);
            assert_eq!(distribution.mean(), Some(mean), "{values:?}");
            assert!((distribution.stdev() - stdev).abs() < 1e-9, "{values:?}: {}", distribution.stdev());
        }
    }

    #[test]
    fn a_billion_of_the_largest_values_do_not_overflow() {
        let mut distribution = Distribution::<u64>::new();
        distribution.record_many(HIGHEST, 1_000_000_000);
        distribution.record_many(0, 1_000_000_000);
        assert_eq!(distribution.mean(), Some(HIGHEST as f64 / 2.0));
        assert!((distribution.stdev() / (HIGHEST as f64 / 2.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_recorded_means_no_figures() {
        let empty = Distribution::<u32>::new();
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.mean()), (0, None, None, None));
        assert_eq!((empty.stdev(), empty.percentile(50.0), empty.share_within_stdev()), (0.0, 0, None));
        assert_eq!(empty.values().count(), 0);
    }

    #[test]
    fn a_percentile_is_the_value_at_rank_floor_of_its_share_plus_one() {
        let ten = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let table =
            [(0.0, 1), (9.9, 1), (10.0, 2), (50.0, 6), (75.0, 8), (89.9, 9), (90.0, 10), (99.0, 10), (100.0, 10)];
        for (p, value) in table {
            assert_eq!(ten.percentile(p), value, "{p} %");
        }
    }

    #[test]
    fn percentiles_stay_within_a_thousandth_and_the_last_is_exact() {
        let values = scattered(10_000);
        let distribution = of(&values);
        let mut sorted = values;
        sorted.sort_unstable();
        for p in [1.0, 25.0, 50.0, 90.0, 99.0, 99.9] {
            let expected = sorted[(p / 100.0 * 10_000.0) as usize] as f64;
            let got = distribution.percentile(p) as f64;
            assert!((got - expected).abs() <= expected / 1000.0, "{p} %: {got} instead of {expected}");
        }
        assert_eq!(distribution.percentile(100.0), sorted[9_999]);
    }

    #[test]
    fn the_share_within_one_deviation_includes_its_bounds() {
        // Mean 5, deviation 5 · √(10/9): the values 0 and 10 lie just inside.
        assert_eq!(of(&[0, 0, 0, 0, 0, 10, 10, 10, 10, 10]).share_within_stdev(), Some(1.0));
        assert_eq!(of(&[4, 4, 4, 4, 4, 4, 4, 4, 4, 100]).share_within_stdev(), Some(0.9));
        assert_eq!(of(&[3]).share_within_stdev(), Some(1.0));
    }

    #[test]
    fn merging_gives_what_recording_everything_in_one_gives() {
        let values = scattered(5_000);
        let mut merged = Distribution::<u64>::new();
        for part in values.chunks(700) {
            let mut interval = Distribution::<u32>::new();
            part.iter().for_each(|&value| interval.record(value));
            merged += &interval;
        }
        let whole = of(&values);
        assert_eq!(merged.values().collect::<Vec<_>>(), whole.values().collect::<Vec<_>>());
        assert_eq!((merged.count(), merged.min(), merged.max()), (whole.count(), whole.min(), whole.max()));
        assert_eq!((merged.mean(), merged.stdev()), (whole.mean(), whole.stdev()));
    }

    #[test]
    fn merging_an_empty_one_changes_nothing() {
        let mut distribution = of(&[3, 9]);
        distribution += &Distribution::<u32>::new();
        assert_eq!((distribution.count(), distribution.min(), distribution.max()), (2, Some(3), Some(9)));
    }

    #[test]
    fn recording_many_is_recording_often() {
        let mut many = Distribution::<u32>::new();
        many.record_many(12_345, 3);
        many.record_many(1, 0);
        let often = of(&[12_345, 12_345, 12_345]);
        assert_eq!((many.count(), many.min(), many.mean(), many.stdev()), (3, Some(12_345), often.mean(), 0.0));
    }

    #[test]
    fn what_exceeds_an_hour_is_clamped_and_counted() {
        let mut distribution = of(&[HIGHEST, HIGHEST + 1, u64::MAX]);
        distribution.record_many(u64::MAX, 2);
        assert_eq!((distribution.clamped, distribution.count()), (4, 5));
        assert_eq!((distribution.min(), distribution.max()), (Some(HIGHEST), Some(HIGHEST)));
        let mut merged = Distribution::<u64>::new();
        merged += &distribution;
        assert_eq!(merged.clamped, 4);
    }

    #[test]
    fn clearing_keeps_nothing() {
        let mut distribution = of(&[5, u64::MAX]);
        distribution.clear();
        assert_eq!(
            (distribution.count(), distribution.min(), distribution.mean(), distribution.clamped),
            (0, None, None, 0)
        );
        distribution.record(8);
        assert_eq!((distribution.min(), distribution.max(), distribution.mean()), (Some(8), Some(8), Some(8.0)));
        assert_eq!(distribution.values().collect::<Vec<_>>(), [(8, 1)]);
    }
}
