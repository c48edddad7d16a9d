//! The resources that the connections of one thread share: an input and an output buffer, a clock, a random sequence,
//! an inbox, and the state shared by all threads.

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

/// Shared by all threads.
#[derive(Debug)]
pub(super) struct Common {
    /// The freezes of the whole target.
    pub freeze: Freeze,
    /// The queue of the whole target.
    pub capacity: Capacity,
    /// The settings of TLS, if connections use it.
    pub tls: Option<TlsSettings>,
    places: Arc<AdmissionControl>,
    counters: Arc<[ThreadCounters]>,
}

/// The resources that the connections of a thread share.
#[derive(Debug)]
pub(super) struct Resources {
    /// The buffer that a turn receives into.
    pub input: Vec<u8>,
    /// The buffer of bytes to be sent.
    pub output: Vec<u8>,
    /// Shared by all threads.
    pub common: Arc<Common>,
    /// The sequence that service times are drawn from.
    pub random: RefCell<Random>,
    /// The calls for connections of this thread.
    pub inbox: Arc<Inbox>,
    counters: Arc<[ThreadCounters]>,
    started: Instant,
    thread: usize,
}

/// The most bytes that are received at a time, and so the most that a connection may hold.
const INPUT_BYTES: usize = 64 * 1024;

/// The number of bytes from which output is sent before another request is read.
pub(super) const OUTPUT_BYTES: usize = 128 * 1024;

impl Common {
    /// Shared parts for so many threads.
    pub(super) fn new(threads: usize, tls: Option<TlsSettings>) -> Self {
        let counters = (0..threads).map(|_| ThreadCounters::default()).collect();
        Self { freeze: Freeze::default(), capacity: Capacity::default(), tls, places: Arc::default(), counters }
    }
}

impl Resources {
    /// The resources of the thread with this index, with empty buffers.
    ///
    /// # Errors
    /// Descriptors ran out.
    pub(super) fn new(common: Arc<Common>, thread: usize) -> io::Result<Self> {
        // Seeds in a row begin sequences that have nothing to do with one another.
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

    /// Nanoseconds since the thread began.
    pub(super) fn now_ns(&self) -> u64 {
        self.ns_of(Instant::now())
    }

    /// A time in nanoseconds since the thread began; zero, if it is before that.
    pub(super) fn ns_of(&self, at: Instant) -> u64 {
        // 2^64 ns is 584 years.
        at.saturating_duration_since(self.started).as_nanos() as u64
    }

    /// Asks for a place for a connection of this thread, which gets this call when the place is given.
    pub(super) fn ask(&self, limit: AdmissionLimit, call: WakeCall) -> Admission {
        self.common.places.ask(limit, Instant::now(), ConnectionWaker { inbox: Arc::clone(&self.inbox), call })
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
