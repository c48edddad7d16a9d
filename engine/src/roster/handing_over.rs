//! Replaces a connection that the server ends after the requests in flight (GOAWAY): at once, so that connecting costs
//! no load, unless the server sends one connection after another away before answering anything. Predecessor and
//! successor together have no more requests in flight than one connection may have.

use onrush_proto::Nanos;

use super::{Context, Roster};
use crate::backend::{Backend, ConnId};
use crate::slot::State;

/// Number of consecutive connections replaced at once although they were sent away before a response: as many as a slow
/// server may need if it ends each connection early.
const SENT_AWAY_MAX: u32 = 16;

impl<B: Backend> Roster<B> {
    /// Opens a successor for a connection that only finishes its requests, if a slot is free.
    pub(super) fn open_successor(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        let books = &mut *cx.books;
        let is_free = |slot: &ConnId| {
            let slot = &self.slots[slot.index()];
            matches!(slot.state, State::Parked) && slot.successor.is_none()
        };
        let free = self.order[self.config.max_inflight as usize..].iter().copied().find(is_free);
        let Some(next) = free.filter(|_| books.tally.may_start() && self.wants_connection(conn)) else { return };
        self.count_slot_time(conn, books, at);
        self.count_slot_time(next, books, at);
        let [old, new] = [conn, next].map(|conn| self.slots[conn.index()].rank);
        (self.slots[conn.index()].rank, self.slots[next.index()].rank) = (new, old);
        self.order.swap(old as usize, new as usize);
        // The successor is one of the planned connections, not an additional one.
        let (lived, is_counted) = (self.slots[conn.index()].lived, self.slots[conn.index()].is_counted);
        let before = &mut self.slots[conn.index()];
        before.successor = Some(next);
        let is_answered = before.open_connection().is_some_and(|live| live.answered);
        let (sent_away, failures) = (if is_answered { 0 } else { before.sent_away + 1 }, before.failures);
        let slot = &mut self.slots[next.index()];
        (slot.lived, slot.is_counted, slot.sent_away, slot.failures) = (lived, is_counted, sent_away, failures);
        if sent_away > SENT_AWAY_MAX {
            self.back_off_slot(next, true, cx, at);
        } else {
            self.queue_to_open(next, books, at);
        }
    }
}
