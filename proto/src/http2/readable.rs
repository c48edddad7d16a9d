//! The frames of a connection, for people to read: one line each, with the fields of header blocks and the reasons of
//! GOAWAY.
//!
//! Reads the bytes of one direction in parallel with the protocol, and only if somebody wants to see them.

use super::block::fragment;
use super::frame::{FrameHeader, HEADER, flag, kind};
use super::hpack::{Decoder, Effects, SIZE_USUAL};
use super::options::PREFACE;
use super::settings::{self, WINDOW_MAX};
use super::{Http2, STREAM_MAX};
use crate::Code;
use crate::http1::HEAD_MAX;

/// A frame, or several of DATA, in a form for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadableFrame {
    /// Any frame except DATA, as lines. Names, values and reasons are as received, except that none contains a line
    /// end.
    Lines(Vec<u8>),
    /// DATA.
    Data(ReadableData),
}

/// One frame of DATA, or several consecutive ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadableData {
    /// The stream ID.
    pub stream: u32,
    /// Number of frames.
    pub frames: u64,
    /// Number of body bytes in the frames, without padding.
    pub bytes: u64,
    /// True if the last frame ends the stream.
    pub ends: bool,
    /// The body bytes, possibly truncated.
    pub body: Vec<u8>,
}

/// Reads the frames sent in one direction of a connection.
#[derive(Debug)]
pub struct FrameReader {
    /// The received part of an incomplete frame.
    part: Vec<u8>,
    /// The received part of an incomplete header block.
    block: Vec<u8>,
    block_max: usize,
    decoder: Decoder,
    frame_max: u32,
    /// True if the next bytes begin with the client's preface.
    greets: bool,
    /// True if later bytes cannot be read.
    is_over: bool,
}

impl Http2 {
    /// Readers for this connection's sent and received frames, in this order. They must be given all bytes from its
    /// start.
    pub fn frame_readers(&self) -> [FrameReader; 2] {
        let reader = |greets, decoder, block_max| FrameReader {
            part: Vec::new(),
            block: Vec::new(),
            block_max,
            decoder,
            frame_max: self.shared.options.frame_max,
            greets,
            is_over: false,
        };
        // Our own blocks refer only to the static table, and may be of any length.
        let ours = Decoder::new(SIZE_USUAL).without_limit();
        [reader(true, ours, usize::MAX), reader(false, Decoder::new(self.shared.options.table), HEAD_MAX)]
    }
}

impl FrameReader {
    /// Takes the next bytes and passes on the frames they complete.
    pub fn read_bytes(&mut self, bytes: &[u8], mut pass_on: impl FnMut(ReadableFrame)) {
        let mut part = std::mem::take(&mut self.part);
        let greeting = if std::mem::take(&mut self.greets) { PREFACE } else { b"" };
        part.extend_from_slice(bytes.strip_prefix(greeting).unwrap_or(bytes));
        let mut rest = &part[..];
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER>() {
            let header = FrameHeader::parse(*header);
            if self.is_over {
                return;
            }
            if header.length > self.frame_max || self.block.len() > self.block_max {
                self.is_over = true;
                pass_on(ReadableFrame::Lines(b"what follows cannot be read\r\n".to_vec()));
                return;
            }
            let Some((payload, behind)) = behind.split_at_checked(header.length as usize) else { break };
            rest = behind;
            if let Some(frame) = self.readable_frame(header, payload) {
                pass_on(frame);
            }
        }
        let used = part.len() - rest.len();
        part.drain(..used);
        self.part = part;
    }

