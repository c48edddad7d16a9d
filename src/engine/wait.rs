//! How a worker waits: blocked in the kernel, after it busy-polled for a moment where that pays.

use onrush_proto::Nanos;

use super::Engine;
use crate::backend::{Backend, thread_cpu_ns};

/// A worker busy-polls for this long after something began or happened, in nanoseconds: longer than a quick answer takes,
/// and nothing against a slow one.
const SPIN_NS: u64 = 1_000_000;
/// With at most this many connects and requests under way, waking up for one takes a large part of its time.
const FEW: u64 = 4;

impl<B: Backend> Engine<B> {
    /// Waits for completions, but not past the next timer or the end, and not at all with connections left to open.
    pub(super) fn wait(&mut self) {
        if !self.to_open.is_empty() {
            self.backend.wait(Nanos::default());
            return;
        }
        let until = self.timers.next_at().min(self.end_at);
        if self.settings.spins && (1..=FEW).contains(&(self.tally.open() + self.connecting)) {
            // The first look hands over what was asked for, which is work.
            let is_ready = self.backend.wait(Nanos::default());
            // A timer that is due in between begins nothing, and so allows no further busy-polling.
            if is_ready || self.spin(until.min(self.awaited_since + SPIN_NS)) {
                return;
            }
        }
        self.backend.wait(until);
    }

    /// Busy-polls until then. Returns whether there may be completions.
    fn spin(&mut self, stop_at: Nanos) -> bool {
        if self.backend.now() >= stop_at {
            return false;
        }
        let cpu_before_ns = thread_cpu_ns();
        let mut is_ready = false;
        while !is_ready && self.backend.now() < stop_at {
            is_ready = self.backend.wait(Nanos::default());
        }
        self.tally.interval.counters.spun_ns += thread_cpu_ns() - cpu_before_ns;
        is_ready
    }
}
