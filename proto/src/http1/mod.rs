//! HTTP/1.x, with several requests in flight on one connection.
//!
//! ```text
//!             ┌ interim (1xx) ┐
//!             ▼               │
//!   start ─► head ────────────┴──► body ──► complete ──► head of the next response
//!             │                     │          │
//!             │ error, end          │ the same │ the connection cannot stay open
//!             ▼                     ▼          ▼
//!           Ending ── all events taken ──────────► Over
//! ```
//!
//! Responses arrive in the order of the requests, so the state belongs to the oldest request in flight: `collect` and
//! `head` read its head, `body` and `chunked` its body. Any end of the connection makes the state *ending*: the
//! requests still in flight fail, then the connection drains, and from then on all bytes are ignored.
//!
//! Bytes without a request in flight are the server's last word, or a mistake: *unasked*, until their head is complete.
//!
//! The protocol never buffers a body, never allocates for a response whose head has a usual size and arrives in one
//! piece, and never sends a request again: that is the driver's decision.

mod body;
mod chunked;
mod collect;
mod encode;
mod head;
mod outline;
mod taken;
#[cfg(test)]
mod tests;
mod tunnel;
mod wire;

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use self::body::BodyReader;
use self::chunked::Chunked;
use self::collect::HeadCollector;
use self::head::{Framing, Head};
use self::taken::Consumed;
use crate::{Client, Error, Event, Fields, Nanos, Request, StartError, StreamId, Transmit};

pub(crate) use self::chunked::decode_chunked;
pub use self::collect::HeadBuffer;
pub use self::encode::{encode, needs_length};
pub(crate) use self::head::is_token;
pub use self::head::unfold;
pub use self::outline::{Malformed, Outline, outline, outline_any, outline_unread};
pub use self::tunnel::Tunnel;
pub use self::wire::Wire;

/// Length limit on a response head, in bytes, including empty lines before it; also on a chunk's first line and on the
/// trailer section. The same as in wrk's parser.
pub const HEAD_MAX: usize = 80 * 1024;

/// Largest number of bytes of several requests that leave together.
const JOINED_MAX: usize = 16 * 1024;

/// Missing part of a response that has begun, unless it is the rest of a body with a known end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The head has begun and is incomplete.
    HeadEnd,
    /// The body ends only when the server closes the connection.
    Close,
}

/// Effect of a request's method on the body of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// The response's head decides.
    Usual,
    /// No body, whatever the head says (`HEAD`).
    Bodiless,
    /// A 2xx response has no body, and the connection becomes a tunnel (`CONNECT`).
    Tunnel,
}

impl ResponseKind {
    /// The response kind of a method; methods are case-sensitive.
    pub fn of_method(method: &str) -> Self {
        match method {
            "HEAD" => Self::Bodiless,
            "CONNECT" => Self::Tunnel,
            _ => Self::Usual,
        }
    }
}

/// One HTTP/1.x connection, seen from the client.
#[derive(Debug)]
pub struct Http1 {
    /// Limit on requests in flight.
    depth: usize,
    /// The requests with incomplete responses, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Number of requests in flight already returned by [`Client::poll_transmit`].
    given: usize,
    next_stream: u32,
    bytes_started: u64,
    /// Number of bytes accepted by the transport.
    bytes_sent: u64,
    collector: HeadCollector,
    /// The body being read; `None` if a head comes next.
    body: Option<BodyReader>,
    /// True if the connection outlives the response being read, as far as known.
    keep_alive: bool,
    life: Life,
    /// The next event. No input causes more than this event, the one in `complete`, and the events of [`Life::Ending`],
    /// so no queue is needed.
    event: Option<Event>,
    /// The request of the next [`Event::Complete`]; true if its response is early.
    complete: Option<(StreamId, bool)>,
}

/// A request without a complete response.
#[derive(Debug)]
struct InFlight {
    stream: StreamId,
    wire: Rc<[u8]>,
    range: Range<usize>,
    response: ResponseKind,
    /// Number of bytes sent on the connection up to the end of this request.
    sent_at: u64,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Requests can be sent.
    Open,
    /// Bytes arrived that answer no request. Their meaning is known once their head is complete.
    Unasked {
        /// The error, unless it is a response that ends the connection.
        error: Error,
    },
    /// The connection has ended; some events about that are still to be taken.
    Ending {
        /// The error of the requests still in flight.
        unanswered: Error,
        /// True if the server has announced that it did not process these requests.
        retryable: bool,
        /// The error of the connection as a whole.
        error: Option<Error>,
    },
    /// The connection has ended, and all events have been taken.
    Over {
        /// The error of the requests still in flight.
        unanswered: Error,
        /// True if the server has announced that it did not process these requests.
        retryable: bool,
    },
}

