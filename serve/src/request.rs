//! Parses the parts of a request head on which a response depends.
//!
//! Most of a head is skipped: this is a target, not a validator. Fields that frame the body (lengths, chunked) are
//! parsed strictly, because a mistake would corrupt every later request of the connection.

use memchr::memchr;

use super::body::RequestBody;
use super::rejection::Rejection;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestHead<'a> {
    /// The method as sent.
    pub method: &'a [u8],
    /// The request target as sent: path and query.
    pub target: &'a [u8],
    /// Persistence of the connection after the response, and its announcement.
    pub persistence: Persistence,
    /// The state of the request body; `None` if the request has none.
    pub body: Option<RequestBody>,
    /// True if the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Length of the head in bytes.
    pub size: usize,
}

/// Persistence of a connection after a response, and its announcement in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// Open, as HTTP/1.1 assumes.
    KeepAlive,
    /// Open and announced, as an HTTP/1.0 client needs.
    KeepAliveTold,
    /// Closed, and announced.
    Close,
}

/// Maximum length of a head, in bytes: twice as long as the longest cookies that users of wrk send.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Parses the head at the start of `input`; `Ok(None)` if the head is incomplete.
///
/// # Errors
/// Fails if the head is malformed or too long.
pub(super) fn parse_head(input: &[u8]) -> Result<Option<RequestHead<'_>>, Rejection> {
    let within = &input[..input.len().min(HEAD_BYTES_MAX)];
    let mut lines = HeadLines { input: within, at: 0 };
    let incomplete = if within.len() == HEAD_BYTES_MAX { Err(TOO_LONG) } else { Ok(None) };
    // A client may send an empty line between two requests (RFC 9112, section 2.2).
    let request_line = loop {
        match lines.next_line() {
            Some([]) => {}
            Some(line) => break line,
            None => return incomplete,
        }
    };
    let (method, target, version) = split_request_line(request_line)?;
    let mut fields = RequestFields::default();
    loop {
        match lines.next_line() {
            Some([]) => break,
            // Only fields with these initials matter: Connection, Content-Length, Transfer-Encoding, Expect.
            Some(line @ [b'c' | b'C' | b't' | b'T' | b'e' | b'E', ..]) => fields.read_field(line)?,
            Some(_) => {}
            None => return incomplete,
        }
    }
    let persistence = fields.persistence(version);
    let body = fields.request_body()?;
    Ok(Some(RequestHead {
        method,
        target,
        persistence,
        body,
        expects_continue: fields.expects_continue,
        size: lines.at,
    }))
}

const TOO_LONG: Rejection = Rejection { status: 431, why: "the head is longer than 16 KiB" };
const NO_REQUEST_LINE: Rejection = Rejection { status: 400, why: "the first line is not METHOD TARGET HTTP/1.1" };
const OTHER_VERSION: Rejection = Rejection { status: 505, why: "the version is neither HTTP/1.1 nor HTTP/1.0" };
const BAD_LENGTH: Rejection = Rejection { status: 400, why: "Content-Length is not a whole number" };
const TWO_LENGTHS: Rejection = Rejection { status: 400, why: "the request has more than one body length" };
const OTHER_CODING: Rejection = Rejection { status: 501, why: "Transfer-Encoding is not chunked" };

/// The lines of a head, without line endings.
struct HeadLines<'a> {
    input: &'a [u8],
    /// Start of the next line.
    at: usize,
}

impl<'a> HeadLines<'a> {
    fn next_line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.input[self.at..];
        let end = memchr(b'\n', rest)?;
        self.at += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestVersion {
    Http10,
    Http11,
}

fn split_request_line(line: &[u8]) -> Result<(&[u8], &[u8], RequestVersion), Rejection> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(NO_REQUEST_LINE);
    };
    if method.is_empty() || target.is_empty() {
        return Err(NO_REQUEST_LINE);
    }
    match version {
        b"HTTP/1.1" => Ok((method, target, RequestVersion::Http11)),
        b"HTTP/1.0" => Ok((method, target, RequestVersion::Http10)),
        other if other.starts_with(b"HTTP/") => Err(OTHER_VERSION),
        _ => Err(NO_REQUEST_LINE),
    }
}

/// The relevant header fields.
#[derive(Default)]
struct RequestFields {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl RequestFields {
    fn read_field(&mut self, line: &[u8]) -> Result<(), Rejection> {
        let Some(colon) = memchr(b':', line) else { return Ok(()) };
        let name = &line[..colon];
        let value = line[colon + 1..].trim_ascii();
        if name.eq_ignore_ascii_case(b"connection") {
            for word in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= word.eq_ignore_ascii_case(b"close");
                self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.read_content_length(value)?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(OTHER_CODING);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"expect") {
            self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
        Ok(())
    }

    fn read_content_length(&mut self, value: &[u8]) -> Result<(), Rejection> {
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(BAD_LENGTH);
        }
        let digits = str::from_utf8(value).map_err(|_| BAD_LENGTH)?;
        let length = digits.parse().map_err(|_| BAD_LENGTH)?;
        if self.length.is_some_and(|other| other != length) {
            return Err(TWO_LENGTHS);
        }
        self.length = Some(length);
        Ok(())
    }

