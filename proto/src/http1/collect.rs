//! Assembles a response head from the pieces in which it arrives.
//!
//! Searches every byte once, however the head is cut. Keeps a head only if it arrives in several pieces, and never
//! keeps a byte of a body. Most heads of a server are identical: a head that equals its predecessor byte for byte is
//! not parsed again.

use std::cell::Cell;
use std::mem::replace;
use std::ops::Range;
use std::rc::Rc;

use super::HEAD_MAX;
use super::head::{Head, StatusLine, unfold};
use crate::Error;

/// A larger buffer is freed after use, so that one long head does not cost memory for the rest of the run.
const KEPT_MAX: usize = 4096;

/// Default limit on the bytes of large incomplete heads that the connections of a thread keep together.
const HEADS_MAX: usize = 64 * 1024 * 1024;

/// A longer head is not compared with the next one.
const USUAL_MAX: usize = 512;

/// Beginning of every head.
const PREFIX: &[u8] = b"HTTP/";

/// Beginnings of a TLS alert or handshake message: its type, before the byte shared by all versions.
const TLS_TYPES: [u8; 2] = [0x15, 0x16];
const TLS_MAJOR: u8 = 3;

/// Collects one head after another.
#[derive(Debug, Default)]
pub(super) struct HeadCollector {
    /// Bytes of this head that arrived before the current input.
    kept: Vec<u8>,
    /// The head's range in the current input, unless it was kept.
    place: Range<usize>,
    /// Length in bytes of the empty lines skipped before this head.
    leading: usize,
    /// The status line and its length, once it has arrived.
    status_line: Option<(StatusLine, usize)>,
    /// Number of bytes of the complete lines.
    lines: usize,
    /// True if the head is complete and kept only for reading.
    is_complete: bool,
    /// The usual head of this connection and its meaning, from the second head on: many connections have only one.
    usual: Option<Box<(Vec<u8>, Head)>>,
    has_read: bool,
    /// The memory shared with other connections.
    heads: HeadBuffer,
    /// This connection's part of the shared memory.
    counted: usize,
}

/// The memory for heads that arrive in pieces, shared by the connections of a thread. A clone counts against the same
/// limit.
#[derive(Clone, Debug)]
pub struct HeadBuffer {
    /// Number of bytes kept.
    kept: Rc<Cell<usize>>,
    max: usize,
}

impl HeadBuffer {
    /// A limit of `max` bytes. Beyond it, an incomplete head fails with [`Error::HeadMemory`] unless it is small.
    pub fn new(max: usize) -> Self {
        Self { kept: Rc::default(), max }
    }
}

impl Default for HeadBuffer {
    fn default() -> Self {
        Self::new(HEADS_MAX)
    }
}

impl Drop for HeadCollector {
    fn drop(&mut self) {
        self.heads.kept.update(|kept| kept - self.counted);
    }
}

impl HeadCollector {
    /// An empty collector, whose memory counts together with that of other connections.
    pub(super) fn new(heads: HeadBuffer) -> Self {
        let mut collector = Self::default();
        collector.heads = heads;
        collector
    }

    /// Forgets the head if it is complete; called with every new input.
    pub(super) fn release_complete(&mut self) {
        if !self.is_complete {
            return;
        }
        if self.kept.capacity() > KEPT_MAX {
            self.kept = Vec::new();
            self.count_memory();
        }
        self.kept.clear();
        self.place = 0..0;
        self.leading = 0;
        self.status_line = None;
        self.lines = 0;
        self.is_complete = false;
    }

    /// Shows a part of the trailers in place of a head, until the next input.
    pub(super) fn show_trailers(&mut self, trailer: Range<usize>) {
        (self.place, self.is_complete) = (trailer, true);
    }

    /// True if a byte of the head arrived before the current input.
    pub(super) fn is_begun(&self) -> bool {
        !self.kept.is_empty()
    }

    /// True if a head has begun and is incomplete.
    pub(super) fn is_partial(&self) -> bool {
        self.is_begun() && !self.is_complete
    }

