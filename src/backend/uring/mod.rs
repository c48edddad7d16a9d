//! Completions from the kernel itself: io_uring.
//!
//! Everything asked for while completions are handled goes to the kernel in one call, together with the wait. Received
//! bytes come in buffers that belong to the thread. `sending` says how bytes leave.
//!
//! # Two ways to receive
//!
//! *Small*: one receive stays armed and completes for whatever arrives. *Large*: one receive for the head of an
//! answer, then one that throws the rest away inside the kernel, or receives it in large pieces. The engine's word about
//! the length of a body leads from small to large: the armed receive is cancelled, and when its last completion has come,
//! nothing else reads the socket. An answer that is not large leads back.
//!
//! A connection begins large, and without what pays only where it lives longer than one answer: an armed receive and a
//! place in the kernel's table of sockets.
//!
//! # Kernels
//!
//! Send and receive 5.6 · silent completions 5.17 · buffer rings and `MSG_WAITALL` for sends 5.19 · armed receives and
//! one issuer 6.0 · deferred work 6.1. Anything less, or a filter that forbids it, fails in [`Uring::new`].

mod buffers;
mod names;
mod sending;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use onrush_proto::{Nanos, Transmit};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketAddrAny, shutdown, sockopt};

use super::dialer::Dial;
use super::ports::PairId;
use super::socket::{Delay, Threshold};
use super::{Backend, Clock, Completion, ConnId, Dialer, What};
use buffers::Buffers;
use names::{Operation, name, named};
use sending::Sending;
use taken::Taken;

/// Operations that one call hands over.
const ENTRIES: u32 = 4096;
/// Completions that the kernel may have ready.
const COMPLETIONS: u32 = 16384;
/// The most that one operation throws away.
const DISCARD_MAX: u64 = 1 << 30;
/// So much is thrown away at once where the server sends more slowly than that goes.
const DISCARDED_AT_ONCE: u32 = 256 * 1024;
/// From so many operations on, handing them over takes so long that it is told apart from the wait.
const MANY: usize = 16;
/// `IORING_RECVSEND_POLL_FIRST`: nothing can be there yet, so that the kernel need not look before it waits.
const POLL_FIRST: u16 = 1;

/// How long sends that were cut off may take to end, in nanoseconds. They take microseconds.
const END_NS: u64 = 100_000_000;

/// `IORING_ENTER_GETEVENTS`: completions are wanted.
const ENTER_GETEVENTS: u32 = 1;

/// The io_uring backend of one thread.
pub struct Uring {
    /// Declared, and so dropped, before everything that the kernel reads and writes.
    ring: IoUring,
    dialer: Dialer,
    buffers: Buffers,
    /// Operations beyond [`ENTRIES`]: they follow within the same wait.
    backlog: VecDeque<squeue::Entry>,
    /// Addresses as the kernel reads them, which it does when a connect is handed over.
    addresses: HashMap<SocketAddr, Box<SocketAddrAny>>,
    /// What connections were sending when they were closed: the kernel reads it until the send with that name has ended.
    orphans: HashMap<u64, Transmit>,
    sockets: Vec<Socket>,
    clock: Clock,
    /// When the completions at hand were noticed.
    reaped_at: Nanos,
    /// Whether the kernel can keep sockets in a table of its own, by the number of their connection. It makes that table
    /// no larger than the limit of open files.
    has_table: bool,
    taken: Taken,
    /// Connections that have something to send behind a silent send.
    behind: Vec<ConnId>,
    /// Closed sockets that operations in the queue still name, and what those are to send.
    closing: Vec<(OwnedFd, Option<Transmit>)>,
    /// Counts the waits that handed everything over.
    turn: u32,
    /// Outcomes that were known at once, with the generation they belong to.
    immediate: Vec<(u32, Completion)>,
    /// The buffer of the last receive, and how many bytes are in it.
    received: Option<(u16, usize)>,
    /// The connection whose receive or discard has ended: it goes on when the engine has seen what came.
    resume: Option<(ConnId, Ended)>,
}

