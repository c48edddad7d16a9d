//! Bodies (and one head) generated during sending, so that their length takes no memory.
//!
//! Time is an argument: nothing here reads a clock or a socket.

use std::sync::LazyLock;
use std::time::Duration;

/// The part of a response after its first bytes.
#[derive(Debug)]
pub(super) enum BodyStream {
    /// Bytes of [`BLOCK`], handed to the kernel without a copy.
    Block {
        /// Bytes left to send.
        left: u64,
    },
    /// A chunked body.
    Chunks {
        /// Content bytes left to send.
        left: u64,
        /// True before the first chunk, which has an extension.
        first: bool,
    },
    /// A body sent bit by bit.
    Drip(Drip),
    /// Endless header fields.
    EndlessHead,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// There is more to send right away.
    More,
    /// Nothing more is due before this time, in nanoseconds of the server's clock.
    Until(u64),
    /// Everything has been appended.
    Done,
}

/// Content of bodies. Letters instead of zeros, so that a body is not confused with uninitialised memory. Generated on
/// first use, to keep it out of the program file.
pub(super) static BLOCK: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![b'x'; BLOCK_BYTES].into());

/// Length of a block.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

impl BodyStream {
    /// Appends the bytes that are due at `now_ns`, about one [`BLOCK`] at most.
    pub(super) fn append_due_bytes(&mut self, out: &mut Vec<u8>, now_ns: u64) -> Fill {
        match self {
            Self::Block { left } => {
                let here = (*left).min(BLOCK.len() as u64);
                out.extend_from_slice(&BLOCK[..here as usize]);
                *left -= here;
                if *left == 0 { Fill::Done } else { Fill::More }
            }
            Self::Chunks { left, first } => append_chunks(left, first, out),
            Self::Drip(drip) => drip.append_due_bytes(out, now_ns),
            Self::EndlessHead => {
                (0..1024).for_each(|_| out.extend_from_slice(b"X-Endless: and so on, and so on, and so on\r\n"));
                Fill::More
            }
        }
    }

    /// Number of content bytes that may be sent now, for a protocol with its own framing.
    pub(super) fn ready_bytes(&mut self, now_ns: u64) -> u64 {
        match self {
            Self::Block { left } | Self::Chunks { left, .. } => *left,
            Self::Drip(drip) => drip.due_unsent_bytes(now_ns),
            Self::EndlessHead => 0,
        }
    }

    /// Records that this many ready bytes were sent.
    pub(super) fn advance(&mut self, bytes: u64) {
        match self {
            Self::Block { left } | Self::Chunks { left, .. } => *left -= bytes,
            Self::Drip(drip) => drip.sent += bytes,
            Self::EndlessHead => {}
        }
    }

    /// Time at which a drip has bytes again, if it has none now; `None` if everything was sent, and for other bodies,
    /// which never wait.
    pub(super) fn next_due_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Drip(drip) if drip.sent < drip.total => Some(drip.next_due_ns(now_ns)),
            _ => None,
        }
    }

    /// True if all content was sent; never for an endless head.
    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::Block { left } | Self::Chunks { left, .. } => *left == 0,
            Self::Drip(drip) => drip.sent == drip.total,
            Self::EndlessHead => false,
        }
    }

    /// The trailer field to send after the content, if the body is chunked.
    pub(super) fn trailer(&self) -> Option<(&'static str, &'static str)> {
        matches!(self, Self::Chunks { .. }).then_some(TRAILER)
    }
}

/// The trailer of a chunked body.
const TRAILER: (&str, &str) = ("X-Trail", "t");

/// Maximum size of a chunk.
const CHUNK_BYTES: u64 = 4096;

fn append_chunks(left: &mut u64, first: &mut bool, out: &mut Vec<u8>) -> Fill {
    for _ in 0..8 {
        if *left == 0 {
            let (name, value) = TRAILER;
            out.extend_from_slice(format!("0\r\n{name}: {value}\r\n\r\n").as_bytes());
            return Fill::Done;
        }
        let size = (*left).min(CHUNK_BYTES);
        let extension = if std::mem::take(first) { ";first" } else { "" };
        out.extend_from_slice(format!("{size:x}{extension}\r\n").as_bytes());
        out.extend_from_slice(&BLOCK[..size as usize]);
        out.extend_from_slice(b"\r\n");
        *left -= size;
    }
    Fill::More
}

/// A body spread evenly over a time span: byte k (from 0) is due after k / total of the span.
#[derive(Debug)]
pub(super) struct Drip {
    total: u64,
    span_ns: u64,
    sent: u64,
    /// Time at which the first bytes were asked for, when byte 0 is due.
    start_ns: Option<u64>,
}

