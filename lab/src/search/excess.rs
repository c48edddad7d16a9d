//! Requests of a run that were slower than a percentile allows.

use onrush_load::run::{Outcome, nanos};
use onrush_plan::condition::{ComparisonOperator, Term, Threshold};
use onrush_plan::metric::{LatencyView, Metric, Statistic};
use onrush_plan::{Condition, Plan};
use onrush_stats::latencies::{bin_of, bin_start_ns};
use onrush_stats::{Distribution, Latencies, OpenLoopStats, RowFigures};

/// Requests of a run that were slower than a percentile of the objective allows.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowExcess {
    /// Allowed share of slow requests: 0.01 for a p99. Failed requests are subtracted, unless nothing would remain.
    pub allowed: f64,
    /// Counts in equal parts of the run, in order.
    pub windows: Vec<PartCounts>,
}

/// Request counts of a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartCounts {
    /// Number of all requests in this part.
    pub requests: f64,
    /// Requests that were too slow or not answered in time. Failed requests are included only if they leave no room for
    /// slow ones.
    pub slow: f64,
}

impl SlowExcess {
    /// Counts the slow requests for the percentile of the objective that is closest to failing, or that fails by most;
    /// `None` without a percentile. The run is divided into `parts` rows of its timeline; the last part includes
    /// everything later.
    pub fn from_outcome(objective: &Condition, plan: &Plan, outcome: &Outcome, parts: usize) -> Option<Self> {
        let all = objective.terms.iter().filter_map(|term| Self::of_term(term, plan, outcome, parts));
        all.max_by(|one, other| one.ratio().total_cmp(&other.ratio()))
    }

    /// Number of slow requests divided by the number allowed; above one, the percentile fails.
    pub fn ratio(&self) -> f64 {
        let sum = |of: fn(&PartCounts) -> f64| self.windows.iter().map(of).sum::<f64>();
        sum(|window| window.slow) / sum(|window| window.requests).max(1.0) / self.allowed
    }

    fn of_term(term: &Term, plan: &Plan, outcome: &Outcome, parts: usize) -> Option<Self> {
        let (view, allowed, limit_ns) = percentile_limit(term)?;
        let is_scheduled = view != LatencyView::Service && plan.schedule.is_some();
        let open_loop = outcome.totals.open_loop.as_deref().filter(|_| is_scheduled);
        let latency = open_loop.map_or(&outcome.totals.latency, |open_loop| &open_loop.scheduled);
        let (unanswered, failed) = match open_loop {
            Some(open_loop) => {
                let OpenLoopStats { later, later_failed, censored, open, .. } = open_loop;
                let slow =
                    |some: &Option<Box<_>>| some.as_deref().map_or(0, |latencies| count_slower(latencies, limit_ns));
                let left = open.as_deref().map_or(0, Distribution::count);
                let given_up = censored.count().saturating_sub(left);
                (given_up + slow(open) + slow(later), (outcome.totals.counters.failed + later_failed) as f64)
            }
            None => (outcome.totals.censored.as_deref().map_or(0, |censored| count_slower(censored, limit_ns)), 0.0),
        };
        let slow = (count_slower(latency, limit_ns) + unanswered) as f64;
        let requests = (latency.count() + unanswered) as f64 + failed;
        // Requests that fail at any load say nothing about the limit: they reduce the room for slow ones.
        let room = allowed * requests - failed;
        let (allowed, slow) =
            if failed > 0.0 && room >= 1.0 { (room / requests, slow) } else { (allowed, slow + failed) };
        let mut windows = vec![PartCounts::default(); parts];
        for (index, row) in outcome.timeline.rows.iter().enumerate() {
            let latencies = if is_scheduled { &row.scheduled } else { &row.latency };
            let window = &mut windows[index.min(parts - 1)];
            window.requests += latencies.count() as f64;
            window.slow += count_slower_in_bins(latencies, limit_ns);
        }
        // The bins are coarse, and exclude unanswered requests: scale to the exact sums.
        let scale = |windows: &mut [PartCounts], field: fn(&mut PartCounts) -> &mut f64, exact: f64| {
            let sum: f64 = windows.iter_mut().map(|window| *field(window)).sum();
            let parts = windows.len() as f64;
            windows.iter_mut().for_each(|window| {
                let value = field(window);
                *value = if sum > 0.0 { *value * exact / sum } else { exact / parts };
            });
        };
        scale(&mut windows, |window| &mut window.requests, requests);
        scale(&mut windows, |window| &mut window.slow, slow);
        windows.iter_mut().for_each(|window| window.requests = window.requests.max(window.slow));
        Some(Self { allowed, windows })
    }
}

