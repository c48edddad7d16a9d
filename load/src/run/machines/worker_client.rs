//! A worker's connection to its coordinator. It has its own thread, so that pings are answered and a lost coordinator
//! is noticed whatever the run does.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::token::{Role, Token};
use onrush_text::error_reason;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{read, write};
use thiserror::Error;

use super::channel::Channel;
use super::coordinator_server::describe_version_mismatch;
use super::message::{CoordinatorMessage, Hello, JoinRefusal, PROVEN_MAX, VERSION, Welcome, WorkerMessage};
use crate::run::{self, Interrupt, nanos};

/// Timeout of one attempt to connect, and the pause before the next.
const ATTEMPT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);
/// Time allowed for a coordinator to accept or refuse a worker.
const WELCOME: Duration = Duration::from_secs(5);
/// Error for a peer without a proof.
const NO_SECRET: &str = "the coordinator does not know the secret in --token-file";
/// Maximum interval of checks.
const LOOK: Duration = Duration::from_millis(50);

/// Reason why a worker does not take part in a run.
#[derive(Debug, Error)]
pub enum NotJoined {
    /// The coordinator cannot be reached.
    #[error("--coordinator {address}: {reason}; tried for {} s (--join-timeout)", .tried.as_secs())]
    Unreachable {
        /// The address as typed.
        address: String,
        /// The reason.
        reason: String,
        /// Total time spent trying.
        tried: Duration,
    },
    /// The peer accepts connections, but is not a coordinator of this run.
    #[error("--coordinator {address}: {reason}")]
    NoCoordinator {
        /// The address as typed.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The peer accepts the connection but sends nothing.
    #[error("--coordinator {address}: {reason}")]
    NoAnswer {
        /// The address as typed.
        address: String,
        /// The reason the wait ended.
        reason: String,
    },
    /// The coordinator refused the worker.
    #[error("--coordinator {address}: {}", describe_refusal(.refusal))]
    Refused {
        /// The address as typed.
        address: String,
        /// The reason.
        refusal: JoinRefusal,
    },
    /// A signal arrived before the worker had joined.
    #[error("interrupted by a signal before the run began")]
    Interrupted,
    /// The thread or a descriptor for the connection cannot be created.
    #[error("cannot set up the connection to the coordinator: {}", error_reason(.0))]
    Machine(#[from] io::Error),
}

/// Describes a refusal to the user of the worker.
fn describe_refusal(refusal: &JoinRefusal) -> String {
    match refusal {
        JoinRefusal::Secret => "the secrets differ; use the same --token-file on both machines".to_owned(),
        JoinRefusal::Version(theirs) => {
            let theirs = onrush_text::escape(theirs.as_bytes());
            format!(
                "the coordinator runs {}; use the same build on all machines",
                describe_version_mismatch(&theirs, env!("CARGO_PKG_VERSION"))
            )
        }
        JoinRefusal::Taken(index) => format!("--index {index} is already taken by another worker"),
        JoinRefusal::NoPart(machines) => format!("--index must be from 0 to {}", machines - 1),
        JoinRefusal::TooMany(machines) => format!("all {machines} machines of the run have already joined"),
        JoinRefusal::Begun => "the run began without this worker, which is no longer needed".to_owned(),
    }
}

/// A command for a worker, or the news that its coordinator is lost.
pub enum WorkerCommand {
    /// A command from the coordinator. Pings have been answered, and [`CoordinatorMessage::Stop`] has set the stop
    /// flag.
    Order(CoordinatorMessage),
    /// The coordinator is lost: the reason for the user.
    Lost(String),
}

/// A worker's membership in a run.
pub struct WorkerClient {
    /// Number of the worker's part, from zero ...
    pub index: u32,
    /// ... and the number of parts in the run.
    pub machines: u32,
    /// Name of this worker's machine.
    pub name: String,
    /// Origin of the worker's clock.
    pub origin: Instant,
    reports: Sender<WorkerMessage>,
    orders: Receiver<WorkerCommand>,
    waker: Arc<OwnedFd>,
    is_stopped: Arc<AtomicBool>,
    /// True once `next_command` has returned the dismissal; later calls return it again.
    is_dismissed: Cell<bool>,
    /// Number of reports that have been queued but not yet sent.
    unsent: Arc<AtomicUsize>,
    /// True if the coordinator is lost or has dismissed the worker.
    is_over: Arc<AtomicBool>,
}

/// Requirements of a worker that joins a run.
pub struct Joining<'a> {
    /// The coordinator's address as typed.
    pub coordinator: &'a str,
    /// The secret that the coordinator must also know.
    pub token: &'a Token,
    /// Number of the worker's part, if given.
    pub index: Option<u32>,
    /// Name of this worker's machine.
    pub name: &'a str,
    /// How long to keep trying in total.
    pub patience: Duration,
    /// Called once with a description of the wait, if the coordinator cannot be reached at first.
    pub waiting: &'a dyn Fn(&str),
}

impl Joining<'_> {
    /// Connects, proves knowledge of the secret, and joins the run. Retries until the coordinator is reachable.
    ///
    /// # Errors
    ///
    /// Fails if the worker cannot take part, with the reason.
    pub fn join(&self, interrupt: &Interrupt) -> Result<WorkerClient, NotJoined> {
        let begun = Instant::now();
        let has_told = Cell::new(false);
        loop {
            match self.try_to_join(begun, &has_told, interrupt) {
                // Other connections may be occupying all the coordinator's places.
                Err(NotJoined::NoAnswer { address, reason })
                    if begun.elapsed() < self.patience && !interrupt.is_requested() =>
                {
                    self.report_waiting(&has_told, &address, &reason);
                    thread::sleep(PAUSE);
                }
                joined => return joined,
            }
        }
    }

