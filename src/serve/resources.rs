//! The resources that the connections of one thread share: an input and an output buffer, a clock, the counts, and the
//! freezes and the queue, which all threads share.

use std::sync::Arc;
use std::time::Instant;

use super::capacity::Capacity;
use super::counters::Counters;
use super::freeze::Freeze;

/// The resources that the connections of a thread share.
#[derive(Debug)]
pub(super) struct Resources {
    /// The buffer that a turn receives into.
    pub input: Vec<u8>,
    /// The buffer of bytes to be sent.
    pub output: Vec<u8>,
    /// The freezes of the whole target.
    pub freeze: Arc<Freeze>,
    /// The queue of the whole target.
    pub capacity: Arc<Capacity>,
    started: Instant,
    counters: Arc<[Counters]>,
    thread: usize,
}

/// The most bytes that are received at a time, and so the most that a connection may hold.
const INPUT_BYTES: usize = 64 * 1024;

/// The number of bytes from which output is sent before another request is read.
pub(super) const OUTPUT_BYTES: usize = 128 * 1024;

impl Resources {
    /// The resources of the thread with this index, with empty buffers.
    pub(super) fn new(counters: Arc<[Counters]>, thread: usize, freeze: Arc<Freeze>, capacity: Arc<Capacity>) -> Self {
        let input = Vec::with_capacity(INPUT_BYTES);
        let output = Vec::with_capacity(OUTPUT_BYTES);
        Self { input, output, freeze, capacity, started: Instant::now(), counters, thread }
    }

    /// Nanoseconds since the thread began.
    pub(super) fn now_ns(&self) -> u64 {
        // 2^64 ns is 584 years.
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
