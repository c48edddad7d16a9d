//! Requests sent one at a time, without any load: the best latency that the target can reach.

use std::time::Duration;

use onrush_load::run::Outcome;
use onrush_plan::Condition;
use onrush_plan::condition::{ComparisonOperator, Term};
use onrush_plan::metric::{Metric, Statistic};
use onrush_plan::search::Search;

use super::point::latency_limit_ns;
use super::{ClosedLoop, Point, Starvation};

/// Requests sent one at a time while no thread waited for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// Number of requests with a response.
    pub responses: u64,
    /// Shortest latency of these requests, in nanoseconds; `u64::MAX` without responses.
    pub least_ns: u64,
    /// Time of the first response since the start of the search.
    pub from: Duration,
    /// Time of the last response since the start of the search.
    pub until: Duration,
}

/// Highest probability that all of these requests are slow by chance although the objective holds.
const CHANCE: f64 = 1e-3;

/// A target may be slow at first: the requests are spread over at least one third of the search.
const PARTS: u32 = 3;

impl Alone {
    /// No requests sent yet.
    pub const NONE: Self = Self { responses: 0, least_ns: u64::MAX, from: Duration::MAX, until: Duration::ZERO };

    /// Adds the responses of a run with one request in flight at a time, unless a thread waited notably for a
    /// processor. The run ended at `now`, counted from the start of the search.
    pub fn record(&mut self, outcome: &Outcome, now: Duration) {
        let latency = &outcome.totals.latency;
        if latency.count() > 0 && !Starvation::from_outcome(outcome).matters() {
            self.responses += latency.count();
            self.least_ns = self.least_ns.min(latency.percentile(0.0));
            self.from = self.from.min(now);
            self.until = self.until.max(now);
        }
    }

    /// Time between the first and the last response.
    pub fn covered_time(&self) -> Duration {
        self.until.saturating_sub(self.from)
    }

    /// Time for which a search must have sent single requests before it may conclude that no load can hold.
    pub fn enough_time(search: &Search) -> Duration {
        search.budget / PARTS
    }

    /// True if no load can hold in this search. False if any run held, or if starvation casts doubt on a failure.
    pub fn is_hopeless(&self, search: &Search, look: Option<ClosedLoop>, points: &[Point]) -> bool {
        let has_held = look.is_some_and(|look| look.holds) || points.iter().any(Point::holds);
        let is_doubted = points.iter().any(|point| point.is_clean() && point.starved.matters());
        !has_held
            && !is_doubted
            && self.covered_time() >= Self::enough_time(search)
            && self.exceeds_objective(&search.objective)
    }

    /// True if the responses were so slow that the objective can hold at no load: load makes no request faster.
    pub fn exceeds_objective(&self, objective: &Condition) -> bool {
        let upper = objective.terms.iter().filter(|term| is_upper(term));
        let mut limits = upper.filter_map(|term| Some((term, latency_limit_ns(term)?)));
        limits.any(|(term, limit_ns)| {
            self.least_ns as f64 > limit_ns && self.responses >= self.responses_ruling_out_chance(term, limit_ns)
        })
    }

    /// Number of consecutive slow requests that rules out chance.
    fn responses_ruling_out_chance(&self, term: &Term, limit_ns: f64) -> u64 {
        // Largest share of requests that may be this slow if the objective holds.
        let slow = match term.metric {
            Metric::Latency(_, Statistic::Percentile(percent)) => 1.0 - percent.value() / 100.0,
            Metric::Latency(_, Statistic::Max) => 0.0,
            Metric::Latency(_, Statistic::Mean) => limit_ns / self.least_ns as f64,
            _ => 1.0,
        };
        (CHANCE.ln() / slow.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON).ln()).ceil() as u64
    }
}

/// True if a term is an upper bound.
fn is_upper(term: &Term) -> bool {
    matches!(term.comparison, ComparisonOperator::Less | ComparisonOperator::AtMost)
}

