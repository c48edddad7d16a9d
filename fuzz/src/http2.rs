//! HTTP/2: any bytes, any split.

use std::collections::BTreeSet;

use onrush_proto::http2::{Http2, Http2Options, SharedContext};
use onrush_proto::{Client, Event, Nanos, Request, RequestParts, StreamId};

/// Responses of a server that sends anything. The first two bytes are settings; the rest is sent.
///
/// - First byte, bits 0 and 1: the maximum number of requests in flight, minus one.
/// - Bit 2: every second request is an upload.
/// - Bit 3: all bytes after the greeting stay unsent.
/// - Bit 4: SETTINGS precede the rest.
/// - Bit 7: the driver cancels some requests, lets time pass and stops after some requests.
/// - Second byte, bits 0 to 4: the split.
/// - Bit 5: a request starts for each finished one.
/// - Bit 7: requests stay unwritten until the next event.
///
/// Digits and letters are suitable first bytes of a seed.
pub fn http2_response(data: &[u8]) {
    let [scene, split, bytes @ ..] = data else { return };
    let scene = Scene {
        streams: u32::from(scene & 3) + 1,
        uploads: scene & 4 != 0,
        sends_all: scene & 8 == 0,
        refills: split & 32 != 0,
        acts: scene & 128 != 0,
        is_late: split & 128 != 0,
    };
    let is_greeted = data[0] & 16 != 0;
    let settings: &[u8] = if is_greeted { b"\0\0\0\x04\0\0\0\0\0" } else { b"" };
    let bytes = [settings, bytes].concat();

    let whole = [bytes.len().max(1)];
    let pieces: Vec<usize> = (1..=16).map(|index| (usize::from(split & 31) + 1) * index * index % 23 + 1).collect();
    let mut expected = scene.play(&bytes, &whole, false);
    for sizes in [&[1][..], &pieces] {
        assert_eq!(scene.play(&bytes, sizes, false), expected, "in pieces of {sizes:?}");
    }
    expected.events.retain(|(event, _)| !matches!(event, Event::Data { .. }));
    for sizes in [&whole[..], &pieces] {
        let mut heard = scene.play(&bytes, sizes, true);
        heard.events.retain(|(event, _)| !matches!(event, Event::Data { .. }));
        assert_eq!(heard, expected, "skipping, in pieces of {sizes:?}");
    }
}

/// Rules for starting and sending requests while bytes arrive.
struct Scene {
    streams: u32,
    uploads: bool,
    sends_all: bool,
    refills: bool,
    acts: bool,
    is_late: bool,
}

/// Number of requests after which a driver that stops starts no more.
const REQUESTS_MAX: usize = 10;

/// Time that passes per consumed byte, in nanoseconds.
const BYTE_NS: u64 = 1_000_000;

/// Events, independent of the split of the input.
#[derive(Debug, Default, PartialEq, Eq)]
struct ObservedEvent {
    /// Each event, with an empty data range, and its data or the text of its fields.
    events: Vec<(Event, Vec<u8>)>,
    /// All sent bytes, unless they depend on the time at which windows were open.
    sent: Vec<u8>,
}

impl Scene {
    /// Sends `bytes` in pieces of these sizes, repeated as needed, then ends the stream.
    fn play(&self, bytes: &[u8], sizes: &[usize], skips: bool) -> ObservedEvent {
        let options = Http2Options {
            streams: self.streams,
            wants_body: true,
            wants_fields: true,
            window: 1000,
            connection_window: 70_000,
            ..Http2Options::default()
        };
        let request = |method: &str, length: usize| {
            let body = vec![7; length].into();
            Request::new(RequestParts { method: method.into(), target: "/".into(), body, ..RequestParts::default() })
        };
        let mut call = Driver {
            scene: self,
            client: Http2::new(&SharedContext::new(options)),
            requests: [
                request("GET", 0),
                request(if self.uploads { "POST" } else { "HEAD" }, usize::from(self.uploads) * 70_000),
            ],
            open: BTreeSet::new(),
            started: 0,
            taken: 0,
            ends: 0,
            is_greeted: false,
            has_drained: false,
            heard: ObservedEvent::default(),
        };
        call.start_requests();
        call.send();
        let mut left = bytes;
        for &size in sizes.iter().cycle() {
            let (piece, rest) = left.split_at(size.min(left.len()));
            call.handle_piece(piece, skips);
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        call.client.handle_eof();
        call.take_events(b"");
        call.check_is_over();
        call.heard
    }
}

/// An ongoing connection.
struct Driver<'a> {
    scene: &'a Scene,
    client: Http2,
    requests: [Request; 2],
    /// Requests whose last event has not arrived.
    open: BTreeSet<u32>,
    started: usize,
    taken: u64,
    /// Number of heads and ends of requests.
    ends: usize,
    is_greeted: bool,
    has_drained: bool,
    heard: ObservedEvent,
}

