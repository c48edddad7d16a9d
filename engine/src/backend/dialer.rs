//! Creates sockets and connects them, from the planned addresses and ports.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, connect, sockopt};

use onrush_plan::connect::SourceAddresses;
use onrush_plan::{ConnectOptions, SocketOptions};
use onrush_stats::BufferSizes;

use super::ports::{Advice, Chooser, PairId};
use super::socket::{apply_options, bind_to_source, family, is_quiet, open, read_sizes};
use super::{What, arrival};

/// Makes sockets with the plan's source addresses and options, and connects them.
#[derive(Clone, Debug, Default)]
pub struct Dialer {
    /// The Unix socket that all connections use, instead of an address.
    unix: Option<SocketAddrUnix>,
    sources: Option<SourceAddresses>,
    /// Counts connections, which use the source addresses in turn.
    next: usize,
    /// Chooses local ports; `None`: the kernel does.
    ports: Option<Chooser>,
    timestamps: bool,
    options: SocketOptions,
    /// The buffer sizes set by the kernel.
    buffers: BufferSizes,
}

/// An unconnected socket, ready to be connected.
#[derive(Debug)]
pub struct Dial {
    /// The socket.
    pub fd: OwnedFd,
    /// The addresses for which the local port was chosen; `None`: the kernel chooses.
    pub pair: Option<PairId>,
}

impl From<DialError> for What {
    fn from(refusal: DialError) -> Self {
        match refusal {
            DialError::Failed(errno) => Self::Connected(Err(errno)),
            DialError::Postponed => Self::Postponed,
        }
    }
}

/// The reason why a connect did not start, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialError {
    /// The system's error.
    Failed(Errno),
    /// All local ports that could be tried in this turn of the loop are taken; others may be free.
    Postponed,
}

impl Dialer {
    /// A dialer; `first_connection` is the run-wide number of its first connection.
    ///
    /// # Errors
    ///
    /// If the path of a Unix socket is too long.
    pub fn new(connect: &ConnectOptions, first_connection: usize) -> Result<Self, Errno> {
        let unix = connect.unix.as_ref().map(SocketAddrUnix::new).transpose()?;
        let options = connect.socket.clone();
        Ok(Self { unix, sources: connect.sources, next: first_connection, options, ..Self::default() })
    }

    /// Sets the chooser of local ports; `None`: the kernel chooses. Without effect for Unix sockets.
    #[must_use]
    pub fn with_ports(self, ports: Option<Chooser>) -> Self {
        // A Unix socket has no port.
        Self { ports: ports.filter(|_| self.unix.is_none()), ..self }
    }

    /// Switches kernel receive timestamps on or off for sockets created from now on. Without effect for Unix sockets.
    #[must_use]
    pub fn with_timestamps(self, timestamps: bool) -> Self {
        // The kernel timestamps only packets from a network.
        Self { timestamps: timestamps && self.is_tcp(), ..self }
    }

    /// True if the kernel timestamps received bytes.
    pub fn has_timestamps(&self) -> bool {
        self.timestamps
    }

