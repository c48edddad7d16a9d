//! One connection's state with the kernel.

use std::os::fd::OwnedFd;

use onrush_proto::Transmit;

use super::sending::Sending;
use crate::backend::ports::PairId;
use crate::backend::socket::{Delay, Threshold};

/// One connection.
#[derive(Default)]
pub struct Socket {
    /// `None` while there is no connection.
    pub fd: Option<OwnedFd>,
    /// Tells completions of this connection from those of an earlier one with the same number.
    pub generation: u32,
    /// What was sent last.
    pub sending: Option<Sending>,
    /// What is to be sent after it.
    pub behind: Option<Box<Transmit>>,
    /// Whether its sends may wait for acknowledgements.
    pub delay: Delay,
    /// The addresses that its local port was chosen for.
    pub pair: Option<PairId>,
    /// Whether it is in the kernel's table of sockets.
    pub in_table: bool,
    /// Whether a connect, receive or discard is in flight, which keeps the socket open.
    pub is_busy: bool,
    /// The turn in which something was last queued.
    pub queued_in: u32,
    /// How it receives.
    pub mode: Mode,
    /// Whether its armed receive takes large buffers.
    pub is_wide: bool,
    /// Whether the last receive filled a small buffer, or more.
    pub needs_large: bool,
    /// How many of the next bytes belong to a large body.
    pub large: u64,
    /// What those are.
    pub what: Large,
    /// How many bytes make it readable.
    pub threshold: Threshold,
}

/// How a connection receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One receive stays armed.
    Small,
    /// The armed receive is being cancelled.
    Leaving,
    /// One receive or discard at a time.
    #[default]
    Large,
}

/// The bytes of a large body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Large {
    /// They can be discarded.
    #[default]
    Unwanted,
    /// They must be received.
    Wanted,
}

/// A receive that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was for the head of a response, or for all of it.
    Head,
    /// It was for a large body.
    Body,
}
