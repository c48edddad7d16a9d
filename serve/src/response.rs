//! A response as plain data: its parts, its timing, and what happens to the connection.
//!
//! Independent of the protocol, except for parts that only HTTP/1.1 can express. Nothing is sent here.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use super::places::AdmissionLimit;
use super::request::Persistence;
use super::stream::BodyStream;

#[derive(Debug)]
pub(super) struct Response {
    /// The place that the request or its connection needs first, if any.
    pub limit: Option<AdmissionLimit>,
    /// Delay of the first byte, counted from when the place was given or the request was read.
    pub wait: Duration,
    /// The first part: usually a head and a short body.
    pub message: ResponseStart,
    /// The rest of the body, generated while it is sent.
    pub stream: Option<BodyStream>,
    /// Fate of the connection after the response.
    pub end: AfterResponse,
}

/// The first part of a response.
#[derive(Debug)]
pub(super) enum ResponseStart {
    /// Nothing: the response has no bytes.
    Nothing,
    /// A head, and the body or its start.
    Http(ResponseHead, Cow<'static, [u8]>),
    /// A broken HTTP/1.1 message. HTTP/2 has no chunks and cannot express it: the stream is reset instead.
    BrokenChunks(Vec<u8>),
    /// The start of a head that never ends.
    EndlessHead,
    /// Bytes that belong to no protocol.
    Garbage(&'static [u8]),
}

#[derive(Debug)]
pub(super) struct ResponseHead {
    /// Status and fields (whole lines) of an interim response to send first, if any.
    pub interim: Option<(u16, &'static str)>,
    /// HTTP version in the head; not used over HTTP/2.
    pub version: &'static str,
    /// Status of the response.
    pub status: u16,
    /// Fields other than `Content-Type` and `Connection`, as whole lines.
    pub fields: Cow<'static, str>,
    /// Announcement of the head about the connection; not used over HTTP/2.
    pub persistence: Persistence,
}

/// Fate of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterResponse {
    /// Stays open for the next request.
    Next,
    /// Closed, as the head announced; over HTTP/2 with GOAWAY.
    Close,
    /// Closed without having been announced.
    CloseUntold,
    /// Closed, because the start of the next response is undefined; over HTTP/2 it stays open.
    CloseUnframed,
    /// Reset (RST); over HTTP/2 only the stream is reset (`RST_STREAM`).
    Reset,
    /// Stays open but silent until the client closes it; over HTTP/2 only the stream.
    Hang,
}

/// Demands of a request on the form of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseForm {
    /// True if only the head is sent, as for HEAD.
    pub head_only: bool,
    /// Announcement of the head about the connection.
    pub persistence: Persistence,
}

/// The body of `/`, and of all responses called a greeting.
pub(super) const HELLO: &[u8] = b"Hello, World!";

const HELLO_LENGTH: &str = "Content-Length: 13\r\n";

/// The complete response to `GET /`, ready to copy.
pub(super) const PLAIN: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

impl Response {
    /// A response with these fields (whole lines), which must frame the body. `manner` may drop the body.
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
        Self { message: ResponseStart::Http(head, body), ..Self::empty_response(manner.announced_fate()) }
    }

    /// A response that sends no bytes, after which this happens to the connection.
    pub(super) fn empty_response(end: AfterResponse) -> Self {
        Self { limit: None, wait: Duration::ZERO, message: ResponseStart::Nothing, stream: None, end }
    }

    /// A plain-text response with this status and body, and its length.
    pub(super) fn text_response(status: u16, body: impl Into<Cow<'static, [u8]>>, manner: ResponseForm) -> Self {
        let body = body.into();
        Self::new(status, format!("Content-Length: {}\r\n", body.len()), body, manner)
    }

    /// The 13-byte greeting of `/`.
    pub(super) fn greeting_response(manner: ResponseForm) -> Self {
        Self::new(200, HELLO_LENGTH, HELLO, manner)
    }

    /// A response with these fields (whole lines), which must frame the stream, as its body.
    pub(super) fn streamed_response(
        fields: impl Into<Cow<'static, str>>,
        stream: BodyStream,
        manner: ResponseForm,
    ) -> Self {
        let stream = Some(stream).filter(|_| !manner.head_only);
        Self { stream, ..Self::new(200, fields, &[][..], manner) }
    }

    /// Delays the first byte by this time.
    pub(super) fn delayed_by(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Makes the response wait for a place.
    pub(super) fn with_limit(self, limit: AdmissionLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Adds an interim response to be sent first; no effect on a response without a head.
    pub(super) fn with_interim_response(self, status: u16, fields: &'static str) -> Self {
        self.with_head(|head| head.interim = Some((status, fields)))
    }

    /// Puts HTTP/1.0 as the version into the head, if there is one.
    pub(super) fn into_http10(self) -> Self {
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
    /// Appends the message in HTTP/1.1 format.
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
    /// Appends the head in HTTP/1.1 format.
    fn write_http1(&self, out: &mut Vec<u8>) {
        let Self { interim, version, status, fields, persistence } = self;
        // Writing to memory cannot fail.
        if let Some((status, fields)) = interim {
            let _ = write!(out, "HTTP/1.1 {status} {}\r\n{fields}\r\n", reason_phrase(*status));
        }
        let (reason, connection) = (reason_phrase(*status), persistence.connection_field());
        let _ = write!(out, "{version} {status} {reason}\r\nContent-Type: text/plain\r\n{fields}{connection}\r\n");
    }
}

impl ResponseForm {
    /// This form, with the close of the connection announced.
    pub(super) fn announcing_close(self) -> Self {
        Self { persistence: Persistence::Close, ..self }
    }

    /// Fate of the connection according to the announcement.
    pub(super) fn announced_fate(self) -> AfterResponse {
        if self.persistence == Persistence::Close { AfterResponse::Close } else { AfterResponse::Next }
    }
}

impl Persistence {
    /// The header field that makes the announcement; empty if none is needed.
    fn connection_field(self) -> &'static str {
        match self {
            Self::KeepAlive => "",
            Self::KeepAliveTold => "Connection: keep-alive\r\n",
            Self::Close => "Connection: close\r\n",
        }
    }
}

/// Reason phrase of a status; empty, which is valid, for a status without one here.
fn reason_phrase(status: u16) -> &'static str {
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
    fn prepared_response_equals_built_response() {
        let manner = ResponseForm { head_only: false, persistence: Persistence::KeepAlive };
        let mut bytes = Vec::new();
        Response::greeting_response(manner).message.write_http1(&mut bytes);
        assert_eq!(bytes, PLAIN);
    }
}
