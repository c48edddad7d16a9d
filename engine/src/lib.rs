//! The engine of one worker: a loop that opens connections, keeps requests in flight and records their outcome.
//!
//! It gets completions from a [`Backend`], and bytes and events from a [`Protocol`]; it depends on neither epoll nor
//! HTTP. After the start it takes no lock, writes no log and allocates nothing per request. Time comes from the
//! backend, so that the same engine runs in virtual time.
//!
//! # The loop
//!
//! 1. Wait for completions, but not past the next timer or the end.
//! 2. Handle each: bytes go to the connection's protocol, its events to the tally.
//! 3. Pump the connection: start requests while there is room, send output, replace the connection when it ends.
//! 4. Fire due timers. End when the time or the requests are used up, or the target has been unreachable for too long.
//! 5. Dispatch the requests that have become due to ready connections. If sends leave with the next wait, a worker that
//!    busy-polls until a request is due does that itself, a moment earlier.
//! 6. Open connections.
//!
//! One turn does a bounded amount of work and leaves the rest to the next: responses are handled while ten thousand
//! connections are being opened, and the run ends on time.
//!
//! # Reading order
//!
//! This file has the loop and its timers; it `wait`s, with a `lead` on due requests, and catches up after a `stall`. An
//! engine has three parts, which do not call each other; `steps` works across them.
//!
//! * The `roster` has the connections: `handling` takes their completions; `setup` precedes the first request
//!   (`tunnel`, `tls`); `transport` sends, `ending` closes, `opening` opens. Connections consist of `slot`,
//!   `connection` and `open_request`.
//! * The `dispatch` starts requests: the `source` decides which, the `pacer` when; `callbacks` are the script's.
//! * The `books` are the counts, above all the `tally`.

#![deny(unsafe_code)]

mod account;
#[allow(unsafe_code)]
pub mod backend;
mod books;
mod callbacks;
mod cause;
mod checks;
mod config;
mod connection;
mod control;
mod crowding;
mod demand;
mod dispatch;
mod end;
#[cfg(any(test, feature = "testing"))]
mod inspect;
mod kept;
mod lead;
mod mailbox;
mod measured;
mod open_request;
mod open_requests;
mod pacer;
mod protocol;
mod request_log;
mod retry;
mod roster;
mod round;
mod routes;
mod rules;
mod samples;
mod scheduled;
mod script_failure;
mod slot;
mod source;
mod stall;
mod steps;
mod tally;
mod timers;
pub mod tls;
mod tunnel;
mod turn;
mod unsettled;
mod wait;
mod window;

#[cfg(test)]
mod tests;

pub use callbacks::{Callbacks, HandleResponse, Listener, MakeCallbacks, OnResponse, Response, Wants};
pub use config::{Ahead, Config};
pub use control::{Callback, Control, Refused, WorkerLink};
pub use demand::Demand;
pub use dispatch::batch_too_long_message;
pub use end::{Stayed, WorkerEnd};
#[cfg(any(test, feature = "testing"))]
pub use inspect::{ConnectionState, Over, Seen};
pub use kept::Budget;
pub use mailbox::Mailbox;
pub use pacer::Pacer;
pub use protocol::{MakeProtocol, Protocol, http_by_alpn, http1};
pub use request_log::{PassOn, Passed, RequestLog};
pub use roster::Spare;
pub use rules::{OpenLoop, Rules, Scale};
pub use samples::{KeepSample, Quota, Sample, SampleOf, Samples};
pub use scheduled::Scheduled;
pub use script_failure::ScriptFailure;
pub use source::{Repeated, Source};
pub use timers::{LOOK_NS, SAMPLE_NS};
pub use wait::LINGER_MIN;

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use onrush_proto::Nanos;
use onrush_proto::http2::SharedContext;

use account::Account;
use backend::{Backend, ConnId};
use books::Books;
use callbacks::Caller;
use checks::Checks;
use dispatch::Dispatch;
use end::End;
use lead::Lead;
use roster::Roster;
use tally::Tally;
use timers::{Timer, Timers};
use turn::Turn;

/// Largest number of completions handled, and of timers fired, in one turn of the loop.
const HANDLED_PER_TURN: usize = 512;
/// Largest number of connections swept in one turn of the loop.
const SWEPT_PER_TURN: u32 = 16_384;
/// Age, in nanoseconds, above which a connect still unfinished at the end counts as an error: the target did not
/// respond.
const UNANSWERED_NS: u64 = 1_000_000_000;

/// The work for one worker: its requests, their due times, the protocol, and the script's callbacks.
pub struct Job {
    /// Yields the requests.
    pub source: Box<dyn Source>,
    /// The due times of the requests, or none in a closed loop.
    pub pacer: Pacer,
    /// Chooses the protocol of each new connection.
    pub make_protocol: MakeProtocol,
    /// State shared by HTTP/2 connections, if there may be any.
    pub http2: Option<SharedContext>,
    /// The script's callbacks; without a script, none.
    pub callbacks: Callbacks,
}

