//! The rate of a run.

use crate::run::{Ended, Outcome};
use crate::stats::Counters;

/// A count per second; zero in no time.
pub fn rate(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

/// The requests that make the rate. What a warm-up leaves in flight is completed in the window, and what is open at the end
/// balances it. Where the last request ends the run, nothing is open: there it is those that were started in the window.
pub fn counted(outcome: &Outcome) -> u64 {
    let Counters { completed, carried, .. } = outcome.totals.counters;
    if outcome.ended == Ended::Requests { completed.saturating_sub(carried) } else { completed }
}
