//! Rules on the target: its behaviour and, if visible, its processes.

use super::connections::rule_on_idle_connections;
use super::failures::{FAILED, advice_on_failures, count_refused_responses, describe_failures, fails_often};
use super::network::rule_on_network_queue;
use super::ruling::{Ruling, make_ruling};
use super::threads::{BUSY, generator_utilization_clause};
use super::words::{format_number, format_percent, format_processors, format_seconds};
use crate::record::NoteId;
use crate::record::evidence::{Elasticity, Evidence, Load};
use onrush_plan::LimitedBy;

/// A target waited for something other than a processor if its threads ran, or waited for a processor, for less than
/// this share of the time.
const BLOCKED: f64 = 0.1;
/// A target has died if the last responses came before this final share of the run ...
const SILENT: f64 = 0.1;
/// ... and at least this many seconds before its end.
const SILENT_MIN_S: f64 = 0.2;
/// A target silent for at least this share of the run is its limit.
const QUIET: f64 = 0.25;
/// Hanging requests are the limit if they are at least this share of the requests in flight …
const HANGING: f64 = 0.05;
/// … and, with a rate, at least this share even if only a few are in flight.
const MANY: f64 = 0.5;

/// True if the target's failures or silence decide, rather than a stall of onrush or a wait for a processor: without
/// the latter, more requests would have failed.
pub(super) fn target_failed(evidence: &Evidence) -> bool {
    let Evidence { generator, load, .. } = evidence;
    // Both times exclude stalls.
    let is_longer = |silent_s: f64| silent_s > generator.stalled_s;
    let is_silent = is_often_silent(load) && is_longer(load.quiet_s) && rule_on_idle_connections(evidence).is_none();
    let requests = load.connect_errors.saturating_add(load.failed_requests()).saturating_add(load.abandoned);
    let requests = requests.saturating_add(count_refused_responses(load));
    let fails = match load.completed {
        0 => load.failures() > 0 && load.failures() >= load.connections,
        completed => requests >= completed,
    };
    load.unreadable.is_some() || fails || is_silent || (target_died(evidence) && is_longer(load.silent_at_end_s))
}

pub(super) fn rule_on_dead_target(evidence: &Evidence) -> Option<Ruling> {
    target_died(evidence).then_some(())?;
    let load = &evidence.load;
    let ended = evidence.target.as_ref().filter(|target| target.ended).map(|_| "its processes ended".to_owned());
    let why: Vec<String> = ended.into_iter().chain(describe_failures(load)).collect();
    let reason = format!("no response in the last {}; {}", format_seconds(load.silent_at_end_s), why.join("; "));
    make_ruling(LimitedBy::Target, "the target stopped responding", reason, "check the target's log")
}

/// True if the target responded at first and stopped later.
pub(super) fn target_died(Evidence { load, target, .. }: &Evidence) -> bool {
    let is_silent = load.silent_at_end_s >= SILENT_MIN_S && load.silent_at_end_s >= SILENT * load.elapsed_s;
    let has_ended = target.as_ref().is_some_and(|target| target.ended);
    load.completed > 0 && is_silent && (load.failed_at_end || has_ended)
}

/// A closed loop with a busy target. A probe may show otherwise, because a target may busy-poll.
pub(super) fn rule_on_busy_target(evidence: &Evidence) -> Option<Ruling> {
    let elasticity = evidence.probe.as_ref().and_then(|probe| probe.elasticity);
    let may_be = evidence.load.asked_per_s.is_none() && elasticity.is_none_or(|it| it.low <= Elasticity::STAYS);
    may_be.then(|| rule_on_target_cpu(evidence)).flatten()
}

pub(super) fn rule_on_target_cpu(evidence: &Evidence) -> Option<Ruling> {
    let target = evidence.target.as_ref()?;
    let name = &target.name;
    let reason = if target.busiest_thread >= BUSY {
        format!("the busiest thread of {name} was {} busy", format_percent(target.busiest_thread))
    } else if target.cpus_allowed > 0.0 && target.cpus_used >= BUSY * target.cpus_allowed {
        format!("{name} used {} of its {}", format_number(target.cpus_used), format_processors(target.cpus_allowed))
    } else {
        return None;
    };
    make_ruling(LimitedBy::Target, "the target is at its limit", reason + &generator_utilization_clause(evidence), "")
}

/// A target that is silent for a large part of the run.
pub(super) fn rule_on_silence(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    is_often_silent(load).then_some(())?;
    let why = describe_failures(load)
        .filter(|_| fails_often(load))
        .map_or_else(|| generator_utilization_clause(evidence), |why| format!("; {why}"));
    // A port that expects another protocol closes connections without a response.
    if load.is_mute && load.failed_requests() > 0 {
        return make_ruling(
            LimitedBy::Target,
            "the target sent nothing at all",
            describe_failures(load)?,
            "check the port, the version of HTTP, and http:// or https://",
        );
    }
    let reason =
        format!("no response for {} of {} in total{why}", format_seconds(load.quiet_s), format_seconds(load.elapsed_s));
    make_ruling(
        LimitedBy::Target,
        "the target fell silent",
        reason,
        advice_on_failures(load).unwrap_or("find out what stops it"),
    )
}

fn is_often_silent(load: &Load) -> bool {
    load.quiet_s >= QUIET * load.elapsed_s && load.quiet_s > 0.0
}

/// Requests that get no response while others do.
pub(super) fn rule_on_hanging_requests(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    // With a rate, few requests are in flight at any time.
    let is_rare = load.asked_per_s.is_some()
        && (load.hanging as f64) < FAILED * load.completed as f64
        && (load.hanging as f64) < MANY * load.in_flight_max.unwrap_or(load.connections) as f64;
    (load.hanging as f64 >= HANGING * load.all_in_flight() && load.hanging > 0 && !is_rare).then_some(())?;
    let latencies = if load.asked_per_s.is_some() { "" } else { "; the latencies leave them out" };
    let slowest = if load.completed == 0 { "" } else { " and three times the slowest response" };
    let reason =
        format!("{} at the end, after at least a second{slowest}{latencies}", format_number(load.hanging as f64));
    Some(
        make_ruling(LimitedBy::Target, "the target left requests unanswered", reason, "find out why")?
            .saying(&[NoteId::Hanging]),
    )
}

/// Describes a target that hardly used a processor while requests were in flight, and so was not computing.
pub(super) fn describe_idle_target(evidence: &Evidence) -> Option<String> {
    let Evidence { load, target, .. } = evidence;
    let target = target.as_ref().filter(|_| load.asked_per_s.is_none() && load.in_flight >= 1.0)?;
    // One of the target's threads may have waited for a processor, or segments for the link.
    let busy = target.busiest_thread + target.queued?;
    let is_idle = busy < BLOCKED && target.cpus_used < BLOCKED * load.in_flight.min(target.cpus_allowed);
    let is_free = target.throttled_s.unwrap_or(0.0) == 0.0 && rule_on_network_queue(evidence).is_none();
    (is_idle && is_free).then(|| {
        let (name, busiest) = (&target.name, format_percent(target.busiest_thread));
        let in_flight = format_number(load.in_flight.round());
        format!(
            "; the target ({name}) waited, but not for a processor (perhaps for a lock, disk, timer or other service): \
             its busiest thread was {busiest} busy with {in_flight} requests in flight"
        )
    })
}
