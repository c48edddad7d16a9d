//! The rate of a run.

use std::time::Duration;

use super::bounds;
use crate::plan::Plan;
use crate::plan::schedule::Arrivals;
use crate::run::{Ended, Outcome};
use crate::stats::Counters;

/// A count per second; zero if no time passed.
pub fn rate(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

/// The requests per second that the schedule, continued beyond `-n`, had due while the run was measured; `None` without
/// one.
pub fn asked_per_s(plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let schedule = plan.schedule.as_ref()?;
    match outcome.totals.open_loop.as_deref() {
        // What was drawn may be far from the mean.
        Some(open_loop) if schedule.arrivals == Arrivals::Poisson => {
            Some(rate(open_loop.due + open_loop.beyond, outcome.elapsed.as_secs_f64()))
        }
        _ => Some(schedule.per_second_between(Duration::ZERO, outcome.elapsed)),
    }
}

/// The same without the requests that are merely in flight at the end, as they are while a target keeps up; where the last
/// response of `-n` ends the run, without those that would be.
pub fn asked_by_end_per_s(plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let (schedule, asked_per_s) = (plan.schedule.as_ref()?, asked_per_s(plan, outcome)?);
    let elapsed_s = outcome.elapsed.as_secs_f64();
    let Some(open_loop) = outcome.totals.open_loop.as_deref().filter(|_| elapsed_s > 0.0) else {
        return Some(asked_per_s);
    };
    let merely_in_flight = if outcome.ended == Ended::Requests {
        let beyond = asked_per_s * elapsed_s - open_loop.due as f64;
        let (mean_ns, together) = (open_loop.scheduled.mean().unwrap_or(0.0), bounds::together(plan, outcome));
        let most = bounds::most_in_flight(schedule.most_per_second(), mean_ns, together);
        if (0.0..=most).contains(&beyond) { beyond } else { 0.0 }
    } else {
        // As many responses count whose requests were carried over from a warm-up.
        let carried = outcome.totals.counters.carried + open_loop.carried;
        bounds::in_flight(plan, outcome).map_or(0, |ages| ages.count()).saturating_sub(carried) as f64
    };
    Some((asked_per_s - merely_in_flight / elapsed_s).max(0.0))
}

/// The requests that count in the rate. Requests carried over from a warm-up complete in the window, and those in
/// flight at the end balance them. Where the last request ends the run, none is in flight, so only those started in the
/// window count.
pub fn counted(outcome: &Outcome) -> u64 {
    let Counters { completed, carried, .. } = outcome.totals.counters;
    if outcome.ended == Ended::Requests { completed.saturating_sub(carried) } else { completed }
}