/// One connection.
#[derive(Default)]
struct Socket {
    fd: Option<OwnedFd>,
    /// Tells completions of this connection from those of an earlier one with the same number.
    generation: u32,
    /// What was sent last.
    sending: Option<Sending>,
    /// What is to be sent behind it.
    behind: Option<Box<Transmit>>,
    delay: Delay,
    /// The addresses that its local port was chosen for.
    pair: Option<PairId>,
    /// Whether the kernel's table has it.
    in_table: bool,
    /// Whether a connect, receive or discard is under way, which keeps the socket open.
    is_busy: bool,
    /// The turn in which something was last queued.
    queued_in: u32,
    mode: Mode,
    /// How many of the next bytes belong to a large body.
    large: u64,
    /// Whether anybody wants to see those.
    is_wanted: bool,
    threshold: Threshold,
}

/// How a connection receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// One receive stays armed.
    Small,
    /// The armed receive is being cancelled.
    Leaving,
    /// One receive or discard at a time.
    #[default]
    Large,
}

/// A receive that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// It was for the head of an answer, or for all of it.
    Head,
    /// It was for a large body.
    Body,
}

impl Uring {
    /// A backend for the connections `0..connections`. Only the thread that made it can use it.
    ///
    /// # Errors
    ///
    /// When the kernel has no io_uring, forbids it, or lacks one of the features named above.
    pub fn new(connections: u32, clock: Clock, dialer: Dialer) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_cqsize(COMPLETIONS);
        let ring = builder.build(ENTRIES)?;
        let has_table = ring.submitter().register_files_sparse(connections).is_ok();
        let buffers = Buffers::register(&ring.submitter())?;
        // A filter may allow all of that and forbid this.
        ring.submit()?;
        Ok(Self {
            ring,
            dialer,
            buffers,
            backlog: VecDeque::new(),
            addresses: HashMap::new(),
            orphans: HashMap::new(),
            sockets: (0..connections).map(|_| Socket::default()).collect(),
            clock,
            reaped_at: clock.now(),
            has_table,
            taken: Taken::default(),
            behind: Vec::new(),
            closing: Vec::new(),
            turn: 0,
            immediate: Vec::new(),
            received: None,
            resume: None,
        })
    }

    /// Whether this kernel gives a process like this one what [`Uring::new`] needs; if not, why, in plain words.
    ///
    /// # Errors
    ///
    /// The reason.
    pub fn probe() -> Result<(), String> {
        Self::new(1, Clock::start(), Dialer::default()).map(drop).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) if is_switched_off() => {
                "io_uring is switched off here; 'sysctl -w kernel.io_uring_disabled=0' switches it on".to_owned()
            }
            Some(libc::EPERM) => "a filter forbids io_uring, as Docker's seccomp profile does".to_owned(),
            Some(libc::ENOSYS) => "this kernel has no io_uring, or a filter hides it".to_owned(),
            Some(libc::EINVAL) => "this kernel's io_uring is older than 6.1".to_owned(),
            _ => format!("io_uring cannot be set up: {error}"),
        })
    }

    /// Gives a connection its place in the kernel's table of sockets, which spares every operation a look-up.
    fn enter_table(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        if let Some(fd) = socket.fd.as_ref().filter(|_| self.has_table && !socket.in_table) {
            let update = self.ring.submitter().register_files_update(conn.0, &[fd.as_raw_fd()]);
            socket.in_table = update.is_ok();
        }
    }

    /// Makes a connection one that lives longer than one answer.
    fn settle(&mut self, conn: ConnId) {
        self.sockets[conn.index()].mode = Mode::Small;
        self.enter_table(conn);
    }

    /// What names the socket of a connection in an operation.
    fn file(&self, conn: ConnId) -> Fd {
        let socket = &self.sockets[conn.index()];
        let fd = socket.fd.as_ref().filter(|_| !socket.in_table);
        Fd(fd.map_or(conn.0 as i32, |fd| fd.as_raw_fd()))
    }

    /// Queues an operation for the next wait.
    fn push(&mut self, entry: squeue::Entry, conn: ConnId, operation: Operation) {
        let socket = &mut self.sockets[conn.index()];
        socket.queued_in = self.turn;
        let mut entry = entry.user_data(name(conn, socket.generation, operation));
        if socket.in_table && operation != Operation::Cancel {
            entry = entry.flags(squeue::Flags::FIXED_FILE);
        }
        if !self.backlog.is_empty() || !self.queue(&entry) {
            self.backlog.push_back(entry);
        }
    }

    /// Puts an operation into the queue; returns whether there was room.
    fn queue(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: what operations point to outlives them: what sockets send, orphans, addresses, and the buffers.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Hands over queue after queue until what is left fits into the next.
    fn submit_backlog(&mut self) {
        // Short of memory or of room for completions, the kernel takes the rest when the engine has taken those.
        while !self.backlog.is_empty() && self.ring.submit().is_ok() {
            while let Some(entry) = self.backlog.pop_front() {
                if !self.queue(&entry) {
                    self.backlog.push_front(entry);
                    break;
                }
            }
        }
    }

    /// Starts the receive that the connection's mode asks for.
    fn receive(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        socket.is_busy = true;
        let (mode, large, is_wanted) = (socket.mode, socket.large, socket.is_wanted);
        let most = if is_wanted { buffers::LARGE_BYTES as u32 } else { DISCARDED_AT_ONCE };
        let waits = socket.fd.as_ref().is_some_and(|fd| socket.threshold.before_receive(fd, large, most));
        let (fd, nowhere) = (self.file(conn), std::ptr::null_mut());
        match mode {
            Mode::Large if large > 0 && !is_wanted => {
                let (most, waits) = (large.min(DISCARD_MAX) as u32, if waits { POLL_FIRST } else { 0 });
                let entry = opcode::Recv::new(fd, nowhere, most).flags(libc::MSG_TRUNC).ioprio(waits).build();
                self.push(entry, conn, Operation::Discard);
            }
            Mode::Large => {
                let group = if large > 0 { buffers::LARGE } else { buffers::SMALL };
                let entry = opcode::Recv::new(fd, nowhere, 0).buf_group(group).ioprio(POLL_FIRST).build();
                self.push(entry.flags(squeue::Flags::BUFFER_SELECT), conn, Operation::Receive);
            }
            Mode::Small | Mode::Leaving => {
                self.push(opcode::RecvMulti::new(fd, buffers::SMALL).build(), conn, Operation::Armed);
            }
        }
    }

    /// The next completion that the kernel has ready.
    fn take(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// What a completion of the kernel means to the engine; `None`: nothing.
    fn translate(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let (conn, operation) = named(entry.user_data());
        let is_present = name(conn, self.sockets[conn.index()].generation, operation) == entry.user_data();
        let buffer = cqueue::buffer_select(entry.flags());
        let outcome = usize::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
        self.count(entry);
        if !is_present {
            self.orphans.remove(&entry.user_data());
            buffer.into_iter().for_each(|id| self.buffers.give_back(id));
            return None;
        }
        let what = match operation {
            Operation::Connect => self.connected(conn, outcome)?,
            Operation::Send => self.sent(conn, outcome)?,
            Operation::SendSilently => self.refused(conn, outcome)?,
            Operation::Receive => self.took(conn, outcome, buffer, false)?,
            Operation::Armed => self.took(conn, outcome, buffer, cqueue::more(entry.flags()))?,
            Operation::Discard => self.discarded(conn, outcome),
            Operation::Cancel => return None,
        };
        Some(Completion { conn, at: self.reaped_at, what })
    }

    /// A connect has ended, or the wait for one, which says what is ready.
    fn connected(&mut self, conn: ConnId, outcome: Result<usize, Errno>) -> Option<What> {
        let Socket { fd, pair, is_busy, .. } = &mut self.sockets[conn.index()];
        let (fd, pair) = (fd.as_ref()?, *pair);
        let has_failed = |ready: usize| ready & (libc::POLLERR | libc::POLLHUP) as usize != 0;
        let outcome = match outcome {
            Ok(ready) if has_failed(ready) => sockopt::socket_error(fd).and_then(|outcome| outcome),
            outcome => outcome.map(drop),
        };
        let started = match (self.dialer.steps_on(fd, pair, outcome), pair.and_then(|pair| self.dialer.target(pair))) {
            (Ok(true), Some(address)) => self.dialer.start(fd, pair, address).map(|()| true),
            (stepped, _) => stepped,
        };
        *is_busy = started == Ok(true);
        match started {
            Ok(true) => {
                let entry = opcode::PollAdd::new(self.file(conn), libc::POLLOUT as u32).build();
                self.push(entry, conn, Operation::Connect);
                None
            }
            Ok(false) => {
                self.receive(conn);
                Some(What::Connected(Ok(())))
            }
            Err(refusal) => Some(refusal.into()),
        }
    }

    fn took(
        &mut self,
        conn: ConnId,
        outcome: Result<usize, Errno>,
        buffer: Option<u16>,
        is_armed: bool,
    ) -> Option<What> {
        let socket = &mut self.sockets[conn.index()];
        let mode = socket.mode;
        socket.is_busy = is_armed;
        if mode == Mode::Leaving && !is_armed {
            socket.mode = Mode::Large;
        }
        if let Ok(n @ 1..) = outcome {
            // Bytes that came before the cancellation are part of the body.
            socket.large = socket.large.saturating_sub(n as u64);
        }
        if !is_armed {
            let ended = if buffer.is_some_and(Buffers::is_large) { Ended::Body } else { Ended::Head };
            self.resume = Some((conn, ended));
        }
        // The armed receive ended because it was cancelled, or because all buffers were full: it goes on as it must.
        let is_pause = outcome == Err(Errno::NOBUFS) || (outcome == Err(Errno::CANCELED) && mode == Mode::Leaving);
        if is_pause {
            self.resume_receive();
            return None;
        }
        if !matches!(outcome, Ok(1..)) {
            self.resume = None;
        }
        self.received = buffer.map(|id| (id, outcome.unwrap_or(0)));
        Some(What::Received(outcome))
    }

    fn discarded(&mut self, conn: ConnId, outcome: Result<usize, Errno>) -> What {
        let socket = &mut self.sockets[conn.index()];
        socket.is_busy = false;
        match outcome {
            Ok(n @ 1..) => {
                socket.large -= n as u64;
                self.resume = Some((conn, Ended::Body));
                What::Discarded(n)
            }
            end => What::Received(end),
        }
    }

    /// Whether the kernel has something to do or to tell: a look at memory that it shares, and no call.
    fn has_work(&mut self) -> bool {
        let submission = self.ring.submission();
        let has_work = !submission.is_empty() || submission.taskrun() || submission.cq_overflow();
        drop(submission);
        has_work || !self.immediate.is_empty() || !self.ring.completion().is_empty()
    }

    /// Hands over so many queued operations and lets the kernel do its work, without the timer that a wait would cost.
    fn enter(&mut self, queued: u32) -> io::Result<usize> {
        // SAFETY: no argument is passed, and what operations point to outlives them, as in `push`.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, ENTER_GETEVENTS, None) }
    }

    /// Hands over what is queued and sleeps until there is a completion, but no longer than that.
    fn sleep(&mut self, ns: u64) -> io::Result<usize> {
        let timeout = Timespec::from(Duration::from_nanos(ns));
        self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
    }

    /// A large body is coming.
    fn enlarge(&mut self, conn: ConnId, n: u64, is_wanted: bool) {
        let socket = &mut self.sockets[conn.index()];
        (socket.large, socket.is_wanted) = (n, is_wanted);
        if socket.mode != Mode::Small {
            return;
        }
        if self.resume.is_some_and(|(resumed, _)| resumed == conn) {
            socket.mode = Mode::Large;
            return;
        }
        socket.mode = Mode::Leaving;
        let armed = name(conn, socket.generation, Operation::Armed);
        self.push(opcode::AsyncCancel::new(armed).build(), conn, Operation::Cancel);
    }

    /// The engine has seen what was received last.
    fn give_back(&mut self) {
        if let Some((id, _)) = self.received.take() {
            self.buffers.give_back(id);
        }
        self.resume_receive();
    }

    /// Goes on where a receive or discard has ended, now that the engine has had its say.
    fn resume_receive(&mut self) {
        let Some((conn, ended)) = self.resume.take() else { return };
        let socket = &mut self.sockets[conn.index()];
        if ended == Ended::Head && socket.mode == Mode::Large && socket.large == 0 {
            // This answer was not large.
            self.settle(conn);
        }
        if self.sockets[conn.index()].fd.is_some() {
            self.receive(conn);
        }
    }
}

impl Backend for Uring {
    const NAME: &'static str = "uring";
    const GATHERS: bool = true;

    fn now(&mut self) -> Nanos {
        self.clock.now()
    }

    fn connect(&mut self, conn: ConnId, address: SocketAddr) {
        let created = self.dialer.create(address);
        let socket = &mut self.sockets[conn.index()];
        *socket = Socket { generation: socket.generation.wrapping_add(1), ..Socket::default() };
        match created {
            Ok(Dial { fd, pair }) => {
                (socket.fd, socket.pair, socket.is_busy) = (Some(fd), pair, true);
                let address =
                    self.addresses.entry(address).or_insert_with(|| Box::new(self.dialer.destination(address)));
                let (bytes, length) = (address.as_ptr().cast(), address.addr_len());
                self.push(opcode::Connect::new(self.file(conn), bytes, length).build(), conn, Operation::Connect);
            }
            Err(errno) => {
                let completion = Completion { conn, at: self.clock.now(), what: What::Connected(Err(errno)) };
                self.immediate.push((socket.generation, completion));
            }
        }
    }

    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        self.start_send(conn, bytes)
    }

    fn discard(&mut self, conn: ConnId, n: u64) {
        self.enlarge(conn, n, !self.dialer.is_tcp());
    }

    fn expect(&mut self, conn: ConnId, n: u64) {
        self.enlarge(conn, n, true);
    }

    fn send_last(&mut self, conn: ConnId, bytes: &[u8]) {
        self.send_now(conn, bytes);
    }

    fn close(&mut self, conn: ConnId) {
        let is_sending = self.sockets[conn.index()].sending.as_ref().is_some_and(Sending::may_last);
        let unsent = self.abandon_send(conn);
        let socket = &mut self.sockets[conn.index()];
        socket.generation = socket.generation.wrapping_add(1);
        self.resume.take_if(|(resumed, _)| *resumed == conn);
        let Some(fd) = socket.fd.take() else { return };
        if unsent.is_none() && (socket.in_table || socket.is_busy || is_sending) {
            // The table holds the socket until its place is taken again, and so does what is under way; this ends it now.
            let _ = shutdown(&fd, Shutdown::Both);
        }
        if socket.queued_in == self.turn {
            // Its number must not name another socket before the queue is handed over, and its bytes must be there.
            self.closing.push((fd, unsent));
        }
    }

    fn taken(&mut self) -> u64 {
        self.taken.take()
    }

    fn stop(&mut self) {
        let is_sending = |socket: &&Socket| socket.sending.as_ref().is_some_and(Sending::may_last);
        for fd in self.sockets.iter().filter(is_sending).filter_map(|socket| socket.fd.as_ref()) {
            let _ = shutdown(fd, Shutdown::Both);
        }
        let end_at = self.clock.now() + END_NS;
        loop {
            // The kernel lets go of them now, and takes nothing of what is queued.
            let _ = self.enter(0);
            while let Some(entry) = self.take() {
                self.count(&entry);
            }
            if self.taken.is_settled() || self.clock.now() >= end_at {
                return;
            }
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn reap(&mut self) -> bool {
        // An error brings nothing new.
        let _ = self.enter(0);
        !self.ring.completion().is_empty()
    }

    fn wait(&mut self, until: Nanos) -> bool {
        let has_seen_all = self.ring.completion().is_empty();
        self.dialer.begin_turn();
        self.give_back();
        self.follow_up();
        self.submit_backlog();
        if until == Nanos::default() && !self.has_work() {
            return false;
        }
        if self.ring.submission().len() >= MANY {
            // What cannot be handed over now is with the wait.
            let _ = self.ring.submit();
        }
        // Out of time or interrupted: the engine looks at its timers, and nothing is lost.
        let _ = if until == Nanos::default() {
            let queued = self.ring.submission().len() as u32;
            self.enter(queued)
        } else {
            let may_sleep = self.immediate.is_empty() && self.backlog.is_empty() && self.behind.is_empty();
            self.sleep(if may_sleep { until.since(self.clock.now()) } else { 0 })
        };
        if self.backlog.is_empty() && self.ring.submission().is_empty() {
            self.taken.handed_over(self.turn, has_seen_all);
            self.turn = self.turn.wrapping_add(1);
            for (fd, unsent) in self.closing.drain(..) {
                if unsent.is_some() {
                    // What was asked for before the close has left, as it does on epoll.
                    let _ = shutdown(&fd, Shutdown::Both);
                }
            }
        }
        self.reaped_at = self.clock.now();
        !self.immediate.is_empty() || !self.ring.completion().is_empty()
    }

    fn next(&mut self) -> Option<Completion> {
        self.give_back();
        while let Some((generation, completion)) = self.immediate.pop() {
            if self.sockets[completion.conn.index()].generation == generation {
                return Some(completion);
            }
        }
        loop {
            let entry = self.take()?;
            if let Some(completion) = self.translate(&entry) {
                return Some(completion);
            }
        }
    }

    fn received(&mut self) -> &mut [u8] {
        self.received.map_or(&mut [], |(id, n)| self.buffers.bytes(id, n))
    }
}

/// Whether the administrator has switched io_uring off for this process.
fn is_switched_off() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|value| value.trim() != "0")
}
