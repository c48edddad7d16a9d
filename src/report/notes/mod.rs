//! The notes, which cast doubt on a result: what happened, to what, why, and what to do next.
//!
//! A note is plain data until it is printed. This file has the kinds of notes, `decide` says when there is one, `flight` compares what
//! was in flight with the latencies, `open_loop` what was due with what was sent, `fold` says in which order and how many of them, and `words` has the sentences.
//! Everything that came from a server is escaped.

mod decide;
mod flight;
mod fold;
mod open_loop;
mod words;

pub use decide::notes;
pub use flight::{Flight, Hanging, Places};
pub use fold::print_notes;
pub use open_loop::{Behind, Bottleneck, Burst, Crowded, Remedy, Uncertain};

use std::net::SocketAddr;
use std::time::Duration;

use super::failure::Failure;
use crate::run::{Shortage, Until};
use crate::stats::Gap;

/// One thing to know about a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Something that the verdict's evidence shows beside, in a sentence.
    Found(String),
    /// An address refused before the run while another one worked.
    Dropped {
        /// The address that was left out.
        address: SocketAddr,
        /// Its error number.
        errno: i32,
        /// The addresses that took the load.
        used: Vec<SocketAddr>,
    },
    /// A signal ended the run before its time.
    Signal {
        /// How long the run had lasted.
        elapsed: Duration,
        /// How long it was to last; `None`: until its requests had ended.
        planned: Option<Duration>,
    },
    /// A signal came before anything was sent.
    NeverBegun,
    /// The target stayed away and the run was ended.
    StayedAway {
        /// How long it was waited for.
        give_up: Duration,
        /// The requests that were started before.
        started: u64,
        /// The requests that were asked for.
        asked: u64,
    },
    /// The time was up before all requests had ended.
    TooFewRequests {
        /// How long the run had lasted.
        elapsed: Duration,
        /// The requests that were answered.
        completed: u64,
        /// The requests that were asked for.
        asked: u64,
        /// Whether stages say how long the run lasts.
        staged: bool,
    },
    /// Only the first of the requests that a script sends at once was sent.
    FirstOfBatch {
        /// How many there are.
        count: usize,
    },
    /// The kernel made a buffer of connections smaller than was asked for.
    Capped(Capped),
    /// Not every connection that was asked for was ever open.
    FewerConnections {
        /// How many were open at least once.
        opened: u64,
        /// How many were asked for.
        asked: u64,
        /// Whether the limit of open files was the reason.
        shortage: Option<Shortage>,
        /// Whether attempts to connect failed; each kind of failure has its own note then.
        failures: bool,
        /// Whether stages say how many there are to be.
        staged: bool,
    },
    /// Connections were not as busy as they were asked to be.
    Idle {
        /// How many were asked for.
        connections: u64,
        /// Where they were.
        places: Places,
    },
    /// The server closed connections that waited for a request to be due.
    IdleClosed {
        /// How often.
        count: u64,
    },
    /// More requests wait in vain than the latencies can tell.
    Hanging {
        /// What was in flight.
        flight: Flight,
        /// What waits.
        hanging: Hanging,
    },
    /// The run was to end when its figures were precise enough well enough.
    Until {
        /// What is known of the figures.
        until: Until,
        /// How long was measured.
        elapsed: Duration,
        /// Whether the number of requests ended the run.
        counted: bool,
    },
    /// Fewer requests were sent than were due.
    Behind(Behind),
    /// Requests were due, and all connections busy.
    Crowded(Crowded),
    /// Many requests were sent late.
    Late {
        /// How many.
        late: u64,
        /// How many were sent.
        sent: u64,
        /// Later than this is late.
        limit: Duration,
        /// How late, in nanoseconds, 99 % of them were at most.
        p99_ns: u64,
        /// How late, in nanoseconds, the latest was.
        max_ns: u64,
        /// A reason in the plan.
        burst: Option<Burst>,
    },
    /// Requests were not sent because they would have been too late.
    TooLate {
        /// How many.
        dropped: u64,
        /// How many were due, those that a warm-up left included.
        due: u64,
        /// Whether the percentiles that the text shows contain them, which wrk2's do not.
        in_percentiles: bool,
    },
    /// Requests left at the ends of slices.
    Sliced {
        /// How long those were.
        slice: Duration,
        /// How late requests left on average, in nanoseconds.
        mean_ns: f64,
    },
    /// A percentile of the latency since requests were due is not known.
    Uncertain(Uncertain),
    /// Something went wrong; one note for each row of the ledger but the statuses.
    Failure(Failure),
    /// onrush itself was stalled.
    Standstill {
        /// The longest of those times, in their order.
        longest: Vec<Gap>,
        /// How many there were.
        count: usize,
        /// How long was measured, in nanoseconds.
        elapsed_ns: u64,
        /// The share (0 to 1) of that, short times included.
        share: f64,
        /// The share (0 to 1) of the latencies that contain some of it.
        touched: f64,
    },
    /// The machine was suspended.
    Suspended {
        /// For how long.
        lasted: Duration,
    },
    /// Some of the requests got no response.
    Unanswered(Lost),
    /// No request at all was answered.
    NothingAnswered(Lost),
    /// No request was sent.
    NothingSent(NothingSent),
    /// The only request was not answered.
    NoAnswer(Lost),
    /// For a while nothing was answered.
    Silences {
        /// The longest of those times, in their order.
        longest: Vec<Gap>,
        /// How many there were.
        count: usize,
        /// How long was measured, in nanoseconds.
        elapsed_ns: u64,
    },
    /// The only answer was none of 2xx.
    Answer {
        /// Its status.
        status: u16,
        /// Where it leads to, as the server sent it.
        location: Option<String>,
    },
    /// Other answers than 2xx came.
    Statuses {
        /// All answers.
        answers: u64,
        /// Statuses and how often each came, the most frequent first.
        counts: Vec<(u16, u64)>,
        /// Where one of the redirects led, as the server sent it.
        location: Option<String>,
    },
    /// Requests were in flight when measuring began.
    Carried {
        /// How many.
        carried: u64,
        /// All answers.
        answers: u64,
    },
    /// There were answers before the answers.
    Interim {
        /// How many.
        count: u64,
    },
    /// Latencies were too long to be recorded.
    Clamped {
        /// How many.
        count: u64,
    },
    /// The script did not say how long connections were to pause.
    PausesUnread,
    /// The script saw only the beginning of some bodies.
    CutBodies {
        /// How many.
        count: u64,
    },
    /// Many TLS handshakes were cheaper than those of new clients.
    Resumed {
        /// How many resumed an earlier session.
        resumed: u64,
        /// All handshakes.
        handshakes: u64,
    },
    /// The mean that wrk would have printed.
    Rewritten {
        /// In microseconds.
        mean_us: f64,
    },
}

