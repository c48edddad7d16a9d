//! Latencies in little memory: exact count, sum and maximum, and bins an eighth of an octave wide. Empty bins take no
//! memory.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Count, Distribution, rank};

/// Number of bins between a value and its double.
const BINS_PER_OCTAVE: u32 = 8;

/// The latencies of a row of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Sum of the latencies, in nanoseconds.
    pub sum_ns: u128,
    /// The largest latency, in nanoseconds; zero if there is none.
    pub max_ns: u64,
    /// The bins by [`bin_of`], ascending, with the number of latencies in each.
    pub bins: Vec<(u16, u64)>,
}

/// The bin of a latency: bin b holds 2^(b/8) to 2^((b+1)/8) nanoseconds.
pub fn bin_of(ns: u64) -> u16 {
    ((ns.max(1) as f64).log2() * f64::from(BINS_PER_OCTAVE)) as u16
}

/// The lower end of a bin, in nanoseconds.
pub fn bin_start_ns(bin: u16) -> f64 {
    (f64::from(bin) / f64::from(BINS_PER_OCTAVE)).exp2()
}

/// The share `part` / `whole` of a number, rounded down.
pub(super) fn share_rounded_down(count: u64, part: u64, whole: u64) -> u64 {
    (u128::from(count) * u128::from(part) / u128::from(whole.max(1))) as u64
}

impl Latencies {
    /// Adds the latencies of a distribution.
    pub fn record<C: Count>(&mut self, latency: &Distribution<C>) {
        self.sum_ns += latency.sum();
        self.max_ns = self.max_ns.max(latency.max().unwrap_or(0));
        let mut bins: Vec<(u16, u64)> = Vec::new();
        for (value, count) in latency.values() {
            match bins.last_mut().filter(|(bin, _)| *bin == bin_of(value)) {
                Some((_, sum)) => *sum += count,
                None => bins.push((bin_of(value), count)),
            }
        }
        self.add_bins(&bins);
    }

    fn add_bins(&mut self, bins: &[(u16, u64)]) {
        for &(bin, count) in bins {
            match self.bins.binary_search_by_key(&bin, |&(known, _)| known) {
                Ok(index) => self.bins[index].1 += count,
                Err(index) => self.bins.insert(index, (bin, count)),
            }
        }
    }

    /// Removes the share `part` / `whole` and returns it, as whole numbers, so that nothing is lost or taken twice.
    pub fn take_share(&mut self, part: u64, whole: u64) -> Self {
        let mean_ns = self.mean_ns().unwrap_or(0.0);
        let mut taken = Self { sum_ns: 0, max_ns: self.max_ns, bins: Vec::new() };
        // The share is taken from all bins together, however few latencies are in each.
        let mut seen = 0;
        for (bin, count) in &mut self.bins {
            let here = share_rounded_down(seen + *count, part, whole) - share_rounded_down(seen, part, whole);
            seen += *count;
            *count -= here;
            taken.bins.push((*bin, here));
        }
        for latencies in [&mut *self, &mut taken] {
            latencies.bins.retain(|&(_, count)| count > 0);
        }
        taken.sum_ns = ((mean_ns * taken.count() as f64).round() as u128).min(self.sum_ns);
        self.sum_ns -= taken.sum_ns;
        taken
    }

    /// True without latencies.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|&(_, count)| count).sum()
    }

    /// True if both contain the same latencies, judged by the exact statistics alone: values of an interval are clamped
    /// to its own extremes, so a value may be in the next bin in a sum.
    pub fn equals_exactly(&self, other: &Self) -> bool {
        (self.count(), self.sum_ns, self.max_ns) == (other.count(), other.sum_ns, other.max_ns)
    }

    /// The exact mean in nanoseconds; `None` without latencies.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// The latency not exceeded by this percentage, in nanoseconds, from the bins: at most 4.5 % off. `None` without
    /// latencies.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        let rank = rank(percent, self.count());
        let mut seen = 0;
        let &(bin, _) = self.bins.iter().find(|&&(_, count)| {
            seen += count;
            seen >= rank
        })?;
        let middle_ns = (bin_start_ns(bin) * bin_start_ns(bin + 1)).sqrt();
        Some(middle_ns.min(self.max_ns as f64))
    }
}

impl AddAssign<&Self> for Latencies {
    fn add_assign(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.add_bins(&other.bins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A distribution of one value.
    fn distribution_of(ns: u64) -> Distribution<u32> {
        let mut distribution = Distribution::default();
        distribution.record(ns);
        distribution
    }

    #[test]
    fn bins_are_an_eighth_of_an_octave() {
        let table =
            [(0, 0), (1, 0), (2, 8), (1_023, 79), (1_024, 80), (1_116, 80), (1_117, 81), (3_600_000_000_000, 333)];
        for (ns, bin) in table {
            assert_eq!(bin_of(ns), bin, "{ns}");
        }
        assert_eq!(bin_start_ns(80), 1_024.0);
    }

    #[test]
    fn means_are_exact() {
        let mut row = Latencies::default();
        assert_eq!((row.mean_ns(), row.percentile_ns(50.0)), (None, None));
        for ns in 1..=1_000 {
            row.record(&distribution_of(ns * 1_000));
        }
        assert_eq!(row.mean_ns(), Some(500_500.0));
        for percent in [10.0, 50.0, 99.0] {
            let got = row.percentile_ns(percent).unwrap();
            let expected = percent * 10_000.0;
            assert!((got / expected - 1.0).abs() < 0.046, "{percent} %: {got}");
        }
        assert_eq!(row.percentile_ns(99.99), Some(1_000_000.0), "never above the largest");
    }
}
