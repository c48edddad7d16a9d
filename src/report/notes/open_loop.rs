//! Whether a schedule was kept, and how precise the latency since requests were due is.

use std::time::Duration;

use super::super::bounds::Bounds;
use super::Note;
use crate::plan::limits::CONNECTIONS_MAX;
use crate::plan::schedule::{Arrivals, CatchUp};
use crate::plan::{Dialect, Percent, Plan, Schedule};
use crate::run::{Outcome, nanos};
use crate::stats::{OpenLoop, rank};

/// Requests that were late or not sent are worth a note above this percentage.
const MISSED_PERCENT: u64 = 1;
/// Threads are busy from this share of their time on.
const BUSY_SHARE: f64 = 0.95;
/// A shorter run, in seconds, has spent its time on its first connections.
const BUSY_MIN_S: f64 = 0.2;
/// It is worth a note that requests were due and all connections busy from this share of the time on.
const CROWDED_SHARE: f64 = 0.05;
/// Where answers take this many times as long when connections are busy, it is the target that is.
const SLOWED: f64 = 2.0;
/// Requests that are open at the end are ordinary up to this many times the usual number and the slowest latency: what a
/// target cannot keep up with adds up to twice as many as its mean latency tells of.
const ORDINARY: f64 = 1.5;
/// Random variation makes it at most this many more.
const ORDINARY_FEW: u64 = 10;
/// A percentile is known when its bounds are no further apart than this part of it.
const KNOWN: f64 = 0.01;

/// A schedule that was not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behind {
    /// Requests that were asked for per second, on average; what a warm-up left over included.
    pub asked_per_s: f64,
    /// Requests that a warm-up left over.
    pub carried: u64,
    /// Requests that were sent per second.
    pub sent_per_s: f64,
    /// Requests that were due and had not been sent at the end.
    pub unsent: u64,
    /// What there was too little of, where that is known.
    pub bottleneck: Option<Bottleneck>,
}

/// What there was too little of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bottleneck {
    /// All connections had a request in flight.
    Connections(Crowded),
    /// The threads worked all the time.
    Threads {
        /// How many there were.
        threads: u64,
    },
    /// What was late was to be made up for slowly.
    CatchUp(CatchUp),
}

/// Requests were due, and every connection that there might be had one in flight, or paused for the script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowded {
    /// For which share (0 to 1) of the time.
    pub share: f64,
    /// How many connections there were; `None`: as many as the stages said.
    pub connections: Option<u64>,
    /// Whether connections paused for the script.
    pub pauses: bool,
    /// What would help.
    pub remedy: Remedy,
}

/// What would help where connections are busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// About this many connections.
    About(u64),
    /// Not more connections: the more are busy, the longer answers take, on average and in nanoseconds.
    Target {
        /// While less than half of them had a request in flight.
        calm_ns: f64,
        /// All the time.
        mean_ns: f64,
    },
    /// Not more connections: the target answered nothing then.
    Silence,
    /// More connections, perhaps: they were never so few that the target could have shown what it does then.
    Unknown,
}

/// More requests were due at once than there were connections for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// How many requests.
    pub requests: u64,
    /// How many connections there were at most.
    pub connections: u64,
    /// How many it takes.
    pub needed: u64,
    /// Whether stages said how many there were.
    pub is_staged: bool,
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

/// Whether more requests than a few were not sent when they were due.
pub fn is_missed(&OpenLoop { late, dropped, unsent, due, .. }: &OpenLoop<u64>) -> bool {
    (late + dropped + unsent) * 100 > due * MISSED_PERCENT
}

