//! The coordinator's sockets and their thread.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::token::{Role, Token};
use onrush_text::error_reason;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use thiserror::Error;

use super::channel::{Channel, CoordinatorCertificate};
use super::coordinator::{
    ConnectionAction, Coordinator, CoordinatorEvent, CoordinatorRequest, CoordinatorRules, PeerId,
};
use super::message::{Hello, JoinRefusal, PROVEN_MAX, UNPROVEN_MAX, VERSION, Welcome, WorkerMessage};
use crate::run::{self, NotStarted, host, nanos};

/// Time allowed for a peer to prove that it knows the secret, and for a refused peer to hang up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time allowed for dismissed workers to hang up.
const FAREWELL: Duration = Duration::from_secs(1);
/// Maximum time between two checks of the connections.
const LOOK: Duration = Duration::from_millis(50);
/// Pause after a failure to accept a connection.
const NAP: Duration = Duration::from_millis(5);
/// Number of unproven connections allowed, in addition to two per machine.
const STRANGERS: usize = 16;
/// Maximum number of descriptors that a coordinator needs in addition to its connections.
const DESCRIPTORS: usize = 48;
const REFUSALS: u32 = 20;
/// Maximum number of messages read from one worker before the others get their turn.
const MESSAGES: usize = 64;

/// The coordinator cannot listen on its address.
#[derive(Debug, Error)]
#[error("--coordinate {address}: {reason}{remedy}")]
pub struct NoAddress {
    address: SocketAddr,
    reason: String,
    remedy: &'static str,
}

/// Handle to the coordinator's thread. Dropping it dismisses the workers, and blocks for up to a second until they have
/// hung up; the thread ends soon after.
pub struct CoordinatorServer {
    /// `None` once there are no more requests.
    asks: Option<Sender<CoordinatorRequest>>,
    told: Receiver<CoordinatorEvent>,
    waker: Arc<OwnedFd>,
    /// Origin of the coordinator's clock.
    origin: Instant,
    /// The listening address, with the actual port.
    pub address: SocketAddr,
}

impl CoordinatorServer {
    /// Listens and starts to accept workers.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be listened on, the thread cannot be created, or the open-file limit is too low.
    pub fn open(address: SocketAddr, token: Token, rules: CoordinatorRules) -> anyhow::Result<Self> {
        let no_address = |error: io::Error| NoAddress {
            address,
            remedy: match error.kind() {
                io::ErrorKind::AddrInUse => "; another coordinator may be using it",
                io::ErrorKind::AddrNotAvailable => "; 'ip address' lists this machine's addresses",
                _ => "",
            },
            reason: error_reason(&error),
        };
        let needed = (rules.max_peers() + DESCRIPTORS) as u64;
        if let Some(limit) = host::raise_descriptor_limit_to(needed) {
            let (machines, raise) = (rules.machines, host::open_files_command(needed));
            let words = format!(
                "--machines {machines}: the coordinator needs {needed} open files, but the limit is {limit}; {raise}"
            );
            return Err(NotStarted::Machines(words).into());
        }
        let listener =
            TcpListener::bind(address).or_else(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
                // A machine without IPv6 has only IPv4 addresses.
                Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) if address.ip() == Ipv6Addr::UNSPECIFIED => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
                }
                _ => Err(error),
            });
        let listener = listener.map_err(no_address)?;
        listener.set_nonblocking(true).map_err(no_address)?;
        let address = listener.local_addr().map_err(no_address)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (asks, asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let origin = Instant::now();
        let carrier = CoordinatorThread {
            listener,
            waker: Arc::clone(&waker),
            asked,
            tell,
            origin,
            identity: CoordinatorCertificate::new()?,
            token,
            rules,
            coordinator: Coordinator::new(rules),
            peers: BTreeMap::new(),
            next: 0,
            refusals: 0,
        };
        run::spawn_detached("coordinator", move || carrier.run_connections())?;
        Ok(Self { asks: Some(asks), told, waker, origin, address })
    }

    /// Converts a moment to the coordinator's time.
    pub fn to_coordinator_time(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.origin)
    }

    /// Sends a request to the coordinator, whose events are the answer.
    pub fn send_request(&self, ask: CoordinatorRequest) {
        // The thread ends only when this sender is dropped.
        let _ = self.asks.as_ref().map(|asks| asks.send(ask));
        let _ = write(&*self.waker, &1_u64.to_ne_bytes());
    }

    /// The next event; waits up to `patience` for one.
    pub fn next_event(&self, patience: Duration) -> Option<CoordinatorEvent> {
        match self.told.recv_timeout(patience) {
            Ok(told) => Some(told),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(patience);
                None
            }
        }
    }
}

