//! The rules of the verdict, in order; the first that applies decides.
//!
//! Observations come first: the generator, whose faults invalidate every other figure, then the target and the network.
//! A rate is judged by counts. A closed loop without such observations is decided by the probe alone, because latencies
//! do not show whether requests queued.

use onrush_plan::LimitedBy;

use super::ruling::Ruling;
use super::{connections, failures, generator, network, probe, rate, target};
use crate::record::evidence::Evidence;

/// The rules on observations, in order.
const OBSERVED: [fn(&Evidence) -> Option<Ruling>; 19] = [
    connections::rule_on_ports,
    generator::rule_on_stalls,
    generator::rule_on_script_time,
    generator::rule_on_blocked_threads,
    generator::rule_on_generator_cpu,
    generator::rule_on_ended_threads,
    target::rule_on_dead_target,
    connections::rule_on_idle_connections,
    failures::rule_on_unreadable_responses,
    target::rule_on_silence,
    target::rule_on_hanging_requests,
    connections::rule_on_accept_queue,
    rate::rule_on_kept_schedule,
    network::rule_on_losses,
    network::rule_on_delayed_acks,
    failures::rule_on_few_responses,
    failures::rule_on_failures,
    failures::rule_on_refusals,
    generator::rule_on_doubtful_generator,
];

/// Decides on the limit of the run.
pub(super) fn decide_limit(evidence: &Evidence) -> Ruling {
    let observed = OBSERVED.iter().find_map(|rule| rule(evidence));
    if let Some(ruling) = observed.or_else(|| rate::rule_on_overload(evidence)) {
        return ruling;
    }
    let ruling = probe::rule_on_probe(evidence)
        .or_else(|| target::rule_on_busy_target(evidence))
        .unwrap_or_else(|| probe::unclear_without_rule(evidence));
    let waits = target::describe_idle_target(evidence)
        .filter(|_| matches!(ruling.limited_by, LimitedBy::Target | LimitedBy::Unclear));
    Ruling { reason: ruling.reason + &waits.unwrap_or_default(), ..ruling }
}

/// True if a probe would help: no observation decides this closed loop.
pub fn needs_probe(evidence: &Evidence) -> bool {
    evidence.load.asked_per_s.is_none() && OBSERVED.iter().all(|rule| rule(evidence).is_none())
}
