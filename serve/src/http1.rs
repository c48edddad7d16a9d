//! An HTTP/1.1 connection: receives requests and sends responses without blocking.
//!
//! The worker gives a connection a turn after a socket event, when a requested time has come, or when the connection
//! asked to continue. Between turns, a connection holds a bounded amount: one buffer of pending requests, one unsent
//! response, and for `/echo` the request. The next request is read only after the response has been sent.
//!
//! ```text
//!          ┌──────────────────────── next request ─────────────────────────┐
//!          ▼                                                               │
//!       Reading ──► Receiving ──► Queued ───► Waiting ──► Streaming ───────┤
//!       (heads)     (a body)      (a place)   (a time)    (a body)         ▼
//!                                             closed ◄── Dropping ◄──── Ending ──► closed, reset
//! ```

use rustix::net::SendFlags;

use super::ask::RequestNumbers;
use super::body::RequestBody;
use super::claim::Claim;
use super::inbox::WakeCall;
use super::linger::Linger;
use super::places::Admission;
use super::rejection::Rejection;
use super::reply::AfterBody;
use super::request::{Persistence, RequestHead, parse_head};
use super::resources::{OUTPUT_BYTES, Resources};
use super::response::{AfterResponse, PLAIN, Response, ResponseForm};
use super::routes;
use super::socket::ClientSocket;
use super::stream::{BLOCK_BYTES, BodyStream, Fill};
use super::token::PollToken;
use super::turn::{AfterTurn, STEPS_PER_TURN};

/// An HTTP/1.1 connection and its state.
#[derive(Debug)]
pub(super) struct Http1Connection {
    /// The client's socket.
    pub socket: ClientSocket,
    stage: Http1Stage,
    /// Possibly incomplete requests that arrived before an earlier response was sent, or the bytes of an HTTP/2 client.
    pub input: Vec<u8>,
    /// Numbers of the connection and of its last request.
    pub numbers: RequestNumbers,
    /// Token by which wakeups name the connection.
    pub token: PollToken,
    /// The connection's place for `/prefork`, once a request has asked for it.
    process: Option<Admission>,
}

/// The state of a connection.
#[derive(Debug)]
enum Http1Stage {
    /// Reads request heads.
    Reading,
    /// Receives the body of a request.
    Receiving { body: RequestBody, then: AfterBody },
    /// Sends nothing until given a place: a worker's, or the connection's own.
    Queued { claim: Claim, response: Box<Response> },
    /// Sends nothing until a time, in nanoseconds of the thread's clock. A worker, if any, is busy until then.
    Waiting { until_ns: u64, response: Box<Response>, worker: Option<Admission> },
    /// Sends a body while generating it.
    Streaming { stream: BodyStream, end: AfterResponse },
    /// The response has been handed over; the connection must be ended accordingly.
    Ending(AfterResponse),
    /// Sends nothing and discards input.
    Dropping(Linger),
    /// The client uses HTTP/2.
    Leaving,
}

/// The HTTP/2 connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Maximum size of a request that `/echo` keeps.
const ECHO_BYTES_MAX: usize = 1 << 20;

/// Maximum size of a body that is copied after its head, to send both in one call.
const COPIED_BYTES_MAX: u64 = BLOCK_BYTES as u64;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

enum Http1Step {
    /// Continue with the next step.
    More,
    /// The turn ends with this result.
    Stop(AfterTurn),
}

impl Http1Connection {
    /// A new connection over a socket. `number`: its number on the thread, from 1. `token`: identifies it to the
    /// thread.
    pub(super) fn new(socket: ClientSocket, number: u64, token: PollToken) -> Self {
        Self {
            socket,
            stage: Http1Stage::Reading,
            input: Vec::new(),
            numbers: RequestNumbers { connection: number, request: 0 },
            token,
            process: None,
        }
    }

    /// Makes as much progress as possible without blocking. Returns what the thread should do next.
    pub(super) fn take_turn(&mut self, resources: &mut Resources) -> AfterTurn {
        if let Some(stop) = AfterTurn::after_send(self.socket.send_rest()) {
            return stop;
        }
        for _ in 0..STEPS_PER_TURN {
            resources.output.clear();
            let step = self.take_step(resources);
            if !resources.output.is_empty() {
                let flags = if self.sends_blocks() { SendFlags::MORE } else { SendFlags::empty() };
                if let Some(stop) = AfterTurn::after_send(self.socket.send_bytes(&resources.output, flags)) {
                    return stop;
                }
            }
            if let Http1Step::Stop(turn) = step {
                return turn;
            }
        }
        AfterTurn::Again
    }

