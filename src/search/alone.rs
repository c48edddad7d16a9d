//! Requests that were sent one at a time, without any load: how fast the target can be at all.

use onrush_plan::Condition;
use onrush_plan::condition::{Comparison, Metric, Statistic, Term};

use super::point::term_limit_ns;
use crate::run::Outcome;

/// The requests that were sent one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// How many had a response.
    pub responses: u64,
    /// The shortest latency of them, in nanoseconds.
    pub least_ns: u64,
}

/// If an objective held, all of these requests were too slow by chance with no higher probability than this.
const CHANCE: f64 = 1e-3;

/// The share of requests that are at least as slow as the objective allows, if it says nothing about their share.
const OTHERWISE: f64 = 0.5;

impl Alone {
    /// None yet.
    pub const NONE: Self = Self { responses: 0, least_ns: u64::MAX };

    /// Adds a run in which one request was in flight at a time.
    pub fn record(&mut self, outcome: &Outcome) {
        let latency = &outcome.totals.latency;
        if latency.count() > 0 {
            self.responses += latency.count();
            self.least_ns = self.least_ns.min(latency.percentile(0.0));
        }
    }

    /// Whether all of them were so much slower than an objective allows that it holds at no load: load makes no request
    /// faster.
    pub fn exceeds(&self, objective: &Condition) -> bool {
        objective.terms.iter().any(|term| {
            let is_slow = term_limit_ns(term).is_some_and(|limit_ns| self.least_ns as f64 > limit_ns);
            is_slow && is_upper(term) && self.responses >= enough(term)
        })
    }
}

/// Whether a term says how slow requests may be.
fn is_upper(term: &Term) -> bool {
    matches!(term.comparison, Comparison::Less | Comparison::AtMost)
}

/// How many requests in a row are too slow by no chance.
fn enough(term: &Term) -> u64 {
    let slow = match term.metric {
        Metric::Latency(_, Statistic::Percentile(percent)) => 1.0 - percent.value() / 100.0,
        _ => OTHERWISE,
    };
    (CHANCE.ln() / slow.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON).ln()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use onrush_plan::search::Over;

    use super::*;
    use crate::report::fixtures;
    use crate::search::simulation::search;

    #[test]
    fn an_objective_cannot_hold_once_so_many_requests_alone_were_too_slow_as_chance_does_not_explain() {
        let p99 = search(Over::Rate).objective;
        let mut p50 = p99.clone();
        let percent = "50".parse().unwrap();
        let Metric::Latency(view, _) = p50.terms[0].metric else { panic!() };
        p50.terms[0].metric = Metric::Latency(view, Statistic::Percentile(percent));
        let mut above = p99.clone();
        above.terms[0].comparison = Comparison::More;
        let alone = |responses, ms: u64| Alone { responses, least_ns: ms * 1_000_000 };
        for (objective, alone, expected) in [
            (&p99, Alone::NONE, false),
            (&p99, alone(1, 300), false),
            (&p99, alone(2, 300), true),
            (&p99, alone(100, 49), false),
            (&p50, alone(9, 300), false),
            (&p50, alone(10, 300), true),
            (&above, alone(100, 300), false),
        ] {
            assert_eq!(alone.exceeds(objective), expected, "{objective} {alone:?}");
        }
        let mut outcome = fixtures::flawless(0, 1);
        let mut alone = Alone::NONE;
        alone.record(&outcome);
        assert_eq!(alone, Alone::NONE);
        [60_000_000, 300_000_000].into_iter().for_each(|ns| outcome.totals.latency.record(ns));
        alone.record(&outcome);
        assert!(alone.responses == 2 && alone.least_ns.abs_diff(60_000_000) < 100_000, "{alone:?}");
    }
}
