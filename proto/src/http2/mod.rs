//! HTTP/2 (RFC 9113), with many requests in flight on one connection.
//!
//! ```text
//!   the request     start ─► HEADERS ─► DATA
//!
//!                                ┌ interim (1xx) ┐
//!                                ▼               │
//!   the response                head ────────────┴──► body ──► trailers ──► complete
//! ```
//!
//! `sender` writes requests, one header block for all connections. `input` reads frames in place; `hpack` decodes their
//! header blocks, unless `memo` remembers them; `streams` finds the request by its stream ID, and `response` knows
//! which parts may follow. A stream error resets the stream. A connection error ends the connection with GOAWAY, and
//! the requests in flight fail: that is in `ending`.
//!
//! The protocol never buffers a body, never copies a received one, and allocates nothing for a request and its response
//! once it has seen similar ones. It never sends a request again: that is the driver's decision.

mod block;
mod buffers;
mod ending;
mod frame;
mod heard;
mod hpack;
mod input;
mod list;
mod meaning;
mod memo;
mod message;
mod options;
mod readable;
mod reader;
mod resets;
mod response;
mod seen;
mod sender;
mod settings;
mod shared;
mod streams;
#[cfg(test)]
mod tests;
mod written;

use self::block::Block;
use self::ending::{DrainState, FailingRequests, FailureReason, Life};
use self::heard::Completed;
use self::hpack::Decoder;
use self::memo::OwnMemo;
use self::reader::{FrameCursor, FramePart};
use self::resets::Resets;
use self::response::ResponseState;
use self::sender::{Bodies, Sender};
use self::settings::PeerSettings;
use self::shared::Pool;
use self::streams::{Stream, Streams};
use crate::{Client, Code, Error, Event, Fields, Nanos, Request, StartError, StreamId, Transmit};

pub use self::meaning::GRPC_STATUS_MAX;
pub(crate) use self::message::Http2Request;
pub use self::message::is_forbidden_field;
pub use self::options::Http2Options;
pub use self::readable::{FrameReader, ReadableData, ReadableFrame};
pub use self::seen::{Codes, GoawayReason, Http2Counts, smaller_stream_limit};
pub use self::settings::STREAMS_ASSUMED;
pub use self::shared::SharedContext;

/// Number of consecutive frames that may bring no response forward.
const PATIENCE: u32 = 10_000;

/// Number of bytes kept of a GOAWAY's explanation.
const REASON_BYTES: usize = 100;

/// The highest stream ID.
const STREAM_MAX: u32 = i32::MAX as u32;

/// One HTTP/2 connection, seen from the client.
#[derive(Debug)]
pub struct Http2 {
    shared: SharedContext,
    streams: Streams,
    resets: Resets,
    settings: PeerSettings,
    reader: FrameCursor,
    /// Number of bytes to come of the body that the last DATA belonged to.
    coming: u64,
    block: Block,
    decoder: Decoder,
    own_memo: OwnMemo,
    sender: Sender,
    /// Number of received bytes of DATA for which the connection's window has not been renewed.
    received: u32,
    /// Number of received bytes of DATA that have not been counted yet.
    data_bytes: u64,
    /// Number of further frames allowed without progress.
    patience: u32,
    life: Life,
    /// The last stream and the code of the server's GOAWAY.
    goaway: Option<(u32, Code)>,
    /// The kept part of the GOAWAY's explanation.
    reason: Vec<u8>,
    /// Time since which the server's stream limit is reached and more streams are wanted.
    limited_since: Option<Nanos>,
    /// The last header block, until all events have been taken.
    heard: Completed,
    event: Option<Event>,
    /// The event after `heard`, which ends its request. No input causes more than these two, requests that fail
    /// together, and a drain, so no queue is needed.
    end: Option<Event>,
    /// The requests that fail together.
    failing: Option<FailingRequests>,
    drain: DrainState,
}

impl Http2 {
    /// A new connection. Its preface and SETTINGS are at the beginning of its first [`Transmit`], even without a
    /// request.
    pub fn new(shared: &SharedContext) -> Self {
        let streams_seen = shared.streams_known();
        Self {
            streams: Streams::new(),
            resets: Resets::default(),
            settings: PeerSettings::new(streams_seen),
            reader: FrameCursor::new(),
            coming: 0,
            block: Block::default(),
            decoder: Decoder::new(shared.options.table),
            own_memo: None,
            sender: Sender::new(),
            received: 0,
            data_bytes: 0,
            patience: PATIENCE,
            life: Life::Open,
            goaway: None,
            reason: Vec::new(),
            limited_since: None,
            heard: Completed::default(),
            event: None,
            end: None,
            failing: None,
            drain: DrainState::No,
            shared: shared.clone(),
        }
    }

