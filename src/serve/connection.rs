//! One client: receives requests, sends answers, never waits.
//!
//! A connection is given turns by its worker: when its socket had an event, when the time it asked for has come, or
//! when it asked to go on. What it holds between turns is bounded: one buffer's worth of requests not answered yet, one
//! answer not taken yet, and for `/echo` the request. While an answer is not out, no further request is read.
//!
//! ```text
//!          ┌──────────────────────── next request ─────────────────────────┐
//!          ▼                                                               │
//!       Reading ──► Receiving ──► Waiting ──► Streaming ───────────────────┤
//!       (heads)     (a body)      (a time)    (a body)                     ▼
//!                                             closed ◄── Dropping ◄──── Ending ──► closed, reset
//! ```

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::net::SendFlags;

use super::answer::{Answer, End, Manner, PLAIN};
use super::ask::Numbers;
use super::body::Body;
use super::desk::{Desk, OUTPUT_BYTES};
use super::rejection::Rejection;
use super::reply::Then;
use super::request::{Head, Persistence, scan};
use super::routes;
use super::socket::{Sent, Socket};
use super::stream::{BLOCK, Fill, Stream};

/// A client and what is going on with it.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    stage: Stage,
    /// Requests that were received while an earlier one had no answer yet, or part of one.
    input: Vec<u8>,
    /// Its number and that of its last request.
    numbers: Numbers,
}

/// What a connection does.
#[derive(Debug)]
enum Stage {
    /// Reads heads.
    Reading,
    /// Receives the body of a request.
    Receiving { body: Body, then: Then },
    /// Sends nothing before a time, in nanoseconds of the desk's clock.
    Waiting { until_ns: u64, answer: Answer },
    /// Sends what is made on the way.
    Streaming { stream: Stream, end: End },
    /// The answer is out, this is left.
    Ending(End),
    /// Sends nothing more and drops what comes, until the client closes or this time has come.
    Dropping { until_ns: Option<u64> },
}

/// What a worker has to do after a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing before the next event.
    Wait,
    /// Another turn at this time, in nanoseconds of the desk's clock, or at an event.
    Sleep(u64),
    /// Another turn soon: there is more to do, but others come first.
    Again,
    /// Drop the connection.
    Close,
}

/// The longest request that `/echo` keeps.
const ECHO_BYTES_MAX: usize = 1 << 20;

/// The most bytes of a body that are copied after its head, so that both go out in one call.
const COPIED_BYTES_MAX: u64 = BLOCK.len() as u64;

/// After this many steps (1 MiB received or up to 16 MiB sent) others come first.
const STEPS_PER_TURN: usize = 16;

/// How long a refused client may take to notice.
const LINGER: Duration = Duration::from_secs(1);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How a step ended.
enum Step {
    /// There is more to do.
    More,
    /// The turn ends like this.
    Stop(Turn),
}

impl Connection {
    /// A connection over an accepted socket; `number` is its place among those of its thread, from 1.
    pub(super) fn new(socket: OwnedFd, number: u64) -> Self {
        Self {
            socket: Socket::new(socket),
            stage: Stage::Reading,
            input: Vec::new(),
            numbers: Numbers { connection: number, request: 0 },
        }
    }

