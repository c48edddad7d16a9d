//! One client connection: receives requests, sends responses, never waits.
//!
//! The worker gives a connection a turn when its socket had an event, when the time it asked for has come, or when it
//! asked to continue. Between turns it holds a bounded amount: one buffer of pending requests, one unsent response, and
//! for `/echo` the request. Until a response has been sent, no further request is read.
//!
//! ```text
//!          ┌──────────────────────── next request ─────────────────────────┐
//!          ▼                                                               │
//!       Reading ──► Receiving ──► Queued ───► Waiting ──► Streaming ───────┤
//!       (heads)     (a body)      (a place)   (a time)    (a body)         ▼
//!                                             closed ◄── Dropping ◄──── Ending ──► closed, reset
//! ```

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::net::SendFlags;

use super::ask::Numbers;
use super::body::Body;
use super::places::{Limit, Place};
use super::rejection::Rejection;
use super::reply::Then;
use super::request::{Head, Persistence, scan};
use super::resources::{OUTPUT_BYTES, Resources};
use super::response::{End, Manner, PLAIN, Response};
use super::routes;
use super::socket::{Sent, Socket};
use super::stream::{BLOCK, Fill, Stream};
use super::token::Token;

/// A client connection and its state.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    stage: Stage,
    /// Requests, possibly incomplete, that arrived before an earlier one had its response.
    input: Vec<u8>,
    /// The number of the connection and of its last request.
    numbers: Numbers,
    /// Where it is called.
    token: Token,
    /// Its place among the connections that are served, once it asked for one.
    process: Option<Place>,
}

/// The state of a connection.
#[derive(Debug)]
enum Stage {
    /// Reads request heads.
    Reading,
    /// Receives the body of a request.
    Receiving { body: Body, then: Then },
    /// Sends nothing before a place is given: that of a worker, or without one that of the connection.
    Queued { worker: Option<Place>, response: Response },
    /// Sends nothing before a time, in nanoseconds of the thread's clock. Any worker is busy until then.
    Waiting { until_ns: u64, response: Response, worker: Option<Place> },
    /// Sends a body that is generated meanwhile.
    Streaming { stream: Stream, end: End },
    /// The response has been handed over; only its end remains.
    Ending(End),
    /// Sends nothing more and discards input until the client closes or this time has come.
    Dropping { until_ns: Option<u64> },
}

/// What the worker does after a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Wait for the next event.
    Wait,
    /// Give another turn at this time, in nanoseconds of the thread's clock, or at an event.
    Sleep(u64),
    /// Give another turn soon: there is more to do, but other connections come first.
    Again,
    /// Close the connection.
    Close,
}

/// The longest request that `/echo` keeps.
const ECHO_BYTES_MAX: usize = 1 << 20;

/// The most bytes of a body that are copied after its head, so that both are sent in one call.
const COPIED_BYTES_MAX: u64 = BLOCK.len() as u64;

/// The number of steps (1 MiB received or up to 16 MiB sent) after which other connections come first.
const STEPS_PER_TURN: usize = 16;

/// How long a connection with unread input stays half open before it is closed, so that the client can read the
/// response.
const LINGER: Duration = Duration::from_secs(1);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The result of a step.
enum Step {
    /// There is more to do.
    More,
    /// The turn ends with this result.
    Stop(Turn),
}

impl Connection {
    /// A connection over an accepted socket; `number` counts the connections of its thread, from 1, and `token` is where
    /// the thread finds it.
    pub(super) fn new(socket: OwnedFd, number: u64, token: Token) -> Self {
        Self {
            socket: Socket::new(socket),
            stage: Stage::Reading,
            input: Vec::new(),
            numbers: Numbers { connection: number, request: 0 },
            token,
            process: None,
        }
    }

