//! Resources shared by the connections of a thread: input and output buffer, clock, random numbers, inbox, and the
//! state shared by all threads.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use onrush_plan::Random;

use super::capacity::Capacity;
use super::counters::ThreadCounters;
use super::freeze::Freeze;
use super::inbox::{ConnectionWaker, Inbox, WakeCall};
use super::places::{Admission, AdmissionControl, AdmissionLimit};
use super::tls::TlsSettings;

/// State shared by all threads.
#[derive(Debug)]
pub(super) struct Common {
    /// The freezes of the whole target.
    pub freeze: Freeze,
    /// The queue of the whole target.
    pub capacity: Capacity,
    /// TLS settings; `None` without TLS.
    pub tls: Option<TlsSettings>,
    places: Arc<AdmissionControl>,
    counters: Arc<[ThreadCounters]>,
}

/// Resources shared by the connections of a thread.
#[derive(Debug)]
pub(super) struct Resources {
    /// Buffer for the bytes received in a turn.
    pub input: Vec<u8>,
    /// Buffer for the bytes to send in a turn.
    pub output: Vec<u8>,
    /// State shared by all threads.
    pub common: Arc<Common>,
    /// Random numbers for service times.
    pub random: RefCell<Random>,
    /// Wakeups for connections of this thread.
    pub inbox: Arc<Inbox>,
    counters: Arc<[ThreadCounters]>,
    started: Instant,
    thread: usize,
}

/// Maximum number of bytes received at once, and so the maximum that a connection can hold back.
const INPUT_BYTES: usize = 64 * 1024;

/// Output size, in bytes, above which no further request is read before sending.
pub(super) const OUTPUT_BYTES: usize = 128 * 1024;

impl Common {
    /// The shared state for this number of threads.
    pub(super) fn new(threads: usize, tls: Option<TlsSettings>) -> Self {
        let counters = (0..threads).map(|_| ThreadCounters::default()).collect();
        Self { freeze: Freeze::default(), capacity: Capacity::default(), tls, places: Arc::default(), counters }
    }
}

impl Resources {
    /// The resources of the thread with this index, with empty buffers.
    ///
    /// # Errors
    /// Fails if no descriptor is available.
    pub(super) fn new(common: Arc<Common>, thread: usize) -> io::Result<Self> {
        // Consecutive seeds must yield independent sequences.
        let random = RefCell::new(Random::new(Random::new(thread as u64).next()));
        let counters = Arc::clone(&common.counters);
        Ok(Self {
            input: Vec::with_capacity(INPUT_BYTES),
            output: Vec::with_capacity(OUTPUT_BYTES),
            common,
            random,
            inbox: Arc::new(Inbox::new()?),
            counters,
            started: Instant::now(),
            thread,
        })
    }

    /// Time since the start of the thread, in nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.ns_of(Instant::now())
    }

    /// Converts a time to nanoseconds since the start of the thread; zero if earlier.
    pub(super) fn ns_of(&self, at: Instant) -> u64 {
        // 2^64 ns is 584 years.
        at.saturating_duration_since(self.started).as_nanos() as u64
    }

    /// Claims a place for a connection of this thread, which gets this wakeup once the place is given.
    pub(super) fn claim_place(&self, limit: AdmissionLimit, call: WakeCall) -> Admission {
        self.common.places.claim_place(limit, Instant::now(), ConnectionWaker { inbox: Arc::clone(&self.inbox), call })
    }

    /// The counts of this thread.
    pub(super) fn counters(&self) -> &ThreadCounters {
        &self.counters[self.thread]
    }

    /// The counts of all threads.
    pub(super) fn all_counters(&self) -> &[ThreadCounters] {
        &self.counters
    }
}
