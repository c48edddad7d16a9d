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
    connections::ports,
    generator::stopped,
    generator::script,
    generator::held_up,
    generator::cpu,
    generator::ended,
    target::died,
    connections::unused,
    failures::unreadable,
    target::silent,
    target::hanging,
    connections::listen_queue,
    rate::schedule,
    network::losses,
    network::delayed_ack,
    failures::too_few,
    failures::failing,
    failures::refusing,
    generator::doubtful,
];

/// Decides on the limit of the run.
pub(super) fn decide(evidence: &Evidence) -> Ruling {
    let observed = OBSERVED.iter().find_map(|rule| rule(evidence));
    if let Some(ruling) = observed.or_else(|| rate::overload(evidence)) {
        return ruling;
    }
    let ruling =
        probe::probe(evidence).or_else(|| target::busy_target(evidence)).unwrap_or_else(|| probe::unclear(evidence));
    let waits = target::waits_elsewhere(evidence)
        .filter(|_| matches!(ruling.limited_by, LimitedBy::Target | LimitedBy::Unclear));
    Ruling { reason: ruling.reason + &waits.unwrap_or_default(), ..ruling }
}

/// True if a probe would help: no observation decides this closed loop.
pub fn needs_probe(evidence: &Evidence) -> bool {
    evidence.load.asked_per_s.is_none() && OBSERVED.iter().all(|rule| rule(evidence).is_none())
}
