//! The result of a connection's turn: its thread's next action for it.

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
    /// Continue as HTTP/2, which the client speaks, and give another turn at once.
    Http2,
    /// Close the connection.
    Close,
}

/// The number of steps (1 MiB received or up to 16 MiB sent) after which other connections come first.
pub(super) const STEPS_PER_TURN: usize = 16;

impl AfterTurn {
    /// The result of a step that handed bytes to the kernel, if it ends the turn.
    pub(super) fn after(sent: SendResult) -> Option<Self> {
        match sent {
            SendResult::All => None,
            SendResult::Full => Some(Self::Wait),
            SendResult::Gone => Some(Self::Close),
        }
    }
}
