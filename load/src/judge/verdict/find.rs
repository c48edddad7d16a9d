//! Findings on a run, independent of its limit.

use onrush_plan::LimitedBy;

use super::connections::is_accept_queue_full;
use super::target::target_died;
use super::words::{format_number, format_percent, format_seconds, format_time};
use crate::record::evidence::{Evidence, Latency, Load, SLOW, Thirds};
use crate::record::{Finding, Note, NoteId};

/// A change in the rate is more than noise if it is at least this many standard errors …
const ERRORS: f64 = 4.0;
/// … and at least this share of the rate.
const CHANGED: f64 = 0.05;
/// Throttling and steal time matter if they take at least this share of the time.
const TAKEN: f64 = 0.02;
/// Stalls matter if they last at least this many seconds in total.
const STALLED_S: f64 = 0.2;
/// A 99th percentile below this, in microseconds, is not worth a note.
const TAIL_MIN_US: f64 = 1_000.0;
/// Acknowledgements are delayed if this share of the latencies is about 40 ms, and this share of the samples caught a
/// partially received response.
const DELAYED: f64 = 0.05;
/// A connection is hot if it served at least this many times the mean number of requests.
const HOT: f64 = 3.0;
/// A window or buffer matters if it was the limit for at least this share of the time.
const LIMITED: f64 = 0.5;

pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let Evidence { generator, load, network, target, machine, .. } = evidence;
    let theirs = target.as_ref();
    // Throttled time is the sum over all processors. Less than one processor counts as one.
    let is_target_throttled = theirs.is_some_and(|target| {
        let could_be_s = load.elapsed_s.max(f64::MIN_POSITIVE) * target.cpus_allowed.max(1.0);
        target.throttled_s.unwrap_or(0.0) / could_be_s >= TAKEN
    });
    let is_full = theirs.and_then(|target| target.listening).is_some_and(|listening| is_accept_queue_full(&listening));
    let delayed = evidence.latency.is_some_and(|latency| latency.delayed >= DELAYED);
    let half_answered = network.and_then(|network| network.half_answered).unwrap_or(0.0);
    let limited = |share: Option<f64>| share.is_some_and(|share| share >= LIMITED);
    // The target's death explains all later failures.
    let has_died = target_died(evidence);
    let change = load.thirds.and_then(rate_change).filter(|_| !has_died);
    let is_there = [
        (delayed && half_answered >= DELAYED, Finding::DelayedAck),
        (is_full, Finding::ListenQueue),
        (generator.stalled_s >= STALLED_S, Finding::Stalled),
        (generator.throttled(load.elapsed_s) >= TAKEN, Finding::Throttled),
        (is_target_throttled, Finding::TargetThrottled),
        (has_died, Finding::TargetDied),
        (change == Some(Finding::Unsteady), Finding::Unsteady),
        (change == Some(Finding::WarmingUp), Finding::WarmingUp),
        (machine.clock_step_s.is_some(), Finding::ClockStep),
        (load.hottest.is_some_and(|hottest| hottest >= HOT), Finding::HotConnection),
        (load.silent_s > 0.0 && !has_died, Finding::StallHidden),
        (machine.stolen.is_some_and(|stolen| stolen >= TAKEN), Finding::Stolen),
        (load.asked_per_s.is_some() && !has_died && has_slow_tail(evidence), Finding::SlowResponses),
        (network.is_some_and(|network| limited(network.window_limited)), Finding::PeerWindow),
        (network.is_some_and(|network| limited(network.buffer_limited)), Finding::SendBuffer),
    ];
    is_there.into_iter().filter_map(|(is_there, finding)| is_there.then_some(finding)).collect()
}

/// True if the 99th percentile is due to slow responses, not to late requests or a stall of onrush.
fn has_slow_tail(Evidence { generator, load, latency, .. }: &Evidence) -> bool {
    let late_us = load.lateness_p99_us.unwrap_or(0.0);
    let is_slow = |latency: &Latency| {
        latency.p99_us >= (SLOW as f64 * latency.p50_us).max(TAIL_MIN_US) && late_us < latency.p99_us / 2.0
    };
    generator.stalled_s < STALLED_S && latency.as_ref().is_some_and(is_slow)
}

