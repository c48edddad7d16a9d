//! Rates of a run, reached and requested.

use std::time::Duration;

use onrush_plan::Plan;
use onrush_plan::schedule::Arrivals;
use onrush_stats::{Counters, Errors, RowFigures, Timeline};

use super::bounds;
use crate::run::{Outcome, RunEnd};

/// A count per second; zero if no time has passed.
pub fn count_per_second(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

/// The mean rate of due requests during the run, per second. After the last request of `-n`, the schedule is assumed to
/// continue. `None` without a schedule.
pub fn requested_per_s(plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let schedule = plan.schedule.as_ref()?;
    match outcome.totals.open_loop.as_deref() {
        // With random arrivals, the number of requests drawn may be far from the mean.
        Some(open_loop) if schedule.arrivals == Arrivals::Poisson => {
            Some(count_per_second(open_loop.due + open_loop.beyond, outcome.elapsed.as_secs_f64()))
        }
        _ => Some(schedule.per_second_between(Duration::ZERO, outcome.elapsed)),
    }
}

/// [`requested_per_s`], less the requests that are usually in flight at the end with a target that keeps up. If the
/// last response of `-n` ends the run, less the requests that would have been due after the last one. `None` without a
/// schedule.
pub fn requested_by_end_per_s(plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let asked_per_s = requested_per_s(plan, outcome)?;
    let elapsed_s = outcome.elapsed.as_secs_f64();
    let Some(open_loop) = outcome.totals.open_loop.as_deref().filter(|_| elapsed_s > 0.0) else {
        return Some(asked_per_s);
    };
    let in_flight = if outcome.ended == RunEnd::Requests {
        (asked_per_s * elapsed_s - open_loop.due as f64).max(0.0)
    } else {
        // Each request carried over from a warm-up balances one in flight at the end, except those that were due at the
        // very end of the warm-up: they count as requested.
        let Counters { open_at_end, carried, .. } = outcome.totals.counters;
        let carried = (carried + open_loop.carried) as f64;
        let on_the_border = (asked_per_s * elapsed_s - open_loop.due as f64).clamp(0.0, carried);
        (open_at_end as f64 - (carried - on_the_border)).max(0.0)
    };
    let ordinary = expected_in_flight_at_end(plan, outcome) + bounds::send_group_size(plan, outcome) as f64;
    // In bursts, more requests may be due than the rate implies for that time.
    Some((asked_per_s - in_flight.min(ordinary) / elapsed_s).max(0.0))
}

/// The number of requests in flight at the end with a target that keeps up, plus two standard deviations.
///
/// With constant latencies, this number is the rate of the last moments times the mean latency of the first third of
/// the responses (Little's law). If those do not yet include the slow responses, it is the number in flight after a
/// third of the time. For a steadily growing queue, the first is a sixth of the number in flight at the end, the second
/// a third.
///
/// The last response of `-n` follows the last request within the longest latency. A steadily growing queue has reached
/// a third of that latency among the first third of its responses.
fn expected_in_flight_at_end(plan: &Plan, outcome: &Outcome) -> f64 {
    let Some(schedule) = &plan.schedule else { return 0.0 };
    let early = first_third_of_responses(outcome);
    let in_time = |time_ns: u64| {
        let time = Duration::from_nanos(time_ns);
        bounds::recent_due_rate(schedule, outcome.elapsed, time) * time.as_secs_f64()
    };
    let most = in_time(early.scheduled.max_ns);
    let expected = if outcome.ended == RunEnd::Requests {
        most
    } else {
        let mean_ns = (early.scheduled.sum_ns / u128::from(early.completed.max(1))) as u64;
        // A larger number would come from an overload at the start.
        in_time(mean_ns).max((in_flight_after_a_third(outcome) as f64).min(most))
    };
    expected + 2.0 * expected.sqrt()
}

/// The first rows of the timeline, up to a third of all responses.
fn first_third_of_responses(outcome: &Outcome) -> RowFigures {
    let Timeline { rows, .. } = &outcome.timeline;
    let all: u64 = rows.iter().map(|row| row.completed).sum();
    let mut early = RowFigures::default();
    for row in rows {
        if early.completed * 3 >= all {
            break;
        }
        early += row;
    }
    early
}

/// By how much the requests in flight increased during the first third of the run. Never negative, and zero if the rows
/// are too long to tell.
fn in_flight_after_a_third(outcome: &Outcome) -> u64 {
    let rows = &outcome.timeline.rows;
    let (started, ended) = rows[..rows.len() / 3].iter().fold((0, 0), |(started, ended), row| {
        let Errors { read, write, timeout, abandoned, .. } = row.errors;
        (started + row.started, ended + row.completed + read + write + timeout.max(abandoned))
    });
    started.saturating_sub(ended)
}

/// Number of requests on which the rate is based. Requests carried over from a warm-up complete in the measured time,
/// and balance the requests in flight at the end. If the last request ends the run, none is in flight, so that only
/// requests started in the measured time count.
pub fn counted_requests(outcome: &Outcome) -> u64 {
    let Counters { completed, carried, .. } = outcome.totals.counters;
    if outcome.ended == RunEnd::Requests { completed.saturating_sub(carried) } else { completed }
}
