//! One connection of a simulated HTTP/1.1 server: finds the requests in received bytes and responds according to its
//! [`Scenario`]. Checks nothing: the client's bytes are for other tests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use memchr::memmem::Finder;
use onrush_plan::Random;
use onrush_proto::Nanos;

use super::capacity::Workers;
use super::scenario::{ConnectionFault, Mischief, Scenario};
use super::{Act, Action, Peer, nanos};

/// The response to a request that finds the queue full.
const OVERLOADED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// Terminates a request's head: the end of its last line and an empty line.
const EMPTY_LINE: &[u8] = b"\r\n\r\n";
/// Number of bytes searched at a time for [`EMPTY_LINE`].
const PIECE_BYTES: usize = 512;

/// State shared by the connections of one thread.
pub(super) struct Shared {
    pub scenario: Scenario,
    /// The workers, if the capacity is limited.
    workers: RefCell<Option<Workers>>,
    requests: Cell<u64>,
    /// Open connections.
    pub open: Cell<usize>,
    /// Served connections, if their number is limited.
    served: Cell<u32>,
    empty_line: Finder<'static>,
}

impl Shared {
    /// The state before any bytes arrive.
    pub fn new(scenario: Scenario, workers: Option<Workers>) -> Self {
        Self {
            scenario,
            workers: RefCell::new(workers),
            requests: Cell::new(0),
            open: Cell::new(0),
            served: Cell::new(0),
            empty_line: Finder::new(EMPTY_LINE),
        }
    }

    /// True if another connection can be served.
    pub fn has_room(&self) -> bool {
        self.scenario.serves == 0 || self.served.get() < self.scenario.serves
    }

    /// Completion time of a request that arrives now. `None`: the queue is full.
    fn done_at(&self, now: Nanos) -> Option<Nanos> {
        match (&self.scenario.capacity, &mut *self.workers.borrow_mut()) {
            (Some(capacity), Some(workers)) => workers.take(capacity, now),
            _ => Some(now),
        }
    }
}

/// The server's side of a connection.
pub(super) struct HttpPeer {
    shared: Rc<Shared>,
    random: Random,
    /// The received part of a request's head.
    head: Vec<u8>,
    /// Bytes of a request body still to come.
    body_left: u64,
    /// True if the response to the current request was sent before its body arrived.
    answered_early: bool,
    /// End of the last response so far; the next response cannot overtake it.
    busy_until: Nanos,
    /// The fault still to come on this connection.
    fault: Option<ConnectionFault>,
    /// Number of bytes received so far.
    arrived: usize,
    /// True if the peer no longer reacts to input.
    hangs: bool,
    place: Place,
}

/// State of a connection's place among the served connections.
enum Place {
    /// Nothing has been received yet.
    Unwanted,
    /// The connection waits; these bytes are unread.
    Wanted(Vec<u8>),
    /// The connection is being served.
    Taken,
}

impl HttpPeer {
    pub(super) fn new(shared: Rc<Shared>, random: Random, fault: Option<ConnectionFault>) -> Self {
        shared.open.set(shared.open.get() + 1);
        Self {
            shared,
            random,
            head: Vec::new(),
            body_left: 0,
            answered_early: false,
            busy_until: Nanos::default(),
            fault,
            arrived: 0,
            hangs: false,
            place: Place::Unwanted,
        }
    }

    /// Makes the connection a served one; returns its former state.
    fn start_serving(&mut self) -> Place {
        self.shared.served.set(self.shared.served.get() + 1);
        std::mem::replace(&mut self.place, Place::Taken)
    }

    /// Executes the connection's fault once enough bytes have arrived.
    fn execute_fault(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let arrived = self.arrived;
        let Some(fault) = self.fault.take_if(|fault| fault.after_bytes <= arrived) else { return };
        let act = match fault.what {
            Mischief::Bug => panic!("a bug, on purpose"),
            Mischief::Hang => {
                self.hangs = true;
                return;
            }
            Mischief::Reset => Act::Reset,
            Mischief::Close => Act::Close,
            Mischief::Answer(text) | Mischief::Early(text) => Act::Send(text.into_bytes()),
        };
        actions.push(Action { at: now + nanos(fault.after_us), act });
    }

    /// Parses received bytes and responds to the requests in them.
    fn respond_to_requests(&mut self, now: Nanos, mut bytes: &[u8], actions: &mut Vec<Action>) {
        while !bytes.is_empty() {
            if self.body_left > 0 {
                let n = bytes.len().min(usize::try_from(self.body_left).unwrap_or(usize::MAX));
                bytes = &bytes[n..];
                self.body_left -= n as u64;
                if self.body_left == 0 && !self.answered_early {
                    self.answer(now, actions);
                }
                continue;
            }
            // Only a piece, not all received bytes: the rest may contain a great many other requests.
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            let before = self.head.len();
            self.head.extend_from_slice(piece);
            // The empty line may have begun in an earlier piece.
            let from = before.saturating_sub(EMPTY_LINE.len() - 1);
            let Some(at) = self.shared.empty_line.find(&self.head[from..]) else {
                bytes = &bytes[piece.len()..];
                continue;
            };
            let end = from + at + EMPTY_LINE.len();
            self.head.truncate(end);
            bytes = &bytes[end - before..];
            self.head_complete(now, actions);
        }
    }

