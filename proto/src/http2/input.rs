//! Effects of the server's frames.

use std::rc::Rc;

use super::block::fragment;
use super::ending::{FailureReason, Life};
use super::frame::{self, FrameHeader, PAYLOAD_USUAL, flag, kind};
use super::heard::Completed;
use super::reader::FramePart;
use super::response::{self, ResponsePhase};
use super::seen::smaller_stream_limit;
use super::settings::{Consequence, WINDOW_MAX};
use super::shared::Pool;
use super::{Http2, PATIENCE, REASON_BYTES};
use crate::{Breach, Code, Error, Event, StreamId};

impl Http2 {
    /// Takes bytes at `at` in the input, up to the first unit with a meaning.
    pub(super) fn take_unit(&mut self, bytes: &[u8], at: usize) -> Result<usize, Error> {
        let used = match self.reader.place {
            FramePart::Header => {
                let (used, header) = self.reader.take_unit(bytes);
                match header {
                    Some(header) => self.begin(FrameHeader::parse(header))?,
                    None if self.has_begun() => {}
                    None => check_first(self.reader.incomplete_unit())?,
                }
                return Ok(used);
            }
            FramePart::Block => return Ok(self.take_block(bytes)?),
            FramePart::Data => {
                let used = self.reader.take_payload(bytes, self.reader.padding);
                if self.shared.options.wants_body && used > 0 {
                    let id = self.reader.frame.stream;
                    if self.streams.has(id) {
                        self.event = Some(Event::Data { stream: StreamId(id), range: at..at + used });
                    }
                }
                if self.reader.left == self.reader.padding {
                    self.reader.place = FramePart::Rest;
                }
                used
            }
            FramePart::PadLength => {
                let (used, length) = self.reader.take_payload_unit(bytes);
                if let Some([length]) = length {
                    self.begin_padded(length.into())?;
                }
                used
            }
            FramePart::Setting => {
                let (used, setting) = self.reader.take_payload_unit(bytes);
                if let Some([i, j, a, b, c, d]) = setting {
                    self.apply_setting(u16::from_be_bytes([i, j]), u32::from_be_bytes([a, b, c, d]))?;
                    if self.reader.left == 0 {
                        self.change_windows()?;
                    }
                }
                used
            }
            FramePart::Number => {
                let (used, number) = self.reader.take_payload_unit(bytes);
                if let Some(number) = number {
                    self.take_number(u32::from_be_bytes(number))?;
                }
                used
            }
            FramePart::Pair => {
                let (used, pair) = self.reader.take_payload_unit(bytes);
                if let Some(pair) = pair {
                    self.take_pair(pair)?;
                }
                used
            }
            FramePart::Reason => {
                let used = self.reader.take_payload(bytes, 0);
                let room = REASON_BYTES.saturating_sub(self.reason.len());
                self.reason.extend_from_slice(&bytes[..used.min(room)]);
                used
            }
            FramePart::Rest => self.reader.take_payload(bytes, 0),
        };
        if self.reader.left == 0 {
            self.end_frame();
        }
        Ok(used)
    }

    /// True if the server's first frame has begun.
    fn has_begun(&self) -> bool {
        self.reader.frame.kind == kind::SETTINGS || self.settings.have_come
    }

    fn begin(&mut self, frame: FrameHeader) -> Result<(), Error> {
        if !self.has_begun() {
            self.check_first_frame(frame)?;
        }
        self.patience = self.patience.checked_sub(1).ok_or(Breach::NoProgress)?;
        if self.sender.is_flooded(self.streams.peak_count()) {
            return Err(Breach::ControlFlood.into());
        }
        self.reader.begin(frame);
        if frame.length > self.shared.options.frame_max {
            return Err(Breach::FrameTooLong.into());
        }
        if let Some(stream) = self.block.stream
            && (frame.kind != kind::CONTINUATION || frame.stream != stream)
        {
            return Err(Breach::Interrupted.into());
        }
        match frame.kind {
            kind::DATA => self.begin_data(frame)?,
            kind::HEADERS | kind::CONTINUATION => {
                self.begin_block(frame)?;
                if frame.length == 0 {
                    self.take_block(&[])?;
                }
                return Ok(());
            }
            _ => self.begin_small(frame)?,
        }
        if self.reader.left == 0 {
            self.end_frame();
        }
        Ok(())
    }

