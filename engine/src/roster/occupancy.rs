//! Occupancy of slots while measuring, and the requests that a connection leaves to its successor.

use onrush_proto::Nanos;

use super::Roster;
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::slot::{Slot, State};

impl<B: Backend> Roster<B> {
    /// Changes the state of a slot.
    pub(super) fn set_slot_state(&mut self, conn: ConnId, state: State, books: &mut Books, now: Nanos) {
        self.count_slot_time(conn, books, now);
        let mut before = std::mem::replace(&mut self.slots[conn.index()].state, state);
        if let State::Open(live) = &mut before {
            live.protocol.count_so_far(now);
        }
        let after = &self.slots[conn.index()].state;
        let is_connecting = |state: &State| matches!(state, State::Connecting(_) | State::Tunnelling(_));
        let is_missing = |state: &State| match state {
            State::Open(live) => live.leaving_since.is_some(),
            State::Queued | State::Waiting => true,
            state => is_connecting(state),
        };
        let connecting = &mut self.connecting;
        connecting.under_way -= u64::from(is_connecting(&before));
        connecting.under_way += u64::from(is_connecting(after));
        connecting.missing -= u32::from(is_missing(&before));
        connecting.missing += u32::from(is_missing(after));
        if self.slots[conn.index()].successor.is_some() {
            self.update_successor(conn);
        }
    }

    /// Adds the time since the slot was last counted to its present state.
    pub(super) fn count_slot_time(&mut self, conn: ConnId, books: &mut Books, now: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let since = slot.counted_until.max(books.start);
        let spent_ns = now.since(since);
        slot.counted_until = now;
        let is_needed = books.tally.may_start() && slot.rank < self.connecting.wanted;
        let is_stand_in = slot.rank >= self.config.max_inflight;
        let occupancy = &mut books.tally.interval.counters.occupancy;
        match &slot.state {
            State::Open(live) => {
                occupancy.open_ns += spent_ns;
                occupancy.leaving_ns += live.leaving_since.map_or(0, |leaving| now.since(leaving.max(since)));
            }
            State::Parked if is_stand_in => {}
            State::Parked if !is_needed => occupancy.done_ns += spent_ns,
            // A slot that has had no connection so far may never get one.
            _ if !slot.lived => slot.absent_ns += spent_ns,
            State::Waiting => occupancy.waiting_ns += spent_ns,
            State::Parked | State::Queued | State::Connecting(_) | State::Tunnelling(_) => {
                occupancy.connecting_ns += spent_ns;
            }
        }
    }

    /// Passes to a connection's successor, if any, the number of requests still in flight here, and resets its count of
    /// connections sent away if there has been a response.
    pub(super) fn update_successor(&mut self, conn: ConnId) {
        let slot = &mut self.slots[conn.index()];
        let Some(next) = slot.successor else { return };
        let before = slot.inherited;
        let left = before + slot.open_connection().map_or(0, |live| live.open.len() as u32);
        if left == 0 {
            slot.successor = None;
        }
        let sent_away = if slot.open_connection().is_some_and(|live| live.answered) { 0 } else { slot.sent_away + 1 };
        let heir = &mut self.slots[next.index()];
        heir.sent_away = heir.sent_away.min(sent_away);
        if std::mem::replace(&mut heir.inherited, left) != left {
            self.relieved.push(next);
            // The successor may itself have a successor by now.
            self.update_successor(next);
        }
    }

    /// Forgets what slots did before the start of the measured window.
    pub fn forget_occupancy(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.absent_ns = 0);
    }

    /// Counts the slots' states at the end of the run. Slots without further requests are done.
    pub fn count_slot_times_at_end(&mut self, books: &mut Books, now: Nanos) {
        (0..self.slots.len() as u32).for_each(|number| self.count_slot_time(ConnId(number), books, now));
        let never_needed = u64::from(self.config.slots()) - self.slots.len() as u64;
        books.tally.interval.counters.occupancy.done_ns += never_needed * now.since(books.start);
        if !books.tally.may_start() {
            let start = books.start;
            let idle = self.slots.iter_mut().filter_map(Slot::open_connection).filter(|live| live.open.is_empty());
            let done_ns: u64 = idle.map(|live| now.since(live.idle_since.max(start))).sum();
            let occupancy = &mut books.tally.interval.counters.occupancy;
            occupancy.done_ns += done_ns;
            occupancy.finished_ns += done_ns;
        }
        let absent_ns: u64 = self.slots.iter().filter(|slot| !slot.lived).map(|slot| slot.absent_ns).sum();
        books.tally.interval.counters.occupancy.absent_ns += absent_ns;
    }
}
