//! The order in which the requests from a list are sent. The k-th request of a run depends only on k and the seed, so
//! threads need no coordination.

use std::sync::Arc;

use onrush_plan::list::ListOrder;

/// Maps the number of a request to a list entry.
#[derive(Clone, Debug)]
pub struct Picker {
    order: ListOrder,
    length: u64,
    /// Cumulative weight of each request; empty if all weights are equal.
    weights: Arc<[u64]>,
    seed: u64,
}

impl Picker {
    /// Creates a picker for a list of this length, at least one, with these cumulative weights.
    pub fn new(order: ListOrder, length: usize, weights: Arc<[u64]>, seed: u64) -> Self {
        Self { order, length: length as u64, weights, seed }
    }

    /// Index of the k-th request of the run in the list.
    pub fn pick(&self, k: u64) -> usize {
        let picked = match self.order {
            ListOrder::Seq => k % self.length,
            ListOrder::Shuffle => permuted_position(k % self.length, self.length, mix_seed(self.seed, k / self.length)),
            ListOrder::Weighted => {
                let total = self.weights.last().copied().unwrap_or(self.length);
                let drawn = (u128::from(mix_seed(self.seed, k)) * u128::from(total)) >> 64;
                return match &self.weights[..] {
                    [] => drawn as usize,
                    sums => sums.partition_point(|sum| u128::from(*sum) <= drawn),
                };
            }
        };
        picked as usize
    }
}

/// Numbers of the requests that a worker sends: one of each group, with one for every worker. The position in the group
/// changes with each pass through the list. Otherwise a worker would always send the same part of a list whose length
/// is a multiple of the number of workers, and fast workers would change the mix.
#[derive(Clone, Debug)]
pub struct RequestNumbering {
    /// Number of this worker, and number of workers.
    worker: (u64, u64),
    /// Which requests of the run are sent by this machine: the first, and the distance to the next.
    part: (u64, u64),
    /// Number of requests after which the run starts over: the length of the list, multiplied to cover the values of
    /// its placeholders.
    length: u64,
    /// Number of its requests after which a worker would repeat the same entries.
    period: u64,
    /// Number of requests that every worker here sends; the first workers send the remainder.
    whole: u64,
    sent: u64,
}

impl RequestNumbering {
    /// The numbering for a single worker that sends this part (first, distance) of a run over a list of this length.
    /// `whole`: number of requests that every worker is certain to send.
    pub fn new(part: (u64, u64), length: u64, whole: u64) -> Self {
        Self { worker: (0, 1), part, length, period: 1, whole, sent: 0 }.of_worker(0, 1)
    }

    /// This numbering for requests whose values also take turns. `turns`: number of values in each cycle.
    #[must_use]
    pub fn with_values(mut self, turns: impl IntoIterator<Item = u64>) -> Self {
        for turn in turns {
            // Saturating is fine: no run is long enough to complete such a cycle.
            self.length = (self.length / gcd(self.length, turn)).saturating_mul(turn);
        }
        let (worker, workers) = self.worker;
        self.of_worker(worker, workers)
    }

    /// This numbering for one of several workers.
    #[must_use]
    pub fn of_worker(&self, worker: u64, workers: u64) -> Self {
        let period = self.length / gcd(self.length, self.part.1 * workers);
        Self { worker: (worker, workers), period, ..self.clone() }
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

impl RequestNumbering {
    /// Returns the number, in the run and from 0, of the next request that this worker sends. Never ends.
    pub fn next_number(&mut self) -> u64 {
        let (worker, workers) = self.worker;
        let (first, step) = self.part;
        let before = self.sent * workers;
        let times = if self.sent < self.whole { self.sent / self.period } else { 0 };
        self.sent += 1;
        first + (before + (worker + times) % workers) * step
    }
}

impl Iterator for RequestNumbering {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.next_number())
    }
}

