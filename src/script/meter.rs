//! Measures the time of calls into a script without reading the clock twice for each.

use std::time::Instant;

use crate::backend::coarse_ns;

/// The number of calls that are timed at the beginning.
const FIRST: u64 = 64;
/// From then on, one of this many is timed. It is prime, so that no rhythm of a script falls in with it.
const TIMED: u64 = 61;
/// A call that lasts longer by the coarse clock, in nanoseconds, counts for itself, timed or not: it may be rare. That is at
/// least two ticks of that clock, so that no short one does.
const LONG_NS: u64 = 20_000_000;

/// Estimates the time spent in calls: the first and the long ones are all timed, the others by some of them.
#[derive(Debug, Default)]
pub struct Meter {
    calls: u64,
    /// The first calls, which may be the only ones, and compile.
    first_ns: u64,
    /// The long ones after them, and how many they are.
    long_ns: u64,
    long: u64,
    /// Those of the others that were timed, and how many they are.
    sampled_ns: u64,
    sampled: u64,
}

/// When a call began, by the coarse clock and, if it is timed, exactly.
pub struct Began {
    coarse_ns: u64,
    at: Option<Instant>,
}

impl Meter {
    /// A call begins.
    pub fn begin(&mut self) -> Began {
        self.calls += 1;
        let is_timed = self.calls <= FIRST || self.calls.is_multiple_of(TIMED);
        Began { coarse_ns: coarse_ns(), at: is_timed.then(Instant::now) }
    }

    /// It has ended.
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

    /// The time spent so far, in nanoseconds. Until another is timed, a call is taken to last as long as the first ones.
    pub fn spent_ns(&self) -> u64 {
        let others = self.calls.saturating_sub(FIRST + self.long);
        let (timed, timed_ns) = if self.sampled > 0 { (self.sampled, self.sampled_ns) } else { (FIRST, self.first_ns) };
        let others_ns = u128::from(others) * u128::from(timed_ns) / u128::from(timed);
        self.first_ns + self.long_ns + others_ns as u64
    }
}
