//! The result of a connection's turn: the thread's next action.

use super::sent::SendResult;

/// The worker's action after a turn.
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

/// Number of steps per turn (1 MiB received or up to 16 MiB sent) before other connections get theirs.
pub(super) const STEPS_PER_TURN: usize = 16;

impl AfterTurn {
    /// The result of a step that handed bytes to the kernel, if the step ends the turn.
    pub(super) fn after_send(sent: SendResult) -> Option<Self> {
        match sent {
            SendResult::All => None,
            SendResult::Full => Some(Self::Wait),
            SendResult::Gone => Some(Self::Close),
        }
    }
}
