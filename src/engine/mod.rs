//! The engine of one worker: one loop that opens connections, keeps requests in flight and records what became of them.
//!
//! It gets input and output as completions from a [`Backend`], and bytes and events from a [`Protocol`]; it knows neither
//! epoll nor HTTP. After start it takes no lock, writes no log and, per request, allocates nothing. Time comes from
//! the backend, so that the same engine runs in virtual time.
//!
//! # The loop
//!
//! 1. Wait for completions, but not past the next timer or the end.
//! 2. Handle each: bytes go to the connection's protocol, its events to the tally.
//! 3. Pump the connection: start requests while there is room, hand over what is to be sent, replace it when it ends.
//! 4. Fire the timers that are due; end when the time, the requests or somebody's patience are used up.
//! 5. Open connections that are to be opened.
//!
//! However much there is to do, one turn does a bounded part of it, and the rest follows in the next: answers are served
//! while ten thousand connections are being made, and the end comes when it is due.
//!
//! This file has the loop, the timers and the end; `opening` says when connections are opened, `pump` has what is done with
//! one connection, `secure` what TLS adds to that, `tunnel` what a proxy does, `leave` what a limit on the requests of
//! a connection does, and `stall` what is done after the worker stood still.

mod batch;
mod connection;
mod control;
mod evidence;
mod hooks;
mod kept;
mod leave;
mod mailbox;
mod occupancy;
mod opening;
mod protocol;
mod pump;
mod retry;
mod routes;
mod secure;
mod stall;
mod tally;
mod timers;
pub mod tls;
mod tunnel;
mod wait;

#[cfg(test)]
mod tests;

pub use control::{Callback, Control, Desk, Refused};
pub use hooks::{Answer, Hooks, ScriptFailure, Wants};
pub use kept::Budget;
pub use leave::too_long;
pub use mailbox::Mailbox;
pub use protocol::Protocol;
pub use tally::{Rules, Scale};

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use onrush_proto::{Nanos, Parts, Request};

use crate::backend::{Backend, ConnId};
use crate::plan::PerConnection;
use crate::random::Random;
use crate::stats::{Cause, Gap, Interval, Phase, ProxyFailure, Transcript};
use connection::{Live, Slot, State};
use evidence::Account;
use hooks::Caller;
use routes::Routes;
use tally::Tally;
use timers::{SAMPLE_NS, Timer, Timers};
use wait::Spin;

/// So many completions are handled in one turn of the loop, and so many timers fire.
const HANDLED_PER_TURN: usize = 512;
/// So many connections are looked after in one turn of the loop.
const SWEPT_PER_TURN: u32 = 16_384;
/// A connect that is under way at the end for longer than this, in nanoseconds, is an error: nobody answers it.
const UNANSWERED_NS: u64 = 1_000_000_000;

/// One worker's part of the plan.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections of this worker, at least one.
    pub connections: u32,
    /// How many connections the workers before it have: connections take turns through the addresses.
    pub first_connection: usize,
    /// Requests in flight on one connection at most.
    pub slots: usize,
    /// Requests on one connection at most, before the next one is opened.
    pub requests_per_connection: Option<PerConnection>,
    /// The addresses of the target, or of the proxy, in the resolver's order, at least one.
    pub addresses: Vec<SocketAddr>,
    /// What asks a proxy for a tunnel on each new connection, if that is needed.
    pub tunnel: Option<Parts>,
    /// How TLS is spoken, if it is.
    pub tls: Option<tls::Config>,
    /// What latencies count.
    pub rules: Rules,
    /// How long load is put on the target before anything counts, in nanoseconds; everything below counts from there.
    pub warmup_ns: u64,
    /// The longest the worker runs, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// How many requests it starts.
    pub requests: Option<u64>,
    /// When a request is given up, in nanoseconds.
    pub give_up_ns: Option<u64>,
    /// How long a target may stay away from a run that has no other end, in nanoseconds.
    pub patience_ns: u64,
    /// Whether it looks again and again instead of sleeping while few requests are in flight.
    pub spins: bool,
    /// The start of the worker's random sequence.
    pub seed: u64,
    /// Whether what goes over the wire is kept.
    pub transcribe: bool,
}

