//! How values are spread: an HDR histogram with the exact count, mean, deviation and extremes beside it.
//!
//! It knows neither units nor clocks; latencies are recorded in nanoseconds, rates in requests per second.

use std::io::{Cursor, Read};
use std::ops::AddAssign;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use thiserror::Error;

use super::bins::{Bins, Count, neighbours};
use super::rank;

/// The largest value told apart: one hour in nanoseconds. Larger ones are recorded as this and counted.
pub use super::bins::HIGHEST;

/// Decimal digits kept by the bins.
const DIGITS: u8 = 3;

/// The exact figures of a distribution, which its bins only approximate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// How many values there are.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation.
    pub stdev: f64,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
}

/// Bytes and figures that are not those of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Corrupt {
    /// The bytes are no histogram.
    #[error("its histogram cannot be read")]
    Bytes,
    /// The histogram holds another number of values.
    #[error("its histogram has another count than stands beside it")]
    Count,
    /// The figures cannot be those of any values.
    #[error("its figures contradict each other")]
    Figures,
}

/// How the values of one quantity are spread.
#[derive(Clone, Debug)]
pub struct Distribution<C: Count> {
    /// The bins, and the exact count.
    bins: Bins<C>,
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
    /// An empty distribution; all memory it will ever need is asked for now (about 130 KB for `u32`, 260 KB for `u64`).
    pub fn new() -> Self {
        Self { bins: Bins::new(), sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0, clamped: 0 }
    }

    /// Takes note of one value.
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

    /// Takes note of the same value `times` times.
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

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.bins.total()
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
        // Rounding may carry the mean of equal values beyond them.
        (self.count() > 0).then(|| (self.sum as f64 / self.count() as f64).clamp(self.min as f64, self.max as f64))
    }

    /// The sum of all values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The sample standard deviation (divided by n − 1), from the values and not from the bins; zero below two values.
    pub fn stdev(&self) -> f64 {
        sample_stdev(self.count(), self.sum, self.sum_of_squares)
    }

    /// The value at rank floor(`p` / 100 · count) + 1, at most count: wrk's definition, but 100 gives the maximum.
    /// Zero if there is no value.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = rank(p, self.count());
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

    /// The share (0 to 1) of values at most one standard deviation away from the mean. A bin that contains one of these
    /// bounds counts as inside, because its values cannot be told apart.
    pub fn share_within_stdev(&self) -> Option<f64> {
        let (mean, stdev) = (self.mean()?, self.stdev());
        let lowest = self.bin_start((mean - stdev).max(0.0).ceil() as u64);
        let highest = (mean + stdev) as u64;
        let inside = self.bins.used().filter(|(values, _)| (lowest..=highest).contains(values.start()));
        let inside: u64 = inside.map(|(_, count)| count).sum();
        Some(inside as f64 / self.count() as f64)
    }

    /// The smallest value in the same bin as this one.
    pub fn bin_start(&self, value: u64) -> u64 {
        *neighbours(value.min(HIGHEST)).start()
    }

    /// The bins that are not empty, ascending: the middle of the bin, moved into min to max, and its count.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bins.used().map(|(values, count)| {
            let middle = values.start() + (values.end() - values.start()).div_ceil(2);
            (middle.clamp(self.min, self.max), count)
        })
    }
}

impl Distribution<u64> {
    /// The bins in HdrHistogram's compressed format, version 2.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&self.to_hdr(), &mut bytes);
        written.expect("a histogram of 64-bit counts fits the format, and memory takes it");
        bytes
    }

    /// The distribution with these bins, as [`Distribution::encode`] wrote them, and these figures.
    ///
    /// # Errors
    ///
    /// When the bytes are no histogram, or do not go with the figures.
    pub fn decode(bytes: &[u8], moments: Moments) -> Result<Self, Corrupt> {
        let whole = inflated(bytes).ok_or(Corrupt::Bytes)?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut Cursor::new(whole)).map_err(|_| Corrupt::Bytes)?;
        let mut distribution = Self::new();
        for bin in read.iter_recorded() {
            distribution.bins.record(bin.value_iterated_to().min(HIGHEST), bin.count_at_value());
        }
        distribution.set_moments(moments)?;
        Ok(distribution)
    }

    /// Puts exact figures in the place of those that followed from the values recorded.
    ///
    /// # Errors
    ///
    /// When they cannot be those of any values, or of another number of them.
    pub fn set_moments(&mut self, moments: Moments) -> Result<(), Corrupt> {
        let Moments { count, mean, stdev, min, max } = moments;
        if self.count() != count {
            return Err(Corrupt::Count);
        }
        if count == 0 {
            return Ok(());
        }
        // A change of units may carry the mean of equal values beyond them, in its last bits.
        let is_at_most = |one: f64, other: f64| one <= other * (1.0 + 1e-12);
        let is_between = is_at_most(min as f64, mean) && is_at_most(mean, max as f64);
        let plausible = min <= max && is_between && max <= HIGHEST && stdev >= 0.0;
        // The sum of squares has to fit into 128 bits.
        let squares = count as f64 * max as f64 * max as f64;
        if !plausible || stdev > max as f64 || squares >= u128::MAX as f64 / 4.0 {
            return Err(Corrupt::Figures);
        }
        let number = u128::from(count);
        self.sum = ((mean * count as f64).round() as u128).clamp(number * u128::from(min), number * u128::from(max));
        // Around the whole part of the mean, as in `sample_stdev`, so that nothing large is subtracted.
        let (whole, rest) = (self.sum / number, self.sum % number);
        let spread = stdev * stdev * (count - 1) as f64 + rest as f64 * (rest as f64 / count as f64);
        self.sum_of_squares = number * whole * whole + 2 * whole * rest + spread.round() as u128;
        (self.min, self.max) = (min, max);
        Ok(())
    }

    /// The exact figures; `None` without a value.
    pub fn moments(&self) -> Option<Moments> {
        let (count, stdev) = (self.count(), self.stdev());
        Some(Moments { count, mean: self.mean()?, stdev, min: self.min()?, max: self.max()? })
    }

    /// The bins as HdrHistogram's percentile iterator sees them, so many steps before the distance to 100 % halves:
    /// value, share (0 to 1) and count of the values up to it.
    pub fn spectrum(&self, ticks: u32) -> Vec<(u64, f64, u64)> {
        let mut total = 0;
        let hdr = self.to_hdr();
        hdr.iter_quantiles(ticks)
            .map(|step| {
                total += step.count_since_last_iteration();
                (step.value_iterated_to().min(self.max), step.quantile_iterated_to(), total)
            })
            .collect()
    }

    /// The same as an HdrHistogram, for the formats that others read.
    fn to_hdr(&self) -> Histogram<u64> {
        let mut hdr = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants and valid");
        self.bins.used().for_each(|(values, count)| hdr.saturating_record_n(*values.end(), count));
        hdr
    }
}

