//! Rounds: the responses that complete one after another, as many as there are requests in flight.

use std::mem;

use onrush_proto::Nanos;

/// A wait for several completions lasts at most this part of the mean latency, this part of the shortest, and so many
/// nanoseconds.
const PART_OF_MEAN: u64 = 40;
const PART_OF_SHORTEST: u64 = 10;
const LINGER_MAX_NS: u64 = 100_000;
/// Responses of more bytes than this take one receive after another, each of which would wait.
const LARGE_MIN: u64 = 16 * 1024;

/// The current round, and what the last one tells about latencies.
#[derive(Debug, Default)]
pub struct Round {
    began_at: Nanos,
    /// How many responses have completed since then.
    completed: u64,
    /// Their shortest latency, in nanoseconds.
    shortest_ns: u64,
    /// How many bytes have been received.
    bytes: u64,
    /// How long the last round took: the mean latency, by Little's law. 0 if there was none, or its
    /// responses were large.
    mean_ns: u64,
    /// The shortest latency of the last round, in nanoseconds.
    shortest_before_ns: u64,
}

impl Round {
    /// The first one: latencies are not known yet.
    pub fn first(now: Nanos) -> Self {
        Self { began_at: now, completed: 0, shortest_ns: u64::MAX, bytes: 0, mean_ns: 0, shortest_before_ns: 0 }
    }

    /// A response is complete.
    #[inline]
    pub fn completed(&mut self, latency_ns: u64) {
        self.completed += 1;
        self.shortest_ns = self.shortest_ns.min(latency_ns);
    }

    /// Bytes have been received.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Bodies of requests are on the way: windows for them come one after another, and each would wait.
    pub fn uploads(&mut self) {
        self.shortest_ns = 0;
    }

    /// How long a wait for several completions may last, in nanoseconds, so that latencies hardly grow by it, with `open`
    /// requests in flight. The mean alone does not tell: if most requests wait long, it is far from that of the quick ones.
    pub fn linger_ns(&mut self, now: Nanos, open: u64) -> u64 {
        if self.completed >= open {
            let shortest_before_ns = mem::replace(&mut self.shortest_ns, u64::MAX);
            let is_large = self.bytes > self.completed * LARGE_MIN;
            let mean_ns = if is_large { 0 } else { now.since(self.began_at) };
            *self = Self { mean_ns, shortest_before_ns, ..Self::first(now) };
        }
        let shortest_ns = self.shortest_ns.min(self.shortest_before_ns);
        (self.mean_ns / PART_OF_MEAN).min(shortest_ns / PART_OF_SHORTEST).min(LINGER_MAX_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long waits last after two rounds of eight responses, in each of which `happens`.
    fn linger_ns(latency_ns: u64, happens: impl Fn(&mut Round)) -> u64 {
        let mut round = Round::first(Nanos(0));
        (1..=2).fold(0, |_, number| {
            (0..8).for_each(|_| round.completed(latency_ns));
            happens(&mut round);
            round.linger_ns(Nanos(number * 2_000_000), 8)
        })
    }

    #[test]
    fn a_wait_for_several_lasts_as_long_as_latencies_allow() {
        assert_eq!(linger_ns(2_000_000, |_| ()), 50_000, "a part of the mean");
        assert_eq!(linger_ns(200_000, |_| ()), 20_000, "a part of the shortest");
        assert_eq!(linger_ns(2_000_000, |round| round.received(8 * 16_384)), 50_000);
        assert_eq!(linger_ns(2_000_000, |round| round.received(8 * 16_384 + 1)), 0, "large responses");
        assert_eq!(linger_ns(2_000_000, Round::uploads), 0);
        let mut round = Round::first(Nanos(0));
        (0..7).for_each(|_| round.completed(2_000_000));
        assert_eq!(round.linger_ns(Nanos(1_000_000), 8), 0, "no round yet");
        round.completed(2_000_000);
        assert_eq!(round.linger_ns(Nanos(9_000_000), 8), LINGER_MAX_NS);
    }
}
