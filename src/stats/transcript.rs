//! The bytes of one request on the wire, kept only for `--once`.

use onrush_proto::Nanos;

/// The most of a body that is kept, in bytes.
pub const BODY_MAX: usize = 1024;

/// The most of a request that is kept, in bytes.
pub const SENT_MAX: usize = 16 * 1024;

/// The most of the heads of an answer that is kept, in bytes.
pub const HEAD_MAX: usize = 16 * 1024;

/// One request and its answer, with the moments that matter.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The beginning of what was sent.
    pub sent: Vec<u8>,
    /// How much was sent, in bytes.
    pub sent_bytes: u64,
    /// The beginning of the heads that came, interim ones first.
    pub head: Vec<u8>,
    /// How long they were, in bytes.
    pub head_bytes: u64,
    /// The beginning of the body, freed of its framing.
    pub body: Vec<u8>,
    /// The length of the whole body, in bytes.
    pub body_bytes: u64,
    /// When the connect began.
    pub connecting: Nanos,
    /// When the connection was there.
    pub connected: Nanos,
    /// When the first byte was handed to the kernel.
    pub first_sent: Nanos,
    /// When the first byte of the answer came.
    pub first_received: Option<Nanos>,
    /// When the answer was complete.
    pub completed: Option<Nanos>,
}

impl Transcript {
    /// Bytes were handed over.
    pub fn send(&mut self, bytes: &[u8], at: Nanos) {
        if self.sent_bytes == 0 {
            self.first_sent = at;
        }
        let room = SENT_MAX - self.sent.len();
        self.sent.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.sent_bytes += bytes.len() as u64;
    }

    /// A head came.
    pub fn head(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.head_bytes += bytes.len() as u64;
    }

    /// A part of the body came.
    pub fn data(&mut self, bytes: &[u8]) {
        let room = BODY_MAX - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.body_bytes += bytes.len() as u64;
    }
}