    fn report_waiting(&self, has_told: &Cell<bool>, address: &str, reason: &str) {
        if !has_told.replace(true) {
            (self.waiting)(&format!("the coordinator at {address}: {reason}"));
        }
    }

    fn try_to_join(
        &self,
        begun: Instant,
        has_told: &Cell<bool>,
        interrupt: &Interrupt,
    ) -> Result<WorkerClient, NotJoined> {
        let address = self.coordinator.to_owned();
        let socket = loop {
            if interrupt.is_requested() {
                return Err(NotJoined::Interrupted);
            }
            match connect_to_coordinator(self.coordinator) {
                Ok(socket) => break socket,
                Err(error) if begun.elapsed() < self.patience => {
                    self.report_waiting(has_told, &address, &error_reason(&error));
                    thread::sleep(PAUSE);
                }
                Err(error) => {
                    return Err(NotJoined::Unreachable {
                        address,
                        reason: error_reason(&error),
                        tried: begun.elapsed(),
                    });
                }
            }
        };
        let no_coordinator = |reason: String| NotJoined::NoCoordinator { address: address.clone(), reason };
        let mut channel = Channel::to_coordinator(socket, PROVEN_MAX)?;
        let is_late = |since: Instant| since.elapsed() >= WELCOME;
        let shaken = Instant::now();
        let exporter = loop {
            channel.pump_bytes().map_err(|error| match error.kind() {
                // The coordinator may have no room right now.
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    NotJoined::NoAnswer { address: address.clone(), reason: error_reason(&error) }
                }
                _ => no_coordinator(format!("not an onrush coordinator: {error}")),
            })?;
            if let Some(exporter) = channel.export_secret() {
                break exporter;
            }
            if channel.has_ended() {
                return Err(NotJoined::NoAnswer { address, reason: "connection closed".to_owned() });
            }
            if is_late(shaken) || interrupt.is_requested() {
                return Err(NotJoined::NoAnswer { address, reason: "no response".to_owned() });
            }
            wait_for_connection(&channel, None);
        };
        channel.send_message(&Hello {
            proof: self.token.proof(Role::Worker, &exporter),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.to_owned(),
            index: self.index,
        });
        let welcome = loop {
            let pumped = channel.pump_bytes();
            match channel.receive_message::<Welcome>() {
                Ok(Some(welcome)) => break welcome,
                Ok(None) => pumped.map_err(|error| no_coordinator(error_reason(&error)))?,
                Err(error) => return Err(no_coordinator(error_reason(&error))),
            }
            if is_late(shaken) || interrupt.is_requested() {
                return Err(NotJoined::NoAnswer { address, reason: "no response".to_owned() });
            }
            wait_for_connection(&channel, None);
        };
        match welcome {
            Welcome::Joined { proof, index, machines, loss_ns } => {
                if !self.token.verify_proof(Role::Coordinator, &exporter, &proof) {
                    return Err(no_coordinator(NO_SECRET.to_owned()));
                }
                let place = (index, machines, self.name.to_owned());
                Ok(WorkerClient::new(channel, place, Duration::from_nanos(loss_ns), interrupt)?)
            }
            // A peer that does not know the secret must not be able to turn this worker away.
            Welcome::Refused { refusal, proof }
                if refusal != JoinRefusal::Secret && !self.token.verify_proof(Role::Coordinator, &exporter, &proof) =>
            {
                Err(no_coordinator(NO_SECRET.to_owned()))
            }
            Welcome::Refused { refusal, .. } => Err(NotJoined::Refused { address, refusal }),
        }
    }
}