impl Drop for CoordinatorServer {
    fn drop(&mut self) {
        self.send_request(CoordinatorRequest::Dismiss);
        self.asks = None;
        let _ = write(&*self.waker, &1_u64.to_ne_bytes());
        // Workers should be told before the process ends. The thread ends once they have been.
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL && !matches!(self.told.recv_timeout(LOOK), Err(RecvTimeoutError::Disconnected))
        {
        }
    }
}

struct PeerConnection {
    channel: Channel,
    from: SocketAddr,
    since: Duration,
    state: PeerState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerState {
    /// Has not proved that it knows the secret.
    Unproven,
    /// Takes part in the run.
    Proven,
    /// Was refused or dismissed; dropped once the peer hangs up.
    Closing,
}

impl CoordinatorRules {
    /// Maximum number of simultaneous connections.
    fn max_peers(&self) -> usize {
        2 * self.machines as usize + STRANGERS
    }
}

struct CoordinatorThread {
    listener: TcpListener,
    waker: Arc<OwnedFd>,
    asked: Receiver<CoordinatorRequest>,
    tell: Sender<CoordinatorEvent>,
    origin: Instant,
    identity: CoordinatorCertificate,
    token: Token,
    rules: CoordinatorRules,
    coordinator: Coordinator,
    peers: BTreeMap<PeerId, PeerConnection>,
    next: PeerId,
    refusals: u32,
}

impl CoordinatorThread {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Runs the connections until there are no more requests and all workers have been told.
    fn run_connections(mut self) {
        let mut is_over = false;
        while !(is_over && self.peers.is_empty()) {
            let ready = self.wait_for_events();
            let now = self.now();
            self.coordinator.detect_standstill(now);
            loop {
                match self.asked.try_recv() {
                    Ok(ask) => self.coordinator.handle_request(ask, now),
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => {
                        if !is_over {
                            is_over = true;
                            self.execute_actions();
                            self.close_peers(now);
                        }
                        break;
                    }
                }
            }
            self.accept_peers(now);
            self.execute_actions();
            self.pump_connections(ready);
            self.coordinator.on_tick(now);
            self.execute_actions();
            for told in self.coordinator.told.drain(..) {
                // At the end, nobody receives the events any more.
                let _ = self.tell.send(told);
            }
        }
    }

    /// Waits for something to do. Returns the connections that are ready.
    fn wait_for_events(&self) -> Vec<PeerId> {
        let has_room = self.peers.len() < self.rules.max_peers() || self.oldest_stranger().is_some();
        let mut fds = vec![PollFd::new(&*self.waker, PollFlags::IN)];
        if has_room {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        for conn in self.peers.values() {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, conn.channel.wants_read());
            wanted.set(PollFlags::OUT, conn.channel.wants_write());
            fds.push(PollFd::from_borrowed_fd(conn.channel.as_fd(), wanted));
        }
        let is_behind = self.peers.values().any(|conn| conn.channel.has_message());
        let patience = Timespec::try_from(if is_behind { Duration::ZERO } else { LOOK }).expect("it is short");
        // A signal only causes an early check.
        let _ = poll(&mut fds, Some(&patience));
        let _ = read(&*self.waker, &mut [0_u8; 8]);
        let of_peers = &fds[fds.len() - self.peers.len()..];
        let ready = self.peers.keys().zip(of_peers).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(peer, _)| *peer).collect()
    }