    /// Initial sizes of the sockets' buffers, if the plan sets or reads them. If the kernel may grow the buffers, the
    /// current sizes of open sockets count as well.
    pub fn buffer_sizes<'a>(&self, open: impl Iterator<Item = &'a OwnedFd>) -> BufferSizes {
        let mut buffers = self.buffers;
        if self.options.reads_sizes {
            // A socket that reports no size adds nothing.
            open.for_each(|fd| _ = read_sizes(fd, &self.options, &mut buffers));
        }
        buffers
    }

    /// Begins a turn of the loop. Ports may be tried again.
    pub fn begin_turn(&mut self) {
        self.ports.iter_mut().for_each(Chooser::begin_turn);
    }

    /// True if connections are TCP. Only TCP can discard received bytes inside the kernel and has receive timestamps.
    pub fn is_tcp(&self) -> bool {
        self.unix.is_none()
    }

    /// The actual destination of a connection to this address: the plan's Unix socket, if there is one.
    pub fn destination(&self, address: SocketAddr) -> SocketAddrAny {
        self.unix.as_ref().map_or_else(|| address.as_any(), SocketAddrArg::as_any)
    }

    /// Creates a socket for a connection to this address, with the plan's options, source address and, if chosen here,
    /// local port.
    pub fn create_socket(&mut self, address: SocketAddr) -> Result<Dial, Errno> {
        if self.unix.is_some() {
            let fd = open(AddressFamily::UNIX)?;
            apply_options(&fd, &self.options, &mut self.buffers)?;
            return Ok(Dial { fd, pair: None });
        }
        let fd = open(family(address.ip()))?;
        apply_options(&fd, &self.options, &mut self.buffers)?;
        if self.timestamps {
            arrival::enable_timestamps(&fd);
        }
        let source = self.sources.map(|sources| sources.of_connection(self.next));
        if let Some(source) = source {
            bind_to_source(&fd, source)?;
            self.next = self.next.wrapping_add(1);
        }
        let pair = self.ports.as_mut().map(|ports| {
            let pair = ports.pair_id(source, address);
            ports.assign_next(&fd, pair);
            pair
        });
        Ok(Dial { fd, pair })
    }

    /// Takes over another dialer's connection. Of the options, only timestamps are applied. Returns true if the
    /// connection is still open and nothing has arrived; otherwise the caller drops it.
    pub fn adopt(&mut self, fd: &OwnedFd) -> bool {
        if self.timestamps {
            arrival::enable_timestamps(fd);
        }
        is_quiet(fd) && read_sizes(fd, &self.options, &mut self.buffers).is_ok()
    }

    /// Starts a connection, stepping over local ports that are taken. After `Ok`, the connect may still fail: it has
    /// ended at the first readiness event, and the socket's error says how.
    pub fn dial(&mut self, address: SocketAddr) -> Result<OwnedFd, DialError> {
        let Dial { fd, pair } = self.create_socket(address).map_err(DialError::Failed)?;
        self.start_connect(&fd, pair, address)?;
        Ok(fd)
    }

    /// Starts to connect a socket from [`Self::create_socket`]. If we choose its local port, steps over taken ones.
    pub fn start_connect(&mut self, fd: &OwnedFd, pair: Option<PairId>, address: SocketAddr) -> Result<(), DialError> {
        let destination = self.destination(address);
        loop {
            let started = match connect(fd, &destination) {
                Err(Errno::INPROGRESS) => Ok(()),
                outcome => outcome,
            };
            if !self.try_next_port(fd, pair, started)? {
                return Ok(());
            }
        }
    }

    /// Checks the outcome of a connect. `Ok(true)`: the local port is taken, and the socket has been given the next one
    /// to try. `Ok(false)`: the attempt has not failed.
    pub fn try_next_port(
        &mut self,
        fd: &OwnedFd,
        pair: Option<PairId>,
        outcome: Result<(), Errno>,
    ) -> Result<bool, DialError> {
        let done = outcome.map(|()| false).map_err(DialError::Failed);
        let (Some(ports), Some(pair)) = (&mut self.ports, pair) else { return done };
        if !matches!(outcome, Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)) {
            ports.record_free_port(pair);
            return done;
        }
        match ports.record_taken_port(pair) {
            Advice::StepOn => ports.assign_next(fd, pair),
            Advice::Later => return Err(DialError::Postponed),
            Advice::Exhausted => return Err(DialError::Failed(Errno::ADDRNOTAVAIL)),
        }
        Ok(true)
    }

    /// The target of a pair of addresses; `None`: the kernel chooses ports.
    pub fn target(&self, pair: PairId) -> Option<SocketAddr> {
        Some(self.ports.as_ref()?.target(pair))
    }
}

/// Connects and closes the connection again, blocking for up to `patience`. Calls `is_asked` ten times a second and
/// ends early if it returns true.
///
/// # Errors
///
/// The system's; [`Errno::TIMEDOUT`] if there was no reply, [`Errno::INTR`] if it ended early.
pub fn try_connect(
    dialer: &mut Dialer,
    address: SocketAddr,
    patience: Duration,
    is_asked: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let fd = match dialer.dial(address) {
        Ok(fd) => fd,
        Err(DialError::Failed(errno)) => return Err(errno),
        // Cannot happen while the kernel chooses ports.
        Err(DialError::Postponed) => return Err(Errno::ADDRNOTAVAIL),
    };
    let deadline = Instant::now() + patience;
    let slice = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    loop {
        let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
        match poll(&mut fds, Some(&slice)) {
            Err(Errno::INTR) | Ok(0) => {}
            Err(errno) => return Err(errno),
            Ok(_) => return sockopt::socket_error(&fd)?,
        }
        if is_asked() {
            return Err(Errno::INTR);
        }
        if Instant::now() >= deadline {
            return Err(Errno::TIMEDOUT);
        }
    }
}
