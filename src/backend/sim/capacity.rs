//! What a simulated server can do at a time: places in which it works on requests, and a queue for the others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anyhow::ensure;
use onrush_proto::Nanos;
use serde::{Deserialize, Serialize};

use super::nanos;
use crate::random::Random;

/// How much work a server does at a time. Requests are worked on in the order in which they arrive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// How many requests are worked on at a time; the threads of a run have equal shares.
    pub workers: u32,
    /// How long a worker has to do with a request on average, in microseconds.
    pub service_us: f64,
    /// How much that varies from request to request.
    #[serde(default)]
    pub spread: Spread,
    /// How many requests wait at most, in shares as well; any other is answered with 503 at once. Without it: any
    /// number.
    pub queue: Option<u32>,
    /// For each second the service takes longer or shorter by a random share of up to this, evenly distributed: 0.1 is
    /// ten per cent.
    #[serde(default)]
    pub noise: f64,
    /// Where the server collapses.
    pub cliff: Option<Cliff>,
    /// The seed of the noise, which all threads have in common.
    #[serde(skip)]
    seed: u64,
}

/// How service times are distributed around their mean.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// They are all the same.
    #[default]
    Constant,
    /// Exponentially.
    Exponential,
    /// Log-normally, with this standard deviation as a share of the mean.
    LogNormal(f64),
}

/// A load beyond which a server does less than before it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cliff {
    /// With more requests waiting than this, in shares as well, …
    pub waiting: u32,
    /// … the service takes this many times as long.
    pub slower: f64,
}

impl Capacity {
    /// The share of each of several threads.
    pub(super) fn share(&self, threads: u32, seed: u64) -> anyhow::Result<Self> {
        let Self { workers, .. } = *self;
        ensure!(
            workers > 0 && workers.is_multiple_of(threads),
            "capacity: {workers} workers cannot be divided among {threads} threads; change workers, or -t"
        );
        let cliff = self.cliff.map(|cliff| Cliff { waiting: cliff.waiting / threads, ..cliff });
        Ok(Self {
            workers: workers / threads,
            queue: self.queue.map(|most| most / threads),
            cliff,
            seed,
            ..self.clone()
        })
    }

    /// How long a service that begins now takes while this many requests wait, in nanoseconds.
    fn service_ns(&self, now: Nanos, waiting: usize, random: &mut Random) -> u64 {
        let drawn = match self.spread {
            Spread::Constant => 1.0,
            Spread::Exponential => random.exponential(),
            Spread::LogNormal(spread) => {
                let variance = (1.0 + spread * spread).ln();
                (variance.sqrt() * random.normal() - variance / 2.0).exp()
            }
        };
        let second = now.0 / 1_000_000_000;
        let noise = self.noise * (2.0 * Random::new(self.seed ^ second).uniform() - 1.0);
        let slower = self.cliff.filter(|cliff| waiting > cliff.waiting as usize).map_or(1.0, |cliff| cliff.slower);
        nanos(self.service_us * drawn * (1.0 + noise) * slower)
    }
}

/// The workers of a server, and its queue.
pub(super) struct Workers {
    /// When each has done what it has been given.
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// When the requests that wait will be begun.
    begin_at: VecDeque<Nanos>,
    random: Random,
}

impl Workers {
    /// Workers who have nothing to do.
    pub fn new(capacity: &Capacity, random: Random) -> Self {
        let free_at = (0..capacity.workers).map(|_| Reverse(Nanos::default())).collect();
        Self { free_at, begin_at: VecDeque::new(), random }
    }

    /// When a request that arrives now is done with; `None`: too many wait.
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