/// The bins before they were compressed. The crate takes as much memory as the length in them says, so that it has to
/// be the true one.
fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    const COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
    const HEAD_BYTES: usize = 40;
    /// The longest has a third of that.
    const MOST: u64 = 1 << 20;
    let (_, compressed) = bytes.split_at_checked(8).filter(|(head, _)| head.starts_with(&COOKIE))?;
    let mut whole = Vec::new();
    ZlibDecoder::new(compressed).take(MOST).read_to_end(&mut whole).ok()?;
    let length = u32::from_be_bytes(*whole.get(4..)?.first_chunk()?) as usize;
    (whole.len() == HEAD_BYTES + length).then_some(whole)
}

impl<C: Count> Default for Distribution<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Count, B: Count> AddAssign<&Distribution<B>> for Distribution<A> {
    fn add_assign(&mut self, other: &Distribution<B>) {
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
        for (hundredths, &expected) in sorted.iter().enumerate() {
            let (p, expected) = (hundredths as f64 / 100.0, expected as f64);
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
    fn the_share_within_one_deviation_is_exact_up_to_the_bins_that_its_bounds_lie_in() {
        // Eight latencies of about 100 µs, closer to each other than the width of a bin.
        assert_eq!(
            of(&[100_000, 100_003, 100_005, 100_007, 100_009, 100_011, 100_013, 100_020]).share_within_stdev(),
            Some(1.0)
        );
        let mut random = crate::random::Random::new(25);
        for round in 0..2_000 {
            let (base, spread) = (random.below(1 << (round % 40)), 1 + random.below(1 << (round % 37)));
            let values: Vec<u64> = (0..=random.below(20)).map(|_| base + random.below(spread)).collect();
            let distribution = of(&values);
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
    fn what_is_written_and_read_again_is_the_same() {
        for values in [scattered(5_000), vec![0], vec![7, 7], vec![HIGHEST - 1, HIGHEST], Vec::new()] {
            let before = of(&values);
            let empty = Moments { count: 0, mean: 0.0, stdev: 0.0, min: 0, max: 0 };
            let after = Distribution::decode(&before.encode(), before.moments().unwrap_or(empty)).unwrap();
            assert_eq!(after.values().collect::<Vec<_>>(), before.values().collect::<Vec<_>>());
            assert_eq!(after.moments(), before.moments());
            let mut sum = after.clone();
            sum += &after;
            let mut twice = before.clone();
            twice += &before;
            assert_eq!(sum.moments(), twice.moments(), "figures can go on being added");
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let good = of(&[10, 20, 30]);
        let moments = good.moments().unwrap();
        let decoded = |bytes: &[u8], moments| Distribution::decode(bytes, moments).map(|_| ());
        assert_eq!(decoded(b"", moments), Err(Corrupt::Bytes));
        assert_eq!(decoded(&good.encode()[..20], moments), Err(Corrupt::Bytes));
        // Eight bytes, and a length in them that is not theirs: four gigabytes.
        let absurd = b"\x78\x01\x01\x08\x00\xf7\xff\x1c\x84\x93\x13\xff\xff\xff\xff\x12\x4b\x05\x43";
        assert_eq!(inflated(&[&good.encode()[..8], absurd].concat()), None);
        assert_eq!(decoded(&good.encode(), Moments { count: 4, ..moments }), Err(Corrupt::Count));
        for figures in [
            Moments { mean: 31.0, ..moments },
            Moments { mean: f64::NAN, ..moments },
            Moments { stdev: f64::NAN, ..moments },
            Moments { stdev: 1e300, ..moments },
            Moments { max: u64::MAX, ..moments },
        ] {
            assert_eq!(decoded(&good.encode(), figures), Err(Corrupt::Figures), "{figures:?}");
        }
    }

    #[test]
    fn a_spectrum_ends_with_every_value() {
        let steps = of(&scattered(1_000)).spectrum(5);
        let last = steps.last().unwrap();
        assert_eq!((last.1, last.2), (1.0, 1_000));
        assert!(steps.is_sorted_by_key(|step| step.2));
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
