//! The freezes of `/freeze`: times in which no thread of the target answers.
//!
//! The threads share one [`Freeze`] and ask it at every wake-up. It never sleeps itself.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The freezes of a target, if `/freeze` was ever requested.
#[derive(Debug, Default)]
pub(super) struct Freeze {
    /// Empty until the first request, so that other paths pay for one load per wake-up.
    cycle: OnceLock<Mutex<Cycle>>,
}

/// Freezes that follow one another, and the requests that keep them going.
#[derive(Debug)]
struct Cycle {
    rhythm: Rhythm,
    /// The first request, from which the freezes are counted.
    first: Instant,
    /// The last request so far.
    last: Instant,
}

/// How often the target freezes, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    /// From the beginning of one freeze to that of the next, and from the first request to the first freeze. Not zero.
    pub every: Duration,
    /// How long a freeze lasts.
    pub length: Duration,
}

/// After this time without a request, besides a freeze in which none can be read, the cycle is over: a run that starts a
/// moment after another finds its first freeze in the same place.
const QUIET: Duration = Duration::from_secs(1);

impl Freeze {
    /// Takes note of a request for this rhythm: it keeps the cycle going, or begins one.
    pub(super) fn request(&self, rhythm: Rhythm) {
        let now = Instant::now();
        let mut cycle = lock(self.cycle.get_or_init(|| Mutex::new(Cycle::new(rhythm, now))));
        if cycle.rhythm == rhythm && !cycle.is_over(now) {
            cycle.last = now;
        } else {
            *cycle = Cycle::new(rhythm, now);
        }
    }

    /// How long the target is still frozen; `None`: it is not.
    pub(super) fn left(&self) -> Option<Duration> {
        self.cycle.get().and_then(|cycle| lock(cycle).left(Instant::now()))
    }
}

/// A cycle is whole at any time, even if another thread panicked.
fn lock(cycle: &Mutex<Cycle>) -> MutexGuard<'_, Cycle> {
    cycle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cycle {
    fn new(rhythm: Rhythm, now: Instant) -> Self {
        Self { rhythm, first: now, last: now }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) > self.rhythm.length + QUIET
    }

    fn left(&self, now: Instant) -> Option<Duration> {
        let (since_ns, every_ns) = ((now - self.first).as_nanos(), self.rhythm.every.as_nanos());
        if since_ns < every_ns || self.is_over(now) {
            return None;
        }
        let frozen = Duration::from_nanos((since_ns % every_ns) as u64);
        self.rhythm.length.checked_sub(frozen).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const RHYTHM: Rhythm = Rhythm { every: ms(5000), length: ms(1000) };

    #[test]
    fn freezes_are_counted_from_the_first_request() {
        let first = Instant::now();
        for (at, left) in [
            (0, None),
            (999, None),
            (4999, None),
            (5000, Some(ms(1000))),
            (5999, Some(ms(1))),
            (6000, None),
            (9999, None),
            (15_250, Some(ms(750))),
        ] {
            let cycle = Cycle { rhythm: RHYTHM, first, last: first + ms(at) };
            assert_eq!(cycle.left(first + ms(at)), left, "{at} ms after the first request");
        }
    }

    #[test]
    fn freezes_end_a_second_after_the_last_request() {
        let first = Instant::now();
        let cycle = |last| Cycle { rhythm: RHYTHM, first, last: first + ms(last) };
        // None can be read during a freeze, which counts as if there had been some.
        assert_eq!(cycle(4000).left(first + ms(5999)), Some(ms(1)));
        assert_eq!(cycle(2999).left(first + ms(5000)), None);
        assert!(!cycle(4999).is_over(first + ms(6999)));
        assert!(cycle(4999).is_over(first + ms(7000)));
    }

    #[test]
    fn another_rhythm_begins_another_cycle() {
        let freeze = Freeze::default();
        assert_eq!(freeze.left(), None);
        // Longer than its distance: after a millisecond it is always frozen.
        freeze.request(Rhythm { every: ms(1), length: ms(1_000_000) });
        std::thread::sleep(ms(2));
        assert!(freeze.left().is_some());
        freeze.request(Rhythm { every: ms(1), length: ms(1_000_000) });
        assert!(freeze.left().is_some());
        freeze.request(RHYTHM);
        assert_eq!(freeze.left(), None);
    }
}
