//! When connections are opened: some in every turn of the loop, so that answers are served while thousands connect.

use onrush_proto::Nanos;

use super::slot::{Slot, State};
use super::{Engine, UNANSWERED_NS};
use crate::backend::{Backend, Completion, ConnId, What};

/// So many connections are opened in a turn of the loop in which there was nothing else to do.
const OPENED_PER_TURN: usize = 8;
/// One more is opened for so many completions. A connection that serves one request has at least two: however short
/// connections live, none has to wait for a later turn to be replaced.
const HANDLED_FOR_ONE: usize = 2;
/// The most that are opened in a turn. A connect takes some 30 µs: answers that arrive meanwhile wait for 2 ms at most.
const OPENED_MAX: usize = 64;

/// How many connections may be opened after so many completions.
pub(super) const fn opened_per_turn(handled: usize) -> usize {
    let opened = OPENED_PER_TURN + handled / HANDLED_FOR_ONE;
    if opened < OPENED_MAX { opened } else { OPENED_MAX }
}

impl<B: Backend> Engine<B> {
    /// Has a slot opened when its turn comes.
    pub(super) fn open_soon(&mut self, conn: ConnId, now: Nanos) {
        self.enter(conn, State::Parked, now);
        self.connecting.queue.push_back(conn);
    }

    /// Opens some of the slots that are to be opened, when so many completions have been handled in the last turn.
    pub(super) fn open_some(&mut self, handled: usize, now: Nanos) {
        for _ in 0..opened_per_turn(handled) {
            let Some(conn) = self.connecting.queue.pop_front() else { break };
            if self.books.tally.may_start() {
                self.open(conn, now);
            } else {
                self.enter(conn, State::Parked, now);
            }
        }
    }

    /// Starts to connect a slot.
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
