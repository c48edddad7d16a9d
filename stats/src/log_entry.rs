//! An entry of the request log.

use super::{Cause, Phase};

/// One request. Times are in nanoseconds since measuring was to begin, and negative before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When it was due.
    pub due_ns: i64,
    /// When its first byte was handed to the kernel.
    pub sent_ns: i64,
    /// When the first byte of its response arrived, if one did.
    pub first_ns: Option<i64>,
    /// When it ended; `None`: it was in flight when the run ended.
    pub end_ns: Option<i64>,
    /// The bytes of its response's body that arrived.
    pub body_bytes: u64,
    /// The status of its response, if a head arrived.
    pub status: Option<u16>,
    /// The number of its name; zero: it has none.
    pub name: u16,
    /// How it ended.
    pub fate: Fate,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its response is complete.
    Completed,
    /// It will get no complete response, or its complete response failed a check.
    Failed(Phase, Cause),
    /// It was abandoned, because it had lasted too long.
    Abandoned,
    /// It was in flight when the run ended.
    Open,
}