    /// The socket, to be polled.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Handles an event, then does everything that can be done now.
    pub(super) fn handle_event(&mut self, flags: EventFlags, resources: &mut Resources) -> Turn {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return Turn::Close;
        }
        self.socket.note(flags);
        self.turn(resources)
    }

    /// Does everything that can be done now.
    pub(super) fn turn(&mut self, resources: &mut Resources) -> Turn {
        if let Some(stop) = Turn::after(self.socket.send_rest()) {
            return stop;
        }
        for _ in 0..STEPS_PER_TURN {
            resources.output.clear();
            let step = self.step(resources);
            if !resources.output.is_empty() {
                let flags = if self.sends_blocks() { SendFlags::MORE } else { SendFlags::empty() };
                if let Some(stop) = Turn::after(self.socket.send(&resources.output, flags)) {
                    return stop;
                }
            }
            if let Step::Stop(turn) = step {
                return turn;
            }
        }
        Turn::Again
    }

    fn step(&mut self, resources: &mut Resources) -> Step {
        match &mut self.stage {
            Stage::Reading | Stage::Receiving { .. } => self.take_input(resources),
            Stage::Queued { .. } => self.await_place(resources),
            Stage::Waiting { until_ns, .. } if resources.now_ns() < *until_ns => Step::Stop(Turn::Sleep(*until_ns)),
            Stage::Waiting { .. } => {
                if let Stage::Waiting { response, worker, .. } = std::mem::replace(&mut self.stage, Stage::Reading) {
                    // It begins with the next request.
                    drop(worker);
                    self.begin(response, resources);
                }
                Step::More
            }
            Stage::Streaming { stream: Stream::Block { left }, .. } if *left > COPIED_BYTES_MAX => {
                Turn::after(self.socket.send_blocks(left)).map_or(Step::More, Step::Stop)
            }
            Stage::Streaming { .. } => self.stream(resources),
            Stage::Ending(end) => {
                let end = *end;
                self.end(end, resources)
            }
            Stage::Dropping { until_ns } => {
                let until_ns = *until_ns;
                self.drop_input(until_ns, resources)
            }
        }
    }

    /// Receives input and responds to all requests in it.
    fn take_input(&mut self, resources: &mut Resources) -> Step {
        resources.input.clear();
        resources.input.append(&mut std::mem::take(&mut self.input));
        if self.socket.readable && !self.socket.receive(&mut resources.input) {
            return Step::Stop(Turn::Close);
        }
        // Taken out while requests borrow from it.
        let input = std::mem::take(&mut resources.input);
        let used = self.take_requests(&input, resources);
        if used < input.len() {
            self.input = input[used..].to_vec();
        }
        let more_to_parse = resources.output.len() >= OUTPUT_BYTES;
        resources.input = input;
        match self.stage {
            Stage::Reading | Stage::Receiving { .. } if !self.socket.readable && !more_to_parse => {
                Step::Stop(if self.socket.ended { Turn::Close } else { Turn::Wait })
            }
            _ => Step::More,
        }
    }

    /// Consumes input until it is used up, a response takes longer, or there is enough to send. Returns the number of
    /// bytes used.
    fn take_requests(&mut self, input: &[u8], resources: &mut Resources) -> usize {
        let mut used = 0;
        while used < input.len() && resources.output.len() < OUTPUT_BYTES {
            let rest = &input[used..];
            let taken = match &mut self.stage {
                Stage::Reading => self.take_head(rest, resources),
                Stage::Receiving { .. } => self.take_body(rest, resources),
                _ => break,
            };
            match taken {
                Ok(0) => break,
                Ok(bytes) => used += bytes,
                Err(refusal) => {
                    self.refuse(refusal, resources);
                    return input.len();
                }
            }
        }
        used
    }

    /// Reads a head and responds, unless a body comes first. Returns the number of bytes used, 0 if the head is
    /// incomplete.
    fn take_head(&mut self, input: &[u8], resources: &mut Resources) -> Result<usize, Rejection> {
        let Some(head) = scan(input)? else { return Ok(0) };
        self.numbers.request += 1;
        if is_plain(&head) {
            // The request of nearly every benchmark: no routing, no allocation.
            resources.counters().add_request();
            resources.output.extend_from_slice(PLAIN);
            return Ok(head.size);
        }
        let reply = routes::reply(&head, &input[..head.size], self.numbers, resources);
        if reply.counts {
            resources.counters().add_request();
        }
        resources.output.extend_from_slice(&reply.early);
        match head.body {
            None => self.begin(reply.then.response(0), resources),
            Some(body) => {
                if head.expects_continue && reply.early.is_empty() {
                    resources.output.extend_from_slice(CONTINUE);
                }
                self.stage = Stage::Receiving { body, then: reply.then };
            }
        }
        Ok(head.size)
    }

    /// Receives a body and responds when it is complete. Returns the number of bytes used.
    fn take_body(&mut self, input: &[u8], resources: &mut Resources) -> Result<usize, Rejection> {
        let Stage::Receiving { body, then } = &mut self.stage else { return Ok(0) };
        let taken = body.take(input)?;
        if let Then::Echo(request, _) = then {
            request.extend_from_slice(&input[..taken.used]);
            if request.len() > ECHO_BYTES_MAX {
                return Err(TOO_LONG_TO_ECHO);
            }
        }
        if taken.finished
            && let Stage::Receiving { body, then } = std::mem::replace(&mut self.stage, Stage::Reading)
        {
            self.begin(then.response(body.received()), resources);
        }
        Ok(taken.used)
    }

    /// Starts a response.
    fn begin(&mut self, mut response: Response, resources: &mut Resources) {
        if response.limit.is_some() {
            self.stage = Stage::Queued { worker: None, response };
            return;
        }
        if !response.wait.is_zero() {
            let until_ns = resources.now_ns() + std::mem::take(&mut response.wait).as_nanos() as u64;
            self.stage = Stage::Waiting { until_ns, response, worker: None };
            return;
        }
        resources.output.extend_from_slice(&response.bytes);
        self.stage = match response.stream {
            Some(stream) => Stage::Streaming { stream, end: response.end },
            None => Stage::after(response.end),
        };
        if !self.sends_blocks() {
            // The first part of a body is sent together with its head. The next step repeats what this one asks for.
            self.stream(resources);
        }
    }

    /// Asks for a place, and goes on when it has been given. All earlier output has been sent: a client that does not
    /// read occupies no worker.
    fn await_place(&mut self, resources: &Resources) -> Step {
        let Stage::Queued { worker, response } = &mut self.stage else { return Step::More };
        match response.limit.take() {
            Some(limit @ Limit::Pool { .. }) => *worker = Some(resources.ask(limit, self.token)),
            Some(limit) if self.process.as_ref().is_none_or(|place| place.limit() != limit) => {
                self.process = Some(resources.ask(limit, self.token));
            }
            _ => {}
        }
        let now = Instant::now();
        let place = worker.as_ref().or(self.process.as_ref());
        let Some(given_at) = place.map_or(Some(now), Place::given_at) else {
            // A client that has closed its socket and one that only has no more to send look the same. If the former
            // stayed in the queue, it would hold up those of the next run.
            return Step::Stop(if self.socket.half_closed { Turn::Close } else { Turn::Wait });
        };
        if let Stage::Queued { mut worker, mut response } = std::mem::replace(&mut self.stage, Stage::Reading) {
            // A connection may have had its place long before this request.
            let begins_at = if worker.is_some() { given_at } else { now };
            let until = begins_at + std::mem::take(&mut response.wait);
            if let Some(worker) = &mut worker {
                worker.free_at(until);
            }
            self.stage = Stage::Waiting { until_ns: resources.ns_of(until), response, worker };
        }
        Step::More
    }

    /// Whether the next bytes are handed to the kernel without a copy.
    fn sends_blocks(&self) -> bool {
        matches!(self.stage, Stage::Streaming { stream: Stream::Block { left }, .. } if left > COPIED_BYTES_MAX)
    }

    fn stream(&mut self, resources: &mut Resources) -> Step {
        let Stage::Streaming { stream, end } = &mut self.stage else { return Step::More };
        let now_ns = resources.now_ns();
        match stream.fill(&mut resources.output, now_ns) {
            Fill::More => Step::More,
            Fill::Until(until_ns) => Step::Stop(Turn::Sleep(until_ns)),
            Fill::Done => {
                self.stage = Stage::after(*end);
                Step::More
            }
        }
    }

    fn end(&mut self, end: End, resources: &Resources) -> Step {
        match end {
            End::Next => self.stage = Stage::Reading,
            End::Hang => self.stage = Stage::Dropping { until_ns: None },
            End::Close if !self.socket.readable => return Step::Stop(Turn::Close),
            End::Close => {
                // Closing with unread input makes the kernel send a RST, which may overtake the response.
                self.socket.end();
                self.stage = Stage::Dropping { until_ns: Some(resources.now_ns() + LINGER.as_nanos() as u64) };
            }
            End::Reset => {
                self.socket.reset();
                return Step::Stop(Turn::Close);
            }
        }
        Step::More
    }

    /// Responds to a request that cannot be read, and closes, because the start of the next one is unknown.
    fn refuse(&mut self, Rejection { status, why }: Rejection, resources: &mut Resources) {
        let manner = Manner { head_only: false, persistence: Persistence::Close };
        resources.output.extend_from_slice(&Response::text(status, format!("{why}\n"), manner).bytes);
        // More of the request may follow.
        self.socket.readable = true;
        self.stage = Stage::Ending(End::Close);
    }

    fn drop_input(&mut self, until_ns: Option<u64>, resources: &mut Resources) -> Step {
        resources.input.clear();
        let is_good = !self.socket.readable || self.socket.receive(&mut resources.input);
        if !is_good || self.socket.ended || until_ns.is_some_and(|until_ns| resources.now_ns() >= until_ns) {
            return Step::Stop(Turn::Close);
        }
        match until_ns {
            _ if self.socket.readable => Step::More,
            Some(until_ns) => Step::Stop(Turn::Sleep(until_ns)),
            None => Step::Stop(Turn::Wait),
        }
    }
}

impl Turn {
    /// The result of a step that handed bytes to the kernel, if it ends the turn.
    fn after(sent: Sent) -> Option<Self> {
        match sent {
            Sent::All => None,
            Sent::Full => Some(Self::Wait),
            Sent::Gone => Some(Self::Close),
        }
    }
}

impl Stage {
    /// The state after a response has been sent.
    fn after(end: End) -> Self {
        if end == End::Next { Self::Reading } else { Self::Ending(end) }
    }
}

const TOO_LONG_TO_ECHO: Rejection = Rejection { status: 413, why: "/echo keeps at most 1 MiB" };

/// Whether the prepared response fits.
fn is_plain(head: &Head) -> bool {
    head.target == b"/" && head.persistence == Persistence::KeepAlive && head.body.is_none() && head.method != b"HEAD"
}
