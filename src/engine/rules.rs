//! What a worker counts with.

use super::retry::LONGEST_NS;

/// What a worker counts with, fixed for the run.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How finely, and what counts at all.
    pub scale: Scale,
    /// A request is late when it lasts longer, in nanoseconds; `None`: never.
    pub timeout_ns: Option<u64>,
    /// The phases of every request are recorded.
    pub phases: bool,
    /// Requests are sent in batches: each of those has a latency too.
    pub pipelines: bool,
    /// Requests are due at moments of a schedule, from which their latency counts.
    pub open_loop: Option<OpenLoop>,
}

/// What counts where requests are due at moments of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenLoop {
    /// A request that would start later than this after it was due, in nanoseconds, is dropped; `None`: none is.
    pub max_late_ns: Option<u64>,
    /// A request that is sent more than this after it was due, in nanoseconds, is late.
    pub late_ns: u64,
    /// Requests leave at the ends of slices of this length, in nanoseconds, so that they may start as much later.
    pub slice_ns: u64,
    /// Whether things are recorded as wrk2 does: latencies in its own way too, and it is an error that a server closes a
    /// connection with nothing in flight.
    pub as_wrk2: bool,
    /// As wrk2 records, only the last response of a batch has a latency (`-B`).
    pub per_batch: bool,
}

/// How finely things are recorded, and what counts at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Latencies are whole multiples of this, in nanoseconds.
    pub quantum_ns: u64,
    /// Rates are taken over whole multiples of this, in nanoseconds.
    pub rate_unit_ns: u64,
    /// Late answers are left out of the latencies.
    pub omits_late: bool,
    /// Stretches in which nothing was completed are left out of the rates.
    pub omits_idle: bool,
    /// The bytes of a read in which the server made a mistake are left out.
    pub omits_mistakes: bool,
    /// A batch is late once, however many are in it.
    pub late_once_a_batch: bool,
    /// The longest wait before a connection that had been accepted is opened again, in nanoseconds, give or take a quarter.
    pub retry_max_ns: u64,
}

impl Scale {
    /// Everything counts, as exactly as it is known.
    pub const EXACT: Self = Self {
        quantum_ns: 1,
        rate_unit_ns: 1,
        omits_late: false,
        omits_idle: false,
        omits_mistakes: false,
        late_once_a_batch: false,
        retry_max_ns: LONGEST_NS,
    };
    /// As wrk and its forks have it. They open connections again at once, which 8 ms come close to.
    pub const WRK: Self = Self {
        quantum_ns: 1_000,
        rate_unit_ns: 1_000_000,
        omits_late: true,
        omits_idle: true,
        omits_mistakes: true,
        late_once_a_batch: true,
        retry_max_ns: 8_000_000,
    };
    /// As wrk2 has it, which leaves no latency out and no sample of the rate.
    pub const WRK2: Self = Self { omits_late: false, omits_idle: false, ..Self::WRK };
}
