//! Back-off after failed connections and failed streams.

use onrush_plan::Random;

/// The first wait, in nanoseconds: short, so that a restarted server is found at once.
const FIRST_NS: u64 = 1_000_000;
/// The longest wait, in nanoseconds: an unreachable server costs one connect per second and slot.
pub const LONGEST_NS: u64 = 1_000_000_000;

/// Counts the failures of one connection slot since its last complete response.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failures(u32);

impl Failures {
    /// Resets the back-off, after a complete response.
    pub fn reset(&mut self) {
        self.0 = 0;
    }

    /// Counts a failure. Returns the wait in nanoseconds: 1 ms after the first failure, doubled with each further one
    /// up to `longest_ns`, then plus or minus a quarter.
    pub fn back_off_ns(&mut self, longest_ns: u64, random: &mut Random) -> u64 {
        let doubled = FIRST_NS << self.0.min(20);
        self.0 = self.0.saturating_add(1);
        randomized_ns(doubled.min(longest_ns), random)
    }
}

/// Time in nanoseconds for which no request takes the place of one turned away on a connection that stays open: about
/// as long as the connection has gone without an answer, at most `longest_ns`. So the waits double, however many
/// requests are in flight.
pub fn stream_back_off_ns(unanswered_ns: u64, longest_ns: u64, random: &mut Random) -> u64 {
    randomized_ns(unanswered_ns.clamp(FIRST_NS, longest_ns.max(FIRST_NS)), random)
}

/// This wait, plus or minus a quarter.
fn randomized_ns(wait_ns: u64, random: &mut Random) -> u64 {
    wait_ns - wait_ns / 4 + random.below(wait_ns / 2 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_a_second() {
        let (mut failures, mut random) = (Failures::default(), Random::new(1));
        for expected_ms in [1u64, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, 1000] {
            let wait = failures.back_off_ns(LONGEST_NS, &mut random);
            let expected = expected_ms * 1_000_000;
            assert!(wait >= expected * 3 / 4 && wait <= expected * 5 / 4, "{wait} for {expected}");
        }
        failures.reset();
        assert!(failures.back_off_ns(LONGEST_NS, &mut random) <= 1_250_000);
    }

    #[test]
    fn stream_back_off_matches_the_unanswered_time() {
        let mut random = Random::new(3);
        for (unanswered_ns, expected_ns) in
            [(0, 1_000_000), (1_000_000, 1_000_000), (40_000_000, 40_000_000), (60_000_000_000, LONGEST_NS)]
        {
            let rest = stream_back_off_ns(unanswered_ns, LONGEST_NS, &mut random);
            assert!(rest >= expected_ns * 3 / 4 && rest <= expected_ns * 5 / 4, "{rest} for {unanswered_ns}");
        }
        assert!(stream_back_off_ns(5, 0, &mut random) > 0);
    }

    #[test]
    fn back_off_keeps_to_shorter_limits() {
        let (mut failures, mut random) = (Failures::default(), Random::new(2));
        assert!((0..20).all(|_| failures.back_off_ns(8_000_000, &mut random) <= 10_000_000));
        assert!(failures.back_off_ns(LONGEST_NS, &mut random) > 10_000_000);
    }
}
