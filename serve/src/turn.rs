//! The result of a connection's turn: what the thread does next.

use super::sent::SendResult;

/// Action of the thread after a connection's turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterTurn {
    /// Wait for the next event.
    Wait,
    /// Give another turn at this time, in nanoseconds of the thread's clock, or at an event.
    Sleep(u64),
    /// Give another turn soon: there is more to do, but other connections come first.
    Again,
    /// Switch to HTTP/2, which the client uses, and give another turn at once.
    Http2,
    /// Close the connection.
    Close,
}

/// Maximum number of steps per turn (up to 1 MiB received or 16 MiB sent), so that other connections get theirs.
pub(super) const STEPS_PER_TURN: usize = 16;

impl AfterTurn {
    /// End of the turn after bytes were handed to the kernel; `None` if the turn continues.
    pub(super) fn after_send(sent: SendResult) -> Option<Self> {
        match sent {
            SendResult::All => None,
            SendResult::Full => Some(Self::Wait),
            SendResult::Gone => Some(Self::Close),
        }
    }
}
