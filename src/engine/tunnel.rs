//! The way through a proxy: before anything else, a new connection asks it for a tunnel to the target. What the proxy sends
//! after its answer is the target's.

use onrush_proto::http1::Wire;
use onrush_proto::{Nanos, Transmit, http1};

use crate::stats::ProxyFailure;

/// One connection's tunnel, until it is open.
pub struct Tunnel {
    /// When the connection was asked for.
    pub since: Nanos,
    http: http1::Tunnel,
}

impl Tunnel {
    /// The tunnel of a connection that was asked for at `since`; the proxy is asked for it with `connect`.
    pub fn new(since: Nanos, connect: &Wire) -> Self {
        Self { since, http: http1::Tunnel::new(connect) }
    }

    /// What the proxy is asked, once.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.http.poll_transmit()
    }

    /// The transport accepted `n` more bytes of that.
    pub fn handle_sent(&mut self, n: usize) {
        self.http.handle_sent(n);
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
