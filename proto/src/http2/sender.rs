//! A connection's output: its greeting, small frames, the HEADERS of requests and their bodies, in this order.
//!
//! Bodies take turns, one frame each, while the server's windows allow.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::buffers::LARGE;
use super::frame::{self, FrameHeader, HEADER, PAYLOAD_USUAL, flag, kind};
use super::hpack::{EMPTY_TABLE, SIZE_USUAL};
use super::message::Http2Request;
use super::seen::Http2Counts;
use super::settings::{PeerSettings, WINDOW_MAX, WINDOW_USUAL};
use super::streams::Streams;
use crate::transmit::{BodyBytes, Payload};
use crate::{Breach, Nanos};

/// Limit on replies to SETTINGS and PING that wait for the transport. A server that causes more does not read them.
const REPLIES_MAX: u32 = 250;

/// Limit on waiting bytes of control frames without a request in flight: room for the largest number of replies.
const CONTROL_MAX: usize = 17 * REPLIES_MAX as usize;

/// Additional limit per request: a server that keeps to its windows causes no more than eight WINDOW_UPDATEs before it
/// has to read them ([`CREDITS_MAX`](super::input::CREDITS_MAX)), and a RST_STREAM.
const CONTROL_PER_STREAM: usize = 9 * 13;

/// The smallest piece of a body sent without a copy: copying fewer bytes costs less.
const VECTORED_MIN: usize = 4096;

/// Number of pieces of bodies sent at once without a copy.
const VECTORED_AT_ONCE: usize = 16;

/// The smallest piece of a body to send, unless it is the last. A smaller window may still grow.
const PIECE_MIN: usize = 1024;

/// Time to wait for a smaller window to grow, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000;

/// The output of one connection.
#[derive(Debug)]
pub(super) struct Sender {
    is_greeted: bool,
    /// Small frames that wait for the transport.
    control: Vec<u8>,
    /// Number of replies among the small frames.
    replies: u32,
    /// The ID of the first stream whose HEADERS have not been written.
    next: u32,
    /// Number of open streams without HEADERS.
    waiting: u32,
    /// The streams with more of a body to send, in the order of their turns. Ended streams stay until their turn, or
    /// until they outnumber the others.
    uploads: VecDeque<u32>,
    /// Number of open streams among the uploads.
    uploading: usize,
    /// Number of bytes of DATA that may be sent on the connection.
    window: i64,
    /// Number of bytes written, and number of those accepted by the transport.
    written: u64,
    accepted: u64,
    table_update: TableUpdate,
    /// Time since which bodies have been waiting for windows.
    blocked_since: Option<Nanos>,
    /// Deadline of the wait for a larger window.
    patient_until: Option<Nanos>,
    is_impatient: bool,
    /// True if a body waited for a larger window in the last round of turns.
    has_small: bool,
    /// True if all bodies have had their turn in vain, and would again.
    is_stuck: bool,
}

/// Progress of the bodies to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bodies {
    /// There are no bodies to send.
    None,
    /// Some DATA was written.
    Sent,
    /// There is no window for any body, or only small windows that may grow.
    Blocked,
    /// There was no room in the buffer.
    Full,
}

