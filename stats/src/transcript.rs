//! One request and its response as seen on the wire, kept only for `--once`.

use std::collections::VecDeque;

use onrush_proto::Nanos;
use onrush_proto::http2::ReadableFrame;

/// Longest kept part of a body, in bytes.
pub const BODY_MAX: usize = 1024;

/// Longest kept part of a request, in bytes.
pub const SENT_MAX: usize = 16 * 1024;

/// Longest kept part of a response's heads, in bytes, and of its trailers.
pub const HEAD_MAX: usize = 16 * 1024;

/// Number of HTTP/2 frames kept from the beginning; consecutive DATA frames count as one.
const FIRST_FRAMES_MAX: usize = 80;

/// Number of HTTP/2 frames kept from the end.
const LAST_FRAMES_MAX: usize = 20;

/// Longest kept text of a frame, in bytes.
const FRAME_MAX: usize = 8 * 1024;

/// One request and its response, with their times.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The beginning of the sent bytes, up to [`SENT_MAX`].
    pub sent: Vec<u8>,
    /// True if the request is among the sent bytes.
    pub has_request: bool,
    /// Number of bytes sent.
    pub sent_bytes: u64,
    /// The beginning of the heads received, interim ones first.
    pub head: Vec<u8>,
    /// The beginning of the received bytes that follow the heads and belong to no body yet, such as the start of an
    /// incomplete head.
    pub unread: Vec<u8>,
    /// Length of the heads, in bytes.
    pub head_bytes: u64,
    /// The beginning of the body, without its framing.
    pub body: Vec<u8>,
    /// Length of the whole body, in bytes.
    pub body_bytes: u64,
    /// The beginning of the trailers.
    pub trailers: Vec<u8>,
    /// The first frames, if any; each with true if the client sent it.
    pub first_frames: Vec<(bool, ReadableFrame)>,
    /// Number of frames between the first and the last ones.
    pub frames_left_out: u64,
    /// The last frames, if there are more; each with true if the client sent it.
    pub last_frames: VecDeque<(bool, ReadableFrame)>,
    /// Time at which the connection attempt began.
    pub connecting: Nanos,
    /// Time at which the connection was established.
    pub connected: Nanos,
    /// Time at which the first byte was handed to the kernel.
    pub first_sent: Nanos,
    /// Arrival time of the first byte of the response.
    pub first_received: Option<Nanos>,
    /// Completion time of the response.
    pub completed: Option<Nanos>,
    /// The checks that the response failed; bit i is check i.
    pub failed_checks: u32,
}

impl Transcript {
    /// Records bytes handed to the kernel; `is_request`: they include the request, or it was sent before. Until then,
    /// each call sets the time of the first byte.
    pub fn record_sent(&mut self, bytes: &[u8], is_request: bool, at: Nanos) {
        if !std::mem::replace(&mut self.has_request, is_request) {
            self.first_sent = at;
        }
        let room = SENT_MAX - self.sent.len();
        self.sent.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.sent_bytes += bytes.len() as u64;
    }

    /// Begins a connection for the request; `is_framed`: the connection uses HTTP/2 frames. If there are frames of an
    /// earlier connection, records a line that separates them, or forgets everything but the connect times if this
    /// connection has no frames.
    pub fn begin_connection(&mut self, is_framed: bool) {
        self.unread.clear();
        if self.first_frames.is_empty() {
            return;
        }
        if is_framed {
            self.record_frame(true, ReadableFrame::Lines(b"on another connection\r\n".to_vec()));
        } else {
            *self = Self { connecting: self.connecting, connected: self.connected, ..Self::default() };
        }
    }

