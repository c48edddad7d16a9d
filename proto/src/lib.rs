//! Client protocols without I/O.
//!
//! A [`Client`] is the protocol of one connection. It takes bytes, the end of the stream and the time. It returns bytes
//! to send, events and its next wake-up time. It never reads a clock, never touches a socket, knows neither TLS nor
//! Lua, and contains no `unsafe`.
//!
//! # The driver's contract
//!
//! 1. Call [`Client::capacity`], then [`Client::start`] at most that many requests.
//! 2. Send what [`Client::poll_transmit`] returns until it returns nothing. Every [`Transmit`] stays alive and
//!    unchanged until its last byte was accepted. Report accepted bytes with [`Client::handle_sent`] before you pass on
//!    bytes that arrived later: a response to a request not reported as sent counts as early.
//! 3. When bytes arrive, call [`Client::handle_bytes`]; it stops after the first bytes that cause an event. Take all
//!    events with [`Client::poll_event`], then call it again with the rest, until nothing is left. Only then start
//!    requests: bytes that arrived before a request cannot answer it. If [`Client::may_skip`] is not zero, up to that
//!    many bytes may be discarded unread instead; report them with [`Client::handle_skipped`] and take the events
//!    afterwards as well.
//! 4. At the end of the stream call [`Client::handle_eof`]; at the time returned by [`Client::poll_timeout`] call
//!    [`Client::handle_timeout`]. Take the events after each.
//! 5. After any of these go back to step 2: input may cause output, even with no request in flight.
//! 6. After [`Event::Draining`] no request can be started. When the last one in flight has ended, close the connection.
//!
//! Equal bytes give equal events, however they are split, and every byte is taken exactly once. Times passed in never
//! go back.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// The fuzzer's properties, also checked by tests, name this crate from outside.
#[cfg(test)]
extern crate self as onrush_proto;

mod breach;
mod code;
mod error;
mod fields;
pub mod http1;
pub mod http2;
mod request;
mod time;
#[cfg(test)]
mod told;
mod transmit;

pub use breach::Breach;
pub use code::Code;
pub use error::{Error, ResponsePart};
pub use fields::Fields;
pub use http1::Http1;
pub use http2::{GRPC_STATUS_MAX, Http2};

pub use request::{CachedRequest, Encoded, Remark, Request, RequestParts};
pub use time::Nanos;
pub use transmit::{Transmit, Vectored};

use std::ops::Range;

/// The client side of one connection's protocol. See the crate documentation for how to drive it.
pub trait Client {
    /// Number of requests that can be started now, in addition to those in flight. May change after every input, and
    /// may be zero for a while; after [`Event::Draining`] it stays zero.
    fn capacity(&self) -> usize;

    /// Starts a request: queues it, encoded in the protocol's form, for [`Client::poll_transmit`]. `is_last`: the
    /// driver will start no more requests on this connection; the protocol tells the peer if it can.
    ///
    /// # Errors
    ///
    /// If there is no room, see [`Client::capacity`], or if this protocol cannot send the request's form.
    fn start(&mut self, request: &Request, is_last: bool) -> Result<StreamId, StartError>;

    /// Abandons a request: no further event will name it. A protocol that cannot abandon a single request drains, and
    /// its other requests in flight fail.
    fn cancel(&mut self, stream: StreamId);

    /// Takes received bytes up to the end of the next event. Returns the number taken: all bytes if they cause no event
    /// or the connection has failed. `now`: time of their arrival.
    fn handle_bytes(&mut self, bytes: &[u8], now: Nanos) -> usize;

    /// Records that `n` received bytes were discarded unread, at most [`Client::may_skip`].
    fn handle_skipped(&mut self, n: u64);

    /// Records that the peer will send nothing more.
    fn handle_eof(&mut self);

    /// Records that the transport accepted `n` more bytes from [`Client::poll_transmit`].
    fn handle_sent(&mut self, n: usize);

    /// Call when the time returned by [`Client::poll_timeout`] has come. `now`: the actual time.
    fn handle_timeout(&mut self, now: Nanos);

    /// The next bytes to send; `None`: nothing for now. `now`: time at which they are handed to the transport.
    fn poll_transmit(&mut self, now: Nanos) -> Option<Transmit>;

    /// Takes the next event; `None`: nothing until more input.
    fn poll_event(&mut self) -> Option<Event>;