/// What a worker gives back.
pub struct WorkerEnd {
    /// What it measured since its last hand-over.
    pub interval: Box<Interval>,
    /// How many connections it had to keep open.
    pub connections: u32,
    /// How long it ran, in nanoseconds, warm-up not included.
    pub elapsed_ns: u64,
    /// Whether it ended because nobody could be connected to any more.
    pub stayed_away: bool,
    /// The last refusal before anybody accepted, if nobody ever did.
    pub refusal: Option<(SocketAddr, Cause)>,
    /// Addresses that refused while another worked, and the error numbers.
    pub dropped: Vec<(SocketAddr, i32)>,
    /// Addresses that worked.
    pub working: Vec<SocketAddr>,
    /// What went over the wire.
    pub transcript: Option<Box<Transcript>>,
    /// Stretches in which it completed nothing; none where its script decides when something is asked for.
    pub silences: Vec<Gap>,
    /// Stretches in which it stood still, for want of a processor or because it was stopped.
    pub standstills: Vec<Gap>,
    /// Whether its script was asked how long to pause.
    pub pauses: bool,
    /// What went wrong in its script.
    pub failure: Option<ScriptFailure>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    at: Nanos,
    /// Nobody could be connected to any more.
    stayed_away: bool,
}

/// The engine of one worker.
pub struct Engine<B: Backend> {
    settings: Settings,
    backend: B,
    protocols: Box<dyn FnMut() -> Protocol>,
    /// The requests that are started together: always the same, or what the script wrote last.
    batch: Vec<Request>,
    /// Whether it is one that no connection had room for, and that the next one takes.
    batch_waits: bool,
    /// The last request of the batch in its other form: as the last one on its connection, once that was needed.
    spare: Option<Request>,
    /// What asks a proxy for a tunnel.
    tunnel: Option<Request>,
    script: Caller,
    slots: Vec<Slot>,
    routes: Routes,
    timers: Timers,
    /// Slots that are to be opened, in turn.
    to_open: VecDeque<ConnId>,
    tally: Tally,
    random: Random,
    control: Arc<Control>,
    desk: Arc<Desk>,
    /// Connections that leave, or whose requests leave, with the next wait.
    gathered: Vec<ConnId>,
    /// How many completions were handled in the last turn.
    handled: usize,
    /// How many connections are being made.
    connecting: u64,
    /// When the last request or connect began, or something happened to one.
    awaited_since: Nanos,
    account: Account,
    standstills: Vec<Gap>,
    /// When everything begins to count.
    start: Nanos,
    end_at: Nanos,
    /// When the first connect failed since somebody was last connected.
    away_since: Option<Nanos>,
    refusal: Option<(SocketAddr, Cause)>,
    sampled_at: Nanos,
    sampled_completed: u64,
    script_noted_ns: u64,
    /// Busy-polling that has not been counted yet.
    spin: Option<Spin>,
}

