//! The freezes of `/freeze`: periods in which no thread of the target responds.
//!
//! The threads share one [`Freeze`] and check it at every wakeup. Nothing here sleeps.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The freezes of a target; none before the first request to `/freeze`.
#[derive(Debug, Default)]
pub(super) struct Freeze {
    /// Empty until the first request, so that other paths only pay for one load per wakeup.
    cycle: OnceLock<Mutex<Cycle>>,
}

/// A series of freezes, kept alive by requests.
#[derive(Debug)]
struct Cycle {
    rhythm: Rhythm,
    /// Time of the first request, the origin of the freezes.
    first: Instant,
    last: Instant,
}

/// How often and for how long the target freezes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    /// Time between the starts of two freezes, and between the first request and the first freeze. Not zero.
    pub every: Duration,
    /// Length of a freeze.
    pub length: Duration,
}

/// Idle time that ends a cycle, so that a later run sees its first freeze at the usual point. Freezes are not idle
/// time, because no request can be read meanwhile.
const QUIET: Duration = Duration::from_secs(1);

impl Freeze {
    /// Records a request with this rhythm. It continues the current cycle if the rhythm is the same, or else starts a
    /// new one.
    pub(super) fn record_request(&self, rhythm: Rhythm) {
        let now = Instant::now();
        let mut cycle = lock_cycle(self.cycle.get_or_init(|| Mutex::new(Cycle::new(rhythm, now))));
        if cycle.rhythm == rhythm && !cycle.is_over(now) {
            cycle.last = now;
        } else {
            *cycle = Cycle::new(rhythm, now);
        }
    }

    /// Remaining time of the current freeze; `None` if the target is not frozen.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.cycle.get().and_then(|cycle| lock_cycle(cycle).time_left(Instant::now()))
    }
}

/// Locks the cycle, which is always consistent, even if another thread panicked.
fn lock_cycle(cycle: &Mutex<Cycle>) -> MutexGuard<'_, Cycle> {
    cycle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cycle {
    fn new(rhythm: Rhythm, now: Instant) -> Self {
        Self { rhythm, first: now, last: now }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) > self.rhythm.length + QUIET
    }

    fn time_left(&self, now: Instant) -> Option<Duration> {
        let since_ns = (now - self.first).as_nanos();
        let every_ns = self.rhythm.every.as_nanos();
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
            assert_eq!(cycle.time_left(first + ms(at)), left, "{at} ms after the first request");
        }
    }

    #[test]
    fn freezes_end_a_second_after_the_last_request() {
        let first = Instant::now();
        let cycle = |last| Cycle { rhythm: RHYTHM, first, last: first + ms(last) };
        // No request can be read during a freeze, so the freeze counts as if requests had arrived.
        assert_eq!(cycle(4000).time_left(first + ms(5999)), Some(ms(1)));
        assert_eq!(cycle(2999).time_left(first + ms(5000)), None);
        assert!(!cycle(4999).is_over(first + ms(6999)));
        assert!(cycle(4999).is_over(first + ms(7000)));
    }

    #[test]
    fn another_rhythm_begins_another_cycle() {
        let freeze = Freeze::default();
        assert_eq!(freeze.time_left(), None);
        // Each freeze is longer than the interval, so after a millisecond the target is always frozen.
        freeze.record_request(Rhythm { every: ms(1), length: ms(1_000_000) });
        std::thread::sleep(ms(2));
        assert!(freeze.time_left().is_some());
        freeze.record_request(Rhythm { every: ms(1), length: ms(1_000_000) });
        assert!(freeze.time_left().is_some());
        freeze.record_request(RHYTHM);
        assert_eq!(freeze.time_left(), None);
    }
}
