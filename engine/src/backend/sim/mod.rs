//! In-memory peers and virtual time: a minute of stalls, resets and short writes takes milliseconds and always gives
//! the same result.
//!
//! Time does not advance while the engine works, and jumps to the next event when the engine waits. One [`Peer`] per
//! connection plays the remote side; [`scenario`] makes HTTP/1.1 peers from a file. No socket, no clock, no thread.

mod capacity;
mod http_network;
mod http_peer;
pub mod scenario;
mod service;

pub use scenario::Scenario;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use onrush_proto::{Nanos, Transmit};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::{Backend, Completion, ConnId, What};

/// The remote end of a simulated connection.
pub trait Peer {
    /// Called once, when the connection is established. `actions`: the peer's planned actions, to be added to, here and
    /// below.
    fn accepted(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let _ = (now, actions);
    }

    /// Called with bytes from the client, in any pieces.
    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>);

    /// Called when the network has room for a peer parked with [`Act::Park`].
    fn served(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let _ = (now, actions);
    }

    /// Called at the time requested with [`Act::Wake`].
    fn wake(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let _ = (now, actions);
    }
}

/// A peer's immediate or future action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Time of the action; not before the current time.
    pub at: Nanos,
    /// The action.
    pub act: Act,
}

/// An action of a peer.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Ends the peer's side of the stream, after all bytes sent before.
    Close,
    /// Resets the connection.
    Reset,
    /// Calls [`Peer::wake`].
    Wake,
    /// Waits until [`Network::has_room`] and peers that have waited longer are served.
    Park,
}

/// The network as a whole, which decides the outcome of connects.
pub trait Network {
    /// The time at which a connect to `address` started at `now` ends, and its outcome: a peer or an error.
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>);

    /// The peer of a connection left by an earlier simulation. `None`: the connection is closed.
    fn adopt(&mut self) -> Option<Box<dyn Peer>> {
        None
    }

    /// Wake-up time of a thread that should wake at `at`: later if the thread is stalled.
    fn awakes(&self, at: Nanos) -> Nanos {
        at
    }

    /// True if a peer parked with [`Act::Park`] can be served.
    fn has_room(&self) -> bool {
        false
    }

    /// Number of bytes of a send that are accepted at once, and the delay of the rest in nanoseconds.
    fn send_window(&mut self) -> (usize, u64) {
        (usize::MAX, 0)
    }
}

/// The simulated backend of one thread.
pub struct Sim {
    network: Box<dyn Network>,
    now: Nanos,
    lines: Vec<Line>,
    /// Future events, the earliest first; simultaneous events in order of creation.
    agenda: BinaryHeap<Reverse<Planned>>,
    planned: u64,
    /// Events that occurred while gathering, in order.
    gathered: VecDeque<Planned>,
    received: Vec<u8>,
    actions: Vec<Action>,
    /// Connections whose peers are parked, with their generations.
    parked: VecDeque<(ConnId, u32)>,
    /// Number of bytes taken by the network since the last call of [`Backend::take_sent_count`].
    taken: u64,
}

#[derive(Default)]
struct Line {
    generation: u32,
    peer: Option<Box<dyn Peer>>,
    unsent: Option<(Transmit, usize)>,
    /// Number of following bytes that can be discarded.
    unwanted: u64,
    /// True if the peer has closed or reset the connection: nothing more arrives.
    over: bool,
}

/// An entry of the agenda; ordered by time, then by number.
struct Planned {
    at: Nanos,
    number: u64,
    conn: ConnId,
    generation: u32,
    event: Event,
}

enum Event {
    Connected(Result<Box<dyn Peer>, Errno>),
    Peer(Act),
    Writable,
    Failed(Errno),
}

impl Sim {
    /// A backend for the connections `0..connections`, at time zero.
    pub fn new(connections: u32, network: Box<dyn Network>) -> Self {
        Self {
            network,
            now: Nanos::default(),
            lines: (0..connections).map(|_| Line::default()).collect(),
            agenda: BinaryHeap::new(),
            planned: 0,
            gathered: VecDeque::new(),
            received: Vec::new(),
            actions: Vec::new(),
            parked: VecDeque::new(),
            taken: 0,
        }
    }

    /// Sets the starting time, which is otherwise zero.
    pub fn starting_at(mut self, now: Nanos) -> Self {
        self.now = now;
        self
    }

    fn schedule_action(&mut self, at: Nanos, conn: ConnId, event: Event) {
        let generation = self.lines[conn.index()].generation;
        self.planned += 1;
        self.agenda.push(Reverse(Planned { at: at.max(self.now), number: self.planned, conn, generation, event }));
    }

