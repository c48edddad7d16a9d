//! Shared by the bare loops: the prebuilt request, blocking connects before the clock starts, and the report.
//!
//! A bare loop is the least a generator can do on this kernel: send prebuilt bytes, check for the end of the head; no
//! parser, no statistics, no errors but fatal ones. `make bench` compares onrush with it; it is no tool for measuring
//! servers.

mod buffers;
mod ring;

use buffers::ProvidedBuffers;
pub use ring::Ring;

use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::net::{AddressFamily, SocketType, connect, ipproto, socket, sockopt};

/// The arguments of a bare loop: `ADDRESS CONNECTIONS SECONDS [spin|STREAMS]`.
pub struct Arguments {
    /// The target.
    pub address: SocketAddr,
    /// How many connections are kept busy.
    pub connections: usize,
    /// How long.
    pub duration: Duration,
    /// True to busy-poll, if it can do both.
    pub spins: bool,
    /// How many requests are in flight on each connection, if it can have several.
    pub streams: u32,
}

impl Arguments {
    /// Reads them from the command line.
    ///
    /// # Errors
    ///
    /// When one is missing or cannot be read.
    pub fn read() -> io::Result<Self> {
        let words: Vec<String> = env::args().skip(1).collect();
        let [address, connections, seconds, option @ ..] = &words[..] else { return Err(usage()) };
        let (spins, streams) = match option {
            [] => (false, 1),
            [word] if word == "spin" => (true, 1),
            [streams] => (false, streams.parse().map_err(|_| usage())?),
            _ => return Err(usage()),
        };
        Ok(Self {
            address: address.parse().map_err(|_| usage())?,
            connections: connections.parse().map_err(|_| usage())?,
            duration: Duration::from_secs_f64(seconds.parse().map_err(|_| usage())?),
            spins,
            streams,
        })
    }

    /// The bytes of the request, for a path.
    pub fn request(&self, path: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).into_bytes()
    }

    /// Opens all connections.
    ///
    /// # Errors
    ///
    /// When one of them cannot be established.
    pub fn open(&self) -> io::Result<Vec<OwnedFd>> {
        (0..self.connections).map(|_| open(self.address)).collect()
    }
}

fn usage() -> io::Error {
    io::Error::other("usage: ADDRESS CONNECTIONS SECONDS [spin|STREAMS]")
}

fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))?;
    connect(&fd, &address)?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    Ok(fd)
}

/// True if a head ends in these bytes: all that a bare loop needs to know about a response.
pub fn ends_a_head(bytes: &[u8]) -> bool {
    memmem::find(bytes, b"\r\n\r\n").is_some()
}

/// Counts responses until the time is up, and reports them in wrk's format.
pub struct Tally {
    started: Instant,
    duration: Duration,
    /// How many responses arrived.
    pub completed: u64,
}

impl Tally {
    /// Starts the clock.
    pub fn start(duration: Duration) -> Self {
        Self { started: Instant::now(), duration, completed: 0 }
    }

    /// True if there is time left.
    pub fn is_running(&self) -> bool {
        self.started.elapsed() < self.duration
    }

    /// Prints how many responses arrived, and in how long.
    pub fn report(&self) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!("  {} requests in {seconds:.2}s", self.completed);
        println!("Requests/sec: {:.2}", self.completed as f64 / seconds);
    }
}
