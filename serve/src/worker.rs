//! A thread of the server: an epoll loop over its listener, its connections and their timers.
//!
//! A thread shares only the eventfd that stops it, the common state, and its inbox. Sockets are registered once,
//! edge-triggered, so that an ordinary request costs a wakeup, a receive and a send.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::backend::Poll;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};
use rustix::thread::set_current_timer_slack;

use super::connection::ServedConnection;
use super::inbox::WakeCall;
use super::resources::Resources;
use super::socket::ClientSocket;
use super::tls::TlsSession;
use super::token::PollToken;
use super::turn::AfterTurn;

/// The state of a thread.
#[derive(Debug)]
pub(super) struct ServeWorker {
    epoll: Poll,
    listener: OwnedFd,
    /// Readable when the thread should end.
    stop: Arc<OwnedFd>,
    slots: Vec<ConnectionSlot>,
    /// Slots without a connection.
    free: Vec<u32>,
    /// Timers of connections, in nanoseconds of the thread's clock. A set, because closing a connection removes its
    /// timer.
    timers: BTreeSet<(u64, PollToken)>,
    /// Connections that get another turn without an event.
    again: Vec<PollToken>,
    /// True if accepting is suspended because descriptors or memory ran out.
    accept_put_off: bool,
    resources: Resources,
}

#[derive(Debug, Default)]
struct ConnectionSlot {
    /// Number of earlier connections in the slot, to tell late events for them from current ones.
    generation: u32,
    connection: Option<ServedConnection>,
    timer_ns: Option<u64>,
    /// True if the connection is already queued for a turn without an event.
    is_queued: bool,
}

/// Maximum number of events per wakeup.
const EVENTS_PER_WAKE_UP: usize = 512;

/// Maximum number of connections accepted before open ones get their turns.
const ACCEPTS_PER_TURN: usize = 256;

/// Pause before accepting again after running out of descriptors or memory: short enough for waiting clients, long
/// enough to cost nothing.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