/// The latency view, the allowed share of slower requests, and the limit in nanoseconds. `None` for other terms, such
/// as those of one response class, which the timeline does not distinguish.
pub(super) fn percentile_limit(term: &Term) -> Option<(LatencyView, f64, u64)> {
    match (term.metric, term.comparison, term.value) {
        (
            Metric::Latency(
                view @ (LatencyView::Shown | LatencyView::Scheduled | LatencyView::Service),
                Statistic::Percentile(percent),
            ),
            ComparisonOperator::Less | ComparisonOperator::AtMost,
            Threshold::Time(limit),
        ) if percent.value() < 100.0 => Some((view, 1.0 - percent.value() / 100.0, nanos(limit))),
        _ => None,
    }
}

/// Detects during a run at a rate that it has failed, however fast its remaining requests are. Continuing would only
/// overload the target.
#[derive(Debug)]
pub struct Hopeless {
    /// Latency view, limit in nanoseconds, and allowed number of slower requests for each percentile.
    terms: Vec<(LatencyView, u64, f64)>,
    /// Slow requests so far, for each percentile.
    slow: Vec<f64>,
}

/// A run has failed at this multiple of its allowed slow requests.
const HOPELESS: f64 = 2.0;

impl Hopeless {
    /// A detector for a run of at most `requests` requests.
    pub fn new(objective: &Condition, requests: f64) -> Self {
        let most =
            |term: &Term| percentile_limit(term).map(|(view, allowed, ns)| (view, ns, HOPELESS * allowed * requests));
        let terms: Vec<_> = objective.terms.iter().filter_map(most).collect();
        Self { slow: vec![0.0; terms.len()], terms }
    }

    /// Adds a finished part of the run.
    pub fn record(&mut self, part: &RowFigures) {
        for ((view, limit_ns, _), slow) in self.terms.iter().zip(&mut self.slow) {
            let latencies = if *view == LatencyView::Service { &part.latency } else { &part.scheduled };
            // Requests in the same bin as the limit may be faster than the limit, and a run that holds must not be
            // stopped.
            *slow += count_in_later_bins(latencies, bin_of(*limit_ns)) as f64;
        }
    }

    /// True if the run has certainly failed.
    pub fn is_certain(&self) -> bool {
        self.terms.iter().zip(&self.slow).any(|((_, _, most), slow)| slow > most)
    }
}

/// Number of values that exceed a limit.
fn count_slower(all: &Distribution<u64>, limit_ns: u64) -> u64 {
    all.values().filter(|(ns, _)| *ns > limit_ns).map(|(_, count)| count).sum()
}

/// Estimates [`count_slower`] from bins. Values in the same bin as the limit are assumed to be uniformly distributed.
fn count_slower_in_bins(latencies: &Latencies, limit_ns: u64) -> f64 {
    let limit_bin = bin_of(limit_ns);
    let (start, end) = (bin_start_ns(limit_bin), bin_start_ns(limit_bin + 1));
    let share = ((end - limit_ns as f64) / (end - start)).clamp(0.0, 1.0);
    let within = latencies.bins.iter().find(|(bin, _)| *bin == limit_bin).map_or(0, |(_, count)| *count);
    count_in_later_bins(latencies, limit_bin) as f64 + share * within as f64
}

