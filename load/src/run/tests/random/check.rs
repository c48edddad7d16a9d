//! Checks invariants of every finished run.

use onrush_plan::Plan;
use onrush_stats::{OfName, Phase, RowFigures, Totals};

use super::case::Case;
use super::drive::{RunResult, ThreadOutcome};
use super::due;

/// Checks a run's measurements; an error names the flaw.
pub fn check_run(case: &Case, ran: &RunResult) -> Result<(), String> {
    check_conservation(&ran.totals)?;
    check_addition(ran)?;
    check_counters(ran)?;
    check_names(ran)?;
    check_rows(ran)?;
    check_littles_law(ran)?;
    due::check_schedule(case, ran)?;
    for (index, part) in ran.parts.iter().enumerate() {
        let checked = check_occupancy(ran, part)
            .and_then(|()| check_end(ran, part))
            .and_then(|()| check_responses(case, ran, part));
        checked.map_err(|flaw| format!("thread {}: {flaw}", index + 1))?;
    }
    Ok(())
}

/// Outcomes by request name sum to all outcomes.
fn check_names(ran: &RunResult) -> Result<(), String> {
    let names = ran.plan.list.as_ref().map_or(0, |list| list.names.len());
    let Some(by_name) = ran.totals.by_name.as_deref() else {
        ensure!(names == 0 || ran.totals.counters.completed == 0, names);
        return Ok(());
    };
    let sum = |of: fn(&OfName<u64>) -> u64| by_name.iter().map(|(_, it)| of(it)).sum::<u64>();
    let counters = &ran.totals.counters;
    ensure!(by_name.iter().all(|(number, _)| usize::from(number) <= names), names);
    ensure!(sum(|it| it.latency.count()) == counters.completed, counters);
    let unanswered = counters.failed + counters.abandoned + counters.open_late_at_end;
    ensure!(sum(|it| it.failed) == unanswered, counters);
    ensure!(sum(|it| it.unsuccessful) == counters.unsuccessful, counters);
    Ok(())
}

/// Fails with the compared values unless the condition holds.
macro_rules! ensure {
    ($is_right:expr, $($values:expr),+) => {
        if !$is_right {
            return Err(format!(concat!(stringify!($is_right), $("; ", stringify!($values), ": {:?}"),+), $($values),+));
        }
    };
}

pub(super) use ensure;

/// Every request ended in exactly one way.
fn check_conservation(totals: &Totals) -> Result<(), String> {
    let counters = &totals.counters;
    let ended = counters.completed + counters.failed + counters.abandoned + counters.open_at_end;
    ensure!(counters.started + counters.carried == ended, counters);
    Ok(())
}

/// The threads' intervals, summed in another order than in the run, give the run's totals.
fn check_addition(ran: &RunResult) -> Result<(), String> {
    let (others, first) = ran.parts.split_at(ran.elapsed_ns as usize % ran.parts.len());
    let mut sum = Totals::default();
    first.iter().rev().chain(others.iter().rev()).for_each(|part| sum += &part.totals);
    sum.settle_phases();
    let [one, other] = [&sum, &ran.totals].map(|totals| format!("{totals:?}"));
    let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let [one_from_there, other_from_there] =
        [&one, &other].map(|text| text.get(at.saturating_sub(200)..text.len().min(at + 200)));
    ensure!(one == other, one_from_there, other_from_there);
    Ok(())
}

