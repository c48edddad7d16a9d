//! How long due requests wait because every connection is taken: it has a request in flight, or pauses for the script.
//!
//! While a connection is missing, or there is to be none, or the worker itself stands still, requests wait for something
//! else, which more connections would not shorten.

use onrush_proto::Nanos;

use super::Engine;
use super::pacer::Pacer;
use crate::backend::Backend;

/// Since when due requests have waited for nothing but a connection.
#[derive(Debug, Default)]
pub(super) struct Crowding {
    /// Up to then it has been counted.
    counted_until: Nanos,
    /// What waits now has waited for nothing else since then.
    since: Nanos,
    /// The worker makes up for a standstill until then, unless it has done so before.
    catching_up_until: Option<Nanos>,
}

impl Crowding {
    /// Whether the worker makes up for a standstill.
    pub fn is_catching_up(&self) -> bool {
        self.catching_up_until.is_some()
    }

    /// Nothing that is due waits any more.
    pub fn has_caught_up(&mut self) {
        self.catching_up_until = None;
    }
}

impl<B: Backend> Engine<B> {
    /// Counts up to now how long a due request has waited for a connection: whenever one becomes ready, and before their
    /// number changes.
    pub(super) fn count_all_busy(&mut self, now: Nanos) {
        if let Pacer::Closed = self.dispatch.pacer {
            return;
        }
        if self.stood_still_since(now).is_none() {
            return self.count_until(now);
        }
        self.count_until(self.turn.began_at);
        self.forgive_standstill(now);
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

    /// The worker has stood still. What became due meanwhile is sent on the connections that there are, for as long again at
    /// most: nobody else had too few of them.
    fn forgive_standstill(&mut self, now: Nanos) {
        let began_at = self.turn.began_at;
        let has_waited = self.dispatch.pacer.due_at() < began_at;
        let crowding = &mut self.dispatch.crowding;
        if !has_waited {
            crowding.catching_up_until = Some(now + now.since(began_at));
        }
        (crowding.counted_until, crowding.since) = (now, now);
    }

    /// Whether the worker makes up for a standstill, and has not done so for too long.
    pub(super) fn is_catching_up(&mut self, now: Nanos) -> bool {
        let crowding = &mut self.dispatch.crowding;
        crowding.catching_up_until.take_if(|until| *until <= now);
        crowding.is_catching_up()
    }
}