/// Minimum pause between two parts of a drip: a million bytes in one second are sent as a thousand parts of a thousand.
const DRIP_PAUSE_NS: u64 = 1_000_000;

impl Drip {
    /// `total` bytes spread over `span`, which starts when the first bytes are asked for.
    pub(super) fn new(total: u64, span: Duration) -> Self {
        Self { total, span_ns: span.as_nanos() as u64, sent: 0, start_ns: None }
    }

    fn append_due_bytes(&mut self, out: &mut Vec<u8>, now_ns: u64) -> Fill {
        let ready = self.due_unsent_bytes(now_ns);
        let here = ready.min(BLOCK.len() as u64);
        out.extend_from_slice(&BLOCK[..here as usize]);
        self.sent += here;
        if self.sent == self.total {
            Fill::Done
        } else if here < ready {
            Fill::More
        } else {
            Fill::Until(self.next_due_ns(now_ns))
        }
    }

    /// Number of due bytes that were not sent.
    fn due_unsent_bytes(&mut self, now_ns: u64) -> u64 {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        self.due_bytes(now_ns.saturating_sub(start_ns)) - self.sent
    }

    /// Time of the next byte, if none is ready now.
    fn next_due_ns(&self, now_ns: u64) -> u64 {
        (self.start_ns.unwrap_or(now_ns) + self.due_at_ns(self.sent)).max(now_ns + DRIP_PAUSE_NS)
    }

    /// Number of bytes due this long after the start.
    fn due_bytes(&self, elapsed_ns: u64) -> u64 {
        if elapsed_ns >= self.span_ns {
            return self.total;
        }
        let whole = u128::from(elapsed_ns) * u128::from(self.total) / u128::from(self.span_ns);
        (whole as u64 + 1).min(self.total)
    }

    /// Due time of byte `k` (from 0), counted from the start.
    fn due_at_ns(&self, k: u64) -> u64 {
        (u128::from(k) * u128::from(self.span_ns)).div_ceil(u128::from(self.total)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drips_spread_bytes_evenly() {
        let mut stream = BodyStream::Drip(Drip::new(4, Duration::from_millis(400)));
        let mut out = Vec::new();
        assert_eq!(stream.append_due_bytes(&mut out, 1_000), Fill::Until(100_001_000));
        assert_eq!(out, b"x");
        assert_eq!(stream.append_due_bytes(&mut out, 100_001_000), Fill::Until(200_001_000));
        assert_eq!(out, b"xx");
        assert_eq!(stream.append_due_bytes(&mut out, 350_001_000), Fill::Done);
        assert_eq!(out, b"xxxx");
    }

    #[test]
    fn a_dense_drip_pauses_at_least_a_millisecond() {
        let mut stream = BodyStream::Drip(Drip::new(1_000_000, Duration::from_secs(1)));
        assert_eq!(stream.append_due_bytes(&mut Vec::new(), 0), Fill::Until(DRIP_PAUSE_NS));
        let mut out = Vec::new();
        assert_eq!(stream.append_due_bytes(&mut out, DRIP_PAUSE_NS), Fill::Until(2 * DRIP_PAUSE_NS));
        assert_eq!(out.len(), 1_000);
    }

    #[test]
    fn empty_drips_finish_at_once() {
        let mut out = Vec::new();
        assert_eq!(Drip::new(0, Duration::from_secs(1)).append_due_bytes(&mut out, 5), Fill::Done);
        assert!(out.is_empty());
        assert_eq!(Drip::new(7, Duration::ZERO).append_due_bytes(&mut out, 5), Fill::Done);
        assert_eq!(out.len(), 7);
    }

    #[test]
    fn chunks_are_4_kib_with_trailers() {
        let mut stream = BodyStream::Chunks { left: 4100, first: true };
        let mut out = Vec::new();
        assert_eq!(stream.append_due_bytes(&mut out, 0), Fill::Done);
        let content = "x".repeat(4096);
        let expected = format!("1000;first\r\n{content}\r\n4\r\nxxxx\r\n0\r\nX-Trail: t\r\n\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn endless_streams_are_appended_in_pieces() {
        for mut stream in [
            BodyStream::Block { left: u64::MAX },
            BodyStream::Chunks { left: u64::MAX, first: true },
            BodyStream::Drip(Drip::new(u64::MAX, Duration::ZERO)),
            BodyStream::EndlessHead,
        ] {
            let mut out = Vec::new();
            assert_eq!(stream.append_due_bytes(&mut out, 0), Fill::More, "{stream:?}");
            assert!((1..=BLOCK.len()).contains(&out.len()), "{stream:?} made {} bytes", out.len());
        }
    }
}