fn connect_to_coordinator(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, ATTEMPT) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Waits until the connection is ready or the waker is triggered.
fn wait_for_connection(channel: &Channel, waker: Option<&OwnedFd>) {
    let mut wanted = PollFlags::empty();
    wanted.set(PollFlags::IN, channel.wants_read());
    wanted.set(PollFlags::OUT, channel.wants_write());
    let mut fds = vec![PollFd::from_borrowed_fd(channel.as_fd(), wanted)];
    fds.extend(waker.map(|waker| PollFd::new(waker, PollFlags::IN)));
    let patience = Timespec::try_from(LOOK).expect("it is short");
    // A signal only causes an early check.
    let _ = poll(&mut fds, Some(&patience));
    if let Some(waker) = waker {
        let _ = read(waker, &mut [0_u8; 8]);
    }
}

impl WorkerClient {
    fn new(
        channel: Channel,
        (index, machines, name): (u32, u32, String),
        loss: Duration,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let waker = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (reports, reported) = mpsc::channel();
        let (order, orders) = mpsc::channel();
        let origin = Instant::now();
        let is_stopped: Arc<AtomicBool> = Arc::default();
        let unsent: Arc<AtomicUsize> = Arc::default();
        let is_over: Arc<AtomicBool> = Arc::default();
        let carrier = ClientThread {
            channel,
            reported,
            order,
            waker: Arc::clone(&waker),
            is_stopped: Arc::clone(&is_stopped),
            unsent: Arc::clone(&unsent),
            is_over: Arc::clone(&is_over),
            origin,
            loss,
            interrupt: interrupt.clone(),
            heard: origin,
            looked: origin,
        };
        run::spawn_detached("member", move || carrier.run_connection())?;
        Ok(Self {
            index,
            machines,
            name,
            origin,
            reports,
            orders,
            waker,
            is_stopped,
            is_dismissed: Cell::new(false),
            unsent,
            is_over,
        })
    }

