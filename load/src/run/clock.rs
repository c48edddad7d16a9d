//! The clock of runs and of the pauses between runs: the machine's, or a virtual one in simulations.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onrush_engine::backend;
use onrush_plan::Io;
use onrush_proto::Nanos;

use super::nanos;

/// Number of paired readings when measuring the offset between the two clocks.
const READINGS: usize = 3;

/// The clock of one run or of several consecutive runs. A virtual clock starts at the Unix epoch and advances only in
/// [`Clock::sleep`]: between runs, and while the supervisor of a simulated run waits for its workers.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Instant,
    /// The current virtual time; `None` on the machine's clock.
    simulated: Option<Instant>,
}

impl Clock {
    /// The clock of a run on this backend.
    pub fn for_io(io: &Io) -> Self {
        let origin = Instant::now();
        Self { origin, simulated: matches!(io, Io::Sim(_)).then_some(origin) }
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.simulated.unwrap_or_else(Instant::now)
    }

    /// Maps a moment on the machine's clock to this clock. Virtual time has no counterpart: returns its current time.
    pub fn convert_moment(&self, moment: Instant) -> Instant {
        self.simulated.unwrap_or(moment)
    }

    /// Waits for this duration; in virtual time, advances the clock by it at once.
    pub fn sleep(&mut self, length: Duration) {
        match &mut self.simulated {
            Some(now) => *now += length,
            None => thread::sleep(length),
        }
    }

    /// Converts a moment to the time since the Unix epoch.
    pub fn unix_time(&self, moment: Instant) -> Duration {
        if self.simulated.is_some() {
            return moment - self.origin;
        }
        // Another thread may get the processor between two readings.
        let read = |_| {
            let (before, date, after) = (Instant::now(), SystemTime::now(), Instant::now());
            (after - before, before, date)
        };
        let (_, now, date) = (0..READINGS).map(read).min().expect("there are some");
        // A clock set before 1970 must not abort the run.
        let date = date.duration_since(UNIX_EPOCH).unwrap_or_default();
        (date + moment.saturating_duration_since(now)).saturating_sub(now.saturating_duration_since(moment))
    }

    /// Total suspension of the machine so far, see [`backend::suspended_ns`]; zero in virtual time.
    pub(super) fn suspended_ns(&self) -> i64 {
        if self.simulated.is_some() { 0 } else { backend::suspended_ns() }
    }

    /// Time since the clock was created.
    pub(super) fn elapsed(&self) -> Nanos {
        Nanos(nanos(self.now() - self.origin))
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Io;

    use super::*;

    #[test]
    fn dates_are_the_same_across_runs() {
        let (clock, moment) = (Clock::for_io(&Io::Epoll), Instant::now() + Duration::from_millis(20));
        let before = clock.unix_time(moment);
        thread::sleep(Duration::from_millis(40));
        // The wall clock runs slightly fast or slow while it is being adjusted.
        assert!(clock.unix_time(moment).abs_diff(before) < Duration::from_millis(2), "{before:?}");
    }
}
