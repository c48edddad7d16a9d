//! Frames (RFC 9113, 4 and 6): their header, and the small frames written by a client.

use crate::Code;

/// The length of a frame's header.
pub(super) const HEADER: usize = 9;

/// The largest payload that every peer accepts; also the largest sent.
pub(super) const PAYLOAD_USUAL: usize = 16 * 1024;

/// Kinds of frames.
pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames; others are ignored.
pub(super) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeader {
    pub(super) fn parse(bytes: [u8; HEADER]) -> Self {
        let [a, b, c, kind, flags, s, t, u, v] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // The highest bit is reserved and ignored.
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        }
    }

    pub(super) fn bytes(self) -> [u8; HEADER] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame.
pub(super) fn write(frames: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    frames.extend_from_slice(&FrameHeader { length: payload.len() as u32, kind, flags, stream }.bytes());
    frames.extend_from_slice(payload);
}

/// Appends a RST_STREAM.
pub(super) fn write_reset(frames: &mut Vec<u8>, stream: u32, code: Code) {
    write(frames, kind::RST_STREAM, 0, stream, &code.0.to_be_bytes());
}

/// Appends a GOAWAY. A server opens no streams, so none was processed.
pub(super) fn write_goaway(frames: &mut Vec<u8>, code: Code) {
    let [a, b, c, d] = code.0.to_be_bytes();
    write(frames, kind::GOAWAY, 0, 0, &[0, 0, 0, 0, a, b, c, d]);
}

/// Appends a WINDOW_UPDATE.
pub(super) fn write_credit(frames: &mut Vec<u8>, stream: u32, bytes: u32) {
    write(frames, kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
}
