//! What a request says, and its bytes.

use std::ops::Range;
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
    /// What it says, but for the body, of which there is only one copy: see [`Request::body`]. Unknown where only the
    /// bytes were given.
    pub parts: Option<Rc<Parts>>,
    /// Bytes among which its HTTP/1.1 bytes are, written once.
    pub(crate) wire: Rc<[u8]>,
    /// Where among them; the last ones are the body.
    pub(crate) range: Range<usize>,
    /// How long the body is, in bytes.
    body_length: usize,
    /// What the method says about the body of the answer.
    pub(crate) answer: http1::Answer,
}

impl Request {
    /// Makes a request ready.
    pub fn new(mut parts: Parts) -> Self {
        let (wire, answer): (Rc<[u8]>, _) = (http1::encode(&parts).into(), http1::Answer::to(&parts.method));
        let body_length = std::mem::take(&mut parts.body).len();
        let range = 0..wire.len();
        Self { parts: Some(Rc::new(parts)), wire, range, body_length, answer }
    }

    /// A request whose HTTP/1.1 bytes somebody else wrote: where they lie in `wire` and what they are, as
    /// [`http1::outline`] found out.
    pub fn from_wire(wire: &Rc<[u8]>, outline: http1::Outline) -> Self {
        let http1::Outline { range, body_length, answer } = outline;
        Self { parts: None, wire: Rc::clone(wire), range, body_length, answer }
    }

    /// The same request as the last one on its connection: HTTP/1.1 tells the server so. Costs a copy, unless it says so
    /// already.
    pub fn closing(&self) -> Self {
        let (head, body) = self.wire().split_at(self.range.len() - self.body_length);
        let Some(head) = http1::closing(head) else { return self.clone() };
        let wire: Rc<[u8]> = [&head, body].concat().into();
        Self { range: 0..wire.len(), wire, ..self.clone() }
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        let wire = self.wire();
        &wire[wire.len() - self.body_length..]
    }

    /// Its HTTP/1.1 bytes.
    pub fn wire(&self) -> &[u8] {
        &self.wire[self.range.clone()]
    }
}
