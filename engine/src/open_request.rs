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
    /// When the first byte of its response arrived, if that is recorded.
    pub first_at: Option<Nanos>,
    /// How often it was sent before, to servers that did not process it.
    pub returns: u8,
    /// The request itself, if it is not the batch's request with this number.
    pub content: Option<Request>,
    /// Its number in its batch.
    pub number: u32,
    /// The number of its name; zero: it has none.
    pub name: u16,
    /// True while it is to leave with the next wait, and to be stamped then.
    pub is_gathered: bool,
    /// How many requests were in flight on the thread when it was sent, with itself, if that was by a schedule and less
    /// than half of the connections had one; otherwise zero.
    pub calm: u32,
    /// True if counted as timed out.
    pub late: bool,
    /// The status of its response, once the head has arrived.
    pub status: Option<u16>,
    pub is_last: bool,
    /// True if it became due after the end of the run, so that it does not count.
    pub is_after: bool,
    /// True if its stream stays open and messages may come at any time: it is never late.
    pub lives: bool,
    /// Notes on it, if there are any.
    pub watched: Option<Box<Watched>>,
    /// The parts of its response kept for a script, if there are any.
    pub kept: Option<Box<KeptResponse>>,
}

impl OpenRequest {
    /// True if it was sent before.
    pub fn is_again(&self) -> bool {
        self.returns > 0
    }

    /// The checks that its response has failed, a bit for each by its number.
    pub fn failed_checks(&self) -> u32 {
        self.watched.as_ref().map_or(0, |watched| watched.checked.failed)
    }

    /// The failure of its complete response: the gRPC call, or else the first failed check.
    pub fn failed_check(&self) -> Option<Cause> {
        let watched = self.watched.as_deref()?;
        let of_call = watched.failed_call.as_ref().map(|call| Cause::GrpcStatus(call.status));
        of_call.or_else(|| watched.checked.first_failed().map(Cause::Check))
    }
}

/// Notes on a request, made only if an option needs them or a gRPC call fails.
#[derive(Debug, Default)]
pub struct Watched {
    /// How much of its response's body has arrived, in bytes.
    pub body_bytes: u64,
    /// True if the request log has it.
    pub is_logged: bool,
    /// State of the checks of its response.
    pub checked: Checked,
    /// Its response, if that may become a sample.
    pub sample: Option<Box<KeptResponse>>,
    /// How its gRPC call failed, once its response is complete.
    pub failed_call: Option<FailedCall>,
}

/// Status and message of a failed gRPC call.
#[derive(Debug)]
pub struct FailedCall {
    /// Its `grpc-status`.
    pub status: u8,
    /// The beginning of its `grpc-message`.
    pub message: Vec<u8>,
}

impl Watched {
    /// The notes that remain when the request is sent again.
    pub fn again(mut self: Box<Self>) -> Box<Self> {
        *self = Self { is_logged: self.is_logged, ..Self::default() };
        self
    }
}
