//! Wakes a thread at successive moments, such as the ends of slices.
//!
//! In a virtual machine, setting the processor's timer takes microseconds. The kernel sets it whenever a timer becomes
//! the earliest. So the timer for the moment after next is set before the thread sleeps: it becomes the earliest when
//! its predecessor expires, at no cost to the thread.

use std::os::fd::OwnedFd;

use onrush_proto::Nanos;
use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::{Clock, monotonic_ns};

/// Two timers, used in turn.
pub struct Alarm {
    timers: [Timer; 2],
    /// The system's monotonic time at the origin of the run's clock.
    origin_ns: u64,
}

struct Timer {
    fd: OwnedFd,
    /// Expiry; [`Nanos::MAX`]: the timer is not set, or its expiry has been read.
    at: Nanos,
}

impl Alarm {
    /// An unset alarm.
    ///
    /// # Errors
    ///
    /// If the kernel provides no timer, for instance because descriptors have run out.
    pub fn new(clock: Clock) -> Result<Self, Errno> {
        let timer = || {
            let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
            Ok(Timer { fd, at: Nanos::MAX })
        };
        // In this order, the alarm may be late by the time between the two clock readings, but is never early.
        let now = clock.now();
        Ok(Self { timers: [timer()?, timer()?], origin_ns: monotonic_ns() - now.0 })
    }

    /// Sleeps until a moment; `next` is the probable moment after it. A signal may end the sleep early.
    pub fn sleep_until(&mut self, until: Nanos, next: Nanos) -> Result<(), Errno> {
        for at in [until, next] {
            if self.timers.iter().all(|timer| timer.at != at)
                && let Some(timer) = self.timers.iter_mut().find(|timer| timer.at != until && timer.at != next)
            {
                timer.set(at, self.origin_ns)?;
            }
        }
        let Some(timer) = self.timers.iter_mut().find(|timer| timer.at == until) else { return Ok(()) };
        match read(&timer.fd, &mut [0_u8; 8]) {
            Err(Errno::INTR) => {}
            outcome => {
                timer.at = Nanos::MAX;
                outcome?;
            }
        }
        Ok(())
    }
}

impl Timer {
    fn set(&mut self, at: Nanos, origin_ns: u64) -> Result<(), Errno> {
        let ns = origin_ns.saturating_add(at.0);
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval: never, it_value })?;
        self.at = at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_never_early() {
        let clock = Clock::start();
        let mut alarm = Alarm::new(clock).unwrap();
        let began = clock.now();
        // The announced moment, a different one, one twice, and one in the past.
        for (ms, next_ms) in [(2, 4), (4, 6), (7, 9), (7, 9), (9, 11), (5, 7), (11, 13)] {
            let until = began + ms * 1_000_000;
            alarm.sleep_until(until, began + next_ms * 1_000_000).unwrap();
            let now = clock.now();
            assert!(now >= until, "{ms} ms: early");
        }
        assert!(clock.now().since(began) < 1_000_000_000);
    }
}
