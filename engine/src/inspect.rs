//! Inspects an engine between two turns of its loop, for random runs: nothing may wait forever or be kept without need.

use onrush_proto::{Client, Nanos};

use super::Engine;
use super::backend::{Backend, ConnId};
use super::connection::Live;
use super::demand::Demand;
use super::end::{End, WorkerEnd};
use super::slot::{Pauses, Slot, State};
use super::timers::Timer;

/// State of a connection in the backend that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// Not open.
    #[default]
    Closed,
    /// The connect is in progress.
    Connecting,
    /// Open.
    Open,
    /// Open, and a send has failed.
    Broken,
    /// The end of the connection has been reported.
    Over,
}

/// A connection as the backend sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// State of the connection.
    pub state: ConnectionState,
    /// Number of bytes of the current send that have not been accepted.
    pub unsent: usize,
}

impl<B: Backend> Engine<B> {
    /// Takes one turn. Returns how the run ended, if it has.
    pub fn step(&mut self) -> Option<Over> {
        self.take_turn().map(Over)
    }

    /// Ends the engine and returns its results.
    pub fn step_out(self, Over(end): Over) -> WorkerEnd {
        self.into_worker_end(end).0
    }

    /// The engine's backend.
    pub fn backend(&mut self) -> &mut B {
        &mut self.roster.backend
    }

    /// Number of complete responses since the start, including the warm-up.
    pub fn completed_in_all(&self) -> u64 {
        self.books.tally.completed
    }

    /// The number of wanted connections, and the time since which a due request has waited for another one. `None`
    /// unless another connection may be opened and none is being opened; the next turn then opens one.
    pub fn connection_demand(&self, now: Nanos) -> Option<(u32, Nanos)> {
        let start_at = self.dispatch.next_start_at(&self.books.tally);
        let is_waiting = start_at <= now && now < self.books.end_at && !self.dispatch.can_start(&self.books.tally);
        let catches_up = self.dispatch.crowding.is_catching_up();
        let may_open = self.may_open_more() && !catches_up && self.roster.connecting.missing == 0;
        (is_waiting && may_open).then_some((self.roster.connecting.wanted, start_at))
    }

    /// The first broken invariant found between two turns, in words. `seen`: the backend's view of the connections;
    /// `most`: limit on requests in flight per connection. `None` also after the end of the run, when arrivals are no
    /// longer handled.
    pub fn broken_invariant(&self, now: Nanos, seen: &[Seen], most: usize) -> Option<String> {
        if now > self.books.end_at {
            // Later arrivals are no longer handled.
            return None;
        }
        let mut agenda = vec![Agenda::default(); self.roster.slots.len()];
        self.roster.connecting.queue.iter().for_each(|conn| agenda[conn.index()].turns += 1);
        self.dispatch.ready_slots().for_each(|conn| agenda[conn.index()].is_ready = true);
        let (mut sweeps, mut samples, mut level_at) = (0, 0, Nanos::MAX);
        for (at, timer) in self.timers.iter() {
            match timer {
                Timer::Reopen(conn) => agenda[conn.index()].reopens = true,
                Timer::Begin(conn) => agenda[conn.index()].begins += 1,
                Timer::Rested(conn) => agenda[conn.index()].rests += 1,
                Timer::Wake(_) => {}
                Timer::Sweep(_) => sweeps += 1,
                Timer::Start | Timer::Sample => samples += 1,
                Timer::Level => level_at = level_at.min(at),
                Timer::Look => {}
            }
        }
        if (sweeps, samples) != (1, 1) {
            return Some(format!("{sweeps} timers to sweep, {samples} to sample or to start"));
        }
        if let Demand::Staged(levels) = &self.roster.config.demand
            && level_at > now
            && let (level, _) = levels.connections_at(now.since(self.books.tally.due_from()))
            && level.min(self.roster.config.max_inflight) != self.roster.connecting.wanted
        {
            return Some(format!("{level} connections by the plan, {} wanted", self.roster.connecting.wanted));
        }
        let in_flight: usize = self.roster.slots.iter().filter_map(open_requests).sum();
        if self.books.tally.in_flight() != in_flight as u64 {
            return Some(format!("{} requests in the books, {in_flight} on connections", self.books.tally.in_flight()));
        }
        self.roster.slots.iter().zip(seen).zip(&agenda).enumerate().find_map(|(number, ((slot, seen), agenda))| {
            self.broken_invariant_of(number as u32, slot, *seen, agenda, most)
                .map(|flaw| format!("connection {number}: {flaw}"))
        })
    }

    /// The fault, in words, if time moved on although a request was due and a connection was ready for it.
    pub fn held_up(&self, now: Nanos) -> Option<String> {
        let next_at = self.dispatch.next_start_at(&self.books.tally);
        let is_held_up = self.dispatch.can_start(&self.books.tally)
            && self.books.tally.may_start()
            && (Nanos(1)..now).contains(&next_at);
        is_held_up.then(|| format!("a request might have left at {} ns, and a connection was ready", next_at.0))
    }

