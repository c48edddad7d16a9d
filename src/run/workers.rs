//! The workers of a run as their supervisor sees them: by the machine's clock, or in virtual time.

use std::ops::Range;
use std::time::{Duration, Instant};

use onrush_engine::{Stayed, WorkerEnd};
use onrush_stats::Totals;

use super::clock::Clock;
use super::machines::Remote;
use super::simulated::Simulated;
use super::threads::Threads;

pub(super) enum Workers {
    /// Threads of this process, at once.
    Threads(Threads),
    /// They take turns, and run while their supervisor waits.
    Simulated(Simulated),
    /// They run on other machines.
    Remote(Remote),
}

impl Workers {
    /// Lets the workers run from this moment on.
    pub fn release(&mut self, start: Instant, clock: &Clock) {
        match self {
            Self::Threads(threads) => threads.release(start),
            Self::Simulated(simulated) => simulated.advance(clock.passed()),
            Self::Remote(remote) => remote.release(start),
        }
    }

    /// Waits for this long, in which the workers run; by the machine's clock only until one of them has ended.
    pub fn wait(&mut self, length: Duration, clock: &mut Clock) {
        match self {
            Self::Threads(threads) => threads.wait(length),
            Self::Simulated(simulated) => {
                clock.sleep(length);
                simulated.advance(clock.passed());
            }
            Self::Remote(remote) => remote.wait(length),
        }
    }

    /// True if a simulated signal has come.
    pub fn is_signalled(&self, clock: &Clock) -> bool {
        match self {
            Self::Threads(_) | Self::Remote(_) => false,
            Self::Simulated(simulated) => simulated.is_signalled(clock.passed()),
        }
    }

    /// True if worker `index` has not ended.
    pub fn is_at_work(&self, index: usize) -> bool {
        match self {
            Self::Threads(threads) => threads.is_at_work(index),
            Self::Simulated(simulated) => simulated.is_at_work(index),
            Self::Remote(remote) => remote.is_at_work(index),
        }
    }

    /// The results of worker `index`, once, if it has ended; one that panicked leaves nothing.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        match self {
            Self::Threads(threads) => threads.take_end(index),
            Self::Simulated(simulated) => simulated.take_end(index),
            Self::Remote(remote) => remote.take_end(index),
        }
    }

    /// Takes the end of worker `index`, which stayed after the end of the run, if it has been stopped since.
    pub fn take_stayed(&mut self, index: usize) -> Option<Stayed> {
        match self {
            Self::Threads(threads) => threads.take_stayed(index),
            Self::Simulated(simulated) => simulated.take_stayed(index),
            Self::Remote(_) => None,
        }
    }

    /// True if worker `index` is gone; workers on another machine are, at their end.
    pub fn has_returned(&self, index: usize) -> bool {
        match self {
            Self::Threads(threads) => threads.has_returned(index),
            Self::Simulated(simulated) => simulated.has_returned(index),
            Self::Remote(_) => true,
        }
    }

    /// The next row of measurements from workers on another machine, and their indices. Other workers' measurements are
    /// in their links.
    pub fn take_row(&mut self) -> Option<(Range<usize>, Box<Totals>)> {
        match self {
            Self::Threads(_) | Self::Simulated(_) => None,
            Self::Remote(remote) => remote.take_row(),
        }
    }

    /// Messages about other machines since the last call.
    pub fn take_said(&mut self) -> Vec<String> {
        match self {
            Self::Threads(_) | Self::Simulated(_) => Vec::new(),
            Self::Remote(remote) => remote.take_said(),
        }
    }

    /// True if worker `index` was on a machine that was lost.
    pub fn is_lost(&self, index: usize) -> bool {
        match self {
            Self::Threads(_) | Self::Simulated(_) => false,
            Self::Remote(remote) => remote.is_lost(index),
        }
    }

    /// How many other machines were lost before this time after measuring began.
    pub fn count_lost(&self, until_ns: u64) -> u64 {
        match self {
            Self::Threads(_) | Self::Simulated(_) => 0,
            Self::Remote(remote) => remote.count_lost(until_ns),
        }
    }

    /// True if every other machine says that no first connection was accepted.
    pub fn was_refused(&self) -> bool {
        match self {
            Self::Threads(_) | Self::Simulated(_) => false,
            Self::Remote(remote) => remote.was_refused(),
        }
    }
}
