//! A client connection in the protocol chosen by its first bytes.
//!
//! Every connection starts as HTTP/1.1. The HTTP/2 preface is not a valid HTTP/1.1 request, so the server looks for it
//! only when it refuses a request, at no cost to other clients.

use std::os::fd::BorrowedFd;

use rustix::event::epoll::EventFlags;

use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::resources::Resources;
use super::socket::ClientSocket;
use super::token::PollToken;
use super::turn::AfterTurn;

/// A client connection and its state.
#[expect(clippy::large_enum_variant, reason = "the small variant is the rare one")]
#[derive(Debug)]
pub(super) enum ServedConnection {
    /// HTTP/1.1, or protocol not yet known.
    Http1(Http1Connection),
    /// HTTP/2.
    Http2(Box<Http2Connection>),
}

impl ServedConnection {
    /// A new connection over a socket. `number`: its number on the thread, from 1. `token`: identifies it to the
    /// thread.
    pub(super) fn new(socket: ClientSocket, number: u64, token: PollToken) -> Self {
        Self::Http1(Http1Connection::new(socket, number, token))
    }

    /// The socket, for polling.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Http1(http1) => http1.socket.fd(),
            Self::Http2(http2) => http2.socket.fd(),
        }
    }

    /// Handles an event, then makes as much progress as possible.
    pub(super) fn handle_event(&mut self, flags: EventFlags, resources: &mut Resources) -> AfterTurn {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return AfterTurn::Close;
        }
        match self {
            Self::Http1(http1) => http1.socket.record_event(flags),
            Self::Http2(http2) => http2.socket.record_event(flags),
        }
        self.take_turn(resources)
    }

    /// Wakes one exchange of an HTTP/2 connection, or all of them, then makes as much progress as possible.
    pub(super) fn handle_wakeup(&mut self, exchange: Option<usize>, resources: &mut Resources) -> AfterTurn {
        if let Self::Http2(http2) = self {
            http2.wake_exchange(exchange);
        }
        self.take_turn(resources)
    }

    /// Makes as much progress as possible without blocking. Returns what the thread should do next.
    pub(super) fn take_turn(&mut self, resources: &mut Resources) -> AfterTurn {
        match self {
            Self::Http1(http1) => http1.take_turn(resources),
            Self::Http2(http2) => http2.take_turn(resources),
        }
    }

    /// Switches the connection to HTTP/2, whose preface has been received; `None` if the library rejects it.
    pub(super) fn into_http2(self) -> Option<Self> {
        match self {
            Self::Http1(Http1Connection { socket, input, numbers, token, .. }) => {
                Http2Connection::new(socket, input, numbers.connection, token).map(|http2| Self::Http2(Box::new(http2)))
            }
            http2 @ Self::Http2(_) => Some(http2),
        }
    }
}
