//! Capacity of a simulated server: workers that serve requests, and a queue for the rest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anyhow::ensure;
use onrush_plan::Random;
use onrush_proto::Nanos;
use serde::{Deserialize, Serialize};

use super::nanos;
use super::service::{Service, Spread};

/// The amount of work a server can do at a time. Requests are served in order of arrival.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Number of requests served at a time. The threads of a run have equal shares.
    pub workers: u32,
    /// Average service time of a request, in microseconds.
    pub service_us: f64,
    /// Distribution of the service times around their average.
    #[serde(default)]
    pub spread: Spread,
    /// Limit on waiting requests, also divided equally among threads; any further request gets a 503 at once. `None`:
    /// unlimited.
    pub queue: Option<u32>,
    /// Service-time noise: in each second, all service times are longer or shorter by a random share of up to this,
    /// evenly distributed. 0.1 is ten per cent; must be less than 1.
    #[serde(default)]
    pub noise: f64,
    /// Load beyond which the server slows down; `None`: none.
    pub cliff: Option<Cliff>,
    /// The seed of the noise, shared by all threads.
    #[serde(skip)]
    seed: u64,
}

/// A [`Capacity`] without limits or surprises, under the names of the embedded target's path.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Number of requests served at a time. The threads of a run have equal shares.
    pub workers: u32,
    /// Service time of a request.
    #[serde(flatten)]
    pub service: Service,
}

/// A load beyond which a server's throughput falls.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cliff {
    /// Threshold: number of waiting requests, divided among threads. Beyond it, …
    pub waiting: u32,
    /// … the service time is multiplied by this factor.
    pub slower: f64,
}

impl Capacity {
    /// Checks that the service time is positive.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Self { service_us, noise, .. } = *self;
        let slower = self.cliff.map_or(1.0, |cliff| cliff.slower);
        let spread = if let Spread::LogNormal(spread) = self.spread { spread } else { 0.0 };
        ensure!(service_us.is_finite() && service_us > 0.0, "service_us = {service_us}: must be above zero");
        ensure!(
            (0.0..1.0).contains(&noise),
            "noise = {noise}: must be a share of the service time, from 0 to less \
                                              than 1"
        );
        ensure!(slower.is_finite() && slower > 0.0, "slower = {slower}: must be a factor above zero");
        ensure!(spread.is_finite() && spread >= 0.0, "spread = {spread}: must be a standard deviation of zero or more");
        Ok(())
    }

    pub(super) fn of(Pool { workers, service }: Pool) -> Self {
        let (service_us, spread) = (service.ms * 1e3, service.spread());
        Self { workers, service_us, spread, queue: None, noise: 0.0, cliff: None, seed: 0 }
    }

    /// One thread's share of the capacity.
    pub(super) fn share(&self, threads: u32, seed: u64) -> anyhow::Result<Self> {
        let share = |name, number| share(name, number, threads);
        ensure!(self.workers > 0, "workers = 0: must be at least 1");
        let cliff = self.cliff.map(|cliff| anyhow::Ok(Cliff { waiting: share("waiting", cliff.waiting)?, ..cliff }));
        Ok(Self {
            workers: share("workers", self.workers)?,
            queue: self.queue.map(|most| share("queue", most)).transpose()?,
            cliff: cliff.transpose()?,
            seed,
            ..self.clone()
        })
    }

    /// Service time, in nanoseconds, of a request whose service starts now while this many requests wait.
    fn service_ns(&self, now: Nanos, waiting: usize, random: &mut Random) -> u64 {
        let drawn = self.spread.draw(random);
        let second = now.0 / 1_000_000_000;
        // The seed is hashed before the second is added: otherwise different seeds would only shift each other's
        // factors in time.
        let mut random = Random::new(Random::new(self.seed).next().wrapping_add(second));
        let noise = self.noise * (2.0 * random.uniform() - 1.0);
        let slower = self.cliff.filter(|cliff| waiting > cliff.waiting as usize).map_or(1.0, |cliff| cliff.slower);
        nanos(self.service_us * drawn * (1.0 + noise) * slower)
    }
}

/// Divides a server quantity equally among threads.
pub(super) fn share(name: &str, number: u32, threads: u32) -> anyhow::Result<u32> {
    ensure!(
        number.is_multiple_of(threads),
        "{name} = {number} cannot be divided among {threads} threads; change it, or -t"
    );
    Ok(number / threads)
}

/// A server's workers and queue.
pub(super) struct Workers {
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// Service start of each waiting request.
    begin_at: VecDeque<Nanos>,
    random: Random,
}

impl Workers {
    /// The workers of this capacity, all idle.
    pub fn new(capacity: &Capacity, random: Random) -> Self {
        let free_at = (0..capacity.workers).map(|_| Reverse(Nanos::default())).collect();
        Self { free_at, begin_at: VecDeque::new(), random }
    }

    /// Completion time of a request that arrives now. `None`: the queue is full.
    pub fn take(&mut self, capacity: &Capacity, now: Nanos) -> Option<Nanos> {
        while self.begin_at.front().is_some_and(|at| *at <= now) {
            self.begin_at.pop_front();
        }
        let waiting = self.begin_at.len();
        let Reverse(free_at) = *self.free_at.peek()?;
        let begin_at = free_at.max(now);
        if begin_at > now {
            if capacity.queue.is_some_and(|most| waiting >= most as usize) {
                return None;
            }
            self.begin_at.push_back(begin_at);
        }
        let done_at = begin_at + capacity.service_ns(begin_at, waiting, &mut self.random);
        self.free_at.pop();
        self.free_at.push(Reverse(done_at));
        Some(done_at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn noise_of_different_seeds_is_independent() {
        let all = |seed| {
            let text = "workers = 1\nservice_us = 1000.0\nnoise = 0.2";
            let capacity = toml::from_str::<Capacity>(text).unwrap().share(1, seed).unwrap();
            let mut random = Random::new(1);
            (0..64).map(|s| capacity.service_ns(Nanos(s * 1_000_000_000), 0, &mut random)).collect::<HashSet<_>>()
        };
        assert!(all(8).is_disjoint(&all(9)) && all(0).is_disjoint(&all(1)));
        assert!(all(8).iter().all(|ns| (800_000..=1_200_000).contains(ns)));
        assert_eq!(all(8), all(8));
    }
}