    fn check_first_frame(&self, frame: FrameHeader) -> Result<(), Error> {
        check_first(&frame.bytes())?;
        match frame.kind {
            kind::SETTINGS if !frame.has(flag::ACK) => Ok(()),
            // A server that ends the connection before its SETTINGS may give the reason.
            kind::GOAWAY if frame.stream == 0 => Ok(()),
            // If the bytes are text, the length consists of the first three letters.
            _ if frame.length > PAYLOAD_USUAL as u32 => Err(Error::NotHttp),
            _ => Err(Breach::FirstFrame.into()),
        }
    }

    /// Begins DATA. All of it counts for flow control, including padding, even if its stream has ended.
    fn begin_data(&mut self, frame: FrameHeader) -> Result<(), Breach> {
        self.check_stream_id(frame.stream)?;
        self.data_bytes += u64::from(frame.length);
        let options = &self.shared.options;
        let control = self.sender.control_buffer();
        receive(&mut self.received, frame.length, options.connection_window, options.frame_max, 0, control)?;
        let Some(stream) = self.streams.get(frame.stream) else {
            // A large body was on its way when its stream was reset.
            self.allow_more_frames(frame.length / 1024);
            return self.check_closed(frame.stream);
        };
        let may_need_more = !frame.has(flag::END_STREAM);
        let id = frame.stream;
        if may_need_more {
            receive(&mut stream.received, frame.length, options.window, options.frame_max, id, control)?;
        } else if stream.received + frame.length > options.window {
            return Err(Breach::WindowExceeded);
        }
        if stream.response.phase() == ResponsePhase::Head {
            self.reset_stream(id, Breach::DataFirst);
            return Ok(());
        }
        if frame.has(flag::PADDED) {
            self.reader.place = FramePart::PadLength;
            return if frame.length == 0 { Err(Breach::FrameLength) } else { Ok(()) };
        }
        let is_good = stream.response.take_data(frame.length);
        self.coming = stream.response.body_left();
        self.expect_data(id, frame.length, is_good);
        Ok(())
    }

    /// Handles the length of the padding of DATA.
    fn begin_padded(&mut self, padding: u32) -> Result<(), Breach> {
        let data = self.reader.left.checked_sub(padding).ok_or(Breach::Padding)?;
        self.reader.padding = padding;
        self.reader.place = FramePart::Rest;
        let id = self.reader.frame.stream;
        if let Some(stream) = self.streams.get(id) {
            let is_good = stream.response.take_data(data);
            self.coming = stream.response.body_left();
            self.expect_data(id, data, is_good);
        }
        Ok(())
    }

    /// Expects `length` bytes of a body, if the response allows that.
    fn expect_data(&mut self, id: u32, length: u32, is_good: Result<(), Breach>) {
        match is_good {
            Ok(()) if length > 0 => {
                self.reader.place = FramePart::Data;
                self.allow_more_frames(length);
            }
            Ok(()) => {}
            Err(breach) => self.reset_stream(id, breach),
        }
    }

    /// Allows this many more frames without progress.
    fn allow_more_frames(&mut self, frames: u32) {
        self.patience = PATIENCE.min(self.patience + frames);
    }

    fn begin_block(&mut self, frame: FrameHeader) -> Result<(), Breach> {
        if frame.kind == kind::CONTINUATION {
            if self.block.stream.is_none() {
                return Err(if frame.stream == 0 { Breach::StreamZero } else { Breach::Stray });
            }
        } else {
            self.check_stream_id(frame.stream)?;
            if !self.streams.has(frame.stream) {
                self.check_closed(frame.stream)?;
            }
        }
        self.reader.place = FramePart::Block;
        self.block.begin_frame(frame)
    }

