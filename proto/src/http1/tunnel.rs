//! The request for a tunnel through a proxy (`CONNECT`, RFC 9110, 9.3.6): the first thing on a connection.
//!
//! Only the head of the answer is read, and it is kept until it is complete. What follows it comes through the tunnel,
//! no matter what the head says of a body. It shares nothing with [`Http1`](super::Http1), which reads millions of heads.

use super::HEAD_MAX;
use super::collect::Collector;
use super::head::{Head, StatusLine};
use super::wire::Wire;
use crate::{Error, Transmit};

/// One connection's tunnel, until the proxy has answered.
#[derive(Debug)]
pub struct Tunnel {
    transmit: Option<Transmit>,
    /// How many bytes of the request the transport has not accepted.
    unsent: usize,
    /// What has come of the answer's head.
    head: Vec<u8>,
}

impl Tunnel {
    /// Asks with this request.
    pub fn new(connect: &Wire) -> Self {
        let transmit = Some(Transmit::Shared(connect.bytes.clone(), connect.range.clone()));
        Self { transmit, unsent: connect.range.len(), head: Vec::new() }
    }

    /// What is to be sent, once.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmit.take()
    }

    /// Takes note that the transport accepted `n` more bytes of it.
    pub fn handle_sent(&mut self, n: usize) {
        self.unsent = self.unsent.saturating_sub(n);
    }

    /// Whether the transport has accepted all of it.
    pub fn is_sent(&self) -> bool {
        self.unsent == 0
    }

    /// Takes received bytes, up to the end of the answer's head. Then returns its status, 200 or more, and how many bytes
    /// were taken; what follows them is not the proxy's if the status is one of success.
    ///
    /// # Errors
    ///
    /// What is wrong with the answer; nothing else can come of it.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<Option<(u16, usize)>, Error> {
        for (index, &byte) in bytes.iter().enumerate() {
            if self.head.is_empty() && matches!(byte, b'\r' | b'\n') {
                continue;
            }
            if self.head.len() == HEAD_MAX {
                return Err(Error::HeadTooLong);
            }
            self.head.push(byte);
            Collector::default().check_prefix(&self.head)?;
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

    /// The status of the head, which is complete.
    fn status(&self) -> Result<u16, Error> {
        let line_end = memchr::memchr(b'\n', &self.head).map_or(self.head.len(), |lf| lf + 1);
        let (line, fields) = self.head.split_at(line_end);
        Ok(Head::parse(StatusLine::parse(line)?, fields)?.status)
    }
}