    /// Records received bytes before they are parsed.
    pub fn record_received(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.unread.len();
        self.unread.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Records a complete head, which is no longer `unread`.
    pub fn record_head(&mut self, bytes: &[u8]) {
        self.unread.drain(..self.unread.len().min(bytes.len()));
        let room = HEAD_MAX - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.head_bytes += bytes.len() as u64;
    }

    /// Records a frame; consecutive DATA frames of a stream become one. Of their bodies, only the beginning of the
    /// first one sent is kept: a response's body is kept separately.
    pub fn record_frame(&mut self, is_sent: bool, mut frame: ReadableFrame) {
        let before = self.last_frames.back_mut().or(self.first_frames.last_mut());
        if let (ReadableFrame::Data(more), Some((side, ReadableFrame::Data(data)))) = (&frame, before)
            && (*side, data.stream) == (is_sent, more.stream)
        {
            let is_kept = data.body.len() as u64 == data.bytes;
            let room = if is_kept && is_sent { BODY_MAX - data.body.len() } else { 0 };
            data.body.extend_from_slice(&more.body[..more.body.len().min(room)]);
            data.bytes += more.bytes;
            data.frames += more.frames;
            data.ends |= more.ends;
            return;
        }
        let is_body = |(is_sent, frame): &(bool, ReadableFrame)| *is_sent && matches!(frame, ReadableFrame::Data(_));
        match &mut frame {
            ReadableFrame::Data(data) => {
                data.body.truncate(if is_sent && !self.first_frames.iter().any(is_body) { BODY_MAX } else { 0 });
            }
            ReadableFrame::Lines(lines) if lines.len() > FRAME_MAX => {
                lines.truncate(FRAME_MAX);
                lines.extend_from_slice("…\r\n".as_bytes());
            }
            ReadableFrame::Lines(_) => {}
        }
        if self.first_frames.len() < FIRST_FRAMES_MAX {
            self.first_frames.push((is_sent, frame));
            return;
        }
        self.last_frames.push_back((is_sent, frame));
        if self.last_frames.len() > LAST_FRAMES_MAX {
            self.frames_left_out += match self.last_frames.pop_front() {
                Some((_, ReadableFrame::Data(data))) => data.frames,
                _ => 1,
            };
        }
    }

    /// All kept frames, in order.
    pub fn frames_mut(&mut self) -> impl Iterator<Item = &mut ReadableFrame> {
        self.first_frames.iter_mut().chain(&mut self.last_frames).map(|(_, frame)| frame)
    }

    /// Records a part of the trailers.
    pub fn record_trailers(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.trailers.len();
        self.trailers.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Records a part of the body.
    pub fn record_data(&mut self, bytes: &[u8]) {
        self.unread.clear();
        let room = BODY_MAX - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.body_bytes += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use onrush_proto::http2::ReadableData;

    use super::*;

    fn data(stream: u32, body: &[u8]) -> ReadableFrame {
        let bytes = body.len() as u64;
        ReadableFrame::Data(ReadableData { stream, frames: 1, bytes, ends: false, body: body.to_vec() })
    }

    #[test]
    fn middle_frames_are_only_counted() {
        let mut transcript = Transcript::default();
        for _ in 0..1000 {
            transcript.record_frame(false, ReadableFrame::Lines(b"PING\r\n".to_vec()));
            transcript.record_frame(true, data(1, b""));
            transcript.record_frame(true, data(1, b""));
        }
        transcript.record_frame(false, ReadableFrame::Lines(b"GOAWAY\r\n".to_vec()));
        // Each of the runs of DATA between them is two frames.
        assert_eq!((transcript.first_frames.len(), transcript.last_frames.len()), (80, 20));
        assert_eq!(transcript.frames_left_out, 3001 - (80 + 40) - (20 + 9) - 1);
        assert_eq!(transcript.last_frames.back(), Some(&(false, ReadableFrame::Lines(b"GOAWAY\r\n".to_vec()))));
        let mut transcript = Transcript::default();
        transcript.record_frame(false, ReadableFrame::Lines(vec![b'a'; 20_000]));
        assert_eq!(
            transcript.first_frames,
            [(false, ReadableFrame::Lines([&[b'a'; FRAME_MAX], "…\r\n".as_bytes()].concat()))]
        );
    }

    #[test]
    fn new_connections_mark_or_clear_frames() {
        let mut transcript = Transcript::default();
        transcript.begin_connection(true);
        assert!(transcript.first_frames.is_empty());
        transcript.record_sent(b"frames", true, Nanos(1));
        transcript.record_frame(true, data(1, b""));
        transcript.begin_connection(true);
        assert_eq!(transcript.first_frames.len(), 2);
        transcript.begin_connection(false);
        assert!(transcript.first_frames.is_empty() && transcript.sent.is_empty() && !transcript.has_request);
        transcript.record_sent(b"GET", true, Nanos(2));
        transcript.begin_connection(false);
        assert_eq!(transcript.sent, b"GET");
    }

    #[test]
    fn consecutive_data_frames_are_merged() {
        let mut transcript = Transcript::default();
        transcript.record_frame(true, data(1, &[b'a'; 1000]));
        transcript.record_frame(true, data(1, &[b'b'; 1000]));
        transcript.record_frame(true, data(1, &[b'b'; 1000]));
        transcript.record_frame(true, data(3, b"c"));
        transcript.record_frame(true, data(3, b"c"));
        transcript.record_frame(false, data(3, b"d"));
        transcript.record_frame(false, data(3, b"d"));
        transcript.record_frame(true, data(1, &[b'b'; 1000]));
        let kept = transcript.first_frames.iter().map(|(is_sent, frame)| match frame {
            ReadableFrame::Data(data) => (*is_sent, data.stream, data.frames, data.bytes, data.body.len()),
            ReadableFrame::Lines(_) => panic!("{frame:?}"),
        });
        let expected = [(true, 1, 3, 3000, BODY_MAX), (true, 3, 2, 2, 0), (false, 3, 2, 2, 0), (true, 1, 1, 1000, 0)];
        assert_eq!(kept.collect::<Vec<_>>(), expected);
    }
}
