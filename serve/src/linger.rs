//! The end of a connection that still receives: sends nothing and discards input.

use std::time::Duration;

use super::resources::Resources;
use super::socket::ClientSocket;
use super::turn::AfterTurn;

/// A connection that sends nothing more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linger {
    /// Time at which to close, in nanoseconds of the thread's clock; `None`: when the client does.
    until_ns: Option<u64>,
}

/// Time that a connection with unread input stays half open before closing, so that the client can read the response.
const LINGER: Duration = Duration::from_secs(1);

impl Linger {
    /// Stays half open until the client closes.
    pub(super) const FOREVER: Self = Self { until_ns: None };

    /// Shuts down the sending side after the last byte, if unread input may be left. Otherwise returns `None`: the
    /// connection can be closed at once.
    pub(super) fn after_last_byte(socket: &mut ClientSocket, resources: &Resources) -> Option<Self> {
        if !socket.readable {
            socket.announce_end();
            return None;
        }
        // Closing with unread input makes the kernel send a RST, which may overtake the response.
        socket.shut_down_sending();
        Some(Self { until_ns: Some(resources.now_ns() + LINGER.as_nanos() as u64) })
    }

    /// Discards input. Returns what to do after the turn; `None` if there may be more input to discard first.
    pub(super) fn discard_input(self, socket: &mut ClientSocket, resources: &mut Resources) -> Option<AfterTurn> {
        resources.input.clear();
        let is_good = !socket.readable || socket.receive_input(&mut resources.input);
        if !is_good || socket.ended || self.until_ns.is_some_and(|until_ns| resources.now_ns() >= until_ns) {
            return Some(AfterTurn::Close);
        }
        match self.until_ns {
            _ if socket.readable => None,
            Some(until_ns) => Some(AfterTurn::Sleep(until_ns)),
            None => Some(AfterTurn::Wait),
        }
    }
}
