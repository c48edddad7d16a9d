//! The bytes of one request and its response on the wire, kept only for `--once`.

use onrush_proto::Nanos;

/// The longest part of a body that is kept, in bytes.
pub const BODY_MAX: usize = 1024;

/// The longest part of a request that is kept, in bytes.
pub const SENT_MAX: usize = 16 * 1024;

/// The longest part of the heads of a response that is kept, in bytes, and of its trailers.
pub const HEAD_MAX: usize = 16 * 1024;

/// One request and its response, with the moments that matter.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The beginning of what was sent.
    pub sent: Vec<u8>,
    /// Whether the request is among them.
    pub has_request: bool,
    /// The number of bytes that were sent.
    pub sent_bytes: u64,
    /// The beginning of the heads received, interim ones first.
    pub head: Vec<u8>,
    /// The length of the heads, in bytes.
    pub head_bytes: u64,
    /// The beginning of the body, without its framing.
    pub body: Vec<u8>,
    /// The length of the whole body, in bytes.
    pub body_bytes: u64,
    /// The beginning of the trailers.
    pub trailers: Vec<u8>,
    /// When the connect began.
    pub connecting: Nanos,
    /// When the connection was established.
    pub connected: Nanos,
    /// When the first byte was handed to the kernel.
    pub first_sent: Nanos,
    /// When the first byte of the response arrived.
    pub first_received: Option<Nanos>,
    /// When the response was complete.
    pub completed: Option<Nanos>,
    /// The checks that the response failed, a bit for each by its number.
    pub failed_checks: u32,
}

impl Transcript {
    /// Records bytes handed to the kernel; `is_request`: a request is among them, or was before.
    pub fn send(&mut self, bytes: &[u8], is_request: bool, at: Nanos) {
        if !std::mem::replace(&mut self.has_request, is_request) {
            self.first_sent = at;
        }
        let room = SENT_MAX - self.sent.len();
        self.sent.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.sent_bytes += bytes.len() as u64;
    }

    /// Records a head.
    pub fn head(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.head_bytes += bytes.len() as u64;
    }

    /// Records a part of the trailers.
    pub fn trailers(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.trailers.len();
        self.trailers.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Records a part of the body.
    pub fn data(&mut self, bytes: &[u8]) {
        let room = BODY_MAX - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.body_bytes += bytes.len() as u64;
    }
}
