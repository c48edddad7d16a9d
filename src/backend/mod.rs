//! The operating system as completions.
//!
//! A backend opens connections, sends and receives, and says afterwards what happened: one [`Completion`] at a time.
//! It knows neither HTTP nor statistics, takes no lock, writes no log, and never decides anything: retries, timeouts
//! and limits are the engine's.
//!
//! # What every backend provides
//!
//! * Connections are named by small numbers that the engine chose ([`ConnId`]) and that it uses again and again. After
//!   [`Backend::close`] nothing of the closed connection is ever reported, also when its number is in use again.
//! * A connection that [`Backend::connect`] was asked for ends in exactly one [`What::Connected`] or [`What::Postponed`].
//!   From a successful one on, everything that arrives is reported until the end of the stream or an error, without being
//!   asked for.
//! * At most one send is under way on a connection; the engine waits until it has been accepted whole.
//! * [`Backend::wait`] starts what was asked for and sleeps until something happened or a moment came;
//!   [`Backend::next`] then gives the completions one by one until it gives none. Received bytes are lent until
//!   the next call.
//! * Time never goes backwards, and [`Completion::at`] is never later than [`Backend::now`]. Of completions that one
//!   [`Backend::gather`] brings, a later one may have an earlier time.

mod alarm;
mod arrival;
mod clock;
pub mod dialer;
pub mod epoll;
pub mod ports;
pub mod sim;
pub mod socket;
pub mod uring;

#[cfg(test)]
mod tests;

pub use clock::{
    Clock, coarse_ns, monotonic_ns, precise_timers, suspended_ns, thread_cpu_ns, thread_system_ns, wall_offset_ns,
};
pub use dialer::Dialer;
pub use epoll::Epoll;
pub use ports::PortRing;
pub use sim::Sim;
pub use uring::Uring;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use onrush_proto::{Nanos, Transmit};
use rustix::io::Errno;

use crate::stats::{Buffers, TcpInfo};

/// Names a connection of one backend: a small number, chosen by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u32);

impl ConnId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The connection.
    pub conn: ConnId,
    /// When it was noticed; of bytes that were gathered, when they arrived.
    pub at: Nanos,
    /// What happened.
    pub what: What,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The connection is there, or will not be.
    Connected(Result<(), Errno>),
    /// No local port was found in the time of one turn: [`Backend::close`] it and ask again to go on looking.
    Postponed,
    /// So many more bytes were accepted of what [`Backend::send`] could not take at once; or the send failed.
    Sent(Result<usize, Errno>),
    /// So many bytes arrived, see [`Backend::received`]; none: the peer will send no more.
    Received(Result<usize, Errno>),
    /// So many bytes arrived and were thrown away unseen, as [`Backend::discard`] allowed.
    Discarded(usize),
}

/// Input and output as completions. The module documentation says what is expected.
pub trait Backend {
    /// The name that reports and `-v` use.
    const NAME: &'static str;

    /// Whether a send leaves only with the next [`Backend::wait`], which then is when it is to be stamped; if not, it
    /// leaves at once.
    const GATHERS: bool;

    /// The time now.
    fn now(&mut self) -> Nanos;

    /// The time at a moment of the system's monotonic clock; now, where time is virtual.
    fn time_at(&mut self, moment: Instant) -> Nanos {
        let _ = moment;
        self.now()
    }

    /// Opens a connection. `conn` must be closed or never used.
    fn connect(&mut self, conn: ConnId, address: SocketAddr);

    /// Goes on with a connection that another backend has [released](Self::release), if it is still as it was: the other side
    /// has neither closed it nor sent anything. `conn` must be closed or never used.
    fn adopt(&mut self, conn: ConnId, fd: OwnedFd) -> bool {
        let _ = (conn, fd);
        false
    }

    /// Sends bytes, and returns how many were accepted at once; the rest, if any, is reported in one or more
    /// [`What::Sent`].
    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize;

    /// Allows the backend to throw the next `n` received bytes of a connection away without looking at them, in place
    /// of an earlier permission. Those it does throw away are reported as [`What::Discarded`].
    fn discard(&mut self, conn: ConnId, n: u64);

    /// Says that the next `n` received bytes of a connection belong to a large body that has to be received: the backend
    /// may take them in larger pieces.
    fn expect(&mut self, conn: ConnId, n: u64) {
        let _ = (conn, n);
    }

    /// Sends bytes on a connection that is about to be closed, if they can leave at once and follow what was sent.
    fn send_last(&mut self, conn: ConnId, bytes: &[u8]);

    /// Closes a connection, with all that is under way on it.
    fn close(&mut self, conn: ConnId);

    /// The number of bytes that the kernel has taken since this was last called, of closed connections too: what
    /// [`Backend::send`] accepted and the kernel never saw is not among them. What it takes of a send that is cut off by
    /// [`Backend::close`] may be known later.
    fn taken(&mut self) -> u64;

    /// Ends every send that is under way, so that [`Backend::taken`] knows what became of it. The run is over: what was
    /// not handed over yet never is, and nothing is reported any more.
    fn stop(&mut self) {}

    /// Lets go of connections on which nothing is under way, so that another backend can [adopt](Self::adopt) them; those on
    /// which something arrives meanwhile stay. The run is over, as for [`Self::stop`], which comes after it.
    fn release(&mut self, conns: &[ConnId]) -> Vec<(ConnId, OwnedFd)> {
        let _ = conns;
        Vec::new()
    }

    /// What the kernel says of a connection, and a number that the next one in its place does not have; `None`: it is not
    /// there, no TCP, or the kernel says nothing.
    fn tcp_info(&self, conn: ConnId) -> Option<(u32, TcpInfo)> {
        let _ = conn;
        None
    }

    /// How large the kernel made the buffers of all connections so far, where it was told how large they are to be.
    fn buffers(&self) -> Buffers {
        Buffers::default()
    }

    /// How many receives were gathered without a timestamp that could be believed since this was last called: they have the
    /// time at which they were noticed.
    fn untimestamped(&mut self) -> u64 {
        0
    }

    /// Starts what was asked for, then sleeps until there are completions, but not past `until`. Returns whether there
    /// may be any.
    fn wait(&mut self, until: Nanos) -> bool;

    /// Sleeps until then whatever arrives meanwhile, if the kernel says of all of it when it arrived and nobody waits for it
    /// to be read; a [`Backend::wait`] that follows brings it. `next` is when the next such sleep is likely to end. Returns
    /// whether it has; if not, only a wait can tell what is to be done.
    fn gather(&mut self, until: Nanos, next: Nanos) -> bool;

    /// Looks for completions of what was handed over, without handing anything over or waiting. Returns whether there may be
    /// any.
    fn reap(&mut self) -> bool {
        self.wait(Nanos::default())
    }

    /// The next completion, if there is one.
    fn next(&mut self) -> Option<Completion>;

    /// The bytes of the [`What::Received`] that [`Backend::next`] gave last. They may be changed where they lie.
    fn received(&mut self) -> &mut [u8];
}

/// The name of the backend that `--io auto` takes on this machine.
pub fn default_name() -> &'static str {
    if Uring::probe().is_ok() { Uring::NAME } else { Epoll::NAME }
}