/// The engine of one worker: its connections, its requests and their measurements.
pub struct Engine<B: Backend> {
    roster: Roster<B>,
    dispatch: Dispatch,
    books: Books,
    timers: Timers,
    turn: Turn,
    lead: Lead,
    control: Arc<Control>,
    worker_link: Arc<WorkerLink>,
    /// State shared by HTTP/2 connections, if there may be any.
    http2: Option<SharedContext>,
}

/// A backend that runs an engine on a thread. The loop is compiled in this package, with this package's optimisation
/// settings instead of the caller's.
pub trait OfThread: Backend + Sized {
    /// Runs an engine to its end; see [`Engine::run`].
    fn run(engine: Engine<Self>, begin: Instant) -> (WorkerEnd, Option<Engine<Self>>);
    /// Continues an engine that [`Self::run`] returned because it stays; see [`Engine::stay`].
    fn stay(engine: Engine<Self>) -> Stayed;
}

macro_rules! of_thread {
    ($backend:ty) => {
        impl OfThread for $backend {
            fn run(engine: Engine<Self>, begin: Instant) -> (WorkerEnd, Option<Engine<Self>>) {
                engine.run(begin)
            }

            fn stay(engine: Engine<Self>) -> Stayed {
                engine.stay()
            }
        }
    };
}

of_thread!(backend::Epoll);
of_thread!(backend::Uring);
/// In whole simulated runs, several engines take turns instead ([`Engine::run_past`]).
#[cfg(any(test, feature = "testing"))]
const _: () = {
    of_thread!(backend::Sim);
};

/// State of an engine after some turns.
pub enum Advanced<B: Backend> {
    /// The run continues.
    Running(Box<Engine<B>>),
    /// The run has ended. The engine is returned with the results if it stays.
    Ended(Box<WorkerEnd>, Option<Box<Engine<B>>>),
    /// An engine that stayed after its run has been stopped.
    Left(Box<Stayed>),
}

impl<B: Backend> Engine<B> {
    /// An engine before its start. With TLS, seeds the calling thread's random generator, so call it in the worker's
    /// thread.
    pub fn new(config: Config, backend: B, job: Job, control: Arc<Control>, worker_link: Arc<WorkerLink>) -> Self {
        if let Some(tls) = &config.tls {
            tls.warm_up();
        }
        let Job { source, pacer, make_protocol, http2, callbacks } = job;
        let config = Rc::new(config);
        let script = Caller::new(source, callbacks, Arc::clone(&worker_link), Arc::clone(&control.kept));
        let transcript = config.transcribe.then(Box::default);
        let tally = Tally::new(config.rules, Checks::new(&config.checks), config.requests, transcript);
        Self {
            books: Books::new(tally, config.rules.scale, config.sample_ns),
            dispatch: Dispatch::new(Rc::clone(&config), script, pacer),
            roster: Roster::new(config, backend, make_protocol, Arc::clone(&worker_link)),
            timers: Timers::default(),
            turn: Turn::default(),
            lead: Lead::default(),
            control,
            worker_link,
            http2,
        }
    }

    /// Makes the engine read its run-queue time from this `schedstat` file of its thread; `None`: the time is unknown.
    pub fn with_schedstat(mut self, schedstat: Option<OwnedFd>) -> Self {
        self.books.account = Some(Account::new(schedstat));
        self
    }

    /// Makes the engine read no clock but the backend's: processor and script time are not counted.
    pub fn without_account(mut self) -> Self {
        self.books.account = None;
        self.dispatch.script.ignore_script_time();
        self
    }

    /// Makes the engine use these connections before it opens any, and return its own idle ones and unused spares at
    /// the end. `None`: it neither takes over nor leaves connections.
    #[must_use]
    pub fn with_spares(mut self, spares: Option<Vec<Spare>>) -> Self {
        self.roster.connecting.spares = spares;
        self
    }

    /// Makes the engine log requests; `None`: no log.
    #[must_use]
    pub fn with_log(mut self, log: Option<RequestLog>) -> Self {
        self.books.tally.log = log;
        self
    }

    /// Makes the engine keep samples of responses; `None`: no samples.
    #[must_use]
    pub fn with_samples(mut self, samples: Option<Samples>) -> Self {
        self.books.tally.samples = samples.map(Box::new);
        self
    }

    /// Runs the plan from `begin` to its end, blocking the thread. Returns the results, and the engine if it stays.
    pub fn run(mut self, begin: Instant) -> (WorkerEnd, Option<Self>) {
        self.begin_run(begin);
        loop {
            if let Some(end) = self.take_turn() {
                return self.into_worker_end(end);
            }
        }
    }

    /// Stays after the end of the run until stopped, blocking the thread. Sends nothing until
    /// [`WorkerLink::set_in_flight_limit`] sets a limit.
    pub fn stay(mut self) -> Stayed {
        loop {
            if let Some(end) = self.take_turn() {
                return self.end_staying(end.at);
            }
        }
    }

