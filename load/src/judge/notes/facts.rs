//! A document with its distributions decoded, shared by all notes.

use std::time::Duration;

use onrush_plan::Dialect;
use onrush_stats::Distribution;

use crate::figures::silences::min_silence_ns;
use crate::judge::verdict::HELD_UP;
use crate::record::evidence::Silence;
use crate::record::{self, Document};
use crate::run::nanos;

/// A document, and the facts that several notes need.
pub struct NoteFacts<'a> {
    /// The document of the run.
    pub document: &'a Document,
    /// The latencies as measured, without correction.
    pub latency: Distribution<u64>,
    /// The ages of requests that were abandoned or in flight at the end; `None` if there were none.
    pub censored: Option<Distribution<u64>>,
    /// Length of the measured part of the run, in nanoseconds.
    pub elapsed_ns: u64,
    /// Number of complete responses.
    pub completed: u64,
}

impl<'a> NoteFacts<'a> {
    /// Extracts the facts of a document. Unreadable values count as empty, because a loaded document has been checked.
    pub fn from_document(document: &'a Document) -> Self {
        Self {
            document,
            latency: values(&document.latency.service),
            censored: document.censored.as_ref().map(values),
            elapsed_ns: nanos(document.elapsed()),
            completed: document.requests.completed,
        }
    }

    /// True if the run imitated another tool.
    pub fn is_compat(&self) -> bool {
        !self.document.imitates(Dialect::Native)
    }

    /// Maximum number of connections at a time.
    pub fn most_connections(&self) -> u64 {
        let plan = &self.document.plan;
        let planned = plan.max_inflight.unwrap_or(plan.connections);
        self.document.evidence.as_ref().map_or(planned.into(), |evidence| evidence.load.connections)
    }

    /// Number of requests that could be in flight; `None` if a connection has at most one.
    pub fn in_flight_cap(&self) -> Option<u64> {
        self.document.evidence.as_ref()?.load.in_flight_max
    }

    /// True if the script blocked a thread long enough to be the limit.
    pub fn is_held_up(&self) -> bool {
        let mut threads = self.document.evidence.iter().flat_map(|evidence| &evidence.generator.threads);
        threads.any(|thread| thread.held_up >= HELD_UP)
    }

    /// The silences long enough to be notable.
    pub fn silences(&self) -> Vec<Silence> {
        let Document { evidence, open_loop, plan, .. } = self.document;
        if plan.once || self.completed == 0 {
            return Vec::new();
        }
        let least_ns = min_silence_ns(&self.latency, open_loop.is_some());
        let all = evidence.iter().flat_map(|evidence| &evidence.load.silences).copied();
        all.filter(|silence| seconds_ns(silence.heard_s) >= least_ns).collect()
    }
}

/// The values of a recorded distribution; empty if they cannot be read.
pub fn values(view: &record::Distribution) -> Distribution<u64> {
    view.values().unwrap_or_default()
}

/// Converts seconds to nanoseconds, rounded to whole ones.
pub fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Converts seconds to a duration; zero if they are negative or too many.
pub fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
