//! What a worker does that stood still: somebody stopped the process, or others had the processor.
//!
//! Whatever arrived meanwhile is handled before anybody is blamed for being late, and before the end.

use onrush_proto::Nanos;

use super::{Engine, HANDLED_PER_TURN};
use crate::backend::{Backend, Completion, thread_cpu_ns};
use crate::stats::Gap;
use crate::stats::silences::GAP_MIN_NS;

/// A loop that comes to a timer so much too late, in nanoseconds, without having worked meanwhile, has stood still.
const LATE_NS: u64 = 10_000_000;
/// So many completions for each connection are caught up with at most: a large body comes in many pieces.
const TURNS_PER_SLOT: usize = 4;

impl<B: Backend> Engine<B> {
    /// If the worker has stood still up to now, handles what has arrived meanwhile, before the timers. Returns the time.
    pub(super) fn catch_up(&mut self, now: Nanos) -> Nanos {
        let Some(stood_ns) = self.stood_still(now) else { return now };
        if stood_ns >= GAP_MIN_NS && now.since(self.start) > stood_ns {
            let until_ns = now.since(self.start);
            self.standstills.push(Gap { from_ns: until_ns - stood_ns, until_ns });
        }
        // Behind the end nothing is begun any more.
        self.script.has_ended |= now >= self.end_at;
        let mut left = TURNS_PER_SLOT * self.slots.len() + HANDLED_PER_TURN;
        while left > 0 {
            // The kernel may tell of few completions at once, and of more only when it has buffers again.
            self.stamp();
            let is_ready = self.backend.wait(Nanos::default());
            while left > 0
                && let Some(completion) = self.backend.next()
            {
                left -= 1;
                self.handle(Completion { at: completion.at.min(self.end_at), ..completion });
            }
            if !is_ready {
                break;
            }
            left = left.saturating_sub(1);
        }
        self.backend.now()
    }

    /// Something was noticed behind the end. It counts if it was only because the worker stood still, and is the first
    /// thing to be caught up with; nothing follows from it.
    #[cold]
    pub(super) fn handle_behind_the_end(&mut self, completion: Completion) {
        if self.stood_still(completion.at).is_some() {
            self.script.has_ended = true;
            self.handle(Completion { at: self.end_at, ..completion });
        }
    }

    /// For how long the worker has stood still up to now, in nanoseconds: it comes to its next timer much too late, and has
    /// not worked meanwhile.
    fn stood_still(&self, now: Nanos) -> Option<u64> {
        let late_ns = now.since(self.timers.next_at().min(self.end_at));
        (late_ns >= LATE_NS && thread_cpu_ns().saturating_sub(self.cpu_sampled_ns) < late_ns / 2).then_some(late_ns)
    }
}
