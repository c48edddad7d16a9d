//! Gathers the evidence of one run from the plan and the outcome.

use std::time::Duration;

use onrush_plan::schedule::Arrivals;
use onrush_plan::{Io, Plan};
use onrush_proto::Error;
use onrush_proto::http2::STREAMS_ASSUMED;
use onrush_stats::silences::{GAP_MIN_NS, uncovered_parts};
use onrush_stats::{
    Cause, Counters, Distribution, FailureRow, Gap, Occupancy, OpenLoopStats, Phase, RowFigures, Timeline, Totals,
};
use onrush_text::escape;
use rustix::io::Errno;

use super::{
    Backlog, Evidence, Generator, Latency, Load, Machine, MainFailure, Network, Places, Refusal, Room, SLOW, Silence,
    Stall, Target, Thirds, Thread, Unreadable, stages, were_often_in_use,
};
use crate::failure::{Failure, describe_row_cause, is_local_exhaustion};
use crate::figures::rate::{count_per_second, counted_requests};
use crate::figures::silences::{min_silence_ns, observable_gap_ns};
use crate::figures::slope::linear_slope;
use crate::run::{Outcome, RunEnd, nanos};

/// The range of latencies, in nanoseconds, that delayed acknowledgements cause: Linux holds them back for 40 ms
/// (`TCP_DELACK_MIN`), a busy machine for somewhat longer.
const DELAYED_NS: std::ops::Range<u64> = 38_000_000..46_000_000;
/// A run that goes on for this share of its time without a thread has less of a load than was asked for.
const GOES_ON: f64 = 0.05;
/// Minimum number of rows in a third of a run.
const ROWS_PER_THIRD: usize = 3;
/// The spread of requests over connections is meaningful from this many per connection on.
const REQUESTS_PER_CONNECTION: u64 = 20;

impl Evidence {
    /// That of a run; `None` if nothing was measured, or for a single request.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let is_none = plan.once || outcome.elapsed.is_zero() || outcome.ended == RunEnd::NeverBegun;
        (!is_none).then(|| evidence(plan, outcome))
    }
}

fn evidence(plan: &Plan, outcome: &Outcome) -> Evidence {
    let seen = outcome.seen.clone().unwrap_or_default();
    // One that ends after the run, which then ends at once, is no part of it from there on.
    let run_ns = nanos(outcome.elapsed);
    let within = |gap: &Gap| Gap { until_ns: gap.until_ns.min(run_ns), ..*gap }.length_ns();
    let goes_on_from_s = outcome.elapsed.as_secs_f64() * (1.0 - GOES_ON);
    let stalled_ns: u64 = outcome.stalls.iter().map(within).sum();
    Evidence {
        generator: Generator {
            threads: threads(plan, outcome),
            stopped: outcome.stopped.iter().filter(|(_, at)| at.as_secs_f64() < goes_on_from_s).count() as u64,
            // Each of several machines has its own.
            cpus: outcome.machines.is_empty().then_some(outcome.host.cpus),
            stalled_s: (stalled_ns as f64 / 1e9).min(outcome.elapsed.as_secs_f64()),
            stalls: outcome.stalls.len() as u64,
            long_stalls: outcome.stalls.iter().filter(|gap| gap.length_ns() >= GAP_MIN_NS).map(Stall::of).collect(),
            throttled_s: seen.throttled_s,
            thread_s: figure(outcome.elapsed.as_secs_f64() * threads(plan, outcome).len() as f64),
            beside_s: outcome.beside.map(|beside| figure(beside.as_secs_f64())),
        },
        load: load(plan, outcome),
        latency: latency(&outcome.totals.latency, calm(outcome).as_ref()),
        network: network(outcome),
        // A program's name can contain anything.
        target: seen.target.map(|target| Target { name: escape(target.name.as_bytes()), ..target }),
        machine: Machine { suspended_s: outcome.suspended.as_secs_f64(), ..seen.machine },
        probe: outcome.probe.clone().or_else(|| stages::compare(plan, outcome)),
    }
}

/// What could not be observed.
pub fn unseen(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    if is_simulated(plan) {
        return vec!["the generator's threads and the network: the run was simulated".to_owned()];
    }
    let mut unseen: Vec<String> = match &outcome.seen {
        Some(seen) => seen.unseen.iter().map(ToString::to_string).collect(),
        None => vec!["the target and the machine: there was no thread to watch them".to_owned()],
    };
    if outcome.totals.sockets.readings == 0 {
        let why = if plan.connect.unix.is_some() { "the run used a Unix socket" } else { "no TCP_INFO could be read" };
        unseen.push(format!("the network: {why}"));
    }
    // What a thread that was lost did is unknown, whatever the kernel says.
    let mut known = outcome.workers.iter().filter_map(|worker| worker.activity).peekable();
    if known.peek().is_none() || known.any(|activity| activity.queued_ns.is_none()) {
        unseen.push("how long each thread waited for a processor: the kernel does not say".to_owned());
    }
    unseen
}

/// In virtual time there is no processor time to compare with.
fn is_simulated(plan: &Plan) -> bool {
    matches!(plan.io, Io::Sim(_))
}

