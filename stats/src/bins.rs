//! The bins of a histogram: HdrHistogram's, at most a thousandth as wide as the values in them.
//!
//! Recording finds the highest bit and adds once. Adding up and clearing touch only the used range: both happen ten
//! times a second for every thread.
//!
//! Layout of <https://github.com/HdrHistogram/HdrHistogram> for values from 1 and three digits: below 2,048 every value
//! has its own bin; above, each doubling of the value is split into 1,024 bins. Two digits: 256 and 128.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hdr;

/// The largest value: one hour in nanoseconds. Larger values are recorded as this value and counted.
pub const HIGHEST: u64 = 3_600_000_000_000;

/// Number of bins per doubling, as a power of two: for three digits ...
pub const FINE: u32 = 10;
/// ... and for two.
pub const COARSE: u32 = 7;

/// Number of bins.
const fn count(step: u32) -> usize {
    bin_of_value(HIGHEST, step) + 1
}

/// The counter of a bin: `u32` for 100 ms of one thread, `u64` for a whole run.
pub trait Count: Copy + Default + Into<u64> + std::fmt::Debug {
    /// Adds `times`, saturating at the largest number of the type.
    fn add(&mut self, times: u64);
}

impl Count for u32 {
    fn add(&mut self, times: u64) {
        *self = self.saturating_add(Self::try_from(times).unwrap_or(Self::MAX));
    }
}

impl Count for u64 {
    fn add(&mut self, times: u64) {
        *self = self.saturating_add(times);
    }
}

/// Number of values in each bin.
#[derive(Debug)]
pub struct Bins<C, const STEP: u32 = FINE> {
    counts: Vec<C>,
    /// The bin of the first count; always zero for fine bins.
    base: usize,
    /// First and last used bin; first after last if there is none.
    first: usize,
    last: usize,
    total: u64,
}

impl<C: Count, const STEP: u32> Bins<C, STEP> {
    /// Empty bins. Fine bins allocate all the memory they will ever need now; the kernel provides pages on use. Coarse
    /// bins, of which there may be hundreds of sets, grow to cover the doublings from their smallest value to their
    /// largest.
    pub fn new() -> Self {
        let allocated = if STEP == FINE { count(STEP) } else { 0 };
        Self { counts: vec![C::default(); allocated], base: 0, first: count(STEP), last: 0, total: 0 }
    }

    /// Index of a bin's count. If it is at or beyond the end, there is no room for the bin yet.
    fn count_index(&self, place: usize) -> usize {
        if STEP == FINE { place } else { place.wrapping_sub(self.base) }
    }

    /// Makes room for a bin and for the other bins of the same doubling. Returns the index of its count.
    #[cold]
    fn make_room_for(&mut self, place: usize) -> usize {
        let doubling = (place >> STEP) << STEP;
        let (mut start, mut end) = (doubling, (doubling + (1 << STEP)).min(count(STEP)));
        if !self.counts.is_empty() {
            (start, end) = (start.min(self.base), end.max(self.base + self.counts.len()));
        }
        let mut counts = vec![C::default(); end - start];
        if !self.counts.is_empty() {
            counts[self.base - start..][..self.counts.len()].copy_from_slice(&self.counts);
        }
        (self.counts, self.base) = (counts, start);
        place - start
    }

    /// Counts a value of at most [`HIGHEST`] `times` times.
    pub fn record(&mut self, value: u64, times: u64) {
        let place = bin_of_value(value, STEP);
        let mut index = self.count_index(place);
        if index >= self.counts.len() {
            index = self.make_room_for(place);
        }
        self.counts[index].add(times);
        self.first = self.first.min(place);
        self.last = self.last.max(place);
        self.total = self.total.saturating_add(times);
    }

