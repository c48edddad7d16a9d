//! The sums of intervals that a run shows while it lasts and when it has ended.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Desk;
use crate::stats::Totals;

/// A run as it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// How long the run has lasted.
    pub elapsed: Duration,
    /// Responses so far.
    pub requests: u64,
    /// Responses per second over about the last second.
    pub requests_per_s: f64,
    /// Errors so far, of all kinds.
    pub errors: u64,
}

/// Adds up what the workers hand over.
pub struct Collector {
    desks: Vec<Arc<Desk>>,
    /// The sum so far.
    pub totals: Totals,
    /// When, and how many responses there were, at most a second ago.
    mark: (Duration, u64),
    rate: f64,
}

impl Collector {
    /// Collects from these workers.
    pub fn new(desks: Vec<Arc<Desk>>) -> Self {
        Self { desks, totals: Totals::default(), mark: (Duration::ZERO, 0), rate: 0.0 }
    }

    /// Takes what is there.
    pub fn collect(&mut self) {
        for desk in &self.desks {
            desk.mailbox.collect(&mut self.totals);
        }
    }

    /// Whether no worker found anybody to connect to.
    pub fn all_refused(&self) -> bool {
        self.desks.iter().all(|desk| desk.is_refused())
    }

    /// The run as it stands after `elapsed`.
    pub fn progress(&mut self, elapsed: Duration) -> Progress {
        let requests = self.totals.counters.completed;
        let (since, before) = self.mark;
        let window = elapsed.saturating_sub(since);
        if window >= Duration::from_secs(1) || self.rate == 0.0 {
            self.rate = (requests - before) as f64 / window.as_secs_f64().max(1e-9);
        }
        if window >= Duration::from_secs(1) {
            self.mark = (elapsed, requests);
        }
        let errors = self.totals.ledger.totals();
        let errors = errors.connect + errors.read + errors.write + errors.timeout + errors.status;
        Progress { elapsed, requests, requests_per_s: self.rate, errors }
    }
}
