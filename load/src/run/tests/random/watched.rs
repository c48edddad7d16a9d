//! A wrapper of the simulated backend that checks the calls and completions of each connection, and records the
//! servers' actual responses.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_proto::{Nanos, Transmit};
use rustix::io::Errno;

use onrush_engine::backend::sim::{Act, Action, Network, Peer};
use onrush_engine::backend::{Backend, Completion, ConnId, Sim, What};
use onrush_engine::{ConnectionState, Seen};
use onrush_plan::schedule::Dues;

/// Number of calls that the timers of a turn may cause, in addition to those of each connection.
const CALLS_OF_TIMERS: usize = 1_000;

/// Maximum number of connections opened in a turn.
const OPENED_MAX: usize = 64;

/// Number of completions that ends a turn, unless the turn catches up after a stall: then timers may follow any of the
/// later ones.
const HANDLED_PER_TURN: usize = 512;

/// A backend that checks its use.
pub struct CheckedBackend {
    sim: Sim,
    /// The connections.
    pub seen: Vec<Seen>,
    /// The first forbidden or excessive call.
    pub flaw: Option<String>,
    /// Number of completions reported.
    pub completions: u64,
    /// Number of response bytes reported.
    pub received: u64,
    /// Time of the last report of response bytes, and their number.
    pub received_last: (Nanos, u64),
    /// Number of calls since the last completion, or since the start of the turn.
    calls: usize,
    /// Current limit on the number of calls.
    calls_most: usize,
    /// Maximum number of calls caused by one completion.
    calls_of_one: usize,
    /// Number of connections opened in this turn.
    opened: usize,
    /// Number of completions in this turn.
    handled: usize,
}

/// Records the messages of a thread's servers.
#[derive(Debug, Default)]
pub struct Journal {
    /// Number of connections.
    pub peers: Cell<u64>,
    /// Number of complete usual responses that arrived on connections on which nothing else had.
    pub answers: Cell<u64>,
    /// Number of heads that can belong to a response.
    pub heads: Cell<u64>,
    /// Due times of the next requests; `None` allows any time.
    pub dues: RefCell<Option<Dues>>,
    /// Length of the sending slices in nanoseconds (requests leave at the end of a slice); 0 to send when due.
    pub slice_ns: Cell<u64>,
    /// Set if a request was sent too early: its arrival, and the later time at which it was allowed, in nanoseconds.
    pub early: Cell<Option<(u64, u64)>>,
}

impl Journal {
    /// Checks that an arrived request was not sent too early.
    fn check_not_early(&self, now: Nanos) {
        if let Some(dues) = self.dues.borrow_mut().as_mut() {
            let due_ns = dues.next_ns();
            let slice_end_ns = due_ns.div_ceil(self.slice_ns.get().max(1)).saturating_mul(self.slice_ns.get());
            let leaves_ns = if slice_end_ns < dues.end_ns() { due_ns.max(slice_end_ns) } else { due_ns };
            if now.0 < leaves_ns {
                self.early.set(self.early.get().or(Some((now.0, leaves_ns))));
            }
            dues.skip_batch(1);
        }
    }
}

impl CheckedBackend {
    /// Connections to servers that write to `journal`. One completion may cause `calls_of_one` calls.
    pub fn new(
        connections: u32,
        network: Box<dyn Network>,
        answer: &str,
        journal: Rc<Journal>,
        calls_of_one: usize,
    ) -> Self {
        let network = WatchedNetwork { network, answer: answer.as_bytes().into(), journal };
        Self {
            sim: Sim::new(connections, Box::new(network)),
            seen: vec![Seen::default(); connections as usize],
            flaw: None,
            completions: 0,
            received: 0,
            received_last: (Nanos::default(), 0),
            calls: 0,
            calls_most: 0,
            calls_of_one,
            opened: 0,
            handled: 0,
        }
    }

    /// Starts a turn, in which timers fire and connections are opened. Opening has its own limit, because connections
    /// are also opened after a turn has caught up.
    pub fn begin_turn(&mut self) {
        self.opened = 0;
        self.handled = 0;
        self.allow_timers();
    }

    /// Allows timers to fire.
    fn allow_timers(&mut self) {
        self.calls = 0;
        self.calls_most = CALLS_OF_TIMERS + self.calls_of_one * self.seen.len();
    }

    fn check_call(&mut self, conn: ConnId, what: &str, is_right: impl FnOnce(Seen) -> bool) {
        self.calls += 1;
        if self.calls > self.calls_most {
            self.flaw.get_or_insert_with(|| format!("{} calls at once", self.calls));
        }
        self.check_state(conn, what, is_right);
    }

