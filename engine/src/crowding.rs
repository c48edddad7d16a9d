//! Time for which due requests wait because every connection is busy: it has a request in flight, or pauses for the
//! script.
//!
//! Waiting is not counted while a connection is missing, while the plan wants none, while the worker is stalled or held
//! up by its script, or before the very first pause is over. More connections would not help then.

use onrush_proto::Nanos;

use super::Engine;
use super::account::Account;
use super::pacer::Pacer;
use crate::backend::Backend;

/// Lateness, in nanoseconds, from which an idle loop counts as stalled when it reaches a timer or a due request.
const LATE_NS: u64 = 10_000_000;

/// A period in which a worker was held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldUp {
    /// Start of the delay.
    pub from: Nanos,
    /// True if the script held the worker up; otherwise the worker was stalled.
    pub by_script: bool,
}

/// Time for which due requests have waited for nothing but a connection.
#[derive(Debug, Default)]
pub(super) struct Crowding {
    counted_until: Nanos,
    /// Start of the time in which due requests wait only for a connection.
    since: Nanos,
    /// Deadline for making up for a stall; `None` once the worker has caught up.
    catching_up_until: Option<Nanos>,
}

impl Crowding {
    pub fn is_catching_up(&self) -> bool {
        self.catching_up_until.is_some()
    }

    /// True if the worker is making up for a stall and the time for it is not over.
    pub fn is_still_catching_up(&mut self, now: Nanos) -> bool {
        self.catching_up_until.take_if(|until| *until <= now);
        self.is_catching_up()
    }

    /// Records that no due request is waiting.
    pub fn end_catch_up(&mut self) {
        self.catching_up_until = None;
    }
}

impl<B: Backend> Engine<B> {
    /// Counts the time for which a due request has waited for a connection. Called before anything that may change
    /// that.
    pub(super) fn count_all_busy(&mut self, now: Nanos) {
        if let Pacer::Scheduled(_) = self.dispatch.pacer {
            self.count_all_busy_time(now);
        }
    }

    /// True if another connection may be opened when a due request waits for one.
    pub(super) fn may_open_more(&self) -> bool {
        self.roster.may_open_more(&self.books) && !self.dispatch.is_full(&self.books.tally)
    }

    fn count_all_busy_time(&mut self, now: Nanos) {
        if self.held_up_since(now).is_none() {
            return self.count_until(now);
        }
        self.count_until(self.turn.began_at);
        self.forgive_stall(now);
    }

    fn count_until(&mut self, now: Nanos) {
        let is_crowded = self.roster.connecting.wanted > 0
            && self.roster.connecting.missing == 0
            && !self.dispatch.can_start(&self.books.tally)
            && self.books.tally.may_start()
            && !self.may_open_more()
            && self.dispatch.has_first_pause_ended()
            && !self.dispatch.crowding.is_still_catching_up(now);
        let next_at = self.dispatch.pacer.next_at();
        let crowding = &mut self.dispatch.crowding;
        let since = next_at.max(crowding.counted_until);
        let now = now.max(crowding.counted_until);
        if !is_crowded {
            crowding.since = now;
        } else if since < now {
            self.books.tally.count_all_busy(next_at.max(crowding.since), since, now);
        }
        crowding.counted_until = now;
    }

    /// Stops counting waits after a stall, for as long as the stall took: requests due during the stall are sent on the
    /// existing connections, which were enough before.
    fn forgive_stall(&mut self, now: Nanos) {
        let began_at = self.turn.began_at;
        let has_waited = self.dispatch.pacer.due_at() < began_at;
        let crowding = &mut self.dispatch.crowding;
        if !has_waited {
            crowding.catching_up_until = Some(now + now.since(began_at));
        }
        (crowding.counted_until, crowding.since) = (now, now);
    }

    /// Start of the delay if the worker was held up until now: it reaches its next timer or a due request much too
    /// late, because of its script or because it did not run.
    pub(super) fn held_up_since(&self, now: Nanos) -> Option<HeldUp> {
        let due = self.timers.next_at().min(self.turn.waited_until).min(self.books.end_at);
        let late_ns = now.since(due);
        if late_ns < LATE_NS {
            return None;
        }
        let in_script_ns = self.dispatch.script.script_time_ns().saturating_sub(self.books.script_noted_ns);
        let by_script = in_script_ns >= late_ns / 2;
        let has_worked =
            || self.books.account.as_ref().map_or(0, Account::cpu_ns_since_reading) + in_script_ns >= late_ns / 2;
        (by_script || !has_worked()).then_some(HeldUp { from: due, by_script })
    }
}
