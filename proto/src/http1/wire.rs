//! A request encoded as HTTP/1: bytes that are written once and sent without copying.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use super::encode::{closing_head, encode};
use super::outline::Outline;
use super::{Request, ResponseKind};
use crate::RequestParts;

/// One request within constant bytes. Cloning it copies none of them.
#[derive(Clone, Debug)]
pub struct Wire {
    pub(super) bytes: Rc<[u8]>,
    /// The request's range; the last bytes are the body.
    pub(super) range: Range<usize>,
    body_length: usize,
    /// Effect of the method on the response's body.
    pub(super) response: ResponseKind,
    /// The closing form of this request, once needed.
    last: OnceCell<Rc<Wire>>,
}

impl Wire {
    /// Encodes `parts`, copying the body.
    pub fn from_parts(parts: &RequestParts) -> Self {
        let bytes: Rc<[u8]> = encode(parts).into();
        Self {
            range: 0..bytes.len(),
            bytes,
            body_length: parts.body.len(),
            response: ResponseKind::of_method(&parts.method),
            last: OnceCell::new(),
        }
    }

    /// A request from another source, found in `bytes` by [`outline`](super::outline()). Shares the bytes instead of
    /// copying them.
    pub fn from_outline(bytes: &Rc<[u8]>, Outline { range, body_length, response }: Outline) -> Self {
        Self { bytes: Rc::clone(bytes), range, body_length, response, last: OnceCell::new() }
    }

    /// The request's bytes: head and body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// The request's body; may be empty.
    pub fn body(&self) -> &[u8] {
        let bytes = self.bytes();
        &bytes[bytes.len() - self.body_length..]
    }

    /// The head, including the empty line, and the body.
    pub(crate) fn head_and_body(&self) -> (&[u8], &[u8]) {
        self.bytes().split_at(self.range.len() - self.body_length)
    }

    /// The body, not copied.
    pub(crate) fn shared_body(&self) -> (Rc<[u8]>, Range<usize>) {
        (Rc::clone(&self.bytes), self.range.end - self.body_length..self.range.end)
    }

    /// Effect of the method on the response's body.
    pub(crate) fn response(&self) -> ResponseKind {
        self.response
    }

    /// This request as the last one on its connection: with `Connection: close` in place of any other `Connection`
    /// field. Encoded once, then kept.
    pub fn closing_form(&self) -> &Self {
        self.last.get_or_init(|| {
            let (head, body) = self.head_and_body();
            let Some(head) = closing_head(head) else { return Rc::new(self.clone()) };
            let bytes: Rc<[u8]> = [&head, body].concat().into();
            Rc::new(Self { range: 0..bytes.len(), bytes, ..self.clone() })
        })
    }
}

impl Request {
    /// The HTTP/1 encoding, in the closing form if the request is the last on its connection.
    pub(super) fn wire(&self, is_last: bool) -> &Wire {
        let wire = match self {
            Self::Parts(said) => said.http1.get_or_init(|| Wire::from_parts(&said.parts)),
            Self::Http1(encoded) => &encoded.wire,
        };
        if is_last { wire.closing_form() } else { wire }
    }
}