    /// Approximate number of bytes still to arrive of the body that the last DATA belonged to; other frames may come in
    /// between.
    pub fn body_bytes_to_come(&self) -> u64 {
        self.coming
    }

    /// True if the bodies of some requests have not been sent completely.
    pub fn is_uploading(&self) -> bool {
        self.sender.has_uploads()
    }

    /// The explanation in the server's last GOAWAY: its first 100 bytes, unescaped; empty if there is none.
    pub fn goaway_text(&self) -> &[u8] {
        &self.reason
    }

    /// True if the server has sent a GOAWAY that says that it processes some requests on this connection.
    pub fn processes_some(&self) -> bool {
        self.goaway.is_some_and(|(last, _)| last > 0)
    }

    /// Number of streams that the server allows; [`u32::MAX`]: unlimited; `None`: not known yet.
    pub fn streams_allowed(&self) -> Option<u32> {
        self.settings.have_come.then_some(self.settings.streams)
    }

    /// The error that names what the connection, or the request on `stream`, still waits for although servers usually
    /// send it at once: SETTINGS, permission for a stream, or a window for the request's body. Independent of how long
    /// it has waited. `None`: nothing of that kind.
    pub fn overdue_server_event(&mut self, stream: Option<StreamId>) -> Option<Error> {
        let has_body_left = |stream: StreamId| self.streams.get(stream.0).is_some_and(|open| open.message.is_some());
        match self.life {
            Life::Over => None,
            _ if !self.settings.have_come => Some(Error::NoSettings),
            _ if self.settings.streams == 0 && stream.is_none_or(|stream| !self.sender.has_begun(stream.0)) => {
                Some(Error::NoStreams)
            }
            _ if self.sender.is_blocked() && stream.is_some_and(has_body_left) => Some(Error::NoWindow),
            _ => None,
        }
    }

    /// Adds received DATA, and the length so far of waits in progress, to the counts in the [`SharedContext`].
    pub fn count_so_far(&mut self, now: Nanos) {
        let seen = &mut self.shared.pool.borrow_mut().seen;
        seen.data_bytes_received += std::mem::take(&mut self.data_bytes);
        self.sender.count_wait(now, seen);
        if let Some(since) = &mut self.limited_since {
            seen.streams_blocked_ns += now.since(std::mem::replace(since, now));
        }
    }

    fn has_event(&self) -> bool {
        self.event.is_some() || self.end.is_some() || self.failing.is_some() || matches!(self.drain, DrainState::Due(_))
    }

    /// Records how long the server's stream limit has kept requests back.
    fn note_limit(&mut self, now: Nanos) {
        let PeerSettings { streams, .. } = self.settings;
        let is_limited = self.life == Life::Open
            && self.settings.have_come
            && streams < self.shared.options.streams
            && self.streams.open_count() >= streams;
        match self.limited_since {
            None if is_limited => self.limited_since = Some(now),
            Some(since) if !is_limited => {
                self.limited_since = None;
                self.shared.pool.borrow_mut().seen.streams_blocked_ns += now.since(since);
            }
            _ => {}
        }
    }
}

impl Client for Http2 {
    fn capacity(&self) -> usize {
        let allowed = self.shared.options.streams.min(self.settings.streams);
        if self.life == Life::Open { allowed.saturating_sub(self.streams.open_count()) as usize } else { 0 }
    }

    fn start(&mut self, request: &Request, is_last: bool) -> Result<StreamId, StartError> {
        if self.capacity() == 0 {
            return Err(StartError::Busy);
        }
        let message = self.shared.http2_request(request);
        let response = ResponseState::new(message.response);
        let window = self.settings.window as i32;
        let stream = Stream { message: Some(message), body_written: 0, headers_end: 0, window, received: 0, response };
        let id = self.streams.open_next(stream);
        self.sender.note_start();
        let seen = &mut self.shared.pool.borrow_mut().seen;
        seen.streams_peak = seen.streams_peak.max(self.streams.open_count());
        if is_last || id == STREAM_MAX {
            self.life = Life::Closing;
        }
        Ok(StreamId(id))
    }

