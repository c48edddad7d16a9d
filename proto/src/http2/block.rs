//! A header block that arrives in pieces.

use std::ops::Range;

use super::frame::{FrameHeader, flag};
use crate::Breach;
use crate::http1::HEAD_MAX;

/// In how many frames a block may come.
const FRAMES_MAX: u8 = 128;

/// A block is small enough to be kept whatever other connections keep.
const SMALL: usize = 4096;

/// The part of a header block that has arrived.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The payloads of its frames so far; padding and priority in the first one are removed when it is complete.
    bytes: Vec<u8>,
    /// The stream of a block that has begun, until its last frame.
    pub(super) stream: Option<u32>,
    pub(super) ends: bool,
    frames: u8,
}

impl Block {
    /// A frame of the block begins.
    pub(super) fn begin(&mut self, frame: FrameHeader) -> Result<(), Breach> {
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

    /// Ends a complete block of which nothing was kept.
    pub(super) fn end(&mut self) {
        self.stream = None;
    }

    /// Keeps bytes of a frame of which `left` more are to come. `kept`: how many bytes all connections keep, which must
    /// not be more than `kept_max`.
    pub(super) fn keep(&mut self, bytes: &[u8], left: u32, kept: &mut usize, kept_max: usize) -> Result<(), Breach> {
        let before = self.bytes.capacity();
        self.bytes.reserve_exact(bytes.len() + left as usize);
        *kept += self.bytes.capacity() - before;
        if *kept > kept_max && self.bytes.capacity() > SMALL {
            return Err(Breach::BlockMemory);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The first frame is complete: removes all but the block.
    pub(super) fn strip(&mut self, frame: FrameHeader) -> Result<(), Breach> {
        let fragment = fragment(frame, &self.bytes)?;
        self.bytes.truncate(fragment.end);
        self.bytes.drain(..fragment.start);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees the kept bytes, because the block will not be completed.
    pub(super) fn free(&mut self, kept: &mut usize) {
        *kept -= self.bytes.capacity();
        self.bytes = Vec::new();
    }

    /// Takes the bytes that were kept: the block is complete.
    pub(super) fn take(&mut self, kept: &mut usize) -> Vec<u8> {
        self.stream = None;
        *kept -= self.bytes.capacity();
        std::mem::take(&mut self.bytes)
    }
}

/// Where the block, or its beginning, is in the payload of HEADERS.
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
