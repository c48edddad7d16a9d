//! Sums the workers' intervals for the progress of a run and for its result.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Refused, SAMPLE_NS, WorkerLink};
use onrush_stats::timeline::{SECOND_NS, row_index_of};
use onrush_stats::{Activity, Cause, Count, Counters, ProxyFailure, RowFigures, Stats, Timeline, TlsFailure, Totals};

use super::stages::Stages;
use super::until::StopRule;

/// Maximum time between two hand-overs of a busy worker.
const HAND_OVER: Duration = Duration::from_millis(200);

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress<'a> {
    /// Time since the start of the run, or of its warm-up.
    pub elapsed: Duration,
    /// Length of the warm-up; `None` after its end.
    pub warm_up: Option<Duration>,
    /// Number of responses so far, without the warm-up.
    pub requests: u64,
    /// Upper bound on how many of these responses answer requests that were sent in the warm-up.
    pub carried: u64,
    /// Responses per second over roughly the last second.
    pub requests_per_s: f64,
    /// Start and end of the period over which `requests_per_s` is measured, since the end of the warm-up.
    pub rate_of: (Duration, Duration),
    /// Requests so far without a good response in time, each counted once, as in the metric `errors`.
    pub errors: u64,
    /// Mean lateness of the requests sent in roughly the last second, in nanoseconds; `None` without a schedule or if
    /// none was sent.
    pub late_ns: Option<f64>,
    /// Measurements since the last progress, with distributions. All of these plus the rest after the last one add up
    /// to the run's total.
    pub recent: &'a Totals,
}

/// A row of the timeline: one second of the run. The last row may be shorter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineRow {
    /// Start of the row, in nanoseconds since measuring began.
    pub from_ns: u64,
    /// End of the row, in nanoseconds since measuring began.
    pub until_ns: u64,
    /// Figures of the row.
    pub figures: RowFigures,
    /// Number of machines lost by the end of the row. The row lacks some or all of their measurements.
    pub machines_lost: u64,
}

/// One worker's share so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerProgress {
    /// Its counters.
    pub counters: Counters,
    /// Breakdown of the worker's time.
    pub activity: Activity,
}

/// Rows with all their measurements.
#[derive(Debug)]
pub(super) struct WholeRows {
    row_ns: u64,
    /// Number of rows returned.
    given: u64,
    rows: VecDeque<Totals>,
}

impl WholeRows {
    /// Rows that each cover `row_ns` nanoseconds.
    pub fn new(row_ns: u64) -> Self {
        Self { row_ns, given: 0, rows: VecDeque::new() }
    }

    fn add_interval<C: Count>(&mut self, interval: &Stats<C>) {
        let place = row_index_of(interval, self.row_ns).saturating_sub(self.given) as usize;
        if self.rows.len() <= place {
            self.rows.resize_with(place + 1, Totals::default);
        }
        self.rows[place] += interval;
    }

    /// The next row that all workers have passed. Leading rows may be empty.
    fn next_row(&mut self, past_ns: u64) -> Option<Totals> {
        let from_ns = self.given * self.row_ns;
        if self.rows.is_empty() || past_ns <= from_ns + self.row_ns {
            return None;
        }
        self.given += 1;
        let mut row = self.rows.pop_front()?;
        // A stalled thread that hands over late makes its row longer, but no worker has passed the next rows because of
        // that. A run that ended in its warm-up has no time.
        let least_ns = from_ns + u64::from(row.until_ns > 0);
        (row.from_ns, row.until_ns) = (from_ns, row.until_ns.clamp(least_ns, from_ns + self.row_ns));
        Some(row)
    }
}

/// Number of responses in each tenth of a second, for at least the last minute.
#[derive(Debug, Default)]
pub(super) struct RecentCounts {
    /// Number of the first tenth.
    first: u64,
    counts: Vec<f64>,
}

impl RecentCounts {
    /// Minimum number of tenths kept.
    const KEPT: usize = 600;

    /// Adds responses received between these times: whole tenths, unless a worker handed over late.
    fn add_responses(&mut self, [from_ns, until_ns]: [u64; 2], completed: u64) {
        let (from, until) = (from_ns / SAMPLE_NS, until_ns.div_ceil(SAMPLE_NS).max(from_ns / SAMPLE_NS + 1));
        let place = |tenth: u64| tenth.saturating_sub(self.first) as usize;
        let (from, until, each) = (place(from), place(until), completed as f64 / (until - from) as f64);
        if self.counts.len() < until {
            self.counts.resize(until, 0.0);
        }
        self.counts[from..until].iter_mut().for_each(|count| *count += each);
        if self.counts.len() >= 2 * Self::KEPT {
            self.first += Self::KEPT as u64;
            self.counts.drain(..Self::KEPT);
        }
    }

