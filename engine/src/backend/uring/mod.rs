//! Completions directly from the kernel, through io_uring.
//!
//! Everything queued while completions are handled goes to the kernel in one call, together with the wait. Received
//! bytes arrive in buffers that belong to the thread. See `sending` and `receiving`.
//!
//! [`Uring::new`] fails if a filter forbids io_uring, or if a feature is missing:
//!
//! * 5.6: send and receive, also in several pieces
//! * 5.17: silent completions
//! * 5.19: buffer rings, `MSG_WAITALL` for sends
//! * 6.0: armed receives, single issuer
//! * 6.1: deferred work

mod buffers;
mod message;
mod names;
mod probe;
mod receiving;
mod releasing;
mod ring;
mod sending;
mod socket;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use onrush_proto::{Nanos, Transmit};
use onrush_stats::TcpInfo;
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketAddrAny, shutdown, sockopt};

use super::arrival::{Arrivals, PREFACE_BYTES};
use super::dialer::Dial;
use super::{Backend, Clock, Completion, ConnId, Dialer, What, grow_to_include};
use buffers::Buffers;
use message::Message;
use names::{Operation, decode_operation_name, encode_operation_name};
use ring::Ring;
use sending::Sending;
use socket::{Ended, Large, Socket};
use taken::Taken;

/// From this number of operations on, submitting them takes long enough to do it before the wait.
const MANY: usize = 16;
/// Time to wait for the end of cut-off sends, in nanoseconds. They take microseconds.
const END_NS: u64 = 100_000_000;

/// The io_uring backend of one thread.
pub struct Uring {
    /// Declared first, and so dropped before all memory that the kernel reads and writes.
    ring: Ring,
    dialer: Dialer,
    buffers: Buffers,
    /// Addresses for the kernel, which reads them when a connect is submitted.
    addresses: HashMap<SocketAddr, Box<SocketAddrAny>>,
    /// Unfinished sends of closed connections, by operation name. The kernel reads them until the send has ended.
    orphans: HashMap<u64, Transmit>,
    /// Indexed by connection, up to the highest ID ever connected.
    sockets: Vec<Socket>,
    clock: Clock,
    /// Time at which the current completions were noticed.
    reaped_at: Nanos,
    /// True if the kernel can keep sockets in a table indexed by connection. The open-file limit bounds the table.
    has_table: bool,
    /// Receive timestamps, if the kernel is asked for them.
    arrivals: Option<Arrivals>,
    /// Number of operations in flight whose end must be noticed without delay.
    urgent: u32,
    taken: Taken,
    /// Connections with bytes to send after a silent send.
    behind: Vec<ConnId>,
    /// Closed sockets still named by queued operations, and the bytes to send on them.
    closing: Vec<(OwnedFd, Option<Transmit>)>,
    /// Headers that queued operations point to, kept until they are submitted.
    #[expect(clippy::vec_box, reason = "the kernel reads them where they are")]
    messages: Vec<Box<Message>>,
    /// Number of waits that submitted every queued operation.
    turn: u32,
    /// Outcomes known at once, with the generation of their connection.
    immediate: Vec<(u32, Completion)>,
    /// The buffer of the last receive, and the range of its bytes.
    received: Option<(u16, Range<usize>)>,
    /// The connection whose receive or discard has ended. It continues after the engine has handled the completion.
    resume: Option<(ConnId, Ended)>,
}

impl Uring {
    /// A backend for the connections `0..connections`. Only the thread that made it can use it.
    ///
    /// # Errors
    ///
    /// If the kernel has no io_uring, forbids it, or lacks one of the features listed above.
    pub fn new(connections: u32, clock: Clock, dialer: Dialer) -> io::Result<Self> {
        let ring = Ring::new()?;
        let has_table = ring.submitter().register_files_sparse(connections).is_ok();
        let buffers = Buffers::register(&ring.submitter())?;
        // A filter may allow all other calls and forbid this one.
        ring.submit()?;
        let arrivals = dialer.has_timestamps().then(|| Arrivals::new(clock));
        Ok(Self {
            ring,
            dialer,
            buffers,
            addresses: HashMap::new(),
            orphans: HashMap::new(),
            sockets: Vec::with_capacity(connections as usize),
            clock,
            reaped_at: clock.now(),
            has_table,
            arrivals,
            urgent: 0,
            taken: Taken::default(),
            behind: Vec::new(),
            closing: Vec::new(),
            messages: Vec::new(),
            turn: 0,
            immediate: Vec::new(),
            received: None,
            resume: None,
        })
    }