/// Number of values in bins after this one.
fn count_in_later_bins(latencies: &Latencies, bin: u16) -> u64 {
    latencies.bins.iter().filter(|(other, _)| *other > bin).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use onrush_load::fixtures;
    use onrush_plan::Dialect;
    use onrush_plan::search::SearchVariable;
    use onrush_stats::{Interval, Timeline};

    use super::*;
    use crate::search::simulation::search;

    /// A second with `fast` requests of 10 ms and `slow` requests of 80 ms.
    fn second_of_requests(index: u64, fast: u64, slow: u64) -> Interval {
        let mut interval =
            Interval { from_ns: index * 1_000_000_000, until_ns: (index + 1) * 1_000_000_000, ..Interval::default() };
        let scheduled = &mut interval.open_loop.get_or_insert_default().scheduled;
        (0..fast).for_each(|_| scheduled.record(10_000_000));
        (0..slow).for_each(|_| scheduled.record(80_000_000));
        interval
    }

    #[test]
    fn failed_requests_count_as_slow() {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        plan.schedule = Some(fixtures::schedule(100));
        let mut outcome = fixtures::flawless(0, 1);
        (outcome.timeline, outcome.totals.counters.failed) = (Timeline::default(), 6);
        for (index, (fast, slow)) in [(100, 0), (90, 10), (98, 2)].into_iter().enumerate() {
            let interval = second_of_requests(index as u64, fast, slow);
            outcome.timeline.record(&interval);
            outcome.totals += &interval;
        }
        let excess = SlowExcess::from_outcome(&search(SearchVariable::Rate).objective, &plan, &outcome, 2).unwrap();
        assert!((excess.allowed - 0.01).abs() < 1e-9 && (excess.ratio() - 1_800.0 / 306.0).abs() < 1e-6, "{excess:?}");
        // 18 slow requests, none in the first part.
        assert_eq!([excess.windows[0].slow, excess.windows[1].slow.round()], [0.0, 18.0]);
        // Eight of 1,000 requests are slow, and a few failed.
        for (failed, allowed, slow, ratio) in [(0, 0.01, 8.0, 0.8), (4, 0.006, 8.0, 8.0 / 6.0), (10, 0.01, 18.0, 1.8)] {
            let mut outcome = fixtures::flawless(0, 1);
            (outcome.timeline, outcome.totals.counters.failed) = (Timeline::default(), failed);
            let interval = second_of_requests(0, 992 - failed, 8);
            outcome.timeline.record(&interval);
            outcome.totals += &interval;
            let excess = SlowExcess::from_outcome(&search(SearchVariable::Rate).objective, &plan, &outcome, 1).unwrap();
            let is = |one: f64, other: f64| (one - other).abs() < 1e-6;
            assert!(is(excess.allowed, allowed) && is(excess.windows[0].slow, slow), "{failed}: {excess:?}");
            assert!(is(excess.ratio(), ratio), "{failed}: {excess:?}");
        }
        let fast_only = Condition { terms: Vec::new() };
        assert_eq!(SlowExcess::from_outcome(&fast_only, &plan, &outcome, 2), None);
    }

    #[test]
    fn runs_are_hopeless_at_twice_the_allowance() {
        let mut hopeless = Hopeless::new(&search(SearchVariable::Rate).objective, 1_000.0);
        let part = |slow| {
            let mut interval = second_of_requests(0, 100, slow);
            // Below the limit of 50 ms, and in its bin.
            let scheduled = &mut interval.open_loop.get_or_insert_default().scheduled;
            (0..100).for_each(|_| scheduled.record(49_000_000));
            let mut row = RowFigures::default();
            row.record(&interval);
            row
        };
        assert_eq!(bin_of(49_000_000), bin_of(50_000_000));
        hopeless.record(&part(20));
        assert!(!hopeless.is_certain());
        hopeless.record(&part(1));
        assert!(hopeless.is_certain());
    }
}
