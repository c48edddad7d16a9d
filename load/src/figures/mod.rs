//! Formulas for the figures of a run: rates, wrk's latencies, bounds of percentiles, times without responses.
//!
//! Nothing here judges, words a sentence, or measures.
//!
//! `rate` computes rates, and `batches` their variance. `latency` and `summary` compute the latency in the text report,
//! and `correct` that of wrk. For runs with a rate, `estimate` and `bounds` compute percentiles, and `incomplete`
//! counts requests without a response. `silences` finds times without responses, and `unavailable` those that count as
//! an outage of the target.

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
