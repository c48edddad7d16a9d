//! A worker after a stall: the process was stopped, or other processes had the processor. Waiting for a script is not a
//! stall, but the worker catches up in the same way.
//!
//! Everything that arrived in the meantime is handled before anything counts as late. If the stall extended past the
//! end of the run, nobody knows what came before the end, so the run ends where the stall began. A scheduled run ends
//! as planned: requests due by the end still count, as open or unsent.

use onrush_proto::Nanos;
use onrush_stats::Gap;

use super::crowding::HeldUp;
use super::{Engine, HANDLED_PER_TURN};
use crate::backend::Backend;

/// Largest number of completions handled per connection: a large body arrives in many pieces.
const TURNS_PER_SLOT: usize = 4;

impl<B: Backend> Engine<B> {
    /// If the worker was held up until now, handles the arrivals of that time before the timers. Returns the time.
    pub(super) fn catch_up_after_stall(&mut self, now: Nanos) -> Nanos {
        let Some(HeldUp { from, by_script }) = self.held_up_since(now) else { return now };
        if from > self.books.start && !by_script {
            self.books
                .stalls
                .push(Gap { from_ns: from.since(self.books.start), until_ns: now.since(self.books.start) });
        }
        if now >= self.books.end_at {
            // Requests due before the end count in spite of the stall.
            if self.roster.config.rules.open_loop.is_none() && !by_script {
                // Completions handled since then belong to the run, although the timers come late.
                self.books.end_at = from.max(self.turn.awaited_since);
            }
            return self.books.end_at;
        }
        self.count_all_busy(now);
        let mut left = TURNS_PER_SLOT * self.roster.slots.len() + HANDLED_PER_TURN;
        while left > 0 {
            // The kernel may report only a few completions at first, and the rest once it has buffers again.
            self.send_and_stamp_gathered(now);
            let is_ready = self.roster.backend.wait(Nanos::default());
            let before = left;
            while left > 0
                && !self.dispatch.script.has_ended
                && let Some(completion) = self.roster.backend.next_completion()
            {
                left -= 1;
                // The worker may have been stalled again in the meantime, past the end.
                if completion.at <= self.books.end_at || self.continue_uncounted() {
                    self.turn.awaited_since = completion.at;
                    self.handle(completion);
                }
            }
            self.books.tally.interval.activity.count_wait(before - left);
            if !is_ready || self.dispatch.script.has_ended {
                break;
            }
            left = left.saturating_sub(1);
        }
        self.roster.backend.now()
    }
}
