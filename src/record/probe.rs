//! The experiment after a run, and what followed from it.

use serde::{Deserialize, Serialize};

/// An experiment after the run: other numbers of requests in flight, in turns. No other figure includes any of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Probe {
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// The requests that it sent.
    pub requests: u64,
    /// The length of a batch, in seconds.
    pub tick_s: f64,
    /// Its slots, in order.
    pub slots: Vec<Slot>,
}

/// A time with one number of requests in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slot {
    /// The requests in flight.
    pub in_flight: u32,
    /// The responses in each batch of its counted part.
    pub completed: Vec<u64>,
}

/// By how much the rate follows the requests in flight: 1, in proportion; 0, not at all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Elasticity {
    /// The estimate.
    pub value: f64,
    /// The lower end of its 98 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
