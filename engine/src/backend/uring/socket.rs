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
    /// The last send.
    pub sending: Option<Sending>,
    /// Bytes to send after it.
    pub behind: Option<Box<Transmit>>,
    /// State of Nagle's algorithm.
    pub delay: Delay,
    /// The addresses that its local port was chosen for.
    pub pair: Option<PairId>,
    /// True if the kernel's table of sockets has it.
    pub in_table: bool,
    /// True while a connect, receive or discard is in flight, which keeps the socket open.
    pub is_busy: bool,
    /// The turn in which something was last queued.
    pub queued_in: u32,
    /// How it receives.
    pub mode: Mode,
    /// True if its armed receive takes large buffers.
    pub is_wide: bool,
    /// True if the last receive filled a small buffer, or more.
    pub needs_large: bool,
    /// How many of the next bytes belong to a large body.
    pub large: u64,
    /// How the next large bytes are taken.
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
    /// Can be discarded.
    #[default]
    Unwanted,
    /// Must be received.
    Wanted,
}

/// A receive that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was for the head of a response, or for all of it.
    Head,
    /// For a large body.
    Body,
}