impl<B: Backend> Engine<B> {
    /// An engine that has not started. `batch` is started together, unless `hooks`, its script, writes what is sent;
    /// `protocols` makes the protocol of each new connection.
    pub fn new(
        settings: Settings,
        backend: B,
        batch: Vec<Request>,
        protocols: Box<dyn FnMut() -> Protocol>,
        hooks: Option<Box<dyn Hooks>>,
        control: Arc<Control>,
        desk: Arc<Desk>,
    ) -> Self {
        if let Some(tls) = &settings.tls {
            tls.warm_up();
        }
        let tunnel = settings.tunnel.clone().map(Request::new);
        let transcript = settings.transcribe.then(Box::default);
        Self {
            slots: (0..settings.connections).map(|_| Slot::new(settings.tls.as_ref())).collect(),
            routes: Routes::new(&settings.addresses, settings.first_connection),
            timers: Timers::default(),
            to_open: VecDeque::new(),
            tally: Tally::new(settings.rules, settings.requests, transcript),
            random: Random::new(settings.seed),
            settings,
            backend,
            protocols,
            batch,
            batch_waits: false,
            spare: None,
            tunnel,
            script: Caller::new(hooks, Arc::clone(&desk), Arc::clone(&control.bodies)),
            control,
            desk,
            gathered: Vec::new(),
            handled: 0,
            connecting: 0,
            awaited_since: Nanos::default(),
            account: Account::default(),
            standstills: Vec::new(),
            start: Nanos::default(),
            end_at: Nanos::MAX,
            away_since: None,
            refusal: None,
            sampled_at: Nanos::default(),
            sampled_completed: 0,
            script_noted_ns: 0,
            spin: None,
        }
    }

    /// Has it read how long its thread was in the run queue, from the thread's `schedstat`, where there is one.
    pub fn with_schedstat(self, schedstat: Option<OwnedFd>) -> Self {
        Self { account: Account::new(schedstat), ..self }
    }

    /// Runs to the end of the plan.
    pub fn run(mut self) -> WorkerEnd {
        self.begin();
        loop {
            if let Some(end) = self.turn() {
                return self.finish(end);
            }
        }
    }

    /// One turn of the loop; says how the run has ended, if it has.
    fn turn(&mut self) -> Option<End> {
        let now = self.backend.now();
        let now = self.catch_up(now).min(self.end_at);
        for _ in 0..HANDLED_PER_TURN {
            let Some((due, timer)) = self.timers.take_due(now) else { break };
            self.fire(timer, due, now);
        }
        let stayed_away = self.has_stayed_away(now);
        if self.script.failure.is_some() {
            self.control.stop();
        }
        let is_stopped = self.control.is_stopped() || self.script.has_ended;
        if now == self.end_at || stayed_away || self.tally.is_done() || is_stopped {
            return Some(End { at: now, stayed_away });
        }
        self.open_some(self.handled, now);
        self.stamp();
        self.wait();
        self.handled = 0;
        while self.handled < HANDLED_PER_TURN
            && !self.script.has_ended
            && let Some(completion) = self.backend.next()
        {
            self.handled += 1;
            self.awaited_since = completion.at;
            if completion.at <= self.end_at {
                self.handle(completion);
            }
        }
        self.tally.interval.evidence.waited(self.handled);
        None
    }

    fn begin(&mut self) {
        let now = self.backend.now();
        let start = now + self.settings.warmup_ns;
        self.start = start;
        self.sampled_at = start;
        self.tally.start(start);
        self.account.restart();
        if start > now {
            // The end is known when the warm-up is over.
            self.tally.warm_up();
            self.timers.set(start, Timer::Start);
        } else {
            self.end_at = self.settings.duration_ns.map_or(Nanos::MAX, |duration_ns| start + duration_ns);
            self.timers.set(start + SAMPLE_NS, Timer::Sample);
        }
        self.timers.set(now + self.sweep_ns(), Timer::Sweep(ConnId(0)));
        // The first connection finds the way; the others follow when it is there.
        self.to_open.push_back(ConnId(0));
    }

    /// Stamps the requests and connects that leave with the wait that follows.
    fn stamp(&mut self) {
        self.tally.hand_over();
        if self.gathered.is_empty() {
            return;
        }
        let now = self.backend.now();
        for conn in self.gathered.drain(..) {
            let live = match &mut self.slots[conn.index()].state {
                State::Open(live) => live,
                State::Connecting(since) => {
                    *since = now;
                    continue;
                }
                State::Tunnelling(_) | State::Parked | State::Waiting => continue,
            };
            live.stamp(now);
        }
    }

