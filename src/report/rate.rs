//! The rate of a run.

use std::time::Duration;

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

/// The requests that count in the rate. Requests carried over from a warm-up complete in the window, and those in
/// flight at the end balance them. Where the last request ends the run, none is in flight, so only those started in the
/// window count.
pub fn counted(outcome: &Outcome) -> u64 {
    let Counters { completed, carried, .. } = outcome.totals.counters;
    if outcome.ended == Ended::Requests { completed.saturating_sub(carried) } else { completed }
}
