//! The monotonic clock, in nanoseconds since the run was set up.

use std::time::Instant;

use onrush_proto::Nanos;
use rustix::time::{ClockId, clock_gettime};

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

/// The processor time that this thread has taken so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let taken = clock_gettime(ClockId::ThreadCPUTime);
    taken.tv_sec as u64 * 1_000_000_000 + taken.tv_nsec as u64
}