    /// The oldest unproven connection.
    fn oldest_stranger(&self) -> Option<PeerId> {
        let mut strangers = self.peers.iter().filter(|(_, conn)| conn.state == PeerState::Unproven);
        strangers.next().map(|(peer, _)| *peer)
    }

    fn accept_peers(&mut self, now: Duration) {
        // Silent strangers must not keep workers out, and a crowd of them must not keep this thread from serving the
        // workers.
        for _ in 0..self.rules.max_peers() {
            let is_full = self.peers.len() >= self.rules.max_peers();
            let oldest = self.oldest_stranger().filter(|_| is_full);
            if is_full && oldest.is_none() {
                return;
            }
            let (socket, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Retry after a pause: descriptors may be exhausted for a long time.
                Err(_) => return thread::sleep(NAP),
            };
            if let Some(oldest) = oldest {
                self.peers.remove(&oldest);
                self.coordinator.strangers += 1;
            }
            let Ok(channel) = Channel::to_worker(socket, &self.identity, UNPROVEN_MAX) else { continue };
            self.peers.insert(self.next, PeerConnection { channel, from, since: now, state: PeerState::Unproven });
            self.next += 1;
        }
    }

    fn execute_actions(&mut self) {
        while let Some(act) = self.coordinator.acts.pop_front() {
            match act {
                ConnectionAction::Send(peer, order) => {
                    if let Some(conn) = self.peers.get_mut(&peer) {
                        conn.channel.send_message(&order);
                    }
                }
                ConnectionAction::Frames(peer, frames) => {
                    if let Some(conn) = self.peers.get_mut(&peer) {
                        frames.into_iter().for_each(|frame| conn.channel.send_frame(frame));
                    }
                }
                ConnectionAction::Close(peer) => drop(self.peers.remove(&peer)),
            }
        }
    }

    fn close_peers(&mut self, now: Duration) {
        for conn in self.peers.values_mut() {
            (conn.state, conn.since) = (PeerState::Closing, now);
        }
    }

    /// Pumps connections that have received bytes, have bytes to send, or do not take part.
    fn pump_connections(&mut self, ready: Vec<PeerId>) {
        let wants = |conn: &PeerConnection| {
            conn.state != PeerState::Proven || conn.channel.wants_write() || conn.channel.has_message()
        };
        let others = self.peers.iter().filter(|(_, conn)| wants(conn));
        let mut peers: Vec<PeerId> = others.map(|(peer, _)| *peer).chain(ready).collect();
        peers.sort_unstable();
        peers.dedup();
        for peer in peers {
            let now = self.now();
            let Some(conn) = self.peers.get_mut(&peer) else { continue };
            if let Err(error) = conn.channel.pump_bytes() {
                // Read bytes that arrived earlier first.
                self.handle_messages(peer, now);
                self.coordinator.lose_worker(peer, &describe_loss(&error));
                self.peers.remove(&peer);
                continue;
            }
            // The bytes just pumped arrived only now.
            let now = self.now();
            let Some(conn) = self.peers.get_mut(&peer) else { continue };
            if conn.channel.take_received() {
                self.coordinator.record_arrival(peer, now);
            }
            let is_late = now.saturating_sub(conn.since) >= PATIENCE;
            // Dropping a connection with unread data would reset it, and the peer might never learn the reason.
            let is_done = conn.state == PeerState::Closing && conn.channel.is_over();
            if is_done || (conn.state != PeerState::Proven && is_late) {
                self.peers.remove(&peer);
                continue;
            }
            self.handle_messages(peer, now);
        }
        self.execute_actions();
    }