    /// Returns the counts of the complete tenths of a second of a run of this length.
    pub fn into_counts(mut self, elapsed_ns: u64) -> Vec<f64> {
        self.counts.truncate((elapsed_ns / SAMPLE_NS).saturating_sub(self.first) as usize);
        let first = self.counts.len().saturating_sub(Self::KEPT);
        self.counts.split_off(first)
    }
}

/// Sums the intervals that the workers hand over.
pub struct Collector {
    links: Vec<Arc<WorkerLink>>,
    /// The sum up to the last progress.
    totals: Totals,
    /// Sum since the last progress.
    recent: Totals,
    /// The share of each worker so far.
    pub shares: Vec<WorkerProgress>,
    /// The run second by second.
    pub timeline: Timeline,
    /// The run stage by stage, if the plan has several.
    pub(super) stages: Stages,
    /// Decides when the run may end early, if the plan has `--until`.
    pub(super) stop_rule: Option<StopRule>,
    /// End of each worker's last interval, in nanoseconds; `u64::MAX` after the worker's end.
    past_ns: Vec<u64>,
    /// Number of rows returned.
    given: u64,
    /// The rows that follow, as far as anything was recorded for them.
    seconds: VecDeque<RowFigures>,
    /// Rows with all their measurements, if an observer asked for them.
    pub(super) wholes: Option<WholeRows>,
    /// The responses of the last minute, if an observer asked for them.
    pub(super) recent_counts: Option<RecentCounts>,
    /// Start time and response count of the window for the current rate, about a second ago; including the warm-up.
    mark: (Duration, u64),
    rate: f64,
    rate_of: (Duration, Duration),
    /// Total lateness (in nanoseconds) and number of the requests sent, up to a moment at most a second ago.
    late_mark: (u128, u64),
}

impl Collector {
    /// Collects what these workers hand over.
    pub fn new(links: Vec<Arc<WorkerLink>>) -> Self {
        Self {
            shares: vec![WorkerProgress::default(); links.len()],
            past_ns: vec![0; links.len()],
            links,
            totals: Totals::default(),
            recent: Totals::default(),
            timeline: Timeline::default(),
            stages: Stages::default(),
            stop_rule: None,
            given: 0,
            seconds: VecDeque::new(),
            wholes: None,
            recent_counts: None,
            mark: (Duration::ZERO, 0),
            rate: 0.0,
            rate_of: (Duration::ZERO, Duration::ZERO),
            late_mark: (0, 0),
        }
    }

    /// Takes all intervals handed over so far.
    pub fn collect(&mut self) {
        (0..self.links.len()).for_each(|index| self.collect_from(index));
    }

    fn collect_from(&mut self, index: usize) {
        let link = Arc::clone(&self.links[index]);
        link.mailbox.collect(|interval| self.add_interval(index, interval));
    }

    /// Adds what a finished worker has not handed over yet; `last` is its last interval.
    pub fn end_worker<C: Count>(&mut self, index: usize, last: &Stats<C>) {
        self.collect_from(index);
        self.add_interval(index, last);
        self.past_ns[index] = u64::MAX;
    }

    /// Records that worker `index` has ended and will hand over nothing more.
    pub(super) fn leave_worker(&mut self, index: usize) {
        self.past_ns[index] = u64::MAX;
    }

    /// Adds an interval that worker `index` handed over.
    pub(super) fn add_interval<C: Count>(&mut self, index: usize, interval: &Stats<C>) {
        self.recent += interval;
        let share = &mut self.shares[index];
        share.counters += interval.counters;
        share.activity += interval.activity;
        self.timeline.record(interval);
        self.stages.record_interval(interval);
        self.past_ns[index] = interval.until_ns;
        let row = row_index_of(interval, SECOND_NS);
        debug_assert!(row >= self.given, "no row is returned before all workers are past it");
        let place = row.saturating_sub(self.given) as usize;
        if self.seconds.len() <= place {
            self.seconds.resize_with(place + 1, RowFigures::default);
        }
        self.seconds[place].record(interval);
        if let Some(stop_rule) = &mut self.stop_rule {
            stop_rule.record_interval(place, interval);
        }
        if let Some(wholes) = &mut self.wholes {
            wholes.add_interval(interval);
        }
        if let Some(counts) = &mut self.recent_counts {
            counts.add_responses([interval.from_ns, interval.until_ns], interval.counters.completed);
        }
    }

