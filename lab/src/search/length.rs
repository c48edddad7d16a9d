//! Length of the runs of a search.

use std::time::Duration;

use onrush_plan::Condition;
use onrush_plan::metric::{Metric, Statistic};
use onrush_plan::search::Search;

use super::point::lowest_latency_limit_ns;

/// Shortest measured time of a run, if the search is long enough.
const SHORTEST: Duration = Duration::from_secs(2);

/// Lengths are multiples of this, so that each window is a multiple of a tenth of a second.
const GRAIN: Duration = Duration::from_millis(500);

/// A run takes at least this fraction of a search ...
const RUNS: u32 = 30;
/// ... and at most this one, however many responses its percentile needs: runs are pooled.
const RUNS_MIN: u32 = 8;

/// Settling time of a target. The longest of three times: this minimum, a fraction of the measured time, and a multiple
/// of the latency limit, because a queue takes that long to grow to that length. The last is skipped for runs shorter
/// than twice its value.
const SETTLE: Duration = Duration::from_millis(500);
const SETTLE_SHARE: u32 = 5;
const SETTLE_LATENCIES: f64 = 10.0;

/// Minimum number of requests per run: beyond each percentile of the objective, and in total.
const BEYOND: f64 = 10.0;
const REQUESTS_MIN: f64 = 100.0;

/// Number of responses needed to judge an objective.
pub fn responses_needed(objective: &Condition) -> f64 {
    let needed = objective.terms.iter().map(|term| match term.metric {
        Metric::Latency(_, Statistic::Percentile(percent)) if percent.value() < 100.0 => {
            BEYOND / (1.0 - percent.value() / 100.0)
        }
        _ => REQUESTS_MIN,
    });
    // The subtraction has a rounding error below one request.
    needed.fold(REQUESTS_MIN, f64::max).round()
}

/// Measured time of a run at `per_s` responses per second, but no less than `least`. `budget` is the time limit of the
/// whole search.
pub(super) fn run_length(budget: Duration, needed: f64, per_s: f64, least: Duration) -> Duration {
    let for_requests = Duration::try_from_secs_f64(needed / per_s).unwrap_or(Duration::MAX);
    let length = for_requests.max(SHORTEST).min(budget / RUNS_MIN).max(budget / RUNS).max(least);
    let grains = length.as_millis().div_ceil(GRAIN.as_millis());
    GRAIN.saturating_mul(u32::try_from(grains).unwrap_or(u32::MAX))
}

/// Rounds down to a multiple of [`GRAIN`].
pub(super) fn whole_grains(length: Duration) -> Duration {
    GRAIN * u32::try_from(length.as_millis() / GRAIN.as_millis()).unwrap_or(u32::MAX)
}

/// Settling time before a run that measures for `length`.
pub(super) fn settling_time(search: &Search, length: Duration) -> Duration {
    let typed = search.plan.warmup;
    if !typed.is_zero() {
        return typed;
    }
    let allowed =
        lowest_latency_limit_ns(&search.objective).map_or(Duration::ZERO, |ns| Duration::from_nanos(ns as u64));
    let queue = allowed.mul_f64(SETTLE_LATENCIES).min(length / 2);
    let settle = SETTLE.max(length / SETTLE_SHARE).max(queue);
    Duration::from_millis(settle.as_millis().next_multiple_of(100) as u64)
}
