//! Common parts of the bare loops: the prebuilt request, blocking connects before the clock starts, and the report.
//!
//! A bare loop is the least a generator can do on this kernel: it sends prebuilt bytes and checks for the end of the
//! head. It has no parser, no statistics, and only fatal errors. `make bench` compares onrush with bare loops; they do
//! not measure servers.

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

/// Arguments of a bare loop: `ADDRESS CONNECTIONS SECONDS [spin|STREAMS]`.
pub struct Arguments {
    /// Address of the target.
    pub address: SocketAddr,
    /// Number of connections, all of which are kept busy.
    pub connections: usize,
    /// Duration of the measurement.
    pub duration: Duration,
    /// True to busy-poll instead of blocking; ignored by loops with a single mode.
    pub spins: bool,
    /// Requests in flight per connection; ignored by loops that have only one.
    pub streams: u32,
}

impl Arguments {
    /// Parses the command line.
    ///
    /// # Errors
    ///
    /// If an argument is missing or invalid.
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

    /// A `GET` request for a path, as bytes.
    pub fn request(&self, path: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).into_bytes()
    }

    /// Opens all connections, one after the other, and blocks until they are established.
    ///
    /// # Errors
    ///
    /// If a connection cannot be established.
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

/// True if these bytes contain the end of a head. A bare loop needs to know nothing else about a response.
pub fn ends_a_head(bytes: &[u8]) -> bool {
    memmem::find(bytes, b"\r\n\r\n").is_some()
}

/// Counts responses until the time is up, and reports them in wrk's format.
pub struct Tally {
    started: Instant,
    duration: Duration,
    /// Number of responses.
    pub completed: u64,
}

impl Tally {
    /// Starts the clock.
    pub fn start(duration: Duration) -> Self {
        Self { started: Instant::now(), duration, completed: 0 }
    }

    /// True if time is left.
    pub fn is_running(&self) -> bool {
        self.started.elapsed() < self.duration
    }

    /// Prints the number of responses and the elapsed time.
    pub fn report(&self) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!("  {} requests in {seconds:.2}s", self.completed);
        println!("Requests/sec: {:.2}", self.completed as f64 / seconds);
    }
}
