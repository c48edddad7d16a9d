//! A protocol for tests only: many requests on one connection, responses in any order, flow control, control frames and
//! a timer. HTTP/2's demands on the engine, in miniature.
//!
//! A frame is a kind (one byte), a stream (one byte), a length (two bytes, big-endian) and that many bytes.

use std::collections::VecDeque;

use onrush_proto::{Client, Error, Event, Fields, Nanos, Request, StartError, StreamId, Transmit};

/// Kinds of frames, with their sender.
pub mod kind {
    /// Client: part of a request body; the last part is empty.
    pub const BODY: u8 = b'B';
    /// Client: the connection is in use.
    pub const ALIVE: u8 = b'K';
    /// Client: the reply to a ping.
    pub const PONG: u8 = b'O';
    /// Server: part of a response, not the last.
    pub const PART: u8 = b'P';
    /// Server: the last part.
    pub const ANSWER: u8 = b'A';
    /// Server: the request failed.
    pub const ERROR: u8 = b'E';
    /// Server: the request was not processed.
    pub const UNSEEN: u8 = b'U';
    /// Server: number of requests that may be in flight (one byte).
    pub const CAPACITY: u8 = b'C';
    /// Server: number of further body bytes that may be sent (one byte, times 100).
    pub const WINDOW: u8 = b'W';
    /// Server: asks for a reply.
    pub const PING: u8 = b'I';
    /// Server: no more requests.
    pub const GOAWAY: u8 = b'G';
    /// Server: the head of a response.
    pub const HEAD: u8 = b'H';
    /// Server: part of the body.
    pub const DATA: u8 = b'D';
    /// Server: the response is complete.
    pub const END: u8 = b'Z';
    /// Server: a message on a stream that stays open.
    pub const MESSAGE: u8 = b'M';
}

/// Writes a frame.
pub fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, stream];
    bytes.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Takes the first complete frame off a buffer: kind, stream, payload.
pub fn take_frame(buffer: &mut Vec<u8>) -> Option<(u8, u8, Vec<u8>)> {
    let length = usize::from(u16::from_be_bytes([*buffer.get(2)?, *buffer.get(3)?]));
    if buffer.len() < 4 + length {
        return None;
    }
    let frame: Vec<u8> = buffer.drain(..4 + length).collect();
    Some((frame[0], frame[1], frame[4..].to_vec()))
}

/// The client's side.
pub struct Second {
    capacity: usize,
    window: usize,
    open: Vec<u8>,
    next_stream: u8,
    /// Unfinished bodies: stream and rest.
    uploads: VecDeque<(u8, Vec<u8>)>,
    output: VecDeque<Vec<u8>>,
    /// An incomplete frame, except for the payload of data.
    input: Vec<u8>,
    /// The stream whose data is being received, and the number of bytes to come.
    data: Option<(u8, usize)>,
    head: Vec<u8>,
    events: VecDeque<Event>,
    draining: bool,
    alive_every: Option<u64>,
    alive_at: Option<Nanos>,
}

impl Second {
    pub fn new(capacity: usize, window: usize) -> Self {
        Self {
            capacity,
            window,
            open: Vec::new(),
            next_stream: 0,
            uploads: VecDeque::new(),
            output: VecDeque::new(),
            input: Vec::new(),
            data: None,
            head: Vec::new(),
            events: VecDeque::new(),
            draining: false,
            alive_every: None,
            alive_at: None,
        }
    }

    /// Sends a keep-alive frame every `nanoseconds`, first after that time.
    pub fn alive_every(mut self, nanoseconds: u64) -> Self {
        self.alive_every = Some(nanoseconds);
        self.alive_at = Some(Nanos(nanoseconds));
        self
    }

    fn end(&mut self, stream: u8) -> StreamId {
        self.open.retain(|&open| open != stream);
        self.uploads.retain(|(upload, _)| *upload != stream);
        StreamId(stream.into())
    }

