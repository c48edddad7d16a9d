//! The tunnel through a proxy, which a new connection requests before anything else. Bytes after the proxy's response
//! come from the target.

use onrush_proto::http1::Wire;
use onrush_proto::{Nanos, Transmit, http1};

use onrush_stats::ProxyFailure;

/// One connection's tunnel, until it is open.
pub struct Tunnel {
    /// Start of the connect.
    pub since: Nanos,
    http: http1::Tunnel,
}

impl Tunnel {
    /// The tunnel of a connection whose connect began at `since`; `connect` is the tunnel request.
    pub fn new(since: Nanos, connect: &Wire) -> Self {
        Self { since, http: http1::Tunnel::new(connect) }
    }

    /// The request to the proxy; `None` after the first call.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.http.poll_transmit()
    }

    /// Records that the transport accepted `n` more bytes of the request.
    pub fn handle_sent(&mut self, n: usize) {
        self.http.handle_sent(n);
    }

    /// Takes received bytes. `None`: the proxy's response is incomplete. Once the tunnel is open, returns the number of
    /// these bytes that belong to the proxy's response. Fails if the proxy refuses, responds before it was sent the
    /// whole request, or is unreadable.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProxyFailure> {
        match self.http.handle_bytes(bytes).map_err(ProxyFailure::Answer)? {
            None => Ok(None),
            Some(_) if !self.http.is_sent() => Err(ProxyFailure::Early),
            Some((200..=299, used)) => Ok(Some(used)),
            Some((status, _)) => Err(ProxyFailure::Status(status)),
        }
    }
}