/// The work of each thread; none in virtual time.
fn threads(plan: &Plan, outcome: &Outcome) -> Vec<Thread> {
    if is_simulated(plan) {
        return Vec::new();
    }
    let elapsed_ns = nanos(outcome.elapsed);
    let activities = outcome.workers.iter().filter_map(|worker| worker.activity);
    let activities = activities.filter(|activity| activity.wall_ns > 0);
    activities
        .map(|activity| {
            // A thread that had nothing more to do ended before the others.
            let share = |ns: u64| figure((ns as f64 / activity.wall_ns.max(elapsed_ns) as f64).min(1.0));
            let worked_ns = activity.worked_ns();
            // A thread queued only to busy-poll is not delayed.
            let to_work = worked_ns as f64 / activity.cpu_ns().max(1) as f64;
            let queued_ns = activity.queued_ns.map(|queued_ns| (queued_ns as f64 * to_work) as u64);
            Thread {
                // A script that sleeps takes no processor time, but nothing else is done meanwhile.
                busy: share((worked_ns + queued_ns.unwrap_or(0)).max(activity.script_ns)),
                queued: queued_ns.map(share),
                script: share(activity.script_ns),
                held_up: share(activity.held_up_ns),
            }
        })
        .collect()
}

/// The most requests that could be in flight, where a connection may have several.
fn in_flight_max(plan: &Plan, outcome: &Outcome) -> Option<u64> {
    let streams = Some(outcome.streams_per_connection(plan)).filter(|streams| *streams > 1)?;
    let most = outcome.most_connections(plan) * u64::from(streams);
    Some(plan.in_flight_max.map_or(most, |in_flight| most.min(in_flight.into())))
}

/// The option that makes room for more requests in flight under a rate.
fn room(plan: &Plan, outcome: &Outcome) -> Option<Room> {
    plan.schedule.as_ref()?;
    let allowed = outcome.http2.as_ref().and_then(|seen| seen.streams_allowed_min).unwrap_or(STREAMS_ASSUMED);
    Some(match () {
        () if plan.load.may_grow() || plan.in_flight_max.is_some() => Room::MaxInflight,
        () if plan.levels.is_some() => Room::Stages,
        () if outcome.streams_per_connection(plan) > 1 && plan.http.streams < Some(allowed) => Room::Streams,
        () => Room::Connections,
    })
}

/// How many streams the server always allowed, where these are fewer than were asked for and all of them were often in use.
fn streams_allowed(plan: &Plan, outcome: &Outcome) -> Option<u32> {
    let (seen, asked) = (outcome.http2.as_ref()?, plan.http.streams?);
    let is_noticed =
        were_often_in_use(seen.streams_blocked_ns as f64, outcome.totals.counters.occupancy.open_ns as f64);
    let is_constant = seen.streams_allowed_min == seen.streams_allowed_max;
    seen.streams_allowed_min.filter(|allowed| is_noticed && is_constant && (1..asked).contains(allowed))
}

fn load(plan: &Plan, outcome: &Outcome) -> Load {
    let counters = &outcome.totals.counters;
    let occupancy = &counters.occupancy;
    let elapsed_s = outcome.elapsed.as_secs_f64();
    let mean = |ns: u64| figure(ns as f64 / 1e9 / elapsed_s);
    let open_loop = outcome.totals.open_loop.as_deref();
    let errors = outcome.totals.ledger.totals();
    let rows = || outcome.totals.ledger.rows().iter();
    let no_port = Cause::Errno(Errno::ADDRNOTAVAIL.raw_os_error());
    let without_port = rows().filter(|row| row.cause == no_port).map(|row| row.count).sum();
    let ours: u64 = rows().filter(|row| is_our_connect(row)).map(|row| row.count).sum();
    let run_ns = nanos(outcome.elapsed);
    let at_end = outcome.silences.last().filter(|gap| gap.until_ns >= run_ns);
    let at_end = at_end.map(|gap| Gap { until_ns: run_ns, ..*gap });
    let silences = silences(plan, outcome);
    let asked_per_s =
        plan.schedule.as_ref().map(|schedule| figure(schedule.per_second_between(Duration::ZERO, outcome.elapsed)));
    let rate_per_s = count_per_second(counted_requests(outcome), elapsed_s);
    // A server that speaks first does so on connections without a request, too.
    let is_early = |row: &&FailureRow| row.cause == Cause::Protocol(Error::EarlyBytes);
    let before_any_request: u64 = rows().filter(is_early).map(|row| row.count).sum();
    let hanging = hanging(outcome);
    let in_flight = counters.started + counters.carried;
    let overdue = open_loop.and_then(|it| overdue(plan, outcome, it));
    // A connection that was opened later had less time.
    let are_equal = counters.connects <= u64::from(plan.load.connections) && plan.levels.is_none();
    let is_spread = are_equal && outcome.spread.requests >= REQUESTS_PER_CONNECTION * outcome.spread.connections;
    Load {
        elapsed_s,
        connections: outcome.most_connections(plan),
        in_flight_max: in_flight_max(plan, outcome),
        room: room(plan, outcome),
        in_flight: mean(occupancy.in_flight_ns),
        in_flight_of_all: None,
        // Those with nothing left to send are not missed.
        idle: (occupancy.open_ns > 0).then(|| {
            let used_ns = occupancy.busy_ns + occupancy.finished_ns;
            figure((1.0 - used_ns as f64 / occupancy.open_ns as f64).max(0.0))
        }),
        open: mean(occupancy.open_ns),
        missing: mean(occupancy.absent_ns + occupancy.waiting_ns + occupancy.connecting_ns),
        places: places(plan, outcome, mean),
        streams_allowed: streams_allowed(plan, outcome),
        completed: counters.completed,
        rate_per_s: figure(rate_per_s),
        asked_per_s,
        sent: open_loop.map(|it| sent(it.due + it.carried, it.dropped + it.unsent)),
        lateness_p99_us: open_loop.map(|it| lateness_p99_us(&it.lateness)),
        without_port,
        connect_errors: errors.connect.saturating_sub(ours),
        read_errors: errors.read,
        failed: Some(counters.failed),
        failed_connections: Some((errors.read + errors.write).saturating_sub(counters.failed)),
        main_failure: main_failure(plan, outcome),
        unreadable: Unreadable::of(
            rows().filter_map(unreadable),
            (errors.read + errors.write + counters.abandoned).saturating_sub(before_any_request),
            hanging,
            counters.completed,
        ),
        timeouts: errors.timeout,
        abandoned: errors.abandoned,
        expected: plan.checks.status.clone(),
        refused: errors.status,
        refusal: Refusal::of(outcome.totals.statuses.iter(), plan.checks.status.as_ref()),
        failed_checks: errors.check,
        hanging,
        left: open_loop.map(|it| left(counters, it)),
        overdue: overdue.map(|(overdue, _)| overdue),
        overrun_s: overdue.map(|(_, overrun)| figure(overrun.as_secs_f64())),
        usually_left: open_loop.and_then(|_| usually_left(outcome)),
        crowded: open_loop
            .map(|it| figure((it.all_busy_ns as f64 / 1e9 / elapsed_s / outcome.workers.len() as f64).min(1.0))),
        growth: open_loop.filter(|_| is_constant(plan)).and_then(|_| growth(&outcome.timeline)),
        backlog: open_loop.filter(|_| is_constant(plan)).and_then(|_| backlog(outcome)),
        dispersion: open_loop.filter(|_| is_constant(plan)).and_then(|_| dispersion(&outcome.totals.rates)),
        silent_s: if open_loop.is_none() && counters.completed > 0 { heard_s(&silences) } else { 0.0 },
        quiet_s: quiet_s(&silences, asked_per_s.map(|asked| expected_per_s(rate_per_s, asked, in_flight))),
        is_mute: counters.bytes_received == 0 && counters.completed == 0 && in_flight > 0,
        silent_at_end_s: figure(at_end.map_or(0, |gap| observable_gap_ns(plan, outcome, gap)) as f64 / 1e9),
        failed_at_end: at_end.is_some_and(|gap| fails_from(outcome, gap.from_ns)),
        silences,
        hottest: outcome.spread.hottest_to_mean().filter(|_| is_spread).map(figure),
        thirds: if open_loop.is_none() && plan.levels.is_none() { thirds(&outcome.timeline) } else { None },
    }
}