    /// Handles the received messages of a connection.
    fn handle_messages(&mut self, peer: PeerId, now: Duration) {
        for _ in 0..MESSAGES {
            let Some(conn) = self.peers.get_mut(&peer) else { return };
            let heard = match conn.state {
                PeerState::Closing => return,
                PeerState::Proven => conn.channel.receive_message::<WorkerMessage>().map(|report| {
                    let is_some = report.is_some();
                    report.into_iter().for_each(|report| self.coordinator.handle_message(peer, report, now));
                    is_some
                }),
                PeerState::Unproven => conn.channel.receive_message::<Hello>().map(|hello| {
                    hello.into_iter().for_each(|hello| self.admit_worker(peer, &hello, now));
                    false
                }),
            };
            self.execute_actions();
            match heard {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.coordinator.lose_worker(peer, &describe_loss(&error));
                    self.execute_actions();
                    self.peers.remove(&peer);
                    return;
                }
            }
        }
    }

    /// Accepts a worker, or sends it the reason for a refusal.
    fn admit_worker(&mut self, peer: PeerId, hello: &Hello, now: Duration) {
        let Some(conn) = self.peers.get_mut(&peer) else { return };
        let exporter = conn.channel.export_secret().unwrap_or_default();
        let program = env!("CARGO_PKG_VERSION");
        let slot = if !self.token.verify_proof(Role::Worker, &exporter, &hello.proof) {
            Err(JoinRefusal::Secret)
        } else if hello.version != VERSION || hello.program != program {
            Err(JoinRefusal::Version(program.to_owned()))
        } else {
            self.coordinator.join_worker(peer, &hello.name, hello.index, now)
        };
        let welcome = match slot {
            Ok(index) => {
                conn.channel.set_max_frame(PROVEN_MAX);
                conn.state = PeerState::Proven;
                Welcome::Joined {
                    proof: self.token.proof(Role::Coordinator, &exporter),
                    index,
                    machines: self.rules.machines,
                    loss_ns: nanos(self.rules.loss),
                }
            }
            Err(refusal) => {
                (conn.state, conn.since) = (PeerState::Closing, now);
                self.refusals += 1;
                if self.refusals <= REFUSALS {
                    let words = describe_refusal(&refusal, hello);
                    self.coordinator.told.push_back(CoordinatorEvent::Refused(format!(
                        "a worker at {} was refused: {words}",
                        conn.from.ip().to_canonical()
                    )));
                }
                let proof = match refusal {
                    JoinRefusal::Secret => [0; 32],
                    _ => self.token.proof(Role::Coordinator, &exporter),
                };
                Welcome::Refused { refusal, proof }
            }
        };
        conn.channel.send_message(&welcome);
        // The order to set up follows the welcome.
        self.execute_actions();
    }
}

/// Describes the other of two programs that cannot work together: its version, or, if the versions are equal, another
/// build.
pub(super) fn describe_version_mismatch(theirs: &str, ours: &str) -> String {
    match theirs == ours {
        true => format!("another build of onrush {ours}"),
        false => format!("onrush {theirs}, not {ours}"),
    }
}

/// Describes a refusal to the user of the coordinator.
fn describe_refusal(refusal: &JoinRefusal, hello: &Hello) -> String {
    let name = onrush_text::escape(hello.name.as_bytes());
    match refusal {
        // Without a proof, the claimed name is not believed either.
        JoinRefusal::Secret => "its secret differs; copy the --token-file of this machine to it".to_owned(),
        JoinRefusal::Version(ours) => {
            let theirs = onrush_text::escape(hello.program.as_bytes());
            format!("{name} runs {}; use the same build on all machines", describe_version_mismatch(&theirs, ours))
        }
        JoinRefusal::Taken(index) => format!("--index {index} of {name} is already taken"),
        JoinRefusal::NoPart(machines) => format!("--index of {name} is not from 0 to {}", machines - 1),
        JoinRefusal::TooMany(machines) => format!("{name} is one too many; all {machines} machines have joined"),
        JoinRefusal::Begun => format!("{name} came after the run began"),
    }
}

/// Describes the loss of a connection to the user.
fn describe_loss(error: &io::Error) -> String {
    match error.kind() {
        // A killed process resets a connection with unread data.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "the worker ended".to_owned()
        }
        io::ErrorKind::InvalidData => error.to_string(),
        _ => format!("connection lost: {}", error_reason(error)),
    }
}
