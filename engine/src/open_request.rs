//! A request in flight: everything known about one stream, independent of its connection's others.

use onrush_proto::{Nanos, Request, StreamId};
use onrush_stats::Cause;

use super::checks::Checked;
use super::kept::KeptResponse;

/// A request that was started and has not ended.
#[derive(Debug)]
pub struct OpenRequest {
    /// The request's stream on the connection.
    pub stream: StreamId,
    /// Due time by the schedule; in a closed loop, the time it was started.
    pub due: Nanos,
    /// Time at which the first byte was first handed to the kernel.
    pub sent_at: Nanos,
    /// Arrival time of the response's first byte, if recorded.
    pub first_at: Option<Nanos>,
    /// Number of times the request was sent before, to servers that did not process it.
    pub returns: u8,
    /// The request itself; `None`: it is the one with this `number` in the current batch.
    pub content: Option<Request>,
    /// The request's number in its batch.
    pub number: u32,
    /// The number of the request's name; zero: unnamed.
    pub name: u16,
    /// True while the request waits to leave with the next wait and to be stamped then.
    pub is_gathered: bool,
    /// Number of requests in flight on the thread when this one was sent, itself included. Only if it was sent by a
    /// schedule while less than half of the connections had a request; otherwise zero.
    pub calm: u32,
    /// True once the request has been counted as late.
    pub late: bool,
    /// The response's status, once the head has arrived.
    pub status: Option<u16>,
    pub is_last: bool,
    /// True if the request became due after the end of the run and does not count.
    pub is_after: bool,
    /// True if the stream stays open and messages may come at any time: such a request is never late.
    pub lives: bool,
    /// Notes on the request, if needed.
    pub watched: Option<Box<Watched>>,
    /// The parts of the response kept for a script, if any.
    pub kept: Option<Box<KeptResponse>>,
}

impl OpenRequest {
    /// True if the request was sent before.
    pub fn was_sent_before(&self) -> bool {
        self.returns > 0
    }

    /// The failed checks of the response; bit i is check i.
    pub fn failed_checks(&self) -> u32 {
        self.watched.as_ref().map_or(0, |watched| watched.checked.failed)
    }

    /// The failure of the complete response: its gRPC call, or else the first failed check.
    pub fn failed_check(&self) -> Option<Cause> {
        let watched = self.watched.as_deref()?;
        let of_call = watched.failed_call.as_ref().map(|call| Cause::GrpcStatus(call.status));
        of_call.or_else(|| watched.checked.first_failed_check().map(Cause::Check))
    }
}

/// Notes on a request, made only if an option needs them or a gRPC call fails.
#[derive(Debug, Default)]
pub struct Watched {
    /// Number of body bytes received so far.
    pub body_bytes: u64,
    /// True if the request log includes this request.
    pub is_logged: bool,
    /// State of the response's checks.
    pub checked: Checked,
    /// The response, if it may become a sample.
    pub sample: Option<Box<KeptResponse>>,
    /// The failure of the gRPC call, once the response is complete.
    pub failed_call: Option<FailedCall>,
}

/// Status and message of a failed gRPC call.
#[derive(Debug)]
pub struct FailedCall {
    /// The `grpc-status`.
    pub status: u8,
    /// The beginning of the `grpc-message`.
    pub message: Vec<u8>,
}

impl Watched {
    /// The notes that remain when the request is sent again.
    pub fn for_resending(mut self: Box<Self>) -> Box<Self> {
        *self = Self { is_logged: self.is_logged, ..Self::default() };
        self
    }
}
