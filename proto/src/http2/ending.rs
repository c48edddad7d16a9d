//! Ends of requests and connections.

use super::response::ResponsePhase;
use super::streams::Stream;
use super::{Http2, PATIENCE, frame};
use crate::{Breach, Code, Error, Event, StreamId};

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Requests can be started.
    Open,
    /// Only the requests in flight continue.
    Closing,
    /// Closed: received bytes are ignored.
    Over,
}

/// The requests that fail together, one per event.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailingRequests {
    /// Streams above this one fail.
    above: u32,
    why: FailureReason,
}

/// Reasons for failing requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum FailureReason {
    /// According to GOAWAY, the requests were not processed.
    Unprocessed(Code),
    /// The connection has failed.
    Error(Error),
    /// The server sends nothing more.
    Eof,
}

/// State of [`Event::Draining`], which reports that no more requests can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainState {
    /// Requests can be started.
    No,
    /// The event is due.
    Due(Option<Error>),
    /// The event has been taken.
    Told,
}

impl Http2 {
    /// Ends a stream that the server has ended.
    pub(super) fn finish_stream(&mut self, id: u32) {
        let Some(stream) = self.remove_stream(id) else { return };
        match stream.response.end_of_stream() {
            // The server does not want the rest of the upload.
            Ok(grpc_status) => {
                let is_early = stream.message.is_some();
                self.complete_response(id, grpc_status, is_early, is_early);
            }
            Err(breach) => self.fail_stream(id, breach),
        }
    }

    /// Completes the response on a removed stream; `cancels`: the stream is still open on one side.
    pub(super) fn complete_response(&mut self, id: u32, grpc_status: u8, is_early: bool, cancels: bool) {
        if cancels {
            self.send_reset(id, Code::CANCEL);
        }
        self.patience = PATIENCE;
        self.end = Some(Event::Complete { stream: StreamId(id), grpc_status, is_early });
        self.note_stream_end();
    }

    /// Resets a stream that violates the protocol.
    pub(super) fn reset_stream(&mut self, id: u32, breach: Breach) {
        if self.remove_stream(id).is_some() {
            self.fail_stream(id, breach);
        }
    }

    fn fail_stream(&mut self, id: u32, breach: Breach) {
        self.send_reset(id, breach.code());
        self.report_failure(id, Error::Breach(breach), false);
    }

    pub(super) fn send_reset(&mut self, id: u32, code: Code) {
        frame::write_reset(self.sender.control_buffer(), id, code);
        self.resets.remember_stream(id);
        self.shared.pool.borrow_mut().seen.reset_sent.note(code);
    }

    fn send_goaway(&mut self, code: Code) {
        frame::write_goaway(self.sender.control_buffer(), code);
        self.shared.pool.borrow_mut().seen.goaway_sent.note(code);
    }

    /// Reports the failure of a request that is no longer open.
    pub(super) fn report_failure(&mut self, id: u32, error: Error, retryable: bool) {
        self.patience = PATIENCE;
        self.end = Some(Event::Failed { stream: StreamId(id), error, retryable });
        self.note_stream_end();
    }

    /// Updates the connection after the end of a stream, possibly the last one.
    pub(super) fn note_stream_end(&mut self) {
        if self.life == Life::Closing && self.streams.open_count() == 0 && self.drain == DrainState::No {
            self.send_goaway(Code::NO_ERROR);
            self.drain_connection(None);
        }
    }

    /// Closes a stream, if it is open.
    pub(super) fn remove_stream(&mut self, id: u32) -> Option<Stream> {
        let stream = self.streams.remove(id)?;
        if stream.message.is_some() {
            self.sender.drop_message(id, &self.streams);
        }
        Some(stream)
    }

    /// Reports to the driver that no more requests can be started.
    pub(super) fn drain_connection(&mut self, error: Option<Error>) {
        if self.drain == DrainState::No {
            self.drain = DrainState::Due(error);
        }
    }

    /// Fails the connection, with a GOAWAY if the server broke the protocol.
    pub(super) fn fail_connection(&mut self, error: Error) {
        if let Error::Breach(breach) = error {
            self.send_goaway(breach.code());
        }
        let idle = (self.streams.open_count() == 0).then_some(error);
        self.stop_connection(FailureReason::Error(error), idle);
    }

    /// Stops the connection: later input is ignored.
    pub(super) fn stop_connection(&mut self, why: FailureReason, idle: Option<Error>) {
        self.life = Life::Over;
        self.fail_streams_above(0, why);
        self.drain_connection(idle);
        self.block.free_bytes(&mut self.shared.pool.borrow_mut().blocks);
    }

    /// Fails the requests on streams above an ID.
    pub(super) fn fail_streams_above(&mut self, above: u32, why: FailureReason) {
        if self.streams.first_above(above).is_some() {
            self.failing = Some(FailingRequests { above, why });
        }
    }

    /// Reports the next of the requests that fail together.
    pub(super) fn poll_failing_request(&mut self) -> Option<Event> {
        let failing = self.failing.as_mut()?;
        let Some(id) = self.streams.first_above(failing.above) else {
            self.failing = None;
            return None;
        };
        failing.above = id;
        let why = failing.why;
        let is_reading = self.block.stream == Some(id);
        let stream = self.remove_stream(id)?;
        let is_answered = stream.response.phase() == ResponsePhase::Body;
        let may_be_accepted = !self.shared.options.is_told_at_once || self.sender.has_accepted(stream.headers_end);
        let has_left = is_answered || (self.sender.has_begun(id) && may_be_accepted);
        let error = match (why, stream.response.phase()) {
            (FailureReason::Unprocessed(code), _) => Error::GoAway(code),
            (FailureReason::Error(error), _) => error,
            (FailureReason::Eof, _) if !has_left => Error::ConnectionEnded,
            (FailureReason::Eof, _) if self.goaway.is_some_and(|(_, code)| code != Code::NO_ERROR) => {
                self.goaway.map_or(Error::ConnectionEnded, |(_, code)| Error::GoAway(code))
            }
            (FailureReason::Eof, _) if is_reading => Error::ClosedInHead,
            (FailureReason::Eof, ResponsePhase::Head) => Error::ClosedBeforeResponse,
            (FailureReason::Eof, ResponsePhase::Body) => Error::ClosedInBody,
        };
        let is_unprocessed = matches!(why, FailureReason::Unprocessed(_)) && !is_answered;
        let retryable = is_unprocessed || !has_left;
        Some(Event::Failed { stream: StreamId(id), error, retryable })
    }
}