/// The recorded figures equal the counters.
fn check_counters(ran: &RunResult) -> Result<(), String> {
    let (totals, is_native) = (&ran.totals, !ran.plan.dialect.is_compat());
    let counters = &totals.counters;
    let statuses: u64 = totals.statuses.iter().map(|(_, count)| count).sum();
    ensure!(statuses == counters.completed, statuses, counters);
    let bad: u64 =
        totals.statuses.iter().filter(|(status, _)| ran.plan.checks.is_failure(*status)).map(|(_, count)| count).sum();
    ensure!(count_in_ledger(totals, &[Phase::Status]) == bad, bad, totals.ledger);
    ensure!((bad..=counters.completed).contains(&counters.unsuccessful), bad, counters);
    ensure!(count_in_ledger(totals, &[Phase::Check]) <= counters.unsuccessful, counters, totals.ledger);
    ensure!(count_in_ledger(totals, &[Phase::Timeout]) == counters.late, counters, totals.ledger);
    ensure!(
        count_in_ledger(totals, &[Phase::Send, Phase::Head, Phase::Body]) >= counters.failed,
        counters,
        totals.ledger
    );
    let censored = totals.censored.as_ref().map_or(0, |censored| censored.count());
    ensure!(censored == counters.abandoned + counters.open_at_end, censored, counters);
    let latencies = totals.latency.count();
    ensure!(latencies <= counters.completed, latencies, counters);
    ensure!(counters.open_late_at_end <= counters.open_at_end, counters);
    if is_native {
        ensure!(counters.open_late_at_end <= counters.late, counters);
        ensure!(latencies == counters.completed, latencies, counters);
        if let Some(batches) = &totals.batch_latency {
            ensure!(batches.count() == counters.batches, batches.count(), counters);
        }
        if let Some(phases) = &totals.phases {
            ensure!(phases.ttfb.count() == counters.completed, phases.ttfb.count(), counters);
            ensure!(phases.ttlb.count() == counters.completed, phases.ttlb.count(), counters);
        }
    }
    Ok(())
}

fn count_in_ledger(totals: &Totals, phases: &[Phase]) -> u64 {
    totals.ledger.rows().iter().filter(|row| phases.contains(&row.phase)).map(|row| row.count).sum()
}

/// The rows cover the run, both in the timeline and as passed to the observer.
fn check_rows(ran: &RunResult) -> Result<(), String> {
    ensure!(ran.timeline.adds_up_to(&ran.totals), ran.timeline.sum_of_rows(), &ran.totals.counters);
    let mut sum = RowFigures::default();
    ran.seconds.iter().for_each(|second| sum += &second.figures);
    let whole = ran.timeline.sum_of_rows();
    ensure!(sum.equals_exactly(&whole), sum, whole);
    let gap = ran.seconds.windows(2).find(|pair| pair[0].until_ns != pair[1].from_ns);
    ensure!(gap.is_none(), gap);
    let until_ns = ran.seconds.last().map_or(0, |second| second.until_ns);
    ensure!(until_ns == ran.elapsed_ns, until_ns, ran.elapsed_ns);
    Ok(())
}

/// The time spent does not exceed the time passed.
fn check_occupancy(ran: &RunResult, part: &ThreadOutcome) -> Result<(), String> {
    let occupancy = part.totals.counters.occupancy;
    let connections_ns = u64::from(part.end.connections) * part.end.elapsed_ns;
    let elapsed_ns = part.end.elapsed_ns;
    ensure!(occupancy.in_flight_ns <= connections_ns * ran.batch, occupancy, elapsed_ns);
    ensure!(occupancy.busy_ns <= occupancy.in_flight_ns, occupancy, elapsed_ns);
    ensure!(occupancy.busy_ns <= occupancy.open_ns, occupancy, elapsed_ns);
    ensure!(occupancy.leaving_ns <= occupancy.open_ns, occupancy, elapsed_ns);
    let there = occupancy.open_ns + occupancy.connecting_ns + occupancy.waiting_ns + occupancy.absent_ns;
    ensure!(there <= connections_ns, occupancy, connections_ns);
    // An open connection with nothing left to send also counts as done.
    ensure!(there + occupancy.done_ns >= connections_ns, occupancy, connections_ns);
    Ok(())
}

