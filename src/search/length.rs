//! How long a run of a search lasts.

use std::time::Duration;

use onrush_plan::Condition;
use onrush_plan::metric::{Metric, Statistic};
use onrush_plan::search::Search;

use super::point::limit_ns;

/// The shortest time that a run measures, if the search is long enough for that.
const SHORTEST: Duration = Duration::from_secs(2);

/// Lengths are multiples of this, so that each part is a multiple of a tenth of a second.
const GRAIN: Duration = Duration::from_millis(500);

/// A run takes at least this part of a search ...
const RUNS: u32 = 30;
/// ... and at most this one, however many responses its percentile needs: runs are added up.
const RUNS_MIN: u32 = 8;

/// Settling time of a target: at least this, else this part of the measured time, or this many times the latency that
/// the objective allows, because a queue that long takes that time to form. The last is skipped for runs shorter than
/// twice that time.
const SETTLE: Duration = Duration::from_millis(500);
const SETTLE_SHARE: u32 = 5;
const SETTLE_LATENCIES: f64 = 10.0;

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

/// How long a run measures, in a search that may take `budget` in total, at `per_s` responses per second, if it should
/// be no shorter than `least`.
pub(super) fn length(budget: Duration, needed: f64, per_s: f64, least: Duration) -> Duration {
    let for_requests = Duration::try_from_secs_f64(needed / per_s).unwrap_or(Duration::MAX);
    let length = for_requests.max(SHORTEST).min(budget / RUNS_MIN).max(budget / RUNS).max(least);
    let grains = length.as_millis().div_ceil(GRAIN.as_millis());
    GRAIN.saturating_mul(u32::try_from(grains).unwrap_or(u32::MAX))
}

/// The time rounded down to whole grains.
pub(super) fn whole_grains(length: Duration) -> Duration {
    GRAIN * u32::try_from(length.as_millis() / GRAIN.as_millis()).unwrap_or(u32::MAX)
}

/// How long the target settles before a run measures for this length.
pub(super) fn settle(search: &Search, length: Duration) -> Duration {
    let typed = search.plan.warmup;
    if !typed.is_zero() {
        return typed;
    }
    let allowed = limit_ns(&search.objective).map_or(Duration::ZERO, |ns| Duration::from_nanos(ns as u64));
    let queue = allowed.mul_f64(SETTLE_LATENCIES).min(length / 2);
    let settle = SETTLE.max(length / SETTLE_SHARE).max(queue);
    Duration::from_millis(settle.as_millis().next_multiple_of(100) as u64)
}
