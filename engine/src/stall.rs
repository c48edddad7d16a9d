//! What a worker does after a stall: the process was stopped, or others had the processor.
//!
//! Whatever arrived meanwhile is handled before anything is counted as late. If the stall lasted past the end of the
//! run, it is unknown what came before the end and what after, so the run ends where the stall began. With a schedule
//! it does not: what was due until the end still counts, as open or unsent.

use onrush_proto::Nanos;
use onrush_stats::Gap;

use super::account::Account;
use super::{Engine, HANDLED_PER_TURN};
use crate::backend::Backend;

/// A loop that reaches a timer or a due request this late, in nanoseconds, without having worked meanwhile, was stalled.
const LATE_NS: u64 = 10_000_000;
/// At most this many completions per connection are handled: a large body comes in many pieces.
const TURNS_PER_SLOT: usize = 4;

impl<B: Backend> Engine<B> {
    /// If the worker was stalled until now, handles what has arrived meanwhile, before the timers. Returns the time.
    pub(super) fn catch_up(&mut self, now: Nanos) -> Nanos {
        let Some(from) = self.stalled_since(now) else { return now };
        if from > self.books.start {
            self.books
                .stalls
                .push(Gap { from_ns: from.since(self.books.start), until_ns: now.since(self.books.start) });
        }
        if now >= self.books.end_at {
            // What a schedule had due until the end counts in spite of the stall.
            if self.config.rules.open_loop.is_none() {
                // What was handled since then belongs to the run, although the timers come late.
                self.books.end_at = from.max(self.turn.awaited_since);
            }
            return self.books.end_at;
        }
        self.count_all_busy(now);
        let mut left = TURNS_PER_SLOT * self.slots.len() + HANDLED_PER_TURN;
        while left > 0 {
            // The kernel may report few completions at once, and more only when it has buffers again.
            self.stamp();
            let is_ready = self.backend.wait(Nanos::default());
            let before = left;
            while left > 0
                && !self.script.has_ended
                && let Some(completion) = self.backend.next()
            {
                left -= 1;
                // The worker may have been stalled again meanwhile, past the end.
                if completion.at <= self.books.end_at {
                    self.turn.awaited_since = completion.at;
                    self.handle(completion);
                }
            }
            self.books.tally.interval.activity.waited(before - left);
            if !is_ready || self.script.has_ended {
                break;
            }
            left = left.saturating_sub(1);
        }
        self.backend.now()
    }

    /// Since when the worker has been stalled, if it was until now: it reaches its next timer, or a request that was due,
    /// much too late, and neither it nor its script has worked meanwhile.
    pub(super) fn stalled_since(&self, now: Nanos) -> Option<Nanos> {
        let due = self.timers.next_at().min(self.turn.waited_until).min(self.books.end_at);
        let late_ns = now.since(due);
        if late_ns < LATE_NS {
            return None;
        }
        let in_script_ns = self.script.spent_ns().saturating_sub(self.books.script_noted_ns);
        let worked_ns = self.books.account.as_ref().map_or(0, Account::cpu_ns) + in_script_ns;
        (worked_ns < late_ns / 2).then_some(due)
    }
}
