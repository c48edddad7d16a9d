//! What a worker counts, and how.

use super::retry::LONGEST_NS;

/// What a worker counts, and how; fixed for the run.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How precisely times are recorded, and what counts.
    pub scale: Scale,
    /// A request is late when it lasts longer, in nanoseconds; `None`: never.
    pub timeout_ns: Option<u64>,
    /// Whether the phases of every request are recorded.
    pub phases: bool,
    /// Whether requests have names, by which they are counted.
    pub by_name: bool,
    /// Requests are sent in batches, which have a latency of their own.
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
    /// Whether to record latencies as wrk2 does as well.
    pub as_wrk2: bool,
    /// As in wrk2, only the last response of a batch has a latency (`-B`).
    pub per_batch: bool,
}

/// How precisely times are recorded, and what counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Latencies are whole multiples of this, in nanoseconds.
    pub quantum_ns: u64,
    /// Rates are taken over whole multiples of this, in nanoseconds.
    pub rate_unit_ns: u64,
    /// Late responses are left out of the latencies.
    pub omits_late: bool,
    /// Time in which nothing was completed is left out of the rates.
    pub omits_idle: bool,
    /// The bytes of a read in which the server made a mistake are left out.
    pub omits_mistakes: bool,
    /// It is an error if a server closes a connection with nothing in flight and has not said that it would.
    pub counts_idle_closes: bool,
    /// A batch is late once, however many of its requests are.
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
