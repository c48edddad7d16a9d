//! Checks invariants of every run with a schedule.

use std::time::Duration;

use onrush_engine::backend::{Backend, Sim};
use onrush_stats::{Counters, Distribution, OpenLoopStats, Totals};

use super::case::Case;
use super::check::ensure;
use super::drive::{RunResult, ThreadOutcome};
use crate::run::{Outcome, nanos};

/// Checks the measurements of a run with a schedule; an error names the flaw.
pub fn check_schedule(case: &Case, ran: &RunResult) -> Result<(), String> {
    let Some(schedule) = &ran.plan.schedule else {
        ensure!(ran.totals.open_loop.is_none(), ran.totals.open_loop);
        return Ok(());
    };
    let none = OpenLoopStats::default();
    let open_loop = ran.totals.open_loop.as_deref().unwrap_or(&none);
    check_outcomes(&ran.totals, open_loop)?;
    check_latencies(&ran.totals, open_loop)?;
    let (batch, lateness_ns) = (ran.batch, open_loop.lateness.max());
    let max_late_ns = schedule.max_late.map_or(u64::MAX, |late| nanos(late + schedule.send_slice.unwrap_or_default()));
    // The rest of a batch is sent when there is room, however late.
    ensure!(batch > 1 || lateness_ns <= Some(max_late_ns), lateness_ns, max_late_ns);
    ensure!(schedule.max_late.is_some() || open_loop.dropped == 0, open_loop.dropped);
    for ThreadOutcome { journal, .. } in &ran.parts {
        ensure!(journal.early.get().is_none(), journal);
    }
    check_due_count(case, ran, open_loop)?;
    check_unanswered_gaps(case, ran, open_loop)
}

/// No period with due requests but without responses is longer than the longest latency: the target was not unavailable
/// for longer than a response takes. Failed requests have no latency, and abandoned ones waited longer.
fn check_unanswered_gaps(case: &Case, ran: &RunResult, open_loop: &OpenLoopStats<u64>) -> Result<(), String> {
    let may_stop = case.script.as_ref().is_some_and(|script| script.stops_at.or(script.fails_at).is_some());
    let planned_ns = nanos(ran.plan.warmup);
    let is_delayed = ran.parts.iter().any(|part| part.start_ns != planned_ns);
    // With an instant response, a request belongs to both adjacent gaps.
    let Counters { failed, abandoned, .. } = ran.totals.counters;
    let are_without = failed + abandoned + open_loop.dropped + open_loop.later_failed > 0;
    if may_stop || is_delayed || are_without || open_loop.scheduled.min() == Some(0) {
        return Ok(());
    }
    let mut outcome = Outcome::new(Sim::NAME, None, Duration::ZERO);
    outcome.totals = ran.totals.clone();
    ran.parts.iter().for_each(|part| outcome.add_worker_end(part.end.without_bulk_data(), false));
    outcome.compute_response_gaps(&ran.plan);
    let gaps = outcome.due_gaps.unwrap_or_default();
    let later = open_loop.later.as_deref().and_then(Distribution::max);
    let waited_ns = open_loop.scheduled.max().max(open_loop.censored.max()).max(later).unwrap_or(0);
    let longest_ns = gaps.iter().map(|it| it.gap.length_ns()).max().unwrap_or(0);
    // If `-n` ends the schedule before the run, the gaps are computed from bins, which are 0.1 % wide.
    ensure!(longest_ns <= waited_ns + waited_ns / 250, longest_ns, waited_ns, gaps);
    Ok(())
}