    fn take(&mut self, kind: u8, stream: u8, payload: &[u8]) {
        let id = StreamId(stream.into());
        match kind {
            kind::PART => self.events.push_back(Event::Interim { stream: id, status: 100 }),
            kind::ANSWER => {
                let stream = self.end(stream);
                self.events.extend([
                    Event::Head { stream, status: 200 },
                    Event::Complete { stream, grpc_status: 0, is_early: false },
                ]);
            }
            kind::HEAD => {
                self.head = payload.to_vec();
                self.events.push_back(Event::Head { stream: id, status: 200 });
            }
            kind::END => {
                let stream = self.end(stream);
                self.events.push_back(Event::Complete { stream, grpc_status: 0, is_early: false });
            }
            kind::MESSAGE => {
                self.events.extend([Event::Lives { stream: id }, Event::Message { stream: id, range: 0..0 }])
            }
            kind::ERROR => {
                let stream = self.end(stream);
                self.events.push_back(Event::Failed { stream, error: Error::HeaderField, retryable: false });
            }
            kind::UNSEEN => {
                let stream = self.end(stream);
                self.events.push_back(Event::Failed { stream, error: Error::ConnectionEnded, retryable: true });
            }
            kind::CAPACITY => self.capacity = usize::from(payload[0]),
            kind::WINDOW => self.window += usize::from(payload[0]) * 100,
            kind::PING => self.output.push_back(frame(kind::PONG, 0, payload)),
            kind::GOAWAY => {
                self.draining = true;
                self.events.push_back(Event::Draining { error: None });
            }
            _ => unreachable!("the simulated server sends no other frame"),
        }
    }
}

impl Client for Second {
    fn capacity(&self) -> usize {
        if self.draining { 0 } else { self.capacity.saturating_sub(self.open.len()) }
    }

    fn start(&mut self, request: &Request, _: bool) -> Result<StreamId, StartError> {
        let Request::Parts(said) = request else { return Err(StartError::OnlyHttp1) };
        if self.capacity() == 0 {
            return Err(StartError::Busy);
        }
        self.next_stream = self.next_stream.wrapping_add(1);
        self.open.push(self.next_stream);
        self.uploads.push_back((self.next_stream, said.parts.body.to_vec()));
        Ok(StreamId(self.next_stream.into()))
    }

    fn cancel(&mut self, stream: StreamId) {
        self.end(stream.0 as u8);
    }

    fn handle_bytes(&mut self, bytes: &[u8], _: Nanos) -> usize {
        if let Some((stream, left)) = &mut self.data {
            let n = bytes.len().min(*left);
            *left -= n;
            self.events.push_back(Event::Data { stream: StreamId((*stream).into()), range: 0..n });
            self.data.take_if(|(_, left)| *left == 0);
            return n;
        }
        for (index, &byte) in bytes.iter().enumerate() {
            self.input.push(byte);
            if let &[kind::DATA, stream, high, low] = &self.input[..] {
                self.input.clear();
                self.data = Some((stream, usize::from(u16::from_be_bytes([high, low]))));
                return index + 1;
            }
            if let Some((kind, stream, payload)) = take_frame(&mut self.input) {
                self.take(kind, stream, &payload);
                return index + 1;
            }
        }
        bytes.len()
    }

    fn handle_skipped(&mut self, n: u64) {
        let (_, left) = self.data.as_mut().expect("only data may be skipped");
        *left -= n as usize;
        self.data.take_if(|(_, left)| *left == 0);
    }

    fn handle_eof(&mut self) {
        for stream in std::mem::take(&mut self.open) {
            let stream = StreamId(stream.into());
            self.events.push_back(Event::Failed { stream, error: Error::ClosedBeforeResponse, retryable: false });
        }
        self.events.push_back(Event::Draining { error: None });
    }

    fn handle_sent(&mut self, _: usize) {}

    fn handle_timeout(&mut self, now: Nanos) {
        self.output.push_back(frame(kind::ALIVE, 0, b""));
        self.alive_at = self.alive_every.map(|every| now + every);
    }

    fn poll_transmit(&mut self, _: Nanos) -> Option<Transmit> {
        if let Some(bytes) = self.output.pop_front() {
            return Some(Transmit::Owned(bytes));
        }
        let (stream, mut body) = self.uploads.pop_front()?;
        if !body.is_empty() && self.window == 0 {
            self.uploads.push_front((stream, body));
            return None;
        }
        let rest = body.split_off(body.len().min(self.window));
        self.window -= body.len();
        let mut bytes = frame(kind::BODY, stream, &body);
        if rest.is_empty() {
            if !body.is_empty() {
                bytes.extend(frame(kind::BODY, stream, b""));
            }
        } else {
            self.uploads.push_front((stream, rest));
        }
        Some(Transmit::Owned(bytes))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.alive_at
    }

    fn reading(&self) -> Option<StreamId> {
        let of_frame = match self.input[..] {
            [kind::HEAD | kind::ANSWER, stream, ..] => Some(stream),
            _ => None,
        };
        self.data.map(|(stream, _)| stream).or(of_frame).map(|stream| StreamId(stream.into()))
    }

    fn may_skip(&self) -> u64 {
        self.data.map_or(0, |(_, left)| left as u64)
    }

    fn fields<'a>(&'a self, _: &'a [u8]) -> Fields<'a> {
        Fields::default()
    }

    fn write_text(&self, _: &[u8], text: &mut Vec<u8>) {
        text.extend_from_slice(&self.head);
    }
}
