//! What the loop remembers from one wait to the next.

use onrush_proto::Nanos;

use super::wait::Spin;
use crate::backend::ConnId;

/// What the loop remembers from one wait to the next.
#[derive(Debug)]
pub(super) struct Turn {
    /// When the last turn of the loop began: until then the worker was not stalled.
    pub began_at: Nanos,
    /// When the last wait should have ended at the latest, such as when a request was due; [`Nanos::MAX`] from when that
    /// was looked at until the next wait.
    pub waited_until: Nanos,
    /// Connections whose connect or requests leave with the next wait.
    pub gathered: Vec<ConnId>,
    /// How many completions were handled in the last turn.
    pub handled: usize,
    /// When the last request or connect began, or a completion for one arrived.
    pub awaited_since: Nanos,
    /// Whether a response has ended with its connection: the kernel does not timestamp that.
    pub has_seen_unknown_end: bool,
    /// Busy-polling that has not been counted yet.
    pub spin: Option<Spin>,
}

impl Default for Turn {
    /// Before the first wait.
    fn default() -> Self {
        Self {
            began_at: Nanos::default(),
            waited_until: Nanos::MAX,
            gathered: Vec::new(),
            handled: 0,
            awaited_since: Nanos::default(),
            has_seen_unknown_end: false,
            spin: None,
        }
    }
}
