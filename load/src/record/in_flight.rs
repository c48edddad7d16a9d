//! How many requests were in flight, as a document has it.

use std::time::Duration;

use onrush_stats::Occupancy;
use serde::{Deserialize, Serialize};

/// Requests in flight, as an average over the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct InFlight {
    /// Requests, no matter how they ended.
    pub mean: f64,
    /// Connections with at least one request in flight.
    pub busy_connections: f64,
    /// For how long each request was in flight, in total, in whole microseconds; left out of threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_us: Option<u64>,
    /// For how long each connection had at least one request in flight, in total, in whole microseconds; left out of
    /// threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_us: Option<u64>,
}

impl InFlight {
    /// That of a run of this length; `None` if it had none.
    pub fn of(occupancy: &Occupancy, elapsed: Duration) -> Option<Self> {
        let mean = |sum_ns: u64| sum_ns as f64 / elapsed.as_nanos() as f64;
        let &Occupancy { in_flight_ns, busy_ns, .. } = occupancy;
        (!elapsed.is_zero()).then(|| Self {
            mean: mean(in_flight_ns),
            busy_connections: mean(busy_ns),
            requests_us: Some(in_flight_ns / 1_000),
            connections_us: Some(busy_ns / 1_000),
        })
    }
}
