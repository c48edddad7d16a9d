//! A run that waits for its target to accept connections.

use std::net::SocketAddr;
use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::Cause;

use super::snapshot::{Collector, is_hopeless};

/// Default limit on the wait for the target.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The address that a run waits for, why it did not accept a connection, and for how long the run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The last address tried.
    pub address: SocketAddr,
    /// The cause of the failure to connect.
    pub cause: Cause,
    /// Maximum wait, counted from the start of the run.
    pub limit: Duration,
}

impl Waiting {
    /// The wait, if every first connection was refused and the run does not end because of that.
    pub(super) fn for_plan(plan: &Plan, collector: &Collector) -> Option<Self> {
        if !collector.all_refused() {
            return None;
        }
        let (address, cause) = collector.take_refusal()?;
        let limit = plan.stop.duration.map_or(plan.give_up.unwrap_or(PATIENCE), |duration| duration + plan.warmup);
        (plan.dialect.is_compat() || !is_hopeless(cause)).then_some(Self { address, cause, limit })
    }
}
