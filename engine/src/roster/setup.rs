//! Steps between an accepted connection and its first request: the tunnel through a proxy, the TLS handshake.
//!
//! Every step returns whether requests can be sent now. A plain connection has no steps.

use onrush_proto::Nanos;
use onrush_stats::{Cause, Phase, ProxyFailure};
use rustix::io::Errno;

use super::Roster;
use super::ending::NotSetUp;
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::cause::cause_of;
use crate::slot::State;
use crate::tls::LinkFailure;
use crate::tunnel::Tunnel;

/// Number of proxy bytes kept as an example of an error.
const EXAMPLE_BYTES: usize = 60;

/// Progress of a connection's setup.
pub(super) enum Setup {
    /// More bytes must arrive first.
    Pending,
    /// Requests can be sent. These bytes have already arrived, before any request.
    Done(Vec<u8>),
}

impl<B: Backend> Roster<B> {
    /// Takes the first step on an accepted connection.
    pub(super) fn begin_setup(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> Result<Setup, NotSetUp> {
        let slot = &mut self.slots[conn.index()];
        let (Some(connect), State::Connecting(since)) = (&self.connecting.tunnel, &slot.state) else {
            return self.begin_handshake(conn, books, at);
        };
        let mut tunnel = Box::new(Tunnel::new(*since, connect));
        if let Some(transmit) = tunnel.poll_transmit() {
            tunnel.handle_sent(self.backend.send(conn, transmit));
        }
        self.set_slot_state(conn, State::Tunnelling(tunnel), books, at);
        Ok(Setup::Pending)
    }

    /// Handles received bytes on a connection in setup.
    pub(super) fn continue_setup(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> Result<Setup, NotSetUp> {
        match &self.slots[conn.index()].state {
            State::Connecting(_) => self.continue_handshake(conn, 0, books, at),
            State::Tunnelling(_) => self.continue_tunnel(conn, books, at),
            State::Open(_) | State::Parked | State::Queued | State::Waiting => Ok(Setup::Pending),
        }
    }

    /// Sends the rest of an unfinished send.
    pub(super) fn flush_setup(&mut self, conn: ConnId, books: &mut Books) -> Result<Setup, NotSetUp> {
        self.seal(conn, books).map_err(NotSetUp::from)?;
        Ok(Setup::Pending)
    }

    /// The error of a connection in setup whose transport fails, or ends (`None`).
    pub(super) fn setup_error(&self, conn: ConnId, errno: Option<Errno>) -> Option<NotSetUp> {
        let slot = &self.slots[conn.index()];
        let failed = |phase, cause| Some(NotSetUp { phase, cause, example: Vec::new() });
        match (&slot.state, errno) {
            (State::Tunnelling(_), None) => failed(Phase::Connect, Cause::Proxy(ProxyFailure::Closed)),
            (State::Tunnelling(_), Some(errno)) => failed(Phase::Connect, cause_of(errno)),
            (State::Connecting(_), None) if slot.is_shaking_hands() => Some(LinkFailure::closed().into()),
            (State::Connecting(_), Some(errno)) if slot.is_shaking_hands() => failed(Phase::Tls, cause_of(errno)),
            _ => None,
        }
    }

    fn continue_tunnel(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> Result<Setup, NotSetUp> {
        let bytes = self.backend.received_bytes();
        let State::Tunnelling(tunnel) = &mut self.slots[conn.index()].state else { return Ok(Setup::Pending) };
        let opened = tunnel.receive(bytes).map_err(|failure| {
            let is_unreadable = matches!(failure, ProxyFailure::Answer(_));
            let example = if is_unreadable { &bytes[..bytes.len().min(EXAMPLE_BYTES)] } else { &[] };
            NotSetUp { phase: Phase::Connect, cause: Cause::Proxy(failure), example: example.to_vec() }
        })?;
        let Some(used) = opened else { return Ok(Setup::Pending) };
        let (since, rest) = (tunnel.since, bytes[used..].to_vec());
        self.set_slot_state(conn, State::Connecting(since), books, at);
        match self.begin_handshake(conn, books, at)? {
            Setup::Pending if !rest.is_empty() => self.continue_handshake(conn, used, books, at),
            Setup::Pending => Ok(Setup::Pending),
            Setup::Done(_) => Ok(Setup::Done(rest)),
        }
    }

    /// Begins the TLS handshake with the target. Without TLS, the connection is set up now.
    fn begin_handshake(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> Result<Setup, NotSetUp> {
        let slot = &mut self.slots[conn.index()];
        let Some(link) = &mut slot.link else { return Ok(Setup::Done(Vec::new())) };
        slot.handshake_at = at;
        link.begin()?;
        self.seal(conn, books)?;
        Ok(Setup::Pending)
    }

    /// Handles received bytes, except the first `skipped`.
    fn continue_handshake(
        &mut self,
        conn: ConnId,
        skipped: usize,
        books: &mut Books,
        at: Nanos,
    ) -> Result<Setup, NotSetUp> {
        let slot = &mut self.slots[conn.index()];
        let Some(link) = &mut slot.link else { return Ok(Setup::Pending) };
        let bytes = self.backend.received_bytes().get_mut(skipped..).unwrap_or_default();
        // Bytes that a server sends before any request are kept until the connection can handle them.
        let mut early = Vec::new();
        link.receive(bytes, &mut |plain| early.extend_from_slice(plain))?;
        if link.is_established() {
            let (negotiated, resumed) = link.negotiated();
            books.tally.interval.handshakes.record(negotiated, resumed);
            books.tally.count_handshake(at.since(slot.handshake_at));
            return Ok(Setup::Done(early));
        }
        if link.is_closed() {
            return Err(LinkFailure::closed().into());
        }
        self.seal(conn, books)?;
        Ok(Setup::Pending)
    }
}
