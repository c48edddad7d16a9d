//! The rate of a run.

use crate::run::{Ended, Outcome};
use crate::stats::Counters;

/// A count per second; zero if no time passed.
pub fn rate(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

/// The requests that count in the rate. Requests carried over from a warm-up complete in the window, and those in
/// flight at the end balance them. Where the last request ends the run, none is in flight, so only those started in the
/// window count.
pub fn counted(outcome: &Outcome) -> u64 {
    let Counters { completed, carried, .. } = outcome.totals.counters;
    if outcome.ended == Ended::Requests { completed.saturating_sub(carried) } else { completed }
}
