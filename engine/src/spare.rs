//! Connections that outlive a session: those idle at its end can be used by the next session in this process.
//!
//! A spare connection is as good as new: it has no request in flight, and neither side has announced its end. One that
//! the server has closed by the time it is needed is dropped, and another is used.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use onrush_proto::{Client, Nanos};

use super::Engine;
use super::connection::Live;
use super::protocol::Protocol;
use super::slot::{Slot, State};
use super::tls;
use crate::backend::{Backend, ConnId};

/// An idle connection between two sessions.
pub struct Spare {
    fd: OwnedFd,
    /// Its peer.
    address: SocketAddr,
    /// How many more requests it may have, if their number is limited.
    left: u64,
    /// Its TLS session, if it uses TLS.
    tls: Option<tls::Session>,
}

impl Spare {
    /// Whether this is its peer.
    pub(super) fn leads_to(&self, address: SocketAddr) -> bool {
        self.address == address
    }
}

impl Slot {
    /// Whether its connection can serve another session.
    fn is_spare(&self) -> bool {
        let State::Open(live) = &self.state else { return false };
        live.is_spare() && self.link.as_ref().is_none_or(|link| link.is_quiet())
    }
}

impl Live {
    /// Whether it takes requests, has none in flight, and speaks a protocol that keeps no state between requests.
    fn is_spare(&self) -> bool {
        let is_sound = self.unsent == 0 && self.send_error.is_none() && !self.troubled && !self.draining;
        is_sound && self.open.is_empty() && self.left > 0 && self.protocol.is_reusable()
    }
}

impl Protocol {
    /// Whether a new protocol can continue where this one is.
    fn is_reusable(&self) -> bool {
        match self {
            Self::Http1(client) => client.capacity() > 0 && client.reading().is_none(),
            #[cfg(test)]
            Self::Other(_) => false,
        }
    }
}

impl<B: Backend> Engine<B> {
    /// Makes it use these connections before it opens any, and leave its own at the end.
    #[must_use]
    pub fn with_spares(mut self, spares: Option<Vec<Spare>>) -> Self {
        self.connecting.spares = spares;
        self
    }

    /// Gives a slot a spare connection to this address; returns whether there was one that the server has not closed.
    pub(super) fn adopt(&mut self, conn: ConnId, address: SocketAddr, at: Nanos) -> bool {
        while let Some(spare) = self.connecting.take_spare(address) {
            if self.backend.adopt(conn, spare.fd) {
                let slot = &mut self.slots[conn.index()];
                if let (Some(link), Some(session)) = (&mut slot.link, spare.tls) {
                    link.resume(session);
                    self.books.tally.interval.handshakes.found(link.negotiated().0, 1);
                }
                let requests = self.config.requests_per_connection.map_or(u64::MAX, |_| spare.left);
                if let Ok(protocol) = self.make_protocol(conn) {
                    self.go_live(conn, protocol, requests, true, at);
                    return true;
                }
                self.backend.close(conn);
            }
        }
        false
    }

    /// Takes out the connections that can serve another session, along with the spares that this one did not use.
    pub(super) fn leave_spares(&mut self) -> Vec<Spare> {
        let Some(mut spares) = self.connecting.spares.take() else { return Vec::new() };
        let numbers = (0..).map(ConnId).zip(&self.slots);
        let idle: Vec<ConnId> = numbers.filter(|(_, slot)| slot.is_spare()).map(|(conn, _)| conn).collect();
        for (conn, fd) in self.backend.release(&idle) {
            let slot = &mut self.slots[conn.index()];
            let (address, left) = (self.connecting.routes.address(slot.route), slot.live().map_or(0, |live| live.left));
            let tls = slot.link.as_mut().and_then(|link| link.suspend());
            spares.push(Spare { fd, address, left, tls });
        }
        spares
    }
}
