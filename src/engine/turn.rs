//! What the loop remembers from one wait to the next.

use onrush_proto::Nanos;

use super::wait::Spin;
use crate::backend::ConnId;

/// What the loop remembers from one wait to the next.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// When the last turn of the loop began: up to then the worker did not stand still.
    pub began_at: Nanos,
    /// Connections that leave, or whose requests leave, with the next wait.
    pub gathered: Vec<ConnId>,
    /// How many completions were handled in the last turn.
    pub handled: usize,
    /// When the last request or connect began, or something happened to one.
    pub awaited_since: Nanos,
    /// Whether an answer has ended with its connection, of which nobody knows when exactly that was.
    pub has_seen_unknown_end: bool,
    /// Busy-polling that has not been counted yet.
    pub spin: Option<Spin>,
}