    /// Enters a connection in the kernel's socket table, which saves a look-up per operation.
    fn enter_table(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        if let Some(fd) = socket.fd.as_ref().filter(|_| self.has_table && !socket.in_table) {
            let update = self.ring.submitter().register_files_update(conn.0, &[fd.as_raw_fd()]);
            socket.in_table = update.is_ok();
        }
    }

    /// The descriptor or table index of a connection's socket, for use in an operation.
    fn file(&self, conn: ConnId) -> Fd {
        let socket = &self.sockets[conn.index()];
        let fd = socket.fd.as_ref().filter(|_| !socket.in_table);
        Fd(fd.map_or(conn.0 as i32, |fd| fd.as_raw_fd()))
    }

    /// Queues an operation for the next wait.
    fn push_operation(&mut self, entry: squeue::Entry, conn: ConnId, operation: Operation) {
        let socket = &mut self.sockets[conn.index()];
        socket.queued_in = self.turn;
        self.urgent += u32::from(operation.is_urgent());
        let mut entry = entry.user_data(encode_operation_name(conn, socket.generation, operation));
        if socket.in_table && operation != Operation::Cancel {
            entry = entry.flags(squeue::Flags::FIXED_FILE);
        }
        // SAFETY: all targets of operations outlive them: the bytes that sockets send, orphans, addresses, messages,
        // and the buffers.
        unsafe { self.ring.push(entry) };
    }

    /// Translates a kernel completion for the engine. `None`: it has no meaning there.
    fn translate_completion(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let (conn, operation) = decode_operation_name(entry.user_data());
        self.urgent -= u32::from(operation.is_urgent());
        let is_present =
            encode_operation_name(conn, self.sockets[conn.index()].generation, operation) == entry.user_data();
        let buffer = cqueue::buffer_select(entry.flags());
        let outcome = usize::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
        self.count_sent_bytes(entry);
        if !is_present {
            self.orphans.remove(&entry.user_data());
            buffer.into_iter().for_each(|id| self.buffers.give_back(id));
            return None;
        }
        let mut at = self.reaped_at;
        let what = match operation {
            Operation::Connect => self.on_connect_ended(conn, outcome)?,
            Operation::Send => self.on_sent(conn, outcome)?,
            Operation::SendSilently => self.on_silent_send_refused(conn, outcome)?,
            Operation::Receive => self.on_received(conn, outcome, buffer.map(|id| (id, 0)), false)?,
            Operation::Armed => {
                self.on_received(conn, outcome, buffer.map(|id| (id, 0)), cqueue::more(entry.flags()))?
            }
            Operation::Timestamped => {
                let outcome = outcome.map(|n| n.saturating_sub(PREFACE_BYTES));
                if let (Ok(n @ 1..), Some(id)) = (outcome, buffer) {
                    at = self.arrival_time(id, n);
                }
                self.on_received(conn, outcome, buffer.map(|id| (id, PREFACE_BYTES)), cqueue::more(entry.flags()))?
            }
            Operation::Discard => self.on_discarded(conn, outcome),
            Operation::Cancel => return None,
        };
        Some(Completion { conn, at, what })
    }

    /// Arrival time of the `n` bytes in the buffer of an armed receive.
    fn arrival_time(&mut self, id: u16, n: usize) -> Nanos {
        let Some(arrivals) = &mut self.arrivals else { return self.reaped_at };
        arrivals.take_preface(self.buffers.bytes(id, 0..PREFACE_BYTES));
        arrivals.arrival_time(self.reaped_at, n)
    }