/// What there is to say of a run with a schedule, in which for `silent_ns` nanoseconds nothing was answered.
pub fn notes(plan: &Plan, outcome: &Outcome, silent_ns: u64) -> Vec<Note> {
    let Some(open_loop) = outcome.totals.open_loop.as_deref() else { return Vec::new() };
    let OpenLoop { lateness, late, dropped, due, carried, .. } = open_loop;
    let slice = plan.schedule.as_ref().and_then(|schedule| schedule.send_slice).filter(|slice| is_sliced(plan, *slice));
    let sent = lateness.count();
    let burst = burst(plan, outcome);
    let late = (late * 100 > sent * MISSED_PERCENT).then(|| Note::Late {
        late: *late,
        sent,
        limit: plan.schedule.as_ref().map(Schedule::late_after).unwrap_or_default(),
        p99_ns: lateness.percentile(99.0),
        max_ns: lateness.max().unwrap_or(0),
        burst,
    });
    let in_percentiles = plan.dialect != Dialect::Wrk2;
    let dropped = (*dropped > 0).then_some(Note::TooLate { dropped: *dropped, due: due + carried, in_percentiles });
    let crowded = crowded(plan, outcome, open_loop, silent_ns);
    let behind = behind(plan, outcome, open_loop, crowded);
    let crowded = crowded.filter(|_| behind.is_none() && burst.is_none()).map(Note::Crowded);
    let is_doubtful = !is_ordinary(plan, outcome, open_loop);
    let uncertain = uncertain(plan, open_loop).filter(|_| is_doubtful).map(Note::Uncertain);
    let sliced = slice.zip(lateness.mean()).map(|(slice, mean_ns)| Note::Sliced { slice, mean_ns });
    [behind.map(Note::Behind), crowded, late, dropped, uncertain, sliced].into_iter().flatten().collect()
}

/// Whether a slice ends while the run is measured: what is due after the last one leaves when it is due.
fn is_sliced(plan: &Plan, slice: Duration) -> bool {
    let Some(duration) = plan.stop.duration else { return true };
    let last_ns = nanos(plan.warmup + duration).saturating_sub(1);
    last_ns - last_ns % nanos(slice) > nanos(plan.warmup)
}

fn behind(plan: &Plan, outcome: &Outcome, open_loop: &OpenLoop<u64>, crowded: Option<Crowded>) -> Option<Behind> {
    let OpenLoop { lateness, due, carried, dropped, unsent, .. } = open_loop;
    let evidence = &outcome.totals.evidence;
    let elapsed_s = outcome.elapsed.as_secs_f64();
    if (dropped + unsent) * 100 <= due * MISSED_PERCENT || elapsed_s == 0.0 {
        return None;
    }
    let worked_ns = evidence.cpu_ns().saturating_sub(evidence.spun_ns);
    let bottleneck = if elapsed_s < BUSY_MIN_S {
        None
    } else if worked_ns as f64 >= BUSY_SHARE * evidence.wall_ns as f64 && evidence.wall_ns > 0 {
        Some(Bottleneck::Threads { threads: u64::from(plan.load.threads) })
    } else {
        held_back(plan, open_loop).or(crowded.map(Bottleneck::Connections))
    };
    // What was due says less where -n ends the schedule before the run.
    let by_schedule_per_s = plan.schedule.as_ref()?.per_second_between(Duration::ZERO, outcome.elapsed);
    let [sent_per_s, carried_per_s] = [lateness.count(), *carried].map(|requests| requests as f64 / elapsed_s);
    let asked_per_s = by_schedule_per_s + carried_per_s;
    Some(Behind { asked_per_s, carried: *carried, sent_per_s, unsent: *unsent, bottleneck })
}

/// Whether most of what was not sent waited only because late requests were to be made up for slowly.
fn held_back(plan: &Plan, open_loop: &OpenLoop<u64>) -> Option<Bottleneck> {
    let factor = plan.schedule.as_ref().filter(|_| !plan.dialect.is_compat())?.catch_up?;
    (2 * open_loop.held_back > open_loop.unsent + open_loop.dropped).then_some(Bottleneck::CatchUp(factor))
}