impl Http1 {
    /// A new connection for at most `depth` requests in flight, with its own limit on memory for heads.
    pub fn new(depth: usize) -> Self {
        Self::sharing(depth, &HeadBuffer::default())
    }

    /// A new connection that shares its memory for incomplete heads with others.
    pub fn sharing(depth: usize, heads: &HeadBuffer) -> Self {
        Self {
            depth,
            in_flight: VecDeque::with_capacity(depth.min(16)),
            given: 0,
            next_stream: 0,
            bytes_started: 0,
            bytes_sent: 0,
            collector: HeadCollector::new(heads.clone()),
            body: None,
            keep_alive: true,
            life: Life::Open,
            event: None,
            complete: None,
        }
    }

    /// True if [`Client::poll_transmit`] has a request to return.
    pub fn has_output(&self) -> bool {
        self.given < self.in_flight.len()
    }

    /// True if a request started now leaves together with those not handed over yet, or if there are none.
    pub fn leaves_together(&self, request: &Request) -> bool {
        let Some(first) = self.in_flight.get(self.given) else { return true };
        let before = first.sent_at - first.range.len() as u64;
        self.bytes_started - before + request.wire(false).range.len() as u64 <= JOINED_MAX as u64
    }

    /// The error for a request that was to follow on the connection but can no longer be started. The bool is true if
    /// it may be sent elsewhere. `None`: the connection is open, or some events have not been taken.
    pub fn later_request_error(&self) -> Option<(Error, bool)> {
        match self.life {
            Life::Open | Life::Ending { .. } => None,
            Life::Unasked { .. } => Some((Error::ConnectionEnded, true)),
            Life::Over { unanswered, retryable } => Some((unanswered, retryable)),
        }
    }

    /// Takes bytes of the response to `stream`.
    fn take_response_bytes(&mut self, stream: StreamId, response: ResponseKind, bytes: &[u8]) -> Result<usize, Error> {
        let Some(body) = &mut self.body else {
            let (used, head) = self.collector.take_head(bytes)?;
            if let Some(head) = head {
                self.begin_response(stream, response, head)?;
            }
            return Ok(used);
        };
        let Consumed { used, piece: range, is_trailer, is_last } = body.take_piece(bytes)?;
        if !range.is_empty() {
            self.event = Some(if is_trailer {
                self.collector.show_trailers(range);
                Event::Trailer { stream }
            } else {
                Event::Data { stream, range }
            });
        }
        if is_last {
            self.end_response();
        }
        Ok(used)
    }

    /// Handles the complete head of a response, interim or final.
    fn begin_response(&mut self, stream: StreamId, response: ResponseKind, head: Head) -> Result<(), Error> {
        let status = head.status;
        match status {
            101 => return Err(Error::Switched),
            100..=199 => {
                self.event = Some(Event::Interim { stream, status });
                return Ok(());
            }
            _ => {}
        }
        let is_tunnel = response == ResponseKind::Tunnel && (200..=299).contains(&status);
        let is_bodiless = is_tunnel || response == ResponseKind::Bodiless || status == 204 || status == 304;
        self.body = match head.framing {
            _ if is_bodiless => None,
            Ok(Framing::Length(0)) => None,
            Ok(Framing::Length(length)) => Some(BodyReader::Length(length)),
            Ok(Framing::Chunked) => Some(BodyReader::Chunked(Chunked::new())),
            Ok(Framing::UntilEof) => Some(BodyReader::UntilEof),
            Err(error) => return Err(error),
        };
        self.event = Some(Event::Head { stream, status });
        self.keep_alive = head.keep_alive && !is_tunnel && !matches!(self.body, Some(BodyReader::UntilEof));
        if self.body.is_none() {
            self.end_response();
        }
        Ok(())
    }

    /// Ends the oldest response and its request.
    fn end_response(&mut self) {
        self.body = None;
        let Some(request) = self.in_flight.pop_front() else { return };
        self.given = self.given.saturating_sub(1);
        // A response that does not wait for the whole request means that the rest is unwanted; HTTP/1 has no way to
        // leave it out and continue. If requests leave together, the transport may report them only at the end.
        let is_early = self.given == 0 && self.bytes_sent < request.sent_at;
        self.complete = Some((request.stream, is_early));
        if is_early || !self.keep_alive {
            // The later requests are certainly unprocessed only if the end was announced, or if they have not left.
            self.end_connection(Error::ConnectionEnded, is_early || !self.keep_alive, None);
        }
    }

    /// Fails the connection: neither the oldest response nor later ones can be read.
    fn fail_connection(&mut self, error: Error) {
        if let Some(request) = self.in_flight.pop_front() {
            self.event = Some(Event::Failed { stream: request.stream, error, retryable: false });
        }
        self.end_connection(Error::ConnectionEnded, false, None);
    }

