//! One client connection, in the protocol that its first bytes chose.
//!
//! Every connection begins as HTTP/1.1. The preface of HTTP/2 is no request of that, so it is only looked for where a
//! request is refused, and costs other clients nothing.

use std::os::fd::BorrowedFd;

use rustix::event::epoll::EventFlags;

use super::http1::Http1;
use super::http2::Http2;
use super::resources::Resources;
use super::socket::Socket;
use super::token::Token;
use super::turn::Turn;

/// A client connection and its state.
#[expect(clippy::large_enum_variant, reason = "the small variant is the rare one")]
#[derive(Debug)]
pub(super) enum Connection {
    /// It speaks HTTP/1.1, or has not said anything yet.
    Http1(Http1),
    /// It speaks HTTP/2.
    Http2(Box<Http2>),
}

impl Connection {
    /// A connection over a socket; `number` counts the connections of its thread, from 1, and `token` is where
    /// the thread finds it.
    pub(super) fn new(socket: Socket, number: u64, token: Token) -> Self {
        Self::Http1(Http1::new(socket, number, token))
    }

    /// The socket, to be polled.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Http1(http1) => http1.socket.fd(),
            Self::Http2(http2) => http2.socket.fd(),
        }
    }

    /// Handles an event, then does everything that can be done now.
    pub(super) fn handle_event(&mut self, flags: EventFlags, resources: &mut Resources) -> Turn {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return Turn::Close;
        }
        match self {
            Self::Http1(http1) => http1.socket.note(flags),
            Self::Http2(http2) => http2.socket.note(flags),
        }
        self.turn(resources)
    }

    /// Answers a call for one of its exchanges, or for all of them, then does everything that can be done now.
    pub(super) fn answer(&mut self, exchange: Option<usize>, resources: &mut Resources) -> Turn {
        if let Self::Http2(http2) = self {
            http2.call(exchange);
        }
        self.turn(resources)
    }

    /// Does everything that can be done now.
    pub(super) fn turn(&mut self, resources: &mut Resources) -> Turn {
        match self {
            Self::Http1(http1) => http1.turn(resources),
            Self::Http2(http2) => http2.turn(resources),
        }
    }

    /// Continues the connection in HTTP/2; `None` if it cannot be used any more.
    pub(super) fn into_http2(self) -> Option<Self> {
        match self {
            Self::Http1(Http1 { socket, input, numbers, token, .. }) => {
                Http2::new(socket, input, numbers.connection, token).map(|http2| Self::Http2(Box::new(http2)))
            }
            http2 @ Self::Http2(_) => Some(http2),
        }
    }
}