impl Driver<'_> {
    fn start_requests(&mut self) {
        while self.client.capacity() > 0 {
            let request = &self.requests[self.started % 2];
            let is_last = self.scene.acts && self.started + 1 == REQUESTS_MAX;
            let StreamId(stream) = self.client.start(request, is_last).expect("there is capacity");
            assert!(self.open.insert(stream), "a stream's name is used twice");
            self.started += 1;
        }
        assert!(self.open.len() <= self.scene.streams as usize);
    }

    /// The time, which depends on the consumed bytes and not on the split.
    fn now(&self) -> Nanos {
        Nanos(if self.scene.acts { self.taken * BYTE_NS } else { 0 })
    }

    fn send(&mut self) {
        let now = self.now();
        if self.client.poll_timeout().is_some_and(|at| at <= now) {
            self.client.handle_timeout(now);
        }
        while let Some(transmit) = self.client.poll_transmit(now) {
            let bytes = transmit.bytes();
            if self.scene.sends_all {
                self.client.handle_sent(bytes.len());
            } else if !self.is_greeted {
                self.client.handle_sent(bytes.len() - 1);
            }
            self.is_greeted = true;
            if !self.scene.uploads && !self.scene.is_late {
                self.heard.sent.extend_from_slice(&bytes);
            }
        }
    }

    /// Passes a piece to the client, and checks that every byte is consumed exactly once, and that there is an event
    /// whenever some bytes remain.
    fn handle_piece(&mut self, mut piece: &[u8], skips: bool) {
        while !piece.is_empty() {
            let skip = self.client.may_skip().min(piece.len() as u64);
            let ends_before = self.ends;
            let used = if skips && skip > 0 {
                self.client.handle_skipped(skip);
                self.taken += skip;
                self.take_events(b"");
                skip as usize
            } else {
                let used = self.client.handle_bytes(piece, self.now());
                self.taken += used as u64;
                let has_events = self.take_events(piece);
                assert!(used == piece.len() || (used < piece.len() && has_events), "{used} of {} taken", piece.len());
                used
            };
            piece = &piece[used..];
            // Output must not depend on the split: it decides what the server may answer.
            let is_due = !self.scene.is_late || self.ends > ends_before;
            if self.scene.is_late && is_due {
                self.send();
            }
            if self.scene.refills && is_due {
                self.start_requests();
            }
            if !self.scene.is_late {
                self.send();
            }
        }
    }

    /// Takes the pending events, checks and records them. True if there were any.
    fn take_events(&mut self, input: &[u8]) -> bool {
        let mut any = false;
        while let Some(event) = self.client.poll_event() {
            any = true;
            self.check_order(&event);
            let stream = match event {
                Event::Head { stream, .. } => Some(stream),
                Event::Complete { .. } | Event::Failed { .. } => self.open.last().copied().map(StreamId),
                _ => None,
            };
            self.record_event(event, input);
            if let Some(stream) = stream {
                self.note_end(stream);
            }
        }
        any
    }

    /// Counts a head or an end, and sometimes cancels a request.
    fn note_end(&mut self, stream: StreamId) {
        self.ends += 1;
        if self.scene.acts && self.ends.is_multiple_of(3) {
            self.client.cancel(stream);
            self.open.remove(&stream.0);
        }
    }

    /// Checks that finished requests have no further events, and that there is only one drain.
    fn check_order(&mut self, event: &Event) {
        match event {
            Event::Complete { stream, .. } | Event::Failed { stream, .. } => assert!(self.open.remove(&stream.0)),
            Event::Draining { .. } => assert!(!std::mem::replace(&mut self.has_drained, true), "it drains twice"),
            event => assert!(event.stream().is_some_and(|stream| self.open.contains(&stream.0)), "{event:?}"),
        }
        if self.has_drained {
            assert_eq!(self.client.capacity(), 0);
        }
    }

    fn record_event(&mut self, mut event: Event, input: &[u8]) {
        if let Event::Complete { is_early, .. } = &mut event {
            // In pieces, more of the request is sent before the response is complete.
            *is_early = false;
        }
        let Event::Data { stream, range } = event else {
            let mut text = Vec::new();
            if let Event::Head { .. } | Event::Interim { .. } | Event::Trailer { .. } = event {
                self.client.write_text(input, &mut text);
                let lines = text.split(|&byte| byte == b'\n').count() - 1;
                let others = if let Event::Trailer { .. } = event { 0 } else { 2 };
                assert_eq!(lines, self.client.fields(input).count() + others);
            }
            self.heard.events.push((event, text));
            return;
        };
        let event = Event::Data { stream, range: 0..0 };
        match self.heard.events.last_mut().filter(|(last, _)| *last == event) {
            Some((_, data)) => data.extend_from_slice(&input[range]),
            None => self.heard.events.push((event, input[range].to_vec())),
        }
    }

    /// Checks that after the end of the stream every request has ended, the connection drains, and nothing more
    /// happens.
    fn check_is_over(&mut self) {
        assert!(self.open.is_empty(), "requests without an end: {:?}", self.open);
        assert!(self.has_drained);
        assert_eq!((self.client.capacity(), self.client.may_skip(), self.client.reading()), (0, 0, None));
        self.send();
        assert_eq!(self.client.handle_bytes(b"more", Nanos(0)), 4);
        assert_eq!(self.client.poll_event(), None);
        assert!(self.client.poll_transmit(Nanos(0)).is_none());
    }
}
