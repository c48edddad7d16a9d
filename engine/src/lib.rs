//! The engine of one worker: a loop that opens connections, keeps requests in flight and records what becomes of them.
//!
//! It gets completions from a [`Backend`], and bytes and events from a [`Protocol`]; it depends on neither epoll nor
//! HTTP. After the start it takes no lock, writes no log and allocates nothing per request. Time comes from the
//! backend, so that the same engine runs in virtual time.
//!
//! # The loop
//!
//! 1. Wait for completions, but not past the next timer or the end.
//! 2. Handle each: bytes go to the connection's protocol, its events to the tally.
//! 3. Pump the connection: start requests while there is room, send what is ready, replace it when it ends.
//! 4. Fire the timers that are due; end when the time or the requests are used up, or the target has been unreachable
//!    for too long.
//! 5. Dispatch the requests that have become due to ready connections.
//! 6. Open connections.
//!
//! One turn does a bounded amount of work and leaves the rest to the next: responses are handled while ten thousand
//! connections are being opened, and the run ends on time.
//!
//! # Reading order
//!
//! This file has the loop and its timers. `pump` handles what happens to a connection. `setup` covers what comes before
//! its first request (`tunnel`, `tls`). `dispatch` starts requests: the `source` decides which, the `pacer` when, and
//! `callbacks` are the script's. `transport` sends bytes. `ending` closes connections, `opening` opens others, and
//! `connecting` is the state for that. `slot`, `connection` and `open_request` are what a worker has; `books` and
//! `tally` are what it counts.

mod account;
pub mod backend;
mod books;
mod callbacks;
mod cause;
mod config;
mod connecting;
mod connection;
mod control;
mod crowding;
mod demand;
mod dispatch;
mod end;
mod ending;
mod gone;
#[cfg(any(test, feature = "testing"))]
mod inspect;
mod kept;
mod mailbox;
mod occupancy;
mod open_request;
mod opening;
mod pacer;
mod protocol;
mod pump;
mod retry;
mod routes;
mod rules;
mod scheduled;
mod script_failure;
mod setup;
mod slot;
mod socket_reader;
mod source;
mod spare;
mod stall;
mod tally;
mod timers;
pub mod tls;
mod transport;
mod tunnel;
mod turn;
mod wait;

#[cfg(test)]
mod tests;

pub use callbacks::{Callbacks, HandleResponse, Listener, MakeCallbacks, OnResponse, Response, Wants};
pub use config::Config;
pub use control::{Callback, Control, Refused, WorkerLink};
pub use demand::Demand;
pub use dispatch::too_long;
pub use end::WorkerEnd;
#[cfg(any(test, feature = "testing"))]
pub use inspect::{ConnectionState, Over, Seen};
pub use kept::Budget;
pub use mailbox::Mailbox;
pub use pacer::Pacer;
pub use protocol::{MakeProtocol, Protocol, http1};
pub use rules::{OpenLoop, Rules, Scale};
pub use scheduled::Scheduled;
pub use script_failure::ScriptFailure;
pub use source::{Repeated, Source};
pub use spare::Spare;
pub use timers::SAMPLE_NS;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use onrush_proto::Nanos;

use account::Account;
use backend::{Backend, ConnId};
use books::Books;
use callbacks::Caller;
use connecting::Connecting;
use connection::Live;
use dispatch::{Active, Dispatch};
use end::End;
use routes::Routes;
use slot::{Slot, State};
use socket_reader::SocketReader;
use timers::{Timer, Timers};
use turn::Turn;

/// The most completions handled in one turn of the loop, and the most timers fired.
const HANDLED_PER_TURN: usize = 512;
/// The most connections swept in one turn of the loop.
const SWEPT_PER_TURN: u32 = 16_384;
/// A connect still under way at the end counts as an error if it has lasted longer than this, in nanoseconds: the
/// target did not respond.
const UNANSWERED_NS: u64 = 1_000_000_000;

/// What a worker does: what it sends, when, in which protocol, and the script's callbacks.
pub struct Job {
    /// What it sends.
    pub source: Box<dyn Source>,
    /// When.
    pub pacer: Pacer,
    /// In which protocol.
    pub make_protocol: MakeProtocol,
    /// The script's callbacks.
    pub callbacks: Callbacks,
}

/// The engine of one worker.
pub struct Engine<B: Backend> {
    config: Config,
    backend: B,
    slots: Vec<Slot>,
    connecting: Connecting,
    dispatch: Dispatch,
    script: Caller,
    books: Books,
    timers: Timers,
    turn: Turn,
    socket_reader: SocketReader,
    control: Arc<Control>,
    worker_link: Arc<WorkerLink>,
}