fn main_failure(plan: &Plan, outcome: &Outcome) -> Option<MainFailure> {
    let row = |row: &FailureRow| {
        let failure = Failure { shortage: outcome.descriptors, ..Failure::from_row(plan, outcome, row) };
        let (count, why, advice) = (row.count, describe_row_cause(row, plan), failure.remedy());
        (row.phase.name().to_owned(), failure.is_local_exhaustion(), MainFailure { count, why, advice })
    };
    MainFailure::of(outcome.totals.ledger.rows().iter().map(row))
}

/// The requests whose responses could not be read.
fn unreadable(row: &FailureRow) -> Option<Unreadable> {
    match row.cause {
        Cause::Protocol(why) if why.is_unreadable() => Some(Unreadable { requests: row.count, why: why.to_string() }),
        _ => None,
    }
}

/// What connections were doing without a request in flight.
fn places(plan: &Plan, outcome: &Outcome, mean: impl Fn(u64) -> f64) -> Places {
    let Occupancy { busy_ns, open_ns, leaving_ns, connecting_ns, waiting_ns, absent_ns, done_ns, .. } =
        outcome.totals.counters.occupancy;
    let idle_ns = open_ns.saturating_sub(busy_ns);
    let leaving_ns = leaving_ns.min(idle_ns);
    Places {
        never_established: mean(absent_ns),
        waiting: mean(waiting_ns),
        connecting: mean(connecting_ns),
        // With a rate, most idle connections simply have nothing to send.
        pausing: if outcome.pauses && plan.schedule.is_none() { mean(idle_ns - leaving_ns) } else { 0.0 },
        leaving: mean(leaving_ns),
        done: mean(done_ns),
    }
}

impl Stall {
    /// A time since measuring began.
    pub fn of(gap: &Gap) -> Self {
        Self { start_s: gap.from_ns as f64 / 1e9, length_s: gap.length_ns() as f64 / 1e9 }
    }
}

/// The silences that no ordinary latency explains.
pub fn silences(plan: &Plan, outcome: &Outcome) -> Vec<Silence> {
    let least_ns = min_silence_ns(&outcome.totals.latency, outcome.totals.open_loop.is_some());
    let per_s = outcome
        .totals
        .open_loop
        .as_ref()
        .map(|_| count_per_second(counted_requests(outcome), outcome.elapsed.as_secs_f64()));
    let with_heard = outcome.silences.iter().map(|gap| (*gap, observable_gap_ns(plan, outcome, *gap)));
    let long = with_heard.filter(|(gap, heard_ns)| *heard_ns >= least_ns || is_unlikely(*gap, *heard_ns, per_s));
    long.map(|(gap, heard_ns)| silence(gap, heard_ns)).collect()
}

/// With a rate, however long responses take, a time is no chance if this many were to be expected in it: they may all be late,
/// but not all at once. At the beginning they are.
const SURELY: f64 = 100.0;

/// Whether a time without a response, of which this much could be heard, is no chance at this many responses per second.
pub fn is_unlikely(gap: Gap, heard_ns: u64, per_s: Option<f64>) -> bool {
    gap.from_ns > 0 && heard_ns >= GAP_MIN_NS && per_s.is_some_and(|per_s| heard_ns as f64 / 1e9 * per_s >= SURELY)
}

