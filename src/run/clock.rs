//! The clock of runs and of the time between them: the machine's, or in a simulation a virtual one.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onrush_engine::backend;
use onrush_plan::Io;
use onrush_proto::Nanos;

use super::nanos;

/// Readings of the two clocks to find their distance.
const READINGS: usize = 3;

/// The clock of one run, or of several that follow one another. The virtual one begins with the year 1970, and advances
/// only in [`Clock::sleep`]: between runs, and while the supervisor of a simulated run waits for its workers.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Instant,
    /// The time now, if it is virtual.
    simulated: Option<Instant>,
}

impl Clock {
    /// The clock of a run on this backend.
    pub fn for_io(io: &Io) -> Self {
        let origin = Instant::now();
        Self { origin, simulated: matches!(io, Io::Sim(_)).then_some(origin) }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        self.simulated.unwrap_or_else(Instant::now)
    }

    /// This moment of the machine's clock; in virtual time, which does not know it, now.
    pub fn at(&self, moment: Instant) -> Instant {
        self.simulated.unwrap_or(moment)
    }

    /// Lets this much time pass.
    pub fn sleep(&mut self, length: Duration) {
        match &mut self.simulated {
            Some(now) => *now += length,
            None => thread::sleep(length),
        }
    }

    /// When this moment is since the beginning of 1970.
    pub fn date(&self, moment: Instant) -> Duration {
        if self.simulated.is_some() {
            return moment - self.origin;
        }
        // Others may have the processor between two readings.
        let read = |_| {
            let (before, date, after) = (Instant::now(), SystemTime::now(), Instant::now());
            (after - before, before, date)
        };
        let (_, now, date) = (0..READINGS).map(read).min().expect("there are some");
        // A clock set before 1970 must not prevent the run.
        let date = date.duration_since(UNIX_EPOCH).unwrap_or_default();
        (date + moment.saturating_duration_since(now)).saturating_sub(now.saturating_duration_since(moment))
    }

    /// For how long the machine was suspended before now, see [`backend::suspended_ns`]; virtual time never stands
    /// still.
    pub(super) fn suspended_ns(&self) -> i64 {
        if self.simulated.is_some() { 0 } else { backend::suspended_ns() }
    }

    /// How much time has passed since the clock was made.
    pub(super) fn passed(&self) -> Nanos {
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
        let before = clock.date(moment);
        thread::sleep(Duration::from_millis(40));
        // The wall clock runs a little faster or slower while it is being set.
        assert!(clock.date(moment).abs_diff(before) < Duration::from_millis(2), "{before:?}");
    }
}