/// State of the update that informs the server that its table of our fields is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableUpdate {
    /// Not needed: the table still has its initial size.
    None,
    /// Sent with the next header block.
    Due,
    /// Sent; no later size is smaller.
    Done,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            is_greeted: false,
            control: Vec::new(),
            replies: 0,
            next: 1,
            waiting: 0,
            uploads: VecDeque::new(),
            uploading: 0,
            window: WINDOW_USUAL.into(),
            written: 0,
            accepted: 0,
            table_update: TableUpdate::None,
            blocked_since: None,
            patient_until: None,
            is_impatient: false,
            has_small: false,
            is_stuck: false,
        }
    }

    /// The buffer for small frames.
    pub(super) fn control_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.control
    }

    /// Acknowledges a frame of this kind.
    pub(super) fn queue_reply(&mut self, kind: u8, payload: &[u8]) {
        frame::write(&mut self.control, kind, flag::ACK, 0, payload);
        self.replies += 1;
    }

    /// True if more output is waiting than a server that reads it and keeps to its windows can cause. `streams`:
    /// largest number of requests in flight so far.
    pub(super) fn is_flooded(&self, streams: u32) -> bool {
        let control_max = CONTROL_MAX + CONTROL_PER_STREAM * (streams as usize + 1);
        self.replies > REPLIES_MAX || self.control.len() > control_max
    }

    /// Number of heap bytes.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.control.capacity() + self.uploads.capacity() * size_of::<u32>()
    }

    /// Continues with this stream ID.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, id: u32) {
        self.next = id;
    }

    /// The ID of the last stream whose HEADERS have been written; lower than any stream's if there is none.
    pub(super) fn last_begun(&self) -> u32 {
        self.next - 1
    }

    /// Records a new stream, whose HEADERS have to be written.
    pub(super) fn note_start(&mut self) {
        self.waiting += 1;
    }

    /// Number of HEADERS that may be written, if the server allows this many streams. It may have lowered the limit
    /// since the streams were started.
    fn heads_due(&self, streams: &Streams, allowed: u32) -> u32 {
        let begun = streams.open_count() - self.waiting;
        self.waiting.min(allowed.saturating_sub(begun))
    }

    /// True if a stream's HEADERS have been written.
    pub(super) fn has_begun(&self, id: u32) -> bool {
        id < self.next
    }

    /// True if the transport has accepted all bytes up to the end of a stream's HEADERS.
    pub(super) fn has_accepted(&self, headers_end: u64) -> bool {
        headers_end <= self.accepted
    }

    /// Records that the transport accepted `n` more bytes.
    pub(super) fn note_accepted(&mut self, n: usize) {
        self.accepted += n as u64;
        debug_assert!(self.accepted <= self.written, "no more was written");
    }

    /// Enlarges the connection's window.
    pub(super) fn enlarge_window(&mut self, increment: u32) -> Result<(), Breach> {
        self.window += i64::from(increment);
        self.note_window();
        if self.window > WINDOW_MAX.into() { Err(Breach::WindowOverflow) } else { Ok(()) }
    }

    /// Records that a window has changed, so that bodies are tried again.
    pub(super) fn note_window(&mut self) {
        self.is_stuck = false;
    }

    /// Handles the server's choice of its table size.
    pub(super) fn resize_table(&mut self, size: u32) {
        if size < SIZE_USUAL && self.table_update == TableUpdate::None {
            self.table_update = TableUpdate::Due;
        }
    }

    /// Forgets an ended stream whose request has not been written completely.
    pub(super) fn drop_message(&mut self, id: u32, streams: &Streams) {
        if !self.has_begun(id) {
            self.waiting -= 1;
            return;
        }
        self.uploading -= 1;
        // The stream may be the one that waits for a larger window.
        self.is_stuck &= !self.has_small;
        // Removing each one individually would take time proportional to the square of their number.
        if self.uploads.len() > 2 * self.uploading {
            self.uploads.retain(|upload| streams.has(*upload));
        }
    }

    /// True if bodies wait for windows.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Deadline at which to call [`Self::send_small_pieces`].
    pub(super) fn patient_until(&self) -> Option<Nanos> {
        self.patient_until
    }

    /// Sends even small pieces of bodies, once the deadline has passed.
    pub(super) fn send_small_pieces(&mut self, now: Nanos) {
        if self.patient_until.take_if(|until| *until <= now).is_some() {
            self.is_impatient = true;
            self.is_stuck = false;
        }
    }

    /// True if there may be output to write.
    pub(super) fn has_output(&self, streams: &Streams, allowed: u32) -> bool {
        let has_more = self.uploading > 0 || self.heads_due(streams, allowed) > 0;
        !self.is_greeted || !self.control.is_empty() || has_more
    }

    /// Length of a buffer for the output, with room for indivisible frames.
    pub(super) fn room_wanted(&mut self, streams: &mut Streams, greeting: &[u8], allowed: u32) -> usize {
        let control = self.room_for_control(greeting);
        let heads = self.heads_due(streams, allowed) as usize;
        if heads > 0 {
            while !streams.has(self.next) {
                self.next += 2;
            }
        }
        let next = streams.get(self.next).filter(|_| heads > 0);
        let message = next.and_then(|stream| stream.message.as_deref());
        let head = message.map_or(0, room_for);
        if self.uploading > 0 || message.is_some_and(|message| !message.body().is_empty()) {
            return LARGE.max(control + head);
        }
        (control + head * heads).min(LARGE).max(control + head)
    }

    /// True if small frames wait for the transport.
    pub(super) fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Length of a buffer for [`Self::write_last`].
    pub(super) fn room_for_control(&self, greeting: &[u8]) -> usize {
        greeting.len() + self.control.len()
    }

    /// Writes small frames only: the connection has ended.
    pub(super) fn write_last(&mut self, greeting: &[u8], buffer: &mut [u8]) -> usize {
        let mut writer = Writer { buffer, length: 0, vectored: None, vectored_bytes: 0 };
        self.write_control(greeting, &mut writer);
        self.written += writer.length as u64;
        writer.length
    }

    /// Writes all output that can be sent and fits into the buffer. Returns the number of bytes written. Large pieces
    /// of bodies are added to `vectored` instead, if given.
    pub(super) fn write_output(
        &mut self,
        streams: &mut Streams,
        greeting: &[u8],
        settings: PeerSettings,
        buffer: &mut [u8],
        vectored: Option<&mut Vec<Payload>>,
    ) -> (usize, Bodies) {
        let mut writer = Writer { buffer, length: 0, vectored, vectored_bytes: 0 };
        self.write_control(greeting, &mut writer);
        let bodies = match self.write_headers(streams, settings.streams, &mut writer) {
            true => self.write_bodies(streams, settings.window, &mut writer),
            false => Bodies::Full,
        };
        self.written += (writer.length + writer.vectored_bytes) as u64;
        (writer.length, bodies)
    }

    /// Adds the time for which bodies have been waiting for windows to the counts. A wait in progress counts from zero
    /// again.
    pub(super) fn count_wait(&mut self, now: Nanos, seen: &mut Http2Counts) {
        if let Some(since) = &mut self.blocked_since {
            seen.window_blocked_ns += now.since(std::mem::replace(since, now));
        }
    }

    /// True if request bodies are on the way.
    pub(super) fn has_uploads(&self) -> bool {
        self.uploading > 0
    }

    /// Records how long bodies have waited for windows.
    pub(super) fn note_wait(&mut self, bodies: Bodies, now: Nanos, seen: &mut Http2Counts) {
        match bodies {
            Bodies::None | Bodies::Sent => {
                if let Some(since) = self.blocked_since.take() {
                    seen.window_blocked_ns += now.since(since);
                }
            }
            Bodies::Blocked => {
                self.blocked_since.get_or_insert(now);
            }
            Bodies::Full => return,
        }
        // Progress of other bodies does not make one with a small window wait longer.
        self.has_small &= bodies != Bodies::None;
        if !self.has_small {
            self.patient_until = None;
            self.is_impatient = false;
        } else if !self.is_impatient {
            self.patient_until.get_or_insert(now + PATIENCE_NS);
        }
    }

    fn write_control(&mut self, greeting: &[u8], writer: &mut Writer) {
        if !self.is_greeted {
            self.is_greeted = true;
            writer.put(greeting);
        }
        writer.put(&self.control);
        self.control.clear();
        self.replies = 0;
    }

    /// Writes the HEADERS of new streams, as many as the server allows. Returns true if all had room.
    fn write_headers(&mut self, streams: &mut Streams, allowed: u32, writer: &mut Writer) -> bool {
        while self.heads_due(streams, allowed) > 0 {
            let id = self.next;
            if let Some(stream) = streams.get(id)
                && let Some(message) = &stream.message
            {
                if writer.room() < room_for(message) {
                    return false;
                }
                let has_body = !message.body().is_empty();
                let update: &[u8] = if self.table_update == TableUpdate::Due { &[EMPTY_TABLE] } else { &[] };
                write_block(id, has_body, update, &message.block, writer);
                stream.headers_end = self.written + writer.length as u64;
                self.waiting -= 1;
                if self.table_update == TableUpdate::Due {
                    self.table_update = TableUpdate::Done;
                }
                if has_body {
                    self.uploads.push_back(id);
                    self.uploading += 1;
                    self.is_stuck = false;
                } else {
                    stream.message = None;
                }
            }
            self.next += 2;
        }
        true
    }

    /// Writes frames of bodies in turn.
    fn write_bodies(&mut self, streams: &mut Streams, window: u32, writer: &mut Writer) -> Bodies {
        // Never wait for more than half a window: a server may renew it only when half of it has been used.
        let piece_min = if self.is_impatient { 1 } else { PIECE_MIN.min(window as usize / 2).max(1) };
        let mut bodies = if self.uploading == 0 { Bodies::None } else { Bodies::Blocked };
        // Replies, which a server can cause at any time, are no reason to look at all bodies.
        if self.is_stuck {
            return bodies;
        }
        let mut passed = 0;
        let mut has_small = false;
        while passed < self.uploading && self.window > 0 {
            let Some(&id) = self.uploads.front() else { break };
            let Some(stream) = streams.get(id) else {
                self.uploads.pop_front();
                continue;
            };
            let Some(message) = &stream.message else { break };
            let rest = &message.body()[stream.body_written..];
            let window = self.window.min(stream.window.into()).max(0) as usize;
            let size = rest.len().min(PAYLOAD_USUAL).min(window);
            if size < rest.len().min(piece_min) {
                has_small |= size > 0;
                passed += 1;
                self.uploads.rotate_left(1);
                continue;
            }
            if !writer.has_room_for(size) {
                self.has_small |= has_small;
                return if bodies == Bodies::Sent { bodies } else { Bodies::Full };
            }
            let ends = size == rest.len();
            let flags = if ends { flag::END_STREAM } else { 0 };
            writer.write_data(flags, id, message, stream.body_written..stream.body_written + size);
            bodies = Bodies::Sent;
            passed = 0;
            self.window -= size as i64;
            stream.window -= size as i32;
            stream.body_written += size;
            if ends {
                stream.message = None;
                self.uploads.pop_front();
                self.uploading -= 1;
            } else {
                self.uploads.rotate_left(1);
            }
        }
        self.is_stuck = passed == self.uploading;
        // Bodies that had no turn may still wait.
        self.has_small = has_small || (self.has_small && passed < self.uploading);
        bodies
    }
}

