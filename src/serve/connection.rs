//! One client connection, in the protocol that its first bytes chose.
//!
//! Every connection begins as HTTP/1.1. The preface of HTTP/2 is no request of that, so it is only looked for where a
//! request is refused, and costs other clients nothing.

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
    /// It speaks HTTP/1.1, or has not said anything yet.
    Http1(Http1Connection),
    /// It speaks HTTP/2.
    Http2(Box<Http2Connection>),
}

impl ServedConnection {
    /// A connection over a socket; `number` counts the connections of its thread, from 1, and `token` is where
    /// the thread finds it.
    pub(super) fn new(socket: ClientSocket, number: u64, token: PollToken) -> Self {
        Self::Http1(Http1Connection::new(socket, number, token))
    }

    /// The socket, to be polled.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Http1(http1) => http1.socket.fd(),
            Self::Http2(http2) => http2.socket.fd(),
        }
    }

    /// Handles an event, then does everything that can be done now.
    pub(super) fn handle_event(&mut self, flags: EventFlags, resources: &mut Resources) -> AfterTurn {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return AfterTurn::Close;
        }
        match self {
            Self::Http1(http1) => http1.socket.note(flags),
            Self::Http2(http2) => http2.socket.note(flags),
        }
        self.turn(resources)
    }

    /// Answers a call for one of its exchanges, or for all of them, then does everything that can be done now.
    pub(super) fn answer(&mut self, exchange: Option<usize>, resources: &mut Resources) -> AfterTurn {
        if let Self::Http2(http2) = self {
            http2.call(exchange);
        }
        self.turn(resources)
    }

    /// Does everything that can be done now.
    pub(super) fn turn(&mut self, resources: &mut Resources) -> AfterTurn {
        match self {
            Self::Http1(http1) => http1.turn(resources),
            Self::Http2(http2) => http2.turn(resources),
        }
    }

    /// Continues the connection in HTTP/2; `None` if it cannot be used any more.
    pub(super) fn into_http2(self) -> Option<Self> {
        match self {
            Self::Http1(Http1Connection { socket, input, numbers, token, .. }) => {
                Http2Connection::new(socket, input, numbers.connection, token).map(|http2| Self::Http2(Box::new(http2)))
            }
            http2 @ Self::Http2(_) => Some(http2),
        }
    }
}
