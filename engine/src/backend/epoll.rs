//! Completions emulated on epoll: one registration per connection, edge-triggered, one receive per wake-up.
//!
//! A receive happens when the engine takes the next completion, into one buffer per thread: the response is parsed
//! while it is in the cache, and the next request leaves at once. A single clock reading stamps the receive and the
//! send after it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use onrush_proto::{Nanos, Transmit};
use onrush_stats::{BufferSizes, TcpInfo};
use rustix::event::epoll::{self, EventFlags as Flags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::arrival::Arrivals;
use super::dialer::DialError;
use super::socket::{DISCARDED_AT_ONCE, Delay, Threshold, send_rest, send_some};
use super::{Backend, Clock, Completion, ConnId, Dialer, Poll, What, grow_to_include, socket};

/// Largest number of events taken from the kernel at once.
const EVENTS_MAX: usize = 512;
/// Size of the receive buffer. A large response needs few system calls, and the buffer stays in the cache.
const BUFFER_BYTES: usize = 64 * 1024;
/// Size of the receive after a response that was mostly discarded: enough for the next head, and little to copy.
const HEAD_BYTES: usize = 4 * 1024;
/// Number of receives from one connection before the others get their turn.
const RECEIVES_IN_A_ROW: u32 = 8;

/// The epoll backend of one thread.
pub struct Epoll {
    poll: Poll,
    dialer: Dialer,
    clock: Clock,
    /// Indexed by connection, up to the highest ID ever connected.
    sockets: Vec<Socket>,
    /// Unhandled readiness events of the kernel.
    events: Vec<epoll::Event>,
    /// Connections with work to do, in order.
    ready: VecDeque<Ready>,
    /// Number of entries of `ready` that belong to the current round.
    round: usize,
    /// Outcomes known at once, with the generation of their connection.
    immediate: VecDeque<(u32, Completion)>,
    buffer: Box<[u8]>,
    received: usize,
    /// Bytes that the kernel took since [`Backend::take_sent_count`] was last called.
    taken: u64,
    /// Receive timestamps, if the kernel is asked for them.
    arrivals: Option<Arrivals>,
    /// Number of connections with an urgent operation in flight: its end must be noticed without delay.
    urgent: u32,
}

#[derive(Default)]
struct Socket {
    fd: Option<OwnedFd>,
    /// Distinguishes events of this connection from those of an earlier one with the same ID.
    generation: u32,
    connecting: bool,
    delay: Delay,
    /// Number of following bytes that can be discarded.
    unwanted: u64,
    /// True if most of the last response was discarded.
    is_large: bool,
    /// Number of bytes that make the socket readable.
    threshold: Threshold,
    /// The send that the kernel has not fully accepted, and the number of bytes it has accepted.
    unsent: Option<(Transmit, usize)>,
    is_urgent: bool,
}

/// A connection's turn in the round.
#[derive(Clone, Copy)]
struct Ready {
    conn: ConnId,
    generation: u32,
    writable: bool,
    readable: bool,
    /// True if a short read does not mean that the socket is empty: the peer will send no more, or a receive stopped at
    /// urgent data.
    exhaust: bool,
    receives: u32,
    /// True if the socket has an error, or is closed in both directions.
    has_failed: bool,
}

impl Epoll {
    /// A backend for the connections `0..connections`.
    ///
    /// # Errors
    ///
    /// If the kernel provides no epoll instance, for instance because descriptors have run out.
    pub fn new(connections: u32, clock: Clock, dialer: Dialer) -> std::io::Result<Self> {
        let poll = Poll::new()?;
        let arrivals = dialer.has_timestamps().then(|| Arrivals::new(clock));
        Ok(Self {
            poll,
            dialer,
            clock,
            sockets: Vec::with_capacity(connections as usize),
            events: Vec::with_capacity(EVENTS_MAX),
            ready: VecDeque::with_capacity(EVENTS_MAX),
            round: 0,
            immediate: VecDeque::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            received: 0,
            taken: 0,
            arrivals,
            urgent: 0,
        })
    }

    /// Updates whether a connection has an urgent operation in flight.
    fn count_urgent(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        let is_urgent = socket.connecting || socket.unwanted > 0 || socket.unsent.is_some();
        self.urgent -= u32::from(std::mem::replace(&mut socket.is_urgent, is_urgent));
        self.urgent += u32::from(is_urgent);
    }

    /// Performs the next operation of a ready connection. `None`: nothing is left to do.
    fn handle_ready(&mut self, ready: &mut Ready) -> Option<What> {
        let socket = &mut self.sockets[ready.conn.index()];
        if socket.generation != ready.generation {
            return None;
        }
        let fd = socket.fd.as_ref()?;
        if socket.connecting {
            socket.connecting = false;
            // Asks for the error only if the kernel reports one.
            let outcome = if ready.has_failed { sockopt::socket_error(fd).and_then(|outcome| outcome) } else { Ok(()) };
            self.count_urgent(ready.conn);
            return Some(What::Connected(outcome));
        }
        if ready.writable {
            ready.writable = false;
            if let Some(outcome) = socket.resume_send() {
                self.taken += outcome.unwrap_or(0) as u64;
                self.count_urgent(ready.conn);
                return Some(What::Sent(outcome));
            }
        }
        if !ready.readable {
            return None;
        }
        self.receive(ready)
    }

    fn receive(&mut self, ready: &mut Ready) -> Option<What> {
        let socket = &mut self.sockets[ready.conn.index()];
        let fd = socket.fd.as_ref()?;
        ready.receives += 1;
        if socket.unwanted > 0 {
            let asked = socket.unwanted;
            let discarded = socket::discard(fd, asked);
            if discarded == Err(Errno::AGAIN) {
                return None;
            }
            // At the end of the stream or after an error, the receive below shows which it was.
            let n = discarded.unwrap_or(0);
            socket.unwanted = if n == 0 { 0 } else { asked - n as u64 };
            socket.threshold.before_receive(fd, socket.unwanted, DISCARDED_AT_ONCE);
            if socket.unwanted == 0 {
                self.count_urgent(ready.conn);
            }
            if n > 0 {
                // As below: the kernel had no more bytes.
                ready.readable = n as u64 == asked || ready.exhaust;
                return Some(What::Discarded(n));
            }
        }
        let socket = &mut self.sockets[ready.conn.index()];
        let fd = socket.fd.as_ref()?;
        let room = if socket.is_large { HEAD_BYTES } else { BUFFER_BYTES };
        let outcome = loop {
            let place = &mut self.buffer[..room];
            let received = match &mut self.arrivals {
                Some(arrivals) => arrivals.receive_timestamped(fd, place),
                None => recv(fd, place, RecvFlags::empty()).map(|(_, n)| n),
            };
            match received {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                outcome => break outcome,
            }
        };
        socket.is_large = false;
        // A short read means that the socket is empty. Later arrivals are a new event.
        ready.readable = outcome.is_ok_and(|n| n > 0 && (n == room || ready.exhaust));
        self.received = outcome.unwrap_or(0);
        Some(What::Received(outcome))
    }
}

impl Socket {
    /// Continues an unfinished send. `None`: there is none, or nothing could be sent.
    fn resume_send(&mut self) -> Option<Result<usize, Errno>> {
        let (transmit, sent) = self.unsent.as_mut()?;
        match send_rest(self.fd.as_ref()?, transmit, *sent) {
            Ok(0) => None,
            Ok(n) => {
                *sent += n;
                if *sent == transmit.len() {
                    self.unsent = None;
                }
                Some(Ok(n))
            }
            Err(errno) => {
                self.unsent = None;
                Some(Err(errno))
            }
        }
    }
}

/// Registers a connection for all events.
fn watch(poll: &Poll, fd: &OwnedFd, conn: ConnId, generation: u32) -> Result<(), Errno> {
    let data = epoll::EventData::new_u64(u64::from(generation) << 32 | u64::from(conn.0));
    epoll::add(poll, fd, data, Flags::IN | Flags::OUT | Flags::RDHUP | Flags::PRI | Flags::ET)
}

impl Backend for Epoll {
    const NAME: &'static str = "epoll";
    const GATHERS: bool = false;

    fn now(&mut self) -> Nanos {
        self.clock.now()
    }

    fn time_at(&mut self, moment: Instant) -> Nanos {
        self.clock.from_instant(moment)
    }

    fn time_of(&mut self, monotonic_ns: u64) -> Nanos {
        self.clock.from_monotonic_ns(monotonic_ns)
    }

    fn connect(&mut self, conn: ConnId, address: SocketAddr) {
        grow_to_include(&mut self.sockets, conn);
        let socket = &mut self.sockets[conn.index()];
        debug_assert!(socket.fd.is_none(), "a connection in use cannot be connected");
        socket.generation = socket.generation.wrapping_add(1);
        let generation = socket.generation;
        let started = self.dialer.dial(address).and_then(|fd| {
            watch(&self.poll, &fd, conn, generation).map_err(DialError::Failed)?;
            Ok(fd)
        });
        match started {
            Ok(fd) => {
                socket.fd = Some(fd);
                socket.connecting = true;
                self.count_urgent(conn);
            }
            Err(refusal) => {
                let completion = Completion { conn, at: self.clock.now(), what: refusal.into() };
                self.immediate.push_back((socket.generation, completion));
            }
        }
    }

    fn adopt(&mut self, conn: ConnId, fd: OwnedFd) -> bool {
        grow_to_include(&mut self.sockets, conn);
        let socket = &mut self.sockets[conn.index()];
        let generation = socket.generation.wrapping_add(1);
        if !self.dialer.adopt(&fd) || watch(&self.poll, &fd, conn, generation).is_err() {
            return false;
        }
        *socket = Socket { fd: Some(fd), generation, ..Socket::default() };
        true
    }

    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        let socket = &mut self.sockets[conn.index()];
        debug_assert!(socket.unsent.is_none(), "one send at a time");
        let Some(fd) = &socket.fd else { return 0 };
        socket.delay.before_send(fd, bytes.len());
        match send_rest(fd, &bytes, 0) {
            Ok(n) => {
                self.taken += n as u64;
                if n < bytes.len() {
                    socket.unsent = Some((bytes, n));
                    self.count_urgent(conn);
                }
                n
            }
            Err(errno) => {
                let completion = Completion { conn, at: self.clock.now(), what: What::Sent(Err(errno)) };
                self.immediate.push_back((socket.generation, completion));
                0
            }
        }
    }

    fn discard(&mut self, conn: ConnId, n: u64) {
        if !self.dialer.is_tcp() {
            return;
        }
        let socket = &mut self.sockets[conn.index()];
        (socket.unwanted, socket.is_large) = (n, true);
        if let Some(fd) = &socket.fd {
            socket.threshold.before_receive(fd, n, DISCARDED_AT_ONCE);
        }
        self.count_urgent(conn);
    }

    fn tcp_info(&self, conn: ConnId) -> Option<(u32, TcpInfo)> {
        let socket = &self.sockets[conn.index()];
        Some((socket.generation, socket.fd.as_ref().and_then(socket::tcp_info)?))
    }

    fn buffer_sizes(&self) -> BufferSizes {
        self.dialer.buffer_sizes(self.sockets.iter().filter_map(|socket| socket.fd.as_ref()))
    }

    fn send_last(&mut self, conn: ConnId, bytes: &[u8]) {
        let socket = &self.sockets[conn.index()];
        if let Some(fd) = socket.fd.as_ref().filter(|_| socket.unsent.is_none()) {
            // No completion is needed for these.
            self.taken += send_some(fd, bytes).unwrap_or(0) as u64;
        }
    }

    fn drain_input(&mut self, conn: ConnId) {
        self.sockets[conn.index()].fd.iter().for_each(socket::drain);
    }

    fn close(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        self.urgent -= u32::from(socket.is_urgent);
        *socket = Socket { generation: socket.generation.wrapping_add(1), ..Socket::default() };
    }

    fn release(&mut self, conns: &[ConnId]) -> Vec<(ConnId, OwnedFd)> {
        let is_idle = |socket: &&mut Socket| !socket.is_urgent;
        let release = |&conn: &ConnId| {
            let fd = Some(&mut self.sockets[conn.index()]).filter(is_idle)?.fd.take()?;
            Some((conn, fd))
        };
        conns.iter().filter_map(release).collect()
    }

    fn take_sent_count(&mut self) -> u64 {
        std::mem::take(&mut self.taken)
    }

    fn take_untimestamped(&mut self) -> u64 {
        self.arrivals.as_mut().map_or(0, Arrivals::take_untimestamped)
    }

    fn wait(&mut self, until: Nanos) -> bool {
        self.dialer.begin_turn();
        let had_all = self.ready.is_empty();
        let busy = !self.ready.is_empty() || !self.immediate.is_empty();
        let left = if busy { 0 } else { until.since(self.clock.now()) };
        // An interrupted wait reports no events, and the engine checks its timers: nothing is lost.
        let _ = self.poll.wait(&mut self.events, Some(Duration::from_nanos(left)));
        for event in &self.events {
            let (data, flags) = (event.data.u64(), event.flags);
            let exhaust = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR | Flags::PRI);
            self.ready.push_back(Ready {
                conn: ConnId(data as u32),
                generation: (data >> 32) as u32,
                writable: flags.intersects(Flags::OUT | Flags::ERR | Flags::HUP),
                readable: flags.contains(Flags::IN) || exhaust,
                exhaust,
                receives: 0,
                has_failed: flags.intersects(Flags::ERR | Flags::HUP),
            });
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.compare_clocks(had_all, self.events.len() < EVENTS_MAX);
        }
        self.round = self.ready.len();
        self.round > 0 || !self.immediate.is_empty()
    }

    fn gather(&mut self, until: Nanos, next: Nanos) -> bool {
        let may_gather = self.ready.is_empty() && self.immediate.is_empty() && self.urgent == 0;
        may_gather && self.arrivals.as_mut().is_some_and(|arrivals| arrivals.sleep_and_gather(until, next))
    }

    fn next_completion(&mut self) -> Option<Completion> {
        while let Some((generation, completion)) = self.immediate.pop_front() {
            if self.sockets[completion.conn.index()].generation == generation {
                return Some(completion);
            }
        }
        while self.round > 0 {
            let mut ready = self.ready.pop_front()?;
            let what = self.handle_ready(&mut ready);
            let more = what.is_some() && (ready.readable || ready.writable);
            if more && ready.receives < RECEIVES_IN_A_ROW {
                self.ready.push_front(ready);
            } else {
                self.round -= 1;
                if more {
                    self.ready.push_back(Ready { receives: 0, ..ready });
                }
            }
            if let Some(what) = what {
                let now = self.clock.now();
                let at = match (&mut self.arrivals, what) {
                    (Some(arrivals), What::Received(Ok(n @ 1..))) => arrivals.arrival_time(now, n),
                    _ => now,
                };
                return Some(Completion { conn: ready.conn, at, what });
            }
        }
        None
    }

    fn received_bytes(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.received]
    }
}
