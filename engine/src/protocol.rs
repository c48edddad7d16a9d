//! The protocol of one connection, chosen when the connection is established: a value, not a type parameter of the
//! engine.

use onrush_proto::{Client, Event, Fields, Http1, Nanos, Request, StartError, StreamId, Transmit};
use onrush_stats::TlsFailure;

/// Makes the protocol of each new connection; the connections of a run may speak different ones. It is passed the
/// protocol that the TLS handshake negotiated (ALPN, RFC 7301), if any; none can be made if that is not what the run speaks.
pub type MakeProtocol = Box<dyn FnMut(Option<&[u8]>) -> Result<Protocol, TlsFailure>>;

/// HTTP/1.1 whatever was negotiated, with at most this many requests in flight on a connection.
pub fn http1(depth: usize) -> MakeProtocol {
    Box::new(move |_| Ok(Protocol::Http1(Http1::new(depth))))
}

/// The protocols a connection can speak.
#[cfg_attr(test, expect(clippy::large_enum_variant, reason = "the other one is for tests only"))]
pub enum Protocol {
    /// HTTP/1.x.
    Http1(Http1),
    /// A protocol that only tests use; it proves that the engine does not depend on HTTP/1.
    #[cfg(test)]
    Other(Box<dyn Client>),
}

/// Calls a method of whichever protocol it is, without a virtual call where the protocol is known.
macro_rules! each {
    ($protocol:expr, $client:ident => $call:expr) => {
        match $protocol {
            Protocol::Http1($client) => $call,
            #[cfg(test)]
            Protocol::Other($client) => $call,
        }
    };
}

impl Client for Protocol {
    fn capacity(&self) -> usize {
        each!(self, client => client.capacity())
    }

    fn start(&mut self, request: &Request, is_last: bool) -> Result<StreamId, StartError> {
        each!(self, client => client.start(request, is_last))
    }

    fn cancel(&mut self, stream: StreamId) {
        each!(self, client => client.cancel(stream));
    }

    fn handle_bytes(&mut self, bytes: &[u8], now: Nanos) -> usize {
        each!(self, client => client.handle_bytes(bytes, now))
    }

    fn handle_skipped(&mut self, n: u64) {
        each!(self, client => client.handle_skipped(n));
    }

    fn handle_eof(&mut self) {
        each!(self, client => client.handle_eof());
    }

    fn handle_sent(&mut self, n: usize) {
        each!(self, client => client.handle_sent(n));
    }

    fn handle_timeout(&mut self, now: Nanos) {
        each!(self, client => client.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Nanos) -> Option<Transmit> {
        each!(self, client => client.poll_transmit(now))
    }

    fn poll_event(&mut self) -> Option<Event> {
        each!(self, client => client.poll_event())
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        each!(self, client => client.poll_timeout())
    }

    fn reading(&self) -> Option<StreamId> {
        each!(self, client => client.reading())
    }

    fn may_skip(&self) -> u64 {
        each!(self, client => client.may_skip())
    }

    fn fields<'a>(&'a self, input: &'a [u8]) -> Fields<'a> {
        each!(self, client => client.fields(input))
    }

    fn write_text(&self, input: &[u8], text: &mut Vec<u8>) {
        each!(self, client => client.write_text(input, text));
    }
}
