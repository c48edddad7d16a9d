//! A run second by second: how much was done in each stretch of it, and how long it took.
//!
//! There are never more than [`ROWS_MAX`] rows: where a run lasts longer, two neighbours become one. A row keeps its
//! latencies in logarithmic bins, eight to an octave, of which only those that are not empty take room.

use std::ops::AddAssign;

use super::{Count, Distribution, Errors, Stats, rank};

/// Most rows; more than a screen has columns, and 20 minutes at a second each.
pub const ROWS_MAX: usize = 1200;

/// The length of a row before any were joined, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Bins of latency between a value and its double.
pub const BINS_PER_OCTAVE: u32 = 8;

/// The stretches of a run, all of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// How long each row is, in nanoseconds: [`SECOND_NS`] times a power of two. The last one ends with the run.
    pub length_ns: u64,
    /// The rows from the start of the run on, without gaps.
    pub rows: Vec<Stretch>,
}

/// The row to which an interval belongs, where rows are so long: the one in which it began. Workers end their intervals
/// where rows end; only one that is handed over late, because a thread was stalled, goes beyond its row.
pub fn row_of<C: Count>(interval: &Stats<C>, length_ns: u64) -> u64 {
    // What is recorded when the run has ended belongs to the row that ends with it.
    interval.from_ns.min(interval.until_ns.saturating_sub(1)) / length_ns
}

/// What was done in one stretch of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Requests started, those that were returned and started again counted once.
    pub started: u64,
    /// Responses complete.
    pub completed: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// What went wrong.
    pub errors: Errors,
    /// The sum of the latencies, in nanoseconds.
    pub latency_sum_ns: u128,
    /// The largest of them; zero if there is none.
    pub latency_max_ns: u64,
    /// Latencies by [`bin_of`] and how often each came, ascending.
    pub latency_bins: Vec<(u16, u64)>,
}

/// The bin of a latency: bin b holds those from 2^(b/8) to 2^((b+1)/8) nanoseconds.
pub fn bin_of(ns: u64) -> u16 {
    ((ns.max(1) as f64).log2() * f64::from(BINS_PER_OCTAVE)) as u16
}

/// Where a bin begins, in nanoseconds.
pub fn bin_start_ns(bin: u16) -> f64 {
    (f64::from(bin) / f64::from(BINS_PER_OCTAVE)).exp2()
}

impl Timeline {
    /// Takes note of what was recorded in an interval.
    pub fn record<C: Count>(&mut self, interval: &Stats<C>) {
        while row_of(interval, self.length_ns) >= ROWS_MAX as u64 {
            self.coarsen();
        }
        let index = row_of(interval, self.length_ns) as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, Stretch::default);
        }
        self.rows[index].record(interval);
    }

    /// The run has ended after so many nanoseconds: from now on there are rows for all of it.
    pub fn end(&mut self, elapsed_ns: u64) {
        while elapsed_ns.div_ceil(self.length_ns) > ROWS_MAX as u64 {
            self.coarsen();
        }
        let rows = elapsed_ns.div_ceil(self.length_ns) as usize;
        // A run without any length may have something to say nevertheless.
        let recorded = self.rows.iter().rposition(|row| *row != Stretch::default()).map_or(0, |last| last + 1);
        debug_assert!(recorded <= rows.max(1), "nothing is recorded after the end");
        self.rows.resize_with(rows.max(recorded), Stretch::default);
    }

    /// Everything in it.
    pub fn sum(&self) -> Stretch {
        let mut sum = Stretch::default();
        self.rows.iter().for_each(|row| sum += row);
        sum
    }

    /// Whether its rows add up to these totals.
    pub fn is_all_of<C: Count>(&self, totals: &Stats<C>) -> bool {
        let (mut whole, sum) = (Stretch::default(), self.sum());
        whole.record(totals);
        // The bins of an interval are clamped to its own extremes, so that a value may move to the next bin in the sum.
        (sum.latencies(), whole.latencies()) == (totals.latency.count(), totals.latency.count())
            && whole == Stretch { latency_bins: whole.latency_bins.clone(), ..sum }
    }

    /// Joins neighbours.
    fn coarsen(&mut self) {
        self.length_ns *= 2;
        let joined = self.rows.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|second| sum += second);
            sum
        });
        self.rows = joined.collect();
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self { length_ns: SECOND_NS, rows: Vec::new() }
    }
}