    /// Handles the end of a connect, or of the poll for it, whose result is the readiness.
    fn on_connect_ended(&mut self, conn: ConnId, outcome: Result<usize, Errno>) -> Option<What> {
        let Socket { fd, pair, is_busy, .. } = &mut self.sockets[conn.index()];
        let (fd, pair) = (fd.as_ref()?, *pair);
        let has_failed = |ready: usize| ready & (libc::POLLERR | libc::POLLHUP) as usize != 0;
        let outcome = match outcome {
            Ok(ready) if has_failed(ready) => sockopt::socket_error(fd).and_then(|outcome| outcome),
            outcome => outcome.map(drop),
        };
        let started =
            match (self.dialer.try_next_port(fd, pair, outcome), pair.and_then(|pair| self.dialer.target(pair))) {
                (Ok(true), Some(address)) => self.dialer.start_connect(fd, pair, address).map(|()| true),
                (stepped, _) => stepped,
            };
        *is_busy = started == Ok(true);
        match started {
            Ok(true) => {
                let entry = opcode::PollAdd::new(self.file(conn), libc::POLLOUT as u32).build();
                self.push_operation(entry, conn, Operation::Connect);
                None
            }
            Ok(false) => {
                self.receive_first(conn);
                Some(What::Connected(Ok(())))
            }
            Err(refusal) => Some(refusal.into()),
        }
    }
}