    /// The time at which to call [`Client::handle_timeout`]; `None`: no call is needed.
    fn poll_timeout(&self) -> Option<Nanos>;

    /// The request whose response the next byte belongs to, as far as this is known before the byte is read.
    fn reading(&self) -> Option<StreamId>;

    /// Number of following bytes that belong to the body of one response and cause no event except [`Event::Data`].
    /// Zero: the next byte must be read; [`u64::MAX`]: the body extends to the end of the stream.
    fn may_skip(&self) -> u64;

    /// The fields of the last [`Event::Head`], [`Event::Interim`] or [`Event::Trailer`]; over HTTP/2 only those that
    /// the options ask for. `input`: the last input of [`Client::handle_bytes`]. Valid only until all events caused by
    /// that input have been taken.
    fn fields<'a>(&'a self, input: &'a [u8]) -> Fields<'a>;

    /// Appends the same fields as text for users and scripts: a head with its status line and the empty line at its
    /// end, without folded lines; trailers as lines, possibly folded ([`http1::unfold`]).
    fn write_text(&self, input: &[u8], text: &mut Vec<u8>);
}

/// Identifies one request on one connection, from its start to its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u32);

/// The reason why a request was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There is no room; see [`Client::capacity`].
    #[error("no request can be started on this connection now")]
    Busy,
    /// The request is [`Request::Http1`], which this protocol cannot send.
    #[error("the request was written as HTTP/1.1, which this connection does not speak")]
    OnlyHttp1,
}

/// An action of the peer, or the end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interim response (1xx); the request stays open.
    Interim {
        /// The request.
        stream: StreamId,
        /// The status.
        status: u16,
    },
    /// The final response has begun and its head is complete; see [`Client::fields`].
    Head {
        /// The request.
        stream: StreamId,
        /// The status, 200 or more; 101 if the stream continues in another protocol.
        status: u16,
    },
    /// Part of a body, without its framing.
    Data {
        /// The request of the response.
        stream: StreamId,
        /// Range of the data in the last input of [`Client::handle_bytes`]; never empty.
        range: Range<usize>,
    },
    /// Part of the trailer fields, or all of them; see [`Client::fields`]. As text, the parts together are whole lines.
    Trailer {
        /// The request of the response.
        stream: StreamId,
    },
    /// The stream stays open, after an upgrade or with an endless response. [`Event::Complete`] or [`Event::Failed`]
    /// may end it at any time.
    Lives {
        /// The request that opened the stream.
        stream: StreamId,
    },
    /// A message on a stream that stays open.
    Message {
        /// The request that opened the stream.
        stream: StreamId,
        /// Range of the message in the last input of [`Client::handle_bytes`].
        range: Range<usize>,
    },
    /// The response is complete; the stream has ended.
    Complete {
        /// The request of the response.
        stream: StreamId,
        /// The `grpc-status` of the response; 0 (success) if there is none, and one more than [`GRPC_STATUS_MAX`] for
        /// all undefined ones.
        grpc_status: u8,
        /// True if the response was complete before the whole request had been sent; the rest of the request is not
        /// sent.
        is_early: bool,
    },
    /// The request will get no (complete) response; the stream has ended.
    Failed {
        /// The request that failed.
        stream: StreamId,
        /// The reason.
        error: Error,
        /// True if the request may be sent again on another connection without being counted twice: the peer has
        /// announced that it did not process it, or its head was not handed over completely. Never after
        /// [`Event::Head`].
        retryable: bool,
    },
    /// No more requests can be started on this connection. With an error, the connection as a whole has failed, and the
    /// requests in flight failed before this event; without one, it ends in the regular way after the requests in
    /// flight.
    Draining {
        /// The connection's own error, if any.
        error: Option<Error>,
    },
}

impl Event {
    /// The request named by the event, if any.
    pub fn stream(&self) -> Option<StreamId> {
        match *self {
            Self::Interim { stream, .. }
            | Self::Head { stream, .. }
            | Self::Data { stream, .. }
            | Self::Trailer { stream }
            | Self::Lives { stream }
            | Self::Message { stream, .. }
            | Self::Complete { stream, .. }
            | Self::Failed { stream, .. } => Some(stream),
            Self::Draining { .. } => None,
        }
    }
}