    fn check_state(&mut self, conn: ConnId, what: &str, is_right: impl FnOnce(Seen) -> bool) {
        let seen = self.seen[conn.index()];
        if !is_right(seen) {
            self.flaw.get_or_insert_with(|| format!("connection {}: {what}, but it is {seen:?}", conn.0));
        }
    }

    fn count_received(&mut self, n: usize, at: Nanos) {
        let last = if self.received_last.0 == at { self.received_last.1 } else { 0 };
        self.received += n as u64;
        self.received_last = (at, last + n as u64);
    }
}

impl Backend for CheckedBackend {
    const NAME: &'static str = Sim::NAME;
    const GATHERS: bool = Sim::GATHERS;

    fn now(&mut self) -> Nanos {
        self.sim.now()
    }

    fn connect(&mut self, conn: ConnId, address: SocketAddr) {
        self.opened += 1;
        if self.opened > OPENED_MAX {
            self.flaw.get_or_insert_with(|| format!("{} connects in one turn", self.opened));
        }
        self.check_state(conn, "it is opened", |seen| seen.state == ConnectionState::Closed);
        self.seen[conn.index()].state = ConnectionState::Connecting;
        self.sim.connect(conn, address);
    }

    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        // A server that resets a connection has accepted it first: the engine sends something before the connection
        // ends.
        let is_there =
            |seen: Seen| matches!(seen.state, ConnectionState::Open | ConnectionState::Over) && seen.unsent == 0;
        self.check_call(conn, "something is sent", is_there);
        let length = bytes.bytes().len();
        let n = self.sim.send(conn, bytes);
        self.seen[conn.index()].unsent = length - n;
        n
    }

    fn discard(&mut self, conn: ConnId, n: u64) {
        self.check_call(conn, "something is discarded", |seen| {
            matches!(seen.state, ConnectionState::Open | ConnectionState::Broken)
        });
        self.sim.discard(conn, n);
    }

    fn send_last(&mut self, conn: ConnId, bytes: &[u8]) {
        self.sim.send_last(conn, bytes);
    }

    fn close(&mut self, conn: ConnId) {
        self.check_call(conn, "it is closed", |_| true);
        self.seen[conn.index()] = Seen::default();
        self.sim.close(conn);
    }

    fn take_sent_count(&mut self) -> u64 {
        self.sim.take_sent_count()
    }

    fn wait(&mut self, until: Nanos) -> bool {
        self.sim.wait(until)
    }

    fn gather(&mut self, until: Nanos, next: Nanos) -> bool {
        self.sim.gather(until, next)
    }

    fn next_completion(&mut self) -> Option<Completion> {
        (self.calls, self.calls_most) = (0, self.calls_of_one);
        let Some(completion) = self.sim.next_completion() else {
            // After a stall, timers fire in the following turn.
            self.allow_timers();
            return None;
        };
        self.handled += 1;
        if self.handled >= HANDLED_PER_TURN {
            self.allow_timers();
        }
        self.completions += 1;
        let seen = &mut self.seen[completion.conn.index()];
        match completion.what {
            What::Connected(Ok(())) => seen.state = ConnectionState::Open,
            What::Connected(Err(_)) | What::Received(Ok(0) | Err(_)) => seen.state = ConnectionState::Over,
            What::Sent(Ok(n)) => seen.unsent -= n,
            What::Sent(Err(_)) => seen.state = ConnectionState::Broken,
            What::Received(Ok(n)) | What::Discarded(n) => self.count_received(n, completion.at),
            What::Postponed => {}
        }
        Some(completion)
    }

    fn received_bytes(&mut self) -> &mut [u8] {
        self.sim.received_bytes()
    }
}

struct WatchedNetwork {
    network: Box<dyn Network>,
    answer: Rc<[u8]>,
    journal: Rc<Journal>,
}

impl Network for WatchedNetwork {
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        let (at, outcome) = self.network.connect(now, address);
        let watched = |peer| -> Box<dyn Peer> {
            self.journal.peers.set(self.journal.peers.get() + 1);
            let (answer, journal) = (Rc::clone(&self.answer), Rc::clone(&self.journal));
            let (wakes, asked, tail) = (VecDeque::new(), Vec::new(), Vec::new());
            Box::new(WatchedPeer { peer, answer, journal, wakes, asked, tail, plain: Some(0), is_over: false })
        };
        (at, outcome.map(watched))
    }

    fn awakes(&self, at: Nanos) -> Nanos {
        self.network.awakes(at)
    }

    fn has_room(&self) -> bool {
        self.network.has_room()
    }

    fn send_window(&mut self) -> (usize, u64) {
        self.network.send_window()
    }
}