    /// Adds a row covering several workers of another machine.
    pub(super) fn add_remote_row(&mut self, workers: std::ops::Range<usize>, row: &Totals) {
        self.add_interval(workers.start, row);
        self.past_ns[workers].fill(row.until_ns);
    }

    /// The next full row that all workers have passed or ended in.
    pub(super) fn next_full_row(&mut self) -> Option<Totals> {
        let past_ns = self.past_ns.iter().copied().min().unwrap_or(u64::MAX);
        self.wholes.as_mut()?.next_row(past_ns)
    }

    /// Ends the sums with the run, including workers that have not returned.
    pub(super) fn end_all_workers(&mut self) {
        self.past_ns.fill(u64::MAX);
    }

    /// Takes the next row of the timeline; `None` until all workers have passed its end.
    pub fn next_finished_row(&mut self) -> Option<TimelineRow> {
        let until_ns = (self.given + 1) * SECOND_NS;
        // A worker that is exactly at the end of the row may end there, and then has more to hand over. Once all
        // workers have ended, the end is known.
        let is_past = |past_ns: &u64| *past_ns > until_ns;
        let is_running = self.past_ns.iter().any(|past_ns| *past_ns < u64::MAX);
        (is_running && self.past_ns.iter().all(is_past)).then(|| self.take_row_until(until_ns))
    }

    /// Takes the next row that is left after the end of the run at `elapsed_ns`; `None` after the last.
    pub fn next_remaining_row(&mut self, elapsed_ns: u64) -> Option<TimelineRow> {
        let from_ns = self.given * SECOND_NS;
        let is_left = from_ns < elapsed_ns || self.seconds.iter().any(|figures| *figures != RowFigures::default());
        is_left.then(|| self.take_row_until(elapsed_ns.clamp(from_ns, from_ns + SECOND_NS)))
    }

    fn take_row_until(&mut self, until_ns: u64) -> TimelineRow {
        let from_ns = self.given * SECOND_NS;
        self.given += 1;
        if let Some(stop_rule) = self.stop_rule.as_mut().filter(|_| until_ns - from_ns == SECOND_NS) {
            stop_rule.end_second();
        }
        TimelineRow { from_ns, until_ns, figures: self.seconds.pop_front().unwrap_or_default(), machines_lost: 0 }
    }

    /// True if all workers that had a connection to open were refused.
    pub fn all_refused(&self) -> bool {
        let mut links = self.links.iter();
        links.clone().any(|link| link.found_no_address()) && links.all(|link| link.found_no_address() || link.is_idle())
    }

    /// Takes one refusal that has not been taken yet, if there is one.
    pub fn take_refusal(&self) -> Option<Refused> {
        self.links.iter().find_map(|link| link.take_refusal())
    }

    /// True if an error has occurred that waiting does not resolve; see [`is_hopeless`].
    pub fn is_hopeless(&self) -> bool {
        let mut rows = self.totals.ledger.rows().iter().chain(self.recent.ledger.rows());
        rows.any(|row| is_hopeless(row.cause))
    }

    /// The totals so far. The measurements since the last progress are added to them, and are no longer in the next
    /// progress.
    pub fn totals(&mut self) -> &mut Totals {
        self.totals += &self.recent;
        self.recent.clear();
        &mut self.totals
    }