#[cfg(test)]
mod tests {
    use onrush_load::fixtures;
    use onrush_load::run::WorkerShare;
    use onrush_plan::search::SearchVariable;
    use onrush_stats::{Activity, Counters};

    use super::*;
    use crate::search::simulation::{points, search};

    #[test]
    fn objectives_fail_if_single_requests_miss() {
        let p99 = search(SearchVariable::Rate).objective;
        let mut p50 = p99.clone();
        let percent = "50".parse().unwrap();
        let Metric::Latency(view, _) = p50.terms[0].metric else { panic!() };
        p50.terms[0].metric = Metric::Latency(view, Statistic::Percentile(percent));
        let mut above = p99.clone();
        above.terms[0].comparison = ComparisonOperator::More;
        let with = |statistic| {
            let mut objective = p99.clone();
            objective.terms[0].metric = Metric::Latency(view, statistic);
            objective
        };
        let [mean, max, least, stdev] = [Statistic::Mean, Statistic::Max, Statistic::Least, Statistic::Stdev].map(with);
        let alone = |responses, ms: u64| Alone { responses, least_ns: ms * 1_000_000, ..Alone::NONE };
        for (objective, alone, expected) in [
            (&p99, Alone::NONE, false),
            (&p99, alone(1, 300), false),
            (&p99, alone(2, 300), true),
            (&p99, alone(100, 49), false),
            (&p50, alone(9, 300), false),
            (&p50, alone(10, 300), true),
            (&above, alone(100, 300), false),
            // Four of five requests may take 60 ms and the others 10 ms: 50 ms on average.
            (&mean, alone(37, 60), false),
            (&mean, alone(38, 60), true),
            (&mean, alone(3, 300), false),
            (&mean, alone(4, 300), true),
            (&max, alone(1, 51), true),
            (&least, alone(1_000, 300), false),
            (&stdev, alone(1_000, 300), false),
        ] {
            assert_eq!(alone.exceeds_objective(objective), expected, "{objective} {alone:?}");
        }
    }

    #[test]
    fn single_requests_under_starvation_are_ignored() {
        let mut outcome = fixtures::flawless(0, 1);
        let mut alone = Alone::NONE;
        let seconds = Duration::from_secs;
        alone.record(&outcome, seconds(1));
        assert_eq!(alone, Alone::NONE);
        [60_000_000, 300_000_000].into_iter().for_each(|ns| outcome.totals.latency.record(ns));
        alone.record(&outcome, seconds(2));
        assert!(alone.responses == 2 && alone.least_ns.abs_diff(60_000_000) < 100_000, "{alone:?}");
        assert_eq!(alone.covered_time(), Duration::ZERO);
        alone.record(&outcome, seconds(5));
        assert_eq!((alone.responses, alone.covered_time()), (4, seconds(3)));
        let known = alone;
        let activity = Some(Activity { wall_ns: 100, queued_ns: Some(50), ..Activity::default() });
        outcome.workers = vec![WorkerShare { connections: 1, counters: Counters::default(), activity }];
        alone.record(&outcome, seconds(9));
        assert_eq!(alone, known);
    }

    #[test]
    fn slow_single_requests_make_searches_hopeless() {
        let search = search(SearchVariable::Rate);
        let alone = |seconds| Alone {
            responses: 9,
            least_ns: 300_000_000,
            from: Duration::ZERO,
            until: Duration::from_secs(seconds),
        };
        let failed = points(&[(480, false), (480, false)]);
        let look = |holds| Some(ClosedLoop { connections: 10, per_s: 33.0, holds });
        assert!(alone(20).is_hopeless(&search, None, &failed) && alone(20).is_hopeless(&search, look(false), &[]));
        assert!(!alone(19).is_hopeless(&search, None, &failed), "the target may be cold");
        assert!(!alone(20).is_hopeless(&search, look(true), &failed));
        assert!(!alone(20).is_hopeless(&search, None, &points(&[(480, false), (240, true)])));
        let mut starved = failed;
        starved[1].starved.target = 0.95;
        assert!(!alone(20).is_hopeless(&search, None, &starved), "with a processor it may be faster");
    }
}
