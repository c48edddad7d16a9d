//! The timeline of a run, row by row: completed work and latencies.
//!
//! There are never more than [`ROWS_MAX`] rows: in a longer run, pairs of neighbours are joined.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::latencies::share_rounded_down;
use super::{Count, Errors, Latencies, Stats};

/// Largest number of rows: 20 minutes of one-second rows, and more rows than a screen has columns.
pub const ROWS_MAX: usize = 1200;

/// Initial length of a row, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The rows of a run, all equally long.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Length of each row, in nanoseconds: the initial length times a power of two. The last row ends with the run.
    pub length_ns: u64,
    /// The rows from the start of the run, without gaps.
    pub rows: Vec<RowFigures>,
}

/// The index of an interval's row, given the row length: the row in which the interval began. Workers end their
/// intervals where rows end. Only an interval handed over late, because a thread was stalled, extends past its row.
pub fn row_index_of<C: Count>(interval: &Stats<C>, length_ns: u64) -> u64 {
    // Measurements after the end of the run count in the row that ends with it.
    interval.from_ns.min(interval.until_ns.saturating_sub(1)) / length_ns
}

/// Measurements of one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowFigures {
    /// Requests started; a request returned and sent again counts once.
    #[serde(skip_serializing_if = "is_zero")]
    pub started: u64,
    /// Complete responses.
    #[serde(skip_serializing_if = "is_zero")]
    pub completed: u64,
    /// Requests that failed before their response was complete.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Bytes handed to the kernel.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_sent: u64,
    /// Bytes received.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_received: u64,
    /// The failures, as wrk's totals.
    #[serde(skip_serializing_if = "Errors::is_none")]
    pub errors: Errors,
    /// Requests without a good response in time, each counted once, as in the metric `errors`.
    #[serde(skip_serializing_if = "is_zero")]
    pub erroneous: u64,
    /// The service latencies of complete responses.
    #[serde(skip_serializing_if = "Latencies::is_empty")]
    pub latency: Latencies,
    /// The latencies from due times; empty in a closed loop.
    #[serde(skip_serializing_if = "Latencies::is_empty")]
    pub scheduled: Latencies,
    /// Requests sent more than a millisecond after they were due.
    #[serde(skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Requests never sent because it was too late.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Timeline {
    /// A timeline without rows; each will be `length_ns` long until there are too many.
    pub fn new(length_ns: u64) -> Self {
        Self { length_ns, rows: Vec::new() }
    }

    /// Adds an interval to its row.
    pub fn record<C: Count>(&mut self, interval: &Stats<C>) {
        while row_index_of(interval, self.length_ns) >= ROWS_MAX as u64 {
            self.join_neighbours();
        }
        let index = row_index_of(interval, self.length_ns) as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, RowFigures::default);
        }
        self.rows[index].record(interval);
    }

    /// Ends the timeline of a run of `elapsed_ns`, with rows for all of it.
    pub fn end_run(&mut self, elapsed_ns: u64) {
        while elapsed_ns.div_ceil(self.length_ns) > ROWS_MAX as u64 {
            self.join_neighbours();
        }
        let rows = elapsed_ns.div_ceil(self.length_ns) as usize;
        // Even a run of no length may have recorded something.
        let recorded = self.rows.iter().rposition(|row| *row != RowFigures::default()).map_or(0, |last| last + 1);
        debug_assert!(recorded <= rows.max(1), "nothing is recorded after the end");
        self.rows.resize_with(rows.max(recorded), RowFigures::default);
    }

    /// The sum of all rows.
    pub fn sum_of_rows(&self) -> RowFigures {
        let mut sum = RowFigures::default();
        self.rows.iter().for_each(|row| sum += row);
        sum
    }

    /// True if the rows add up to these totals.
    pub fn adds_up_to<C: Count>(&self, totals: &Stats<C>) -> bool {
        let mut whole = RowFigures::default();
        whole.record(totals);
        self.sum_of_rows().equals_exactly(&whole)
    }

    /// Joins neighbours until each row is `length_ns` long, which must be the current length times a power of two.
    fn join_until(&mut self, length_ns: u64) {
        while self.length_ns < length_ns {
            self.join_neighbours();
        }
    }

    /// Joins each pair of neighbouring rows, which doubles the row length.
    fn join_neighbours(&mut self) {
        self.length_ns *= 2;
        let joined = self.rows.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|second| sum += second);
            sum
        });
        self.rows = joined.collect();
    }
}

