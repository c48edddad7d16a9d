//! When the requests of each worker are due.

use onrush_plan::schedule::{Dues, Span};
use onrush_plan::{Part, Plan, Schedule};

use super::nanos;

/// When the requests of worker `index` are due, beyond `-n`, too.
pub(super) fn dues(plan: &Plan, schedule: &Schedule, index: u32) -> Dues {
    let span = Span { warmup_ns: nanos(plan.warmup), duration_ns: plan.stop.duration.map(nanos) };
    schedule.dues(Part::new(index, plan.load.threads), span, seed(plan, index))
}

/// What the random numbers of worker `index` begin with.
pub(super) fn seed(plan: &Plan, index: u32) -> u64 {
    plan.seed.wrapping_add(u64::from(index))
}