/// Whether connects failed because this machine had no port, descriptor or memory for them.
fn is_our_connect(row: &FailureRow) -> bool {
    row.phase == Phase::Connect && is_local_exhaustion(row.cause)
}

/// Whether connects or requests failed from this time on, in nanoseconds. Those that only lasted long did not.
fn fails_from(outcome: &Outcome, from_ns: u64) -> bool {
    let is_failure = |row: &&FailureRow| {
        !matches!(row.phase, Phase::Timeout | Phase::Status | Phase::Check | Phase::Abandoned) && !is_our_connect(row)
    };
    let mut rows = outcome.totals.ledger.rows().iter().filter(is_failure);
    // Their times are in tenths of a second.
    rows.any(|row| row.last_s() + 0.1 >= from_ns as f64 / 1e9)
}

/// A silence, and for how much of it a response could have been noticed.
pub fn silence(gap: Gap, heard_ns: u64) -> Silence {
    let [start_s, length_s, heard_s] = [gap.from_ns, gap.length_ns(), heard_ns].map(|ns| ns as f64 / 1e9);
    Silence { start_s, length_s, heard_s }
}

/// The length, in nanoseconds, from which a silence is no ordinary latency.
pub fn ordinary_ns(latency: &Distribution<u64>) -> u64 {
    latency.percentile(50.0).saturating_mul(SLOW)
}

/// A request in flight hangs from this age in nanoseconds on ...
const HANGING_NS: u64 = 1_000_000_000;
/// ... if that is also this many times the slowest response.
const HANGING_TIMES: u64 = 3;

/// The requests in flight at the end that hang.
fn hanging(outcome: &Outcome) -> u64 {
    let Totals { latency, censored, counters, .. } = &outcome.totals;
    let least_ns = HANGING_NS.max(latency.max().unwrap_or(0).saturating_mul(HANGING_TIMES));
    // Responses that arrive while the script holds the thread up are not read, perhaps not even by the end.
    let run_ns = nanos(outcome.elapsed);
    let is_old = |age_ns: u64| {
        let waited = Gap { from_ns: run_ns.saturating_sub(age_ns), until_ns: run_ns };
        let free = uncovered_parts(waited, &outcome.in_script);
        age_ns - waited.length_ns() + free.into_iter().map(Gap::length_ns).sum::<u64>() >= least_ns
    };
    let ages = censored.iter().flat_map(|censored| censored.values());
    let older: u64 = ages.filter(|&(age_ns, _)| is_old(age_ns)).map(|(_, count)| count).sum();
    older.saturating_sub(counters.abandoned).min(counters.open_at_end)
}

/// How many requests may be in flight at the end of a run that was kept up with: what comes of the rate that it reached at
/// last and of the 99th percentile of the latency before, and what may come by chance. A backlog that grows has longer
/// latencies at last. `None`: too few responses before.
fn usually_left(outcome: &Outcome) -> Option<u64> {
    let Timeline { rows, length_ns } = &outcome.timeline;
    let (before, last) = rows.split_at(rows.len() - rows.len().div_ceil(3));
    let sum = |rows: &[RowFigures]| {
        let mut sum = RowFigures::default();
        rows.iter().for_each(|row| sum += row);
        sum
    };
    // A run with one row has no time before the last.
    let before = if before.is_empty() { sum(last) } else { sum(before) };
    if before.scheduled.count() < RESPONSES_MIN {
        return None;
    }
    let last_ns = nanos(outcome.elapsed).saturating_sub((rows.len() - last.len()) as u64 * length_ns);
    let done_per_ns = sum(last).completed as f64 / last_ns.max(1) as f64;
    let usual = done_per_ns * before.scheduled.percentile_ns(99.0)?;
    Some((usual + 3.0 * usual.sqrt()).ceil() as u64 + 2)
}

/// The fewest responses that tell how long they usually take.
const RESPONSES_MIN: u64 = 20;

/// The requests that were due and have not ended: unsent or in flight.
fn left(counters: &Counters, open_loop: &OpenLoopStats<u64>) -> u64 {
    let ended = counters.completed + counters.failed + counters.abandoned + open_loop.dropped;
    (open_loop.due + open_loop.carried + counters.carried).saturating_sub(ended)
}

/// How many requests would have been due while a run of a number of requests waited for the last of them, and for how long it did;
/// `None`: none.
fn overdue(plan: &Plan, outcome: &Outcome, open_loop: &OpenLoopStats<u64>) -> Option<(u64, Duration)> {
    let schedule = plan.schedule.as_ref().filter(|_| plan.stop.requests.is_some())?;
    let planned = |at: Duration| schedule.per_second_between(Duration::ZERO, at) * at.as_secs_f64();
    let all = planned(outcome.elapsed);
    let by_chance = if schedule.arrivals == Arrivals::Poisson { 3.0 * all.sqrt() } else { 0.0 };
    let never_due = (all - by_chance - open_loop.due as f64).max(0.0);
    // One slow response at the end holds up nothing: as many came after the last request was due as had not ended then.
    let (mut before, mut after) = (Duration::ZERO, outcome.elapsed);
    for _ in 0..60 {
        let between = (before + after) / 2;
        *(if planned(between) < open_loop.due as f64 { &mut before } else { &mut after }) = between;
    }
    let overdue = never_due.min(completed_after(&outcome.timeline, outcome.elapsed, before)) as u64;
    (overdue > 0).then(|| (overdue, outcome.elapsed.saturating_sub(before)))
}