    /// Ends the connection; [`Client::poll_event`] reports it request by request.
    fn end_connection(&mut self, unanswered: Error, retryable: bool, error: Option<Error>) {
        self.life = Life::Ending { unanswered, retryable, error };
    }

    fn is_open(&self) -> bool {
        self.life == Life::Open
    }

    /// Takes bytes that arrive while no request is on its way. Empty lines after a body, as some servers send them,
    /// belong to the next head, even if its request has left by then.
    #[cold]
    fn take_between(&mut self, bytes: &[u8]) -> usize {
        if self.bytes_sent == 0 {
            return self.take_unasked(bytes, Error::EarlyBytes);
        }
        let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let used = self.collector.take_head(&bytes[..empty]).map_or(0, |(used, _)| used);
        if used < bytes.len() {
            self.take_unasked(&bytes[used..], Error::ExtraBytes);
        }
        bytes.len()
    }

    /// Takes bytes that answer no request. Servers that close an idle connection may announce that with a response
    /// (usually 408): it ends the connection like a close without a response. Anything else is a mistake.
    #[cold]
    fn take_unasked(&mut self, bytes: &[u8], error: Error) -> usize {
        let read = if self.collector.is_begun() || bytes.starts_with(b"H") {
            self.collector.take_head(bytes)
        } else {
            Err(error)
        };
        match read {
            Ok((used, None)) => {
                self.life = Life::Unasked { error };
                return used;
            }
            Ok((_, Some(head))) if head.is_last_word() => {
                self.end_connection(Error::ConnectionEnded, true, Some(Error::ClosedBeforeResponse));
            }
            _ => self.end_connection(Error::ConnectionEnded, true, Some(error)),
        }
        bytes.len()
    }

    /// The next event of a connection that ends.
    #[cold]
    fn poll_ending_event(&mut self) -> Option<Event> {
        let (unanswered, retryable, error) = match self.life {
            Life::Ending { unanswered, retryable, error } => (unanswered, retryable, error),
            // None of these requests has been sent.
            Life::Unasked { error } => (Error::ConnectionEnded, true, Some(error)),
            Life::Open | Life::Over { .. } => return None,
        };
        if let Some(InFlight { stream, .. }) = self.in_flight.pop_front() {
            return Some(Event::Failed { stream, error: unanswered, retryable });
        }
        if self.unsolicited_error().is_some() {
            return None;
        }
        self.life = Life::Over { unanswered, retryable };
        Some(Event::Draining { error })
    }

    /// After an error: the unreadable text, and in it the index of the faulty line and of the wrong byte, both zero if
    /// unknown. `input`: the last input of [`Client::handle_bytes`].
    pub fn flaw<'a>(&'a self, input: &'a [u8]) -> (&'a [u8], usize, usize) {
        let text = self.collector.received_head(input);
        let (line, at) = head::flaw(text).unwrap_or_default();
        (text, line, at)
    }

    /// The error to report for bytes that answer no request sent so far, until their meaning is known. `None`: there
    /// are no such bytes.
    pub fn unsolicited_error(&self) -> Option<Error> {
        if let Life::Unasked { error } = self.life { Some(error) } else { None }
    }

    /// The missing part of the response to `stream`. `None`: another response comes first, nothing has arrived, or only
    /// the rest of a body with a known end is missing.
    pub fn missing_part(&self, stream: StreamId) -> Option<Missing> {
        if self.reading() != Some(stream) {
            return None;
        }
        match self.body {
            Some(BodyReader::UntilEof) => Some(Missing::Close),
            Some(_) => None,
            None => self.collector.is_partial().then_some(Missing::HeadEnd),
        }
    }

    /// Declines the response whose [`Event::Head`] was the last event, if it only says that the server has ended an
    /// idle connection (408, RFC 9110, 15.5.9):
    ///
    /// - the connection does not outlive the response, and has brought responses before
    /// - the whole request has been sent
    ///
    /// Returns true if it did. Then no further event names the request. The request and those behind it may be sent
    /// again.
    pub fn decline_timeout(&mut self, stream: StreamId) -> bool {
        let is_first = stream == StreamId(0);
        let is_early = match self.complete {
            Some((_, is_early)) => is_early,
            None => self.given == 1 && self.in_flight.front().is_some_and(|request| self.bytes_sent < request.sent_at),
        };
        if self.keep_alive || is_first || is_early {
            return false;
        }
        if self.complete.take().is_none() {
            self.in_flight.pop_front();
            self.end_connection(Error::ConnectionEnded, true, None);
        }
        true
    }
}

impl Client for Http1 {
    fn capacity(&self) -> usize {
        if self.is_open() && self.keep_alive { self.depth.saturating_sub(self.in_flight.len()) } else { 0 }
    }

