//! Sends one request to a target, and explains a missing response.

use std::time::Duration;

use anyhow::anyhow;
use onrush_plan::load::Load;
use onrush_plan::{Plan, Stop};
use thiserror::Error;

use crate::failure;
use crate::run::{Interrupt, Outcome, RunEnd};

/// Every first connection was refused. Holds a sentence with the address and the reason.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct TargetRefused(String);

/// The given plan, reduced to a single request without a load and a warm-up.
pub fn once(plan: &Plan) -> Plan {
    let give_up = plan.give_up.or(Some(GIVE_UP));
    Plan {
        once: true,
        load: Load::new(1, 1),
        schedule: None,
        levels: None,
        warmup: Duration::ZERO,
        until: Vec::new(),
        stop: Stop { duration: Some(GIVE_UP), requests: Some(1) },
        give_up,
        ..plan.clone()
    }
}

/// Time limit for a single request and its response.
const GIVE_UP: Duration = Duration::from_secs(10);

/// True if the target answers one request in time: within `within`, and within ten seconds. Waits
/// no longer than that.
pub fn answers(plan: &Plan, interrupt: &Interrupt, within: Duration) -> bool {
    let mut once = once(plan);
    once.stop.duration = once.stop.duration.map(|longest| longest.min(within));
    let outcome = send_request(plan, &once, interrupt);
    outcome.is_ok_and(|outcome| outcome.totals.counters.completed > 0)
}

/// Sends one request of the plan, and returns the run that consisted of it.
///
/// # Errors
///
/// Says why there is no response.
pub fn ask(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    send_request(plan, &once(plan), interrupt)
}

fn send_request(plan: &Plan, once: &Plan, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let outcome = super::run(once, interrupt, &mut [])?.outcome;
    fault(plan, &outcome).map_or(Ok(outcome), Err)
}

/// Why a run cannot be used: the target refused it, or it is incomplete; `None` if it can.
pub fn fault(plan: &Plan, outcome: &Outcome) -> Option<anyhow::Error> {
    if let RunEnd::Refused { address, cause } = outcome.ended {
        return Some(TargetRefused(failure::start_refusal(plan, outcome, address, cause)).into());
    }
    failure::incompleteness_reason(outcome).map(|why| anyhow!(why))
}
