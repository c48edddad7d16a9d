//! Decides which notes an outcome gets.

use std::cmp::Reverse;

use onrush_plan::{LimitedBy, Plan};
use onrush_stats::buffers::Sizes;
use onrush_stats::silences::GAP_MIN_NS;
use onrush_stats::{Cause, Counters, Gap, Handshakes, Occupancy, Phase, Row, Totals};
use rustix::io::Errno;

use super::fold::in_order;
use super::open_loop::MoreConnections;
use super::{Capped, Flight, Hanging, Lost, Note, NothingSent, Places, open_loop};
use crate::failure::Failure;
use crate::figures::correct::rewritten;
use crate::figures::silences::silences;
use crate::figures::unavailable::Unavailable;
use crate::judge::verdict::{is_held, sentence};
use crate::record::evidence::Evidence;
use crate::record::{Finding, Verdict};
use crate::run::{Breakdown, Ended, Outcome, host, nanos};

/// A class of statuses other than 2xx is worth a note above this percentage of the responses.
const STATUS_PERCENT: u64 = 1;
/// Resumed TLS handshakes are worth a note above this percentage of the responses.
const RESUMED_PERCENT: u64 = 1;
/// An open request younger than this, in nanoseconds, is not unusual, no matter how fast the responses were.
const USUAL_NS: u64 = 500_000_000;
/// In a run shorter than this, in nanoseconds, the first connects take much of the time and mean nothing.
const PLACES_MIN_NS: u64 = 200_000_000;
/// Connections that stages ask for only this long, in nanoseconds, may not be established before they are no longer
/// wanted.
const OPENING_NS: u64 = 1_000_000_000;
/// Requests from the warm-up are worth a note above this percentage of the responses.
const CARRIED_PERCENT: u64 = 1;
/// They are also worth a note where the latencies add up to at least this multiple of the time in flight.
const CARRIED_WEIGHT: f64 = 1.1;
/// Idle connections that the server closed are worth a note above this percentage of the responses.
const IDLE_CLOSED_PERCENT: u64 = 1;
/// Short stalls are worth a note above this share of the run.
const STALLED_SHARE: f64 = 0.2;
/// Maximum number of silences or stalls that are named.
const TIMES_NAMED: usize = 3;

/// All notes on an outcome, most important first; none if it is beyond doubt.
pub fn notes(plan: &Plan, outcome: &Outcome, evidence: Option<&Evidence>, verdict: Option<&Verdict>) -> Vec<Note> {
    let verdict = verdict.zip(evidence);
    // What a thread that never returned opened and sent is unknown.
    let has_panicked = matches!(outcome.breakdown, Some(Breakdown::Bug(_)));
    let is_known = outcome.stuck.is_empty() && !has_panicked && outcome.ended != Ended::NeverBegun;
    let mut rows: Vec<&Row> = outcome.totals.ledger.rows().iter().filter(|row| row.phase != Phase::Status).collect();
    // The order in which threads' rows were added is random and must not show.
    rows.sort_by_key(|row| (Reverse(row.count), row.phase, row.cause));
    let mut flight = if is_known { in_flight(plan, outcome) } else { Vec::new() };
    // If every request was sent when it was due, no connection was missing.
    let is_kept = outcome.totals.open_loop.as_deref().is_some_and(|open_loop| !open_loop::is_missed(open_loop));
    flight.retain(|note| !(is_kept && matches!(note, Note::Idle { .. })));
    let has_hanging = flight.iter().any(|note| matches!(note, Note::Hanging { .. }));

    let suspended = (!outcome.suspended.is_zero()).then_some(Note::Suspended { lasted: outcome.suspended });
    let mut notes: Vec<Note> = suspended.into_iter().chain(stalled(outcome)).collect();
    notes.extend(fewer_connections(plan, outcome).filter(|_| is_known));
    notes.extend(flight);
    notes.extend(capped(plan, outcome));
    let silences = silences(plan, outcome);
    let silent_ns = silences.iter().map(|(_, silent_ns)| silent_ns).sum();
    notes.extend(open_loop::notes(plan, outcome, silent_ns, more_connections(verdict)));
    notes.extend(early_end(plan, outcome));
    notes.extend(outcome.until.clone().filter(|_| outcome.totals.counters.completed > 0).map(|until| Note::Until {
        until,
        elapsed: outcome.elapsed,
        counted: outcome.ended == Ended::Requests,
    }));
    notes.extend(unanswered(plan, outcome, has_hanging).filter(|_| is_known));
    notes.extend(without_response(plan, outcome, &silences));
    let is_said = notes.iter().any(|note| matches!(note, Note::FewerConnections { .. }));
    let shortage = outcome.descriptors.filter(|_| !is_said);
    notes.extend(rows.into_iter().map(|row| Note::Failure(Failure { shortage, ..Failure::of(plan, outcome, row) })));
    notes.extend(statuses(plan, outcome));
    notes.extend(found(verdict));
    notes.extend(hints(plan, outcome));
    in_order(notes)
}