    /// A frame in words; `None`: the frame is in the middle of a header block.
    fn readable_frame(&mut self, header: FrameHeader, payload: &[u8]) -> Option<ReadableFrame> {
        let FrameHeader { stream, kind, .. } = header;
        let ends = header.has(flag::END_STREAM);
        let mut text = match kind {
            kind::DATA => {
                let padded = FrameHeader { flags: header.flags & flag::PADDED, ..header };
                let body = payload[fragment(padded, payload).unwrap_or(0..payload.len())].to_vec();
                let bytes = body.len() as u64;
                return Some(ReadableFrame::Data(ReadableData { stream, frames: 1, bytes, ends, body }));
            }
            kind::HEADERS => {
                self.block = payload[fragment(header, payload).unwrap_or(0..0)].to_vec();
                format!("HEADERS of stream {stream}{}\r\n", if ends { ", END_STREAM" } else { "" }).into_bytes()
            }
            kind::CONTINUATION => {
                self.block.extend_from_slice(payload);
                Vec::new()
            }
            _ => return Some(ReadableFrame::Lines(line(header, payload))),
        };
        if header.has(flag::END_HEADERS) {
            self.write_fields(&mut text);
        }
        (!text.is_empty()).then_some(ReadableFrame::Lines(text))
    }

    /// Writes the fields of the header block, one line each, and an empty line.
    fn write_fields(&mut self, text: &mut Vec<u8>) {
        let put = |name: &[u8], value: &[u8]| {
            write_in_line(name, text);
            text.extend_from_slice(b": ");
            write_in_line(value, text);
            text.extend_from_slice(b"\r\n");
        };
        let block = std::mem::take(&mut self.block);
        let decoded = self.decoder.decode(&block, &mut Effects::default(), put);
        match decoded {
            Ok(()) => text.extend_from_slice(b"\r\n"),
            Err(breach) => text.extend_from_slice(format!("{breach}\r\n").as_bytes()),
        }
    }
}

/// A small frame as one line.
fn line(header: FrameHeader, payload: &[u8]) -> Vec<u8> {
    let stream = if header.stream == 0 { "the connection".to_owned() } else { format!("stream {}", header.stream) };
    let number = |at: usize| Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?));
    let words = match header.kind {
        kind::SETTINGS if header.has(flag::ACK) => Some("SETTINGS, ACK".to_owned()),
        kind::SETTINGS => {
            let settings: Vec<String> = payload.as_chunks::<6>().0.iter().map(setting).collect();
            Some(format!("SETTINGS {}", settings.join(", ")).trim_end().to_owned())
        }
        kind::PING if header.has(flag::ACK) => Some("PING, ACK".to_owned()),
        kind::PING => Some("PING".to_owned()),
        kind::PRIORITY => Some(format!("PRIORITY of {stream}")),
        kind::PUSH_PROMISE => Some(format!("PUSH_PROMISE of {stream}")),
        kind::WINDOW_UPDATE => number(0).map(|bytes| format!("WINDOW_UPDATE of {stream} by {}", bytes & WINDOW_MAX)),
        kind::RST_STREAM => number(0).map(|number| format!("RST_STREAM of {stream}: {}", code(number))),
        kind::GOAWAY => number(0)
            .zip(number(4))
            .map(|(last, number)| format!("GOAWAY: {}, the last stream is {}", code(number), last & STREAM_MAX)),
        _ => None,
    };
    let other = || format!("frame of kind {} of {stream}, {} bytes", header.kind, payload.len());
    let mut line = words.unwrap_or_else(other).into_bytes();
    if let (kind::GOAWAY, Some(reason @ [_, ..])) = (header.kind, payload.get(8..)) {
        line.extend_from_slice(b", \"");
        write_in_line(reason, &mut line);
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
}

fn setting(&[a, b, s, t, u, v]: &[u8; 6]) -> String {
    let value = u32::from_be_bytes([s, t, u, v]);
    let name = match u16::from_be_bytes([a, b]) {
        settings::TABLE => "HEADER_TABLE_SIZE",
        settings::PUSH => "ENABLE_PUSH",
        settings::STREAMS => "MAX_CONCURRENT_STREAMS",
        settings::WINDOW => "INITIAL_WINDOW_SIZE",
        settings::FRAME => "MAX_FRAME_SIZE",
        settings::HEADERS => "MAX_HEADER_LIST_SIZE",
        8 => "ENABLE_CONNECT_PROTOCOL",
        9 => "NO_RFC7540_PRIORITIES",
        id => return format!("setting {id} {value}"),
    };
    format!("{name} {value}")
}

