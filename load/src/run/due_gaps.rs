//! Finds the periods of a run in which requests were due but no thread received a response, whether or not the requests
//! could be sent.
//!
//! Due times follow from the plan, so a run records only its batches sent ahead: a request sent early is not due later.

use std::borrow::Cow;
use std::time::Duration;

use onrush_plan::schedule::Arrivals;
use onrush_plan::{Partition, Plan, Schedule, load};
use onrush_stats::Gap;

use super::dues::due_times_of_part;
use super::machine::MachineShare;
use super::nanos;

/// Random due times are drawn again for at most this many requests, which takes about a second.
const REDRAWN_MAX: f64 = 20e6;

/// A period between two responses in which requests were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueGap {
    /// From the first due request to the next response on any thread, or to the end of the run.
    pub gap: Gap,
    /// Number of requests that became due in the gap.
    pub due: u64,
}

/// The load of one worker.
pub(super) struct WorkerPart {
    part: Partition,
    /// Maximum number of requests of this worker.
    requests: u64,
}

/// The load of each worker, in order; `machines` is empty for a run on one machine.
pub(super) fn worker_loads(plan: &Plan, machines: &[MachineShare]) -> Vec<WorkerPart> {
    let requests = plan.stop.requests;
    let of = |part: Partition, threads: u32, requests: Option<u64>| {
        (0..threads).map(move |index| WorkerPart {
            part: part.part_of_part(Partition::new(index, threads)),
            requests: requests.map_or(u64::MAX, |all| load::share(all, threads, index)),
        })
    };
    let count = machines.len() as u32;
    let of_machine = |(index, machine): (u32, &MachineShare)| {
        let requests = requests.map(|all| load::share(all, count, index));
        of(Partition::new(index, count), machine.threads, requests)
    };
    match machines {
        [] => of(Partition::WHOLE, plan.load.threads, requests).collect(),
        machines => (0..).zip(machines).flat_map(of_machine).collect(),
    }
}

/// Shortens each response gap (in order) to start at its first due request, and leaves out those without one. Also
/// returns the gaps after the last request of `-n` was due. `ahead`: for each worker, the periods covered by batches
/// sent ahead.
pub(super) fn compute_due_gaps(
    plan: &Plan,
    schedule: &Schedule,
    gaps: &[Gap],
    workers: &[WorkerPart],
    ahead: &[Vec<Gap>],
) -> (Vec<DueGap>, Vec<Gap>) {
    let (warmup_ns, slice_ns) = (nanos(plan.warmup), nanos(schedule.send_slice.unwrap_or_default()));
    let since_begin = |ns: u64| warmup_ns.saturating_add(ns);
    let schedule = simplify_large_schedule(plan, schedule, gaps.last().map_or(0, |gap| gap.until_ns));
    let mut found = vec![(u64::MAX, 0); gaps.len()];
    let mut before_last = 0;
    for (index, worker) in (0..).zip(workers) {
        let mut dues = due_times_of_part(plan, &schedule, worker.part, index);
        let mut left = worker.requests;
        let ahead = ahead.get(index as usize).map_or(&[][..], Vec::as_slice);
        dues.pass_before(warmup_ns, u64::MAX);
        for (at, (gap, (first_ns, due))) in gaps.iter().zip(&mut found).enumerate() {
            left -= dues.pass_before(since_begin(sent_ahead_until(ahead, gap.from_ns)), left);
            if left == 0 {
                break;
            }
            before_last = before_last.max(at + 1);
            *first_ns = dues.next_ns().min(*first_ns);
            let passed = dues.pass_before(since_begin(sent_ahead_until(ahead, gap.until_ns)), left);
            (*due, left) = (*due + passed, left - passed);
        }
    }
    // Requests leave at the end of their slice.
    let sent_ns = |first_ns: u64| first_ns.checked_next_multiple_of(slice_ns).unwrap_or(first_ns) - warmup_ns;
    let with_due = gaps.iter().zip(found).filter(|(_, (_, due))| *due > 0);
    let due_gaps = with_due.map(|(gap, (first_ns, due))| {
        let gap = Gap { from_ns: sent_ns(first_ns), ..*gap };
        DueGap { gap, due }
    });
    (due_gaps.filter(|due_gaps| due_gaps.gap.length_ns() > 0).collect(), gaps[before_last..].to_vec())
}

/// Latest end of the batches sent ahead that cover this moment; until then nothing is due.
fn sent_ahead_until(ahead: &[Gap], at_ns: u64) -> u64 {
    let next = ahead.get(ahead.partition_point(|ahead| ahead.until_ns <= at_ns));
    next.filter(|ahead| ahead.from_ns < at_ns).map_or(at_ns, |ahead| ahead.until_ns)
}

/// The schedule; if it has too many random requests to draw again, one with equal rates and equal distances.
fn simplify_large_schedule<'a>(plan: &Plan, schedule: &'a Schedule, until_ns: u64) -> Cow<'a, Schedule> {
    let until = plan.warmup + Duration::from_nanos(until_ns);
    let is_drawn = schedule.arrivals == Arrivals::Poisson;
    if is_drawn && schedule.most_per_second() * until.as_secs_f64() > REDRAWN_MAX {
        return Cow::Owned(Schedule { arrivals: Arrivals::Uniform, ..schedule.clone() });
    }
    Cow::Borrowed(schedule)
}
