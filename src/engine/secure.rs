//! What the engine does for connections that speak TLS: the handshake, and the way of their bytes through a [`Link`](super::tls::Link).

use onrush_proto::{Client, Nanos};

use super::Engine;
use super::connection::{Slot, State};
use super::pump::LARGE_MIN;
use super::tls::LinkFailure;
use crate::backend::{Backend, ConnId};
use crate::stats::{Cause, Phase};

impl<B: Backend> Engine<B> {
    /// Begins the handshake of a connection that is there.
    pub(super) fn begin_handshake(&mut self, conn: ConnId, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        slot.handshake_at = at;
        let Some(link) = &mut slot.link else { return };
        match link.begin() {
            Ok(()) => self.flush(conn, at),
            Err(failure) => self.link_failed(conn, failure, at),
        }
    }

    /// Whether the handshake of a connection has begun and is not complete.
    pub(super) fn is_shaking_hands(&self, conn: ConnId) -> bool {
        let slot = &self.slots[conn.index()];
        matches!(slot.state, State::Connecting(_)) && slot.link.as_ref().is_some_and(|link| link.has_begun())
    }

    /// Takes received bytes, all but the first `skipped`, of a connection that speaks TLS.
    pub(super) fn received_sealed(&mut self, conn: ConnId, skipped: usize, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let Some(link) = &mut slot.link else { return };
        let (tally, script, bytes) = (&mut self.tally, &mut self.script, self.backend.received());
        let bytes = bytes.get_mut(skipped..).unwrap_or_default();
        let completed = tally.completed;
        // A server that speaks before it is asked is heard when there is somebody to hear it.
        let mut early = Vec::new();
        let (outcome, is_new) = match &mut slot.state {
            State::Open(live) => (link.receive(bytes, &mut |plain| live.receive(plain, at, tally, script)), false),
            State::Connecting(_) => (link.receive(bytes, &mut |plain| early.extend_from_slice(plain)), true),
            State::Tunnelling(_) => return self.received_from_proxy(conn, at),
            State::Parked | State::Waiting => return,
        };
        let (is_established, is_closed) = (link.is_established(), link.is_closed());
        if let Err(failure) = outcome {
            return self.link_failed(conn, failure, at);
        }
        if is_new && is_established {
            self.agreed(conn, at);
            if let Some(live) = self.slots[conn.index()].live().filter(|_| !early.is_empty()) {
                live.receive(&early, at, &mut self.tally, &mut self.script);
            }
        }
        self.forget_failures(conn, completed);
        if let Slot { state: State::Open(live), link: Some(link), .. } = &mut self.slots[conn.index()] {
            // Encrypted it is a little longer than this, of which the backend must not wait for more than comes.
            // Where no length is known, the end may be said in a few bytes that nothing follows.
            let rest = live.protocol.may_skip();
            if rest < u64::MAX && rest.saturating_sub(link.pending()) >= LARGE_MIN {
                self.backend.expect(conn, rest - link.pending());
            }
        }
        if is_closed {
            // Who leaves waits for the end of the transport: its port depends on that. The server may wait in turn, for
            // the answer to its farewell.
            if !self.is_leaving(conn) {
                return self.ended(conn, at);
            }
            self.take_leave(conn);
        }
        self.pump(conn, at);
        self.flush(conn, at);
    }

    /// The handshake is complete.
    fn agreed(&mut self, conn: ConnId, at: Nanos) {
        if let Some(link) = &self.slots[conn.index()].link {
            let (negotiated, resumed) = link.negotiated();
            self.tally.interval.handshakes.record(negotiated, resumed);
        }
        self.tally.shook_hands(at.since(self.slots[conn.index()].handshake_at));
        self.established(conn, at);
    }

    /// Hands encrypted bytes over, as far as the transport takes them.
    pub(super) fn flush(&mut self, conn: ConnId, at: Nanos) {
        while let Some(link) = &mut self.slots[conn.index()].link {
            match link.seal() {
                Ok(Some(sealed)) => {
                    let n = self.backend.send(conn, sealed);
                    let n = self.accepted(conn, n);
                    self.encrypted(n, B::GATHERS);
                }
                Ok(None) => return,
                Err(failure) => return self.link_failed(conn, failure, at),
            }
        }
    }

    /// Counts bytes of the protocol that were accepted encrypted, and may leave only with the next wait.
    pub(super) fn encrypted(&mut self, n: usize, is_gathered: bool) {
        if self.settings.tls.is_some() {
            self.tally.encrypted(n, is_gathered);
        }
    }

    /// Has a connection that speaks TLS say why it is closed from here, as far as that can be said at once.
    pub(super) fn take_leave(&mut self, conn: ConnId) {
        if let Some(link) = &mut self.slots[conn.index()].link {
            self.backend.send_last(conn, &link.last_words());
        }
    }

    /// TLS failed, in the handshake or behind it.
    pub(super) fn link_failed(&mut self, conn: ConnId, LinkFailure { cause, example }: LinkFailure, at: Nanos) {
        let cause = Cause::Tls(cause);
        self.take_leave(conn);
        match self.slots[conn.index()].live() {
            Some(live) => {
                live.transport_failed(cause, &example, at, &mut self.tally);
                self.replace(conn, at);
            }
            None => self.handshake_failed(conn, cause, example, at),
        }
    }

    /// A handshake did not come to its end.
    pub(super) fn handshake_failed(&mut self, conn: ConnId, cause: Cause, example: Vec<u8>, at: Nanos) {
        self.not_set_up(conn, Phase::Tls, cause, example, at);
    }
}