    /// Passes the progress to `notify` and returns its answer. `since_start` includes the warm-up, whose length is
    /// `warm_up`.
    pub fn report_progress<T>(
        &mut self,
        since_start: Duration,
        warm_up: Duration,
        notify: impl FnOnce(&RunProgress<'_>) -> T,
    ) -> T {
        self.totals += &self.recent;
        let requests = self.totals.counters.completed;
        let before_run = self.links.iter().map(|link| link.warm_up()).sum::<u64>();
        let with_warm_up = requests + before_run;
        let is_warming_up = since_start < warm_up;
        if !is_warming_up && self.mark.0 < warm_up {
            // The rate of the warm-up is measured separately.
            self.mark = (warm_up, before_run);
        }
        let (since, before) = self.mark;
        let until = if is_warming_up { since_start } else { warm_up + self.mean_handed_over(since_start - warm_up) };
        let window = until.saturating_sub(since);
        let is_first = since.is_zero() || since == warm_up;
        if window >= Duration::from_secs(1) || is_first {
            self.rate_of = (since.saturating_sub(warm_up), until.saturating_sub(warm_up));
            self.rate = (with_warm_up - before) as f64 / window.as_secs_f64().max(1e-9);
        }
        let lateness = self.totals.open_loop.as_deref().map(|open_loop| &open_loop.lateness);
        let late = lateness.map_or((0, 0), |lateness| (lateness.sum(), lateness.count()));
        let (late_ns, sent) = (late.0 - self.late_mark.0, late.1 - self.late_mark.1);
        if window >= Duration::from_secs(1) {
            self.mark = (until, with_warm_up);
            self.late_mark = late;
        }
        let elapsed = if is_warming_up { since_start } else { since_start - warm_up };
        let errors = self.totals.errors();
        self.recent.settle_phases();
        let result = notify(&RunProgress {
            elapsed,
            warm_up: is_warming_up.then_some(warm_up),
            requests,
            carried: requests.min(self.totals.counters.carried),
            requests_per_s: self.rate,
            rate_of: self.rate_of,
            errors,
            late_ns: (sent > 0).then(|| late_ns as f64 / sent as f64),
            recent: &self.recent,
        });
        self.recent.clear();
        result
    }

    /// Mean time up to which the workers have handed over. A stalled worker, whose last hand-over is older, counts as
    /// up to date.
    fn mean_handed_over(&self, elapsed: Duration) -> Duration {
        let reach = |&past_ns: &u64| Duration::from_nanos(past_ns).clamp(elapsed.saturating_sub(HAND_OVER), elapsed);
        self.past_ns.iter().map(reach).sum::<Duration>() / self.past_ns.len().max(1) as u32
    }
}

/// True if waiting does not help:
///
/// - the server's certificate was not accepted
/// - the server speaks another version of HTTP, or neither TLS nor text
/// - a proxy refused with a status that blames the client
///
/// A status from the server itself is such a refusal only if it says that the port expects TLS.
pub fn is_hopeless(cause: Cause) -> bool {
    match cause {
        Cause::Protocol(error) => error.is_other_protocol(),
        Cause::Status(_) => true,
        Cause::Tls(TlsFailure::NotTls) => true,
        Cause::Tls(failure) => failure.is_about_certificate() || failure.is_about_protocol(),
        Cause::Proxy(failure) => matches!(failure, ProxyFailure::Status(400..500)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;
    use onrush_stats::Interval;

    use super::*;

    const TENTH_NS: u64 = SECOND_NS / 10;

    fn interval(from_ns: u64, until_ns: u64, completed: u64) -> Interval {
        let mut interval = Interval { from_ns, until_ns, ..Interval::default() };
        interval.counters.completed = completed;
        (0..completed).for_each(|_| interval.latency.record(1_000_000));
        interval
    }

    fn collector(workers: usize) -> Collector {
        Collector::new((0..workers).map(|_| Arc::default()).collect())
    }

    fn bounds_and_completed(second: &TimelineRow) -> (u64, u64, u64) {
        (second.from_ns, second.until_ns, second.figures.completed)
    }

    #[test]
    fn workers_without_connections_need_no_refusal() {
        let collector = collector(2);
        collector.links.iter().for_each(|link| link.show_idle(true));
        assert!(!collector.all_refused(), "no worker has tried");
        collector.links[0].show_idle(false);
        collector.links[0].note_refused("127.0.0.1:80".parse().unwrap(), Cause::Late);
        assert!(collector.all_refused());
        collector.links[1].show_idle(false);
        assert!(!collector.all_refused(), "the other one may be accepted");
    }

    #[test]
    fn seconds_complete_with_the_last_worker() {
        let mut collector = collector(2);
        (0..11).for_each(|tenth| collector.add_interval(0, &interval(tenth * TENTH_NS, (tenth + 1) * TENTH_NS, 1)));
        (0..10).for_each(|tenth| collector.add_interval(1, &interval(tenth * TENTH_NS, (tenth + 1) * TENTH_NS, 100)));
        assert_eq!(collector.next_finished_row(), None, "the second worker may end here and hand over more");
        collector.add_interval(1, &interval(SECOND_NS, SECOND_NS + TENTH_NS, 100));
        assert_eq!(collector.next_finished_row().as_ref().map(bounds_and_completed), Some((0, SECOND_NS, 1_010)));
        assert_eq!(collector.next_finished_row(), None);
        collector.end_worker(0, &interval(SECOND_NS + TENTH_NS, SECOND_NS + TENTH_NS, 7));
        collector.end_worker(1, &interval(SECOND_NS + TENTH_NS, SECOND_NS + TENTH_NS + 5, 7));
        let rest = collector.next_remaining_row(SECOND_NS + TENTH_NS + 5);
        assert_eq!(rest.as_ref().map(bounds_and_completed), Some((SECOND_NS, SECOND_NS + TENTH_NS + 5, 115)));
        assert_eq!(collector.next_remaining_row(SECOND_NS + TENTH_NS + 5), None);
    }

    #[test]
    fn ended_workers_do_not_delay_rows() {
        let mut collector = collector(2);
        collector.end_worker(0, &interval(0, 300, 1));
        (0..25).for_each(|tenth| collector.add_interval(1, &interval(tenth * TENTH_NS, (tenth + 1) * TENTH_NS, 1)));
        assert_eq!(collector.next_finished_row().as_ref().map(bounds_and_completed), Some((0, SECOND_NS, 11)));
        assert_eq!(
            collector.next_finished_row().as_ref().map(bounds_and_completed),
            Some((SECOND_NS, 2 * SECOND_NS, 10))
        );
        assert_eq!(collector.next_finished_row(), None);
    }

    /// Workers hand over early, late or never, end at different times, and are collected in any order.
    #[test]
    fn seconds_match_the_timeline_and_cover_the_run() {
        let mut random = Random::new(5);
        for round in 0..25 {
            let mut collector = collector(1 + random.below(4) as usize);
            let workers = collector.links.len();
            let ends: Vec<u64> = (0..workers)
                .map(|_| match random.below(3) {
                    0 => random.below(5) * SECOND_NS,
                    1 => random.below(50) * TENTH_NS,
                    _ => random.below(5 * SECOND_NS),
                })
                .collect();
            let elapsed_ns = ends.iter().copied().max().unwrap_or(0).max(1);
            let (mut at, mut ended, mut seconds) = (vec![0; workers], vec![false; workers], Vec::new());
            while ended.contains(&false) {
                let index = random.below(workers as u64) as usize;
                if ended[index] {
                    continue;
                }
                let stall = if random.below(20) == 0 { random.below(30) } else { 0 };
                let until_ns = (at[index] / TENTH_NS + 1 + stall) * TENTH_NS;
                if until_ns <= ends[index] {
                    collector.add_interval(index, &interval(at[index], until_ns, random.below(5)));
                    at[index] = until_ns;
                } else {
                    collector.end_worker(index, &interval(at[index], ends[index], random.below(5)));
                    ended[index] = true;
                }
                seconds.extend(std::iter::from_fn(|| collector.next_finished_row()));
            }
            seconds.extend(std::iter::from_fn(|| collector.next_remaining_row(elapsed_ns)));
            collector.timeline.end_run(elapsed_ns);
            let figures: Vec<RowFigures> = seconds.iter().map(|second| second.figures.clone()).collect();
            assert_eq!(figures, collector.timeline.rows, "round {round}");
            assert_eq!(collector.timeline.sum_of_rows().completed, collector.totals().counters.completed);
            assert!(seconds.is_sorted_by(|one, next| one.until_ns == next.from_ns), "{seconds:?}");
            assert_eq!((seconds[0].from_ns, seconds[seconds.len() - 1].until_ns), (0, elapsed_ns));
        }
    }

    #[test]
    fn worker_progress_sums_to_the_total() {
        let mut collector = collector(2);
        for (tenth, index) in [0, 1, 1, 0, 1].into_iter().enumerate() {
            let mut interval = interval(tenth as u64 * TENTH_NS, (tenth as u64 + 1) * TENTH_NS, 10);
            interval.activity =
                Activity { wall_ns: TENTH_NS, user_ns: 1 << tenth, queued_ns: Some(7), ..interval.activity };
            interval.activity.count_wait(tenth);
            collector.add_interval(index, &interval);
        }
        let [first, second] = collector.shares[..] else { panic!("two workers") };
        assert_eq!((first.activity.user_ns, second.activity.user_ns), (0b01001, 0b10110));
        assert_eq!((first.activity.completions_max, second.activity.completions_max), (3, 4));
        assert_eq!((first.counters.completed, second.counters.completed), (20, 30));
        let mut sum = first.activity;
        sum += second.activity;
        assert_eq!(sum, collector.totals().activity);
        assert_eq!(sum.queued_ns, Some(35));
    }

    #[test]
    fn abandoned_requests_are_progress_errors_once() {
        let mut collector = collector(1);
        let mut errors = |counters| {
            let until_ns = SECOND_NS / 2;
            collector.add_interval(0, &Interval { until_ns, counters, ..Interval::default() });
            collector.report_progress(Duration::from_millis(500), Duration::ZERO, |progress| {
                (progress.errors, progress.requests - progress.carried)
            })
        };
        let none = Counters::default();
        assert_eq!(errors(Counters { late: 3, carried: 5, completed: 2, ..none }), (3, 0));
        assert_eq!(errors(Counters { abandoned: 4, late_ended: 3, completed: 4, ..none }), (4, 1));
    }

    #[test]
    fn warm_up_resets_rate_and_requests() {
        let link = Arc::new(WorkerLink::default());
        let mut collector = Collector::new(vec![Arc::clone(&link)]);
        let warm_up = Duration::from_secs(2);
        let mut at = |ms: u64, warmed: u64, completed: u32| {
            link.show_warm_up(warmed);
            let until_ns = (ms * 1_000_000).saturating_sub(2 * SECOND_NS);
            let mut interval = Interval { from_ns: until_ns, until_ns, ..Interval::default() };
            interval.counters.completed = u64::from(completed);
            collector.add_interval(0, &interval);
            collector.report_progress(Duration::from_millis(ms), warm_up, |progress| {
                let RunProgress { elapsed, warm_up, requests, requests_per_s, .. } = *progress;
                (elapsed.as_millis(), warm_up.is_some(), requests, requests_per_s)
            })
        };
        assert_eq!(at(500, 50, 0), (500, true, 0, 100.0));
        assert_eq!(at(1_000, 150, 0), (1_000, true, 0, 150.0));
        assert_eq!(at(1_900, 250, 0), (1_900, true, 0, 150.0));
        assert_eq!(at(2_500, 300, 150), (500, false, 150, 300.0));
        assert_eq!(at(2_750, 300, 150), (750, false, 300, 400.0));
        assert_eq!(at(3_000, 300, 0), (1_000, false, 300, 300.0));
        assert_eq!(at(3_500, 300, 100), (1_500, false, 400, 300.0));
    }

    #[test]
    fn rates_use_the_counted_time() {
        let mut collector = collector(1);
        let ms = Duration::from_millis;
        let mut at = |now_ms: u64, until_tenth: u64| {
            let from_tenth = collector.past_ns[0] / TENTH_NS;
            let completed = (until_tenth - from_tenth) * 100;
            collector.add_interval(0, &interval(from_tenth * TENTH_NS, until_tenth * TENTH_NS, completed));
            collector
                .report_progress(ms(now_ms), Duration::ZERO, |progress| (progress.requests_per_s, progress.rate_of))
        };
        assert_eq!(at(350, 3), (1_000.0, (ms(0), ms(300))));
        assert_eq!(at(1_007, 10), (1_000.0, (ms(0), ms(1_000))));
        assert_eq!(at(1_950, 19), (1_000.0, (ms(0), ms(1_000))));
        assert_eq!(at(2_014, 20), (1_000.0, (ms(1_000), ms(2_000))));
        // A stalled worker completes nothing.
        assert_eq!(at(3_200, 20), (0.0, (ms(2_000), ms(3_000))));
    }

    #[test]
    fn lateness_is_of_the_last_second() {
        let mut collector = collector(1);
        let mut at = |ms: u64, late_ns: &[u64]| {
            let mut interval = Interval { until_ns: ms * 1_000_000, ..Interval::default() };
            let open_loop = interval.open_loop.get_or_insert_default();
            late_ns.iter().for_each(|&late_ns| open_loop.lateness.record(late_ns));
            collector.add_interval(0, &interval);
            collector.report_progress(Duration::from_millis(ms), Duration::ZERO, |progress| progress.late_ns)
        };
        assert_eq!(at(500, &[]), None);
        assert_eq!(at(600, &[10, 20]), Some(15.0));
        assert_eq!(at(1_000, &[30]), Some(20.0));
        assert_eq!(at(1_500, &[70]), Some(70.0));
    }
}