/// A buffer of connections that the kernel made smaller than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capped {
    /// The option that asked for it.
    pub option: &'static str,
    /// The kernel's setting that allows no more.
    pub setting: &'static str,
    /// The bytes that were asked for.
    pub requested: u32,
    /// The bytes that the smallest one has, without those that the kernel adds for itself.
    pub given: u32,
}

/// Why no request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NothingSent {
    /// None was due in the time that was measured.
    NotDue,
    /// Every connection paused for the script.
    Paused,
    /// There was no connection, or no time.
    Unable,
}

/// What became of the requests without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// All requests that were started, answered or not.
    pub started: u64,
    /// Requests that failed; the ledger says how.
    pub failed: u64,
    /// Requests given up.
    pub abandoned: u64,
    /// Requests open at the end of the run; where others were answered, only those that waited longer than answers took.
    pub open: u64,
    /// How long, in nanoseconds, the youngest of those abandoned or open had lasted, where that is known.
    pub youngest_ns: Option<u64>,
    /// How long, in nanoseconds, the oldest of those abandoned or open had lasted.
    pub oldest_ns: Option<u64>,
}

impl Lost {
    /// How many there are.
    pub fn total(&self) -> u64 {
        self.failed + self.abandoned + self.open
    }
}

#[cfg(test)]
mod tests;
