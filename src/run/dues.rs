//! When the requests of each worker are due.

use onrush_plan::schedule::{Dues, ScheduleSpan};
use onrush_plan::{Partition, Plan, Schedule};

use super::nanos;

/// When the requests of worker `index` are due, beyond `-n`, too.
pub(super) fn dues(plan: &Plan, schedule: &Schedule, index: u32) -> Dues {
    dues_of(plan, schedule, Partition::new(index, plan.load.threads), index)
}

/// When the requests of a part are due, which worker `index` takes.
pub(super) fn dues_of(plan: &Plan, schedule: &Schedule, part: Partition, index: u32) -> Dues {
    let (warmup_ns, duration_ns) = (nanos(plan.warmup), plan.stop.duration.map(nanos));
    let span = ScheduleSpan { warmup_ns, duration_ns, run_on_ns: nanos(plan.run_on) };
    schedule.dues(part, span, seed(plan, index))
}

/// Seed of the random numbers of worker `index`.
pub(super) fn seed(plan: &Plan, index: u32) -> u64 {
    plan.seed.wrapping_add(u64::from(index))
}
