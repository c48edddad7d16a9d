//! The engine's timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onrush_proto::Nanos;

use crate::backend::ConnId;

/// Interval of rate samples and hand-overs, in nanoseconds.
pub const SAMPLE_NS: u64 = 100_000_000;

/// Interval of the hand-overs of a worker that stays after the end of the run, in nanoseconds.
pub const LOOK_NS: u64 = 10_000_000;

/// The action of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// Reopen a slot.
    Reopen(ConnId),
    /// Begin the batch before which a connection paused.
    Begin(ConnId),
    /// Allow a request again in the place of one that was turned away on a connection.
    Rested(ConnId),
    /// Wake the protocol of a connection.
    Wake(ConnId),
    /// Look for requests that are late or must be abandoned, starting at this connection.
    Sweep(ConnId),
    /// Adjust the number of connections to the plan.
    Level,
    /// End the warm-up.
    Start,
    /// Sample the rate and hand the interval over.
    Sample,
    /// Hand over after the end of the run.
    Look,
}

/// The timers of one worker, as a heap.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, Timer)>>,
}

impl Timers {
    /// Sets a timer. It cannot be cancelled: a timer that has become obsolete must have no effect
    /// when it fires.
    pub fn set_timer(&mut self, at: Nanos, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    /// Time of the earliest timer; [`Nanos::MAX`]: there is none.
    pub fn next_at(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Takes the earliest timer if it is due, with the time it was set for.
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, Timer)> {
        if self.next_at() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }

    /// All timers, unordered. Includes timers that have become obsolete.
    #[cfg(any(test, feature = "testing"))]
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, Timer)> {
        self.heap.iter().map(|Reverse(set)| *set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_not_early() {
        let mut timers = Timers::default();
        assert_eq!(timers.next_at(), Nanos::MAX);
        timers.set_timer(Nanos(30), Timer::Sweep(ConnId(0)));
        timers.set_timer(Nanos(10), Timer::Reopen(ConnId(7)));
        assert_eq!(timers.take_due(Nanos(9)), None);
        assert_eq!(timers.take_due(Nanos(10)), Some((Nanos(10), Timer::Reopen(ConnId(7)))));
        assert_eq!(timers.take_due(Nanos(29)), None);
        assert_eq!(timers.next_at(), Nanos(30));
    }
}
