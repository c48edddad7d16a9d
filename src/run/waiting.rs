//! A run that waits for its target to accept connections.

use std::net::SocketAddr;
use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::Cause;

use super::snapshot::{Collector, is_hopeless};

/// How long a run waits for its target if the plan sets no limit.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Which address a run waits for, why, and how long at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The address that was tried last.
    pub address: SocketAddr,
    /// Why there was no connection.
    pub cause: Cause,
    /// The longest the run waits, from its start.
    pub limit: Duration,
}

impl Waiting {
    /// The thing that the run waits for, if every first connection was refused and the run does not end because of
    /// that.
    pub(super) fn for_plan(plan: &Plan, collector: &Collector) -> Option<Self> {
        if !collector.all_refused() {
            return None;
        }
        let (address, cause) = collector.take_refusal()?;
        let limit = plan.stop.duration.map_or(plan.give_up.unwrap_or(PATIENCE), |duration| duration + plan.warmup);
        (plan.dialect.is_compat() || !is_hopeless(cause)).then_some(Self { address, cause, limit })
    }
}
