//! Requests of a schedule that will never be answered. Each has lasted until the end of the run, and is remembered until then.

use onrush_proto::Nanos;

/// How exactly it is remembered when they were due, in nanoseconds.
const STEP_NS: u64 = 1_000_000;

/// When requests were due that were dropped or given up.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// The ends of the steps in which they were due, and how many.
    steps: Vec<(Nanos, u64)>,
}

impl Gone {
    /// Adds requests that were due at `due`.
    pub fn note(&mut self, due: Nanos, requests: u64) {
        // None is said to have lasted longer than it has.
        let end = Nanos((due.0 / STEP_NS + 1) * STEP_NS);
        match self.steps.last_mut() {
            Some((last, count)) if *last == end => *count += requests,
            _ => self.steps.push((end, requests)),
        }
    }

    /// Takes them all.
    pub fn take(&mut self) -> Vec<(Nanos, u64)> {
        std::mem::take(&mut self.steps)
    }
}