/// Notes on requests in flight and on where connections were.
fn in_flight(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let Totals { latency, censored, counters, .. } = &outcome.totals;
    let elapsed_ns = nanos(outcome.elapsed);
    // The imitated tools leave responses out of the latencies, which then account for too few requests.
    if plan.once || plan.dialect.is_compat() || counters.completed == 0 || elapsed_ns == 0 || outcome.has_lost_threads()
    {
        return Vec::new();
    }
    let censored = censored.as_deref();
    let mean = |sum_ns: u64| sum_ns as f64 / elapsed_ns as f64;
    let Occupancy { in_flight_ns, busy_ns, open_ns, leaving_ns, connecting_ns, waiting_ns, absent_ns, done_ns } =
        counters.occupancy;
    let idle_ns = open_ns.saturating_sub(busy_ns);
    let leaving_ns = leaving_ns.min(idle_ns);
    let places = Places {
        busy: mean(busy_ns),
        never_established: mean(absent_ns),
        waiting: mean(waiting_ns),
        connecting: mean(connecting_ns),
        // With a rate, most idle connections simply have nothing to send.
        pausing: if outcome.pauses && plan.schedule.is_none() { mean(idle_ns - leaving_ns) } else { 0.0 },
        leaving: mean(leaving_ns),
        done: mean(done_ns),
    };
    let flight = Flight {
        connections: outcome.most_connections(plan),
        elapsed_ns,
        mean: mean(in_flight_ns),
        // Latencies that began in the warm-up were partly in flight outside the measured time.
        answered: (latency.sum() as f64 / elapsed_ns as f64).min(mean(in_flight_ns)),
        places: (elapsed_ns >= PLACES_MIN_NS).then_some(places),
        reconnects: counters.connects * 2 > counters.completed,
        hanging: censored.and_then(|censored| Hanging::of(censored, counters.abandoned, latency)),
        slowest_ns: latency.max().unwrap_or(0),
        is_scheduled: plan.schedule.is_some(),
    };
    flight.notes()
}

fn early_end(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    match outcome.ended {
        Ended::Signal => Some(Note::Signal { elapsed: outcome.elapsed, planned: plan.stop.duration }),
        Ended::NeverBegun => Some(Note::NeverBegun),
        Ended::StayedAway => Some(Note::StayedAway {
            give_up: plan.give_up.unwrap_or(outcome.elapsed),
            started: outcome.totals.counters.started,
            asked: plan.stop.requests.unwrap_or_default(),
        }),
        Ended::Duration => too_few_requests(plan, outcome),
        // A run that could not start prints an error instead of a report.
        Ended::Requests | Ended::Refused { .. } => None,
    }
}