    fn take_step(&mut self, resources: &mut Resources) -> Http1Step {
        match &mut self.stage {
            Http1Stage::Reading | Http1Stage::Receiving { .. } => self.take_input(resources),
            Http1Stage::Queued { .. } => self.await_place(resources),
            Http1Stage::Waiting { until_ns, .. } if resources.now_ns() < *until_ns => {
                Http1Step::Stop(AfterTurn::Sleep(*until_ns))
            }
            Http1Stage::Waiting { .. } => {
                if let Http1Stage::Waiting { response, worker, .. } =
                    std::mem::replace(&mut self.stage, Http1Stage::Reading)
                {
                    // The worker proceeds to the next request.
                    drop(worker);
                    self.begin_response(response, resources);
                }
                Http1Step::More
            }
            Http1Stage::Streaming { stream: BodyStream::Block { left }, .. } if *left > COPIED_BYTES_MAX => {
                AfterTurn::after_send(self.socket.send_blocks(left)).map_or(Http1Step::More, Http1Step::Stop)
            }
            Http1Stage::Streaming { .. } => self.send_stream(resources),
            Http1Stage::Ending(end) => {
                let end = *end;
                self.end_connection(end, resources)
            }
            Http1Stage::Dropping(linger) => {
                linger.discard_input(&mut self.socket, resources).map_or(Http1Step::More, Http1Step::Stop)
            }
            Http1Stage::Leaving => Http1Step::Stop(AfterTurn::Http2),
        }
    }

    /// Receives input and responds to all requests in it.
    fn take_input(&mut self, resources: &mut Resources) -> Http1Step {
        resources.input.clear();
        resources.input.append(&mut std::mem::take(&mut self.input));
        if self.socket.readable && !self.socket.receive_input(&mut resources.input) {
            return Http1Step::Stop(AfterTurn::Close);
        }
        // Taken out of `resources`, because requests borrow from it.
        let input = std::mem::take(&mut resources.input);
        let used = self.take_requests(&input, resources);
        if used < input.len() {
            self.input = input[used..].to_vec();
        }
        let more_to_parse = resources.output.len() >= OUTPUT_BYTES;
        resources.input = input;
        match self.stage {
            Http1Stage::Reading | Http1Stage::Receiving { .. } if !self.socket.readable && !more_to_parse => {
                Http1Step::Stop(if self.socket.ended { AfterTurn::Close } else { AfterTurn::Wait })
            }
            _ => Http1Step::More,
        }
    }

    /// Consumes input until it is used up, a response takes longer, or enough output is ready. Returns the number of
    /// bytes used.
    fn take_requests(&mut self, input: &[u8], resources: &mut Resources) -> usize {
        let mut used = 0;
        while used < input.len() && resources.output.len() < OUTPUT_BYTES {
            let rest = &input[used..];
            let taken = match &mut self.stage {
                Http1Stage::Reading => self.take_head(rest, resources),
                Http1Stage::Receiving { .. } => self.take_body(rest, resources),
                _ => break,
            };
            match taken {
                Ok(0) => break,
                Ok(bytes) => used += bytes,
                Err(_) if self.begins_http2(rest) => break,
                Err(refusal) => {
                    self.refuse_request(refusal, resources);
                    return input.len();
                }
            }
        }
        used
    }

    /// True if the rejected `input` is a prefix of the HTTP/2 preface. Once the preface is complete, no more HTTP/1.1
    /// requests are read.
    fn begins_http2(&mut self, input: &[u8]) -> bool {
        let seen = input.len().min(PREFACE.len());
        let begins = self.numbers.request == 0 && input[..seen] == PREFACE[..seen];
        if begins && seen == PREFACE.len() {
            self.stage = Http1Stage::Leaving;
        }
        begins
    }

    /// Reads a head and responds, or receives the body first. Returns the number of bytes used; 0 if the head is
    /// incomplete.
    fn take_head(&mut self, input: &[u8], resources: &mut Resources) -> Result<usize, Rejection> {
        let Some(head) = parse_head(input)? else { return Ok(0) };
        self.numbers.request += 1;
        if is_plain_request(&head) {
            // Nearly every request of a benchmark takes this path: no routing, no allocation.
            resources.counters().add_request();
            resources.output.extend_from_slice(PLAIN);
            return Ok(head.size);
        }
        let manner = ResponseForm { head_only: head.method == b"HEAD", persistence: head.persistence };
        let reply =
            routes::reply_to_request(head.target, manner, self.numbers, resources, || input[..head.size].to_vec());
        if reply.counts {
            resources.counters().add_request();
        }
        if let Some(early) = &reply.early {
            early.message.write_http1(&mut resources.output);
        }
        match head.body {
            None => self.begin_response(reply.then.into_response(0), resources),
            Some(body) => {
                if head.expects_continue && reply.early.is_none() {
                    resources.output.extend_from_slice(CONTINUE);
                }
                self.stage = Http1Stage::Receiving { body, then: reply.then };
            }
        }
        Ok(head.size)
    }

