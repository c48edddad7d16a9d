//! A response as plain data: what is sent, when, and whether the connection stays open.
//!
//! Nothing is sent here.

use std::time::Duration;

use super::places::Limit;
use super::request::Persistence;
use super::stream::Stream;

/// The response to a request.
#[derive(Debug)]
pub(super) struct Response {
    /// The place that the request or its connection must have first.
    pub limit: Option<Limit>,
    /// The time before anything is sent, from when the place was given.
    pub wait: Duration,
    /// The bytes that are sent first: usually a head and a short body.
    pub bytes: Vec<u8>,
    /// The body that is sent after these bytes.
    pub stream: Option<Stream>,
    /// What happens to the connection afterwards.
    pub end: End,
}

/// What happens to the connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It stays open for the next request.
    Next,
    /// It is closed.
    Close,
    /// It is reset (RST).
    Reset,
    /// It stays open, with nothing sent, until the client closes it.
    Hang,
}

/// The form that a response must take for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Whether only the head is sent, as for HEAD.
    pub head_only: bool,
    /// What the head says about the connection.
    pub persistence: Persistence,
}

/// The default body.
pub(super) const HELLO: &[u8] = b"Hello, World!";

/// The complete response to `GET /`, ready to be copied.
pub(super) const PLAIN: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

impl Response {
    /// These bytes, sent at once.
    pub(super) fn raw(bytes: impl Into<Vec<u8>>, end: End) -> Self {
        Self { limit: None, wait: Duration::ZERO, bytes: bytes.into(), stream: None, end }
    }

    /// A text with this status.
    pub(super) fn text(status: u16, body: impl AsRef<[u8]>, manner: Manner) -> Self {
        let body = body.as_ref();
        let mut bytes = head(status, &format!("Content-Length: {}\r\n", body.len()), manner);
        if !manner.head_only {
            bytes.extend_from_slice(body);
        }
        Self::raw(bytes, manner.end())
    }

    /// The greeting of 13 bytes that `/` sends.
    pub(super) fn hello(manner: Manner) -> Self {
        Self::text(200, HELLO, manner)
    }

    /// A head with `framing` (whole lines) and the stream as its body.
    pub(super) fn streamed(framing: &str, stream: Stream, manner: Manner) -> Self {
        let stream = Some(stream).filter(|_| !manner.head_only);
        Self { stream, ..Self::raw(head(200, framing, manner), manner.end()) }
    }

    /// The same response, sent later.
    pub(super) fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The same response, for which a place is needed.
    pub(super) fn limited(self, limit: Limit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The same response, preceded by other bytes.
    pub(super) fn preceded_by(mut self, first: &str) -> Self {
        self.bytes.splice(..0, first.bytes());
        self
    }
}

impl Manner {
    /// The same form, but the connection is closed.
    pub(super) fn closing(self) -> Self {
        Self { persistence: Persistence::Close, ..self }
    }

    /// What the client expects to happen to the connection.
    pub(super) fn end(self) -> End {
        if self.persistence == Persistence::Close { End::Close } else { End::Next }
    }

    fn connection_field(self) -> &'static str {
        match self.persistence {
            Persistence::KeepAlive => "",
            Persistence::KeepAliveTold => "Connection: keep-alive\r\n",
            Persistence::Close => "Connection: close\r\n",
        }
    }
}

/// An HTTP/1.1 head; `fields` are whole lines.
pub(super) fn head(status: u16, fields: &str, manner: Manner) -> Vec<u8> {
    let reason = reason(status);
    let connection = manner.connection_field();
    format!("HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\n{fields}{connection}\r\n").into_bytes()
}

/// The reason phrase of a status; empty, which is valid, for any other status.
pub(super) fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        418 => "I'm a teapot",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prepared_response_is_what_would_be_built() {
        let manner = Manner { head_only: false, persistence: Persistence::KeepAlive };
        assert_eq!(Response::hello(manner).bytes, PLAIN);
    }
}
