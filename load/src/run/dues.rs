//! Due times of the requests of each worker.

use onrush_plan::schedule::{Dues, ScheduleSpan};
use onrush_plan::{Partition, Plan, Schedule};

use super::nanos;

/// Due times of worker `index`, not limited by `-n`.
pub(super) fn worker_due_times(plan: &Plan, schedule: &Schedule, index: u32) -> Dues {
    due_times_of_part(plan, schedule, Partition::new(index, plan.load.threads), index)
}

/// Due times of a part of the load that worker `index` takes.
pub(super) fn due_times_of_part(plan: &Plan, schedule: &Schedule, part: Partition, index: u32) -> Dues {
    let (warmup_ns, duration_ns) = (nanos(plan.warmup), plan.stop.duration.map(nanos));
    let span = ScheduleSpan { warmup_ns, duration_ns, run_on_ns: nanos(plan.run_on) };
    schedule.dues(part, span, worker_seed(plan, index))
}

/// Random seed of worker `index`.
pub(super) fn worker_seed(plan: &Plan, index: u32) -> u64 {
    plan.seed.wrapping_add(u64::from(index))
}