    fn persistence(&self, version: RequestVersion) -> Persistence {
        match version {
            RequestVersion::Http11 if !self.close => Persistence::KeepAlive,
            RequestVersion::Http10 if self.keep_alive && !self.close => Persistence::KeepAliveTold,
            _ => Persistence::Close,
        }
    }

    fn request_body(&self) -> Result<Option<RequestBody>, Rejection> {
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(TWO_LENGTHS),
            (true, None) => Ok(Some(RequestBody::chunked())),
            (false, Some(1..)) => Ok(self.length.map(RequestBody::of_length)),
            (false, _) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_complete_head(text: &str) -> RequestHead<'_> {
        parse_head(text.as_bytes()).unwrap().expect("a complete head")
    }

    fn parse_rejection(text: &str) -> Rejection {
        parse_head(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn plain_requests_are_read_to_their_end() {
        let text = "GET /a?b=1 HTTP/1.1\r\nHost: h\r\n\r\nGET /next";
        let expected = RequestHead {
            method: b"GET",
            target: b"/a?b=1",
            persistence: Persistence::KeepAlive,
            body: None,
            expects_continue: false,
            size: text.len() - "GET /next".len(),
        };
        assert_eq!(parse_complete_head(text), expected);
    }

    #[test]
    fn every_cut_of_a_head_is_incomplete() {
        let text = "\r\nPOST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 7\r\n\r\n";
        for cut in 0..text.len() {
            assert_eq!(parse_head(&text.as_bytes()[..cut]), Ok(None), "cut at {cut}");
        }
        assert_eq!(parse_complete_head(text).size, text.len());
    }

    #[test]
    fn persistence_follows_version_and_connection_field() {
        for (text, persistence) in [
            ("GET / HTTP/1.1\r\n\r\n", Persistence::KeepAlive),
            ("GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", Persistence::KeepAlive),
            ("GET / HTTP/1.1\r\nCONNECTION: upgrade , Close\r\n\r\n", Persistence::Close),
            ("GET / HTTP/1.0\r\n\r\n", Persistence::Close),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", Persistence::KeepAliveTold),
            ("GET / HTTP/1.0\nConnection: keep-alive, close\n\n", Persistence::Close),
        ] {
            assert_eq!(parse_complete_head(text).persistence, persistence, "{text:?}");
        }
    }

    #[test]
    fn bodies_are_framed_by_length_or_chunks() {
        let body = |field: &str| {
            parse_head(format!("POST / HTTP/1.1\r\n{field}\r\n\r\n").as_bytes()).map(|it| it.unwrap().body)
        };
        assert_eq!(body("content-length: 12"), Ok(Some(RequestBody::of_length(12))));
        assert_eq!(body("Content-Length: 0"), Ok(None));
        assert_eq!(body("Content-Length: 3\r\nContent-Length: 3"), Ok(Some(RequestBody::of_length(3))));
        assert_eq!(body("Transfer-Encoding: Chunked"), Ok(Some(RequestBody::chunked())));
        assert_eq!(body("Content-Length: 3\r\nContent-Length: 4"), Err(TWO_LENGTHS));
        assert_eq!(body("Content-Length: 3\r\nTransfer-Encoding: chunked"), Err(TWO_LENGTHS));
        assert_eq!(body("Transfer-Encoding: gzip, chunked"), Err(OTHER_CODING));
        for bad in ["", "-1", "+1", "0x10", "1 2", "18446744073709551616"] {
            assert_eq!(body(&format!("Content-Length: {bad}")), Err(BAD_LENGTH), "{bad:?}");
        }
    }

    #[test]
    fn an_expected_continue_is_noticed() {
        assert!(
            parse_complete_head("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n").expects_continue
        );
    }

    #[test]
    fn a_malformed_first_line_is_refused() {
        for text in
            ["garbage\r\n", "GET /\r\n", "GET / x\r\n", "GET  HTTP/1.1\r\n", "GET /a b HTTP/1.1\r\n", " / HTTP/1.1\n"]
        {
            assert_eq!(parse_rejection(text), NO_REQUEST_LINE, "{text:?}");
        }
        assert_eq!(parse_rejection("PRI * HTTP/2.0\r\n"), OTHER_VERSION);
    }

    #[test]
    fn request_heads_are_limited_to_16_kib() {
        let with_padding = |padding: usize| format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(padding));
        let longest = with_padding(HEAD_BYTES_MAX - with_padding(0).len());
        assert_eq!(parse_complete_head(&longest).size, HEAD_BYTES_MAX);
        assert_eq!(parse_rejection(&with_padding(HEAD_BYTES_MAX - with_padding(0).len() + 1)), TOO_LONG);
        assert_eq!(parse_rejection(&"x".repeat(HEAD_BYTES_MAX)), TOO_LONG);
    }
}
