//! The position of the next byte in the server's frames.
//!
//! Frames are read in place. Bytes are kept only if they must be seen whole and arrive in pieces: a header, or a few
//! bytes of a small frame.

use super::frame::{FrameHeader, HEADER};

/// The position in the current frame.
#[derive(Debug)]
pub(super) struct FrameCursor {
    pub(super) frame: FrameHeader,
    /// Number of payload bytes to come.
    pub(super) left: u32,
    /// Number of padding bytes among them.
    pub(super) padding: u32,
    pub(super) place: FramePart,
    /// An unfinished unit, and the number of its bytes received.
    part: [u8; HEADER],
    part_length: u8,
}

/// The place of the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramePart {
    /// The header of the next frame.
    Header,
    /// The padding length of DATA.
    PadLength,
    /// Data of a body.
    Data,
    /// A header block, or its padding.
    Block,
    /// A setting.
    Setting,
    /// The reason of a RST_STREAM, or the increment of a WINDOW_UPDATE.
    Number,
    /// A PING, or the beginning of a GOAWAY.
    Pair,
    /// The explanation in a GOAWAY.
    Reason,
    /// Ignored bytes, up to the end of the frame.
    Rest,
}

impl FrameCursor {
    pub(super) fn new() -> Self {
        Self {
            frame: FrameHeader::default(),
            left: 0,
            padding: 0,
            place: FramePart::Header,
            part: [0; HEADER],
            part_length: 0,
        }
    }

    pub(super) fn begin(&mut self, frame: FrameHeader) {
        self.frame = frame;
        self.left = frame.length;
        self.padding = 0;
        self.place = FramePart::Rest;
    }

    /// Takes up to `N` bytes. Returns the number taken, and all `N` once they have arrived.
    pub(super) fn take_unit<const N: usize>(&mut self, bytes: &[u8]) -> (usize, Option<[u8; N]>) {
        if self.part_length == 0
            && let Some(unit) = bytes.first_chunk()
        {
            return (N, Some(*unit));
        }
        let have = usize::from(self.part_length);
        let taken = bytes.len().min(N - have);
        self.part[have..have + taken].copy_from_slice(&bytes[..taken]);
        self.part_length += taken as u8;
        let unit = if have + taken == N { self.part.first_chunk().copied() } else { None };
        if unit.is_some() {
            self.part_length = 0;
        }
        (taken, unit)
    }

    /// The beginning of an incomplete header or other unit.
    pub(super) fn incomplete_unit(&self) -> &[u8] {
        &self.part[..self.part_length.into()]
    }

    /// [`Self::take_unit`] of the payload.
    pub(super) fn take_payload_unit<const N: usize>(&mut self, bytes: &[u8]) -> (usize, Option<[u8; N]>) {
        let (taken, unit) = self.take_unit(bytes);
        self.left -= taken as u32;
        (taken, unit)
    }

    /// Takes the available payload except its last `kept` bytes. Returns the number of bytes taken.
    pub(super) fn take_payload(&mut self, bytes: &[u8], kept: u32) -> usize {
        let taken = bytes.len().min((self.left - kept) as usize);
        self.left -= taken as u32;
        taken
    }
}
