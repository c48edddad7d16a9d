//! Formulas on a run: rates, wrk's latencies, bounds of percentiles, times without responses.
//!
//! Nothing here is a judgement or a sentence, and nothing is measured.
//!
//! `rate` computes rates, and `batches` their variance. `latency` and `summary` are about the latency of the text, and
//! `correct` about wrk's. For runs with a rate, `estimate` and `bounds` are about percentiles, and `incomplete` about
//! requests without a response. `silences` are times without responses; `unavailable` ones count as an outage of the
//! target.

pub mod batches;
pub mod bounds;
pub mod correct;
pub mod estimate;
mod incomplete;
pub mod latency;
pub mod rate;
pub mod silences;
pub mod slope;
mod summary;
pub mod unavailable;

pub use incomplete::IncompleteRequests;
pub use summary::SummaryStatistics;

/// Nanoseconds in a microsecond, the unit of wrk's latencies.
pub const NS_PER_US: f64 = 1000.0;
