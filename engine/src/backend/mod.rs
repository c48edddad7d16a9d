//! The operating system's I/O, as completions.
//!
//! A backend opens connections, sends and receives, and reports events one [`Completion`] at a time. It knows neither
//! HTTP nor statistics, takes no lock, writes no log, and makes no decisions: retries, timeouts and limits are the
//! engine's.
//!
//! # What every backend provides
//!
//! * The engine names connections by small numbers ([`ConnId`]) and reuses them. After [`Backend::close`] no event of
//!   the closed connection is reported, even when its ID is in use again.
//! * Each [`Backend::connect`] ends in exactly one [`What::Connected`] or [`What::Postponed`]. After a successful
//!   connect, everything that arrives is reported, without further calls, until the end of the stream or an error.
//! * At most one send is in flight on a connection; the engine waits until all of it has been accepted.
//! * [`Backend::wait`] starts the queued operations and blocks until an event or a deadline;
//!   [`Backend::next_completion`] then returns the completions one by one. Received bytes are lent until the next call.
//! * Time never goes backwards, and [`Completion::at`] is never later than [`Backend::now`]. Among the completions of
//!   one [`Backend::gather`], a later one may have an earlier time.

mod alarm;
mod arrival;
mod clock;
pub mod dialer;
pub mod epoll;
pub mod memory;
mod poll;
pub mod ports;
pub mod sim;
pub mod socket;
pub mod uring;

#[cfg(test)]
mod tests;

pub use clock::{
    Clock, coarse_ns, monotonic_ns, process_cpu_ns, request_precise_timers, suspended_ns, thread_cpu_ns,
    thread_system_ns, wall_offset_ns,
};
pub use dialer::Dialer;
pub use epoll::Epoll;
pub use poll::Poll;
pub use ports::PortRing;
pub use sim::Sim;
pub use uring::Uring;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use onrush_proto::{Nanos, Transmit};
use rustix::io::Errno;

use onrush_stats::{BufferSizes, TcpInfo};

/// Names a connection within one backend: a small number, chosen by the engine and reused for later connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u32);

impl ConnId {
    /// The ID as an index into a list.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Grows the list to include a connection. Most runs never use as many connections as they may.
fn grow_to_include<T: Default>(sockets: &mut Vec<T>, conn: ConnId) {
    if sockets.len() <= conn.index() {
        sockets.resize_with(conn.index() + 1, T::default);
    }
}

/// An event on a connection, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The connection concerned.
    pub conn: ConnId,
    /// Time at which the event was noticed; for gathered bytes, the time at which they arrived.
    pub at: Nanos,
    /// The event.
    pub what: What,
}

/// An event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The connect succeeded or failed.
    Connected(Result<(), Errno>),
    /// No free local port was found within one turn. To continue the search, [`Backend::close`] the connection and
    /// connect again.
    Postponed,
    /// The kernel accepted this many more bytes of an unfinished [`Backend::send`], or the send failed.
    Sent(Result<usize, Errno>),
    /// This many bytes arrived, see [`Backend::received_bytes`], or the connection failed. Zero: the peer will send no
    /// more.
    Received(Result<usize, Errno>),
    /// This many bytes arrived and were discarded, as [`Backend::discard`] allowed.
    Discarded(usize),
}

/// Input and output as completions. The module documentation has the contract.
pub trait Backend {
    /// The backend's name in reports and with `-v`.
    const NAME: &'static str;

    /// True if sends leave only with the next [`Backend::wait`], so that the engine stamps them then. False: sends
    /// leave at once.
    const GATHERS: bool;

    /// The current time.
    fn now(&mut self) -> Nanos;

    /// Converts a moment of the system's monotonic clock; in virtual time, returns the current time.
    fn time_at(&mut self, moment: Instant) -> Nanos {
        let _ = moment;
        self.now()
    }

    /// Converts a reading of the system's monotonic clock; in virtual time, that clock shows the virtual time.
    fn time_of(&mut self, monotonic_ns: u64) -> Nanos {
        Nanos(monotonic_ns)
    }

    /// Starts to open a connection; the outcome is reported as a completion. `conn` must be closed or never used.
    fn connect(&mut self, conn: ConnId, address: SocketAddr);

    /// Takes over a connection that another backend [released](Self::release), as an open one. Returns false and closes
    /// it if the peer has since closed it or sent something, or if the backend cannot take over connections. `conn`
    /// must be closed or never used.
    fn adopt(&mut self, conn: ConnId, fd: OwnedFd) -> bool {
        let _ = (conn, fd);
        false
    }