    /// Schedules an idle check after `idle_us`.
    fn schedule_idle_check(&self, actions: &mut Vec<Action>) {
        let idle_us = self.shared.scenario.idle_us;
        if idle_us > 0.0 {
            actions.push(Action { at: self.busy_until + nanos(idle_us).max(1), act: Act::Wake });
        }
    }

    fn head_complete(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.body_left = content_length(&self.head);
        self.head.clear();
        let number = self.shared.requests.get() + 1;
        self.shared.requests.set(number);
        self.answered_early = matches!(self.fault(number), Some((Mischief::Early(_), _)));
        if self.answered_early || self.body_left == 0 {
            self.answer(now, actions);
        }
    }

    fn fault(&self, number: u64) -> Option<(Mischief, usize)> {
        let hit =
            self.shared.scenario.fault.iter().find(|fault| fault.every > 0 && number.is_multiple_of(fault.every))?;
        Some((hit.what.clone(), hit.after_bytes))
    }

    fn answer(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let shared = Rc::clone(&self.shared);
        let scenario = &shared.scenario;
        let mut latency = nanos(scenario.latency_us) + self.random.below(nanos(scenario.jitter_us) + 1);
        latency += scenario.delay.map_or(0, |delay| delay.draw_ns(&mut self.random));
        let done_at = shared.done_at(now);
        let at = scenario.delayed_release(done_at.unwrap_or(now) + latency.max(1)).max(self.busy_until);
        let whole = if done_at.is_some() { scenario.answer.as_bytes() } else { OVERLOADED.as_bytes() };
        let (bytes, end) = match self.fault(shared.requests.get()) {
            None => (whole.to_vec(), scenario.close.then_some(Act::Close)),
            Some((Mischief::Answer(text) | Mischief::Early(text), _)) => (text.into_bytes(), None),
            Some((Mischief::Bug, _)) => panic!("a bug, on purpose"),
            Some((Mischief::Hang, after)) => (whole[..after.min(whole.len())].to_vec(), None),
            Some((Mischief::Close, after)) => (whole[..after.min(whole.len())].to_vec(), Some(Act::Close)),
            Some((Mischief::Reset, after)) => (whole[..after.min(whole.len())].to_vec(), Some(Act::Reset)),
        };
        let most = if scenario.split == 0 { bytes.len().max(1) } else { scenario.split };
        let (mut last, mut next, mut rest) = (at, at, &bytes[..]);
        while !rest.is_empty() {
            let size = if scenario.uneven { 1 + self.random.below(most as u64) as usize } else { most };
            let (piece, left) = rest.split_at(size.min(rest.len()));
            actions.push(Action { at: next, act: Act::Send(piece.to_vec()) });
            (last, next, rest) = (next, next + nanos(scenario.split_pause_us), left);
        }
        actions.extend(end.map(|act| Action { at: last, act }));
        self.busy_until = last;
        self.schedule_idle_check(actions);
    }
}

impl Peer for HttpPeer {
    fn accepted(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.busy_until = now;
        actions.extend(self.shared.scenario.killed_at(now).map(|at| Action { at, act: Act::Reset }));
        self.schedule_idle_check(actions);
        self.execute_fault(now, actions);
    }

    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        match &mut self.place {
            Place::Taken => {}
            Place::Wanted(unread) => return unread.extend_from_slice(bytes),
            Place::Unwanted if self.shared.has_room() => {
                self.start_serving();
            }
            Place::Unwanted => {
                self.place = Place::Wanted(bytes.to_vec());
                actions.push(Action { at: now, act: Act::Park });
                return;
            }
        }
        let until_fault = self.fault.as_ref().map_or(usize::MAX, |fault| fault.after_bytes - self.arrived);
        let (before, after) = bytes.split_at(until_fault.min(bytes.len()));
        for part in [before, after] {
            if !self.hangs {
                self.arrived += part.len();
                self.respond_to_requests(now, part, actions);
                self.execute_fault(now, actions);
            }
        }
    }

    fn served(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        if let Place::Wanted(unread) = self.start_serving() {
            self.receive(now, &unread, actions);
        }
    }

    fn wake(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let idle_ns = nanos(self.shared.scenario.idle_us);
        let waits = self.hangs || matches!(self.place, Place::Wanted(_));
        if !waits && self.head.is_empty() && self.body_left == 0 && now >= self.busy_until + idle_ns {
            actions.push(Action { at: now, act: Act::Close });
        }
    }
}

impl Drop for HttpPeer {
    fn drop(&mut self) {
        self.shared.open.set(self.shared.open.get() - 1);
        if let Place::Taken = self.place {
            self.shared.served.set(self.shared.served.get() - 1);
        }
    }
}

/// Reads every line, even after the header has been found: the cost of a request must not depend on the order of its
/// lines, or instruction counts could not be compared.
fn content_length(head: &[u8]) -> u64 {
    let lengths = head.split(|&byte| byte == b'\n').filter_map(|line| {
        let (name, value) = line.split_at_checked("content-length:".len())?;
        let value = name.eq_ignore_ascii_case(b"content-length:").then_some(value)?;
        str::from_utf8(value).ok()?.trim().parse().ok()
    });
    lengths.max().unwrap_or(0)
}
