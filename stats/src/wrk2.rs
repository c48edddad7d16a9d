//! Latencies as recorded by wrk2: in whole microseconds, because bins of nanoseconds cannot be mapped to wrk2's.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Count, Distribution};

/// The latencies of a run with a schedule, as recorded by wrk2.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Wrk2<C: Count> {
    /// From a request's due time to the last byte of its response, in whole microseconds.
    pub recorded: Distribution<C>,
    /// From the first byte of a request handed to the kernel to the last byte of its response, in whole microseconds.
    pub uncorrected: Distribution<C>,
}

impl<C: Count> Wrk2<C> {
    /// Records a response, with the nanoseconds since its request was due and since it was sent.
    pub fn record(&mut self, scheduled_ns: u64, service_ns: u64) {
        self.recorded.record(rounded_microseconds(scheduled_ns));
        self.uncorrected.record(rounded_microseconds(service_ns));
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.recorded.clear();
        self.uncorrected.clear();
    }
}

/// Rounds to the nearest microsecond: on average, the difference of two clock readings in whole microseconds.
fn rounded_microseconds(ns: u64) -> u64 {
    (ns + 500) / 1_000
}

impl<C: Count> Default for Wrk2<C> {
    fn default() -> Self {
        Self { recorded: Distribution::default(), uncorrected: Distribution::default() }
    }
}

impl<A: Count, B: Count> AddAssign<&Wrk2<B>> for Wrk2<A> {
    fn add_assign(&mut self, other: &Wrk2<B>) {
        self.recorded += &other.recorded;
        self.uncorrected += &other.uncorrected;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_whole_microseconds_and_add_up() {
        let mut sum = Wrk2::<u64>::default();
        for (scheduled_ns, service_ns) in [(2_499, 499), (2_500, 1_000)] {
            let mut one = Wrk2::<u32>::default();
            one.record(scheduled_ns, service_ns);
            sum += &one;
            one.clear();
            sum += &one;
        }
        let values = |times: &Distribution<u64>| times.values().collect::<Vec<_>>();
        assert_eq!((values(&sum.recorded), values(&sum.uncorrected)), (vec![(2, 1), (3, 1)], vec![(0, 1), (1, 1)]));
    }
}