    /// Takes bytes of a header block, and decodes it if it is complete.
    fn take_block(&mut self, bytes: &[u8]) -> Result<usize, Breach> {
        let frame = self.reader.frame;
        let used = self.reader.take_payload(bytes, 0);
        let bytes = &bytes[..used];
        let is_complete = self.reader.left == 0 && frame.has(flag::END_HEADERS);
        if is_complete && self.block.is_empty() {
            self.block.end_block();
            self.reader.place = FramePart::Header;
            let block = match frame.kind {
                kind::HEADERS => &bytes[fragment(frame, bytes)?],
                _ => bytes,
            };
            self.decode_block(frame.stream, block)?;
            return Ok(used);
        }
        let pool = Rc::clone(&self.shared.pool);
        self.block.keep_bytes(
            bytes,
            self.reader.left,
            &mut pool.borrow_mut().blocks,
            self.shared.options.blocks_max,
        )?;
        if self.reader.left > 0 {
            return Ok(used);
        }
        self.reader.place = FramePart::Header;
        if frame.kind == kind::HEADERS {
            self.block.strip_padding(frame)?;
        }
        if is_complete {
            let block = self.block.take_bytes(&mut pool.borrow_mut().blocks);
            self.decode_block(frame.stream, &block)?;
        }
        Ok(used)
    }

    /// Decodes a complete header block, which belongs to a response unless its stream was reset.
    fn decode_block(&mut self, id: u32, block: &[u8]) -> Result<(), Breach> {
        let ends = self.block.ends;
        let wants_fields = self.shared.options.wants_fields;
        let memo = {
            let Pool { memos, seen, .. } = &mut *self.shared.pool.borrow_mut();
            let memo = memos.decode(block, &mut self.decoder, &mut self.own_memo, wants_fields)?;
            seen.header_bytes_received += block.len() as u64;
            seen.header_bytes_decoded += u64::from(memo.decoded);
            memo
        };
        let Some(response) = self.streams.get(id).map(|stream| &mut stream.response) else { return Ok(()) };
        let stream = StreamId(id);
        let status = memo.meaning.status;
        match response.take_block(&memo.meaning, ends) {
            Ok(response::Block::Interim) => {
                self.event = Some(Event::Interim { stream, status });
                self.heard = Completed::head(memo);
            }
            Ok(response::Block::Head) => {
                self.patience = PATIENCE;
                self.event = Some(Event::Head { stream, status });
                self.heard = Completed::head(memo);
            }
            Ok(response::Block::Tunnel) => {
                self.event = Some(Event::Head { stream, status });
                self.heard = Completed::head(memo);
                let uploads = self.remove_stream(id).is_some_and(|stream| stream.message.is_some());
                self.complete_response(id, 0, uploads, !ends || uploads);
            }
            Ok(response::Block::Trailers) if memo.list.is_some() => {
                self.event = wants_fields.then_some(Event::Trailer { stream });
                self.heard = Completed::trailers(memo);
            }
            Ok(response::Block::Trailers) => {}
            Err(breach) => self.reset_stream(id, breach),
        }
        if ends {
            self.finish_stream(id);
        }
        Ok(())
    }

