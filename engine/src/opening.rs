//! How many connections there are, and when they are opened: a few in every turn of the loop, so that responses are
//! handled while thousands connect.

use onrush_proto::Nanos;

use super::connecting::Connecting;
use super::demand::Demand;
use super::slot::{Slot, State};
use super::timers::Timer;
use super::{Engine, UNANSWERED_NS};
use crate::backend::{Backend, Completion, ConnId, What};

/// How many connections are opened in a turn of the loop that handled no completion.
const OPENED_PER_TURN: usize = 8;
/// For each this many completions one more is opened. A connection with one request has at least two completions:
/// however short connections are, each is replaced in the same turn.
const HANDLED_FOR_ONE: usize = 2;
/// The most connections closed in a turn of the loop when there are to be fewer.
const CLOSED_PER_TURN: u32 = 256;
/// The most connections opened in a turn. A connect takes about 30 µs: responses that arrive meanwhile wait 2 ms at
/// most.
const OPENED_MAX: usize = 64;

/// How many connections may be opened after this many completions.
pub(super) const fn opened_per_turn(handled: usize) -> usize {
    let opened = OPENED_PER_TURN + handled / HANDLED_FOR_ONE;
    if opened < OPENED_MAX { opened } else { OPENED_MAX }
}

impl<B: Backend> Engine<B> {
    /// Gives the first `wanted` slots a connection, and no others.
    pub(super) fn want(&mut self, wanted: u32, now: Nanos) {
        self.count_all_busy(now);
        let before = self.connecting.wanted;
        // Until now they were needed, or were not.
        (before.min(wanted)..before.max(wanted)).for_each(|number| self.occupy(ConnId(number), now));
        self.connecting.wanted = wanted;
        if wanted > 0 {
            self.worker_link.show_idle(false);
        }
        self.open_wanted(before, now);
        (wanted..before).for_each(|number| self.retire(ConnId(number), now));
    }

    /// Opens the idle slots from this one on that should have a connection. The first of all finds the address; the
    /// others follow when it is established.
    pub(super) fn open_wanted(&mut self, first: u32, now: Nanos) {
        let wanted =
            if self.connecting.routes.found() { self.connecting.wanted } else { self.connecting.wanted.min(1) };
        for number in first..wanted {
            if let State::Parked = self.slots[number as usize].state {
                self.open_soon(ConnId(number), now);
            }
        }
    }

    /// Makes a slot give up its connection, after the responses to its requests in flight.
    fn retire(&mut self, conn: ConnId, now: Nanos) {
        match &mut self.slots[conn.index()].state {
            State::Open(live) => {
                (live.draining, live.leaves_at_once) = (true, true);
                self.settle(conn, now);
            }
            State::Connecting(_) | State::Tunnelling(_) => {
                self.backend.close(conn);
                self.enter(conn, State::Parked, now);
            }
            // These find out when their turn comes.
            State::Parked | State::Queued | State::Waiting => {}
        }
    }

    /// Moves to the number of connections that the plan has by now, closing only some in every turn.
    pub(super) fn follow_levels(&mut self, now: Nanos) {
        let Demand::Staged(levels) = &self.config.demand else { return };
        let planned = self.books.tally.due_from();
        let (level, change_ns) = levels.at(now.since(planned));
        let level = level.min(self.config.max_inflight);
        let wanted = level.max(self.connecting.wanted.saturating_sub(CLOSED_PER_TURN));
        let next_at = match change_ns {
            _ if wanted > level => now + 1,
            u64::MAX => Nanos::MAX,
            change_ns => planned + change_ns,
        };
        self.want(wanted, now);
        if next_at < Nanos::MAX {
            self.timers.set(next_at, Timer::Level);
        }
    }

    /// Opens more connections while due requests wait for one: at a time no more than there are waiting requests, and
    /// no more than there are connections, so that the number at most doubles per connect time. What waits because the
    /// worker was stalled is no sign that there are too few.
    pub(super) fn open_more(&mut self, now: Nanos) {
        if !self.may_open_more() || self.is_catching_up(now) || self.has_ready() || self.next_start_at() > now {
            return;
        }
        let Connecting { wanted, missing, .. } = self.connecting;
        let most = (wanted - missing).min(OPENED_MAX as u32);
        if missing < most {
            let more = self.connections_due(now, most).saturating_sub(missing);
            self.want(wanted + more.min(self.config.max_inflight - wanted), now);
        }
    }

    /// Whether another connection may be opened when a due request waits for one.
    pub(super) fn may_open_more(&self) -> bool {
        self.connecting.wanted < self.config.max_inflight
            && matches!(self.config.demand, Demand::Growing(_))
            && self.connecting.routes.found()
            && self.books.tally.may_start()
    }

    /// Queues a slot to be opened.
    pub(super) fn open_soon(&mut self, conn: ConnId, now: Nanos) {
        self.enter(conn, State::Queued, now);
        self.connecting.queue.push_back(conn);
    }

    /// Opens some of the queued slots; `handled`: how many completions the last turn handled.
    pub(super) fn open_some(&mut self, handled: usize, now: Nanos) {
        for _ in 0..opened_per_turn(handled) {
            let Some(conn) = self.connecting.queue.pop_front() else { break };
            if self.books.tally.may_start() && self.connecting.wants(conn) {
                self.open(conn, now);
            } else {
                self.enter(conn, State::Parked, now);
            }
        }
    }

    /// Gives a slot a connection that an earlier session left, or starts a connect.
    fn open(&mut self, conn: ConnId, now: Nanos) {
        if let Some(address) = self.script.address() {
            self.connecting.routes.direct_to(address);
        }
        let (route, address) = self.connecting.routes.choose();
        let slot = &mut self.slots[conn.index()];
        if let Some(link) = &mut slot.link {
            link.end();
        }
        slot.route = route;
        self.turn.awaited_since = now;
        if self.adopt(conn, address, now) {
            return;
        }
        self.enter(conn, State::Connecting(now), now);
        if B::GATHERS {
            self.turn.gathered.push(conn);
        }
        if let Some(transcript) = &mut self.books.tally.transcript {
            transcript.connecting = now;
        }
        self.backend.connect(conn, address);
    }

    /// Finds the connects that have succeeded or failed but were not handled in time: they are not errors of the
    /// target.
    pub(super) fn hear_connects(&mut self, now: Nanos) {
        let is_overdue =
            |slot: &Slot| matches!(slot.state, State::Connecting(since) if now.since(since) >= UNANSWERED_NS);
        if !self.slots.iter().any(is_overdue) {
            return;
        }
        // Bounded, because other completions keep arriving and the run is over.
        for _ in 0..2 * self.slots.len() {
            match self.backend.next() {
                Some(Completion { what: What::Sent(_), .. }) => {}
                Some(Completion { conn, .. }) => {
                    if matches!(self.slots[conn.index()].state, State::Connecting(_)) {
                        self.enter(conn, State::Parked, now);
                    }
                }
                None if self.backend.reap() => {}
                None => break,
            }
        }
    }
}