impl Stretch {
    /// Adds what was recorded in an interval.
    pub fn record<C: Count>(&mut self, interval: &Stats<C>) {
        let Stats { counters, latency, ledger, .. } = interval;
        // A request may be returned in a later interval than the one it was started in.
        self.started = (self.started + counters.started).saturating_sub(counters.returned);
        self.completed += counters.completed;
        self.bytes_sent += counters.bytes_sent;
        self.bytes_received += counters.bytes_received;
        self.errors += ledger.totals();
        self.latency(latency);
    }

    fn latency<C: Count>(&mut self, latency: &Distribution<C>) {
        self.latency_sum_ns += latency.sum();
        self.latency_max_ns = self.latency_max_ns.max(latency.max().unwrap_or(0));
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
            match self.latency_bins.binary_search_by_key(&bin, |&(known, _)| known) {
                Ok(index) => self.latency_bins[index].1 += count,
                Err(index) => self.latency_bins.insert(index, (bin, count)),
            }
        }
    }

    /// Takes the share `part` / `whole` of everything out of it; in numbers, so that nothing is lost or taken twice.
    pub fn take(&mut self, part: u64, whole: u64) -> Self {
        let share = |count: u64| (u128::from(count) * u128::from(part) / u128::from(whole.max(1))) as u64;
        let take = |count: &mut u64| {
            let taken = share(*count);
            *count -= taken;
            taken
        };
        let mean_ns = self.mean_ns().unwrap_or(0.0);
        let mut taken = Self {
            started: take(&mut self.started),
            completed: take(&mut self.completed),
            bytes_sent: take(&mut self.bytes_sent),
            bytes_received: take(&mut self.bytes_received),
            errors: Errors {
                connect: take(&mut self.errors.connect),
                read: take(&mut self.errors.read),
                write: take(&mut self.errors.write),
                timeout: take(&mut self.errors.timeout),
                status: take(&mut self.errors.status),
            },
            latency_sum_ns: 0,
            latency_max_ns: self.latency_max_ns,
            latency_bins: Vec::new(),
        };
        // All bins together give their share, however few are in each.
        let mut seen = 0;
        for (bin, count) in &mut self.latency_bins {
            let here = share(seen + *count) - share(seen);
            seen += *count;
            *count -= here;
            taken.latency_bins.push((*bin, here));
        }
        for stretch in [&mut *self, &mut taken] {
            stretch.latency_bins.retain(|&(_, count)| count > 0);
        }
        taken.latency_sum_ns = ((mean_ns * taken.latencies() as f64).round() as u128).min(self.latency_sum_ns);
        self.latency_sum_ns -= taken.latency_sum_ns;
        taken
    }

    /// How many latencies there are.
    pub fn latencies(&self) -> u64 {
        self.latency_bins.iter().map(|&(_, count)| count).sum()
    }

    /// The mean latency in nanoseconds, exactly; `None` without any.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.latencies();
        (count > 0).then(|| self.latency_sum_ns as f64 / count as f64)
    }

    /// The latency that so many per cent did not exceed, in nanoseconds, from the bins: at most 4.5 % off. `None`
    /// without any.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        let rank = rank(percent, self.latencies());
        let mut seen = 0;
        let &(bin, _) = self.latency_bins.iter().find(|&&(_, count)| {
            seen += count;
            seen >= rank
        })?;
        let middle_ns = (bin_start_ns(bin) * bin_start_ns(bin + 1)).sqrt();
        Some(middle_ns.min(self.latency_max_ns as f64))
    }
}