    /// Receives a body and responds at its end. Returns the number of bytes used.
    fn take_body(&mut self, input: &[u8], resources: &mut Resources) -> Result<usize, Rejection> {
        let Http1Stage::Receiving { body, then } = &mut self.stage else { return Ok(0) };
        let taken = body.consume_input(input)?;
        if let AfterBody::Echo(request, _) = then {
            request.extend_from_slice(&input[..taken.used]);
            if request.len() > ECHO_BYTES_MAX {
                return Err(TOO_LONG_TO_ECHO);
            }
        }
        if taken.finished
            && let Http1Stage::Receiving { body, then } = std::mem::replace(&mut self.stage, Http1Stage::Reading)
        {
            self.begin_response(then.into_response(body.received_bytes()), resources);
        }
        Ok(taken.used)
    }

    fn begin_response(&mut self, mut response: Box<Response>, resources: &mut Resources) {
        if let Some(limit) = response.limit.take() {
            self.stage = Http1Stage::Queued { claim: Claim::new(limit), response };
            return;
        }
        if !response.wait.is_zero() {
            let until_ns = resources.now_ns() + std::mem::take(&mut response.wait).as_nanos() as u64;
            self.stage = Http1Stage::Waiting { until_ns, response, worker: None };
            return;
        }
        response.message.write_http1(&mut resources.output);
        self.stage = match response.stream {
            Some(stream) => Http1Stage::Streaming { stream, end: response.end },
            None => Http1Stage::after_response(response.end),
        };
        if !self.sends_blocks() {
            // The first part of a body is sent together with its head. The next step returns this result again.
            self.send_stream(resources);
        }
    }

    /// Requests a place, and continues once it is given. All earlier output has been sent: a client that does not read
    /// occupies no worker.
    fn await_place(&mut self, resources: &Resources) -> Http1Step {
        let Http1Stage::Queued { claim, .. } = &mut self.stage else { return Http1Step::More };
        let call = |_| WakeCall { token: self.token, exchange: None };
        let Some(begins_at) = claim.service_start(&mut self.process, resources, call) else {
            // A client that closed its socket looks the same as one with nothing more to send. Keeping it queued would
            // hold up the connections of the next run.
            return Http1Step::Stop(if self.socket.half_closed { AfterTurn::Close } else { AfterTurn::Wait });
        };
        if let Http1Stage::Queued { claim, mut response } = std::mem::replace(&mut self.stage, Http1Stage::Reading) {
            let until = begins_at + std::mem::take(&mut response.wait);
            let worker = claim.worker_until(until);
            self.stage = Http1Stage::Waiting { until_ns: resources.ns_of(until), response, worker };
        }
        Http1Step::More
    }

    /// True if the next bytes are handed to the kernel without a copy.
    fn sends_blocks(&self) -> bool {
        matches!(self.stage, Http1Stage::Streaming { stream: BodyStream::Block { left }, .. } if left > COPIED_BYTES_MAX)
    }

    fn send_stream(&mut self, resources: &mut Resources) -> Http1Step {
        let Http1Stage::Streaming { stream, end } = &mut self.stage else { return Http1Step::More };
        let now_ns = resources.now_ns();
        match stream.append_due_bytes(&mut resources.output, now_ns) {
            Fill::More => Http1Step::More,
            Fill::Until(until_ns) => Http1Step::Stop(AfterTurn::Sleep(until_ns)),
            Fill::Done => {
                self.stage = Http1Stage::after_response(*end);
                Http1Step::More
            }
        }
    }

    fn end_connection(&mut self, end: AfterResponse, resources: &Resources) -> Http1Step {
        match end {
            AfterResponse::Next => self.stage = Http1Stage::Reading,
            AfterResponse::Hang => self.stage = Http1Stage::Dropping(Linger::FOREVER),
            AfterResponse::Close | AfterResponse::CloseUntold | AfterResponse::CloseUnframed => {
                match Linger::after_last_byte(&mut self.socket, resources) {
                    Some(linger) => self.stage = Http1Stage::Dropping(linger),
                    None => return Http1Step::Stop(AfterTurn::Close),
                }
            }
            AfterResponse::Reset => {
                self.socket.reset_on_close();
                return Http1Step::Stop(AfterTurn::Close);
            }
        }
        Http1Step::More
    }

    /// Rejects an unreadable request and closes, because the start of the next request is unknown.
    fn refuse_request(&mut self, Rejection { status, why }: Rejection, resources: &mut Resources) {
        let manner = ResponseForm { head_only: false, persistence: Persistence::Close };
        let response = Response::text_response(status, format!("{why}\n").into_bytes(), manner);
        response.message.write_http1(&mut resources.output);
        // More of the request may follow.
        self.socket.readable = true;
        self.stage = Http1Stage::Ending(AfterResponse::Close);
    }
}

impl Http1Stage {
    /// The stage after a response has been sent.
    fn after_response(end: AfterResponse) -> Self {
        if end == AfterResponse::Next { Self::Reading } else { Self::Ending(end) }
    }
}

const TOO_LONG_TO_ECHO: Rejection = Rejection { status: 413, why: "/echo keeps at most 1 MiB" };

/// True if the prepared response applies.
fn is_plain_request(head: &RequestHead) -> bool {
    head.target == b"/" && head.persistence == Persistence::KeepAlive && head.body.is_none() && head.method != b"HEAD"
}
