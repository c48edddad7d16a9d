//! What connections send: from the protocol, through TLS if it is used, to the backend. A connection sends at most once
//! in a turn of the loop: where sends leave with the next wait, everything that it has by then.

use onrush_proto::{Client, Nanos};

use super::{Context, Roster};
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::slot::State;
use crate::timers::Timer;
use crate::tls::LinkFailure;

impl<B: Backend> Roster<B> {
    /// Has a connection send what it has to send, and leaves it if it has ended.
    pub fn settle(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        if slot.live().is_some_and(|live| live.draining) && self.wind_up(conn, cx, at) {
            return;
        }
        let slot = &mut self.slots[conn.index()];
        if !B::GATHERS {
            self.send(conn, cx, at);
        } else if !slot.is_gathered {
            slot.is_gathered = true;
            self.gathered.push(conn);
        }
    }

    /// Leaves a connection that takes no more requests, once the last one has ended. Until then another may take its
    /// place. Returns whether it was left.
    #[cold]
    fn wind_up(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) -> bool {
        let Some(live) = self.slots[conn.index()].live() else { return false };
        if live.open.is_empty() {
            if self.may_server_close(conn) {
                self.send(conn, cx, at);
            }
            if self.slots[conn.index()].live().is_some() {
                self.leave(conn, cx, at);
            }
            return true;
        }
        if std::mem::take(&mut live.goes_away) {
            self.open_successor(conn, cx.books, at);
        }
        self.relieve(conn);
        false
    }

    /// Sends what the gathered connections have to send, and stamps what leaves with the next wait.
    pub fn stamp(&mut self, cx: &mut Context<'_>, at: Nanos) {
        if !self.gathered.is_empty() {
            let mut gathered = std::mem::take(&mut self.gathered);
            gathered.iter().for_each(|&conn| self.send(conn, cx, at));
            let now = self.backend.now();
            for conn in gathered.drain(..) {
                let slot = &mut self.slots[conn.index()];
                slot.is_gathered = false;
                match &mut slot.state {
                    State::Open(live) => live.stamp(now, &mut cx.books.tally),
                    State::Connecting(since) => *since = now,
                    State::Tunnelling(_) | State::Parked | State::Queued | State::Waiting => {}
                }
            }
            self.gathered = gathered;
        }
        cx.books.tally.hand_over();
    }

    /// Sends what a connection has to send, and sets its protocol's timer.
    fn send(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        if let Err(failure) = self.transmit(conn, cx.books, at) {
            return self.link_failed(conn, failure, cx, at);
        }
        let Some(live) = self.slots[conn.index()].live() else { return };
        // A timer that fires too early finds nothing to do and is set again; one that fires too late would be a bug.
        if let Some(wake_at) = live.protocol.poll_timeout()
            && live.wake_at.is_none_or(|set| wake_at < set)
        {
            live.wake_at = Some(wake_at);
            cx.timers.set(wake_at, Timer::Wake(conn));
        }
    }

    /// Hands over what the protocol and TLS have to send, as far as the transport accepts it.
    ///
    /// # Errors
    ///
    /// If no more can be encrypted: the connection is useless then.
    fn transmit(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> Result<(), LinkFailure> {
        let slot = &mut self.slots[conn.index()];
        if slot.link.is_some() && slot.live().is_some_and(|live| live.unsent > 0) {
            // The rest of what the protocol sent before. Once that is accepted, more may follow.
            self.seal(conn, books)?;
        }
        while let Some(live) = self.slots[conn.index()].live()
            && live.unsent == 0
            && live.send_error.is_none()
            && live.protocol.may_have_output()
            && let Some(transmit) = live.protocol.poll_transmit(at)
        {
            live.unsent = transmit.bytes().len();
            if let Some(transcript) = &mut books.tally.transcript {
                transcript.send(&live.protocol.readable(transmit.bytes()), !live.open.is_empty(), at);
            }
            if let Some(link) = &mut self.slots[conn.index()].link {
                link.send(transmit);
                self.seal(conn, books)?;
            } else {
                let n = self.backend.send(conn, transmit);
                self.accepted(conn, n);
            }
        }
        // TLS has something to say of its own.
        if self.slots[conn.index()].link.is_some() { self.seal(conn, books) } else { Ok(()) }
    }

    /// Hands over encrypted bytes, as far as the transport accepts them.
    ///
    /// # Errors
    ///
    /// If no more can be encrypted: the connection is useless then.
    pub(super) fn seal(&mut self, conn: ConnId, books: &mut Books) -> Result<(), LinkFailure> {
        while let Some(link) = &mut self.slots[conn.index()].link
            && let Some(encrypted) = link.seal()?
        {
            let n = self.backend.send(conn, encrypted);
            let n = self.accepted(conn, n);
            self.encrypted(n, B::GATHERS, books);
        }
        Ok(())
    }

    /// The transport accepted `n` more bytes. Returns how many bytes of the protocol those are.
    pub(super) fn accepted(&mut self, conn: ConnId, n: usize) -> usize {
        let slot = &mut self.slots[conn.index()];
        let plain = slot.link.as_mut().map_or(n, |link| link.accepted(n));
        let Some(live) = slot.live() else {
            slot.accepted_before(n);
            return 0;
        };
        live.unsent -= plain;
        live.protocol.handle_sent(plain);
        plain
    }

    /// Counts bytes of the protocol that were accepted encrypted; gathered ones leave with the next wait.
    pub(super) fn encrypted(&self, n: usize, is_gathered: bool, books: &mut Books) {
        if self.config.tls.is_some() {
            books.tally.encrypted(n, is_gathered);
        }
    }
}