    /// A broken invariant of one connection.
    fn broken_invariant_of(
        &self,
        number: u32,
        slot: &Slot,
        seen: Seen,
        agenda: &Agenda,
        most: usize,
    ) -> Option<String> {
        let is_needed = self.roster.wants_connection(ConnId(number));
        let expected = match &slot.state {
            State::Parked | State::Queued | State::Waiting => ConnectionState::Closed,
            State::Connecting(_) => ConnectionState::Connecting,
            State::Tunnelling(_) | State::Open(_) => ConnectionState::Open,
        };
        let is_broken = seen.state == ConnectionState::Broken && expected == ConnectionState::Open;
        if seen.state != expected && !is_broken {
            return Some(format!("{:?} to the backend, {expected:?} to the engine", seen.state));
        }
        let is_wanted = self.is_short(most) && self.roster.connecting.routes.has_working_address();
        if slot.is_queued != agenda.is_ready {
            return Some(format!("ready to the engine: {}, in the list: {}", slot.is_queued, agenda.is_ready));
        }
        if slot.resting != agenda.rests {
            return Some(format!("{} requests rest, with {} timers", slot.resting, agenda.rests));
        }
        match &slot.state {
            State::Open(_) | State::Connecting(_) | State::Tunnelling(_) if agenda.turns > 0 => {
                Some("it will be opened again".to_owned())
            }
            State::Connecting(_) | State::Tunnelling(_) if !is_needed => Some("it is opened without need".to_owned()),
            State::Open(live) if !is_needed && (!live.draining || live.open.is_empty()) => {
                Some("it is kept without need".to_owned())
            }
            State::Queued if agenda.turns != 1 => Some(format!("it will be opened {} times", agenda.turns)),
            State::Parked | State::Waiting if agenda.turns > 0 => Some("it will be opened unnoticed".to_owned()),
            State::Parked if is_wanted && is_needed => Some("it is never opened".to_owned()),
            State::Waiting if !agenda.reopens => Some("it is never opened again".to_owned()),
            State::Open(_) if self.dispatch.limit.is_some_and(|limit| limit.share_of_rank(slot.rank) == 0) => None,
            State::Open(live) => self.flaw_of_live(live, slot.pauses, seen, agenda, most),
            _ => None,
        }
    }

    /// True if no connection may be idle. A request from a batch may be returned after all were started: its connection
    /// sends it again, or the next sweep does.
    fn is_short(&self, most: usize) -> bool {
        let may_come_back = self.roster.config.requests.is_some() && most > 1;
        self.books.tally.may_start() && !may_come_back
    }

    fn flaw_of_live(&self, live: &Live, pauses: Pauses, seen: Seen, agenda: &Agenda, most: usize) -> Option<String> {
        if seen.state == ConnectionState::Open && live.unsent != seen.unsent {
            return Some(format!("{} bytes are unsent to the engine, {} to the backend", live.unsent, seen.unsent));
        }
        if live.open.len() > most {
            return Some(format!("{} requests in flight", live.open.len()));
        }
        let waits = match pauses.lasting {
            0 => !self.is_short(most) || self.dispatch.script.has_ended,
            lasting => agenda.begins == lasting,
        };
        let is_over = live.draining || live.send_error.is_some() || live.protocol.is_unasked();
        let is_idle = live.open.is_empty() && !agenda.is_ready && !is_over;
        let may_start = live.depth > agenda.rests as usize && live.protocol.capacity() > agenda.rests as usize;
        (is_idle && !waits && (agenda.rests == 0 || may_start))
            .then(|| format!("it has nothing to do, with requests to start: {pauses:?}"))
    }
}

/// Timers set for a connection.
#[derive(Clone, Debug, Default)]
struct Agenda {
    /// Number of times the connection is in the queue of slots to be opened.
    turns: usize,
    /// True if the connection is in the ready list.
    is_ready: bool,
    /// True if a timer will reopen the connection.
    reopens: bool,
    /// Number of timers that begin a batch.
    begins: u32,
    /// Number of timers that let a request start again where one was turned away.
    rests: u32,
}

fn open_requests(slot: &Slot) -> Option<usize> {
    match &slot.state {
        State::Open(live) => Some(live.open.len()),
        State::Parked | State::Queued | State::Connecting(_) | State::Tunnelling(_) | State::Waiting => None,
    }
}

/// The end of a run, as [`Engine::take_turn`] returns it.
pub struct Over(End);

impl Over {
    /// The time at which the run ended.
    pub fn at(&self) -> Nanos {
        self.0.at
    }
}
