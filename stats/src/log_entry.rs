//! An entry of the request log.

use super::{Cause, Phase};

/// One request. Times are in nanoseconds since the planned start of measuring, and negative before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Time at which the request was due; without a rate, at which a connection was free for it.
    pub due_ns: i64,
    /// Time at which the first byte was handed to the kernel.
    pub sent_ns: i64,
    /// Arrival time of the response's first byte, if any.
    pub first_ns: Option<i64>,
    /// End of the request; `None`: it was in flight at the end of the run.
    pub end_ns: Option<i64>,
    /// Number of bytes received of the response's body.
    pub body_bytes: u64,
    /// The status of the response, if a head arrived.
    pub status: Option<u16>,
    /// The number of the request's name, from 1; zero: the request has no name.
    pub name: u16,
    /// The outcome of the request.
    pub fate: Fate,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The response is complete.
    Completed,
    /// The request will get no complete response, or its complete response failed a check.
    Failed(Phase, Cause),
    /// The request was abandoned because it took too long.
    Abandoned,
    /// The request was in flight at the end of the run.
    Open,
}
