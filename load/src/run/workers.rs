//! The supervisor's view of the workers of a run: on the machine's clock, or in virtual time.

use std::ops::Range;
use std::time::{Duration, Instant};

use onrush_engine::{Stayed, WorkerEnd};
use onrush_stats::Totals;

use super::clock::Clock;
use super::machines::Remote;
use super::simulated::Simulated;
use super::threads::Threads;

pub(super) enum Workers {
    /// Threads of this process, running in parallel.
    Threads(Threads),
    /// Workers that take turns, and run while their supervisor waits.
    Simulated(Simulated),
    /// Workers on other machines.
    Remote(Remote),
}

impl Workers {
    /// Starts the workers at this moment.
    pub fn release(&mut self, start: Instant, clock: &Clock) {
        match self {
            Self::Threads(threads) => threads.release(start),
            Self::Simulated(simulated) => simulated.advance(clock.elapsed()),
            Self::Remote(remote) => remote.release(start),
        }
    }

    /// Waits for this long while the workers run; on the machine's clock, only until one of them has ended.
    pub fn wait(&mut self, length: Duration, clock: &mut Clock) {
        match self {
            Self::Threads(threads) => threads.wait(length),
            Self::Simulated(simulated) => {
                clock.sleep(length);
                simulated.advance(clock.elapsed());
            }
            Self::Remote(remote) => remote.handle_events_for(length),
        }
    }

    /// True if the simulated signal has arrived.
    pub fn is_signalled(&self, clock: &Clock) -> bool {
        match self {
            Self::Threads(_) | Self::Remote(_) => false,
            Self::Simulated(simulated) => simulated.is_signalled(clock.elapsed()),
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

    /// Takes the results of worker `index`; `None` before its end, the second time, and from a worker that panicked.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        match self {
            Self::Threads(threads) => threads.take_end(index),
            Self::Simulated(simulated) => simulated.take_end(index),
            Self::Remote(remote) => remote.take_end(index),
        }
    }

    /// Takes the final results of worker `index`, if it stayed after the run and was stopped.
    pub fn take_stayed(&mut self, index: usize) -> Option<Stayed> {
        match self {
            Self::Threads(threads) => threads.take_stayed(index),
            Self::Simulated(simulated) => simulated.take_stayed(index),
            Self::Remote(_) => None,
        }
    }

    /// True if worker `index` has returned. A worker on another machine has returned once it has ended.
    pub fn has_returned(&self, index: usize) -> bool {
        match self {
            Self::Threads(threads) => threads.has_returned(index),
            Self::Simulated(simulated) => simulated.has_returned(index),
            Self::Remote(_) => true,
        }
    }

    /// Takes the next row of measurements from another machine, with the indices of its workers. Local workers deliver
    /// their measurements through their links.
    pub fn take_row(&mut self) -> Option<(Range<usize>, Box<Totals>)> {
        match self {
            Self::Threads(_) | Self::Simulated(_) => None,
            Self::Remote(remote) => remote.take_row(),
        }
    }

    /// Takes the messages about other machines, for the user, that were added since the last call.
    pub fn take_messages(&mut self) -> Vec<String> {
        match self {
            Self::Threads(_) | Self::Simulated(_) => Vec::new(),
            Self::Remote(remote) => remote.take_messages(),
        }
    }

    /// True if worker `index` was on a machine that was lost.
    pub fn is_lost(&self, index: usize) -> bool {
        match self {
            Self::Threads(_) | Self::Simulated(_) => false,
            Self::Remote(remote) => remote.is_lost(index),
        }
    }

    /// Number of other machines lost before this time (since measuring began).
    pub fn count_lost(&self, until_ns: u64) -> u64 {
        match self {
            Self::Threads(_) | Self::Simulated(_) => 0,
            Self::Remote(remote) => remote.count_lost(until_ns),
        }
    }

    /// True if every other machine reports that no first connection was accepted.
    pub fn was_refused(&self) -> bool {
        match self {
            Self::Threads(_) | Self::Simulated(_) => false,
            Self::Remote(remote) => remote.was_refused(),
        }
    }
}
