//! The embedded target: a small HTTP server with byte-exact responses, for demos, tests and benchmarks.
//!
//! The target responds well, badly, slowly or not at all, depending on the path ([`describe_paths`] lists the paths). The cost of
//! an HTTP/1.1 request is close to that of a bare epoll loop, so that a run measures the generator. The server never
//! serves files, never logs a request, keeps nothing about a client after its connection, and is not meant for the
//! public internet.
//!
//! Reading order:
//!
//! - Start: `address` and `listener` hold the sockets, `tls` the encryption, `worker` an epoll loop per thread.
//! - Connection: `connection` is one client on a `socket`, using the `resources` of its thread, in `http1` or `http2`;
//!   `turn` is the result of a turn, `linger` the end of a connection.
//! - Request: `request` and `body`, or a `rejection`. `routes` is the table of paths, `ask` the input of a response,
//!   `responses` the response of each path. `reply`, `response` and `stream` are the forms of a response.
//! - Capacity: `freeze` stops the whole target, `capacity` is a queue of known capacity, `service` draws service times,
//!   `places` and `claim` limit concurrent requests, and `inbox` wakes the next connection to get a place.
//! - `counters` are the counts behind `/stats`.

#![forbid(unsafe_code)]

mod address;
mod ask;
mod body;
mod capacity;
mod claim;
mod connection;
mod counters;
mod freeze;
mod http1;
mod http2;
mod inbox;
mod linger;
mod listener;
mod places;
mod rejection;
mod reply;
mod request;
mod resources;
mod response;
mod responses;
mod routes;
mod sent;
mod service;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod turn;
mod worker;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

pub use address::{Address, parse_address};
use onrush_text::error_reason;
pub use routes::describe_paths;

use resources::{Common, Resources};
use tls::TlsSettings;
use worker::ServeWorker;

/// Options: a [`ServeConfig`] before the address is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// The address to listen on, as typed.
    pub address: Address,
    /// Number of threads, each with its own connections.
    pub threads: usize,
    /// True to serve with TLS.
    pub tls: bool,
}

/// Addresses to listen on, number of threads, and TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// The address to listen on; port 0 picks a free port.
    pub address: SocketAddr,
    /// Number of threads, at least 1. Each has its own connections.
    pub threads: usize,
    /// True for TLS, with a certificate generated at the start.
    pub tls: bool,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 8080)), threads: 1, tls: false }
    }
}

/// A server inside this process. It runs from [`EmbeddedServer::start`] until stopped or dropped.
#[derive(Debug)]
pub struct EmbeddedServer {
    address: SocketAddr,
    tls: bool,
    threads: Vec<ServeThread>,
}

#[derive(Debug)]
struct ServeThread {
    stop: Arc<OwnedFd>,
    handle: JoinHandle<()>,
}

impl EmbeddedServer {
    /// Binds the address and starts the threads, which accept connections from then on.
    ///
    /// # Errors
    /// Fails if the address cannot be used (the message names it and gives the reason), a certificate cannot be
    /// generated, or a thread cannot be started.
    pub fn start(config: &ServeConfig) -> io::Result<Self> {
        let (listeners, address) = listener::bind_listeners(config)?;
        let tls = config.tls.then(|| TlsSettings::new(address)).transpose()?;
        let common = Arc::new(Common::new(listeners.len(), tls));
        // If a later thread cannot be started, dropping `server` stops the running ones.
        let mut server = Self { address, tls: config.tls, threads: Vec::with_capacity(listeners.len()) };
        for (index, listener) in listeners.into_iter().enumerate() {
            let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            let stop = Arc::new(stop.map_err(|errno| setup_error(errno.into()))?);
            let resources = Resources::new(Arc::clone(&common), index).map_err(setup_error)?;
            let mut worker = ServeWorker::new(listener, Arc::clone(&stop), resources).map_err(setup_error)?;
            let handle = std::thread::Builder::new().name(format!("serve-{index}")).spawn(move || worker.run_loop());
            server.threads.push(ServeThread { stop, handle: handle.map_err(|error| thread_error(&error))? });
        }
        Ok(server)
    }

    /// The listening address, with the actual port if the configured port was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections and joins the threads, as dropping the server does.
    pub fn stop(self) {}
}

/// The error for a thread that cannot be set up.
fn setup_error(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot set up a thread: {}", describe_error(error)))
}

/// The system's words for an error, with a remedy if the process has run out of descriptors.
fn describe_error(error: io::Error) -> String {
    let remedy = if Errno::from_io_error(&error) == Some(Errno::MFILE) { MORE_FILES } else { "" };
    format!("{}{remedy}", error_reason(&error))
}

/// The remedy if the process has run out of descriptors.
const MORE_FILES: &str = "; raise the limit on open files with 'ulimit -n', or use fewer --threads";

/// The error for a thread that cannot be created.
fn thread_error(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot create a thread for connections: {}", error_reason(error)))
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        for thread in &self.threads {
            // A counter of 1 cannot overflow, so this cannot fail.
            let _ = rustix::io::write(&*thread.stop, &1u64.to_ne_bytes());
        }
        for thread in self.threads.drain(..) {
            // A panicked thread has already printed the reason.
            let _ = thread.handle.join();
        }
    }
}

/// Runs the command: prints the address, then serves until SIGINT or SIGTERM.
///
/// # Errors
/// Fails if the address cannot be resolved, the server cannot start, or standard output cannot be written.
pub fn run(asked: &ServeOptions) -> anyhow::Result<()> {
    let config = ServeConfig { address: asked.address.resolve()?, threads: asked.threads, tls: asked.tls };
    let (mut signalled, signal) = UnixStream::pair().context("cannot make a socket pair for signals")?;
    for number in [SIGINT, SIGTERM] {
        let signal = signal.try_clone().context("cannot copy the socket for signals")?;
        signal_hook::low_level::pipe::register(number, signal).context("cannot handle signals")?;
    }
    // Distinguishes the server from a generator of the same name in reports and process lists.
    let _ = rustix::thread::set_name(c"onrush serve");
    raise_descriptor_limit();
    let server = EmbeddedServer::start(&config)?;
    announce_address(&server).context("cannot write to standard output")?;
    signalled.read_exact(&mut [0]).context("cannot wait for a signal")?;
    server.stop();
    Ok(())
}

fn announce_address(server: &EmbeddedServer) -> io::Result<()> {
    let address = server.address();
    let threads = server.threads.len();
    let scheme = if server.tls { "https" } else { "http" };
    let plural = if threads == 1 { "" } else { "s" };
    let mut out = io::stdout().lock();
    writeln!(out, "onrush serve: listening on {scheme}://{address}/ ({threads} thread{plural})")?;
    out.flush()
}

/// Raises the open-file limit to the maximum allowed, because every connection needs a descriptor.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the server still works with fewer simultaneous connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
