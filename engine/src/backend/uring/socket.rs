//! One connection's kernel-side state.

use std::os::fd::OwnedFd;

use onrush_proto::Transmit;

use super::sending::Sending;
use crate::backend::ports::PairId;
use crate::backend::socket::{Delay, Threshold};

/// One connection.
#[derive(Default)]
pub struct Socket {
    /// The socket; `None`: no connection.
    pub fd: Option<OwnedFd>,
    /// Distinguishes completions of this connection from those of an earlier one with the same ID.
    pub generation: u32,
    /// The last send.
    pub sending: Option<Sending>,
    /// Bytes to send after the last send.
    pub behind: Option<Box<Transmit>>,
    /// State of Nagle's algorithm.
    pub delay: Delay,
    /// The addresses for which the local port was chosen; `None`: the kernel chose it.
    pub pair: Option<PairId>,
    /// True if the socket is in the kernel's socket table.
    pub in_table: bool,
    /// True while a connect, receive or discard, which keeps the socket open, is in flight.
    pub is_busy: bool,
    /// The turn of the last queued operation.
    pub queued_in: u32,
    /// The receive mode.
    pub mode: Mode,
    /// True if the armed receive takes large buffers.
    pub is_wide: bool,
    /// True if the last receive filled at least a small buffer.
    pub needs_large: bool,
    /// Number of following bytes that belong to a large body.
    pub large: u64,
    /// Treatment of the following large-body bytes.
    pub what: Large,
    /// Number of bytes that make the socket readable.
    pub threshold: Threshold,
}

/// Receive modes of a connection.
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

/// Treatment of the bytes of a large body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Large {
    /// The bytes can be discarded.
    #[default]
    Unwanted,
    /// The bytes must be received.
    Wanted,
}

/// The purpose of a receive that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The head of a response, or all of it.
    Head,
    /// A large body.
    Body,
}