impl<B: Backend> Engine<B> {
    /// An engine that has not started.
    pub fn new(config: Config, backend: B, job: Job, control: Arc<Control>, worker_link: Arc<WorkerLink>) -> Self {
        if let Some(tls) = &config.tls {
            tls.warm_up();
        }
        let Job { source, pacer, make_protocol, callbacks } = job;
        let routes = Routes::new(&config.addresses, config.first_connection);
        Self {
            slots: (0..config.max_inflight).map(|_| Slot::new(config.tls.as_ref())).collect(),
            connecting: Connecting::new(routes, config.tunnel.as_ref(), make_protocol, config.seed),
            dispatch: Dispatch::new(pacer),
            script: Caller::new(source, callbacks, Arc::clone(&worker_link), Arc::clone(&control.bodies)),
            books: Books::new(config.rules, config.sample_ns, config.requests, config.transcribe.then(Box::default)),
            timers: Timers::default(),
            turn: Turn::default(),
            socket_reader: SocketReader::default(),
            config,
            backend,
            control,
            worker_link,
        }
    }

    /// Makes it read from the thread's `schedstat`, if there is one, how long the thread was in the run queue.
    pub fn with_schedstat(mut self, schedstat: Option<OwnedFd>) -> Self {
        self.books.account = Some(Account::new(schedstat));
        self
    }

    /// Makes it read no clock but that of the backend: work takes no time.
    pub fn without_account(mut self) -> Self {
        self.books.account = None;
        self.script.takes_no_time();
        self
    }

    /// Runs the plan, which begins at this moment, to its end.
    pub fn run(mut self, begin: Instant) -> WorkerEnd {
        self.begin(begin);
        loop {
            if let Some(end) = self.turn() {
                return self.finish(end);
            }
        }
    }

    /// Takes turns up to the first one that ends later than `until`; returns the results if the run has ended, else the
    /// engine.
    ///
    /// # Errors
    ///
    /// The engine, if the run goes on.
    pub fn run_past(mut self: Box<Self>, until: Nanos) -> Result<WorkerEnd, Box<Self>> {
        while self.backend.now() <= until {
            if let Some(end) = self.turn() {
                return Ok(self.finish(end));
            }
        }
        Err(self)
    }

    /// One turn of the loop; returns how the run ended, if it has.
    fn turn(&mut self) -> Option<End> {
        let now = self.backend.now();
        let now = self.catch_up(now).min(self.books.end_at);
        self.turn.waited_until = Nanos::MAX;
        for _ in 0..HANDLED_PER_TURN {
            let Some((due, timer)) = self.timers.take_due(now) else { break };
            self.fire(timer, due, now);
        }
        let stayed_away =
            self.config.duration_ns.is_none() && self.connecting.has_stayed_away(now, self.config.patience_ns);
        if self.script.failure.is_some() {
            self.control.stop();
        }
        let is_stopped = self.control.is_stopped() || self.script.has_ended;
        if now == self.books.end_at || stayed_away || self.books.tally.is_done() || is_stopped {
            return Some(End { at: now, stayed_away });
        }
        self.turn.began_at = now;
        self.dispatch(now);
        if self.books.tally.is_done() {
            return Some(End { at: now, stayed_away });
        }
        self.open_more(now);
        self.open_some(self.turn.handled, now);
        self.stamp();
        self.wait();
        self.turn.handled = 0;
        while self.turn.handled < HANDLED_PER_TURN
            && !self.script.has_ended
            && let Some(completion) = self.backend.next()
        {
            self.turn.handled += 1;
            if completion.at <= self.books.end_at {
                self.turn.awaited_since = completion.at;
                self.handle(completion);
            }
        }
        self.books.tally.interval.activity.waited(self.turn.handled);
        None
    }

    /// Begins the run at this moment.
    pub fn begin(&mut self, begin: Instant) {
        let now = self.backend.time_at(begin);
        self.dispatch.begin(now);
        let start = now + self.config.warmup_ns;
        if start > now {
            // The end is set when the warm-up is over.
            self.books.begin(start, None);
            self.books.tally.warm_up();
            self.timers.set(start, Timer::Start);
        } else {
            self.books.begin(start, self.config.duration_ns);
            self.timers.set(start + self.books.sample_ns, Timer::Sample);
        }
        self.timers.set(now + self.sweep_ns(), Timer::Sweep(ConnId(0)));
        let first = self.config.demand.first(self.config.max_inflight);
        self.worker_link.show_idle(first == 0);
        if let Some(active) = &self.config.active {
            self.dispatch.active = Some(Active::new(active.at(0).0, self.config.max_inflight));
            self.timers.set(start, Timer::Slot);
        }
        self.want(first, now);
        if let Demand::Staged(_) = self.config.demand {
            self.timers.set(start, Timer::Level);
        }
    }

