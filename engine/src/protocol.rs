//! The protocol of one connection, chosen when the connection is established: a value, not a type parameter of the
//! engine.

use onrush_plan::http::HttpVersion;
use onrush_proto::http1::{HeadBuffer, Missing};
use onrush_proto::http2::{FrameReader, SharedContext};
use onrush_proto::{Client, Error, Event, Fields, Http1, Http2, Nanos, Request, StartError, StreamId, Transmit};
use onrush_stats::{Cause, TlsFailure};

/// Makes the protocol of each new connection; the connections of a run may have different ones. Takes the protocol
/// negotiated by the TLS handshake (ALPN, RFC 7301), if any. Fails if the run does not support it.
pub type MakeProtocol = Box<dyn FnMut(Option<&[u8]>) -> Result<Protocol, TlsFailure>>;

/// Makes HTTP/1.1 connections, whatever was negotiated, with at most `depth` requests in flight on each.
pub fn http1(depth: usize) -> MakeProtocol {
    let heads = HeadBuffer::default();
    Box::new(move |_| Ok(Protocol::Http1(Http1::sharing(depth, &heads))))
}

/// Makes connections with the HTTP version negotiated by the TLS handshake, or, without TLS, the first of `versions`.
/// If the server does not negotiate, HTTP/1.1. Fails if the version is not among `versions`. `depth`: limit on requests
/// in flight per HTTP/1.1 connection; `http2`: state shared by HTTP/2 connections.
pub fn http_by_alpn(versions: &[HttpVersion], is_tls: bool, depth: usize, http2: &SharedContext) -> MakeProtocol {
    let (versions, http2, heads) = (versions.to_vec(), http2.clone(), HeadBuffer::default());
    Box::new(move |negotiated| {
        let spoken = match negotiated {
            Some(name) => versions.iter().find(|version| version.alpn().as_bytes() == name),
            None if is_tls => versions.iter().find(|version| **version == HttpVersion::Http11),
            None => versions.first(),
        };
        match spoken.ok_or(TlsFailure::NoProtocol)? {
            HttpVersion::Http11 => Ok(Protocol::Http1(Http1::sharing(depth, &heads))),
            HttpVersion::Http2 => Ok(Protocol::Http2(Box::new(Http2::new(&http2)))),
        }
    })
}

/// The protocols a connection can speak.
#[expect(clippy::large_enum_variant, reason = "the most frequent one is at hand")]
pub enum Protocol {
    /// HTTP/1.x.
    Http1(Http1),
    /// HTTP/2.
    Http2(Box<Http2>),
    /// A protocol for tests: proves that the engine does not depend on HTTP/1.
    #[cfg(test)]
    Other(Box<dyn Client>),
}

/// Calls a method of the protocol, without a virtual call if the protocol is known.
macro_rules! each {
    ($protocol:expr, $client:ident => $call:expr) => {
        match $protocol {
            Protocol::Http1($client) => $call,
            Protocol::Http2($client) => $call,
            #[cfg(test)]
            Protocol::Other($client) => $call,
        }
    };
}

impl Protocol {
    /// True if the connection uses HTTP/2.
    pub fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// The error that names what the connection, or the request on `stream`, is still waiting for although servers
    /// usually send it at once; `None`: nothing of that kind.
    pub fn overdue_server_event(&mut self, stream: Option<StreamId>) -> Option<Error> {
        match self {
            Self::Http2(client) => client.overdue_server_event(stream),
            Self::Http1(client) => client.unsolicited_error(),
            #[cfg(test)]
            Self::Other(_) => None,
        }
    }

    /// True if the server has begun to send something that answers no request.
    pub fn is_unasked(&self) -> bool {
        if let Self::Http1(client) = self { client.unsolicited_error().is_some() } else { false }
    }

    /// The cause to record for a late request without a complete response. More specific than [`Cause::Late`] only over
    /// HTTP/1.
    pub fn late_cause(&self, stream: StreamId) -> Cause {
        let Self::Http1(client) = self else { return Cause::Late };
        match client.missing_part(stream) {
            Some(Missing::HeadEnd) => Cause::LateInHead,
            Some(Missing::Close) => Cause::LateToClose,
            None => Cause::Late,
        }
    }

    /// Declines a response with status 408 that only says that the server has ended an idle connection, so that the
    /// request may be sent again. Returns true if it did; always false over HTTP/2.
    pub fn decline_timeout(&mut self, stream: StreamId) -> bool {
        if let Self::Http1(client) = self { client.decline_timeout(stream) } else { false }
    }

    /// Updates the counts of an HTTP/2 connection, including waits in progress up to `now`. Does nothing over HTTP/1.
    pub fn count_so_far(&mut self, now: Nanos) {
        if let Self::Http2(client) = self {
            client.count_so_far(now);
        }
    }

    /// Number of streams that the server allows. [`u32::MAX`]: unlimited; `None`: not known yet, or not HTTP/2.
    pub fn streams_allowed(&self) -> Option<u32> {
        let Self::Http2(client) = self else { return None };
        client.streams_allowed()
    }

    /// After a transport error: requests that never left and may be sent again, and requests that the server had ended
    /// before, with its reason.
    pub fn take_settled_requests(&mut self) -> Vec<(StreamId, Error, bool)> {
        let Self::Http2(client) = self else { return Vec::new() };
        client.handle_eof();
        let known = |event| match event {
            Event::Failed { stream, error, retryable } if retryable || matches!(error, Error::GoAway(_)) => {
                Some((stream, error, retryable))
            }
            _ => None,
        };
        std::iter::from_fn(|| client.poll_event()).filter_map(known).collect()
    }

    /// The explanation in the server's last GOAWAY, as received; empty if there is none.
    pub fn goaway_text(&self) -> &[u8] {
        if let Self::Http2(client) = self { client.goaway_text() } else { &[] }
    }

    /// True if the server has announced that it ends the connection but processes some of its requests.
    pub fn processes_some(&self) -> bool {
        if let Self::Http2(client) = self { client.processes_some() } else { false }
    }

    /// Approximate number of body bytes still to arrive; zero over HTTP/1, where no frames come in between.
    pub fn body_bytes_to_come(&self) -> u64 {
        if let Self::Http2(client) = self { client.body_bytes_to_come() } else { 0 }
    }

    /// True if HTTP/2 request bodies are being sent; always false over HTTP/1.
    pub fn is_uploading(&self) -> bool {
        if let Self::Http2(client) = self { client.is_uploading() } else { false }
    }

    /// True if there may be output to send; over HTTP/2 always.
    pub fn may_have_output(&self) -> bool {
        if let Self::Http1(client) = self { client.has_output() } else { true }
    }

    /// True if a request started now leaves together with those not handed over yet.
    pub fn leaves_together(&self, request: &Request) -> bool {
        if let Self::Http1(client) = self { client.leaves_together(request) } else { true }
    }

    /// The error for the rest of a batch that the connection no longer takes, and whether the rest may be sent again.
    pub fn rest_of_batch_error(&self) -> Option<(Error, bool)> {
        if let Self::Http1(client) = self { client.later_request_error() } else { None }
    }

    /// Readers for sent and received bytes, if the protocol has frames.
    pub fn frame_readers(&self) -> Option<Box<[FrameReader; 2]>> {
        if let Self::Http2(client) = self { Some(Box::new(client.frame_readers())) } else { None }
    }
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

    #[inline(always)]
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
