//! What a request says, and its bytes.

use std::rc::Rc;

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
    /// The body. Its length is not added to `headers` here; see [`crate::http1::encode`].
    pub body: Vec<u8>,
}

/// A request made ready to be sent any number of times by one thread.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it says, but for the body, of which there is only one copy: see [`Request::body`].
    pub parts: Rc<Parts>,
    /// Its HTTP/1.1 bytes, written once; they end with the body.
    pub(crate) wire: Rc<[u8]>,
    /// How long the body is, in bytes.
    body_length: usize,
    /// What the method says about the body of the answer.
    pub(crate) answer: http1::Answer,
}

impl Request {
    /// Makes a request ready.
    pub fn new(mut parts: Parts) -> Self {
        let (wire, answer) = (http1::encode(&parts).into(), http1::Answer::to(&parts.method));
        let body_length = std::mem::take(&mut parts.body).len();
        Self { parts: Rc::new(parts), wire, body_length, answer }
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        &self.wire[self.wire.len() - self.body_length..]
    }

    /// Its HTTP/1.1 bytes.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}