impl Backend for Uring {
    const NAME: &'static str = "uring";
    const GATHERS: bool = true;

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
        let created = self.dialer.create_socket(address);
        let socket = &mut self.sockets[conn.index()];
        *socket = Socket { generation: socket.generation.wrapping_add(1), ..Socket::default() };
        match created {
            Ok(Dial { fd, pair }) => {
                (socket.fd, socket.pair, socket.is_busy) = (Some(fd), pair, true);
                let address =
                    self.addresses.entry(address).or_insert_with(|| Box::new(self.dialer.destination(address)));
                let (bytes, length) = (address.as_ptr().cast(), address.addr_len());
                self.push_operation(
                    opcode::Connect::new(self.file(conn), bytes, length).build(),
                    conn,
                    Operation::Connect,
                );
            }
            Err(errno) => {
                let completion = Completion { conn, at: self.clock.now(), what: What::Connected(Err(errno)) };
                self.immediate.push((socket.generation, completion));
            }
        }
    }

    fn adopt(&mut self, conn: ConnId, fd: OwnedFd) -> bool {
        grow_to_include(&mut self.sockets, conn);
        if !self.dialer.adopt(&fd) {
            return false;
        }
        let socket = &mut self.sockets[conn.index()];
        *socket = Socket { generation: socket.generation.wrapping_add(1), fd: Some(fd), ..Socket::default() };
        self.receive_first(conn);
        true
    }

    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        self.start_send(conn, bytes)
    }

    fn discard(&mut self, conn: ConnId, n: u64) {
        self.prepare_large_body(conn, n, if self.dialer.is_tcp() { Large::Unwanted } else { Large::Wanted });
    }

    fn expect_large_body(&mut self, conn: ConnId, n: u64) {
        self.prepare_large_body(conn, n, Large::Wanted);
    }

    fn receive_in_large_pieces(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        if !socket.is_wide {
            socket.is_wide = true;
            self.prepare_large_body(conn, 0, Large::Wanted);
        }
    }

    fn send_last(&mut self, conn: ConnId, bytes: &[u8]) {
        self.send_now(conn, bytes);
    }

    fn drain_input(&mut self, conn: ConnId) {
        self.sockets[conn.index()].fd.iter().for_each(super::socket::drain);
    }

    fn tcp_info(&self, conn: ConnId) -> Option<(u32, TcpInfo)> {
        let socket = &self.sockets[conn.index()];
        Some((socket.generation, socket.fd.as_ref().and_then(super::socket::tcp_info)?))
    }

    fn buffer_sizes(&self) -> onrush_stats::BufferSizes {
        self.dialer.buffer_sizes(self.sockets.iter().filter_map(|socket| socket.fd.as_ref()))
    }

    fn close(&mut self, conn: ConnId) {
        let is_sending = self.sockets[conn.index()].sending.as_ref().is_some_and(Sending::may_take_long);
        let unsent = self.abandon_send(conn);
        let socket = &mut self.sockets[conn.index()];
        socket.generation = socket.generation.wrapping_add(1);
        self.resume.take_if(|(resumed, _)| *resumed == conn);
        let Some(fd) = socket.fd.take() else { return };
        if unsent.is_none() && (socket.in_table || socket.is_busy || is_sending) {
            // The table keeps the socket open until its entry is reused, as do operations in flight. The shutdown ends
            // it now.
            let _ = shutdown(&fd, Shutdown::Both);
        }
        if socket.queued_in == self.turn {
            // The descriptor must not name another socket before the queue is submitted, and the bytes must stay valid.
            self.closing.push((fd, unsent));
        }
    }

    fn release(&mut self, conns: &[ConnId]) -> Vec<(ConnId, OwnedFd)> {
        self.release_idle(conns)
    }

    fn take_sent_count(&mut self) -> u64 {
        self.taken.take_count()
    }

    fn take_untimestamped(&mut self) -> u64 {
        self.arrivals.as_mut().map_or(0, Arrivals::take_untimestamped)
    }

    fn stop(&mut self) {
        let is_sending = |socket: &&Socket| socket.sending.as_ref().is_some_and(Sending::may_take_long);
        for fd in self.sockets.iter().filter(is_sending).filter_map(|socket| socket.fd.as_ref()) {
            let _ = shutdown(fd, Shutdown::Both);
        }
        let end_at = self.clock.now() + END_NS;
        loop {
            // The kernel reports ended sends; queued operations are not submitted.
            let _ = self.ring.enter_kernel(0);
            while let Some(entry) = self.ring.next_completion() {
                self.count_sent_bytes(&entry);
            }
            if self.taken.is_settled() || self.clock.now() >= end_at {
                return;
            }
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn reap(&mut self) -> bool {
        // After an error there are no new completions.
        let _ = self.ring.enter_kernel(0);
        self.ring.has_completion()
    }

    fn wait(&mut self, until: Nanos) -> bool {
        self.wait_for_several(1, 0, until);
        !self.immediate.is_empty() || self.ring.has_completion()
    }

    fn wait_for_several(&mut self, several: u32, linger_ns: u64, until: Nanos) -> u64 {
        let has_seen_all = !self.ring.has_completion();
        self.dialer.begin_turn();
        self.give_back();
        self.send_after_silent();
        self.ring.submit_backlog();
        if until == Nanos::default() && self.immediate.is_empty() && !self.ring.has_work() {
            return 0;
        }
        if self.ring.queued_count() >= MANY {
            // If the kernel does not take everything now, the next wait submits the rest.
            let _ = self.ring.submit();
        }
        // On a timeout or interruption the engine checks its timers; nothing is lost.
        let lingers_ns = if until == Nanos::default() {
            let queued = self.ring.queued_count() as u32;
            let _ = self.ring.enter_kernel(queued);
            0
        } else {
            let may_sleep = self.immediate.is_empty() && !self.ring.has_backlog() && self.behind.is_empty();
            let ns = if may_sleep { until.since(self.clock.now()) } else { 0 };
            self.ring.submit_and_wait(ns, several, linger_ns)
        };
        if !self.ring.has_backlog() && self.ring.queued_count() == 0 {
            self.taken.on_submitted(self.turn, has_seen_all);
            self.turn = self.turn.wrapping_add(1);
            self.messages.clear();
            for (fd, unsent) in self.closing.drain(..) {
                if unsent.is_some() {
                    // Sends queued before the close have left by now, as with epoll.
                    let _ = shutdown(&fd, Shutdown::Both);
                }
            }
        }
        self.reaped_at = match &mut self.arrivals {
            Some(arrivals) => arrivals.compare_clocks(has_seen_all, !self.ring.has_more()),
            None => self.clock.now(),
        };
        lingers_ns
    }

    fn gather(&mut self, until: Nanos, next: Nanos) -> bool {
        let is_handed_over = !self.ring.has_backlog() && self.ring.queued_count() == 0 && self.behind.is_empty();
        if !is_handed_over && self.wait(Nanos::default()) {
            return false;
        }
        let has_seen_all = self.immediate.is_empty() && !self.ring.has_completion();
        let may_gather = has_seen_all && self.behind.is_empty() && self.urgent == 0;
        may_gather && self.arrivals.as_mut().is_some_and(|arrivals| arrivals.sleep_and_gather(until, next))
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.give_back();
        while let Some((generation, completion)) = self.immediate.pop() {
            if self.sockets[completion.conn.index()].generation == generation {
                return Some(completion);
            }
        }
        loop {
            let entry = self.ring.next_completion()?;
            if let Some(completion) = self.translate_completion(&entry) {
                return Some(completion);
            }
        }
    }

    fn received_bytes(&mut self) -> &mut [u8] {
        self.received.clone().map_or(&mut [], |(id, place)| self.buffers.bytes(id, place))
    }
}
