//! What connections send: from the protocol, through TLS if it is used, to the backend.

use onrush_proto::{Client, Nanos};

use super::Engine;
use super::tls::LinkFailure;
use crate::backend::{Backend, ConnId};

impl<B: Backend> Engine<B> {
    /// Hands over what the protocol has to send, as far as the transport accepts it.
    pub(super) fn transmit(&mut self, conn: ConnId, at: Nanos) {
        while let Some(live) = self.slots[conn.index()].live()
            && live.unsent == 0
            && live.send_error.is_none()
            && let Some(transmit) = live.protocol.poll_transmit(at)
        {
            live.unsent = transmit.bytes().len();
            if let Some(transcript) = &mut self.books.tally.transcript {
                transcript.send(transmit.bytes(), at);
            }
            if let Some(link) = &mut self.slots[conn.index()].link {
                link.send(transmit);
                self.flush(conn, at);
            } else {
                let n = self.backend.send(conn, transmit);
                self.accepted(conn, n);
            }
        }
    }

    /// Hands over the encrypted bytes of an established connection, as far as the transport accepts them.
    pub(super) fn flush(&mut self, conn: ConnId, at: Nanos) {
        if let Err(failure) = self.seal(conn) {
            self.link_failed(conn, failure, at);
        }
    }

    /// Hands over encrypted bytes, as far as the transport accepts them.
    ///
    /// # Errors
    ///
    /// If no more can be encrypted: the connection is useless then.
    pub(super) fn seal(&mut self, conn: ConnId) -> Result<(), LinkFailure> {
        while let Some(link) = &mut self.slots[conn.index()].link
            && let Some(encrypted) = link.seal()?
        {
            let n = self.backend.send(conn, encrypted);
            let n = self.accepted(conn, n);
            self.encrypted(n, B::GATHERS);
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
    pub(super) fn encrypted(&mut self, n: usize, is_gathered: bool) {
        if self.config.tls.is_some() {
            self.books.tally.encrypted(n, is_gathered);
        }
    }
}
