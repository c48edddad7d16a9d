//! Whether a schedule was kept, and how far the latency since requests were due is known.

use std::time::Duration;

use super::super::bounds::Bounds;
use super::Note;
use crate::plan::{Dialect, Percent, Plan};
use crate::run::Outcome;
use crate::stats::{OpenLoop, Totals, rank};

/// Requests that were late or not sent are worth a note above this percentage.
const MISSED_PERCENT: u64 = 1;
/// Requests sent more than this after they were due are late; with slices, more than this and a slice.
const LATE: Duration = Duration::from_millis(1);
/// Connections, or threads, are busy from this share of their time on.
const BUSY_SHARE: f64 = 0.95;
/// A shorter run, in seconds, has spent its time on its first connections.
const BUSY_MIN_S: f64 = 0.2;
/// A percentile is known when its bounds are no further apart than this part of it.
const KNOWN: f64 = 0.01;

/// A schedule that was not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behind {
    /// Requests that were due per second.
    pub due_per_s: f64,
    /// Requests that were sent per second.
    pub sent_per_s: f64,
    /// Requests that were due and had not been sent at the end.
    pub unsent: u64,
    /// What there was too little of, where that is known.
    pub bottleneck: Option<Bottleneck>,
}

/// What there was too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// All connections had a request in flight.
    Connections {
        /// How many there were.
        connections: u64,
        /// About how many would have kept the schedule.
        needed: u64,
    },
    /// The threads worked all the time.
    Threads {
        /// How many there were.
        threads: u64,
    },
}

/// A percentile that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertain {
    /// Which.
    pub percent: Percent,
    /// What it is at least, in nanoseconds.
    pub lower_ns: u64,
    /// What it is at most, in nanoseconds; `None`: there is no limit.
    pub upper_ns: Option<u64>,
    /// How many requests have no complete response.
    pub incomplete: u64,
}

/// What there is to say of a run with a schedule.
pub fn notes(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let Some(open_loop) = outcome.totals.open_loop.as_deref() else { return Vec::new() };
    let OpenLoop { lateness, late, dropped, due, .. } = open_loop;
    let (sent, slice) = (lateness.count(), plan.schedule.as_ref().and_then(|schedule| schedule.send_slice));
    let late = (late * 100 > sent * MISSED_PERCENT).then(|| Note::Late {
        late: *late,
        sent,
        limit: LATE + slice.unwrap_or_default(),
        p99_ns: lateness.percentile(99.0),
        max_ns: lateness.max().unwrap_or(0),
    });
    let dropped = (*dropped > 0).then_some(Note::TooLate { dropped: *dropped, due: *due });
    let behind = behind(plan, outcome, open_loop).map(Note::Behind);
    let uncertain = uncertain(plan, open_loop).map(Note::Uncertain);
    let sliced = slice.zip(lateness.mean()).map(|(slice, mean_ns)| Note::Sliced { slice, mean_ns });
    [behind, late, dropped, uncertain, sliced].into_iter().flatten().collect()
}

fn behind(plan: &Plan, outcome: &Outcome, open_loop: &OpenLoop<u64>) -> Option<Behind> {
    let OpenLoop { lateness, due, dropped, unsent, .. } = open_loop;
    let Totals { counters, evidence, latency, .. } = &outcome.totals;
    let elapsed_s = outcome.elapsed.as_secs_f64();
    if (dropped + unsent) * 100 <= due * MISSED_PERCENT || elapsed_s == 0.0 {
        return None;
    }
    let due_per_s = *due as f64 / elapsed_s;
    let connections = u64::from(plan.load.connections);
    let busy = counters.occupancy.busy_ns as f64 / 1e9 / elapsed_s;
    let worked_ns = evidence.cpu_ns().saturating_sub(evidence.spun_ns);
    let bottleneck = if elapsed_s < BUSY_MIN_S {
        None
    } else if busy >= BUSY_SHARE * connections as f64 {
        // By Little's law, if the server stays as quick as it was.
        let in_flight = due_per_s * latency.mean().unwrap_or(0.0) / 1e9 / outcome.batch.max(1) as f64;
        Some(Bottleneck::Connections { connections, needed: (in_flight.ceil() as u64).max(connections + 1) })
    } else if worked_ns as f64 >= BUSY_SHARE * evidence.wall_ns as f64 && evidence.wall_ns > 0 {
        Some(Bottleneck::Threads { threads: u64::from(plan.load.threads) })
    } else {
        None
    };
    Some(Behind { due_per_s, sent_per_s: lateness.count() as f64 / elapsed_s, unsent: *unsent, bottleneck })
}

/// The first percentile that is not known. One that is the largest value, because there are so few, says nothing.
fn uncertain(plan: &Plan, open_loop: &OpenLoop<u64>) -> Option<Uncertain> {
    let OpenLoop { scheduled, censored, .. } = open_loop;
    if censored.count() == 0 || plan.dialect == Dialect::Wrk2 {
        return None;
    }
    let bounds = Bounds::new(scheduled, censored);
    let all = bounds.least();
    let mut percents = Percent::asked_or_usual(plan.show.percents.as_deref());
    percents.retain(|percent| rank(percent.value(), all.count()) < all.count());
    percents.sort_unstable();
    let uncertain = |percent: Percent| {
        let (lower_ns, upper_ns) = (all.percentile(percent.value()), bounds.upper_ns(percent.value()));
        let is_known = upper_ns.is_some_and(|upper_ns| upper_ns as f64 <= lower_ns as f64 * (1.0 + KNOWN));
        (!is_known).then(|| Uncertain { percent, lower_ns, upper_ns, incomplete: censored.count() })
    };
    percents.into_iter().find_map(uncertain)
}
