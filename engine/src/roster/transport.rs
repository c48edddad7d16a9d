//! Sending: from the protocol, through TLS if used, to the backend. A connection sends at most once per turn of the
//! loop: if sends leave with the next wait, everything it has by then.

use onrush_proto::{Client, Nanos};

use super::{Context, Roster};
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::slot::{Slot, State};
use crate::timers::Timer;
use crate::tls::LinkFailure;

impl<B: Backend> Roster<B> {
    /// Sends a connection's output, and leaves the connection if it has ended.
    pub fn send_and_wind_up(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        if slot.open_connection().is_some_and(|live| live.draining) && self.leave_if_finished(conn, cx, at) {
            return;
        }
        let slot = &mut self.slots[conn.index()];
        if !B::GATHERS {
            self.send_output(conn, cx, at);
        } else if !slot.is_gathered {
            slot.is_gathered = true;
            self.gathered.push(conn);
        }
    }

    /// Leaves a connection that takes no more requests, once the last one has ended. Until then another may replace it.
    /// Returns true if it was left.
    #[cold]
    fn leave_if_finished(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) -> bool {
        // This precedes leaving, which forgets whether the connection has had a response.
        self.update_successor(conn);
        let Some(live) = self.slots[conn.index()].open_connection() else { return false };
        if live.open.is_empty() {
            if self.may_server_close(conn) {
                self.send_output(conn, cx, at);
            }
            if self.slots[conn.index()].open_connection().is_some() {
                self.leave_connection(conn, cx, at);
            }
            return true;
        }
        if std::mem::take(&mut live.goes_away) {
            self.open_successor(conn, cx, at);
            self.update_successor(conn);
        }
        false
    }

    /// Sends the output of the gathered connections, and stamps the requests that leave with the next wait.
    pub fn send_and_stamp_gathered(&mut self, cx: &mut Context<'_>, at: Nanos) {
        if self.gathered.is_empty() {
            return cx.books.tally.count_gathered_as_sent();
        }
        self.send_gathered(cx, at);
        self.stamp_gathered(cx);
    }

    /// Sends the output of the gathered connections. It leaves with the next wait and must be stamped before.
    pub fn send_gathered(&mut self, cx: &mut Context<'_>, at: Nanos) {
        let gathered = std::mem::take(&mut self.gathered);
        gathered.iter().for_each(|&conn| self.send_output(conn, cx, at));
        self.gathered = gathered;
    }

    /// Stamps the requests that leave with the next wait.
    pub fn stamp_gathered(&mut self, cx: &mut Context<'_>) {
        let now = self.backend.now();
        for conn in self.gathered.drain(..) {
            let slot = &mut self.slots[conn.index()];
            slot.is_gathered = false;
            match &mut slot.state {
                State::Open(live) => live.stamp_gathered(now, &mut cx.books.tally),
                State::Connecting(since) => *since = now,
                State::Tunnelling(_) | State::Parked | State::Queued | State::Waiting => {}
            }
        }
        cx.books.tally.count_gathered_as_sent();
    }

    /// Sends a connection's output and sets its protocol's timer.
    fn send_output(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        if let Err(failure) = self.transmit_output(conn, cx.books, at) {
            return self.on_link_failed(conn, failure, cx, at);
        }
        let Some(live) = self.slots[conn.index()].open_connection() else { return };
        // A timer that fires too early has no effect and is set again; one that fires too late would be a bug.
        if let Some(wake_at) = live.protocol.poll_timeout()
            && live.wake_at.is_none_or(|set| wake_at < set)
        {
            live.wake_at = Some(wake_at);
            cx.timers.set_timer(wake_at, Timer::Wake(conn));
        }
    }

    /// Hands over the output of protocol and TLS while the transport accepts it.
    ///
    /// # Errors
    ///
    /// If no more can be encrypted: the connection is useless then.
    fn transmit_output(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> Result<(), LinkFailure> {
        let Self { slots, backend, .. } = self;
        let slot = &mut slots[conn.index()];
        if slot.link.is_some() && slot.open_connection().is_some_and(|live| live.unsent > 0) {
            // The rest of the protocol's earlier output. Once it is accepted, more may follow.
            seal(backend, conn, slot, books)?;
        }
        // TLS's own messages, such as the end of its handshake, leave along with the output.
        while let State::Open(live) = &mut slot.state
            && live.unsent == 0
            && live.send_error.is_none()
            && (live.protocol.may_have_output() || live.start_rest_of_batch(at, &mut books.tally))
            && let Some(transmit) = live.protocol.poll_transmit(at)
        {
            live.unsent = transmit.len();
            if let Some(transcript) = &mut books.tally.transcript {
                live.transcribe_sent(&transmit.bytes(), at, transcript);
            }
            if let Some(link) = &mut slot.link {
                link.send(transmit);
                seal(backend, conn, slot, books)?;
            } else {
                let n = backend.send(conn, transmit);
                live.on_accepted(n);
            }
        }
        // TLS may have more output.
        if slot.link.is_some() { seal(backend, conn, slot, books) } else { Ok(()) }
    }

    /// Hands over encrypted bytes while the transport accepts them.
    ///
    /// # Errors
    ///
    /// If no more can be encrypted: the connection is useless then.
    pub(super) fn seal(&mut self, conn: ConnId, books: &mut Books) -> Result<(), LinkFailure> {
        seal(&mut self.backend, conn, &mut self.slots[conn.index()], books)
    }
}

/// Hands over a connection's encrypted bytes while the transport accepts them; gathered bytes leave with the next wait.
///
/// # Errors
///
/// If no more can be encrypted: the connection is useless then.
fn seal<B: Backend>(backend: &mut B, conn: ConnId, slot: &mut Slot, books: &mut Books) -> Result<(), LinkFailure> {
    while let Some(link) = &mut slot.link
        && let Some(encrypted) = link.seal()?
    {
        let n = backend.send(conn, encrypted);
        books.tally.count_encrypted(slot.on_accepted(n), B::GATHERS);
    }
    Ok(())
}