/// One connection. There are two wakes around every action of the server: one just before it arrives, and one when it
/// has arrived and the connection still exists.
struct WatchedPeer {
    peer: Box<dyn Peer>,
    answer: Rc<[u8]>,
    journal: Rc<Journal>,
    /// The next wakes with their reasons, in order.
    wakes: VecDeque<(Nanos, WakeReason)>,
    /// Last bytes received from the client.
    asked: Vec<u8>,
    /// Last bytes that arrived at the client.
    tail: Vec<u8>,
    /// Number of bytes of the usual response that have arrived; `None` after anything else.
    plain: Option<usize>,
    is_over: bool,
}

enum WakeReason {
    /// These bytes arrive now.
    Arriving(Vec<u8>),
    /// These bytes have arrived.
    Arrived(Vec<u8>),
    /// Nothing more will arrive.
    Over,
    /// The server requested the wake.
    Own,
}

/// Shortest prefix of a head that reveals the status class.
const HEAD: usize = "HTTP/1.1 2".len();
/// End of a request's first line, found nowhere else in it.
const ASKED: &[u8] = b" HTTP/1.1\r\n";

impl WatchedPeer {
    /// Adds wakes around the server's latest actions.
    fn watch(&mut self, now: Nanos, from: usize, actions: &mut Vec<Action>) {
        for Action { at, act } in actions.split_off(from) {
            let mut wake = |actions: &mut Vec<Action>, about| {
                let at = at.max(now);
                let place = self.wakes.partition_point(|(earlier, _)| *earlier <= at);
                self.wakes.insert(place, (at, about));
                actions.push(Action { at, act: Act::Wake });
            };
            match act {
                Act::Wake => wake(actions, WakeReason::Own),
                Act::Park => actions.push(Action { at, act }),
                Act::Close | Act::Reset => {
                    wake(actions, WakeReason::Over);
                    actions.push(Action { at, act });
                }
                Act::Send(bytes) => {
                    wake(actions, WakeReason::Arriving(bytes.clone()));
                    actions.push(Action { at, act: Act::Send(bytes.clone()) });
                    wake(actions, WakeReason::Arrived(bytes));
                }
            }
        }
    }

    fn count_heads(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let is_head = |bytes: &&[u8]| bytes.starts_with(b"HTTP/") && !bytes.ends_with(b"1");
        let heads = self.tail.windows(HEAD).filter(is_head).count() as u64;
        self.journal.heads.set(self.journal.heads.get() + heads);
        self.tail.drain(..self.tail.len().saturating_sub(HEAD - 1));
    }

    fn count_usual_responses(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.plain = self.plain.filter(|&place| self.answer[place] == *byte).map(|place| place + 1);
            if self.plain == Some(self.answer.len()) {
                self.journal.answers.set(self.journal.answers.get() + 1);
                self.plain = Some(0);
            }
        }
    }
}

impl Peer for WatchedPeer {
    fn accepted(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let from = actions.len();
        self.peer.accepted(now, actions);
        self.watch(now, from, actions);
    }

    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        self.asked.extend_from_slice(bytes);
        self.asked.windows(ASKED.len()).filter(|bytes| *bytes == ASKED).for_each(|_| self.journal.check_not_early(now));
        self.asked.drain(..self.asked.len().saturating_sub(ASKED.len() - 1));
        let from = actions.len();
        self.peer.receive(now, bytes, actions);
        self.watch(now, from, actions);
    }

    fn served(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let from = actions.len();
        self.peer.served(now, actions);
        self.watch(now, from, actions);
    }

    fn wake(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        match self.wakes.pop_front().map(|(_, about)| about) {
            Some(WakeReason::Arriving(bytes)) if !self.is_over => self.count_heads(&bytes),
            Some(WakeReason::Arrived(bytes)) if !self.is_over => self.count_usual_responses(&bytes),
            Some(WakeReason::Over) => self.is_over = true,
            Some(WakeReason::Own) => {
                let from = actions.len();
                self.peer.wake(now, actions);
                self.watch(now, from, actions);
            }
            Some(WakeReason::Arriving(_) | WakeReason::Arrived(_)) | None => {}
        }
    }
}

impl Drop for WatchedPeer {
    fn drop(&mut self) {
        self.journal.peers.set(self.journal.peers.get() - 1);
    }
}
