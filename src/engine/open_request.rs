//! A request under way: everything that is known of one stream, whichever others its connection has.

use onrush_proto::{Nanos, StreamId};

use super::kept::Kept;

/// A request that was started and has not ended.
#[derive(Debug)]
pub struct OpenRequest {
    /// Which one of its connection it is.
    pub stream: StreamId,
    /// When it was due.
    pub due: Nanos,
    /// When its first byte was handed to the kernel.
    pub sent_at: Nanos,
    /// When the first byte of its response came, where phases are recorded.
    pub first_at: Option<Nanos>,
    /// Whether it was sent before, to a server that did not look at it.
    pub is_again: bool,
    /// Whether it only leaves with the next wait, and is stamped then.
    pub is_gathered: bool,
    /// Whether it was sent, by a schedule, while less than half of the connections had a request in flight.
    pub is_calm: bool,
    /// Whether it has been counted as timed out.
    pub late: bool,
    /// The status of its response, once the head of that is there.
    pub status: Option<u16>,
    /// Whether its batch is complete with it.
    pub is_last: bool,
    /// Whether its stream lives on and messages may come at any time, so that no wait is too long.
    pub lives: bool,
    /// What of its response is kept for a script, where that wants it.
    pub kept: Option<Box<Kept>>,
}
