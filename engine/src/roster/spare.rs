//! Connections that outlive a session: idle ones at its end can be used by the next session in this process.
//!
//! A spare connection is as good as new: no request is in flight, and neither side has announced its end. If the server
//! has closed a spare by the time it is needed, it is dropped, and another one is used.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use onrush_proto::Client;

use super::Roster;
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::connection::Live;
use crate::protocol::Protocol;
use crate::slot::{Slot, State};
use crate::tls;

/// An idle connection between two sessions.
pub struct Spare {
    fd: OwnedFd,
    /// The peer's address.
    address: SocketAddr,
    /// Number of further requests allowed; very large if unlimited.
    left: u64,
    /// The TLS session, if TLS is used.
    tls: Option<tls::Session>,
}

impl Spare {
    /// True if the connection's peer is `address`.
    pub fn leads_to(&self, address: SocketAddr) -> bool {
        self.address == address
    }
}

impl Slot {
    /// True if the connection can serve another session.
    fn is_spare(&self) -> bool {
        let State::Open(live) = &self.state else { return false };
        live.is_spare() && self.link.as_ref().is_none_or(|link| link.is_quiet())
    }
}

impl Live {
    /// True if the connection takes requests, has none in flight, and has a protocol without state between requests.
    fn is_spare(&self) -> bool {
        let is_sound = self.unsent == 0 && self.send_error.is_none() && !self.troubled && !self.draining;
        is_sound && self.open.is_empty() && self.left > 0 && self.protocol.is_reusable()
    }
}

impl Protocol {
    /// True if a new protocol can take over in this state.
    fn is_reusable(&self) -> bool {
        match self {
            Self::Http1(client) => client.capacity() > 0 && client.reading().is_none(),
            // HTTP/2 connections have state on both sides.
            _ => false,
        }
    }
}

impl<B: Backend> Roster<B> {
    /// Gives a slot a spare connection to this address that the server has not closed. Returns its request limit, or
    /// `None` if there was no spare.
    pub(super) fn adopt_spare(&mut self, conn: ConnId, address: SocketAddr, books: &mut Books) -> Option<u64> {
        while let Some(spare) = self.connecting.take_spare(address) {
            if self.backend.adopt(conn, spare.fd) {
                let slot = &mut self.slots[conn.index()];
                if let (Some(link), Some(session)) = (&mut slot.link, spare.tls) {
                    link.resume(session);
                    books.tally.interval.handshakes.record_existing(link.negotiated().0, 1);
                }
                return Some(self.config.requests_per_connection.map_or(u64::MAX, |_| spare.left));
            }
        }
        None
    }

    /// Takes out the idle connections that can serve another session, along with unused spares.
    pub fn take_spares(&mut self) -> Vec<Spare> {
        let Some(mut spares) = self.connecting.spares.take() else { return Vec::new() };
        let numbers = (0..).map(ConnId).zip(&self.slots);
        let idle: Vec<ConnId> = numbers.filter(|(_, slot)| slot.is_spare()).map(|(conn, _)| conn).collect();
        for (conn, fd) in self.backend.release(&idle) {
            let slot = &mut self.slots[conn.index()];
            let (address, left) =
                (self.connecting.routes.address(slot.route), slot.open_connection().map_or(0, |live| live.left));
            let tls = slot.link.as_mut().and_then(|link| link.suspend());
            spares.push(Spare { fd, address, left, tls });
        }
        spares
    }
}
