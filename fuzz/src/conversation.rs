//! A connection on which the server sends given bytes, and the events that the client reports.
//!
//! Drives a [`Client`] as the driver's contract requires, and checks that the client keeps its side.

use std::collections::VecDeque;

use onrush_proto::{Client, Event, Http1, Nanos, Request, RequestParts, StreamId};

/// The time passed to the client; HTTP/1 does not use it.
const NOW: Nanos = Nanos(0);

/// Rules for starting and sending requests while bytes arrive.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    /// Maximum number of requests in flight.
    pub(crate) depth: usize,
    /// Methods of the requests, used in turn.
    pub(crate) methods: Vec<&'static str>,
    /// True to start a new request whenever one has finished; false: requests are started only at the beginning.
    pub(crate) refills: bool,
    /// True to send each request in full; false: its last byte is never sent.
    pub(crate) sends_all: bool,
}

/// One event and its bytes, independent of the split of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ObservedEvent {
    /// The event, with an empty data range.
    pub(crate) event: Event,
    /// The head, the data or the trailers of the event.
    pub(crate) bytes: Vec<u8>,
}

/// True if the client is given all received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputSplit {
    /// All bytes are passed to the client.
    Looks,
    /// Bytes are skipped wherever possible.
    Skips,
}

impl Conversation {
    /// Sends `bytes` in pieces of these sizes, repeated as needed, then ends the stream. Returns the events and the
    /// number of skipped bytes.
    pub(crate) fn play(&self, bytes: &[u8], sizes: &[usize], reader: InputSplit) -> (Vec<ObservedEvent>, u64) {
        let mut call = Driver::new(self, reader);
        let mut left = bytes;
        for &size in sizes.iter().cycle() {
            let (piece, rest) = left.split_at(size.min(left.len()));
            call.handle_piece(piece);
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        call.client.handle_eof();
        call.take_events(b"");
        call.check_is_over();
        (call.heard, call.skipped)
    }
}

/// An ongoing conversation.
struct Driver<'a> {
    conversation: &'a Conversation,
    reader: InputSplit,
    client: Http1,
    requests: Vec<Request>,
    started: usize,
    /// Requests whose last event has not arrived, oldest first.
    open: VecDeque<StreamId>,
    heard: Vec<ObservedEvent>,
    skipped: u64,
}

impl<'a> Driver<'a> {
    fn new(conversation: &'a Conversation, reader: InputSplit) -> Self {
        let request = |&method: &&str| {
            Request::new(RequestParts { method: method.into(), target: "/".into(), ..RequestParts::default() })
        };
        let mut call = Self {
            conversation,
            reader,
            client: Http1::new(conversation.depth),
            requests: conversation.methods.iter().map(request).collect(),
            started: 0,
            open: VecDeque::new(),
            heard: Vec::new(),
            skipped: 0,
        };
        call.start_requests();
        call
    }

    fn start_requests(&mut self) {
        assert!(self.client.capacity() + self.open.len() <= self.conversation.depth);
        for _ in 0..self.client.capacity() {
            let request = &self.requests[self.started % self.requests.len()];
            let stream = self.client.start(request, false).expect("there is capacity");
            assert!(!self.open.contains(&stream), "a stream's name is used twice");
            self.open.push_back(stream);
            self.started += 1;
        }
        while let Some(transmit) = self.client.poll_transmit(NOW) {
            let unsent = usize::from(!self.conversation.sends_all);
            self.client.handle_sent(transmit.bytes().len() - unsent);
        }
    }

    /// Passes a piece to the client, and checks that every byte is consumed exactly once, and that there is an event
    /// whenever some bytes remain.
    fn handle_piece(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let skip = self.client.may_skip().min(piece.len() as u64);
            let used = if self.reader == InputSplit::Skips && skip > 0 {
                self.client.handle_skipped(skip);
                self.take_events(b"");
                self.skipped += skip;
                skip as usize
            } else {
                let used = self.client.handle_bytes(piece, NOW);
                let events = self.take_events(piece);
                assert!(used == piece.len() || (used < piece.len() && events > 0), "{used} of {} taken", piece.len());
                used
            };
            piece = &piece[used..];
            if self.conversation.refills {
                self.start_requests();
            }
        }
    }

    fn take_events(&mut self, input: &[u8]) -> usize {
        let mut events = 0;
        while let Some(event) = self.client.poll_event() {
            events += 1;
            self.check_order(&event);
            self.record_event(event, input);
        }
        events
    }

    /// Checks that responses arrive in the order of the requests, and the drain after all of them.
    fn check_order(&mut self, event: &Event) {
        assert_eq!(event.stream(), self.open.front().copied(), "{event:?}");
        if let Event::Complete { .. } | Event::Failed { .. } = event {
            self.open.pop_front();
        }
        let is_last = matches!(self.heard.last(), Some(ObservedEvent { event: Event::Draining { .. }, .. }));
        assert!(!is_last, "{event:?} after the drain");
    }

    fn record_event(&mut self, event: Event, input: &[u8]) {
        let (event, bytes) = match event {
            Event::Interim { .. } | Event::Head { .. } | Event::Trailer { .. } => {
                let mut text = Vec::new();
                self.client.write_text(input, &mut text);
                (event, text)
            }
            Event::Data { stream, range } => (Event::Data { stream, range: 0..0 }, input[range].to_vec()),
            event => (event, Vec::new()),
        };
        let comes_in_parts = matches!(event, Event::Data { .. } | Event::Trailer { .. });
        match self.heard.last_mut().filter(|last| comes_in_parts && last.event == event) {
            Some(last) => last.bytes.extend_from_slice(&bytes),
            None => self.heard.push(ObservedEvent { event, bytes }),
        }
    }

    /// Checks that after the end of the stream every request has ended, the connection drains, and there are no more
    /// events.
    fn check_is_over(&mut self) {
        assert!(self.open.is_empty(), "requests without an end: {:?}", self.open);
        assert!(matches!(self.heard.last(), Some(ObservedEvent { event: Event::Draining { .. }, .. })));
        assert_eq!(self.client.capacity(), 0);
        assert_eq!(self.client.may_skip(), 0);
        assert!(self.client.poll_transmit(NOW).is_none());
        assert_eq!(self.client.handle_bytes(b"more", NOW), 4);
        assert_eq!(self.client.poll_event(), None);
    }
}