/// Whether requests had to wait because all connections were busy, and what would help.
fn crowded(plan: &Plan, outcome: &Outcome, open_loop: &OpenLoop<u64>, silent_ns: u64) -> Option<Crowded> {
    let threads_ns = nanos(outcome.elapsed) as f64 * f64::from(plan.load.threads);
    let share = open_loop.all_busy_ns as f64 / threads_ns;
    let (latency, schedule) = (&outcome.totals.latency, plan.schedule.as_ref()?);
    if threads_ns == 0.0 || share < CROWDED_SHARE || latency.count() == 0 {
        return None;
    }
    let most = u64::from(plan.load.max_inflight);
    let connections = plan.levels.is_none().then_some(most);
    // An answer after a silence tells nothing of how long answers take.
    let mean_ns = latency.sum().saturating_sub(u128::from(most * silent_ns)) as f64 / latency.count() as f64;
    let calm_ns = open_loop.calm_ns as f64 / open_loop.calm as f64;
    // By Little's law, if the target stays as quick as it was; and some more, because they are not all free in time.
    let batch = outcome.batch.max(1) as f64;
    let pause_ns = open_loop.paused_ns as f64 * batch / open_loop.lateness.count().max(1) as f64;
    let batches_per_ns = schedule.most_per_second() / 1e9 / batch;
    let taken = batches_per_ns * (mean_ns + pause_ns);
    let on_average = taken + 2.0 * taken.sqrt();
    // Where they were too few for a while only: one for each request that waited then.
    let is_passing = open_loop.unsent * 100 <= open_loop.due * MISSED_PERCENT && silent_ns == 0;
    let waited = connections
        .filter(|_| is_passing)
        .map_or(0.0, |connections| connections as f64 + batches_per_ns * open_loop.all_busy_max_ns as f64);
    let needed = on_average.max(waited).ceil() as u64;
    let heard_share = share - silent_ns as f64 * f64::from(plan.load.threads) / threads_ns;
    let remedy = match needed.max(connections.map_or(1, |connections| connections + 1)) {
        _ if heard_share < CROWDED_SHARE => Remedy::Silence,
        _ if open_loop.calm == 0 => Remedy::Unknown,
        _ if mean_ns > SLOWED * calm_ns => Remedy::Target { calm_ns, mean_ns },
        CONNECTIONS_MAX.. => Remedy::Unknown,
        // The stages come to as many, but not at the right time.
        needed if needed <= most => Remedy::Unknown,
        needed => Remedy::About(needed),
    };
    Some(Crowded { share: share.min(1.0), connections, pauses: open_loop.paused_ns > 0, remedy })
}

/// Whether the requests of a burst outnumber the connections, each of which takes a batch at a time.
fn burst(plan: &Plan, outcome: &Outcome) -> Option<Burst> {
    let schedule = plan.schedule.as_ref()?;
    let Arrivals::Burst(size) = schedule.arrivals else { return None };
    let requests = size.get().div_ceil(schedule.part.of);
    let (needed, connections) = (requests.div_ceil(outcome.batch.max(1) as u64), u64::from(plan.load.max_inflight));
    (needed > connections).then_some(Burst { requests, connections, needed, is_staged: plan.levels.is_some() })
}

/// Whether requests without a complete response are only those that are under way at any time: as many as the rate brings
/// while one is answered, none of which waits longer than answers take.
fn is_ordinary(plan: &Plan, outcome: &Outcome, open_loop: &OpenLoop<u64>) -> bool {
    let OpenLoop { scheduled, censored, due, dropped, unsent, .. } = open_loop;
    let (Some(schedule), Some(mean_ns)) = (plan.schedule.as_ref(), scheduled.mean()) else { return false };
    let together = match schedule.arrivals {
        Arrivals::Burst(burst) => burst.get().div_ceil(schedule.part.of),
        Arrivals::Uniform | Arrivals::Poisson => outcome.batch as u64,
    };
    let under_way = schedule.most_per_second() * mean_ns / 1e9;
    let most = under_way * ORDINARY + (ORDINARY_FEW + together) as f64;
    let slowest_ns = scheduled.max().unwrap_or(0) as f64;
    dropped + outcome.totals.counters.abandoned == 0
        && unsent * 100 <= due * MISSED_PERCENT
        && censored.count() as f64 <= most
        && censored.max().unwrap_or(0) as f64 <= slowest_ns * ORDINARY
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
