//! A header block that arrives in pieces.

use std::ops::Range;

use super::frame::{FrameHeader, flag};
use crate::Breach;
use crate::http1::HEAD_MAX;

/// Largest number of frames of a block.
const FRAMES_MAX: u8 = 128;

/// Blocks up to this size are kept whatever other connections keep.
const SMALL: usize = 4096;

/// The received part of a header block.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The payloads of the block's frames so far. Padding and priority of the first frame are removed when it is
    /// complete.
    bytes: Vec<u8>,
    /// The stream of an unfinished block.
    pub(super) stream: Option<u32>,
    pub(super) ends: bool,
    frames: u8,
}

impl Block {
    /// Begins a frame of the block.
    pub(super) fn begin_frame(&mut self, frame: FrameHeader) -> Result<(), Breach> {
        if self.stream.is_none() {
            self.ends = frame.has(flag::END_STREAM);
            self.frames = 0;
        }
        self.stream = Some(frame.stream);
        self.frames += 1;
        if self.frames > FRAMES_MAX {
            return Err(Breach::BlockFrames);
        }
        if self.bytes.len() + frame.length as usize > HEAD_MAX { Err(Breach::BlockTooLong) } else { Ok(()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Ends a complete block that was never kept.
    pub(super) fn end_block(&mut self) {
        self.stream = None;
    }

    /// Keeps bytes from a frame, with `left` more to come. `kept`: number of bytes that all connections keep, to be
    /// updated, and limited to `kept_max`.
    pub(super) fn keep_bytes(
        &mut self,
        bytes: &[u8],
        left: u32,
        kept: &mut usize,
        kept_max: usize,
    ) -> Result<(), Breach> {
        let before = self.bytes.capacity();
        self.bytes.reserve_exact(bytes.len() + left as usize);
        *kept += self.bytes.capacity() - before;
        if *kept > kept_max && self.bytes.capacity() > SMALL {
            return Err(Breach::BlockMemory);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Removes padding and priority from the complete first frame.
    pub(super) fn strip_padding(&mut self, frame: FrameHeader) -> Result<(), Breach> {
        let fragment = fragment(frame, &self.bytes)?;
        self.bytes.truncate(fragment.end);
        self.bytes.drain(..fragment.start);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees the kept bytes of an abandoned block.
    pub(super) fn free_bytes(&mut self, kept: &mut usize) {
        *kept -= self.bytes.capacity();
        self.bytes = Vec::new();
    }

    /// Takes the kept bytes of a complete block.
    pub(super) fn take_bytes(&mut self, kept: &mut usize) -> Vec<u8> {
        self.stream = None;
        *kept -= self.bytes.capacity();
        std::mem::take(&mut self.bytes)
    }
}

/// The range of the block, or of its beginning, in the payload of HEADERS.
pub(super) fn fragment(frame: FrameHeader, payload: &[u8]) -> Result<Range<usize>, Breach> {
    let mut start = 0;
    let mut end = payload.len();
    if frame.has(flag::PADDED) {
        let padding = *payload.first().ok_or(Breach::FrameLength)?;
        start += 1;
        end = end.checked_sub(padding.into()).ok_or(Breach::Padding)?;
    }
    if frame.has(flag::PRIORITY) {
        start += 5;
    }
    match (start <= end, frame.has(flag::PADDED)) {
        (true, _) => Ok(start..end),
        (false, true) => Err(Breach::Padding),
        (false, false) => Err(Breach::FrameLength),
    }
}
