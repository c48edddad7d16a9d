//! How long a run of a search lasts.

use std::time::Duration;

use crate::plan::Condition;
use crate::plan::condition::{Metric, Statistic};

/// The shortest time that a run measures.
const SHORTEST: Duration = Duration::from_secs(2);

/// Lengths are multiples of this, so that each part is a multiple of a tenth of a second.
const GRAIN: Duration = Duration::from_millis(500);

/// The number of runs that share the time of a search, if they may be longer than necessary.
const RUNS: u32 = 24;

/// The shortest warm-up of a run, and the part of the measured time that it takes otherwise.
const WARM_UP: Duration = Duration::from_millis(500);
const WARM_UP_SHARE: u32 = 5;

/// The fewest requests of a run: beyond each percentile of the objective, and in total.
const BEYOND: f64 = 10.0;
const REQUESTS_MIN: f64 = 100.0;

/// The number of responses that it takes to judge an objective.
pub fn needed(objective: &Condition) -> f64 {
    let needed = objective.terms.iter().map(|term| match term.metric {
        Metric::Latency(_, Statistic::Percentile(percent)) if percent.value() < 100.0 => {
            BEYOND / (1.0 - percent.value() / 100.0)
        }
        _ => REQUESTS_MIN,
    });
    // The rounding error of the subtraction is no request.
    needed.fold(REQUESTS_MIN, f64::max).round()
}

/// How long a run measures, in a search that may take `budget` in total, at `per_s` responses per second.
pub fn length(budget: Duration, needed: f64, per_s: f64) -> Duration {
    let for_requests = Duration::try_from_secs_f64(needed / per_s).unwrap_or(Duration::MAX);
    let length = SHORTEST.max(budget / RUNS).max(for_requests);
    let grains = length.as_millis().div_ceil(GRAIN.as_millis());
    GRAIN.saturating_mul(u32::try_from(grains).unwrap_or(u32::MAX))
}

/// The warm-up before a run of this length.
pub fn warm_up(length: Duration) -> Duration {
    WARM_UP.max(length / WARM_UP_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::condition::{Comparison, Term, Value, View};

    #[test]
    fn a_run_is_long_enough_for_its_percentile() {
        let term =
            |metric| Term { text: String::new(), metric, comparison: Comparison::Less, value: Value::Number(1.0) };
        let percentile =
            |percent: &str| term(Metric::Latency(View::Shown, Statistic::Percentile(percent.parse().unwrap())));
        let needed = |terms: Vec<Term>| needed(&Condition { terms });
        assert_eq!(needed(vec![percentile("50")]), 100.0);
        assert_eq!(needed(vec![percentile("99"), percentile("99.9")]), 10_000.0);
        assert_eq!(needed(vec![term(Metric::Errors), percentile("100")]), 100.0);
        for (budget_s, needed, per_s, length_ms) in [
            (10, 1_000.0, 50_000.0, 2_000),
            (60, 1_000.0, 500.0, 2_500),
            (60, 1_000.0, 120.0, 8_500),
            (600, 100.0, 500.0, 25_000),
        ] {
            assert_eq!(length(Duration::from_secs(budget_s), needed, per_s), Duration::from_millis(length_ms));
        }
        assert!(length(Duration::from_secs(60), 1_000.0, 0.0) > Duration::from_secs(1 << 30));
        assert_eq!([2, 5].map(|s| warm_up(Duration::from_secs(s))), [500, 1_000].map(Duration::from_millis));
    }
}
