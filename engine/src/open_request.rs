//! A request in flight: everything known about one stream, whichever others its connection has.

use onrush_proto::{Nanos, Request, StreamId};
use onrush_stats::Cause;

use super::checks::Checked;
use super::kept::KeptResponse;

/// A request that was started and has not ended.
#[derive(Debug)]
pub struct OpenRequest {
    /// Its stream on the connection.
    pub stream: StreamId,
    /// When it was due.
    pub due: Nanos,
    /// When its first byte was handed to the kernel; if it was sent again, for the first time.
    pub sent_at: Nanos,
    /// When the first byte of its response arrived, where that is noted.
    pub first_at: Option<Nanos>,
    /// How often it was sent before, to servers that did not process it.
    pub returns: u8,
    /// What it consists of, if that is not the batch's request with this number.
    pub content: Option<Request>,
    /// Its number in its batch.
    pub number: u32,
    /// The number of its name; zero: it has none.
    pub name: u16,
    /// Whether it leaves only with the next wait, and is stamped then.
    pub is_gathered: bool,
    /// How many requests were in flight on the thread when it was sent, with itself, if that was by a schedule and less than half of
    /// the connections had one; otherwise zero.
    pub calm: u32,
    /// Whether it has been counted as timed out.
    pub late: bool,
    /// The status of its response, once the head has arrived.
    pub status: Option<u16>,
    /// Whether it is the last of its batch.
    pub is_last: bool,
    /// Set if it became due after the end of the run, so that it does not count.
    pub is_after: bool,
    /// Whether its stream stays open and messages may come at any time, so that it is never late.
    pub lives: bool,
    /// What is noted of it, if there is anything.
    pub watched: Option<Box<Watched>>,
    /// The parts of its response kept for a script, if there are any.
    pub kept: Option<Box<KeptResponse>>,
}

impl OpenRequest {
    /// Whether it was sent before.
    pub fn is_again(&self) -> bool {
        self.returns > 0
    }

    /// The checks that its response has failed, a bit for each by its number.
    pub fn failed_checks(&self) -> u32 {
        self.watched.as_ref().map_or(0, |watched| watched.checked.failed)
    }

    /// What its complete response failed: the gRPC call, or else the first check.
    pub fn failed_check(&self) -> Option<Cause> {
        let watched = self.watched.as_deref()?;
        let of_call = watched.failed_call.as_ref().map(|call| Cause::GrpcStatus(call.status));
        of_call.or_else(|| watched.checked.first_failed().map(Cause::Check))
    }
}

/// What is noted of a request only where something is asked for that needs it, or a gRPC call fails.
#[derive(Debug, Default)]
pub struct Watched {
    /// How much of its response's body has arrived, in bytes.
    pub body_bytes: u64,
    /// Whether the log of requests has it.
    pub is_logged: bool,
    /// What is known of the checks of its response.
    pub checked: Checked,
    /// Its response, if that may become a sample.
    pub sample: Option<Box<KeptResponse>>,
    /// How its gRPC call failed, once its response is complete.
    pub failed_call: Option<FailedCall>,
}

/// What a complete response says of a gRPC call that failed.
#[derive(Debug)]
pub struct FailedCall {
    /// Its `grpc-status`.
    pub status: u8,
    /// The beginning of its `grpc-message`.
    pub message: Vec<u8>,
}

impl Watched {
    /// What remains when the request is sent again.
    pub fn again(mut self: Box<Self>) -> Box<Self> {
        *self = Self { is_logged: self.is_logged, ..Self::default() };
        self
    }
}