/// About how many responses were completed from a moment on.
fn completed_after(Timeline { rows, length_ns }: &Timeline, elapsed: Duration, moment: Duration) -> f64 {
    let (end_ns, moment_ns) = (nanos(elapsed), nanos(moment));
    let after = |(number, row): (u64, &RowFigures)| {
        let (from_ns, until_ns) = (number * length_ns, ((number + 1) * length_ns).min(end_ns));
        let share =
            until_ns.saturating_sub(from_ns.max(moment_ns)) as f64 / until_ns.saturating_sub(from_ns).max(1) as f64;
        row.completed as f64 * share
    };
    (0..).zip(rows).map(after).sum()
}

/// The latency grows from this many standard errors of its slope on (in five windows: rarely by chance in a queue that
/// comes and goes) ...
const STEEP: f64 = 5.0;
/// ... and from this many seconds a second.
const GROWTH_MIN: f64 = 0.003;
/// The windows in which it is averaged.
const WINDOWS: usize = 5;

/// Whether the rate is the same all the time: the latency may follow one that is not.
fn is_constant(plan: &Plan) -> bool {
    let stages = plan.schedule.iter().flat_map(|schedule| &schedule.stages);
    let mut rates = stages.flat_map(|stage| [stage.from, stage.to]);
    let first = rates.next();
    rates.all(|rate| Some(rate) == first)
}

/// How fast the latency since requests were due grows, in seconds a second; `None`: it does not, or the run is too short
/// to tell.
fn growth(timeline: &Timeline) -> Option<f64> {
    let per_window = timeline.rows.len() / WINDOWS;
    let window = |rows: &[RowFigures]| {
        let sum_ns: u128 = rows.iter().map(|row| row.scheduled.sum_ns).sum();
        let count: u64 = rows.iter().map(|row| row.scheduled.count()).sum();
        (count > 0).then(|| sum_ns as f64 / count as f64 / 1e9)
    };
    let windows: Option<Vec<f64>> = timeline.rows.chunks_exact(per_window.max(1)).take(WINDOWS).map(window).collect();
    let windows = windows.filter(|windows| per_window > 0 && windows.len() == WINDOWS)?;
    let step_s = per_window as f64 * timeline.length_ns as f64 / 1e9;
    let points: Vec<(f64, f64)> = (0..).map(|index: i32| f64::from(index) * step_s).zip(windows).collect();
    let (slope, error) = linear_slope(&points)?;
    (slope >= GROWTH_MIN && slope > STEEP * error).then(|| figure(slope))
}

/// Requests in flight earlier and later in the run. At the beginning there are few, for as long as responses take. If
/// most of the run is its beginning, the mean of all of it, and the number that the quickest responses suggest.
fn backlog(outcome: &Outcome) -> Option<Backlog> {
    let Timeline { rows, length_ns } = &outcome.timeline;
    let mut open = outcome.totals.counters.carried as f64;
    let ended = |row: &RowFigures| row.completed + row.failed + row.errors.abandoned;
    let in_flight: Vec<f64> = rows
        .iter()
        .map(|row| {
            let change = row.started as f64 - ended(row) as f64;
            open += change;
            open - change / 2.0
        })
        .collect();
    let (latency, elapsed_s) = (&outcome.totals.latency, outcome.elapsed.as_secs_f64());
    let begins = (BEGINNING * latency.mean()? / *length_ns as f64).ceil() as usize;
    let last = rows.len() - rows.len() / 3..rows.len();
    // A short run has no row to spare.
    let is_short = begins + 1 >= rows.len() / 2;
    let (begun, until) = if is_short {
        (begins, (rows.len() / 2).max(begins + 1).min(last.start))
    } else {
        (begins + 1, rows.len() / 2)
    };
    // By Little's law.
    let all_ns: u128 = rows.iter().map(|row| row.scheduled.sum_ns).sum();
    let waiting = figure(all_ns.saturating_sub(latency.sum()) as f64 / 1e9 / elapsed_s);
    let mean = |numbers: &[f64]| figure(numbers.iter().sum::<f64>() / numbers.len() as f64);
    let Some(before) = in_flight.get(begun..until).filter(|before| !before.is_empty() && !last.is_empty()) else {
        let per_s = latency.count() as f64 / elapsed_s;
        let all = figure(latency.sum() as f64 / 1e9 / elapsed_s);
        let least = Some(figure(per_s * latency.percentile(QUICK) as f64 / 1e9));
        return Some(Backlog { before: all, last: all, least, waiting, last_per_s: figure(per_s) });
    };
    let completed: u64 = rows[last.clone()].iter().map(|row| row.completed).sum();
    let last_s = elapsed_s - last.start as f64 * *length_ns as f64 / 1e9;
    let last_per_s = if last_s > 0.0 { figure(completed as f64 / last_s) } else { 0.0 };
    let first = rows.first().filter(|_| is_short).and_then(|row| in_flight_at_first(row, *length_ns as f64));
    let least = in_flight[begun..].iter().copied().chain(first).reduce(f64::min).map(figure);
    Some(Backlog { before: mean(before), last: mean(&in_flight[last]), least, waiting, last_per_s })
}

/// Requests in flight in the first row, by Little's law, once the first responses have come. `None`: that is most of it.
fn in_flight_at_first(row: &RowFigures, length_ns: f64) -> Option<f64> {
    let sum_ns = row.latency.sum_ns as f64;
    let mean_ns = sum_ns / row.latency.count() as f64;
    (mean_ns < length_ns / 2.0).then(|| sum_ns / (length_ns - mean_ns))
}

/// Percentile of the latencies that hardly waited in a queue.
const QUICK: f64 = 10.0;

