//! The embedded target: a small HTTP/1.1 server whose answers are known to the byte, for demo, tests and benchmarks.
//!
//! It answers well, badly, slowly or not at all, as the path asks ([`help`] lists the paths). Its cost per request is
//! close to that of a bare epoll loop, so that a run against it measures the generator. It never serves files, never
//! logs a request, never keeps anything about a client after the connection ended, and is no server for the public.
//!
//! Reading order: [`args`] what was typed → `listener` the sockets → `worker` one epoll loop per thread → `connection`
//! one client, on a `socket` and with the `desk` of its thread → `request` and `body` what it said, or a `rejection` →
//! `routes` the table → `ask` what an answer can depend on → `answers` what each path gives → `reply`, `answer` and
//! `stream` the form of that → `freeze` when the whole target stops → `capacity` a queue of known capacity → `counters`
//! what `/stats` tells.

pub mod args;

mod answer;
mod answers;
mod ask;
mod body;
mod capacity;
mod connection;
mod counters;
mod desk;
mod freeze;
mod listener;
mod rejection;
mod reply;
mod request;
mod routes;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
mod worker;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

pub use routes::help;

use capacity::Capacity;
use counters::Counters;
use desk::Desk;
use freeze::Freeze;
use worker::Worker;

/// Where to listen and with how many threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address to listen at; port 0 takes a free one.
    pub address: SocketAddr,
    /// How many threads answer, at least 1. Each has its own connections.
    pub threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 8080)), threads: 1 }
    }
}

/// A server inside this process. It answers from [`Server::start`] until it is stopped or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    stop: Arc<OwnedFd>,
    handle: JoinHandle<()>,
}

impl Server {
    /// Binds the address and starts the threads. Connections are accepted when this returns.
    ///
    /// # Errors
    /// The address cannot be had (the text names it and says why), or a thread cannot be started.
    pub fn start(config: &Config) -> io::Result<Self> {
        let (listeners, address) = listener::bind(config)?;
        let counters: Arc<[Counters]> = listeners.iter().map(|_| Counters::default()).collect();
        let (freeze, capacity) = (Arc::new(Freeze::default()), Arc::new(Capacity::default()));
        // Threads that run already are stopped by the drop of `server` when a later one cannot be started.
        let mut server = Self { address, threads: Vec::with_capacity(listeners.len()) };
        for (index, listener) in listeners.into_iter().enumerate() {
            let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
            let desk = Desk::new(Arc::clone(&counters), index, Arc::clone(&freeze), Arc::clone(&capacity));
            let mut worker = Worker::new(listener, Arc::clone(&stop), desk)?;
            let handle = std::thread::Builder::new().name(format!("serve-{index}")).spawn(move || worker.run())?;
            server.threads.push(Thread { stop, handle });
        }
        Ok(server)
    }

    /// The address it listens at, with the real port where the configuration said 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection and waits for the threads to end, as dropping it does.
    pub fn stop(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        for thread in &self.threads {
            // A counter of one never overflows, so this cannot fail.
            let _ = rustix::io::write(&*thread.stop, &1u64.to_ne_bytes());
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed why; there is nothing to add here.
            let _ = thread.handle.join();
        }
    }
}

/// The command: prints where it listens at once, then serves until SIGINT or SIGTERM.
///
/// # Errors
/// The server cannot start, or standard output cannot be written.
pub fn run(config: &Config) -> anyhow::Result<()> {
    let (mut signalled, signal) = UnixStream::pair().context("cannot make a socket pair for signals")?;
    for number in [SIGINT, SIGTERM] {
        let signal = signal.try_clone().context("cannot copy the socket for signals")?;
        signal_hook::low_level::pipe::register(number, signal).context("cannot handle signals")?;
    }
    raise_descriptor_limit();
    let server = Server::start(config)?;
    announce(&server).context("cannot write to standard output")?;
    signalled.read_exact(&mut [0]).context("cannot wait for a signal")?;
    server.stop();
    Ok(())
}

fn announce(server: &Server) -> io::Result<()> {
    let (address, threads) = (server.address(), server.threads.len());
    let plural = if threads == 1 { "" } else { "s" };
    let mut out = io::stdout().lock();
    writeln!(out, "onrush serve: listening on http://{address}/ ({threads} thread{plural})")?;
    out.flush()
}

/// Every connection takes a descriptor: allows as many as this process may have.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Without the raise the server still works, with fewer connections at a time.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