/// The duration ended before all requests completed. (A script may end a run before either.)
fn too_few_requests(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let elapsed = outcome.elapsed;
    let asked = plan.stop.requests?;
    let completed = outcome.totals.counters.completed;
    let is_over = elapsed >= plan.stop.duration? && outcome.breakdown.is_none() && completed > 0;
    is_over.then_some(Note::TooFewRequests { elapsed, completed, asked, staged: plan.is_staged() })
}

/// The buffers that the kernel made smaller than requested.
fn capped(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let (asked, had) = (&plan.way.socket, outcome.buffers);
    let both = [
        ("--rcvbuf", "net.core.rmem_max", asked.rcvbuf, had.rcvbuf),
        ("--sndbuf", "net.core.wmem_max", asked.sndbuf, had.sndbuf),
    ];
    let note = |(option, setting, requested, had): (_, _, Option<u32>, Option<Sizes>)| {
        // The kernel doubles the requested size.
        let (requested, given) = (requested?, had?.min / 2);
        (given < requested).then_some(Note::Capped(Capped { option, setting, requested, given }))
    };
    both.into_iter().filter_map(note).collect()
}

fn fewer_connections(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let opened = outcome.totals.counters.slots_opened;
    let elapsed_ns = nanos(outcome.elapsed);
    // With stages, only connections that there was time to open count.
    let least_ns = OPENING_NS.min(elapsed_ns).max(1);
    let asked = plan.levels.as_ref().map_or(plan.load.connections, |levels| levels.most_for(least_ns, elapsed_ns));
    let asked = u64::from(asked);
    let failures = outcome.totals.ledger.totals().connect > 0;
    // All requests completed before every connection was established: the others were not needed.
    let is_moot = outcome.ended == Ended::Requests && !failures && outcome.descriptors.is_none();
    let room = host::room(plan, outcome.descriptors).map(u64::from);
    let is_full = room.is_some_and(|room| opened >= room);
    // That there was no room for more was said before the run, and is not why even fewer were established.
    let asked = if is_full { asked } else { room.map_or(asked, |room| asked.min(room)) };
    (opened < asked && !is_moot && !plan.once).then_some(Note::FewerConnections {
        opened,
        asked,
        shortage: outcome.descriptors.filter(|_| is_full || ran_out_of_files(outcome)),
        announced: room == Some(opened),
        failures,
        staged: plan.levels.is_some(),
    })
}

/// Whether a connection could not be opened for lack of a file descriptor.
fn ran_out_of_files(outcome: &Outcome) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE].map(|errno| Cause::Errno(errno.raw_os_error()));
    outcome.totals.ledger.rows().iter().any(|row| codes.contains(&row.cause))
}

fn unanswered(plan: &Plan, outcome: &Outcome, has_hanging: bool) -> Option<Note> {
    if outcome.elapsed.is_zero() {
        // A run that never began has no requests to account for.
        return None;
    }
    let counters = &outcome.totals.counters;
    let nothing_answered = counters.completed == 0;
    let censored = outcome.totals.censored.as_deref();
    let open = match nothing_answered {
        true => counters.open_at_end,
        // They have their own note.
        false if has_hanging => 0,
        false => unusual(plan, outcome),
    };
    let lost = Lost {
        started: counters.started + counters.carried,
        failed: counters.failed,
        abandoned: counters.abandoned,
        open,
        // The distribution also has ordinary open requests.
        youngest_ns: censored.filter(|_| open == counters.open_at_end).and_then(|censored| censored.min()),
        oldest_ns: censored.and_then(|censored| censored.max()),
    };
    match nothing_answered {
        // The failure has its own note.
        true if plan.once && lost.started > 0 => (lost.failed == 0).then_some(Note::NoAnswer(lost)),
        true if lost.started == 0 => Some(Note::NothingSent(nothing_sent(outcome))),
        true => Some(Note::NothingAnswered(lost)),
        false => (lost.total() > 0).then_some(Note::Lost(lost)),
    }
}

