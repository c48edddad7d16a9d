//! The resources that the connections of one thread share: one buffer each way, a clock, the counts, and what all threads
//! share: the freezes and the queue.

use std::sync::Arc;
use std::time::Instant;

use super::capacity::Capacity;
use super::counters::Counters;
use super::freeze::Freeze;

/// What the connections of a thread share.
#[derive(Debug)]
pub(super) struct Desk {
    /// Where a turn receives.
    pub input: Vec<u8>,
    /// Where a turn puts what is to be sent.
    pub output: Vec<u8>,
    /// When the whole target answers nothing.
    pub freeze: Arc<Freeze>,
    /// The queue of the whole target.
    pub capacity: Arc<Capacity>,
    started: Instant,
    counters: Arc<[Counters]>,
    thread: usize,
}

/// How much is received at a time, and so how much a connection may hold.
const INPUT_BYTES: usize = 64 * 1024;

/// As soon as this much is to be sent, it is sent before another request is answered.
pub(super) const OUTPUT_BYTES: usize = 128 * 1024;

impl Desk {
    /// An empty desk for the thread with this index.
    pub(super) fn new(counters: Arc<[Counters]>, thread: usize, freeze: Arc<Freeze>, capacity: Arc<Capacity>) -> Self {
        let (input, output) = (Vec::with_capacity(INPUT_BYTES), Vec::with_capacity(OUTPUT_BYTES));
        Self { input, output, freeze, capacity, started: Instant::now(), counters, thread }
    }

    /// Nanoseconds since the thread began.
    pub(super) fn now_ns(&self) -> u64 {
        // 2^64 ns are 584 years.
        self.started.elapsed().as_nanos() as u64
    }

    /// The counts of this thread.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters[self.thread]
    }

    /// The counts of all threads.
    pub(super) fn all_counters(&self) -> &[Counters] {
        &self.counters
    }
}
