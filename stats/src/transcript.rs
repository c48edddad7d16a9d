//! The bytes of one request and its response on the wire, kept only for `--once`.

use onrush_proto::Nanos;
use onrush_proto::http2::ReadableFrame;

/// The longest part of a body that is kept, in bytes.
pub const BODY_MAX: usize = 1024;

/// The longest part of a request that is kept, in bytes.
pub const SENT_MAX: usize = 16 * 1024;

/// The longest part of the heads of a response that is kept, in bytes, and of its trailers.
pub const HEAD_MAX: usize = 16 * 1024;

/// How many frames of HTTP/2 are kept, where several of DATA in a row are one.
pub const FRAMES_MAX: usize = 100;

/// How long they are kept in words, all together, in bytes.
const FRAMES_BYTES_MAX: usize = 64 * 1024;

/// One request and its response, with the moments that matter.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The beginning of what was sent.
    pub sent: Vec<u8>,
    /// Whether the request is among them.
    pub has_request: bool,
    /// The number of bytes that were sent.
    pub sent_bytes: u64,
    /// The beginning of the heads received, interim ones first.
    pub head: Vec<u8>,
    /// The length of the heads, in bytes.
    pub head_bytes: u64,
    /// The beginning of the body, without its framing.
    pub body: Vec<u8>,
    /// The length of the whole body, in bytes.
    pub body_bytes: u64,
    /// The beginning of the trailers.
    pub trailers: Vec<u8>,
    /// The first frames, if there are any: whether they were sent, and in words.
    pub frames: Vec<(bool, ReadableFrame)>,
    /// How many more there were.
    pub frames_more: u64,
    /// How long those are that are kept, without DATA, in bytes.
    pub frames_bytes: usize,
    /// When the connect began.
    pub connecting: Nanos,
    /// When the connection was established.
    pub connected: Nanos,
    /// When the first byte was handed to the kernel.
    pub first_sent: Nanos,
    /// When the first byte of the response arrived.
    pub first_received: Option<Nanos>,
    /// When the response was complete.
    pub completed: Option<Nanos>,
    /// The checks that the response failed, a bit for each by its number.
    pub failed_checks: u32,
}

impl Transcript {
    /// Records bytes handed to the kernel; `is_request`: a request is among them, or was before.
    pub fn send(&mut self, bytes: &[u8], is_request: bool, at: Nanos) {
        if !std::mem::replace(&mut self.has_request, is_request) {
            self.first_sent = at;
        }
        let room = SENT_MAX - self.sent.len();
        self.sent.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.sent_bytes += bytes.len() as u64;
    }

    /// Records a head.
    pub fn head(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.head_bytes += bytes.len() as u64;
    }

    /// Records a frame. Of a body only the beginning is kept, if it was sent: that of a response is kept as such.
    pub fn frame(&mut self, is_sent: bool, mut frame: ReadableFrame) {
        let body_max = if is_sent { BODY_MAX } else { 0 };
        if let (ReadableFrame::Data(more), Some((side, ReadableFrame::Data(data)))) = (&frame, self.frames.last_mut())
            && (*side, data.stream, self.frames_more) == (is_sent, more.stream, 0)
        {
            let room = body_max - data.body.len();
            data.body.extend_from_slice(&more.body[..more.body.len().min(room)]);
            data.bytes += more.bytes;
            data.frames += more.frames;
            data.ends |= more.ends;
            return;
        }
        let room = FRAMES_BYTES_MAX - self.frames_bytes;
        if self.frames.len() == FRAMES_MAX || room == 0 {
            self.frames_more += 1;
            return;
        }
        match &mut frame {
            ReadableFrame::Data(data) => data.body.truncate(body_max),
            ReadableFrame::Lines(lines) => {
                self.frames_bytes += lines.len().min(room);
                if lines.len() > room {
                    lines.truncate(room);
                    lines.extend_from_slice("…\r\n".as_bytes());
                }
            }
        }
        self.frames.push((is_sent, frame));
    }

    /// Records a part of the trailers.
    pub fn trailers(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.trailers.len();
        self.trailers.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Records a part of the body.
    pub fn data(&mut self, bytes: &[u8]) {
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
    fn only_the_first_frames_are_kept_and_the_rest_counted() {
        let mut transcript = Transcript::default();
        for _ in 0..1000 {
            transcript.frame(false, ReadableFrame::Lines(b"PING\r\n".to_vec()));
            transcript.frame(true, data(1, b""));
        }
        assert_eq!((transcript.frames.len(), transcript.frames_more), (FRAMES_MAX, 2000 - FRAMES_MAX as u64));
        let mut transcript = Transcript::default();
        for _ in 0..10 {
            transcript.frame(false, ReadableFrame::Lines(vec![b'a'; 20_000]));
        }
        let lengths = transcript.frames.iter().map(|(_, frame)| match frame {
            ReadableFrame::Lines(lines) => lines.len(),
            ReadableFrame::Data(_) => 0,
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [20_000, 20_000, 20_000, 5536 + "…\r\n".len()]);
        assert_eq!(transcript.frames_more, 6);
    }

    #[test]
    fn data_in_a_row_is_one() {
        let mut transcript = Transcript::default();
        transcript.frame(true, data(1, &[b'a'; 1000]));
        transcript.frame(true, data(1, &[b'b'; 1000]));
        transcript.frame(true, data(3, b"c"));
        transcript.frame(false, data(3, b"d"));
        transcript.frame(false, data(3, b"d"));
        let kept = transcript.frames.iter().map(|(is_sent, frame)| match frame {
            ReadableFrame::Data(data) => (*is_sent, data.stream, data.frames, data.bytes, data.body.len()),
            ReadableFrame::Lines(_) => panic!("{frame:?}"),
        });
        let expected = [(true, 1, 2, 2000, BODY_MAX), (true, 3, 1, 1, 1), (false, 3, 2, 2, 0)];
        assert_eq!(kept.collect::<Vec<_>>(), expected);
    }
}