/// Why a run sent nothing.
fn nothing_sent(outcome: &Outcome) -> NothingSent {
    let Totals { counters, open_loop, .. } = &outcome.totals;
    if open_loop.as_deref().is_some_and(|open_loop| open_loop.due + open_loop.carried == 0) {
        NothingSent::NotDue
    } else if outcome.pauses && counters.slots_opened > 0 {
        NothingSent::Paused
    } else {
        NothingSent::Unable
    }
}

/// The number of requests in flight at the end that are unusually old: older than the slowest response if they are
/// late, otherwise older than twice that and than half a second.
fn unusual(plan: &Plan, outcome: &Outcome) -> u64 {
    let Totals { latency, censored, counters, .. } = &outcome.totals;
    let slowest_ns = latency.max().unwrap_or(0);
    let timeout_ns = plan.timeout.map_or(u64::MAX, nanos);
    let usual_ns = (slowest_ns * 2).max(USUAL_NS).min(slowest_ns.max(timeout_ns));
    let ages = censored.iter().flat_map(|censored| censored.values());
    let older: u64 = ages.filter(|&(age_ns, _)| age_ns > usual_ns).map(|(_, count)| count).sum();
    older.saturating_sub(counters.abandoned).min(counters.open_at_end)
}

/// The note on the times without a response: whether the target was unavailable, or without a schedule only when they
/// were.
fn without_response(plan: &Plan, outcome: &Outcome, silences: &[(Gap, u64)]) -> Option<Note> {
    let elapsed_ns = nanos(outcome.elapsed);
    if let Some(unavailable) = Unavailable::of(plan, outcome) {
        let (share, due) = (unavailable.share(), unavailable.due());
        let gaps: Vec<Gap> = unavailable.times.iter().map(|time| time.gap).collect();
        let is_said = !gaps.is_empty() && outcome.totals.counters.completed > 0;
        let count = gaps.len();
        return is_said.then(|| Note::Unavailable { longest: longest(gaps), count, elapsed_ns, share, due });
    }
    let gaps: Vec<Gap> = silences.iter().map(|(gap, _)| *gap).collect();
    (!gaps.is_empty()).then(|| Note::Silences { count: gaps.len(), longest: longest(gaps), elapsed_ns })
}

/// The note on the times in which onrush was stalled.
fn stalled(outcome: &Outcome) -> Option<Note> {
    let elapsed_ns = nanos(outcome.elapsed);
    let sum_ns: u64 = outcome.stalls.iter().map(|gap| gap.length_ns()).sum();
    let gaps: Vec<Gap> = outcome.stalls.iter().copied().filter(|gap| gap.length_ns() >= GAP_MIN_NS).collect();
    let share = (sum_ns as f64 / elapsed_ns.max(1) as f64).min(1.0);
    let matters = !gaps.is_empty() || share > STALLED_SHARE;
    // Requests in flight waited through it, and with a schedule also those that became due.
    let Totals { counters, open_loop, .. } = &outcome.totals;
    let in_flight = counters.occupancy.in_flight_ns as f64 / elapsed_ns.max(1) as f64;
    let due = open_loop.as_deref().map_or(0.0, |open_loop| open_loop.due as f64 * share);
    let waited = in_flight * outcome.stalls.len() as f64 + due;
    let touched = (waited / counters.completed.max(1) as f64).min(1.0);
    matters.then(|| Note::Stalled {
        count: gaps.len(),
        longest: longest(gaps),
        elapsed_ns,
        share,
        touched,
        latencies: counters.completed,
    })
}

/// The longest few, in chronological order.
fn longest(mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.sort_by_key(|gap| Reverse(gap.length_ns()));
    gaps.truncate(TIMES_NAMED);
    gaps.sort_by_key(|gap| gap.from_ns);
    gaps
}

