//! A worker's counting rules.

use super::retry::LONGEST_NS;

/// Counting rules, fixed for the run.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Precision of times, and the choice of counted ones.
    pub scale: Scale,
    /// A request is late when it lasts longer, in nanoseconds; `None`: never.
    pub timeout_ns: Option<u64>,
    /// True to record the phases of every request.
    pub phases: bool,
    /// True to count requests by name.
    pub by_name: bool,
    /// True if requests are sent in batches, which have a latency of their own.
    pub pipelines: bool,
    /// Requests have a schedule, and their latency counts from when they were due.
    pub open_loop: Option<OpenLoop>,
}

/// The rules for requests that have a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenLoop {
    /// A request that would start later than this after it was due, in nanoseconds, is dropped; `None`: never.
    pub max_late_ns: Option<u64>,
    /// A request sent later than this after it was due, in nanoseconds, is late.
    pub late_ns: u64,
    /// Requests leave at the ends of slices of this length, in nanoseconds, and so up to that much later.
    pub slice_ns: u64,
    /// True to record latencies as wrk2 does as well.
    pub as_wrk2: bool,
    /// True if only the last response of a batch has a latency, as in wrk2 (`-B`).
    pub per_batch: bool,
}

/// Precision of times, and the choice of counted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Latencies are whole multiples of this, in nanoseconds.
    pub quantum_ns: u64,
    /// Rates are taken over whole multiples of this, in nanoseconds.
    pub rate_unit_ns: u64,
    /// True to leave late responses out of the latencies.
    pub omits_late: bool,
    /// True to leave time in which nothing was completed out of the rates.
    pub omits_idle: bool,
    /// True to leave out the bytes of a read in which the server made a mistake.
    pub omits_mistakes: bool,
    /// True if it is an error that a server closes a connection with nothing in flight, without announcing it.
    pub counts_idle_closes: bool,
    /// True to count a batch as late once, however many of its requests are.
    pub late_once_a_batch: bool,
    /// The longest wait before a slot whose connection had been accepted reconnects, in nanoseconds, plus or minus a
    /// quarter.
    pub retry_max_ns: u64,
}

impl Scale {
    /// Everything counts, with full precision.
    pub const EXACT: Self = Self {
        quantum_ns: 1,
        rate_unit_ns: 1,
        omits_late: false,
        omits_idle: false,
        omits_mistakes: false,
        counts_idle_closes: false,
        late_once_a_batch: false,
        retry_max_ns: LONGEST_NS,
    };
    /// As in wrk and its forks. They reconnect at once; 8 ms is close to that.
    pub const WRK: Self = Self {
        quantum_ns: 1_000,
        rate_unit_ns: 1_000_000,
        omits_late: true,
        omits_idle: true,
        omits_mistakes: true,
        counts_idle_closes: true,
        late_once_a_batch: true,
        retry_max_ns: 8_000_000,
    };
    /// As in wrk2, which leaves out neither latencies nor rate samples.
    pub const WRK2: Self = Self { omits_late: false, omits_idle: false, ..Self::WRK };
}
