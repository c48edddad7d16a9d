//! The loop's state from one wait to the next.

use onrush_proto::Nanos;

use super::Engine;
use crate::backend::{Backend, thread_cpu_ns};

/// The loop's state from one wait to the next.
#[derive(Debug)]
pub(super) struct Turn {
    /// Start of the last turn of the loop, up to which the worker was not stalled.
    pub began_at: Nanos,
    /// Latest moment at which the last wait should have ended, such as a request's due time; [`Nanos::MAX`] between the
    /// stall check and the next wait.
    pub waited_until: Nanos,
    /// Number of completions handled in the last turn.
    pub handled: usize,
    /// Time of the last start of a request or connect, or of the last completion for one.
    pub awaited_since: Nanos,
    /// True if a response has ended with its connection: the kernel does not timestamp that.
    pub has_seen_unknown_end: bool,
    /// Uncounted busy-polling.
    pub spin: Option<Spin>,
}

impl Default for Turn {
    /// The state before the first wait.
    fn default() -> Self {
        Self {
            began_at: Nanos::default(),
            waited_until: Nanos::MAX,
            handled: 0,
            awaited_since: Nanos::default(),
            has_seen_unknown_end: false,
            spin: None,
        }
    }
}

/// Uncounted busy-polling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spin {
    /// The thread's processor time at the start, in nanoseconds.
    pub cpu_before_ns: u64,
    /// Time of the last poll that found nothing.
    pub looked_at: Nanos,
}

impl<B: Backend> Engine<B> {
    /// Counts the last busy-polling, unless already counted.
    pub(super) fn settle_spin(&mut self) {
        if self.turn.spin.is_some() {
            let now = self.roster.backend.now();
            self.count_spin(now, thread_cpu_ns());
        }
    }

    /// Counts the last busy-polling: the processor time since its start, less the time since its end.
    pub(super) fn count_spin(&mut self, now: Nanos, cpu_ns: u64) {
        if let Some(Spin { cpu_before_ns, looked_at }) = self.turn.spin.take() {
            let spun_ns = (cpu_ns - cpu_before_ns).saturating_sub(now.since(looked_at));
            self.books.tally.interval.activity.spun_ns += spun_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{config, get, job};
    use super::*;
    use crate::backend::Sim;
    use crate::backend::sim::Scenario;
    use crate::http1;

    #[test]
    fn busy_polling_is_counted_once() {
        let backend = Sim::new(1, Scenario::default().network(1));
        let mut engine = Engine::new(config(), backend, job(get(), http1(1)), Arc::default(), Arc::default());
        engine.turn.spin = Some(Spin { cpu_before_ns: 0, looked_at: engine.roster.backend.now() });
        engine.settle_spin();
        let spun_ns = engine.books.tally.interval.activity.spun_ns;
        engine.settle_spin();
        assert!(spun_ns > 0 && engine.books.tally.interval.activity.spun_ns == spun_ns);
    }
}
