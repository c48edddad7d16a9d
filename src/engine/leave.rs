//! How a connection ends that has had as many requests as it may have (`--requests-per-connection`).
//!
//! Its last request says so, and the slot waits for the server to close before it opens the next connection: whoever
//! closes first keeps the port for a minute, and a client has few of them. The wait is part of no latency.

use onrush_proto::Nanos;

use super::Engine;
use crate::backend::{Backend, ConnId};
use crate::plan::PerConnection;
use crate::plan::limits::CLOSE_PATIENCE_NS;

impl<B: Backend> Engine<B> {
    /// Leaves a connection that takes no further request and has none open. Where the number of its requests is limited
    /// the server may close first.
    pub(super) fn leave(&mut self, conn: ConnId, at: Nanos) {
        let is_limited = self.settings.requests_per_connection.is_some();
        let Some(live) = self.slots[conn.index()].live().filter(|live| is_limited && !live.troubled) else {
            self.take_leave(conn);
            return self.replace(conn, at);
        };
        let since = *live.leaving_since.get_or_insert(at);
        if live.leaves_at_once || at.since(since) >= CLOSE_PATIENCE_NS {
            self.books.tally.interval.counters.closed_first += 1;
            self.take_leave(conn);
            self.replace(conn, at);
        }
    }

    /// Whether all that a connection still waits for is that the server closes it.
    pub(super) fn is_leaving(&mut self, conn: ConnId) -> bool {
        self.settings.requests_per_connection.is_some()
            && self.slots[conn.index()]
                .live()
                .is_some_and(|live| live.draining && live.open.is_empty() && !live.troubled)
    }
}

/// What to say of a script that sends more requests at once than a connection may have.
pub fn too_long(function: &str, length: u64, PerConnection { most, option }: PerConnection) -> String {
    let option = option.name();
    let (limit, way_out) = match most {
        1 => ("1 request".to_owned(), "leave that out"),
        _ => (format!("{most} requests"), "raise that"),
    };
    format!(
        "{function} of the script returned a batch of {length} requests, which go out together on one connection, but \
         with {option} a connection has at most {limit}: {way_out}, or return fewer"
    )
}