/// Adds simultaneous rows of two timelines with equal initial row lengths.
impl AddAssign<&Self> for Timeline {
    fn add_assign(&mut self, other: &Self) {
        let mut other = other.clone();
        self.join_until(other.length_ns);
        other.join_until(self.length_ns);
        if self.rows.len() < other.rows.len() {
            self.rows.resize_with(other.rows.len(), RowFigures::default);
        }
        self.rows.iter_mut().zip(&other.rows).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new(SECOND_NS)
    }
}

impl RowFigures {
    /// Adds the measurements of an interval.
    pub fn record<C: Count>(&mut self, interval: &Stats<C>) {
        let Stats { counters, latency, open_loop, ledger, .. } = interval;
        self.started += counters.started;
        self.completed += counters.completed;
        self.failed += counters.failed;
        self.bytes_sent += counters.bytes_sent;
        self.bytes_received += counters.bytes_received;
        self.errors += ledger.totals();
        self.erroneous += interval.errors();
        self.latency.record(latency);
        if let Some(open_loop) = open_loop.as_deref() {
            self.scheduled.record(&open_loop.scheduled);
            self.late += open_loop.late;
            self.dropped += open_loop.dropped;
        }
    }

    /// True if both rows contain the same measurements, judged by the exact statistics of the latencies, not by their
    /// bins.
    pub fn equals_exactly(&self, other: &Self) -> bool {
        let (latency, scheduled) = (other.latency.clone(), other.scheduled.clone());
        self.latency.equals_exactly(&latency)
            && self.scheduled.equals_exactly(&scheduled)
            && *other == Self { latency, scheduled, ..self.clone() }
    }

    /// Removes the share `part` / `whole` of everything and returns it, as whole numbers, so that nothing is lost or
    /// taken twice.
    pub fn take_share(&mut self, part: u64, whole: u64) -> Self {
        let take = |count: &mut u64| {
            let taken = share_rounded_down(*count, part, whole);
            *count -= taken;
            taken
        };
        Self {
            started: take(&mut self.started),
            completed: take(&mut self.completed),
            failed: take(&mut self.failed),
            bytes_sent: take(&mut self.bytes_sent),
            bytes_received: take(&mut self.bytes_received),
            errors: Errors {
                connect: take(&mut self.errors.connect),
                read: take(&mut self.errors.read),
                write: take(&mut self.errors.write),
                timeout: take(&mut self.errors.timeout),
                status: take(&mut self.errors.status),
                check: take(&mut self.errors.check),
                abandoned: take(&mut self.errors.abandoned),
            },
            erroneous: take(&mut self.erroneous),
            latency: self.latency.take_share(part, whole),
            scheduled: self.scheduled.take_share(part, whole),
            late: take(&mut self.late),
            dropped: take(&mut self.dropped),
        }
    }
}

impl AddAssign<&Self> for RowFigures {
    fn add_assign(&mut self, other: &Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.failed += other.failed;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.errors += other.errors;
        self.erroneous += other.erroneous;
        self.latency += &other.latency;
        self.scheduled += &other.scheduled;
        self.late += other.late;
        self.dropped += other.dropped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Interval, Phase};

    /// An interval of 100 ms that ends `tenths` tenths of a second after the start, with one latency.
    fn interval(tenths: u64, latency_ns: u64) -> Interval {
        let mut interval = Interval::default();
        (interval.from_ns, interval.until_ns) = ((tenths - 1) * SECOND_NS / 10, tenths * SECOND_NS / 10);
        interval.latency.record(latency_ns);
        let open_loop = interval.open_loop.get_or_insert_default();
        open_loop.scheduled.record(latency_ns * 2);
        (open_loop.late, open_loop.dropped) = (3, 4);
        interval.counters.started = 2;
        (interval.counters.completed, interval.counters.failed) = (1, 6);
        interval.counters.bytes_sent = 5;
        interval.counters.bytes_received = 7;
        interval.ledger.record(Phase::Head, Cause::Late, 0, Vec::new);
        interval
    }

