//! How a connection takes the place of another, which the server ends after the requests in flight (GOAWAY): at once, so
//! that connecting costs no load. Together they have no more requests in flight than one may have.

use onrush_proto::Nanos;

use super::Roster;
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::slot::State;

impl<B: Backend> Roster<B> {
    /// Opens a connection in the place of one that only finishes its requests, if a slot is free for it.
    pub(super) fn open_successor(&mut self, conn: ConnId, books: &mut Books, at: Nanos) {
        let is_free = |slot: &ConnId| {
            let slot = &self.slots[slot.index()];
            matches!(slot.state, State::Parked) && slot.successor.is_none()
        };
        let free = self.order[self.config.max_inflight as usize..].iter().copied().find(is_free);
        let Some(next) = free.filter(|_| books.tally.may_start() && self.wants(conn)) else { return };
        self.occupy(conn, books, at);
        self.occupy(next, books, at);
        let [old, new] = [conn, next].map(|conn| self.slots[conn.index()].rank);
        (self.slots[conn.index()].rank, self.slots[next.index()].rank) = (new, old);
        self.order.swap(old as usize, new as usize);
        // As one of those that there should be, it is not another one.
        let (lived, is_counted) = (self.slots[conn.index()].lived, self.slots[conn.index()].is_counted);
        let slot = &mut self.slots[next.index()];
        (slot.lived, slot.is_counted) = (lived, is_counted);
        self.slots[conn.index()].successor = Some(next);
        self.open_soon(next, books, at);
    }
}
