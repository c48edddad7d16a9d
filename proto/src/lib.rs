//! Client protocols without I/O.
//!
//! A [`Client`] is one connection's protocol. It takes bytes, the end of the stream and the time, and returns bytes to
//! send, events and when to wake it next. It never reads a clock, never touches a socket, knows neither TLS nor Lua,
//! and contains no `unsafe`.
//!
//! # The driver's contract
//!
//! 1. Call [`Client::capacity`], then [`Client::start`] at most that many requests.
//! 2. Send what [`Client::poll_transmit`] returns until it returns nothing. Every [`Transmit`] stays alive and
//!    unchanged until its last byte was accepted. Report accepted bytes with [`Client::handle_sent`] before you pass on
//!    bytes that arrived later: a response to a request that is not known to be sent counts as early.
//! 3. When bytes arrive, call [`Client::handle_bytes`]; it stops after the first bytes that cause an event. Take all
//!    events with [`Client::poll_event`], then call it again with the rest, until nothing is left. Start requests only
//!    then: bytes that were there before a request are no response to it. If [`Client::may_skip`] is not zero, up to
//!    that many bytes may be discarded unread instead; report them with [`Client::handle_skipped`] and take the events
//!    afterwards as well.
//! 4. At the end of the stream call [`Client::handle_eof`]; at the time that [`Client::poll_timeout`] returned call
//!    [`Client::handle_timeout`]. Take the events after each.
//! 5. After any of these go back to step 2: input may cause output, even with no request in flight.
//! 6. After [`Event::Draining`] no request can be started. When the last one in flight has ended, close the connection.
//!
//! Equal bytes give equal events, however they are split, and every byte is taken exactly once. Times passed in never
//! go back.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// The fuzzer's properties, which tests check too, name this crate from outside.
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

/// One connection's protocol on the client's side. See the crate documentation for how to drive it.
pub trait Client {
    /// How many requests can be started now. May change after every input, and may be zero for a while;
    /// [`Event::Draining`] means that it stays zero.
    fn capacity(&self) -> usize;

    /// Starts a request; the protocol encodes it in its own form. `is_last`: the driver will start no more requests on
    /// this connection; a protocol that can tell the peer does.
    ///
    /// # Errors
    ///
    /// If there is no room, see [`Client::capacity`], or if the request is in a form that this protocol cannot send.
    fn start(&mut self, request: &Request, is_last: bool) -> Result<StreamId, StartError>;

    /// Abandons a request: no further event will name it. A protocol that cannot abandon a single request drains.
    fn cancel(&mut self, stream: StreamId);

    /// Takes received bytes up to the end of the next event, and returns how many it took; all of them if they cause no
    /// event or the connection has failed. `now`: when they arrived.
    fn handle_bytes(&mut self, bytes: &[u8], now: Nanos) -> usize;

    /// Notes that `n` received bytes were discarded unread, at most [`Client::may_skip`].
    fn handle_skipped(&mut self, n: u64);

    /// Notes that the peer will send nothing more.
    fn handle_eof(&mut self);

    /// Notes that the transport accepted `n` more bytes from [`Client::poll_transmit`].
    fn handle_sent(&mut self, n: usize);

    /// Notes that the time returned by [`Client::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Nanos);

    /// The next bytes to send, if any. `now`: when they are handed over.
    fn poll_transmit(&mut self, now: Nanos) -> Option<Transmit>;

    /// The next event, if any.
    fn poll_event(&mut self) -> Option<Event>;

    /// When to call [`Client::handle_timeout`], if ever.
    fn poll_timeout(&self) -> Option<Nanos>;

    /// The request to whose response the next byte belongs, as far as that is known before it is read.
    fn reading(&self) -> Option<StreamId>;

    /// How many of the next bytes belong to the body of one response and cause no event but [`Event::Data`]; zero if
    /// the next byte must be read, [`u64::MAX`] if the body lasts until the end of the stream.
    fn may_skip(&self) -> u64;

    /// The fields of the last [`Event::Head`], [`Event::Interim`] or [`Event::Trailer`], as far as they are wanted.
    /// `input`: the last input of [`Client::handle_bytes`]. Valid until all of its events have been taken.
    fn fields<'a>(&'a self, input: &'a [u8]) -> Fields<'a>;

    /// Appends the fields as text for people and scripts: a head with its status line and the empty line at its end,
    /// without folded lines; trailers as lines, which may be folded ([`http1::unfold`]).
    fn write_text(&self, input: &[u8], text: &mut Vec<u8>);
}

/// Names one request on one connection, from its start to its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u32);

/// Why a request was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There is no room; see [`Client::capacity`].
    #[error("no request can be started on this connection now")]
    Busy,
    /// The request is [`Request::Http1`], and this is another protocol.
    #[error("the request was written as HTTP/1.1, which this connection does not speak")]
    OnlyHttp1,
}

/// Something the peer did, or the end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interim response (1xx); the request stays open.
    Interim {
        /// The request it belongs to.
        stream: StreamId,
        /// Its status.
        status: u16,
    },
    /// The final response has begun and its head is complete; see [`Client::fields`].
    Head {
        /// Its request.
        stream: StreamId,
        /// Its status, 200 or more; 101 if the stream continues in another protocol.
        status: u16,
    },
    /// Part of a body, without its framing.
    Data {
        /// The request of the response.
        stream: StreamId,
        /// Its range in the last input of [`Client::handle_bytes`]; never empty.
        range: Range<usize>,
    },
    /// Part of the trailer fields, or all of them; see [`Client::fields`]. As text, the parts together are whole lines.
    Trailer {
        /// The request of the response.
        stream: StreamId,
    },
    /// The stream stays open: after an upgrade, or with a response that never ends. It may last any time, until
    /// [`Event::Complete`] or [`Event::Failed`] ends it.
    Lives {
        /// The request that opened the stream.
        stream: StreamId,
    },
    /// A message on a stream that stays open.
    Message {
        /// The request that opened the stream.
        stream: StreamId,
        /// The range of the message in the last input of [`Client::handle_bytes`].
        range: Range<usize>,
    },
    /// The response is complete; the stream is over.
    Complete {
        /// The request whose response it is.
        stream: StreamId,
        /// The `grpc-status` at its end; 0, which means success, if there is none, and one more than
        /// [`GRPC_STATUS_MAX`] for any that has no meaning.
        grpc_status: u8,
        /// True if it came before the whole request had been sent; the rest of the request is omitted.
        is_early: bool,
    },
    /// The request will get no (complete) response; the stream is over.
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
    /// No more requests can be started on this connection. With an error, the connection as a whole has failed (the
    /// requests in flight have failed before this event); without one, it ends in the regular way.
    Draining {
        /// The connection's own error, if any.
        error: Option<Error>,
    },
}

impl Event {
    /// The request the event names, if it names one.
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
