//! How long the slots of a probe must be, how many there are, and whether there is time for them.
//!
//! The order is A B B A, again and again, so that a steady drift changes both alike. A slot is ten ticks: the first two
//! are discarded, because requests that were in flight under the other number are still answered in them, and each of
//! the other eight is a batch, so that the noise within a slot is known.

use std::time::Duration;

/// The ticks of a slot.
pub const TICKS: u32 = 10;
/// Those of them that are discarded.
pub const DISCARDED: u32 = 2;
/// The fewest responses that count in a slot. With exponential service times the counts are those of a Poisson process:
/// with c and ¾ c in flight, eight slots of 1,000 responses give the elasticity a standard error of 0.08, and more than
/// nine of ten intervals leave out 0.7 if it is 1, or 0.3 if it is 0. With 500 responses only six of ten would.
const RESPONSES: f64 = 1_000.0;
/// The fewest for each request in flight. If all take the same time, so many arrive at once, and whether the last of them
/// are still in the slot is chance.
const ROUNDS: u32 = 16;
/// The shortest tick: the workers hand over after each, and are collected from four times in each. On a busy machine
/// either may wait for some milliseconds.
const TICK_MIN: Duration = Duration::from_millis(10);
/// The fewest slots, and the most.
const SLOTS: [u32; 2] = [8, 40];
/// What opening a connection takes at most, with a TLS handshake of a slow target.
const OPENING: Duration = Duration::from_micros(500);

/// What is known of the run before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    /// The requests in flight.
    pub in_flight: u32,
    /// How many of them a connection may have.
    pub streams: u32,
    /// Its responses per second.
    pub rate_per_s: f64,
    /// Its median latency.
    pub p50: Duration,
    /// The latency that nine of ten responses did not exceed.
    pub p90: Duration,
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// The requests in flight in the run before, and in every A.
    pub in_flight: u32,
    /// How many of them a connection may have.
    pub streams: u32,
    /// The requests in flight in every B.
    pub other: u32,
    /// The number of slots, a multiple of four.
    pub count: u32,
    /// The length of a tick.
    pub tick: Duration,
    /// How long all connections are busy before the first slot.
    pub warm_up: Duration,
}

/// There is too little time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unaffordable {
    /// How much it would take.
    pub needed: Duration,
}

impl Design {
    /// The probe with `other` requests in flight instead, in this time.
    ///
    /// # Errors
    ///
    /// When that is too short for an answer.
    pub fn of(base: &Base, other: u32, time: Duration) -> Result<Self, Unaffordable> {
        // In the discarded part everything that was sent before is answered.
        let settles = base.p90 * TICKS / DISCARDED;
        let responses = RESPONSES.max(f64::from(ROUNDS.saturating_mul(base.in_flight)));
        let answers = Duration::from_secs_f64((responses / base.rate_per_s.max(1e-3)).min(1e6));
        let slot = settles.max(answers * TICKS / (TICKS - DISCARDED)).max(TICK_MIN * TICKS);
        let opening = OPENING * base.in_flight.max(other).div_ceil(base.streams);
        // The first slot discards its beginning as well.
        let warm_up = (slot * DISCARDED / TICKS).max(opening);
        let needed = warm_up + slot * SLOTS[0];
        let Some(left) = time.checked_sub(warm_up).filter(|_| needed <= time) else {
            return Err(Unaffordable { needed });
        };
        let fitting = (left.as_nanos() / slot.as_nanos()).min(u128::from(SLOTS[1])) as u32;
        let count = fitting / 4 * 4;
        // Whole microseconds, so that every tick begins at an agreed time.
        let tick = Duration::from_micros((left / count / TICKS).as_micros() as u64);
        let &Base { in_flight, streams, .. } = base;
        Ok(Self { in_flight, streams, other, count, tick, warm_up })
    }

    /// The length of a slot.
    pub fn slot(&self) -> Duration {
        self.tick * TICKS
    }

    /// The connections that it needs.
    pub fn connections(&self) -> u32 {
        self.in_flight.max(self.other).div_ceil(self.streams)
    }

    /// The requests in flight in each slot.
    pub fn slots(&self) -> Vec<u32> {
        let (a, b) = (self.in_flight, self.other);
        [a, b, b, a].into_iter().cycle().take(self.count as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn fast_targets_get_many_short_slots_and_slow_ones_a_few_long_ones() {
        let fast = Base { in_flight: 16, streams: 1, rate_per_s: 100_000.0, p50: MS / 8, p90: MS / 4 };
        let design = Design::of(&fast, 12, 2_000 * MS).unwrap();
        assert_eq!((design.count, design.slot() >= 98 * MS), (16, true), "{design:?}");
        let length = design.warm_up + design.slot() * design.count;
        assert!(length <= 2_000 * MS && length > 1_900 * MS, "{design:?}");
        assert_eq!(design.slots()[..6], [16, 12, 12, 16, 16, 12]);
        let slow = Base { in_flight: 16, streams: 1, rate_per_s: 5_600.0, p50: 3 * MS, p90: 3 * MS };
        let design = Design::of(&slow, 12, 2_000 * MS).unwrap();
        assert_eq!(design.count, 8, "{design:?}");
        let counted = (design.tick * (TICKS - DISCARDED)).as_secs_f64() * slow.rate_per_s;
        assert!(counted >= RESPONSES, "{counted}");
    }

    #[test]
    fn too_little_time_is_told_with_the_time_it_takes() {
        let slow = Base { in_flight: 16, streams: 1, rate_per_s: 160.0, p50: 100 * MS, p90: 100 * MS };
        let Unaffordable { needed } = Design::of(&slow, 12, 3_000 * MS).unwrap_err();
        assert!(Design::of(&slow, 12, needed).is_ok(), "{needed:?}");
        assert!(Design::of(&slow, 12, needed - MS).is_err());
        let silent = Base { rate_per_s: 0.0, ..slow };
        assert!(Design::of(&silent, 12, 3_000 * MS).is_err());
    }
}