impl ServeWorker {
    /// A worker that accepts connections from this listening socket and serves them until `stop` becomes readable.
    pub(super) fn new(listener: OwnedFd, stop: Arc<OwnedFd>, resources: Resources) -> io::Result<Self> {
        let epoll = Poll::new()?;
        epoll::add(&epoll, &stop, EventData::new_u64(PollToken::STOP.0), EventFlags::IN)?;
        epoll::add(&epoll, resources.inbox.bell_fd(), EventData::new_u64(PollToken::INBOX.0), EventFlags::IN)?;
        epoll::add(&epoll, &listener, EventData::new_u64(PollToken::LISTENER.0), EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            epoll,
            listener,
            stop,
            slots: Vec::new(),
            free: Vec::new(),
            timers: BTreeSet::new(),
            again: Vec::new(),
            accept_put_off: false,
            resources,
        })
    }

    /// Serves until the eventfd becomes readable.
    pub(super) fn run_loop(&mut self) {
        // By default the kernel may delay a wakeup by 50 µs to save energy. If this fails, it does.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_PER_WAKE_UP);
        loop {
            match self.epoll.wait(&mut events, self.event_timeout()) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(errno) => panic!("epoll_wait failed on a descriptor of its own: {errno}"),
            }
            if self.is_stopped_while_frozen() {
                return;
            }
            for event in &events {
                match PollToken(event.data.u64()) {
                    PollToken::STOP => return,
                    PollToken::LISTENER => self.accept_connections(),
                    PollToken::INBOX => self.answer_calls(),
                    token => {
                        self.give_turn(token, |connection, resources| connection.handle_event(event.flags, resources))
                    }
                }
            }
            self.run_timers();
            self.run_queue();
        }
    }

    /// Waits while the target is frozen. Returns true if the thread should end.
    fn is_stopped_while_frozen(&self) -> bool {
        while let Some(left) = self.resources.common.freeze.time_left() {
            match poll(&mut [PollFd::new(&self.stop, PollFlags::IN)], Some(&timespec(left))) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return true,
                Err(errno) => panic!("poll failed on a descriptor of its own: {errno}"),
            }
        }
        false
    }

    /// Maximum wait for events; `None` if unlimited.
    fn event_timeout(&self) -> Option<Duration> {
        let wait_ns = match self.timers.first() {
            _ if !self.again.is_empty() => 0,
            Some((due_ns, _)) => due_ns.saturating_sub(self.resources.now_ns()),
            None => return None,
        };
        Some(Duration::from_nanos(wait_ns))
    }

    fn run_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now_ns = self.resources.now_ns();
        while let Some(&(due_ns, token)) = self.timers.first()
            && due_ns <= now_ns
        {
            self.timers.pop_first();
            if token == PollToken::LISTENER {
                self.accept_put_off = false;
                self.accept_connections();
            } else {
                self.slots[token.index()].timer_ns = None;
                self.give_turn(token, ServedConnection::take_turn);
            }
        }
    }

    fn answer_calls(&mut self) {
        for WakeCall { token, exchange } in self.resources.inbox.take_calls() {
            self.give_turn(token, |connection, resources| connection.handle_wakeup(exchange, resources));
        }
    }

    fn run_queue(&mut self) {
        for token in std::mem::take(&mut self.again) {
            if token == PollToken::LISTENER {
                self.accept_connections();
            } else {
                self.slots[token.index()].is_queued = false;
                self.give_turn(token, ServedConnection::take_turn);
            }
        }
    }

    /// Gives a connection its turn, if it still exists, and acts on the result.
    fn give_turn(&mut self, token: PollToken, turn: impl FnOnce(&mut ServedConnection, &mut Resources) -> AfterTurn) {
        let slot = &mut self.slots[token.index()];
        let Some(connection) = slot.connection.as_mut().filter(|_| slot.generation == token.generation()) else {
            return;
        };
        match turn(connection, &mut self.resources) {
            AfterTurn::Wait => {}
            AfterTurn::Again if slot.is_queued => {}
            AfterTurn::Again => {
                slot.is_queued = true;
                self.again.push(token);
            }
            AfterTurn::Sleep(until_ns) => {
                if let Some(other_ns) = slot.timer_ns.replace(until_ns) {
                    self.timers.remove(&(other_ns, token));
                }
                self.timers.insert((until_ns, token));
            }
            AfterTurn::Http2 => {
                slot.connection = slot.connection.take().and_then(ServedConnection::into_http2);
                if slot.connection.is_some() {
                    self.give_turn(token, ServedConnection::take_turn);
                } else {
                    self.close_connection(token);
                }
            }
            AfterTurn::Close => self.close_connection(token),
        }
    }

    fn accept_connections(&mut self) {
        if self.accept_put_off {
            return;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.open_connection(socket),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Descriptors or memory ran out, so clients wait in the backlog. An immediate retry would be a busy
                // loop.
                Err(_) => {
                    self.accept_put_off = true;
                    let until_ns = self.resources.now_ns() + ACCEPT_PAUSE.as_nanos() as u64;
                    self.timers.insert((until_ns, PollToken::LISTENER));
                    return;
                }
            }
        }
        if !self.again.contains(&PollToken::LISTENER) {
            self.again.push(PollToken::LISTENER);
        }
    }

    fn open_connection(&mut self, socket: OwnedFd) {
        let number = self.resources.counters().add_connection();
        // If this fails, responses are late but correct.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(ConnectionSlot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let token = PollToken::of_slot(index, slot.generation);
        let tls = match &self.resources.common.tls {
            Some(settings) => {
                let Some(tls) = TlsSession::new(settings) else { return self.close_connection(token) };
                Some(tls)
            }
            None => None,
        };
        let socket = ClientSocket::new(socket, tls);
        let connection = slot.connection.insert(ServedConnection::new(socket, number, token));
        // Writability is watched from the start: edge-triggered, it costs nothing until a send is incomplete.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, connection.socket(), EventData::new_u64(token.0), flags).is_err() {
            self.close_connection(token);
        }
    }

    /// Closes the connection of a slot. Closing the socket removes it from epoll.
    fn close_connection(&mut self, token: PollToken) {
        let slot = &mut self.slots[token.index()];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(due_ns) = slot.timer_ns.take() {
            self.timers.remove(&(due_ns, token));
        }
        self.free.push(token.index() as u32);
    }
}

fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket_with};

    use super::super::freeze::Rhythm;
    use super::super::resources::Common;
    use super::*;

    /// A worker over a bound socket that does not listen yet.
    fn unlistening_worker() -> (ServeWorker, SocketAddr) {
        let listener = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        let stop = Arc::new(eventfd(0, EventfdFlags::empty()).unwrap());
        let resources = Resources::new(Arc::new(Common::new(1, None)), 0).unwrap();
        (ServeWorker::new(listener, stop, resources).unwrap(), address)
    }

    #[test]
    fn failed_accepts_are_retried_later() {
        // Accepting on a socket that does not listen fails every time, just as without free descriptors.
        let (mut worker, address) = unlistening_worker();
        worker.accept_connections();
        worker.accept_connections();
        assert_eq!(worker.timers.len(), 1, "one timer, however many tries");
        let timeout = worker.event_timeout().expect("a timer");
        let pauses = Duration::from_millis(1)..Duration::from_secs(1);
        assert!(worker.again.is_empty() && pauses.contains(&timeout), "a pause: {timeout:?}");

        listen(&worker.listener, 1).unwrap();
        let _client = TcpStream::connect(address).unwrap();
        while worker.accept_put_off {
            worker.run_timers();
        }
        assert_eq!(worker.slots.iter().filter(|slot| slot.connection.is_some()).count(), 1);
    }

    #[test]
    fn frozen_threads_can_be_stopped() {
        let (mut worker, _address) = unlistening_worker();
        let (every, length) = (Duration::from_millis(1), Duration::from_secs(60));
        worker.resources.common.freeze.record_request(Rhythm { every, length });
        std::thread::sleep(2 * every);
        rustix::io::write(&*worker.stop, &1u64.to_ne_bytes()).unwrap();
        assert!(worker.is_stopped_while_frozen());
        worker.run_loop();
        assert!(worker.resources.common.freeze.time_left().is_some(), "it ended before the freeze did");
    }

    #[test]
    fn stale_events_miss_reused_slots() {
        let (mut worker, address) = unlistening_worker();
        listen(&worker.listener, 8).unwrap();
        let _first = TcpStream::connect(address).unwrap();
        worker.accept_connections();
        worker.give_turn(PollToken::of_slot(0, 0), |_, _| AfterTurn::Close);
        let _second = TcpStream::connect(address).unwrap();
        worker.accept_connections();
        assert!(worker.slots[0].connection.is_some(), "the slot is used again");
        worker.give_turn(PollToken::of_slot(0, 0), |_, _| panic!("a turn for a connection that is gone"));
        worker.give_turn(PollToken::of_slot(0, 1), |_, _| AfterTurn::Close);
        assert!(worker.slots[0].connection.is_none());
    }

    #[test]
    fn closing_connections_removes_their_timer() {
        let (mut worker, address) = unlistening_worker();
        listen(&worker.listener, 8).unwrap();
        let _client = TcpStream::connect(address).unwrap();
        worker.accept_connections();
        let token = PollToken::of_slot(0, 0);
        for until_ns in [u64::MAX, u64::MAX - 1, u64::MAX - 1] {
            worker.give_turn(token, |_, _| AfterTurn::Sleep(until_ns));
            assert_eq!(worker.timers.iter().collect::<Vec<_>>(), [&(until_ns, token)]);
        }
        worker.give_turn(token, |_, _| AfterTurn::Close);
        assert!(worker.timers.is_empty());
    }
}
