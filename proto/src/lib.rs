//! Client protocols without input and output.
//!
//! A [`Client`] is one connection's protocol. It is given bytes, the end of the stream and the time, and gives back
//! bytes to send, events and the next time it wants to be called. It never reads a clock, never touches a socket,
//! knows neither TLS nor Lua, and contains no `unsafe`.
//!
//! # The driver's contract
//!
//! 1. Ask [`Client::capacity`], then [`Client::start`] that many requests at most.
//! 2. Send what [`Client::poll_transmit`] gives until it gives nothing. Every [`Transmit`] stays alive and unchanged
//!    until its last byte was accepted; report what was accepted with [`Client::handle_sent`], before you hand over
//!    bytes that came later: an answer to a request that is not known to be sent is taken for an early one.
//! 3. When bytes arrive, call [`Client::handle_bytes`]; it stops after the first bytes that made an event. Take all
//!    events with [`Client::poll_event`], then call it again with the rest, until nothing is left. Start requests
//!    only then: what was there before a request does not answer it.
//!    Where [`Client::may_skip`] is not zero, up to that many bytes may be thrown away unseen instead and
//!    reported with [`Client::handle_skipped`]; take the events afterwards too.
//! 4. At the end of the stream call [`Client::handle_eof`], at the time [`Client::poll_timeout`] named call
//!    [`Client::handle_timeout`]; after each, take the events.
//! 5. After any of these go back to step 2: input may have made output, with no request in flight too.
//! 6. After [`Event::Draining`] no request can be started. When the last open one has ended, close the connection.
//!
//! The same bytes give the same events however they are split, and every byte is taken exactly once.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
pub mod http1;
mod request;
mod time;

pub use error::{Error, Part};
pub use http1::Http1;
pub use request::{Parts, Request, Said};
pub use time::Nanos;

use std::ops::Range;
use std::rc::Rc;

/// One connection's protocol, seen from the client. The crate documentation is the driver's manual.
pub trait Client {
    /// How many requests can be started now. It may change after every input, and may be zero before
    /// [`Event::Draining`] says that it stays so.
    fn capacity(&self) -> usize;

    /// Starts a request; the protocol writes it in its own form. `is_last`: the driver will start no other on this
    /// connection, and a protocol that can tell the peer so does.
    ///
    /// # Errors
    ///
    /// When there is no room, which [`Client::capacity`] would have said, or when the request is in a form that this
    /// protocol cannot send.
    fn start(&mut self, request: &Request, is_last: bool) -> Result<StreamId, StartError>;

    /// Gives a request up: no further event will name it. A protocol that cannot give up one request alone drains.
    fn cancel(&mut self, stream: StreamId);

    /// Takes received bytes up to and with those that made the next event, and returns how many it took. Takes all
    /// of them if they make no event or the connection has failed.
    fn handle_bytes(&mut self, bytes: &[u8]) -> usize;

    /// Takes note of `n` received bytes that were not looked at; `n` is at most [`Client::may_skip`].
    fn handle_skipped(&mut self, n: u64);

    /// Takes note that the peer will send nothing more.
    fn handle_eof(&mut self);

    /// Takes note that the transport accepted `n` more bytes of what [`Client::poll_transmit`] gave.
    fn handle_sent(&mut self, n: usize);

    /// Takes note that the time named by [`Client::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Nanos);

    /// The next bytes to send, if any.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// The next event, if any.
    fn poll_event(&mut self) -> Option<Event>;

    /// When [`Client::handle_timeout`] is to be called, if ever.
    fn poll_timeout(&self) -> Option<Nanos>;

    /// The request to whose answer the next byte belongs, as far as that is known before it is read.
    fn reading(&self) -> Option<StreamId>;

    /// How many of the next bytes are body bytes of one response and make no event but a [`Event::Data`]; zero if the
    /// next byte has to be looked at, [`u64::MAX`] if the body lasts until the end of the stream.
    fn may_skip(&self) -> u64;

    /// The head (status line and fields) that the last [`Event::Head`] or [`Event::Interim`] spoke of. `input` is
    /// what the last [`Client::handle_bytes`] was given. Valid until the next input.
    fn head<'a>(&'a self, input: &'a [u8]) -> &'a [u8];
}

/// Names one request on one connection, from its start to its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u32);

/// Why a request was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There is no room; ask [`Client::capacity`] first.
    #[error("no request can be started on this connection now")]
    Busy,
    /// The request is [`Request::Http1`], and this is another protocol.
    #[error("the request was written as HTTP/1.1, which this connection does not speak")]
    OnlyHttp1,
}

/// Something the peer did, or the end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An answer before the answer (1xx); the request stays open.
    Interim {
        /// The request it belongs to.
        stream: StreamId,
        /// Its status.
        status: u16,
    },
    /// The final response has begun and its head is complete; see [`Client::head`].
    Head {
        /// The request it answers.
        stream: StreamId,
        /// Its status, 200 or more; 101 if the stream goes on in another protocol.
        status: u16,
    },
    /// Part of a body, already freed of its framing.
    Data {
        /// The request whose answer it is.
        stream: StreamId,
        /// Where it lies in what the last [`Client::handle_bytes`] was given; never empty.
        range: Range<usize>,
    },
    /// Part of the fields after a body, as they came: the parts one after the other are whole lines with their ends,
    /// without the empty one that ends them.
    Trailer {
        /// The request whose answer it is.
        stream: StreamId,
        /// Where it lies in what the last [`Client::handle_bytes`] was given; never empty.
        range: Range<usize>,
    },
    /// The stream lives on: after an upgrade, or with a response that never ends. It may last as long as it likes, and
    /// [`Event::Complete`] or [`Event::Failed`] ends it.
    Lives {
        /// The request that opened the stream.
        stream: StreamId,
    },
    /// A message on a stream that lives on.
    Message {
        /// The request that opened the stream.
        stream: StreamId,
        /// Where the message lies in what the last [`Client::handle_bytes`] was given.
        range: Range<usize>,
    },
    /// The response is complete; the stream is over.
    Complete {
        /// The request that was answered.
        stream: StreamId,
    },
    /// The request will get no (complete) answer; the stream is over.
    Failed {
        /// The request that failed.
        stream: StreamId,
        /// What went wrong.
        error: Error,
        /// Whether the peer has announced that it did not look at the request, so that it may be sent again on
        /// another connection without being counted twice.
        retryable: bool,
    },
    /// No request can be started on this connection any more. With an error, the connection as a whole has failed
    /// (the open requests have failed before this event); without one, it ends as the protocol foresees.
    Draining {
        /// What went wrong with the connection itself, if anything did.
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
            | Self::Trailer { stream, .. }
            | Self::Lives { stream }
            | Self::Message { stream, .. }
            | Self::Complete { stream }
            | Self::Failed { stream, .. } => Some(stream),
            Self::Draining { .. } => None,
        }
    }
}

/// Bytes to send.
#[derive(Clone, Debug)]
pub enum Transmit {
    /// Bytes that never change and are sent from where they lie.
    Shared(Rc<[u8]>, Range<usize>),
    /// Bytes made for this one occasion.
    Owned(Vec<u8>),
}

impl Transmit {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(bytes, range) => &bytes[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }
}