/// Every due request has exactly one outcome, and all outcomes are recorded.
fn check_outcomes(totals: &Totals, open_loop: &OpenLoopStats<u64>) -> Result<(), String> {
    let counters = &totals.counters;
    let OpenLoopStats { due, carried, late, dropped, unsent, .. } = *open_loop;
    ensure!(due + carried == counters.started + dropped + unsent, due, carried, dropped, unsent, counters);
    let recorded = [&open_loop.lateness, &open_loop.scheduled].map(Distribution::count);
    ensure!(recorded == [counters.started, counters.completed], recorded, counters);
    // After the end of the run, the outcome of open requests may have become known.
    let some = |times: &Option<Box<Distribution<u64>>>| times.as_deref().map_or(0, Distribution::count);
    let (later, open) = (some(&open_loop.later) + open_loop.later_failed, some(&open_loop.open));
    let without = counters.abandoned + counters.open_at_end + dropped + unsent;
    ensure!(
        open_loop.censored.count() + later == without,
        open_loop.censored.count(),
        later,
        dropped,
        unsent,
        counters
    );
    ensure!(open + later <= counters.open_at_end + unsent, open, later, unsent, counters);
    ensure!(late <= counters.started, late, counters);
    Ok(())
}

/// Nothing is sent before it is due, so latencies from the due time are at least as long.
fn check_latencies(totals: &Totals, open_loop: &OpenLoopStats<u64>) -> Result<(), String> {
    let (service, scheduled) = (&totals.latency, &open_loop.scheduled);
    ensure!(scheduled.sum() >= service.sum(), scheduled.sum(), service.sum());
    ensure!(scheduled.max() >= service.max(), scheduled.max(), service.max());
    ensure!(scheduled.min() >= service.min(), scheduled.min(), service.min());
    let counters = &totals.counters;
    // If every request was sent once and got a response, the two differ by the lateness.
    if counters.carried == 0
        && counters.returned == 0
        && counters.completed == counters.started
        && service.count() == counters.completed
    {
        let late = open_loop.lateness.sum();
        ensure!(scheduled.sum() == service.sum() + late, scheduled.sum(), service.sum(), late);
    }
    Ok(())
}

/// The number of requests that were due is the planned one.
fn check_due_count(case: &Case, ran: &RunResult, open_loop: &OpenLoopStats<u64>) -> Result<(), String> {
    let (mut least, mut most, mut before) = (0, 0, 0);
    for ThreadOutcome { end, start_ns, dues, requests, .. } in &ran.parts {
        let mut dues = dues.clone().expect("there is a schedule");
        let until_ns = start_ns + end.elapsed_ns;
        // Requests due from the planned end of the warm-up count, however late that end was noticed.
        let planned_ns = nanos(ran.plan.warmup);
        let (mut early, mut within, mut at_border) = (0_u64, 0_u64, 0_u64);
        while dues.next_ns() != u64::MAX && dues.next_ns() <= until_ns {
            *(match dues.next_ns() {
                due_ns if due_ns < planned_ns => &mut early,
                // Exactly at the end of the warm-up or the run, the order of events decides.
                due_ns if due_ns == until_ns || due_ns == planned_ns && due_ns > 0 => &mut at_border,
                _ => &mut within,
            }) += 1;
            dues.skip_batch(1);
        }
        let limit = requests.unwrap_or(u64::MAX);
        // Requests due before a late end of the warm-up may have been sent in the warm-up, and so may the rest of its
        // last batch.
        let begun = if planned_ns > 0 { ran.batch - 1 } else { 0 };
        least += if *start_ns > planned_ns { 0 } else { limit.min(within.saturating_sub(begun)) };
        // A whole batch is due with its first request.
        most += limit.min(within + at_border + ran.batch - 1);
        before += early + ran.batch - 1;
    }
    let may_stop = case.script.as_ref().is_some_and(|script| script.stops_at.or(script.fails_at).is_some());
    let OpenLoopStats { due, carried, .. } = *open_loop;
    let requests = ran.plan.stop.requests;
    ensure!(due <= most && (due >= least || may_stop), due, carried, least, most);
    ensure!(requests.is_none_or(|requests| due <= requests), due, carried, requests);
    ensure!(carried <= before, carried, before);
    Ok(())
}