    /// Sends bytes and returns the number accepted at once. The rest, if any, is reported in one or more
    /// [`What::Sent`]. Call again only once all bytes have been accepted.
    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize;

    /// Allows the backend to discard the next `n` bytes received on a connection, without obliging it to. Replaces the
    /// previous allowance. Discarded bytes are reported as [`What::Discarded`].
    fn discard(&mut self, conn: ConnId, n: u64);

    /// Announces that the next `n` bytes received on a connection belong to a large body and must not be discarded. The
    /// backend may receive them in larger pieces.
    fn expect_large_body(&mut self, conn: ConnId, n: u64) {
        let _ = (conn, n);
    }

    /// Announces that a connection receives large bodies with other data in between. The backend may receive in larger
    /// pieces from now on.
    fn receive_in_large_pieces(&mut self, conn: ConnId) {
        let _ = conn;
    }

    /// Like [`Backend::wait`], but may wait up to `linger_ns` for `several` completions, so that one wake-up handles
    /// all of them. Returns the part of `linger_ns` in which it could wait for several: zero if it cannot do so at all.
    fn wait_for_several(&mut self, several: u32, linger_ns: u64, until: Nanos) -> u64 {
        let _ = (several, linger_ns);
        self.wait(until);
        0
    }

    /// Sends bytes on a connection that is about to be closed, if they can leave at once and in order; otherwise drops
    /// them. Nothing is reported.
    fn send_last(&mut self, conn: ConnId, bytes: &[u8]);

    /// Ends our side of a connection that is about to be closed and discards unread bytes. Otherwise closing would
    /// reset the connection, and the peer might never read our last bytes.
    fn drain_input(&mut self, conn: ConnId) {
        let _ = conn;
    }

    /// Closes a connection and cancels everything in flight on it. Nothing more is reported about it.
    fn close(&mut self, conn: ConnId);

    /// Number of bytes that the kernel has taken since the last call, including those on connections closed since.
    /// Excludes bytes that [`Backend::send`] accepted but the kernel never saw. Bytes of a send cut off by
    /// [`Backend::close`] may be counted later.
    fn take_sent_count(&mut self) -> u64;

    /// Ends every send in flight, so that [`Backend::take_sent_count`] is final. After the run, queued bytes are never
    /// submitted, and nothing more is reported.
    fn stop(&mut self) {}

    /// Gives up those of these idle connections on which nothing has arrived, so that another backend can
    /// [adopt](Self::adopt) them. Called at the end of the run, before [`Self::stop`].
    fn release(&mut self, conns: &[ConnId]) -> Vec<(ConnId, OwnedFd)> {
        let _ = conns;
        Vec::new()
    }

    /// The kernel's statistics of a connection, and a number that its successor does not share. `None`: the connection
    /// is not open or not TCP, or the kernel has no statistics.
    fn tcp_info(&self, conn: ConnId) -> Option<(u32, TcpInfo)> {
        let _ = conn;
        None
    }

    /// Range of the buffer sizes that the kernel gave the connections so far, if the plan sets or reads them.
    fn buffer_sizes(&self) -> BufferSizes {
        BufferSizes::default()
    }

    /// Number of receives gathered since the last call without a trustworthy timestamp. Their completions have the time
    /// at which they were noticed.
    fn take_untimestamped(&mut self) -> u64 {
        0
    }

    /// Starts the queued operations, then blocks until there are completions, but not past `until`. Returns true if
    /// there may be completions.
    fn wait(&mut self, until: Nanos) -> bool;

    /// Sleeps until `until`, whatever arrives in the meantime, if the kernel timestamps all arrivals and no peer waits
    /// for its data to be read. The arrivals are then reported by the next [`Backend::wait`]. `next` is the probable
    /// end of the next such sleep. Returns true if it slept; otherwise call [`Backend::wait`] instead.
    fn gather(&mut self, until: Nanos, next: Nanos) -> bool;

    /// Collects completions of operations submitted earlier, without submitting more or waiting. Returns true if there
    /// may be completions.
    fn reap(&mut self) -> bool {
        self.wait(Nanos::default())
    }

    /// Takes the next completion; `None`: no more until the next [`Backend::wait`].
    fn next_completion(&mut self) -> Option<Completion>;

    /// The bytes of the last [`What::Received`] that [`Backend::next_completion`] returned. The caller may change them
    /// in place.
    fn received_bytes(&mut self) -> &mut [u8];
}

/// The name of the backend that `--io auto` uses on this machine.
pub fn default_name() -> &'static str {
    if Uring::probe().is_ok() { Uring::NAME } else { Epoll::NAME }
}
