//! The monotonic clock, in nanoseconds since the run was set up.

use std::time::Instant;

use onrush_proto::Nanos;

/// A monotonic clock with an origin that all threads of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// The nanoseconds since the origin.
    pub fn now(&self) -> Nanos {
        Nanos(self.origin.elapsed().as_nanos() as u64)
    }
}
