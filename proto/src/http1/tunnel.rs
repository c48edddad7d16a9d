//! The request for a tunnel through a proxy (`CONNECT`, RFC 9110, 9.3.6): the first bytes on a connection.
//!
//! Only the head of the response is read, and kept until it is complete. Later bytes come through the tunnel, whatever
//! the head says about a body. Shares no state with [`Http1`](super::Http1), which reads millions of heads.

use super::HEAD_MAX;
use super::collect::HeadCollector;
use super::head::{Head, StatusLine, unfold};
use super::wire::Wire;
use crate::{Error, Transmit};

/// One connection's tunnel, until the proxy has responded.
#[derive(Debug)]
pub struct Tunnel {
    transmit: Option<Transmit>,
    /// Number of request bytes that the transport has not accepted yet.
    unsent: usize,
    /// The received part of the response's head.
    head: Vec<u8>,
}

impl Tunnel {
    /// A tunnel requested with `connect`.
    pub fn new(connect: &Wire) -> Self {
        let transmit = Some(Transmit::Shared(connect.bytes.clone(), connect.range.clone()));
        Self { transmit, unsent: connect.range.len(), head: Vec::new() }
    }

    /// The request to send; `None` after the first call.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmit.take()
    }

    /// Records that the transport accepted `n` more bytes of the request.
    pub fn handle_sent(&mut self, n: usize) {
        self.unsent = self.unsent.saturating_sub(n);
    }

    /// True if the transport has accepted the whole request.
    pub fn is_sent(&self) -> bool {
        self.unsent == 0
    }

    /// Takes received bytes. `None`: all are taken, and the response's head is incomplete. Otherwise returns the
    /// status, 200 or more, and the number of bytes up to the end of the head; after a 2xx status, later bytes come
    /// from the target.
    ///
    /// # Errors
    ///
    /// The fault in the proxy's response. The connection cannot be used any more.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<Option<(u16, usize)>, Error> {
        for (index, &byte) in bytes.iter().enumerate() {
            if self.head.is_empty() && matches!(byte, b'\r' | b'\n') {
                continue;
            }
            if self.head.len() == HEAD_MAX {
                return Err(Error::HeadTooLong);
            }
            self.head.push(byte);
            HeadCollector::default().check_prefix(&self.head)?;
            if self.head.ends_with(b"\n\r\n") || self.head.ends_with(b"\n\n") {
                match self.status()? {
                    101 => return Err(Error::Switched),
                    100..=199 => self.head.clear(),
                    status => return Ok(Some((status, index + 1))),
                }
            }
        }
        Ok(None)
    }

    /// The status of the complete head.
    fn status(&mut self) -> Result<u16, Error> {
        let line_end = memchr::memchr(b'\n', &self.head).map_or(self.head.len(), |lf| lf + 1);
        let (line, fields) = self.head.split_at_mut(line_end);
        unfold(fields, 0);
        Ok(Head::parse(StatusLine::parse(line)?, fields)?.status)
    }
}