    /// The socket, to watch it.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Takes note of an event and does what can be done now.
    pub(super) fn handle_event(&mut self, flags: EventFlags, desk: &mut Desk) -> Turn {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return Turn::Close;
        }
        self.socket.note(flags);
        self.turn(desk)
    }

    /// Does what can be done now.
    pub(super) fn turn(&mut self, desk: &mut Desk) -> Turn {
        if let Some(stop) = Turn::after(self.socket.send_rest()) {
            return stop;
        }
        for _ in 0..STEPS_PER_TURN {
            desk.output.clear();
            let step = self.step(desk);
            if !desk.output.is_empty() {
                let flags = if self.sends_blocks() { SendFlags::MORE } else { SendFlags::empty() };
                if let Some(stop) = Turn::after(self.socket.send(&desk.output, flags)) {
                    return stop;
                }
            }
            if let Step::Stop(turn) = step {
                return turn;
            }
        }
        Turn::Again
    }

    fn step(&mut self, desk: &mut Desk) -> Step {
        match &mut self.stage {
            Stage::Reading | Stage::Receiving { .. } => self.take_input(desk),
            Stage::Waiting { until_ns, .. } if desk.now_ns() < *until_ns => Step::Stop(Turn::Sleep(*until_ns)),
            Stage::Waiting { .. } => {
                if let Stage::Waiting { answer, .. } = std::mem::replace(&mut self.stage, Stage::Reading) {
                    self.begin(answer, desk);
                }
                Step::More
            }
            Stage::Streaming { stream: Stream::Block { left }, .. } if *left > COPIED_BYTES_MAX => {
                Turn::after(self.socket.send_blocks(left)).map_or(Step::More, Step::Stop)
            }
            Stage::Streaming { .. } => self.stream(desk),
            Stage::Ending(end) => {
                let end = *end;
                self.end(end, desk)
            }
            Stage::Dropping { until_ns } => {
                let until_ns = *until_ns;
                self.drop_input(until_ns, desk)
            }
        }
    }

    /// Receives, and answers as many requests as there are.
    fn take_input(&mut self, desk: &mut Desk) -> Step {
        desk.input.clear();
        desk.input.append(&mut std::mem::take(&mut self.input));
        if self.socket.readable && !self.socket.receive(&mut desk.input) {
            return Step::Stop(Turn::Close);
        }
        // Taken out of the desk while requests borrow from it.
        let input = std::mem::take(&mut desk.input);
        let used = self.take_requests(&input, desk);
        if used < input.len() {
            self.input = input[used..].to_vec();
        }
        let more_to_parse = desk.output.len() >= OUTPUT_BYTES;
        desk.input = input;
        match self.stage {
            Stage::Reading | Stage::Receiving { .. } if !self.socket.readable && !more_to_parse => {
                Step::Stop(if self.socket.ended { Turn::Close } else { Turn::Wait })
            }
            _ => Step::More,
        }
    }

    /// Goes through the input until it is used up, an answer takes longer, or there is enough to send. Returns how many
    /// bytes were used.
    fn take_requests(&mut self, input: &[u8], desk: &mut Desk) -> usize {
        let mut used = 0;
        while used < input.len() && desk.output.len() < OUTPUT_BYTES {
            let rest = &input[used..];
            let taken = match &mut self.stage {
                Stage::Reading => self.take_head(rest, desk),
                Stage::Receiving { .. } => self.take_body(rest, desk),
                _ => break,
            };
            match taken {
                Ok(0) => break,
                Ok(bytes) => used += bytes,
                Err(refusal) => {
                    self.refuse(refusal, desk);
                    return input.len();
                }
            }
        }
        used
    }

    /// Reads a head and answers it, unless a body comes first. Returns how many bytes were used, 0 if it is incomplete.
    fn take_head(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Rejection> {
        let Some(head) = scan(input)? else { return Ok(0) };
        self.numbers.request += 1;
        if is_plain(&head) {
            // The request of nearly every benchmark: no routing, no allocation.
            desk.counters().add_request();
            desk.output.extend_from_slice(PLAIN);
            return Ok(head.size);
        }
        let reply = routes::reply(&head, &input[..head.size], self.numbers, desk);
        if reply.counts {
            desk.counters().add_request();
        }
        desk.output.extend_from_slice(&reply.early);
        match head.body {
            None => self.begin(reply.then.answer(0), desk),
            Some(body) => {
                if head.expects_continue && reply.early.is_empty() {
                    desk.output.extend_from_slice(CONTINUE);
                }
                self.stage = Stage::Receiving { body, then: reply.then };
            }
        }
        Ok(head.size)
    }

    /// Receives a body and answers when it is complete. Returns how many bytes were used.
    fn take_body(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Rejection> {
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
            self.begin(then.answer(body.received()), desk);
        }
        Ok(taken.used)
    }

    /// Starts an answer.
    fn begin(&mut self, mut answer: Answer, desk: &mut Desk) {
        if !answer.wait.is_zero() {
            let until_ns = desk.now_ns() + std::mem::take(&mut answer.wait).as_nanos() as u64;
            self.stage = Stage::Waiting { until_ns, answer };
            return;
        }
        desk.output.extend_from_slice(&answer.bytes);
        self.stage = match answer.stream {
            Some(stream) => Stage::Streaming { stream, end: answer.end },
            None => Stage::after(answer.end),
        };
        if !self.sends_blocks() {
            // The first part of a body goes out together with its head. The next step asks again for what this one asks.
            self.stream(desk);
        }
    }

    /// Whether what is sent next is handed to the kernel without a copy of ours.
    fn sends_blocks(&self) -> bool {
        matches!(self.stage, Stage::Streaming { stream: Stream::Block { left }, .. } if left > COPIED_BYTES_MAX)
    }

    fn stream(&mut self, desk: &mut Desk) -> Step {
        let Stage::Streaming { stream, end } = &mut self.stage else { return Step::More };
        let now_ns = desk.now_ns();
        match stream.fill(&mut desk.output, now_ns) {
            Fill::More => Step::More,
            Fill::Until(until_ns) => Step::Stop(Turn::Sleep(until_ns)),
            Fill::Done => {
                self.stage = Stage::after(*end);
                Step::More
            }
        }
    }

    fn end(&mut self, end: End, desk: &Desk) -> Step {
        match end {
            End::Next => self.stage = Stage::Reading,
            End::Hang => self.stage = Stage::Dropping { until_ns: None },
            End::Close if !self.socket.readable => return Step::Stop(Turn::Close),
            End::Close => {
                // Closing while something is unread makes the kernel send a RST, which may overtake the answer.
                self.socket.end();
                self.stage = Stage::Dropping { until_ns: Some(desk.now_ns() + LINGER.as_nanos() as u64) };
            }
            End::Reset => {
                self.socket.reset();
                return Step::Stop(Turn::Close);
            }
        }
        Step::More
    }

    /// Answers a request that cannot be taken, and closes: where the next one would begin is not known.
    fn refuse(&mut self, Rejection { status, why }: Rejection, desk: &mut Desk) {
        let manner = Manner { head_only: false, persistence: Persistence::Close };
        desk.output.extend_from_slice(&Answer::text(status, format!("{why}\n"), manner).bytes);
        // More of it may be on the way.
        self.socket.readable = true;
        self.stage = Stage::Ending(End::Close);
    }

    fn drop_input(&mut self, until_ns: Option<u64>, desk: &mut Desk) -> Step {
        desk.input.clear();
        let is_good = !self.socket.readable || self.socket.receive(&mut desk.input);
        if !is_good || self.socket.ended || until_ns.is_some_and(|until_ns| desk.now_ns() >= until_ns) {
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
    /// How the turn ends because of what became of bytes, if it does.
    fn after(sent: Sent) -> Option<Self> {
        match sent {
            Sent::All => None,
            Sent::Full => Some(Self::Wait),
            Sent::Gone => Some(Self::Close),
        }
    }
}

impl Stage {
    /// What follows an answer that is out.
    fn after(end: End) -> Self {
        if end == End::Next { Self::Reading } else { Self::Ending(end) }
    }
}

const TOO_LONG_TO_ECHO: Rejection = Rejection { status: 413, why: "/echo keeps at most 1048576 bytes" };

/// Whether the prepared answer is right.
fn is_plain(head: &Head) -> bool {
    head.target == b"/" && head.persistence == Persistence::KeepAlive && head.body.is_none() && head.method != b"HEAD"
}
