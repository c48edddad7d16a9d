//! The way through a proxy: before anything else, a new connection asks it for a tunnel to the target, and the state of
//! its slot is a [`Tunnel`] until the proxy has answered. What the proxy sends behind that is the target's.

use onrush_proto::{Nanos, Request, http1};

use super::Engine;
use super::connection::{Slot, State};
use crate::backend::{Backend, ConnId};
use crate::stats::{Cause, Phase, ProxyFailure};

/// How much of what a proxy sent is kept as an example, in bytes.
const EXAMPLE_BYTES: usize = 60;

/// One connection's tunnel, until it is open.
pub struct Tunnel {
    /// When the connection was asked for.
    pub since: Nanos,
    http: http1::Tunnel,
}

impl Tunnel {
    /// A connection asked for then that asks with `connect`.
    pub fn new(since: Nanos, connect: &Request) -> Self {
        Self { since, http: http1::Tunnel::new(connect) }
    }

    /// Takes received bytes. When the way is open, returns how many of them belong to the proxy's answer.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProxyFailure> {
        match self.http.handle_bytes(bytes).map_err(ProxyFailure::Answer)? {
            None => Ok(None),
            Some(_) if !self.http.is_sent() => Err(ProxyFailure::Early),
            Some((200..=299, used)) => Ok(Some(used)),
            Some((status, _)) => Err(ProxyFailure::Status(status)),
        }
    }
}

impl Slot {
    /// The proxy's transport accepted so many more bytes, if they were for the proxy.
    #[cold]
    pub fn accepted_by_proxy(&mut self, n: usize) {
        if let State::Tunnelling(tunnel) = &mut self.state {
            tunnel.http.handle_sent(n);
        }
    }
}

impl<B: Backend> Engine<B> {
    /// The transport is there: with a tunnel the proxy is asked for it first.
    pub(super) fn connected(&mut self, conn: ConnId, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let (Some(connect), State::Connecting(since)) = (&self.tunnel, &slot.state) else {
            return self.reached(conn, at);
        };
        let mut tunnel = Box::new(Tunnel::new(*since, connect));
        if let Some(transmit) = tunnel.http.poll_transmit() {
            tunnel.http.handle_sent(self.backend.send(conn, transmit));
        }
        self.enter(conn, State::Tunnelling(tunnel), at);
    }

    /// There is a way to the target; with TLS the handshake follows.
    fn reached(&mut self, conn: ConnId, at: Nanos) {
        match self.slots[conn.index()].link {
            Some(_) => self.begin_handshake(conn, at),
            None => self.established(conn, at),
        }
    }

    /// Takes received bytes of a connection whose tunnel is not open yet.
    pub(super) fn received_from_proxy(&mut self, conn: ConnId, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let State::Tunnelling(tunnel) = &mut slot.state else { return };
        let bytes = self.backend.received();
        match tunnel.receive(bytes) {
            Ok(None) => {}
            Ok(Some(used)) => {
                let is_all = used == bytes.len();
                let since = tunnel.since;
                self.enter(conn, State::Connecting(since), at);
                self.reached(conn, at);
                if !is_all {
                    self.received_sealed(conn, used, at);
                }
            }
            Err(failure) => {
                let is_unreadable = matches!(failure, ProxyFailure::Answer(_));
                let example = if is_unreadable { &bytes[..bytes.len().min(EXAMPLE_BYTES)] } else { &[] };
                let example = example.to_vec();
                self.not_set_up(conn, Phase::Connect, Cause::Proxy(failure), example, at);
            }
        }
    }

    /// A tunnel was not opened.
    pub(super) fn tunnel_failed(&mut self, conn: ConnId, cause: Cause, at: Nanos) {
        self.not_set_up(conn, Phase::Connect, cause, Vec::new(), at);
    }

    /// Whether a connection waits for its tunnel.
    pub(super) fn is_tunnelling(&self, conn: ConnId) -> bool {
        matches!(self.slots[conn.index()].state, State::Tunnelling(_))
    }

    /// A connection was accepted, but what has to come before the first request did not come to its end.
    pub(super) fn not_set_up(&mut self, conn: ConnId, phase: Phase, cause: Cause, example: Vec<u8>, at: Nanos) {
        self.backend.close(conn);
        self.tally.error(phase, cause, at, || example);
        self.away_since.get_or_insert(at);
        if !self.routes.found() {
            let address = self.routes.address(self.slots[conn.index()].route);
            self.nobody_accepts(address, cause);
        }
        self.back_off(conn, true, at);
    }
}