fn statuses(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let answers = outcome.totals.counters.completed;
    let statuses = &outcome.totals.statuses;
    let doubtful = |class: u16| class != 2 && statuses.class_total(class) * 100 > answers * STATUS_PERCENT;
    if !(0..10).any(doubtful) {
        return None;
    }
    if outcome.totals.expects_tls && statuses.iter().all(|(status, _)| status == 400) {
        return Some(Note::ExpectsTls { answers });
    }
    let location = outcome.totals.location.clone();
    let mut counts: Vec<(u16, u64)> = statuses.iter().collect();
    if let (true, &[(status, _)]) = (plan.once, &counts[..]) {
        return Some(Note::Answer { status, location });
    }
    counts.sort_by_key(|&(status, count)| (Reverse(count), status));
    Some(Note::Statuses { answers, counts, location })
}

/// What the verdict says about more connections.
fn more_connections(verdict: Option<(&Verdict, &Evidence)>) -> MoreConnections {
    let Some((Verdict { limited_by, findings, .. }, evidence)) = verdict else { return MoreConnections::Unknown };
    let more_help = findings.iter().any(|finding| matches!(finding, Finding::DelayedAck | Finding::ListenQueue));
    match limited_by {
        LimitedBy::Target if !more_help => MoreConnections::Useless,
        _ if is_held(evidence) => MoreConnections::Useful,
        _ => MoreConnections::Unknown,
    }
}

/// Findings of the verdict that no other note covers.
fn found(verdict: Option<(&Verdict, &Evidence)>) -> Vec<Note> {
    let Some((verdict, evidence)) = verdict else { return Vec::new() };
    verdict.findings.iter().filter_map(|finding| sentence(*finding, evidence)).map(Note::Found).collect()
}

/// Notes that do not cast doubt on the result.
fn hints(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let used = &outcome.addresses;
    let dropped = outcome.dropped.iter().map(|&(address, errno)| Note::Dropped { address, errno, used: used.clone() });
    let clamped = outcome.totals.latency.clamped;
    let Counters { carried, interim, completed, occupancy, idle_closed, cut_bodies: cut, .. } = outcome.totals.counters;
    // Latencies can exceed the time in flight only if they began before measuring.
    let weighs = outcome.totals.latency.sum() as f64 > CARRIED_WEIGHT * occupancy.in_flight_ns as f64;
    let matters = completed > 0 && carried > 0 && (carried * 100 > completed * CARRIED_PERCENT || weighs);
    let mut notes: Vec<Note> = dropped.collect();
    notes.extend((plan.once && outcome.batch > 1).then_some(Note::FirstOfBatch { count: outcome.batch }));
    notes.extend(matters.then_some(Note::Carried { carried, answers: completed }));
    notes.extend((interim > 0 && !plan.once).then_some(Note::Interim { count: interim }));
    notes.extend((clamped > 0).then_some(Note::Clamped { count: clamped }));
    notes.extend(outcome.pauses_unread.then_some(Note::PausesUnread));
    let idle_closed = Some(idle_closed).filter(|count| count * 100 > completed * IDLE_CLOSED_PERCENT);
    notes.extend(idle_closed.filter(|_| !plan.dialect.is_compat()).map(|count| Note::IdleClosed { count }));
    notes.extend((cut > 0).then_some(Note::CutBodies { count: cut }));
    notes.extend(resumed(outcome));
    notes.extend(rewriting(plan, outcome));
    notes
}

/// The note on resumed sessions, where handshakes are part of the load.
fn resumed(outcome: &Outcome) -> Option<Note> {
    let Handshakes { total: handshakes, resumed, .. } = outcome.totals.handshakes;
    let matters = resumed * 100 > outcome.totals.counters.completed * RESUMED_PERCENT;
    matters.then_some(Note::Resumed { resumed, handshakes })
}

/// What wrk would have printed, if `-v` asks for it.
fn rewriting(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let is_asked_for = plan.show.verbose && !plan.dialect.is_compat() && !plan.once;
    if !is_asked_for || outcome.totals.open_loop.is_some() {
        return None;
    }
    Some(Note::Rewritten { mean_us: rewritten(plan, outcome).mean_us()? })
}