/// The name of an error code; the number of an unnamed one.
fn code(number: u32) -> String {
    Code::new(number).name().map_or_else(|| format!("unknown code {number}"), str::to_owned)
}

/// Appends bytes without line breaks.
fn write_in_line(bytes: &[u8], text: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'\r' => text.extend_from_slice(b"\\x0d"),
            b'\n' => text.extend_from_slice(b"\\x0a"),
            _ => text.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::write;
    use super::super::{Http2Options, SharedContext};
    use super::*;
    use crate::{Client, Nanos, Request, RequestParts};

    fn client() -> Http2 {
        Http2::new(&SharedContext::new(Http2Options::default()))
    }

    /// The bytes sent for a request, as text.
    fn sent(parts: RequestParts) -> String {
        let mut client = client();
        client.start(&Request::new(parts), true).unwrap();
        let ([mut reader, _], mut text) = (client.frame_readers(), String::new());
        while let Some(transmit) = client.poll_transmit(Nanos(0)) {
            reader.read_bytes(&transmit.bytes(), |frame| text += &shown(&frame));
            client.handle_sent(transmit.len());
        }
        text
    }

    /// Received bytes, in pieces of this size, as text.
    fn received(bytes: &[u8], size: usize) -> String {
        let ([_, mut reader], mut text) = (client().frame_readers(), String::new());
        bytes.chunks(size).for_each(|piece| reader.read_bytes(piece, |frame| text += &shown(&frame)));
        text
    }

    fn shown(frame: &ReadableFrame) -> String {
        match frame {
            ReadableFrame::Lines(lines) => String::from_utf8_lossy(lines).replace("\r\n", "\n"),
            ReadableFrame::Data(data) => format!("{data:?}\n"),
        }
    }

    #[test]
    fn sent_frames_are_shown_in_lines() {
        let text = sent(RequestParts {
            method: "POST".to_owned(),
            target: "/path".to_owned(),
            headers: vec![("Host".to_owned(), "h".to_owned()), ("X-A".to_owned(), "b".to_owned())],
            body: b"body"[..].into(),
        });
        let expected = "\
SETTINGS ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 1073741823, MAX_HEADER_LIST_SIZE 81920
WINDOW_UPDATE of the connection by 1073676288
HEADERS of stream 1
:method: POST
:scheme: http
:authority: h
:path: /path
x-a: b
content-length: 4

ReadableData { stream: 1, frames: 1, bytes: 4, ends: true, body: [98, 111, 100, 121] }
";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_heads_are_shown_whole() {
        let headers = vec![("a".to_owned(), "b".repeat(100_000)), ("c".to_owned(), "d".to_owned())];
        let text =
            sent(RequestParts { method: "GET".to_owned(), target: "/".to_owned(), headers, ..RequestParts::default() });
        assert!(text.len() > 100_000 && text.ends_with("b\nc: d\n\n"));
    }

    #[test]
    fn received_frames_are_readable_however_split() {
        let mut frames = Vec::new();
        let mut add = |kind, flags, stream, payload: &[u8]| write(&mut frames, kind, flags, stream, payload);
        add(kind::SETTINGS, 0, 0, b"\x00\x03\x00\x00\x00\x64\x00\x08\x00\x00\x00\x01\x0a\x0a\x00\x00\x00\x07");
        add(kind::SETTINGS, flag::ACK, 0, b"");
        add(kind::SETTINGS, 0, 0, b"");
        add(kind::WINDOW_UPDATE, 0, 1, b"\x80\x00\x00\x05");
        add(kind::PING, 0, 0, b"12345678");
        add(kind::PING, flag::ACK, 0, b"12345678");
        // Padded, in two frames: the status, and a field that goes into the table.
        add(kind::HEADERS, flag::PADDED, 1, b"\x02\x88\x40\x01\x00\x00");
        add(kind::CONTINUATION, flag::END_HEADERS, 1, b"a\x01b");
        add(kind::DATA, flag::PADDED | 0x20, 1, b"\x03hello\0\0\0");
        // A reference to the table, after a priority.
        add(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM | flag::PRIORITY, 1, b"\0\0\0\0\x01\xbe");
        add(kind::PRIORITY, 0, 3, b"\0\0\0\0\0");
        add(kind::PUSH_PROMISE, 0, 1, b"\0\0\0\x02");
        add(kind::RST_STREAM, 0, 3, b"\0\0\0\x07");
        add(kind::RST_STREAM, 0, 3, b"\0\0");
        add(12, 0, 0, b"origin");
        add(kind::GOAWAY, 0, 0, b"\x80\x00\x00\x01\0\0\0\x0b");
        add(kind::GOAWAY, 0, 0, b"\0\0\0\0\0\0\x10\0gone\r\n> \x1b[31mfake");
        let expected = "\
SETTINGS MAX_CONCURRENT_STREAMS 100, ENABLE_CONNECT_PROTOCOL 1, setting 2570 7
SETTINGS, ACK
SETTINGS
WINDOW_UPDATE of stream 1 by 5
PING
PING, ACK
HEADERS of stream 1
:status: 200
a: b

ReadableData { stream: 1, frames: 1, bytes: 5, ends: false, body: [104, 101, 108, 108, 111] }
HEADERS of stream 1, END_STREAM
a: b

PRIORITY of stream 3
PUSH_PROMISE of stream 1
RST_STREAM of stream 3: REFUSED_STREAM
frame of kind 3 of stream 3, 2 bytes
frame of kind 12 of the connection, 6 bytes
GOAWAY: ENHANCE_YOUR_CALM, the last stream is 1
GOAWAY: unknown code 4096, the last stream is 0, \"gone\\x0d\\x0a> \x1b[31mfake\"
";
        for size in [1, 2, 7, 64, frames.len()] {
            assert_eq!(received(&frames, size), expected, "{size}");
        }
    }

    #[test]
    fn unreadable_bytes_take_no_memory() {
        let ([_, mut reader], mut count) = (client().frame_readers(), 0);
        let mut frames = Vec::new();
        write(&mut frames, kind::HEADERS, 0, 1, b"\x88");
        let begun = frames.len();
        write(&mut frames, kind::CONTINUATION, 0, 1, &[0; 16 * 1024]);
        reader.read_bytes(&frames[..begun], |_| count += 1);
        for _ in 0..1000 {
            reader.read_bytes(&frames[begun..], |_| count += 1);
        }
        assert_eq!((count, reader.is_over), (2, true), "the line of HEADERS, and that the rest cannot be read");
        assert!(reader.block.capacity() + reader.part.capacity() <= 256 * 1024);
        // Neither HTTP/1.1 nor a long frame is kept.
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x00\x40\x01\x00\x00\x00\x00\x00\x01"] {
            let [_, mut reader] = client().frame_readers();
            let mut said = Vec::new();
            reader.read_bytes(bytes, |frame| said.push(shown(&frame)));
            assert_eq!(said, ["what follows cannot be read\n"]);
            assert!(reader.is_over && reader.part.is_empty());
            reader.read_bytes(bytes, |frame| panic!("{frame:?}"));
        }
    }

    #[test]
    fn undecodable_header_blocks_show_the_reason() {
        let mut frames = Vec::new();
        write(&mut frames, kind::HEADERS, flag::END_HEADERS, 1, b"\x88\xff\xff\xff\xff\xff\xff");
        let text = received(&frames, frames.len());
        assert!(text.starts_with("HEADERS of stream 1\n:status: 200\n") && text.lines().count() == 3, "{text}");
    }
}
