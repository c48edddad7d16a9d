//! Scheduled requests that will never get a response. They last until the end of the run, and are kept until then.

use onrush_proto::Nanos;

/// How exactly their due times are kept, in nanoseconds.
const STEP_NS: u64 = 1_000_000;

/// When the requests that were dropped or abandoned were due.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// The ends of the steps in which they were due, and their numbers.
    steps: Vec<(Nanos, u64)>,
}

impl Gone {
    /// Adds requests that were due at `due`.
    pub fn note(&mut self, due: Nanos, requests: u64) {
        // Rounded up, so that no request is reported to have lasted longer than it did.
        let end = Nanos((due.0 / STEP_NS + 1) * STEP_NS);
        match self.steps.last_mut() {
            Some((last, count)) if *last == end => *count += requests,
            _ => self.steps.push((end, requests)),
        }
    }

    /// Takes all of them.
    pub fn take(&mut self) -> Vec<(Nanos, u64)> {
        std::mem::take(&mut self.steps)
    }
}
