//! A response as plain data: its parts, its time, and the connection's fate.
//!
//! It has no form on the wire yet, except for parts that only HTTP/1.1 can express. Nothing is sent here.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use super::places::AdmissionLimit;
use super::request::Persistence;
use super::stream::BodyStream;

#[derive(Debug)]
pub(super) struct Response {
    /// The place that the request or its connection must have first.
    pub limit: Option<AdmissionLimit>,
    /// The time before anything is sent, since the place was given.
    pub wait: Duration,
    /// The first part: usually a head and a short body.
    pub message: ResponseStart,
    /// The body that is sent after it.
    pub stream: Option<BodyStream>,
    /// The connection's fate afterwards.
    pub end: AfterResponse,
}

/// The first part of a response.
#[derive(Debug)]
pub(super) enum ResponseStart {
    /// Nothing.
    Nothing,
    /// A head, and the body or its beginning.
    Http(ResponseHead, Cow<'static, [u8]>),
    /// A broken HTTP/1.1 message that HTTP/2, which has no chunks, cannot express: there, the stream is reset.
    BrokenChunks(Vec<u8>),
    /// The beginning of a head that never ends.
    EndlessHead,
    /// Bytes that belong to no protocol.
    Garbage(&'static [u8]),
}

#[derive(Debug)]
pub(super) struct ResponseHead {
    /// The status and the fields (whole lines) of an interim response that is sent before it.
    pub interim: Option<(u16, &'static str)>,
    /// HTTP/1's version.
    pub version: &'static str,
    /// The status.
    pub status: u16,
    /// The fields beside `Content-Type` and `Connection`, as whole lines.
    pub fields: Cow<'static, str>,
    /// HTTP/1's word on the connection.
    pub persistence: Persistence,
}

/// A connection's fate after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterResponse {
    /// Stays open for the next request.
    Next,
    /// Is closed, as the client was told; over HTTP/2 GOAWAY tells it.
    Close,
    /// Is closed, and the client was not told.
    CloseUntold,
    /// Is closed, because nobody knows where the next response would begin; over HTTP/2 it stays open.
    CloseUnframed,
    /// Is reset (RST); over HTTP/2 only the stream is (`RST_STREAM`).
    Reset,
    /// Stays open, with nothing sent, until the client closes it; over HTTP/2 only the stream does.
    Hang,
}

/// The form that a response must take for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseForm {
    /// True if only the head is sent, as for HEAD.
    pub head_only: bool,
    /// The head's word on the connection.
    pub persistence: Persistence,
}

/// The default body.
pub(super) const HELLO: &[u8] = b"Hello, World!";

const HELLO_LENGTH: &str = "Content-Length: 13\r\n";

/// The complete response to `GET /`, ready to be copied.
pub(super) const PLAIN: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

impl Response {
    /// A head with these fields (whole lines) and a body.
    pub(super) fn new(
        status: u16,
        fields: impl Into<Cow<'static, str>>,
        body: impl Into<Cow<'static, [u8]>>,
        manner: ResponseForm,
    ) -> Self {
        let body = if manner.head_only { Cow::default() } else { body.into() };
        let head = ResponseHead {
            interim: None,
            version: "HTTP/1.1",
            status,
            fields: fields.into(),
            persistence: manner.persistence,
        };
        Self { message: ResponseStart::Http(head, body), ..Self::nothing(manner.end()) }
    }

    /// Nothing, sent at once.
    pub(super) fn nothing(end: AfterResponse) -> Self {
        Self { limit: None, wait: Duration::ZERO, message: ResponseStart::Nothing, stream: None, end }
    }

    /// A text with this status.
    pub(super) fn text(status: u16, body: impl Into<Cow<'static, [u8]>>, manner: ResponseForm) -> Self {
        let body = body.into();
        Self::new(status, format!("Content-Length: {}\r\n", body.len()), body, manner)
    }

    /// The greeting of 13 bytes that `/` sends.
    pub(super) fn hello(manner: ResponseForm) -> Self {
        Self::new(200, HELLO_LENGTH, HELLO, manner)
    }

    /// A head with these fields (whole lines) and the stream as its body.
    pub(super) fn streamed(fields: impl Into<Cow<'static, str>>, stream: BodyStream, manner: ResponseForm) -> Self {
        let stream = Some(stream).filter(|_| !manner.head_only);
        Self { stream, ..Self::new(200, fields, &[][..], manner) }
    }

    /// Delays the response.
    pub(super) fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Makes the response need a place.
    pub(super) fn limited(self, limit: AdmissionLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Puts an interim response before it.
    pub(super) fn preceded_by(self, status: u16, fields: &'static str) -> Self {
        self.with_head(|head| head.interim = Some((status, fields)))
    }

    /// Turns it into the response of a server that speaks HTTP/1.0.
    pub(super) fn http10(self) -> Self {
        self.with_head(|head| head.version = "HTTP/1.0")
    }

    fn with_head(mut self, change: impl FnOnce(&mut ResponseHead)) -> Self {
        if let ResponseStart::Http(head, _) = &mut self.message {
            change(head);
        }
        self
    }
}

impl ResponseStart {
    /// Appends the message in the form of HTTP/1.1.
    pub(super) fn write_http1(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Http(head, body) => {
                head.write_http1(out);
                out.extend_from_slice(body);
            }
            Self::BrokenChunks(bytes) => out.extend_from_slice(bytes),
            Self::EndlessHead => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            Self::Garbage(bytes) => out.extend_from_slice(bytes),
        }
    }
}

impl ResponseHead {
    /// Appends the head in the form of HTTP/1.1.
    fn write_http1(&self, out: &mut Vec<u8>) {
        let Self { interim, version, status, fields, persistence } = self;
        // Writing to memory cannot fail.
        if let Some((status, fields)) = interim {
            let _ = write!(out, "HTTP/1.1 {status} {}\r\n{fields}\r\n", reason(*status));
        }
        let (reason, connection) = (reason(*status), persistence.field());
        let _ = write!(out, "{version} {status} {reason}\r\nContent-Type: text/plain\r\n{fields}{connection}\r\n");
    }
}

impl ResponseForm {
    /// Closes the connection after it.
    pub(super) fn closing(self) -> Self {
        Self { persistence: Persistence::Close, ..self }
    }

    /// The connection's fate that the client expects.
    pub(super) fn end(self) -> AfterResponse {
        if self.persistence == Persistence::Close { AfterResponse::Close } else { AfterResponse::Next }
    }
}

impl Persistence {
    /// The head's field about it.
    fn field(self) -> &'static str {
        match self {
            Self::KeepAlive => "",
            Self::KeepAliveTold => "Connection: keep-alive\r\n",
            Self::Close => "Connection: close\r\n",
        }
    }
}

/// The reason phrase of a status; empty, which is valid, for any other status.
fn reason(status: u16) -> &'static str {
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
        let manner = ResponseForm { head_only: false, persistence: Persistence::KeepAlive };
        let mut bytes = Vec::new();
        Response::hello(manner).message.write_http1(&mut bytes);
        assert_eq!(bytes, PLAIN);
    }
}
