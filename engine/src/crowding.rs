//! How long due requests wait because every connection is busy: it has a request in flight, or pauses for the script.
//!
//! While a connection is missing, while the plan wants none, or while the worker is stalled, requests wait for
//! something else, and more connections would not help.

use onrush_proto::Nanos;

use super::Engine;
use super::pacer::Pacer;
use crate::backend::Backend;

/// How long due requests have waited for nothing but a connection.
#[derive(Debug, Default)]
pub(super) struct Crowding {
    /// Counted up to here.
    counted_until: Nanos,
    /// Since when the waiting requests have waited for nothing else.
    since: Nanos,
    /// Until when the worker makes up for a stall, unless it has caught up before.
    catching_up_until: Option<Nanos>,
}

impl Crowding {
    /// Whether the worker is making up for a stall.
    pub fn is_catching_up(&self) -> bool {
        self.catching_up_until.is_some()
    }

    /// No due request waits any more.
    pub fn has_caught_up(&mut self) {
        self.catching_up_until = None;
    }
}

impl<B: Backend> Engine<B> {
    /// Counts up to now how long a due request has waited for a connection. Called whenever one becomes ready, and
    /// before their number changes.
    #[inline]
    pub(super) fn count_all_busy(&mut self, now: Nanos) {
        if let Pacer::Scheduled(_) = self.dispatch.pacer {
            self.count_waiting(now);
        }
    }

    fn count_waiting(&mut self, now: Nanos) {
        if self.stalled_since(now).is_none() {
            return self.count_until(now);
        }
        self.count_until(self.turn.began_at);
        self.forgive_stall(now);
    }

    fn count_until(&mut self, now: Nanos) {
        let is_crowded = self.connecting.wanted > 0
            && self.connecting.missing == 0
            && !self.has_ready()
            && self.books.tally.may_start()
            && !self.may_open_more()
            && !self.is_catching_up(now);
        let next_at = self.dispatch.pacer.next_at();
        let crowding = &mut self.dispatch.crowding;
        let since = next_at.max(crowding.counted_until);
        let now = now.max(crowding.counted_until);
        if !is_crowded {
            crowding.since = now;
        } else if since < now {
            self.books.tally.was_all_busy(next_at.max(crowding.since), since, now);
        }
        crowding.counted_until = now;
    }

    /// Does not count what waits after a stall: what became due meanwhile is sent on the existing connections, for as
    /// long again at most. They were enough before it.
    fn forgive_stall(&mut self, now: Nanos) {
        let began_at = self.turn.began_at;
        let has_waited = self.dispatch.pacer.due_at() < began_at;
        let crowding = &mut self.dispatch.crowding;
        if !has_waited {
            crowding.catching_up_until = Some(now + now.since(began_at));
        }
        (crowding.counted_until, crowding.since) = (now, now);
    }

    /// Whether the worker is making up for a stall, and has not done so for too long.
    pub(super) fn is_catching_up(&mut self, now: Nanos) -> bool {
        let crowding = &mut self.dispatch.crowding;
        crowding.catching_up_until.take_if(|until| *until <= now);
        crowding.is_catching_up()
    }
}