    /// Begins a frame that is neither DATA nor part of a header block.
    fn begin_small(&mut self, frame: FrameHeader) -> Result<(), Breach> {
        let is_connection = frame.stream == 0;
        let check = |is_good, breach| if is_good { Ok(()) } else { Err(breach) };
        match frame.kind {
            kind::PRIORITY => {
                check(!is_connection, Breach::StreamZero)?;
                if frame.length != 5 && self.streams.has(frame.stream) && self.sender.has_begun(frame.stream) {
                    self.reset_stream(frame.stream, Breach::FrameLength);
                }
            }
            kind::RST_STREAM => {
                self.check_stream_id(frame.stream)?;
                check(frame.length == 4, Breach::FrameLength)?;
                self.reader.place = FramePart::Number;
            }
            kind::WINDOW_UPDATE => {
                if !is_connection {
                    self.check_stream_id(frame.stream)?;
                }
                check(frame.length == 4, Breach::FrameLength)?;
                self.reader.place = FramePart::Number;
            }
            kind::SETTINGS if frame.has(flag::ACK) => {
                check(is_connection, Breach::NotStreamZero)?;
                check(frame.length == 0, Breach::FrameLength)?;
                self.decoder.on_settings_acknowledged(self.shared.options.table);
            }
            kind::SETTINGS => {
                check(is_connection, Breach::NotStreamZero)?;
                check(frame.length.is_multiple_of(6), Breach::FrameLength)?;
                self.reader.place = FramePart::Setting;
            }
            kind::PING => {
                check(is_connection, Breach::NotStreamZero)?;
                check(frame.length == 8, Breach::FrameLength)?;
                self.reader.place = FramePart::Pair;
            }
            kind::GOAWAY => {
                check(is_connection, Breach::NotStreamZero)?;
                check(frame.length >= 8, Breach::FrameLength)?;
                self.reader.place = FramePart::Pair;
            }
            kind::PUSH_PROMISE => return Err(Breach::Push),
            _ => {}
        }
        Ok(())
    }

    /// Executes a frame other than HEADERS and CONTINUATION after its last byte.
    pub(super) fn end_frame(&mut self) {
        let frame = self.reader.frame;
        self.reader.place = FramePart::Header;
        match frame.kind {
            kind::DATA if frame.has(flag::END_STREAM) => self.finish_stream(frame.stream),
            kind::SETTINGS if !frame.has(flag::ACK) => self.end_settings(),
            kind::GOAWAY => self.end_goaway(),
            _ => {}
        }
    }

    /// Applies the settings of a frame.
    fn end_settings(&mut self) {
        let Pool { seen, streams_known, .. } = &mut *self.shared.pool.borrow_mut();
        seen.connections += u64::from(!self.settings.have_come);
        self.settings.end();
        seen.note_allowed(self.settings.streams);
        *streams_known = smaller_stream_limit(*streams_known, Some(self.settings.streams));
        self.sender.queue_reply(kind::SETTINGS, &[]);
    }

    /// Takes a setting.
    fn apply_setting(&mut self, id: u16, value: u32) -> Result<(), Breach> {
        match self.settings.set(id, value)? {
            Consequence::None => {}
            Consequence::Table(size) => self.sender.resize_table(size),
        }
        Ok(())
    }

    /// Changes the windows of all streams, once per frame: a frame may set them any number of times.
    fn change_windows(&mut self) -> Result<(), Breach> {
        let change = self.settings.change_window();
        if change != 0 {
            self.sender.note_window();
            for stream in self.streams.iter() {
                let window = i64::from(stream.window) + change;
                stream.window = window.try_into().map_err(|_| Breach::WindowOverflow)?;
            }
        }
        Ok(())
    }

    /// Takes the payload of a RST_STREAM or a WINDOW_UPDATE.
    fn take_number(&mut self, payload: u32) -> Result<(), Breach> {
        let FrameHeader { kind, stream: id, .. } = self.reader.frame;
        if kind == kind::RST_STREAM {
            let code = Code::new(payload);
            if let Some(stream) = self.remove_stream(id) {
                self.shared.pool.borrow_mut().seen.reset_received.note(code);
                // A server that has begun to answer has processed the request, whatever the code.
                let retryable = code == Code::REFUSED_STREAM && stream.response.phase() == ResponsePhase::Head;
                self.report_failure(id, Error::Reset(code), retryable);
            }
            return Ok(());
        }
        let increment = payload & WINDOW_MAX;
        if id == 0 {
            return if increment == 0 { Err(Breach::ZeroIncrement) } else { self.sender.enlarge_window(increment) };
        }
        let Some(stream) = self.streams.get(id) else { return Ok(()) };
        match i32::try_from(i64::from(stream.window) + i64::from(increment)) {
            Ok(_) if increment == 0 => self.reset_stream(id, Breach::ZeroIncrement),
            Ok(window) => {
                stream.window = window;
                self.sender.note_window();
            }
            Err(_) => self.reset_stream(id, Breach::WindowOverflow),
        }
        Ok(())
    }