/// Position of a number in a permutation of `length` numbers: a Feistel network of eight rounds on the smallest even
/// number of bits, repeated until the result is in range (Black and Rogaway, 2002, "cycle walking").
fn permuted_position(mut number: u64, length: u64, key: u64) -> u64 {
    let half = (u64::BITS - (length - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1 << half) - 1;
    loop {
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..8 {
            (left, right) = (right, left ^ (mix_seed(key ^ round, right) & mask));
        }
        number = left << half | right;
        if number < length {
            return number;
        }
    }
}

/// A pseudorandom function of both numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
pub(super) fn mix_seed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn picker(order: ListOrder, length: usize, weights: &[u64]) -> Picker {
        Picker::new(order, length, weights.into(), 7)
    }

    #[test]
    fn workers_share_numbers_with_equal_mix() {
        for (workers, length, requests) in [(1, 3, 10), (2, 2, 37), (2, 4, 400), (3, 4, 100), (4, 2, 101), (3, 7, 5)] {
            let numbers = |worker| RequestNumbering::new((0, 1), length, requests / workers).of_worker(worker, workers);
            let share = |worker| requests / workers + u64::from(worker < requests % workers);
            let each: Vec<Vec<u64>> =
                (0..workers).map(|worker| numbers(worker).take(share(worker) as usize).collect()).collect();
            let mut all: Vec<u64> = each.concat();
            all.sort_unstable();
            assert_eq!(all, (0..requests).collect::<Vec<_>>(), "{workers} {length}");
            for numbers in each.iter().filter(|numbers| numbers.len() >= 100) {
                let firsts = numbers.iter().filter(|k| *k % length == 0).count() as f64 / numbers.len() as f64;
                assert!((firsts - 1.0 / length as f64).abs() < 0.02, "{workers} {length}: {firsts}");
            }
        }
        let endless = RequestNumbering::new((1, 3), 2, u64::MAX).of_worker(0, 2);
        assert_eq!(endless.take(4).collect::<Vec<_>>(), [1, 10, 13, 22]);
    }

    #[test]
    fn workers_send_every_request_equally_often() {
        for (workers, length, step) in (1..=6).flat_map(|one| (1..=12).map(move |other| (one, other, 1 + other % 3))) {
            let rounds = workers * length;
            for worker in 0..workers {
                let numbers = RequestNumbering::new((step - 1, step), length, u64::MAX).of_worker(worker, workers);
                let mut counts = vec![0; length as usize];
                numbers.take(rounds as usize).for_each(|k| counts[(k % length) as usize] += 1);
                // A list keeps its mix if several machines each send one part of the run.
                let shared = gcd(length, step);
                let expected = rounds * shared / length;
                let all = counts.iter().filter(|count| **count > 0);
                assert!(all.clone().all(|count| *count == expected), "{workers} {length} {step}: {counts:?}");
            }
        }
    }

    #[test]
    fn workers_use_every_value_equally_often() {
        for (length, turns) in [(1, vec![100]), (2, vec![4, 6]), (3, vec![2])] {
            for worker in 0..2 {
                let numbers =
                    RequestNumbering::new((0, 1), length, u64::MAX).with_values(turns.clone()).of_worker(worker, 2);
                let seen: BTreeSet<u64> = numbers.take(2 * turns[0] as usize).map(|k| k % turns[0]).collect();
                assert_eq!(seen.len() as u64, turns[0], "{length} {turns:?} {worker}");
            }
        }
        let endless = RequestNumbering::new((0, 1), 3, u64::MAX).with_values([u64::MAX, u64::MAX - 1]);
        assert_eq!(endless.take(3).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn sequences_repeat_from_their_start() {
        let picker = picker(ListOrder::Seq, 3, &[]);
        assert_eq!((0..7).map(|k| picker.pick(k)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn shuffles_are_permutations_that_vary() {
        for length in [1, 2, 3, 5, 16, 17, 1_000, 4_097] {
            let picker = picker(ListOrder::Shuffle, length, &[]);
            let time = |time: u64| -> Vec<usize> {
                (0..length as u64).map(|k| picker.pick(time * length as u64 + k)).collect()
            };
            let (first, second) = (time(0), time(1));
            for order in [&first, &second] {
                assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), length);
                assert!(order.iter().all(|index| *index < length));
            }
            assert!(length < 16 || first != second && !first.is_sorted(), "{length}");
        }
    }

    #[test]
    fn shuffles_are_uniform() {
        const TIMES: u64 = 5_000;
        let picker = picker(ListOrder::Shuffle, 10, &[]);
        let mut counts = [[0_u64; 10]; 10];
        (0..10 * TIMES).for_each(|k| counts[(k % 10) as usize][picker.pick(k)] += 1);
        // Chi-squared with 9 degrees of freedom: 33.7 is the 0.9999 quantile.
        for row in counts {
            let expected = TIMES as f64 / 10.0;
            let chi: f64 = row.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
            assert!(chi < 33.7, "{chi}: {row:?}");
        }
    }

    #[test]
    fn requests_are_drawn_by_weight() {
        const DRAWN: u64 = 100_000;
        let weights = [5, 1, 3, 1];
        let sums = [5, 6, 9, 10];
        let picker = picker(ListOrder::Weighted, 4, &sums);
        let mut counts = [0_u64; 4];
        (0..DRAWN).for_each(|k| counts[picker.pick(k)] += 1);
        let chi: f64 = counts
            .iter()
            .zip(weights)
            .map(|(count, weight)| {
                let expected = DRAWN as f64 * f64::from(weight) / 10.0;
                (*count as f64 - expected).powi(2) / expected
            })
            .sum();
        // Chi-squared with 3 degrees of freedom: 21.1 is the 0.9999 quantile.
        assert!(chi < 21.1, "{chi}: {counts:?}");
        let alike = self::picker(ListOrder::Weighted, 4, &[]);
        assert_eq!((0..1_000).map(|k| alike.pick(k)).collect::<BTreeSet<_>>().len(), 4);
    }
}
