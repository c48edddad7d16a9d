//! A document with its distributions read, for all notes.

use std::time::Duration;

use onrush_plan::Dialect;
use onrush_stats::Distribution;

use crate::figures::silences::least_ns;
use crate::judge::verdict::HELD_UP;
use crate::record::evidence::Silence;
use crate::record::{self, Document};
use crate::run::nanos;

/// A document, and facts that several notes need.
pub struct NoteFacts<'a> {
    /// The document.
    pub document: &'a Document,
    /// The latencies as measured.
    pub latency: Distribution<u64>,
    /// The ages of requests that were abandoned or in flight at the end.
    pub censored: Option<Distribution<u64>>,
    /// How long was measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// Responses.
    pub completed: u64,
}

impl<'a> NoteFacts<'a> {
    /// The facts of a document. Unreadable values count as empty: a document that was read has been checked.
    pub fn from_document(document: &'a Document) -> Self {
        Self {
            document,
            latency: values(&document.latency.service),
            censored: document.censored.as_ref().map(values),
            elapsed_ns: nanos(document.elapsed()),
            completed: document.requests.completed,
        }
    }

    /// True if another tool is imitated.
    pub fn is_compat(&self) -> bool {
        !self.document.imitates(Dialect::Native)
    }

    /// The most connections that there could be at a time.
    pub fn most_connections(&self) -> u64 {
        let plan = &self.document.plan;
        let planned = plan.max_inflight.unwrap_or(plan.connections);
        self.document.evidence.as_ref().map_or(planned.into(), |evidence| evidence.load.connections)
    }

    /// The most requests that could be in flight, where a connection of HTTP/2 may have several.
    pub fn most_in_flight(&self) -> Option<u64> {
        self.document.evidence.as_ref()?.load.in_flight_max
    }

    /// True if the script held a thread up for long enough to be the limit.
    pub fn is_held_up(&self) -> bool {
        let mut threads = self.document.evidence.iter().flat_map(|evidence| &evidence.generator.threads);
        threads.any(|thread| thread.held_up >= HELD_UP)
    }

    /// The silences that stand out.
    pub fn silences(&self) -> Vec<Silence> {
        let Document { evidence, open_loop, plan, .. } = self.document;
        if plan.once || self.completed == 0 {
            return Vec::new();
        }
        let least_ns = least_ns(&self.latency, open_loop.is_some());
        let all = evidence.iter().flat_map(|evidence| &evidence.load.silences).copied();
        all.filter(|silence| seconds_ns(silence.heard_s) >= least_ns).collect()
    }
}

/// The values of a distribution.
pub fn values(view: &record::Distribution) -> Distribution<u64> {
    view.values().unwrap_or_default()
}

/// Seconds as whole nanoseconds.
pub fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Seconds of a plan.
pub fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
