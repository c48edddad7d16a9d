//! The times of a run in which requests were due and no response came on any thread, whether they could be sent or not.
//!
//! When requests are due follows from the plan, so nothing about it is recorded during the run.

use std::borrow::Cow;
use std::time::Duration;

use onrush_plan::schedule::Arrivals;
use onrush_plan::{Plan, Schedule, load};
use onrush_stats::Gap;

use super::dues::dues;
use super::nanos;

/// Due times that were drawn are drawn again for at most this many requests, which takes a second or so.
const REDRAWN_MAX: f64 = 20e6;

/// A time between two responses in which requests were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueGap {
    /// From when the first of them was due to the next response on any thread, or to the end.
    pub gap: Gap,
    /// How many they were.
    pub due: u64,
}

/// The parts of the gaps between responses, which are in order, from when a first request was due on; and the gaps after
/// the last request of `-n` was due.
pub(super) fn due_gaps(plan: &Plan, schedule: &Schedule, gaps: &[Gap]) -> (Vec<DueGap>, Vec<Gap>) {
    let (warmup_ns, slice_ns) = (nanos(plan.warmup), nanos(schedule.send_slice.unwrap_or_default()));
    let since_begin = |ns: u64| warmup_ns.saturating_add(ns);
    let schedule = affordable(plan, schedule, gaps.last().map_or(0, |gap| gap.until_ns));
    let mut found = vec![(u64::MAX, 0); gaps.len()];
    let mut before_last = 0;
    for index in 0..plan.load.threads {
        let mut dues = dues(plan, &schedule, index);
        let mut left = plan.stop.requests.map_or(u64::MAX, |all| load::share(all, plan.load.threads, index));
        dues.pass_before(warmup_ns, u64::MAX);
        for (at, (gap, (first_ns, due))) in gaps.iter().zip(&mut found).enumerate() {
            left -= dues.pass_before(since_begin(gap.from_ns), left);
            if left == 0 {
                break;
            }
            before_last = before_last.max(at + 1);
            *first_ns = dues.next_ns().min(*first_ns);
            let passed = dues.pass_before(since_begin(gap.until_ns), left);
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

/// The schedule; with too many requests to draw them again, one with the same rates and equal distances.
fn affordable<'a>(plan: &Plan, schedule: &'a Schedule, until_ns: u64) -> Cow<'a, Schedule> {
    let until = plan.warmup + Duration::from_nanos(until_ns);
    let is_drawn = schedule.arrivals == Arrivals::Poisson;
    if is_drawn && schedule.most_per_second() * until.as_secs_f64() > REDRAWN_MAX {
        return Cow::Owned(Schedule { arrivals: Arrivals::Uniform, ..schedule.clone() });
    }
    Cow::Borrowed(schedule)
}