impl AddAssign<&Self> for Stretch {
    fn add_assign(&mut self, other: &Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.errors += other.errors;
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
        self.add_bins(&other.latency_bins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Cause, Interval, Phase};

    /// An interval of 100 ms that ends `tenths` tenths of a second after the start, with one latency.
    fn interval(tenths: u64, latency_ns: u64) -> Interval {
        let mut interval = Interval::default();
        (interval.from_ns, interval.until_ns) = ((tenths - 1) * SECOND_NS / 10, tenths * SECOND_NS / 10);
        interval.latency.record(latency_ns);
        interval.counters.started = 3;
        interval.counters.returned = 1;
        interval.counters.completed = 1;
        interval.counters.bytes_sent = 5;
        interval.counters.bytes_received = 7;
        interval.ledger.record(Phase::Head, Cause::Late, 0, Vec::new);
        interval
    }

    fn completed(timeline: &Timeline) -> Vec<u64> {
        timeline.rows.iter().map(|row| row.completed).collect()
    }

    #[test]
    fn an_interval_belongs_to_the_row_in_which_it_began() {
        let mut timeline = Timeline::default();
        for tenths in [1, 9, 10, 11, 35] {
            timeline.record(&interval(tenths, 1_000));
        }
        assert_eq!(completed(&timeline), [3, 1, 0, 1]);
        let errors = Errors { read: 3, ..Errors::default() };
        let expected = Stretch {
            started: 6,
            completed: 3,
            bytes_sent: 15,
            bytes_received: 21,
            errors,
            latency_sum_ns: 3_000,
            latency_max_ns: 1_000,
            latency_bins: vec![(79, 3)],
        };
        assert_eq!(timeline.rows[0], expected);
    }

    #[test]
    fn a_run_that_lasts_longer_has_longer_rows_and_loses_nothing() {
        let mut timeline = Timeline::default();
        for second in 0..2_500 {
            timeline.record(&interval(second * 10 + 1, 1_000 + second));
        }
        assert_eq!((timeline.length_ns, timeline.rows.len()), (4 * SECOND_NS, 625));
        assert!(timeline.rows.iter().all(|row| row.completed == 4 && row.latencies() == 4));
    }

    #[test]
    fn an_end_after_a_year_fits_at_once() {
        let mut timeline = Timeline::default();
        timeline.record(&interval(366 * 24 * 3600 * 10, 1));
        assert!(timeline.rows.len() <= ROWS_MAX);
        assert_eq!(completed(&timeline).iter().sum::<u64>(), 1);
    }

    #[test]
    fn rows_cover_the_run_and_nothing_else_whatever_its_length() {
        for (elapsed_ns, rows) in [
            (1, 1),
            (SECOND_NS - 1, 1),
            (SECOND_NS, 1),
            (SECOND_NS + 1, 2),
            (10 * SECOND_NS, 10),
            (1_200 * SECOND_NS, 1_200),
            (1_200 * SECOND_NS + 1, 601),
        ] {
            let mut timeline = Timeline::default();
            // The last interval may begin where the run ends: requests that are open then are late.
            for (from_ns, until_ns) in [(0, elapsed_ns), (elapsed_ns, elapsed_ns)] {
                timeline.record(&Interval { from_ns, until_ns, ..interval(1, 1_000) });
            }
            timeline.end(elapsed_ns);
            assert_eq!((timeline.rows.len(), timeline.sum().completed), (rows, 2), "{elapsed_ns}");
        }
        let mut timeline = Timeline::default();
        timeline.record(&Interval::default());
        timeline.end(0);
        assert_eq!(timeline.rows, []);
    }

    #[test]
    fn an_interval_that_goes_beyond_its_row_stays_in_it() {
        let mut timeline = Timeline::default();
        timeline.record(&Interval { until_ns: 3 * SECOND_NS, ..interval(10, 1_000) });
        timeline.end(3 * SECOND_NS);
        assert_eq!(completed(&timeline), [1, 0, 0]);
    }

    #[test]
    fn a_stretch_is_divided_without_loss() {
        let mut whole = Stretch::default();
        (1..=1_000).for_each(|us| whole.record(&interval(1, us * 1_000)));
        let (mut left, mut sum) = (whole.clone(), Stretch::default());
        let first = left.take(1, 4);
        assert_eq!((first.completed, first.latencies(), left.completed), (250, 250, 750));
        assert_eq!(first.mean_ns(), whole.mean_ns());
        sum += &first;
        sum += &left.take(1, 3);
        sum += &left.take(5, 5);
        assert_eq!((sum, left.completed, left.latencies()), (whole, 0, 0));
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
    fn percentiles_come_from_the_bins_and_the_mean_does_not() {
        let mut row = Stretch::default();
        assert_eq!((row.mean_ns(), row.percentile_ns(50.0)), (None, None));
        for ns in 1..=1_000 {
            row.record(&interval(1, ns * 1_000));
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