/// Largest number of bytes needed for the HEADERS of a request.
fn room_for(message: &Http2Request) -> usize {
    let length = message.block.len() + 1;
    length + HEADER * length.div_ceil(PAYLOAD_USUAL)
}

/// Writes HEADERS, and CONTINUATION for the rest.
fn write_block(id: u32, has_body: bool, update: &[u8], block: &[u8], writer: &mut Writer) {
    let (first, mut rest) = block.split_at(block.len().min(PAYLOAD_USUAL - update.len()));
    let end_stream = if has_body { 0 } else { flag::END_STREAM };
    let end_headers = |rest: &[u8]| if rest.is_empty() { flag::END_HEADERS } else { 0 };
    writer.write_frame(kind::HEADERS, end_stream | end_headers(rest), id, update, first);
    while !rest.is_empty() {
        let next;
        (next, rest) = rest.split_at(rest.len().min(PAYLOAD_USUAL));
        writer.write_frame(kind::CONTINUATION, end_headers(rest), id, &[], next);
    }
}

/// Fills a buffer.
struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
    /// The pieces of bodies sent without a copy, if allowed.
    vectored: Option<&'a mut Vec<Payload>>,
    /// Total length of these pieces.
    vectored_bytes: usize,
}

impl Writer<'_> {
    fn room(&self) -> usize {
        self.buffer.len() - self.length
    }

    fn put(&mut self, bytes: &[u8]) {
        self.buffer[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// True if a piece of this size is sent without a copy.
    fn is_vectored(&self, size: usize) -> bool {
        self.vectored.is_some() && size >= VECTORED_MIN
    }

    /// True if there is room for a frame with a piece of a body of this size.
    fn has_room_for(&self, size: usize) -> bool {
        if self.is_vectored(size) {
            self.room() >= HEADER && self.vectored.as_ref().is_some_and(|vectored| vectored.len() < VECTORED_AT_ONCE)
        } else {
            self.room() >= HEADER + size
        }
    }

    /// Writes a frame with a piece of a body.
    fn write_data(&mut self, flags: u8, stream: u32, message: &Rc<Http2Request>, range: Range<usize>) {
        if !self.is_vectored(range.len()) {
            return self.write_frame(kind::DATA, flags, stream, &[], &message.body()[range]);
        }
        self.put(&FrameHeader { length: range.len() as u32, kind: kind::DATA, flags, stream }.bytes());
        self.vectored_bytes += range.len();
        if let Some(vectored) = &mut self.vectored {
            vectored.push(Payload { at: self.length, body: Rc::clone(message) as Rc<dyn BodyBytes>, range });
        }
    }

    /// Writes a frame whose payload is in two parts.
    fn write_frame(&mut self, kind: u8, flags: u8, stream: u32, first: &[u8], second: &[u8]) {
        let length = (first.len() + second.len()) as u32;
        self.put(&FrameHeader { length, kind, flags, stream }.bytes());
        if !first.is_empty() {
            self.put(first);
        }
        self.put(second);
    }
}