    fn start(&mut self, request: &Request, is_last: bool) -> Result<StreamId, StartError> {
        if self.capacity() == 0 {
            return Err(StartError::Busy);
        }
        let stream = StreamId(self.next_stream);
        self.next_stream = self.next_stream.wrapping_add(1);
        let wire = request.wire(is_last);
        self.bytes_started += wire.range.len() as u64;
        let (bytes, range) = (Rc::clone(&wire.bytes), wire.range.clone());
        let request = InFlight { stream, wire: bytes, range, response: wire.response, sent_at: self.bytes_started };
        self.in_flight.push_back(request);
        Ok(stream)
    }

    fn reading(&self) -> Option<StreamId> {
        self.in_flight.front().filter(|_| self.given > 0).map(|request| request.stream)
    }

    fn cancel(&mut self, stream: StreamId) {
        self.event.take_if(|event| event.stream() == Some(stream));
        if self.complete.take_if(|complete| complete.0 == stream).is_some() {
            return;
        }
        if let Some(index) = self.in_flight.iter().position(|request| request.stream == stream) {
            self.in_flight.remove(index);
            if self.is_open() {
                self.end_connection(Error::ConnectionEnded, false, None);
            }
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8], _: Nanos) -> usize {
        debug_assert!(self.event.is_none() && self.complete.is_none(), "the events of the last input come first");
        self.collector.release_complete();
        if bytes.is_empty() || !self.is_open() {
            return match self.life {
                Life::Unasked { error } => self.take_unasked(bytes, error),
                _ => bytes.len(),
            };
        }
        // A request that has not been sent has no response.
        let Some(&InFlight { stream, response, .. }) = self.in_flight.front().filter(|_| self.given > 0) else {
            return self.take_between(bytes);
        };
        self.take_response_bytes(stream, response, bytes).unwrap_or_else(|error| {
            self.fail_connection(error);
            bytes.len()
        })
    }

    fn handle_skipped(&mut self, n: u64) {
        assert!(n <= self.may_skip(), "no more may be skipped");
        self.collector.release_complete();
        if self.body.as_mut().is_some_and(|body| body.skip_data(n)) {
            self.end_response();
        }
    }

    fn handle_eof(&mut self) {
        self.collector.release_complete();
        if !self.is_open() {
            if let Life::Unasked { error } = self.life {
                self.end_connection(Error::ConnectionEnded, true, Some(error));
            }
            return;
        }
        match self.body {
            Some(BodyReader::UntilEof) => self.end_response(),
            Some(_) => self.fail_connection(Error::ClosedInBody),
            None if self.collector.is_begun() => self.fail_connection(Error::ClosedInHead),
            None => {
                let idle = self.in_flight.is_empty().then_some(Error::ClosedBeforeResponse);
                self.end_connection(Error::ClosedBeforeResponse, false, idle);
            }
        }
    }

    fn handle_sent(&mut self, n: usize) {
        self.bytes_sent += n as u64;
        debug_assert!(self.bytes_sent <= self.bytes_started, "no more was started");
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    #[inline(always)]
    fn poll_transmit(&mut self, _: Nanos) -> Option<Transmit> {
        if !self.is_open() {
            return None;
        }
        let InFlight { wire, range, .. } = self.in_flight.get(self.given)?;
        let (wire, mut range) = (Rc::clone(wire), range.clone());
        self.given += 1;
        // Requests whose bytes are consecutive in memory leave together.
        while let Some(next) = self.in_flight.get(self.given)
            && Rc::ptr_eq(&next.wire, &wire)
            && range.len() + next.range.len() <= JOINED_MAX
            && (next.range.start == range.end || wire[range.end..].starts_with(&wire[next.range.clone()]))
        {
            range.end += next.range.len();
            self.given += 1;
        }
        Some(Transmit::Shared(wire, range))
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.event.take() {
            return Some(event);
        }
        if let Some((stream, is_early)) = self.complete.take() {
            return Some(Event::Complete { stream, grpc_status: 0, is_early });
        }
        if self.is_open() { None } else { self.poll_ending_event() }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    fn may_skip(&self) -> u64 {
        match &self.body {
            Some(body) if self.is_open() => body.data_left(),
            _ => 0,
        }
    }

    fn fields<'a>(&'a self, input: &'a [u8]) -> Fields<'a> {
        let text = self.collector.head(input);
        // A reason phrase may have a colon.
        let status_line =
            if text.starts_with(b"HTTP/") { memchr::memchr(b'\n', text).map_or(0, |lf| lf + 1) } else { 0 };
        Fields::from_lines(&text[status_line..])
    }

    fn write_text(&self, input: &[u8], text: &mut Vec<u8>) {
        text.extend_from_slice(self.collector.head(input));
    }
}