    fn fire(&mut self, timer: Timer, due: Nanos, now: Nanos) {
        match timer {
            Timer::Reopen(conn) => self.to_open.push_back(conn),
            Timer::Begin(conn) => self.resume(conn, due, now),
            Timer::Wake(conn) => self.wake(conn, due, now),
            Timer::Sweep(ConnId(first)) => {
                let (all, next) = (self.settings.connections, first.saturating_add(SWEPT_PER_TURN));
                (first..next.min(all)).for_each(|number| self.sweep(ConnId(number), now));
                // In the next turn, when time has moved on.
                let (at, next) = if next < all { (now + 1, next) } else { (now + self.sweep_ns(), 0) };
                self.timers.set(at, Timer::Sweep(ConnId(next)));
                if self.tally.is_warming_up() {
                    self.desk.show_warm_up(self.tally.completed);
                    self.account.restart();
                }
            }
            Timer::Start => {
                // What was started before belongs to what was before.
                self.stamp();
                self.backend.wait(Nanos::default());
                self.count_from(now);
                self.timers.set(now + SAMPLE_NS, Timer::Sample);
            }
            Timer::Sample => {
                self.sample(now);
                self.note_script_time();
                self.hand_over(now);
                // Intervals end on whole multiples of their length, however late the one before was.
                let next_ns = (now.since(self.start) / SAMPLE_NS + 1) * SAMPLE_NS;
                self.timers.set(self.start + next_ns, Timer::Sample);
            }
        }
    }

    /// The warm-up is over: nothing that happened counts. Requests in flight do, with their whole latency, when they end.
    fn count_from(&mut self, now: Nanos) {
        self.desk.show_delay(now.since(self.start));
        self.count_sent();
        self.settle_spin();
        self.start = now;
        self.end_at = self.settings.duration_ns.map_or(Nanos::MAX, |duration_ns| now + duration_ns);
        self.sampled_at = now;
        self.sampled_completed = self.tally.completed;
        self.desk.show_warm_up(self.tally.completed);
        self.account.restart();
        self.script_noted_ns = self.script.spent_ns();
        self.slots.iter_mut().for_each(|slot| slot.is_counted = matches!(slot.state, State::Open(_)));
        let open = self.slots.iter().filter(|slot| slot.is_counted).count();
        self.tally.count_from(now, open as u64);
        self.forget_occupancy();
        // Who was late before is late in what counts, too.
        self.slots.iter_mut().filter_map(Slot::live).for_each(Live::forget_late);
        // What the connections that are kept have agreed on is in use, though nobody measured how they came to it.
        let kept = self.slots.iter().filter(|slot| slot.is_counted).filter_map(|slot| slot.link.as_ref());
        kept.for_each(|link| self.tally.interval.handshakes.found(link.negotiated().0, 1));
    }

    /// Gives the watcher what was recorded since the last time. An interval ends when it was due to, so that it lies in one
    /// row of the time line, and the turn of the loop in which that happened still belongs to it.
    fn hand_over(&mut self, now: Nanos) {
        self.count_sent();
        self.settle_spin();
        self.tally.interval.evidence += self.account.take();
        let until_ns = now.since(self.start) / SAMPLE_NS * SAMPLE_NS;
        self.tally.interval.until_ns = until_ns;
        if self.desk.mailbox.hand_over(&mut self.tally.interval) {
            self.tally.interval.from_ns = until_ns;
        }
    }

    /// Counts the bytes that the kernel has taken since the last time. What they are worth before they are encrypted only
    /// the link knows.
    fn count_sent(&mut self) {
        let taken = self.backend.taken();
        if self.settings.tls.is_none() {
            self.tally.interval.counters.bytes_sent += taken;
        }
    }