    /// Stamps the requests and connects that leave with the next wait.
    fn stamp(&mut self) {
        self.books.tally.hand_over();
        if self.turn.gathered.is_empty() {
            return;
        }
        let now = self.backend.now();
        for conn in self.turn.gathered.drain(..) {
            match &mut self.slots[conn.index()].state {
                State::Open(live) => live.stamp(now, &mut self.books.tally),
                State::Connecting(since) => *since = now,
                State::Tunnelling(_) | State::Parked | State::Queued | State::Waiting => {}
            }
        }
    }

    fn fire(&mut self, timer: Timer, due: Nanos, now: Nanos) {
        match timer {
            Timer::Reopen(conn) => self.open_soon(conn, now),
            Timer::Begin(conn) => self.resume(conn, due, now),
            Timer::Wake(conn) => self.wake(conn, due, now),
            Timer::Sweep(ConnId(first)) => {
                let (all, next) = (self.config.max_inflight, first.saturating_add(SWEPT_PER_TURN));
                (first..next.min(all)).for_each(|number| self.sweep(ConnId(number), now));
                // In the next turn, when time has moved on.
                let (at, next) = if next < all { (now + 1, next) } else { (now + self.sweep_ns(), 0) };
                self.timers.set(at, Timer::Sweep(ConnId(next)));
                if self.books.tally.is_warming_up() {
                    self.worker_link.show_warm_up(self.books.tally.completed);
                    self.books.restart_account();
                }
            }
            Timer::Level => self.follow_levels(now),
            Timer::Slot => self.follow_slots(now),
            Timer::Start => {
                // What was started in the warm-up belongs to it.
                self.stamp();
                self.backend.wait(Nanos::default());
                self.count_from(now);
                self.timers.set(now + self.books.sample_ns, Timer::Sample);
            }
            Timer::Sample => {
                self.take_counts();
                self.settle_spin();
                self.books.sample_if_due(now);
                self.books.note_script_time(self.script.spent_ns());
                self.read_a_socket(now);
                self.books.hand_over(now, &self.worker_link.mailbox);
                self.timers.set(self.books.next_sample_at(now), Timer::Sample);
            }
        }
    }

    /// Ends the warm-up: nothing counts so far. Requests in flight will, with their whole latency, when they end.
    fn count_from(&mut self, now: Nanos) {
        self.worker_link.show_delay(now.since(self.books.start));
        self.take_counts();
        self.settle_spin();
        let planned = self.books.start;
        self.books.begin(now, self.config.duration_ns);
        self.forget_sockets(now);
        self.books.script_noted_ns = self.script.spent_ns();
        self.worker_link.show_warm_up(self.books.tally.completed);
        self.slots.iter_mut().for_each(|slot| slot.is_counted = matches!(slot.state, State::Open(_)));
        let open = self.slots.iter().filter(|slot| slot.is_counted).count();
        self.books.tally.count_from(now, planned, open as u64);
        self.forget_occupancy();
        // A request that was late in the warm-up is late again in what counts.
        self.slots.iter_mut().filter_map(Slot::live).for_each(Live::forget_late);
        // Connections carried over are in use with what they negotiated, although their handshakes were not measured.
        let kept = self.slots.iter().filter(|slot| slot.is_counted).filter_map(|slot| slot.link.as_ref());
        kept.for_each(|link| self.books.tally.interval.handshakes.found(link.negotiated().0, 1));
    }

    /// Takes the backend's counts since the last time. With TLS only the link knows how many plain bytes the sent ones
    /// were.
    fn take_counts(&mut self) {
        let untimestamped = self.backend.untimestamped();
        if untimestamped > 0 {
            self.books.tally.interval.open_loop.get_or_insert_default().untimestamped += untimestamped;
        }
        let taken = self.backend.taken();
        if self.config.tls.is_none() {
            self.books.tally.interval.counters.bytes_sent += taken;
        }
    }

    /// How often to sweep for requests that take too long: often enough for the shorter limit to mean something.
    fn sweep_ns(&self) -> u64 {
        let limits = [self.config.rules.timeout_ns, self.config.give_up_ns];
        let shortest = limits.into_iter().flatten().min().unwrap_or(u64::MAX);
        (shortest / 16).clamp(1_000_000, SAMPLE_NS)
    }
}