/// The index of dispersion of responses, from the rates of samples. The standard deviation is half of the distance of the
/// percentiles that enclose it in a normal distribution: the first sample, and those of a stall, do not count.
fn dispersion(rates: &Distribution<u64>) -> Option<f64> {
    let mean = rates.mean().filter(|mean| *mean > 0.0 && rates.count() >= SAMPLES_MIN)?;
    let deviation = (rates.percentile(84.0) - rates.percentile(16.0)) as f64 / 2.0;
    Some(figure(deviation * deviation * SAMPLE_S / mean))
}

/// The fewest samples whose dispersion means anything, and how long each lasts, in seconds.
const SAMPLES_MIN: u64 = 20;
const SAMPLE_S: f64 = 0.1;

/// How many mean latencies after the beginning of a run as many requests are in flight as usually.
const BEGINNING: f64 = 2.0;

/// With a rate, a time without a response means something if this many were to be expected in it.
const EXPECTED: f64 = 20.0;

/// How many responses a second are expected: as many as there were. If there were none, as many as were asked for, unless
/// none of this many requests was ever in flight.
pub fn expected_per_s(rate_per_s: f64, asked_per_s: f64, in_flight: u64) -> f64 {
    if rate_per_s > 0.0 || in_flight == 0 { rate_per_s } else { asked_per_s }
}

/// For how long in all no response came that onrush would have noticed. With a rate, of this many responses per second,
/// short times are those of a slow response.
pub fn quiet_s(silences: &[Silence], per_s: Option<f64>) -> f64 {
    let heard_s = silences.iter().map(|silence| silence.heard_s);
    figure(heard_s.filter(|heard_s| per_s.is_none_or(|per_s| heard_s * per_s >= EXPECTED)).sum())
}

/// The same, however few were to be expected.
pub fn heard_s(silences: &[Silence]) -> f64 {
    quiet_s(silences, None)
}

/// The share of due requests that were sent.
pub fn sent(due: u64, missed: u64) -> f64 {
    if due == 0 { 1.0 } else { 1.0 - missed as f64 / due as f64 }
}

/// The 99th percentile of the lateness, in microseconds.
pub fn lateness_p99_us(lateness: &Distribution<u64>) -> f64 {
    figure(lateness.percentile(99.0) as f64 / 1e3)
}

/// Requests sent while few connections were busy.
pub struct Calm {
    /// How many there were.
    pub requests: u64,
    /// Their mean latency, in nanoseconds.
    pub mean_ns: f64,
    /// How many were in flight on average when they were sent, where it is known.
    pub in_flight: Option<f64>,
}

fn calm(outcome: &Outcome) -> Option<Calm> {
    let open_loop = outcome.totals.open_loop.as_deref().filter(|open_loop| open_loop.calm > 0)?;
    let mean = |sum: u64| sum as f64 / open_loop.calm as f64;
    let in_flight = Some(figure(mean(open_loop.calm_in_flight) * outcome.workers.len() as f64));
    Some(Calm { requests: open_loop.calm, mean_ns: mean(open_loop.calm_ns), in_flight })
}

/// The figures of the latencies, and of those with few requests in flight.
pub fn latency(latency: &Distribution<u64>, calm: Option<&Calm>) -> Option<Latency> {
    let us = |percent: f64| figure(latency.percentile(percent) as f64 / 1e3);
    let delayed: u64 = latency.values().filter(|(ns, _)| DELAYED_NS.contains(ns)).map(|(_, count)| count).sum();
    let slow_ns = ordinary_ns(latency).max(1);
    Some(Latency {
        mean_us: figure(latency.mean()? / 1e3),
        calm_us: calm.map(|calm| figure(calm.mean_ns / 1e3)),
        calm: calm.map_or(0, |calm| calm.requests),
        calm_in_flight: calm.and_then(|calm| calm.in_flight),
        p50_us: us(50.0),
        p99_us: us(99.0),
        delayed: figure(delayed as f64 / latency.count() as f64),
        slow: latency.values().filter(|(ns, _)| *ns >= slow_ns).map(|(_, count)| count).sum(),
    })
}

/// The generator's end of some connections.
fn network(outcome: &Outcome) -> Option<Network> {
    let sockets = &outcome.totals.sockets;
    // Assumes that each connection had the same number of requests.
    let counters = &outcome.totals.counters;
    let all_us = (counters.occupancy.open_ns / 1_000).max(1) as f64;
    let requests = sockets.between_readings_us as f64 / all_us * counters.completed as f64;
    let lost_per_request = if requests > 0.0 { sockets.lost_segments() as f64 / requests } else { 0.0 };
    Network::from_sockets(sockets, lost_per_request)
}

