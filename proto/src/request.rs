//! The content of a request, independent of the protocol that encodes it.

use std::any::Any;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::{http1, http2};

/// A request as plain data, which can be stored and sent to another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestParts {
    /// The method, for instance `GET`.
    pub method: String,
    /// The request target as sent, usually path and query.
    pub target: String,
    /// Names and values in the order sent, including `Host`.
    pub headers: Vec<(String, String)>,
    /// The body, shared by all threads. Its length is not added to `headers` here; see [`crate::http1::encode`].
    pub body: Arc<[u8]>,
}

/// A request that one thread sends any number of times. Cloning it copies no bytes.
#[derive(Clone, Debug)]
pub enum Request {
    /// Given in parts; each protocol encodes them once in its own form.
    Parts(Rc<CachedRequest>),
    /// Already encoded as HTTP/1 elsewhere. Other protocols parse its head and send the fields in their own form.
    Http1(Rc<Encoded>),
}

/// The parts of a request, and their encodings so far, one per protocol.
#[derive(Debug)]
pub struct CachedRequest {
    /// The request's content, as it was given.
    pub parts: RequestParts,
    pub(crate) http1: OnceCell<http1::Wire>,
    pub(crate) http2: OnceCell<Rc<http2::Http2Request>>,
}

/// A request in HTTP/1, and its encodings in other protocols so far.
#[derive(Debug)]
pub struct Encoded {
    pub(crate) wire: http1::Wire,
    pub(crate) http2: OnceCell<Rc<http2::Http2Request>>,
    remark: Option<Remark>,
}

/// A value that the source attaches to a request and gets back with the response. It is not sent.
#[derive(Clone)]
pub struct Remark(pub Rc<dyn Any>);

impl fmt::Debug for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remark")
    }
}

impl Encoded {
    /// The request as HTTP/1, head and body.
    pub fn bytes(&self) -> &[u8] {
        self.wire.bytes()
    }
}

impl From<http1::Wire> for Request {
    fn from(wire: http1::Wire) -> Self {
        Self::Http1(Rc::new(Encoded { wire, http2: OnceCell::new(), remark: None }))
    }
}

impl Request {
    /// A request with this content, encoded when it is first sent.
    pub fn new(parts: RequestParts) -> Self {
        Self::Parts(Rc::new(CachedRequest { parts, http1: OnceCell::new(), http2: OnceCell::new() }))
    }

    /// True if one of the two requests is a clone of the other. Requests with equal contents made separately are not
    /// the same.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Parts(one), Self::Parts(two)) => Rc::ptr_eq(one, two),
            (Self::Http1(one), Self::Http1(two)) => Rc::ptr_eq(one, two),
            _ => false,
        }
    }

    /// The request with this remark. A request given in parts cannot have one and is returned without it.
    #[must_use]
    pub fn with_remark(&self, remark: Remark) -> Self {
        match self {
            Self::Parts(_) => self.clone(),
            Self::Http1(encoded) => Self::Http1(Rc::new(Encoded {
                wire: encoded.wire.clone(),
                http2: encoded.http2.clone(),
                remark: Some(remark),
            })),
        }
    }

    /// The source's remark on the request, if it has one.
    pub fn remark(&self) -> Option<&Remark> {
        match self {
            Self::Parts(_) => None,
            Self::Http1(encoded) => encoded.remark.as_ref(),
        }
    }

    /// The request's body; empty if it has none.
    pub fn body(&self) -> &[u8] {
        match self {
            Self::Parts(said) => &said.parts.body,
            Self::Http1(encoded) => encoded.wire.body(),
        }
    }
}
