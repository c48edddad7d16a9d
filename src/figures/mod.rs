//! What follows from a run by a formula: rates, wrk's latencies, bounds of percentiles, times without responses.
//!
//! Nothing here is a judgement or a sentence, and nothing is measured.

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

pub use incomplete::Incomplete;
pub use summary::Figures;

/// Nanoseconds in a microsecond, the unit of wrk's latencies.
pub const NS_PER_US: f64 = 1000.0;