    /// The complete head or the shown part of the trailers; `input`: the last input of [`Self::take_head`].
    pub(super) fn head<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        match self.is_complete {
            true if self.is_begun() => &self.kept,
            true => input.get(self.place.clone()).unwrap_or_default(),
            false => &[],
        }
    }

    /// The received part of the head, or more of the input if it is not a head; `input`: the last input of
    /// [`Self::take_head`].
    pub(super) fn received_head<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        match self.head(input) {
            [] if self.is_begun() => &self.kept,
            [] => input,
            head => head,
        }
    }

    /// Takes bytes up to the end of the head. Returns the number of bytes taken, and the head if it is complete.
    ///
    /// An error is found at a byte that does not depend on the split of the bytes: the first byte that cannot begin a
    /// head, the end of the status line, the end of the head, or the first byte beyond the limit.
    pub(super) fn take_head(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), Error> {
        if let Some((usual, head)) = self.usual.as_deref()
            && self.leading == 0
            && !self.is_begun()
            && bytes.starts_with(usual)
        {
            self.place = 0..usual.len();
            self.is_complete = true;
            return Ok((usual.len(), Some(*head)));
        }
        self.take_unusual_head(bytes)
    }

    /// [`Self::take_head`] of a head that is not the usual one, or not in one piece.
    #[inline(never)]
    fn take_unusual_head(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), Error> {
        let room = HEAD_MAX - self.leading - self.kept.len();
        let window = &bytes[..bytes.len().min(room)];
        let start = self.skip_empty_lines(window);
        self.check_prefix(&window[start..])?;

        let is_kept = self.is_begun();
        let mut used = start;
        for lf in memchr::memchr_iter(b'\n', &window[start..]) {
            let line_start = replace(&mut used, start + lf + 1);
            if is_kept {
                self.kept.extend_from_slice(&window[line_start..used]);
            }
            let view = if is_kept { &self.kept[..] } else { &window[start..used] };
            let line = &view[replace(&mut self.lines, view.len())..];
            match (self.status_line, line) {
                (None, _) => self.status_line = Some((StatusLine::parse(line)?, line.len())),
                (Some((status_line, length)), b"\n" | b"\r\n") => {
                    self.place = start..used;
                    self.is_complete = true;
                    let head = match Head::parse(status_line, &view[length..]) {
                        Err(Error::HeaderField) => self.parse_folded(&window[start..used], status_line, length)?,
                        head => head?,
                    };
                    if !self.is_begun() {
                        self.remember(&window[start..used], head);
                    }
                    return Ok((used, Some(head)));
                }
                _ => {}
            }
        }
        if window.len() < bytes.len() {
            return Err(Error::HeadTooLong);
        }
        self.kept.extend_from_slice(&window[if is_kept { used } else { start }..]);
        if self.kept.capacity() > KEPT_MAX && self.count_memory() > self.heads.max {
            self.kept = Vec::new();
            self.count_memory();
            return Err(Error::HeadMemory);
        }
        Ok((bytes.len(), None))
    }

    /// Counts the collector's memory. Returns the total of all connections.
    #[cold]
    fn count_memory(&mut self) -> usize {
        let keeps = Some(self.kept.capacity()).filter(|keeps| *keeps > KEPT_MAX).unwrap_or_default();
        let before = replace(&mut self.counted, keeps);
        self.heads.kept.update(|kept| kept - before + keeps);
        self.heads.kept.get()
    }

    /// Reads a complete head that may have folded lines, and keeps it unfolded. `input`: the whole head, unless it has
    /// been kept; `length`: that of its status line.
    #[cold]
    fn parse_folded(&mut self, input: &[u8], status_line: StatusLine, length: usize) -> Result<Head, Error> {
        if !self.is_begun() {
            self.kept.extend_from_slice(input);
        }
        if !unfold(&mut self.kept[length..], 0) {
            return Err(Error::HeaderField);
        }
        Head::parse(status_line, &self.kept[length..])
    }

    /// Remembers a head for comparison with later ones.
    fn remember(&mut self, bytes: &[u8], head: Head) {
        if replace(&mut self.has_read, true) && bytes.len() <= USUAL_MAX {
            let (usual, known) = &mut **self.usual.get_or_insert_with(|| Box::new((Vec::new(), head)));
            usual.clear();
            usual.extend_from_slice(bytes);
            *known = head;
        }
    }

    /// Skips empty lines before the status line (RFC 9112, 2.2). Returns their length in bytes.
    fn skip_empty_lines(&mut self, bytes: &[u8]) -> usize {
        if self.is_begun() {
            return 0;
        }
        let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.leading += empty;
        empty
    }

    /// Checks that bytes which begin a head, or continue a kept one, can be a head.
    pub(super) fn check_prefix(&self, bytes: &[u8]) -> Result<(), Error> {
        if self.kept.iter().chain(bytes).zip(PREFIX).all(|(byte, wanted)| byte == wanted) {
            return Ok(());
        }
        let mut first_two = self.kept.iter().chain(bytes).take(2);
        match (first_two.next(), first_two.next()) {
            (Some(kind), None) if TLS_TYPES.contains(kind) => Ok(()),
            (Some(kind), Some(&TLS_MAJOR)) if TLS_TYPES.contains(kind) => Err(Error::SpeaksTls),
            _ => Err(Error::NotHttp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(bytes: usize) -> Vec<u8> {
        let frame = "HTTP/1.1 200 OK\r\nA: \r\n\r\n";
        frame.replace("A: ", &format!("A: {}", "x".repeat(bytes - frame.len()))).into_bytes()
    }

    #[test]
    fn whole_heads_are_not_copied() {
        let mut collector = HeadCollector::default();
        let input = head_of(1000);
        assert!(matches!(collector.take_head(&input), Ok((1000, Some(_)))));
        assert_eq!(collector.head(&input).as_ptr(), input.as_ptr());
        assert_eq!(collector.kept.capacity(), 0);
    }

    #[test]
    fn small_buffers_are_reused_and_large_ones_freed() {
        for (bytes, is_used_again) in [(1000, true), (KEPT_MAX + 1, false)] {
            let mut collector = HeadCollector::default();
            let input = head_of(bytes);
            assert!(matches!(collector.take_head(&input[..bytes - 1]), Ok((_, None))));
            assert!(matches!(collector.take_head(&input[bytes - 1..]), Ok((1, Some(_)))));
            assert_eq!(collector.head(b"\n"), input);
            collector.release_complete();
            assert_eq!(collector.kept.capacity() > 0, is_used_again, "{bytes} bytes");
        }
    }

    #[test]
    fn remembered_heads_read_like_new_ones() {
        let mut collector = HeadCollector::default();
        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello";
        let other = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello!";
        for bytes in [&ok[..], ok, ok, other, ok, other, other] {
            let expected = HeadCollector::default().take_head(bytes).unwrap();
            assert_eq!(collector.take_head(bytes).unwrap(), expected);
            assert_eq!(collector.head(bytes), &bytes[..expected.0]);
            collector.release_complete();
            assert!(collector.head(bytes).is_empty());
        }
        // A head in pieces is parsed as usual.
        assert_eq!(collector.take_head(&other[..20]).unwrap(), (20, None));
        assert_eq!(collector.take_head(&other[20..]).unwrap().1, HeadCollector::default().take_head(other).unwrap().1);
    }

    #[test]
    fn bytes_after_heads_are_not_taken() {
        let mut collector = HeadCollector::default();
        assert!(matches!(collector.take_head(b"\r\nHTTP/1.1 200 OK\r\nA: b"), Ok((23, None))));
        assert!(matches!(collector.take_head(b"c\r\n\r\nbody"), Ok((5, Some(_)))));
        assert_eq!(collector.kept, b"HTTP/1.1 200 OK\r\nA: bc\r\n\r\n");
    }
}