    fn schedule_actions(&mut self, conn: ConnId) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action.act {
                Act::Park => self.parked.push_back((conn, self.lines[conn.index()].generation)),
                act => self.schedule_action(action.at, conn, Event::Peer(act)),
            }
        }
        self.actions = actions;
    }

    /// Serves parked peers while there is room.
    fn serve_parked(&mut self) {
        while self.network.has_room()
            && let Some((conn, generation)) = self.parked.pop_front()
        {
            let line = &mut self.lines[conn.index()];
            if let Some(peer) = line.peer.as_mut().filter(|_| line.generation == generation && !line.over) {
                peer.served(self.now, &mut self.actions);
                self.schedule_actions(conn);
            }
        }
    }

    /// Passes the part of `bytes` that the network takes now to the peer. Returns its length.
    fn deliver_to_peer(&mut self, conn: ConnId, bytes: &[u8]) -> usize {
        let (window, pause) = self.network.send_window();
        let n = bytes.len().min(window);
        self.taken += n as u64;
        if let Some(peer) = &mut self.lines[conn.index()].peer {
            peer.receive(self.now, &bytes[..n], &mut self.actions);
        }
        self.schedule_actions(conn);
        if n < bytes.len() {
            self.schedule_action(self.now + pause, conn, Event::Writable);
        }
        n
    }

    /// Discards the unwanted part of arriving bytes. Returns its length.
    fn discard_some(&mut self, planned: &mut Planned) -> Option<usize> {
        let line = &mut self.lines[planned.conn.index()];
        let Event::Peer(Act::Send(bytes)) = &mut planned.event else { return None };
        let n = bytes.len().min(usize::try_from(line.unwanted).unwrap_or(usize::MAX));
        line.unwanted -= n as u64;
        bytes.drain(..n);
        (n > 0).then_some(n)
    }

    /// Removes events of closed connections, so that nothing wakes up for them.
    fn forget_closed(&mut self) {
        while let Some(Reverse(planned)) = self.agenda.peek()
            && self.lines[planned.conn.index()].generation != planned.generation
        {
            self.agenda.pop();
        }
    }

    fn next_until(&mut self, until: Nanos) -> Option<Planned> {
        self.forget_closed();
        self.agenda.peek().filter(|Reverse(planned)| planned.at <= until)?;
        self.agenda.pop().map(|Reverse(planned)| planned)
    }

    /// Executes an event. `None`: the event concerns only the peer.
    fn execute_event(&mut self, conn: ConnId, event: Event) -> Option<What> {
        let line = &mut self.lines[conn.index()];
        match event {
            Event::Connected(Ok(mut peer)) => {
                peer.accepted(self.now, &mut self.actions);
                line.peer = Some(peer);
                self.schedule_actions(conn);
                Some(What::Connected(Ok(())))
            }
            Event::Connected(Err(errno)) => {
                line.over = true;
                Some(What::Connected(Err(errno)))
            }
            Event::Failed(errno) => Some(What::Sent(Err(errno))),
            Event::Writable => {
                let (transmit, sent) = line.unsent.take()?;
                let n = self.deliver_to_peer(conn, &transmit.bytes()[sent..]);
                if sent + n < transmit.len() {
                    self.lines[conn.index()].unsent = Some((transmit, sent + n));
                }
                (n > 0).then_some(What::Sent(Ok(n)))
            }
            Event::Peer(Act::Wake) => {
                line.peer.as_mut()?.wake(self.now, &mut self.actions);
                self.schedule_actions(conn);
                None
            }
            Event::Peer(Act::Park) => None,
            Event::Peer(_) if line.over => None,
            Event::Peer(Act::Send(bytes)) => {
                let n = bytes.len();
                self.received = bytes;
                (n > 0).then_some(What::Received(Ok(n)))
            }
            Event::Peer(Act::Close) => {
                line.over = true;
                self.received.clear();
                Some(What::Received(Ok(0)))
            }
            Event::Peer(Act::Reset) => {
                line.over = true;
                self.received.clear();
                Some(What::Received(Err(Errno::CONNRESET)))
            }
        }
    }
}

impl Backend for Sim {
    const NAME: &'static str = "sim";
    const GATHERS: bool = false;

    fn now(&mut self) -> Nanos {
        self.now
    }

    fn connect(&mut self, conn: ConnId, address: SocketAddr) {
        self.close(conn);
        let (at, outcome) = self.network.connect(self.now, address);
        self.schedule_action(at, conn, Event::Connected(outcome));
    }

