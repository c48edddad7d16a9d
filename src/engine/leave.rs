//! How a connection ends that has had as many requests as it may have (`--requests-per-connection`).
//!
//! Its last request says so, and the slot waits for the server to close before it opens the next connection: whoever
//! closes first keeps the port for a minute, and a client has few of them. The wait is part of no latency.

use onrush_proto::Nanos;

use super::{Engine, ScriptFailure};
use crate::backend::{Backend, ConnId};
use crate::plan::PerConnection;
use crate::plan::limits::CLOSE_PATIENCE_NS;

impl<B: Backend> Engine<B> {
    /// Makes the last request of a batch the last one of its connection, which has no room for another batch of that
    /// size. Returns whether the batch can be started: one that does not fit waits for another connection.
    pub(super) fn prepare_last(&mut self, conn: ConnId) -> bool {
        let Some(live) = self.slots[conn.index()].live() else { return false };
        live.draining = true;
        if live.left < self.batch.len() as u64 {
            live.leaves_at_once = true;
            self.batch_waits = true;
            self.refuse_if_too_long();
            return false;
        }
        if self.script.wants.request {
            self.spare = None;
        }
        self.swap_last();
        true
    }

    /// Puts the last request of the batch aside and in its place what was put aside before: first the same request as the
    /// last one on its connection, then again the usual one.
    pub(super) fn swap_last(&mut self) {
        if let Some(last) = self.batch.last_mut() {
            let closing = self.spare.take().unwrap_or_else(|| last.closing());
            self.spare = Some(std::mem::replace(last, closing));
        }
    }

    /// Ends the run if the batch that waits fits on no connection.
    fn refuse_if_too_long(&mut self) {
        let length = self.batch.len() as u64;
        if let Some(limit) = self.settings.requests_per_connection.filter(|limit| limit.most < length) {
            self.script.fail(ScriptFailure::Raised(too_long("request()", length, limit)));
        }
    }

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
            self.tally.interval.counters.closed_first += 1;
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