    fn cancel(&mut self, stream: StreamId) {
        self.event.take_if(|event| event.stream() == Some(stream));
        self.end.take_if(|event| event.stream() == Some(stream));
        if self.remove_stream(stream.0).is_some() && self.life != Life::Over {
            if self.sender.has_begun(stream.0) {
                self.send_reset(stream.0, Code::CANCEL);
            }
            self.note_stream_end();
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8], _: Nanos) -> usize {
        debug_assert!(!self.has_event(), "the events of the last input come first");
        self.heard = Completed::default();
        if self.life == Life::Over {
            return bytes.len();
        }
        let mut at = 0;
        while at < bytes.len() && !self.has_event() {
            match self.take_unit(&bytes[at..], at) {
                Ok(used) => at += used,
                Err(error) => {
                    self.fail_connection(error);
                    return bytes.len();
                }
            }
        }
        at
    }

    fn handle_skipped(&mut self, n: u64) {
        assert!(n <= self.may_skip(), "no more may be skipped");
        self.heard = Completed::default();
        self.reader.left -= n as u32;
        if n > 0 && self.reader.left == self.reader.padding {
            self.reader.place = FramePart::Rest;
            if self.reader.left == 0 {
                self.end_frame();
            }
        }
    }

    fn handle_eof(&mut self) {
        self.heard = Completed::default();
        if self.life == Life::Over {
            return;
        }
        let is_surprise = self.streams.open_count() == 0 && self.life == Life::Open;
        self.sender.control_buffer().clear();
        self.stop_connection(FailureReason::Eof, is_surprise.then_some(Error::ClosedBeforeResponse));
    }

    fn handle_sent(&mut self, n: usize) {
        self.sender.note_accepted(n);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.sender.send_small_pieces(now);
    }

    fn poll_transmit(&mut self, now: Nanos) -> Option<Transmit> {
        self.note_limit(now);
        let Self { sender, streams, shared, .. } = self;
        let Pool { buffers, seen, .. } = &mut *shared.pool.borrow_mut();
        if self.life == Life::Over {
            let length = sender.has_control().then(|| sender.room_for_control(&shared.greeting))?;
            return Some(buffers.fill_buffer(length, |buffer| sender.write_last(&shared.greeting, buffer)));
        }
        let allowed = self.settings.streams;
        if !sender.has_output(streams, allowed) {
            sender.note_wait(Bodies::None, now, seen);
            return None;
        }
        let length = sender.room_wanted(streams, &shared.greeting, allowed);
        let mut bodies = Bodies::None;
        // TLS copies all of it anyway.
        let mut vectored = Vec::new();
        let is_vectored = !shared.options.is_https;
        let transmit = buffers.fill_buffer(length, |buffer| {
            let length;
            let vectored = is_vectored.then_some(&mut vectored);
            (length, bodies) = sender.write_output(streams, &shared.greeting, self.settings, buffer, vectored);
            length
        });
        let transmit = transmit.vectored_with(vectored);
        sender.note_wait(bodies, now, seen);
        if bodies == Bodies::Sent {
            self.patience = PATIENCE;
        }
        (transmit.len() > 0).then_some(transmit)
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.event.take().or_else(|| self.end.take()).or_else(|| self.poll_failing_request());
        if event.is_some() {
            return event;
        }
        let DrainState::Due(error) = self.drain else {
            // However long the block was, nobody reads it any more.
            self.heard = Completed::default();
            return None;
        };
        self.drain = DrainState::Told;
        Some(Event::Draining { error })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.sender.patient_until().filter(|_| self.life != Life::Over)
    }

    fn reading(&self) -> Option<StreamId> {
        let id = self.reader.frame.stream;
        let is_response = matches!(self.reader.place, FramePart::Block | FramePart::PadLength | FramePart::Data);
        (is_response && self.life != Life::Over && self.streams.has(id)).then_some(StreamId(id))
    }

    fn may_skip(&self) -> u64 {
        let is_data = self.reader.place == FramePart::Data && self.life != Life::Over;
        if is_data { (self.reader.left - self.reader.padding).into() } else { 0 }
    }

    fn fields<'a>(&'a self, _: &'a [u8]) -> Fields<'a> {
        self.heard.fields()
    }

    fn write_text(&self, _: &[u8], text: &mut Vec<u8>) {
        self.heard.write_text(text);
    }
}

/// Releases the buffer of an unfinished header block, and adds the received DATA to the counts.
impl Drop for Http2 {
    fn drop(&mut self) {
        let pool = &mut self.shared.pool.borrow_mut();
        pool.seen.data_bytes_received += self.data_bytes;
        self.block.free_bytes(&mut pool.blocks);
    }
}