    fn adopt(&mut self, conn: ConnId, _: OwnedFd) -> bool {
        self.close(conn);
        self.lines[conn.index()].peer = self.network.adopt();
        self.lines[conn.index()].peer.is_some()
    }

    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        if self.lines[conn.index()].over {
            self.schedule_action(self.now, conn, Event::Failed(Errno::PIPE));
            return 0;
        }
        let n = match bytes.contiguous_bytes() {
            Some(all) => self.deliver_to_peer(conn, all),
            None => self.deliver_to_peer(conn, &bytes.bytes()),
        };
        if n < bytes.len() {
            self.lines[conn.index()].unsent = Some((bytes, n));
        }
        n
    }

    fn discard(&mut self, conn: ConnId, n: u64) {
        self.lines[conn.index()].unwanted = n;
    }

    fn send_last(&mut self, _: ConnId, _: &[u8]) {
        // Only TLS sends last bytes, and TLS is not simulated.
    }

    fn close(&mut self, conn: ConnId) {
        let line = &mut self.lines[conn.index()];
        *line = Line { generation: line.generation.wrapping_add(1), ..Line::default() };
        if !self.parked.is_empty() {
            self.serve_parked();
        }
    }

    fn release(&mut self, conns: &[ConnId]) -> Vec<(ConnId, OwnedFd)> {
        // A simulated connection has no descriptor. Any descriptor will do: it is never read.
        let release = |&conn: &ConnId| Some((conn, eventfd(0, EventfdFlags::CLOEXEC).ok()?));
        conns.iter().filter(|conn| !self.lines[conn.index()].over).filter_map(release).collect()
    }

    fn take_sent_count(&mut self) -> u64 {
        std::mem::take(&mut self.taken)
    }

    fn wait(&mut self, until: Nanos) -> bool {
        self.forget_closed();
        if !self.gathered.is_empty() {
            return true;
        }
        let next = self.agenda.peek().map_or(Nanos::MAX, |Reverse(planned)| planned.at);
        let target = next.min(until);
        if target == Nanos::MAX {
            return false;
        }
        let target = target.max(self.now);
        self.now = self.network.awakes(target);
        // An interrupted wait has missed the events of the interruption.
        next <= self.now && self.now == target
    }

    /// Always lingers to the end, as if there were never several completions.
    fn wait_for_several(&mut self, _: u32, linger_ns: u64, until: Nanos) -> u64 {
        let lingers_until = (self.now + linger_ns).min(until);
        let allowed_ns = lingers_until.since(self.now);
        let is_next = self.agenda.peek().is_some_and(|Reverse(planned)| planned.at <= lingers_until);
        if is_next && self.gathered.is_empty() {
            self.now = self.now.max(lingers_until);
        }
        self.wait(until);
        allowed_ns
    }

    fn gather(&mut self, until: Nanos, _: Nanos) -> bool {
        if !self.gathered.is_empty() {
            return false;
        }
        while let Some(planned) = self.next_until(until) {
            match planned.event {
                Event::Peer(Act::Wake) => {
                    self.now = planned.at;
                    self.execute_event(planned.conn, planned.event);
                }
                Event::Peer(_) => self.gathered.push_back(planned),
                Event::Connected(_) | Event::Writable | Event::Failed(_) => {
                    self.agenda.push(Reverse(planned));
                    return false;
                }
            }
        }
        self.now = self.network.awakes(until.max(self.now));
        true
    }

    fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let mut planned = match self.gathered.pop_front() {
                // The network timestamps bytes; all other events have the time at which they are noticed.
                Some(planned @ Planned { event: Event::Peer(Act::Send(_)), .. }) => planned,
                Some(planned) => Planned { at: self.now, ..planned },
                None => Planned { at: self.now, ..self.next_until(self.now)? },
            };
            let Planned { at, conn, .. } = planned;
            if self.lines[conn.index()].generation != planned.generation {
                continue;
            }
            if let Some(n) = self.discard_some(&mut planned) {
                // The remainder stays ahead of everything else.
                self.gathered.push_front(planned);
                return Some(Completion { conn, at, what: What::Discarded(n) });
            }
            let event = planned.event;
            if let Some(what) = self.execute_event(conn, event) {
                return Some(Completion { conn, at, what });
            }
        }
    }

    fn received_bytes(&mut self) -> &mut [u8] {
        &mut self.received
    }
}

fn nanos(microseconds: f64) -> u64 {
    (microseconds * 1e3).round() as u64
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
