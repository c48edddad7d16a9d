//! A worker's counting rules.

use super::retry::LONGEST_NS;

/// Counting rules, fixed for the run.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Precision of times, and omissions.
    pub scale: Scale,
    /// Latency above which a request is late, in nanoseconds; `None`: never.
    pub timeout_ns: Option<u64>,
    /// True to record how long each phase of connecting and of a response takes.
    pub phases: bool,
    /// True to count responses and failures under each request's name, too.
    pub by_name: bool,
    /// True if requests are sent in batches: the latency of a batch, up to its last response, is then recorded as well.
    pub pipelines: bool,
    /// Rules for scheduled requests, whose latency counts from their due times; `None`: closed loop.
    pub open_loop: Option<OpenLoop>,
}

/// Rules for scheduled requests, in an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenLoop {
    /// Delay after its due time beyond which a request is dropped instead of started, in nanoseconds; `None`: never.
    pub max_late_ns: Option<u64>,
    /// Delay after its due time beyond which a sent request is late, in nanoseconds.
    pub late_ns: u64,
    /// Length of the slices at whose ends requests leave, in nanoseconds, so that a request leaves up to that much
    /// late; zero: no slices.
    pub slice_ns: u64,
    /// True to record latencies additionally as wrk2 does.
    pub as_wrk2: bool,
    /// True if only the last response of a batch has a latency, as in wrk2 (`-B`).
    pub per_batch: bool,
}

/// Precision of times, and what is left out of the results, so that they can equal those of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Resolution of latencies, in nanoseconds; they are rounded down.
    pub quantum_ns: u64,
    /// Resolution of the time between two rate samples, in nanoseconds.
    pub rate_unit_ns: u64,
    /// True to omit late responses from the latencies.
    pub omits_late: bool,
    /// True to take no rate sample while nothing completes; the next sample covers that time.
    pub omits_idle: bool,
    /// True to leave the bytes of a read in which the server made a mistake out of the received bytes.
    pub omits_mistakes: bool,
    /// True to count it as an error if the server closes an idle connection unannounced.
    pub counts_idle_closes: bool,
    /// True to count a batch as late once, however many of its requests are late.
    pub late_once_a_batch: bool,
    /// Longest wait before a slot reconnects after an accepted connection failed, in nanoseconds, plus or minus a
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
    /// The scale of wrk and its forks. They reconnect at once; 8 ms is close to that.
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
    /// The scale of wrk2, which omits neither latencies nor rate samples.
    pub const WRK2: Self = Self { omits_late: false, omits_idle: false, ..Self::WRK };
}
