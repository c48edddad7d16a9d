//! The content of a request, independent of the protocol that encodes it.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::http1;

/// What a request says, as plain data: it can be stored and sent to another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The method, for instance `GET`.
    pub method: String,
    /// The request target: path and query.
    pub target: String,
    /// Names and values in the order they are sent, `Host` among them.
    pub headers: Vec<(String, String)>,
    /// The body, which all threads share. Its length is not added to `headers` here; see [`crate::http1::encode`].
    pub body: Arc<[u8]>,
}

/// A request as one thread sends it any number of times. Cloning it copies no byte.
#[derive(Clone, Debug)]
pub enum Request {
    /// Said in parts, which each protocol writes in its own form, once.
    Parts(Rc<Said>),
    /// HTTP/1 that another program wrote. Another protocol cannot send it.
    Http1(http1::Wire),
}

/// Parts, and the forms in which protocols have written them so far, each once.
#[derive(Debug)]
pub struct Said {
    /// What the request says.
    pub parts: Parts,
    /// How HTTP/1 says it.
    pub(crate) http1: OnceCell<http1::Wire>,
}

impl Request {
    /// A request that says this.
    pub fn new(parts: Parts) -> Self {
        Self::Parts(Rc::new(Said { parts, http1: OnceCell::new() }))
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        match self {
            Self::Parts(said) => &said.parts.body,
            Self::Http1(wire) => wire.body(),
        }
    }
}