/// True if the rate rose during the run.
pub(super) fn warms_up(load: &Load) -> bool {
    load.thirds.and_then(rate_change) == Some(Finding::WarmingUp)
}

/// The change in the rate over the run; `None` if it may be noise.
fn rate_change(Thirds { first_per_s, last_per_s, error_per_s }: Thirds) -> Option<Finding> {
    let change = last_per_s - first_per_s;
    let is_noise =
        change == 0.0 || change.abs() < ERRORS * error_per_s || change.abs() < CHANGED * first_per_s.max(last_per_s);
    let finding = if change > 0.0 { Finding::WarmingUp } else { Finding::Unsteady };
    (!is_noise).then_some(finding)
}

/// The rates before and after the change.
fn describe_rate_change(Thirds { first_per_s, last_per_s, .. }: Thirds) -> String {
    format!(
        "from {} to {} requests/s between the first and last third of the run",
        format_number(first_per_s),
        format_number(last_per_s)
    )
}

/// The note on a finding, with figures and advice; `None` if another note covers the finding.
pub fn finding_note(finding: Finding, evidence: &Evidence) -> Option<Note> {
    let Evidence { generator, load, machine, network, target, .. } = evidence;
    let throttled = |whose, throttled_s: Option<f64>| {
        Some(format!(
            "the control group of {whose} was throttled: its threads waited {} for a processor in total; \
             raise cpu.max",
            format_seconds(throttled_s?)
        ))
    };
    let share = |share: Option<f64>| share.map(format_percent).unwrap_or_default();
    let (id, text) = match finding {
        Finding::Throttled => (NoteId::Throttled, throttled("onrush", generator.throttled_s)?),
        Finding::TargetThrottled => {
            (NoteId::TargetThrottled, throttled(LimitedBy::Target.phrase(), target.as_ref()?.throttled_s)?)
        }
        Finding::Unsteady => (
            NoteId::Unsteady,
            format!("the rate fell {}: the figures average both", describe_rate_change(load.thirds?)),
        ),
        Finding::WarmingUp => {
            (NoteId::WarmingUp, format!("the rate rose {}; add --warmup", describe_rate_change(load.thirds?)))
        }
        Finding::ClockStep => {
            let step_s = machine.clock_step_s?;
            let text = format!("the wall clock was stepped by {step_s:+.3} s during the run; latencies are unaffected");
            (NoteId::ClockStep, text)
        }
        Finding::HotConnection => (
            NoteId::HotConnection,
            format!(
                "one connection carried {} times the mean number of requests: the load is unevenly distributed",
                format_number(load.hottest?)
            ),
        ),
        Finding::Stolen => (
            NoteId::Stolen,
            format!(
                "the hypervisor took {} of this machine's processor time; use a machine with dedicated processors",
                share(machine.stolen)
            ),
        ),
        Finding::SlowResponses => {
            let latency = evidence.latency?;
            let text = format!(
                "{} of the responses took at least ten times the median of {}: the time passed at the target or on the \
                 network, not waiting for a {}",
                format_percent(latency.slow as f64 / load.completed as f64),
                format_time(latency.p50_us),
                if load.in_flight_max.is_some() { "stream" } else { "connection" }
            );
            (NoteId::SlowResponses, text)
        }
        Finding::PeerWindow => (
            NoteId::PeerWindow,
            format!(
                "the target's receive window limited sending for {} of the time: the target reads too slowly",
                share(network.as_ref()?.window_limited)
            ),
        ),
        Finding::SendBuffer => (
            NoteId::SendBuffer,
            format!(
                "the send buffer limited sending for {} of the time; raise net.ipv4.tcp_wmem",
                share(network.as_ref()?.buffer_limited)
            ),
        ),
        Finding::DelayedAck | Finding::ListenQueue | Finding::Stalled | Finding::StallHidden | Finding::TargetDied => {
            return None;
        }
    };
    Some(Note::failure(id, text))
}
