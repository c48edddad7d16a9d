//! How many connections there are, and when they are opened: some in every turn of the loop, so that answers are served while
//! thousands connect.

use onrush_proto::Nanos;

use super::connecting::Connecting;
use super::demand::Demand;
use super::slot::{Slot, State};
use super::timers::Timer;
use super::{Engine, UNANSWERED_NS};
use crate::backend::{Backend, Completion, ConnId, What};

/// So many connections are opened in a turn of the loop in which there was nothing else to do.
const OPENED_PER_TURN: usize = 8;
/// One more is opened for so many completions. A connection that serves one request has at least two: however short
/// connections live, none has to wait for a later turn to be replaced.
const HANDLED_FOR_ONE: usize = 2;
/// At most this many connections are closed in a turn of the loop because there are to be fewer.
const CLOSED_PER_TURN: u32 = 256;
/// The most that are opened in a turn. A connect takes some 30 µs: answers that arrive meanwhile wait for 2 ms at most.
const OPENED_MAX: usize = 64;

/// How many connections may be opened after so many completions.
pub(super) const fn opened_per_turn(handled: usize) -> usize {
    let opened = OPENED_PER_TURN + handled / HANDLED_FOR_ONE;
    if opened < OPENED_MAX { opened } else { OPENED_MAX }
}

impl<B: Backend> Engine<B> {
    /// Has the first `wanted` slots keep a connection, and no others.
    pub(super) fn want(&mut self, wanted: u32, now: Nanos) {
        self.count_all_busy(now);
        let before = self.connecting.wanted;
        // Up to now they were needed, or were not.
        (before.min(wanted)..before.max(wanted)).for_each(|number| self.occupy(ConnId(number), now));
        self.connecting.wanted = wanted;
        if wanted > 0 {
            self.desk.show_idle(false);
        }
        self.open_wanted(before, now);
        (wanted..before).for_each(|number| self.retire(ConnId(number), now));
    }

    /// Has the slots from that one on opened that are to have a connection and do nothing. The first of all finds the way; the
    /// others follow when it is there.
    pub(super) fn open_wanted(&mut self, first: u32, now: Nanos) {
        let wanted =
            if self.connecting.routes.found() { self.connecting.wanted } else { self.connecting.wanted.min(1) };
        for number in first..wanted {
            if let State::Parked = self.slots[number as usize].state {
                self.open_soon(ConnId(number), now);
            }
        }
    }

    /// A slot is to have no connection any more: it closes the one that it has when the answers in flight are there.
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
            // Those find out when their turn comes.
            State::Parked | State::Queued | State::Waiting => {}
        }
    }

    /// Goes over to as many connections as there are to be by now. It closes some in every turn.
    pub(super) fn follow_levels(&mut self, now: Nanos) {
        let Demand::Staged(levels) = &self.settings.demand else { return };
        let planned = self.books.tally.due_from();
        let (level, change_ns) = levels.at(now.since(planned));
        let level = level.min(self.settings.max_inflight);
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

    /// Has further connections opened while due requests wait for one: no more at a time than requests wait, and than there
    /// are already, so that their number at most doubles in the time of a connect. What waits because the worker stood still
    /// is no sign that there are too few.
    pub(super) fn open_more(&mut self, now: Nanos) {
        if !self.may_open_more() || self.is_catching_up(now) || self.has_ready() || self.next_start_at() > now {
            return;
        }
        let Connecting { wanted, missing, .. } = self.connecting;
        let most = (wanted - missing).min(OPENED_MAX as u32);
        if missing < most {
            let more = self.connections_due(now, most).saturating_sub(missing);
            self.want(wanted + more.min(self.settings.max_inflight - wanted), now);
        }
    }

    /// Whether another connection may be opened where a due request waits for one.
    pub(super) fn may_open_more(&self) -> bool {
        self.connecting.wanted < self.settings.max_inflight
            && matches!(self.settings.demand, Demand::Growing(_))
            && self.connecting.routes.found()
            && self.books.tally.may_start()
    }

    /// Has a slot opened when its turn comes.
    pub(super) fn open_soon(&mut self, conn: ConnId, now: Nanos) {
        self.enter(conn, State::Queued, now);
        self.connecting.queue.push_back(conn);
    }

    /// Opens some of the slots that are to be opened, when so many completions have been handled in the last turn.
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

    /// Gives a slot a connection that an earlier session has left, or starts to connect it.
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

    /// Hears of connects that have been answered and that nobody has looked at yet, for want of time: they are no errors
    /// of the other side.
    pub(super) fn hear_connects(&mut self, now: Nanos) {
        let is_overdue =
            |slot: &Slot| matches!(slot.state, State::Connecting(since) if now.since(since) >= UNANSWERED_NS);
        if !self.slots.iter().any(is_overdue) {
            return;
        }
        // Whatever else arrives, and however long, the end is near.
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
