//! The sums of intervals that a run shows while it lasts and when it has ended.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Desk;
use crate::stats::{Cause, Count, Counters, ProxyFailure, Stats, Stretch, Timeline, Totals};

/// A row is finished when it is so long, in nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

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

/// What was done in a stretch of the run, usually of a second.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// When it began, in nanoseconds since measuring did.
    pub from_ns: u64,
    /// When it ended, likewise.
    pub until_ns: u64,
    /// What was done.
    pub stretch: Stretch,
}

/// Adds up what the workers hand over.
pub struct Collector {
    desks: Vec<Arc<Desk>>,
    /// The sum so far.
    pub totals: Totals,
    /// What each worker counted.
    pub shares: Vec<Counters>,
    /// The run second by second.
    pub timeline: Timeline,
    /// What is not finished yet.
    second: Second,
    /// When, and how many responses there were, at most a second ago.
    mark: (Duration, u64),
    rate: f64,
}

impl Collector {
    /// Collects from these workers.
    pub fn new(desks: Vec<Arc<Desk>>) -> Self {
        Self {
            shares: vec![Counters::default(); desks.len()],
            desks,
            totals: Totals::default(),
            timeline: Timeline::default(),
            second: Second::default(),
            mark: (Duration::ZERO, 0),
            rate: 0.0,
        }
    }

    /// Takes what is there.
    pub fn collect(&mut self) {
        for index in 0..self.desks.len() {
            let desk = Arc::clone(&self.desks[index]);
            desk.mailbox.collect(|interval| self.add(index, interval));
        }
    }

    /// Adds what worker `index` recorded.
    pub fn add<C: Count>(&mut self, index: usize, interval: &Stats<C>) {
        self.totals += interval;
        self.shares[index] += interval.counters;
        self.timeline.record(interval);
        self.second.stretch.record(interval);
        self.second.until_ns = self.second.until_ns.max(interval.until_ns);
    }

    /// The second that has passed since the last one, if it has.
    pub fn finished(&mut self) -> Option<Second> {
        let is_whole = self.second.until_ns - self.second.from_ns >= SECOND_NS;
        is_whole.then(|| self.next_second())
    }

    /// What has passed since the last second, at the end of the run.
    pub fn last(&mut self) -> Option<Second> {
        (self.second.until_ns > self.second.from_ns).then(|| self.next_second())
    }

    fn next_second(&mut self) -> Second {
        let until_ns = self.second.until_ns;
        let next = Second { from_ns: until_ns, until_ns, stretch: Stretch::default() };
        std::mem::replace(&mut self.second, next)
    }

    /// Whether no worker found anybody to connect to.
    pub fn all_refused(&self) -> bool {
        self.desks.iter().all(|desk| desk.is_refused())
    }

    /// Whether something failed that waiting does not mend: a server's certificate was not accepted, or a proxy says
    /// that the fault is not its own.
    pub fn is_hopeless(&self) -> bool {
        let is_hopeless = |cause| match cause {
            Cause::Tls(failure) => failure.is_about_certificate(),
            Cause::Proxy(failure) => matches!(failure, ProxyFailure::Status(400..500)),
            _ => false,
        };
        self.totals.ledger.rows().iter().any(|row| is_hopeless(row.cause))
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
