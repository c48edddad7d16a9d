//! Rounds: as many consecutive responses as there are requests in flight.

use onrush_proto::Nanos;

/// Limits on the wait for several completions: a fraction of the mean latency, a fraction of the shortest one, and a
/// number of nanoseconds.
const PART_OF_MEAN: u64 = 40;
const PART_OF_SHORTEST: u64 = 10;
const LINGER_MAX_NS: u64 = 100_000;
/// A shorter wait would not be worth its timer.
const WORTH_NS: u64 = 10_000;
/// Number of requests in flight per completion in a wait for several.
const PER_COMPLETION: u64 = 8;
/// Responses larger than this arrive piece by piece: a completion is one of many for its response.
const PIECES_MIN: u64 = 16 * 1024;

/// The current round, and what the last one showed about latencies.
#[derive(Debug, Default)]
pub struct Round {
    began_at: Nanos,
    /// Number of responses completed since the start.
    completed: u64,
    /// Shortest latency of these responses, in nanoseconds.
    shortest_ns: u64,
    /// Number of bytes received.
    bytes: u64,
    /// Length of the last round: the mean latency, by Little's law. 0: there was none.
    mean_ns: u64,
    /// Bytes per response of the last round, including all frames. Windows apply to bodies only, but where that
    /// matters, bodies dominate.
    bytes_each: u64,
    /// The shortest latency of the last round, in nanoseconds.
    shortest_before_ns: u64,
}

impl Round {
    /// The first round: latencies are not known yet.
    pub fn first(now: Nanos) -> Self {
        Self { began_at: now, completed: 0, shortest_ns: u64::MAX, ..Self::default() }
    }

    /// Counts a complete response.
    pub fn count_response(&mut self, latency_ns: u64) {
        self.completed += 1;
        self.shortest_ns = self.shortest_ns.min(latency_ns);
    }

    /// Counts received bytes, in order to learn the size of responses.
    pub fn count_received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Records that completions depend on one another, so that lingering would delay each: windows for request bodies,
    /// or the rest of a long frame and the head of the next.
    pub fn forbid_lingering(&mut self) {
        self.shortest_ns = 0;
    }

    /// Number of completions worth waiting for together, and the longest wait in nanoseconds, so that latencies hardly
    /// grow. `open`: requests in flight; `ahead`: bytes of each response that the server may send before it waits for
    /// us. The mean alone does not suffice: if most requests wait long, it is far from the mean of the quick ones.
    pub fn lingering_allowance(&mut self, now: Nanos, open: u64, ahead: u64) -> (u32, u64) {
        if self.completed >= open {
            let mean_ns = now.since(self.began_at);
            let bytes_each = self.bytes / self.completed.max(1);
            *self = Self { mean_ns, bytes_each, shortest_before_ns: self.shortest_ns, ..Self::first(now) };
        }
        let shortest_ns = self.shortest_ns.min(self.shortest_before_ns);
        let several = if self.bytes_each > PIECES_MIN { open } else { (open / PER_COMPLETION).max(2) };
        // Number of times the server may have to wait for us during a response.
        let waits = 1 + self.bytes_each / ahead.max(1);
        let linger_ns = (self.mean_ns / PART_OF_MEAN).min(shortest_ns / PART_OF_SHORTEST) / waits;
        let linger_ns = if linger_ns < WORTH_NS { 0 } else { linger_ns.min(LINGER_MAX_NS) };
        (several as u32, linger_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: u64 = 1 << 30;

    /// Number of completions to wait for, and the longest wait, after two rounds of eight responses, in each of which
    /// `happens`.
    fn linger(latency_ns: u64, ahead: u64, happens: impl Fn(&mut Round)) -> (u32, u64) {
        let mut round = Round::first(Nanos(0));
        (1..=2).fold((0, 0), |_, number| {
            (0..8).for_each(|_| round.count_response(latency_ns));
            happens(&mut round);
            round.lingering_allowance(Nanos(number * 2_000_000), 8, ahead)
        })
    }

    #[test]
    fn lingering_is_limited_by_latencies() {
        assert_eq!(linger(2_000_000, AHEAD, |_| ()), (2, 50_000), "a part of the mean");
        assert_eq!(linger(200_000, AHEAD, |_| ()), (2, 20_000), "a part of the shortest");
        assert_eq!(linger(2_000_000, AHEAD, Round::forbid_lingering), (2, 0));
        let mut round = Round::first(Nanos(0));
        (0..7).for_each(|_| round.count_response(2_000_000));
        assert_eq!(round.lingering_allowance(Nanos(1_000_000), 8, AHEAD), (2, 0), "no round yet");
        round.count_response(2_000_000);
        assert_eq!(round.lingering_allowance(Nanos(9_000_000), 8, AHEAD), (2, LINGER_MAX_NS));
    }

    #[test]
    fn responses_in_pieces_shorten_lingering() {
        let of = |bytes: usize, ahead| linger(2_000_000, ahead, |round| round.count_received(8 * bytes));
        assert_eq!(of(16 * 1024, AHEAD), (2, 50_000));
        assert_eq!(of(16 * 1024 + 1, AHEAD), (8, 50_000), "many completions for a response");
        assert_eq!(of(1 << 20, 512 * 1024), (8, 50_000 / 3));
        assert_eq!(of(1 << 20, 128 * 1024), (8, 0), "less than is worth it");
        assert_eq!(of(1 << 20, 0), (8, 0));
    }
}