/// Little's law: the time for which requests were in flight is the sum of the latencies and of the ages of requests
/// without a response. Exceptions: no latency includes the time of failed or returned requests. With a schedule, ages
/// count from the due time. Only part of the time of requests carried over from a warm-up is in the window. A returned
/// request that still waits to be resent at the end has an age, but is not in flight.
fn check_littles_law(ran: &RunResult) -> Result<(), String> {
    let Totals { counters, latency, censored, .. } = &ran.totals;
    if !ran.plan.warmup.is_zero() || ran.plan.dialect.is_compat() {
        return Ok(());
    }
    let ages = censored.as_ref().filter(|_| counters.returned == 0);
    let unanswered_ns = ages.map_or(0, |ages| ages.sum());
    let (known_ns, in_flight_ns) = (latency.sum() + unanswered_ns, u128::from(counters.occupancy.in_flight_ns));
    ensure!(known_ns <= in_flight_ns, known_ns, in_flight_ns, counters);
    let is_all = counters.failed + counters.returned == 0 && ran.plan.schedule.is_none();
    ensure!(!is_all || known_ns == in_flight_ns, known_ns, in_flight_ns, counters);
    Ok(())
}

/// A run ends for a valid reason, and at the right time.
fn check_end(ran: &RunResult, part: &ThreadOutcome) -> Result<(), String> {
    let Plan { stop, .. } = &*ran.plan;
    let (elapsed_ns, duration_ns) = (part.end.elapsed_ns, stop.duration.map(crate::run::nanos));
    ensure!(duration_ns.is_none_or(|duration_ns| elapsed_ns <= duration_ns), elapsed_ns, duration_ns);
    let end = [&part.end.stalls, &part.end.silences, &part.end.awaited].map(|gaps| {
        let is_ordered = gaps.windows(2).all(|pair| pair[0].until_ns <= pair[1].from_ns);
        is_ordered && gaps.iter().all(|gap| gap.from_ns <= gap.until_ns && gap.from_ns <= elapsed_ns)
    });
    ensure!(end == [true; 3], part.end.stalls, part.end.silences, part.end.awaited, elapsed_ns);
    let counters = &part.totals.counters;
    if let Some(requests) = stop.requests {
        let all = &ran.totals.counters;
        // Requests carried over from the warm-up are also sent.
        let left_over = ran.totals.open_loop.as_ref().map_or(0, |open_loop| open_loop.carried);
        ensure!(all.started <= requests + left_over, all, requests, left_over);
        let ended = counters.completed + counters.failed + counters.abandoned;
        let is_early = duration_ns.is_none() && part.end.failure.is_none() && !part.end.stayed_away && !ran.has_script;
        ensure!(!is_early || counters.open_at_end == 0 && ended >= counters.started, counters, elapsed_ns);
    }
    Ok(())
}

/// All responses were counted, and nothing else was.
fn check_responses(case: &Case, ran: &RunResult, part: &ThreadOutcome) -> Result<(), String> {
    let (counters, journal, completed) = (&part.totals.counters, &part.journal, part.completed);
    ensure!(counters.completed <= completed, counters, completed);
    ensure!(completed <= journal.heads.get(), completed, journal);
    ensure!(journal.peers.get() == 0, journal);
    let answer = &case.scenario.answer;
    // A greeting counts as the response to the request that it meets, whose own response then comes too late.
    let has_greetings = !case.scenario.connection_fault.is_empty();
    let is_whole = !case.options.is_head && !answer.contains("close") && answer.contains("ength") && !has_greetings;
    if ran.plan.warmup.is_zero() && ran.plan.run_on.is_zero() {
        ensure!(counters.completed == completed, counters, completed);
        let missing = journal.answers.get().saturating_sub(completed);
        ensure!(!is_whole || missing <= counters.abandoned + counters.open_at_end, missing, counters);
        let received = (part.received, part.received_last);
        let is_all = [received.0, received.0 - received.1].contains(&counters.bytes_received);
        ensure!(ran.plan.dialect.is_compat() || is_all, counters, received);
    }
    Ok(())
}