    /// Queues a report. Never blocks; the report is discarded if the coordinator is lost.
    pub fn send_report(&self, report: WorkerMessage) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
        // The thread ends when the coordinator is lost, which is reported elsewhere.
        let _ = self.reports.send(report);
        let _ = write(&*self.waker, &1_u64.to_ne_bytes());
    }

    /// Waits for the next command; `None` if a signal came first. After a dismissal or a loss, returns that again.
    pub fn next_command(&self, interrupt: &Interrupt) -> Option<WorkerCommand> {
        loop {
            match self.orders.recv_timeout(LOOK) {
                Ok(heard) => {
                    if matches!(heard, WorkerCommand::Order(CoordinatorMessage::Dismiss)) {
                        self.is_dismissed.set(true);
                    }
                    return Some(heard);
                }
                Err(RecvTimeoutError::Timeout) if interrupt.is_requested() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.is_dismissed.get() => {
                    return Some(WorkerCommand::Order(CoordinatorMessage::Dismiss));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(WorkerCommand::Lost("the connection to the coordinator ended".to_owned()));
                }
            }
        }
    }

    /// True if the run should end: the coordinator has ordered it, has dismissed the worker, or is lost.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// A flag that becomes true when the coordinator is lost or has dismissed the worker: nobody needs further work.
    pub fn over_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_over)
    }

    /// Clears the stop flag, so that a new run can start.
    pub fn clear_stop(&self) {
        self.is_stopped.store(false, Ordering::Relaxed);
    }

    /// Waits until all reports are sent, the connection has ended, or `patience` is over.
    pub fn flush_reports(&self, patience: Duration) {
        let begun = Instant::now();
        let is_carried = || Arc::strong_count(&self.unsent) > 1;
        while self.unsent.load(Ordering::Relaxed) > 0 && is_carried() && begun.elapsed() < patience {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// State of the connection's thread.
struct ClientThread {
    channel: Channel,
    reported: Receiver<WorkerMessage>,
    order: Sender<WorkerCommand>,
    waker: Arc<OwnedFd>,
    is_stopped: Arc<AtomicBool>,
    unsent: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    origin: Instant,
    loss: Duration,
    interrupt: Interrupt,
    /// Time of the coordinator's last message, and of the last check.
    heard: Instant,
    looked: Instant,
}

impl ClientThread {
    fn run_connection(mut self) {
        let mut taken = 0;
        let why = loop {
            wait_for_connection(&self.channel, Some(&self.waker));
            let mut has_more = true;
            while has_more {
                match self.reported.try_recv() {
                    Ok(report) => {
                        self.channel.send_message(&report);
                        taken += 1;
                    }
                    Err(mpsc::TryRecvError::Empty) => has_more = false,
                    Err(mpsc::TryRecvError::Disconnected) => {
                        // The worker has nothing more to report.
                        let _ = self.channel.pump_bytes();
                        return;
                    }
                }
            }
            let pumped = self.channel.pump_bytes();
            let mut orders = VecDeque::new();
            let received = loop {
                match self.channel.receive_message::<CoordinatorMessage>() {
                    Ok(Some(order)) => orders.push_back(order),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            let now = Instant::now();
            let stood_still = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
            if stood_still >= self.loss / 5 {
                // This machine was suspended or had no processor.
                self.heard += stood_still;
            }
            if self.channel.take_received() {
                self.heard = now;
            }
            for order in orders {
                match order {
                    CoordinatorMessage::Ping(number) => {
                        let clock_ns = nanos(self.origin.elapsed());
                        self.channel.send_message(&WorkerMessage::Pong { number, clock_ns });
                    }
                    CoordinatorMessage::Stop => {
                        self.is_stopped.store(true, Ordering::Relaxed);
                        let _ = self.order.send(WorkerCommand::Order(CoordinatorMessage::Stop));
                    }
                    CoordinatorMessage::Dismiss => {
                        // From now on, the end of the connection is not a loss; nobody will receive the results of a
                        // run in progress.
                        self.is_stopped.store(true, Ordering::Relaxed);
                        let _ = self.order.send(WorkerCommand::Order(CoordinatorMessage::Dismiss));
                        self.is_over.store(true, Ordering::Relaxed);
                        return;
                    }
                    order => drop(self.order.send(WorkerCommand::Order(order))),
                }
            }
            if let Err(error) = pumped.and_then(|()| self.channel.pump_bytes()).and(received) {
                break match error.kind() {
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                        "the coordinator ended".to_owned()
                    }
                    io::ErrorKind::InvalidData => error.to_string(),
                    _ => format!("the connection to the coordinator was lost: {}", error_reason(&error)),
                };
            }
            if !self.channel.wants_write() {
                self.unsent.fetch_sub(std::mem::take(&mut taken), Ordering::Relaxed);
            }
            if now.saturating_duration_since(self.heard) >= self.loss {
                break format!("no message from the coordinator for {} s", self.loss.as_secs_f64());
            }
        };
        // Nobody would count further requests.
        self.is_stopped.store(true, Ordering::Relaxed);
        let _ = self.order.send(WorkerCommand::Lost(why));
        self.is_over.store(true, Ordering::Relaxed);
        self.interrupt.request_end();
    }
}