    /// Number of values recorded.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        if self.total > 0 {
            let used = self.count_index(self.first)..=self.count_index(self.last);
            self.counts[used].fill(C::default());
        }
        (self.first, self.last, self.total) = (count(STEP), 0, 0);
    }

    /// Adds the counts of other bins.
    pub fn add<D: Count>(&mut self, others: &Bins<D, STEP>) {
        if others.total == 0 {
            return;
        }
        for place in [others.first, others.last] {
            if self.count_index(place) >= self.counts.len() {
                self.make_room_for(place);
            }
        }
        let used = self.count_index(others.first)..=self.count_index(others.last);
        for (count, other) in self.counts[used].iter_mut().zip(&others.counts[others.count_index(others.first)..]) {
            count.add((*other).into());
        }
        self.first = self.first.min(others.first);
        self.last = self.last.max(others.last);
        self.total = self.total.saturating_add(others.total);
    }

    /// The non-empty bins, ascending: the values that belong in each, and how many were recorded.
    pub fn used_bins(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        let range = if self.total == 0 { 0..0 } else { self.first..self.last + 1 };
        range
            .map(|place| (values_of_bin(place, STEP), self.counts[self.count_index(place)].into()))
            .filter(|&(_, count)| count > 0)
    }
}

impl<C: Count, const STEP: u32> Bins<C, STEP> {
    /// The used bins, ascending: the distance of each from its predecessor in bins, and its count.
    fn used_bin_offsets(&self) -> impl Iterator<Item = (u32, u64)> {
        let range = if self.total == 0 { 0..0 } else { self.first..self.last + 1 };
        let mut before = 0;
        range.filter_map(move |place| {
            let count = self.counts[self.count_index(place)].into();
            (count > 0).then(|| ((place - std::mem::replace(&mut before, place)) as u32, count))
        })
    }

    /// A hash of the counts of all bins. The fingerprint of a sum is the sum of its parts' fingerprints, modulo 2⁶⁴.
    pub fn fingerprint(&self) -> u64 {
        let mut place = 0;
        let of_bin = |(gap, count): (u32, u64)| {
            place += u64::from(gap);
            count.wrapping_mul(mix_bits(place))
        };
        self.used_bin_offsets().map(of_bin).fold(0, u64::wrapping_add)
    }
}

/// A hash of a number, unrelated to the hashes of neighbouring numbers: the finalizer of SplitMix64,
/// <https://prng.di.unimi.it/splitmix64.c>.
fn mix_bits(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Copies used bins only, so that the pages of the others stay untouched.
impl<C: Count, const STEP: u32> Clone for Bins<C, STEP> {
    fn clone(&self) -> Self {
        let mut counts = vec![C::default(); self.counts.len()];
        if self.total > 0 {
            let used = self.count_index(self.first)..=self.count_index(self.last);
            counts[used.clone()].copy_from_slice(&self.counts[used]);
        }
        Self { counts, ..*self }
    }
}

/// As text, fine bins are an HdrHistogram (V2 compressed, base64), which other tools read. Coarse ones, and all in binary
/// formats, are pairs: the distance of a used bin from its predecessor, and its count.
impl<C: Count, const STEP: u32> Serialize for Bins<C, STEP> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if STEP == FINE && serializer.is_human_readable() {
            let starts = self.used_bins().map(|(values, count)| (*values.start(), count));
            return STANDARD.encode(hdr::encode(starts)).serialize(serializer);
        }
        self.used_bin_offsets().collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de, C: Count, const STEP: u32> Deserialize<'de> for Bins<C, STEP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut bins = Self::new();
        if STEP == FINE && deserializer.is_human_readable() {
            let bytes =
                STANDARD.decode(<Cow<'de, str>>::deserialize(deserializer)?.as_bytes()).map_err(D::Error::custom)?;
            for (value, times) in hdr::decode(&bytes).map_err(D::Error::custom)? {
                bins.record(value.min(HIGHEST), times);
            }
            return Ok(bins);
        }
        let mut place = 0_usize;
        for (gap, times) in Vec::<(u32, u64)>::deserialize(deserializer)? {
            place = place.saturating_add(gap as usize);
            if place >= count(STEP) || times == 0 {
                return Err(D::Error::custom("there is no such bin"));
            }
            bins.record(*values_of_bin(place, STEP).start(), times);
        }
        Ok(bins)
    }
}

/// The bin of a value; `step`: number of bins per doubling, as a power of two.
const fn bin_of_value(value: u64, step: u32) -> usize {
    // If every value has its own bin, the shift is zero.
    let shift = u64::BITS - step - 1 - (value | ((2 << step) - 1)).leading_zeros();
    ((shift as usize) << step) + (value >> shift) as usize
}