/// How the rate changed over a run that is long enough.
fn thirds(timeline: &Timeline) -> Option<Thirds> {
    let rates: Vec<f64> =
        timeline.rows.iter().map(|row| row.completed as f64 * 1e9 / timeline.length_ns as f64).collect();
    // The last row may be short.
    let (_, rates) = rates.split_last()?;
    let third = rates.len() / 3;
    if third < ROWS_PER_THIRD {
        return None;
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    // From one second to the next (von Neumann), so that a trend within a third does not count as noise.
    let variance = |rates: &[f64]| {
        let steps = rates.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>();
        steps / (2 * (rates.len() - 1)) as f64
    };
    let (first, last) = (&rates[..third], &rates[rates.len() - third..]);
    let error_per_s = ((variance(first) + variance(last)) / third as f64).sqrt();
    Some(Thirds { first_per_s: figure(mean(first)), last_per_s: figure(mean(last)), error_per_s: figure(error_per_s) })
}

/// Rounds to four decimals, which is enough for evidence.
pub fn figure(number: f64) -> f64 {
    // The sum of no numbers is a negative zero.
    (number * 1e4).round() / 1e4 + 0.0
}

#[cfg(test)]
mod tests {
    use onrush_plan::levels::ConnectionLevels;
    use onrush_plan::{Dialect, Partition};
    use onrush_stats::Errors;

    use super::*;
    use crate::fixtures::{flawless, outcome_with, plan, record_failures, schedule};

    #[test]
    fn one_slow_response_at_the_end_of_a_number_of_requests_leaves_nothing() {
        let left_of = |elapsed_ms: u64, rows: [u64; 2]| {
            let mut plan = plan(Dialect::Native, "http://h/", 10, 1, 10);
            (plan.schedule, plan.stop.requests) = (Some(schedule(1_000)), Some(1_000));
            let completed = rows.iter().sum();
            let mut outcome = outcome_with(1_000 * elapsed_ms, Counters { completed, ..Counters::default() });
            let row = |completed| RowFigures { completed, ..RowFigures::default() };
            outcome.timeline = Timeline { length_ns: 1_000_000_000, rows: rows.map(row).into() };
            let open_loop = OpenLoopStats { due: 1_000, ..OpenLoopStats::default() };
            let overdue = overdue(&plan, &outcome, &open_loop).map(|(overdue, overrun)| (overdue, overrun.as_millis()));
            (left(&outcome.totals.counters, &open_loop), overdue)
        };
        assert_eq!(left_of(1_150, [999, 1]), (0, Some((1, 150))));
        assert_eq!(left_of(2_000, [500, 500]), (0, Some((500, 1_000))), "what came after the last was due");
        assert_eq!(left_of(1_500, [700, 200]), (100, Some((200, 500))), "besides what never ended");
        assert_eq!(left_of(1_000, [500, 500]), (0, None));
    }

    #[test]
    fn connections_that_fail_without_a_request_do_not_shorten_the_backlog() {
        let mut outcome = flawless(10_000, 10);
        let errors = Errors { read: 60, abandoned: 3, ..Errors::default() };
        let row = RowFigures { started: 100, completed: 90, failed: 7, errors, ..RowFigures::default() };
        outcome.timeline = Timeline { length_ns: 1_000_000_000, rows: vec![row; 12] };
        outcome.elapsed = Duration::from_secs(12);
        outcome.totals.counters.carried = 20;
        assert_eq!(
            backlog(&outcome),
            Some(Backlog { before: 20.0, last: 20.0, least: Some(20.0), waiting: 0.0, last_per_s: 90.0 })
        );
    }

    #[test]
    fn short_runs_have_a_backlog() {
        let backlog_of = |rows: &[[u64; 2]], latency_ms: u64| {
            let mut outcome = flawless(0, 10);
            let row = |&[started, completed]: &[u64; 2]| {
                let mut latencies = Distribution::<u64>::default();
                (0..completed).for_each(|_| latencies.record(latency_ms * 1_000_000));
                let mut row = RowFigures { started, completed, ..RowFigures::default() };
                row.latency.record(&latencies);
                row
            };
            outcome.timeline = Timeline { length_ns: 1_000_000_000, rows: rows.iter().map(row).collect() };
            outcome.elapsed = Duration::from_secs(rows.len() as u64);
            for _ in 0..rows.iter().map(|row| row[1]).sum() {
                outcome.totals.latency.record(latency_ms * 1_000_000);
            }
            backlog(&outcome).unwrap()
        };
        let three = backlog_of(&[[520, 500]; 3], 20);
        assert_eq!((three.before, three.last), (30.0, 50.0), "20 more each second");
        assert!(three.least.is_some_and(|least| (least - 10.2).abs() < 0.2), "{three:?}");
        let steady = backlog_of(&[[1_000, 900], [1_000, 1_000], [1_000, 1_000], [1_000, 1_000], [1_000, 1_000]], 100);
        assert_eq!((steady.before, steady.last), (100.0, 100.0));
        assert!(steady.least.is_some_and(|least| least > 99.0), "{steady:?}");
        let one = backlog_of(&[[520, 500]], 20);
        assert!((one.before - 10.0).abs() < 0.2 && one.before == one.last && one.least >= Some(9.8), "{one:?}");
    }

    #[test]
    fn what_this_machine_lacks_is_no_error_of_the_target() {
        let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let mut outcome = flawless(100_000, 10);
        for (number, times) in [(Errno::ADDRNOTAVAIL, 3), (Errno::MFILE, 40), (Errno::CONNREFUSED, 5)] {
            record_failures(&mut outcome, times, Phase::Connect, Cause::Errno(number.raw_os_error()));
        }
        let load = load(&plan, &outcome);
        assert_eq!((load.without_port, load.connect_errors), (3, 5));
    }

    #[test]
    fn the_main_failure_is_the_most_frequent_cause_with_its_remedy() {
        let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let mut outcome = flawless(100_000, 10);
        record_failures(&mut outcome, 900, Phase::Timeout, Cause::Late);
        record_failures(&mut outcome, 50, Phase::Head, Cause::Protocol(Error::ClosedBeforeResponse));
        record_failures(&mut outcome, 80, Phase::Connect, Cause::Errno(Errno::MFILE.raw_os_error()));
        let main =
            |outcome: &Outcome| load(&plan, outcome).main_failure.map(|main| (main.count, main.why, main.advice));
        let closed = "closed by the server before a response began".to_owned();
        assert_eq!(main(&outcome), Some((50, closed, None)), "neither what was late nor what this machine lacks");
        record_failures(
            &mut outcome,
            60,
            Phase::Head,
            Cause::Protocol(Error::Reset(onrush_proto::Code::REFUSED_STREAM)),
        );
        let advice = Some("fewer --streams or a lower rate (-R) may help".to_owned());
        assert_eq!(main(&outcome), Some((60, "reset by the server (REFUSED_STREAM)".to_owned(), advice)));
        record_failures(&mut outcome, 70, Phase::Connect, Cause::Errno(Errno::CONNREFUSED.raw_os_error()));
        let advice = Some("nothing listened there: is the target running, and its address right?".to_owned());
        assert_eq!(main(&outcome), Some((70, "connection refused (ECONNREFUSED)".to_owned(), advice)));
    }

    #[test]
    fn connections_that_fail_without_a_request_do_not_hide_what_cannot_be_read() {
        let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let mut outcome = outcome_with(10_000_000, Counters { started: 51, failed: 51, ..Counters::default() });
        record_failures(&mut outcome, 51, Phase::Head, Cause::Protocol(Error::NotHttp));
        record_failures(&mut outcome, 73, Phase::Head, Cause::Protocol(Error::EarlyBytes));
        let load = load(&plan, &outcome);
        assert_eq!(load.unreadable, Some(Unreadable { requests: 51, why: "not an HTTP response".to_owned() }));
    }

    #[test]
    fn slots_that_the_plan_does_not_want_are_not_open_connections_in_use() {
        let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let mut outcome = flawless(100_000, 10);
        let occupancy = &mut outcome.totals.counters.occupancy;
        (occupancy.open_ns, occupancy.busy_ns, occupancy.done_ns) = (50_000_000_000, 5_000_000_000, 50_000_000_000);
        assert_eq!(load(&plan, &outcome).idle, Some(0.9));
    }

    #[test]
    fn a_target_that_answers_nothing_is_quiet_beside_the_rate_that_was_asked_for() {
        assert_eq!(expected_per_s(900.0, 1_000.0, 5_000), 900.0);
        assert_eq!(expected_per_s(0.0, 1_000.0, 5_000), 1_000.0);
        assert_eq!(expected_per_s(0.0, 1_000.0, 0), 0.0, "it was asked for nothing");
        let silent = [Silence { start_s: 0.0, length_s: 10.0, heard_s: 10.0 }];
        let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        plan.schedule = Some(schedule(1_000));
        let quiet_s_of = |started, carried| {
            let mut outcome = outcome_with(10_000_000, Counters { started, carried, ..Counters::default() });
            outcome.totals.open_loop = Some(Box::default());
            outcome.silences = vec![Gap { from_ns: 0, until_ns: 10_000_000_000 }];
            load(&plan, &outcome).quiet_s
        };
        assert_eq!((quiet_s_of(5_000, 0), quiet_s_of(0, 0)), (10.0, 0.0));
        assert_eq!(quiet_s_of(0, 4), 10.0, "it stopped in the warm-up");
        assert_eq!((quiet_s(&silent, Some(1.9)), quiet_s(&silent, Some(2.0))), (0.0, 10.0));
    }

    #[test]
    fn the_option_that_makes_room_is_the_one_that_limits() {
        let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let mut outcome = flawless(100_000, 10);
        let room = |plan: &Plan, outcome: &Outcome| load(plan, outcome).room;
        assert_eq!(room(&plan, &outcome), None, "there is no rate");
        plan.schedule = Some(schedule(1_000));
        assert_eq!(room(&plan, &outcome), Some(Room::Connections));
        plan.http.streams = Some(50);
        assert_eq!(room(&plan, &outcome), Some(Room::Connections), "HTTP/1.1 was spoken");
        let seen = outcome.http2.get_or_insert_default();
        (seen.connections, seen.streams_peak) = (10, 40);
        for (allowed, expected) in [(None, Room::Streams), (Some(51), Room::Streams), (Some(50), Room::Connections)] {
            let seen = outcome.http2.get_or_insert_default();
            (seen.streams_allowed_min, seen.streams_allowed_max) = (allowed, allowed);
            assert_eq!(room(&plan, &outcome), Some(expected), "{allowed:?}");
        }
        plan.levels = Some(ConnectionLevels { stages: Vec::new(), part: Partition::WHOLE });
        assert_eq!(room(&plan, &outcome), Some(Room::Stages));
        (plan.levels, plan.in_flight_max) = (None, Some(10));
        assert_eq!(room(&plan, &outcome), Some(Room::MaxInflight), "as many as there are connections");
    }

    #[test]
    fn the_most_requests_in_flight_are_those_that_servers_allow() {
        let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        plan.http.streams = Some(50);
        let mut outcome = flawless(100_000, 10);
        let most = |plan: &Plan, outcome: &Outcome| load(plan, outcome).in_flight_max;
        assert_eq!(most(&plan, &outcome), None, "HTTP/1.1 was spoken");
        let mut allowed = |least, largest| {
            let seen = outcome.http2.get_or_insert_default();
            (seen.connections, seen.streams_peak) = (10, 40);
            (seen.streams_allowed_min, seen.streams_allowed_max) = (least, largest);
            most(&plan, &outcome)
        };
        assert_eq!(allowed(None, None), Some(500), "no server named a limit");
        assert_eq!(allowed(Some(20), Some(20)), Some(200));
        assert_eq!(allowed(Some(100), Some(200)), Some(500), "each is enough");
        assert_eq!(allowed(Some(20), Some(100)), Some(400), "as many as there were");
        assert_eq!(allowed(None, Some(100)), Some(400), "some named none");
    }
}
