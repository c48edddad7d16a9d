//! Measures the time of calls into a script without reading the clock twice for each call.

use std::time::Instant;

use crate::backend::coarse_ns;

/// The number of calls that are timed at the beginning.
const FIRST: u64 = 64;
/// After those, one call in this number is timed. It is prime, so that no periodic script coincides with it.
const TIMED: u64 = 61;
/// A call that takes at least this time on the coarse clock, in nanoseconds, is counted by itself, timed or not,
/// because it may be rare. This is at least two ticks of that clock, so that no short call qualifies.
const LONG_NS: u64 = 20_000_000;

/// Estimates the time spent in calls: the first and the long ones are all timed, the others are sampled.
#[derive(Debug, Default)]
pub struct Meter {
    calls: u64,
    /// The first calls, which may be the only ones, and which compile the script.
    first_ns: u64,
    /// The long calls after them, and their number.
    long_ns: u64,
    long: u64,
    /// The other calls that were timed, and their number.
    sampled_ns: u64,
    sampled: u64,
}

/// The beginning of a call, on the coarse clock and, if the call is timed, exactly.
pub struct Began {
    coarse_ns: u64,
    at: Option<Instant>,
}

impl Meter {
    /// Begins a call.
    pub fn begin(&mut self) -> Began {
        self.calls += 1;
        let is_timed = self.calls <= FIRST || self.calls.is_multiple_of(TIMED);
        Began { coarse_ns: coarse_ns(), at: is_timed.then(Instant::now) }
    }

    /// Ends a call.
    pub fn end(&mut self, began: Began) {
        let coarse_ns = coarse_ns() - began.coarse_ns;
        let timed_ns = began.at.map(|at| at.elapsed().as_nanos() as u64);
        match timed_ns {
            Some(timed_ns) if self.calls <= FIRST => self.first_ns += timed_ns,
            _ if coarse_ns >= LONG_NS => {
                self.long += 1;
                self.long_ns += timed_ns.unwrap_or(coarse_ns);
            }
            Some(timed_ns) => {
                self.sampled += 1;
                self.sampled_ns += timed_ns;
            }
            None => {}
        }
    }

    /// The time spent so far, in nanoseconds. Until another is timed, a call is taken to last as long as the first
    /// ones.
    pub fn spent_ns(&self) -> u64 {
        let others = self.calls.saturating_sub(FIRST + self.long);
        let (timed, timed_ns) = if self.sampled > 0 { (self.sampled, self.sampled_ns) } else { (FIRST, self.first_ns) };
        let others_ns = u128::from(others) * u128::from(timed_ns) / u128::from(timed);
        self.first_ns + self.long_ns + others_ns as u64
    }
}