/// The values that belong in a bin.
fn values_of_bin(place: usize, step: u32) -> RangeInclusive<u64> {
    let shift = (place >> step).saturating_sub(1);
    let first = ((place - (shift << step)) as u64) << shift;
    first..=first + (1 << shift) - 1
}

/// The values that share a bin with `value`.
pub fn values_in_same_bin<const STEP: u32>(value: u64) -> RangeInclusive<u64> {
    values_of_bin(bin_of_value(value, STEP), STEP)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use onrush_plan::Random;

    use super::*;

    #[test]
    fn bins_match_hdrhistogram() {
        for (digits, step) in [(3, FINE), (2, COARSE)] {
            let theirs = Histogram::<u64>::new_with_bounds(1, HIGHEST, digits).unwrap();
            let mut random = Random::new(1);
            let drawn = (0..100_000).map(|round| random.next() >> (23 + round % 41)).filter(|&value| value <= HIGHEST);
            for value in (0..5_000).chain([HIGHEST - 1, HIGHEST]).chain(drawn) {
                let range = values_of_bin(bin_of_value(value, step), step);
                assert!(range.contains(&value) && bin_of_value(value, step) < count(step));
                assert_eq!(*range.start(), theirs.lowest_equivalent(value), "{value}");
                assert_eq!(*range.end(), theirs.highest_equivalent(value), "{value}");
            }
        }
    }

    #[test]
    fn bins_partition_all_values() {
        for step in [FINE, COARSE] {
            let values = |place| values_of_bin(place, step);
            for place in 1..count(step) {
                assert_eq!(values(place - 1).end() + 1, *values(place).start());
                assert_eq!(bin_of_value(*values(place).start(), step), place);
                assert_eq!(bin_of_value(*values(place).end(), step), place);
            }
        }
    }

    #[test]
    fn clearing_empties_all_used_bins() {
        let mut bins = Bins::<u32>::new();
        bins.clear();
        for value in [0, 7, 123_456, HIGHEST] {
            bins.record(value, 3);
        }
        assert_eq!(bins.used_bins().map(|(_, count)| count).collect::<Vec<_>>(), [3; 4]);
        bins.clear();
        assert!(bins.counts.iter().all(|&count| count == 0) && bins.used_bins().next().is_none());
        let mut sum = Bins::<u64>::new();
        sum.add(&bins);
        assert_eq!((sum.total(), sum.used_bins().count()), (0, 0));
    }

    #[test]
    fn coarse_bins_cover_all_values() {
        let (mut bins, mut sum) = (Bins::<u32, COARSE>::new(), Bins::<u64, COARSE>::new());
        for values in [&[70_000, 50_000, 100_000][..], &[900, 3_000_000], &[0, HIGHEST], &[60_000]] {
            values.iter().for_each(|value| bins.record(*value, 1));
            sum.add(&bins);
            let (least, most) = (values.iter().min().unwrap(), values.iter().max().unwrap());
            let used: Vec<_> = bins.used_bins().collect();
            assert_eq!(used.len(), values.len());
            assert!(used[0].0.contains(least) && used[used.len() - 1].0.contains(most), "{used:?}");
            bins.clear();
            assert!(bins.counts.iter().all(|&count| count == 0));
        }
        let used: Vec<u64> = sum.used_bins().map(|(values, _)| *values.start()).collect();
        let expected = [0, 900, 50_000, 60_000, 70_000, 100_000, 3_000_000, HIGHEST];
        assert_eq!(used, expected.map(|value| *values_in_same_bin::<COARSE>(value).start()));
        let mut narrow = Bins::<u32, COARSE>::new();
        narrow.record(50_000, 1);
        narrow.record(70_000, 1);
        assert_eq!(narrow.counts.len(), 2 << COARSE);
    }

    #[test]
    fn counts_saturate() {
        let mut bins = Bins::<u32>::new();
        bins.record(5, u64::MAX);
        bins.record(5, 1);
        assert_eq!(
            (bins.used_bins().collect::<Vec<_>>(), bins.total()),
            (vec![(5..=5, u64::from(u32::MAX))], u64::MAX)
        );
    }
}