    /// Takes turns until the backend's time is later than `until`, or the engine ends.
    pub fn run_past(mut self: Box<Self>, until: Nanos) -> Advanced<B> {
        while self.roster.backend.now() <= until {
            match self.take_turn() {
                Some(end) if self.books.stays => return Advanced::Left(Box::new(self.end_staying(end.at))),
                Some(end) => {
                    let (end, stays) = self.into_worker_end(end);
                    return Advanced::Ended(Box::new(end), stays.map(Box::new));
                }
                None => {}
            }
        }
        Advanced::Running(self)
    }

    /// Takes one turn of the loop. Returns how the run ended, if it has.
    fn take_turn(&mut self) -> Option<End> {
        let now = self.roster.backend.now();
        let now = self.catch_up_after_stall(now).min(self.books.end_at);
        self.turn.waited_until = Nanos::MAX;
        for _ in 0..HANDLED_PER_TURN {
            let Some((due, timer)) = self.timers.take_due(now) else { break };
            self.fire_due_timers(timer, due, now);
        }
        let Roster { config, connecting, .. } = &self.roster;
        let completed = self.books.tally.completed;
        let stayed_away = config.duration_ns.is_none()
            && (connecting.is_unreachable_too_long(now, config.patience_ns)
                || connecting.is_stuck_too_long(now, config.patience_ns, completed));
        if self.dispatch.script.failure.is_some() {
            self.control.stop();
        }
        let is_stopped = self.control.is_stopped() || self.dispatch.script.has_ended;
        if self.control.has_enough() && self.books.measured.is_none() && !self.books.stays {
            self.books.end_at = now;
        }
        let limits = self.worker_link.in_flight_limits();
        if limits != self.dispatch.limits {
            self.follow_limit(limits, now);
        }
        let is_over = now == self.books.end_at && (is_stopped || !self.continue_uncounted());
        if is_over || stayed_away || self.books.tally.is_done() || is_stopped || self.has_learned_all() {
            return Some(End { at: now, stayed_away });
        }
        self.turn.began_at = now;
        self.pump_relieved(now);
        self.dispatch_due_requests(now);
        if self.books.tally.is_done() {
            return Some(End { at: now, stayed_away });
        }
        self.open_more(now);
        self.open_some(now);
        self.send_and_stamp_gathered(now);
        self.wait_for_completions();
        self.turn.handled = 0;
        while self.turn.handled < HANDLED_PER_TURN
            && !self.dispatch.script.has_ended
            && let Some(completion) = self.roster.backend.next_completion()
        {
            self.turn.handled += 1;
            if completion.at <= self.books.end_at || self.continue_uncounted() || self.settle_before_staying() {
                self.turn.awaited_since = completion.at;
                self.handle(completion);
            }
        }
        self.books.tally.interval.activity.count_wait(self.turn.handled);
        None
    }

    fn fire_due_timers(&mut self, timer: Timer, due: Nanos, now: Nanos) {
        self.count_all_busy(now);
        match timer {
            Timer::Reopen(conn) => self.reopen_slot(conn, now),
            Timer::Begin(conn) => self.resume_after_pause(conn, now),
            Timer::Rested(conn) => self.end_stream_back_off(conn, now),
            Timer::Wake(conn) => self.wake_protocol(conn, due, now),
            Timer::Sweep(ConnId(first)) => {
                let (all, next) = (self.roster.slots.len() as u32, first.saturating_add(SWEPT_PER_TURN));
                if first == 0 {
                    self.books.tally.sweep_returned(self.roster.config.give_up_ns, now);
                    self.roster.note_other_protocol(&self.books.tally);
                }
                (first..next.min(all)).for_each(|number| self.sweep_connection(ConnId(number), now));
                // The sweep continues in the next turn, at a later time.
                let (at, next) = if next < all { (now + 1, next) } else { (now + self.sweep_ns(), 0) };
                self.timers.set_timer(at, Timer::Sweep(ConnId(next)));
                if self.books.tally.is_warming_up() {
                    self.worker_link.show_warm_up(self.books.tally.completed);
                    self.books.restart_account();
                }
            }
            Timer::Level => self.follow_levels(now),
            Timer::Start => {
                // Requests started in the warm-up belong to it.
                self.send_and_stamp_gathered(now);
                self.roster.backend.wait(Nanos::default());
                self.count_from(now);
                self.timers.set_timer(now + self.books.sample_ns, Timer::Sample);
            }
            Timer::Sample if self.books.stays => {}
            Timer::Look => self.hand_over_after_end(now),
            Timer::Sample if self.books.measured.is_some() => {
                self.timers.set_timer(now + self.books.sample_ns, Timer::Sample)
            }
            Timer::Sample => {
                self.take_counts();
                self.settle_spin();
                self.books.sample_rate_if_due(now);
                self.note_script_time();
                self.roster.read_next_socket(&mut self.books, now);
                self.books.tally.hand_over_log();
                self.books.hand_over(now, &self.worker_link.mailbox);
                self.timers.set_timer(self.books.next_sample_at(now), Timer::Sample);
            }
        }
    }
}
