//! Rounds: the responses that complete one after another, as many as there are requests in flight.

use std::mem;

use onrush_proto::Nanos;

use crate::tally::Tally;

/// A wait for several completions lasts at most this part of the mean latency, this part of the shortest, and so many
/// nanoseconds.
const PART_OF_MEAN: u64 = 40;
const PART_OF_SHORTEST: u64 = 10;
const LINGER_MAX_NS: u64 = 100_000;

/// The current round, and what the last one tells about latencies.
#[derive(Debug, Default)]
pub(super) struct Round {
    began_at: Nanos,
    /// How many responses had completed when it began.
    completed: u64,
    /// How long the last round took: the mean latency, by Little's law. 0 if there was none.
    mean_ns: u64,
    /// The shortest latency of the last round, in nanoseconds.
    shortest_ns: u64,
}

impl Round {
    /// The first one: latencies are not known yet.
    pub fn first(now: Nanos, tally: &mut Tally) -> Self {
        tally.shortest_ns = u64::MAX;
        Self { began_at: now, completed: tally.completed, mean_ns: 0, shortest_ns: 0 }
    }

    /// How long a wait for several completions may last, in nanoseconds, so that latencies hardly grow by it. The mean alone
    /// does not tell: if most requests wait long, it is far from that of the quick ones.
    pub fn linger_ns(&mut self, now: Nanos, tally: &mut Tally) -> u64 {
        if tally.completed - self.completed >= tally.open() {
            *self = Self {
                began_at: now,
                completed: tally.completed,
                mean_ns: now.since(self.began_at),
                shortest_ns: mem::replace(&mut tally.shortest_ns, u64::MAX),
            };
        }
        let shortest_ns = self.shortest_ns.min(tally.shortest_ns);
        (self.mean_ns / PART_OF_MEAN).min(shortest_ns / PART_OF_SHORTEST).min(LINGER_MAX_NS)
    }
}