    fn completed(timeline: &Timeline) -> Vec<u64> {
        timeline.rows.iter().map(|row| row.completed).collect()
    }

    #[test]
    fn intervals_belong_to_their_starting_row() {
        let mut timeline = Timeline::default();
        for tenths in [1, 9, 10, 11, 35] {
            timeline.record(&interval(tenths, 1_000));
        }
        assert_eq!(completed(&timeline), [3, 1, 0, 1]);
        let errors = Errors { read: 3, ..Errors::default() };
        let expected = RowFigures {
            started: 6,
            completed: 3,
            failed: 18,
            bytes_sent: 15,
            bytes_received: 21,
            errors,
            erroneous: 30,
            latency: Latencies { sum_ns: 3_000, max_ns: 1_000, bins: vec![(79, 3)] },
            scheduled: Latencies { sum_ns: 6_000, max_ns: 2_000, bins: vec![(87, 3)] },
            late: 9,
            dropped: 12,
        };
        assert_eq!(timeline.rows[0], expected);
    }

    #[test]
    fn long_runs_merge_rows_without_loss() {
        let mut timeline = Timeline::default();
        for second in 0..2_500 {
            timeline.record(&interval(second * 10 + 1, 1_000 + second));
        }
        assert_eq!((timeline.length_ns, timeline.rows.len()), (4 * SECOND_NS, 625));
        assert!(timeline.rows.iter().all(|row| row.completed == 4 && row.latency.count() == 4));
    }

    #[test]
    fn year_long_runs_are_merged_at_once() {
        let mut timeline = Timeline::default();
        timeline.record(&interval(366 * 24 * 3600 * 10, 1));
        assert!(timeline.rows.len() <= ROWS_MAX);
        assert_eq!(completed(&timeline).iter().sum::<u64>(), 1);
    }

    #[test]
    fn rows_cover_exactly_the_run() {
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
            // The last interval may begin at the end of the run: requests in flight then are late.
            for (from_ns, until_ns) in [(0, elapsed_ns), (elapsed_ns, elapsed_ns)] {
                timeline.record(&Interval { from_ns, until_ns, ..interval(1, 1_000) });
            }
            timeline.end_run(elapsed_ns);
            assert_eq!((timeline.rows.len(), timeline.sum_of_rows().completed), (rows, 2), "{elapsed_ns}");
        }
        let mut timeline = Timeline::default();
        timeline.record(&Interval::default());
        timeline.end_run(0);
        assert_eq!(timeline.rows, []);
    }

    #[test]
    fn intervals_are_never_split_between_rows() {
        let mut timeline = Timeline::default();
        timeline.record(&Interval { until_ns: 3 * SECOND_NS, ..interval(10, 1_000) });
        timeline.end_run(3 * SECOND_NS);
        assert_eq!(completed(&timeline), [1, 0, 0]);
    }

    #[test]
    fn rows_are_divided_without_loss() {
        let mut whole = RowFigures::default();
        (1..=1_000).for_each(|us| whole.record(&interval(1, us * 1_000)));
        let (mut left, mut sum) = (whole.clone(), RowFigures::default());
        let first = left.take_share(1, 4);
        assert_eq!((first.completed, first.latency.count(), left.completed), (250, 250, 750));
        assert_eq!((first.late, first.dropped), (750, 1_000));
        assert_eq!(first.latency.mean_ns(), whole.latency.mean_ns());
        assert_eq!((first.scheduled.count(), first.scheduled.mean_ns()), (250, whole.scheduled.mean_ns()));
        sum += &first;
        sum += &left.take_share(1, 3);
        sum += &left.take_share(5, 5);
        assert_eq!((sum, left.completed, left.latency.count()), (whole, 0, 0));
    }
}
