//! A request in HTTP/2 form: a header block with the same meaning on every connection, and a body.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::hpack::{self, Secrecy};
use super::written::FieldCache;
use crate::http1::{ResponseKind, Wire, decode_chunked, needs_length};
use crate::{Fields, RequestParts, transmit};

/// An encoded request.
#[derive(Debug)]
pub(crate) struct Http2Request {
    pub(super) block: Box<[u8]>,
    body: MessageBody,
    pub(super) response: ResponseKind,
}

/// The bytes of a body, shared if possible.
#[derive(Debug)]
enum MessageBody {
    Parts(Arc<[u8]>),
    Wire(Rc<[u8]>, Range<usize>),
    Own(Box<[u8]>),
}

impl Http2Request {
    pub(super) fn from_parts(parts: &RequestParts, is_https: bool) -> Self {
        let length = needs_length(parts).then(|| parts.body.len().to_string());
        let fields = parts.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes().trim_ascii()));
        let length = length.iter().map(|length| (&b"content-length"[..], length.as_bytes()));
        let head = RequestLine { method: parts.method.as_bytes(), target: parts.target.as_bytes(), is_https };
        let mut block = Vec::new();
        let is_chunked = head.write(fields.chain(length), &mut |name, value| put(name, value, &mut block));
        let unchunked = is_chunked.then(|| decode_chunked(&parts.body)).flatten();
        Self {
            block: block.into(),
            body: unchunked
                .map_or_else(|| MessageBody::Parts(Arc::clone(&parts.body)), |body| MessageBody::Own(body.into())),
            response: ResponseKind::of_method(&parts.method),
        }
    }

    /// Encodes a request written as HTTP/1.
    pub(super) fn from_wire(wire: &Wire, is_https: bool, written: &mut FieldCache, block: &mut Vec<u8>) -> Self {
        let (head, body) = wire.head_and_body();
        let head = &head[head.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..];
        let line_end = memchr::memchr(b'\n', head).map_or(head.len(), |lf| lf + 1);
        let (line, lines) = head.split_at(line_end);
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\r' | b'\n')).filter(|word| !word.is_empty());
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        block.clear();
        let head = RequestLine { method, target, is_https };
        let is_chunked =
            head.write(Fields::from_lines(lines), &mut |name, value| written.append_field(name, value, block, put));
        let unchunked = is_chunked.then(|| decode_chunked(body)).flatten();
        let (bytes, range) = wire.shared_body();
        Self {
            block: block[..].into(),
            body: unchunked.map_or(MessageBody::Wire(bytes, range), |body| MessageBody::Own(body.into())),
            response: wire.response(),
        }
    }
}

impl transmit::BodyBytes for Http2Request {
    fn body(&self) -> &[u8] {
        match &self.body {
            MessageBody::Parts(bytes) => bytes,
            MessageBody::Wire(bytes, range) => &bytes[range.clone()],
            MessageBody::Own(bytes) => bytes,
        }
    }
}

/// A request line with its parts.
struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    is_https: bool,
}

impl<'a> RequestLine<'a> {
    /// Passes on the pseudo-header fields and all fields that are not about the connection. Returns true if the body is
    /// chunked, for which HTTP/2 has no use.
    fn write(
        self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        put: &mut impl FnMut(&[u8], &[u8]),
    ) -> bool {
        let mut host = None;
        let mut is_chunked = false;
        let mut of_connection: Vec<&[u8]> = Vec::new();
        for (name, value) in fields.clone() {
            if name.eq_ignore_ascii_case(b"host") {
                host.get_or_insert(value);
            } else if name.eq_ignore_ascii_case(b"connection") {
                of_connection.extend(value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii));
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
            }
        }
        let RequestTarget { scheme, authority, path } = self.split();
        put(b":method", self.method);
        if self.method != b"CONNECT" {
            put(b":scheme", scheme);
        }
        if let Some(authority) = authority.or(host).filter(|authority| !authority.is_empty()) {
            put(b":authority", authority);
        }
        if self.method != b"CONNECT" {
            put(b":path", &path);
        }
        for (name, value) in fields {
            let dropped = CONNECTION.iter().chain(&of_connection);
            // The value of `Host` is sent as `:authority` instead.
            let is_dropped = name.eq_ignore_ascii_case(b"host")
                || dropped.into_iter().any(|dropped| dropped.eq_ignore_ascii_case(name))
                || (name.eq_ignore_ascii_case(b"te") && !value.eq_ignore_ascii_case(b"trailers"));
            if !is_dropped {
                put(name, value);
            }
        }
        is_chunked
    }

    /// Splits the target: a path, `*`, a URL or, for a tunnel, host and port.
    fn split(&self) -> RequestTarget<'a> {
        let scheme: &[u8] = if self.is_https { b"https" } else { b"http" };
        if self.method == b"CONNECT" {
            return RequestTarget { scheme, authority: Some(self.target), path: Cow::default() };
        }
        let path = Cow::from(if self.target.is_empty() { b"/" } else { self.target });
        if self.target.first().is_none_or(|byte| !byte.is_ascii_alphabetic()) {
            return RequestTarget { scheme, authority: None, path };
        }
        let Some(colon) = memchr::memmem::find(self.target, b"://") else {
            return RequestTarget { scheme, authority: None, path };
        };
        let (scheme, rest) = (&self.target[..colon], &self.target[colon + 3..]);
        let path_at = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(path_at);
        let path = match path {
            [] if self.method == b"OPTIONS" => Cow::from(&b"*"[..]),
            [b'/', ..] => Cow::from(path),
            _ => Cow::from([b"/", path].concat()),
        };
        RequestTarget { scheme, authority: Some(authority), path }
    }
}

/// The parts of a request target.
struct RequestTarget<'a> {
    scheme: &'a [u8],
    /// The authority, if the target contains one.
    authority: Option<&'a [u8]>,
    path: Cow<'a, [u8]>,
}

/// True if HTTP/2 forbids a field with this name, in any case, so that requests omit it (RFC 9113, 8.2.2).
pub fn is_forbidden_field(name: &str) -> bool {
    CONNECTION.iter().any(|dropped| dropped.eq_ignore_ascii_case(name.as_bytes()))
}

/// Connection-specific fields, which HTTP/2 does not have.
const CONNECTION: [&[u8]; 6] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"http2-settings"];

/// Fields whose values are credentials.
const SECRET: [&[u8]; 3] = [b"authorization", b"proxy-authorization", b"cookie"];

/// Appends a field, its name in lower case.
fn put(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    let name = name.to_ascii_lowercase();
    let secrecy = if SECRET.contains(&&name[..]) { Secrecy::Secret } else { Secrecy::Open };
    hpack::encode(&name, value, secrecy, block);
}