    /// How often to look for requests that take too long: often enough for the shorter limit to mean something.
    fn sweep_ns(&self) -> u64 {
        let limits = [self.settings.rules.timeout_ns, self.settings.give_up_ns];
        let shortest = limits.into_iter().flatten().min().unwrap_or(u64::MAX);
        (shortest / 16).clamp(1_000_000, SAMPLE_NS)
    }

    /// Records the rate since the last sample. Where idle stretches are left out, they grow until something happens.
    fn sample(&mut self, now: Nanos) {
        let Scale { rate_unit_ns: unit_ns, omits, .. } = self.settings.rules.scale;
        let elapsed = now.since(self.sampled_at) / unit_ns;
        let completed = self.tally.completed - self.sampled_completed;
        if elapsed == 0 || (omits && completed == 0) {
            return;
        }
        self.tally.interval.rates.record(completed * (1_000_000_000 / unit_ns) / elapsed);
        self.sampled_completed = self.tally.completed;
        self.sampled_at = now;
    }

    /// Whether a run that only ends when its requests do has waited long enough for its target.
    fn has_stayed_away(&self, now: Nanos) -> bool {
        let away_ns = self.away_since.map_or(0, |since| now.since(since));
        self.settings.duration_ns.is_none() && self.away_since.is_some() && away_ns >= self.settings.patience_ns
    }

    /// Takes note of the time spent inside the script since the last note.
    fn note_script_time(&mut self) {
        let spent_ns = self.script.spent_ns();
        // An estimate may turn out to have been too high.
        self.tally.interval.evidence.script_ns += spent_ns.saturating_sub(self.script_noted_ns);
        self.script_noted_ns = self.script_noted_ns.max(spent_ns);
    }

    fn finish(mut self, End { at: now, stayed_away }: End) -> WorkerEnd {
        self.hear_connects(now);
        self.backend.stop();
        self.count_sent();
        self.settle_spin();
        self.occupy_to_the_end(now);
        for slot in &mut self.slots {
            match &mut slot.state {
                State::Open(live) => live.leave_open(now, &mut self.tally),
                State::Connecting(since) if now.since(*since) >= UNANSWERED_NS => {
                    let address = self.routes.address(slot.route);
                    let has_begun = slot.link.as_ref().is_some_and(|link| link.has_begun());
                    let phase = if has_begun { Phase::Tls } else { Phase::Connect };
                    self.tally.error(phase, Cause::Unanswered, now, || address.to_string().into_bytes());
                }
                State::Tunnelling(tunnel) if now.since(tunnel.since) >= UNANSWERED_NS => {
                    self.tally.error(Phase::Connect, Cause::Proxy(ProxyFailure::Unanswered), now, Vec::new);
                }
                State::Connecting(_) | State::Tunnelling(_) | State::Parked | State::Waiting => {}
            }
        }
        self.tally.count_ended();
        if self.tally.is_warming_up() {
            // It ended before anything counted.
            self.count_from(now);
        }
        // A short run has its rate too; a worker that had nothing to send has none. The rest behind the last sample counts
        // if it is long enough to say something, unless something is left out anyway.
        let is_long = now.since(self.sampled_at) >= SAMPLE_NS / 2 && !self.settings.rules.scale.omits;
        if (is_long || self.sampled_at == self.start) && self.settings.requests != Some(0) {
            self.sample(now);
        }
        self.note_script_time();
        self.tally.interval.evidence += self.account.take();
        self.tally.interval.until_ns = now.since(self.start);
        WorkerEnd {
            connections: self.settings.connections,
            interval: self.tally.interval,
            elapsed_ns: now.since(self.start),
            stayed_away,
            refusal: self.refusal,
            dropped: self.routes.dropped(),
            working: self.routes.working(),
            transcript: self.tally.transcript,
            silences: if self.script.wants.delay { Vec::new() } else { self.tally.silences.into_gaps() },
            standstills: self.standstills,
            pauses: self.script.wants.delay,
            failure: self.script.failure,
        }
    }
}