    /// Takes the payload of a PING, or the beginning of a GOAWAY's.
    fn take_pair(&mut self, payload: [u8; 8]) -> Result<(), Breach> {
        let frame = self.reader.frame;
        if frame.kind == kind::PING {
            if !frame.has(flag::ACK) {
                self.sender.queue_reply(kind::PING, &payload);
            }
            return Ok(());
        }
        // The rest of the payload is the explanation.
        self.reader.place = FramePart::Reason;
        self.reason.clear();
        let [a, b, c, d, code @ ..] = payload;
        let last = u32::from_be_bytes([a & 0x7f, b, c, d]);
        let code = Code::new(u32::from_be_bytes(code));
        if self.goaway.is_some_and(|(before, _)| last > before) {
            return Err(Breach::GoAwayRises);
        }
        let announced = self.goaway.replace((last, code)).map(|(_, code)| code);
        self.shared.pool.borrow_mut().seen.note_goaway(code, announced);
        Ok(())
    }

    /// Executes a GOAWAY: which requests the server processes, and why it ends the connection.
    fn end_goaway(&mut self) {
        let Some((last, code)) = self.goaway else { return };
        self.shared.pool.borrow_mut().seen.note_goaway_reason(code, &self.reason);
        self.life = Life::Closing;
        // No more streams may be opened, whatever the server would still process.
        let above = last.min(self.sender.last_begun());
        self.fail_streams_above(above, FailureReason::Unprocessed(code));
        // Requests that stay open report the error when they fail, and it counts once.
        let stays_open = self.streams.first_above(0).is_some_and(|first| first <= above);
        self.drain_connection((code != Code::NO_ERROR && !stays_open).then_some(Error::GoAway(code)));
    }

    /// Checks that the client has opened this frame's stream at some time.
    fn check_stream_id(&self, id: u32) -> Result<(), Breach> {
        match id {
            0 => Err(Breach::StreamZero),
            _ if id.is_multiple_of(2) || !self.sender.has_begun(id) => Err(Breach::IdleStream),
            _ => Ok(()),
        }
    }

    /// Checks that a frame on a closed stream may have been sent before the server knew of the end.
    fn check_closed(&self, id: u32) -> Result<(), Breach> {
        if self.resets.may_have(id) { Ok(()) } else { Err(Breach::ClosedStream) }
    }
}

/// Checks that these bytes can begin the first frame.
fn check_first(bytes: &[u8]) -> Result<(), Error> {
    match bytes {
        // An alert or a handshake message, of any version.
        [0x15 | 0x16, 3, ..] => Err(Error::SpeaksTls),
        [b'H', b'T', b'T', b'P', b'/', ..] => Err(Error::AnsweredInHttp1),
        _ => Ok(()),
    }
}

/// Largest number of parts in which a window smaller than a frame is renewed.
pub(super) const CREDITS_MAX: u32 = 8;

/// Counts bytes of DATA on a stream, or 0 for the connection. Renews the window when half of it is used. Renews it
/// earlier if less than a frame is left, which a server may wait for, but not for less than an eighth.
fn receive(
    received: &mut u32,
    length: u32,
    window: u32,
    frame_max: u32,
    id: u32,
    control: &mut Vec<u8>,
) -> Result<(), Breach> {
    *received += length;
    if *received > window {
        return Err(Breach::WindowExceeded);
    }
    if *received > (window / 2).min(window.saturating_sub(frame_max).max(window / CREDITS_MAX)) {
        frame::write_credit(control, id, std::mem::take(received));
    }
    Ok(())
}
