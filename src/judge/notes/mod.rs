//! The notes, which qualify a result: what happened, to what, why, and what to do next.
//!
//! A note is plain data until it is printed. This file has the kinds of notes, `decide` determines which of them a
//! result gets, `flight` compares requests in flight with the latencies, `open_loop` what was due with what was sent,
//! `fold` orders notes and limits their number, and `words` has the sentences. Everything that came from a server is
//! escaped.

mod decide;
mod flight;
mod fold;
mod open_loop;
mod words;

pub use decide::notes;
pub use flight::{Flight, Hanging, Places};
pub use fold::lines;
pub use open_loop::{Behind, Bottleneck, Burst, Crowded, LateReason, Remedy, Uncertain};
pub use words::EXPECTS_TLS;

use std::net::SocketAddr;
use std::time::Duration;

use onrush_stats::Gap;

use crate::failure::Failure;
use crate::run::{Shortage, Until};

/// One thing the user should know about a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A further finding of the verdict's evidence, as a sentence.
    Found(String),
    /// An address refused connections before the run while another one worked.
    Dropped {
        /// The address that was left out.
        address: SocketAddr,
        /// Its error number.
        errno: i32,
        /// The addresses that received the load.
        used: Vec<SocketAddr>,
    },
    /// A signal ended the run early.
    Signal {
        /// How long the run had lasted.
        elapsed: Duration,
        /// The planned duration; `None`: until all requests were complete.
        planned: Option<Duration>,
    },
    /// A signal came before anything was sent.
    NeverBegun,
    /// The target was unreachable for so long that the run was ended.
    StayedAway {
        /// How long onrush waited for it.
        give_up: Duration,
        /// The number of requests started until then.
        started: u64,
        /// The number of requests asked for.
        asked: u64,
    },
    /// The time was up before all requests had ended.
    TooFewRequests {
        /// How long the run had lasted.
        elapsed: Duration,
        /// The number of requests completed.
        completed: u64,
        /// The number of requests asked for.
        asked: u64,
        /// Whether stages determine how long the run lasts.
        staged: bool,
    },
    /// Only the first of the requests that a script sends at once was sent.
    FirstOfBatch {
        /// How many requests it sends at once.
        count: usize,
    },
    /// The kernel made a buffer of connections smaller than was asked for.
    Capped(Capped),
    /// Fewer connections were established than were asked for.
    FewerConnections {
        /// How many were established at least once.
        opened: u64,
        /// How many were asked for.
        asked: u64,
        /// The limit on open files, if that was the reason.
        shortage: Option<Shortage>,
        /// Whether exactly that was said before the run.
        announced: bool,
        /// Whether connection attempts failed; each kind of failure then has its own note.
        failures: bool,
        /// Whether stages determine the number of connections.
        staged: bool,
    },
    /// Connections were less busy than they should have been.
    Idle {
        /// How many were asked for.
        connections: u64,
        /// Where they were.
        places: Places,
        /// Whether requests are due by a schedule.
        is_scheduled: bool,
    },
    /// The server closed connections while no request was due.
    IdleClosed {
        /// How often.
        count: u64,
    },
    /// More requests hang than the latencies can show.
    Hanging {
        /// The requests in flight.
        flight: Flight,
        /// The hanging requests.
        hanging: Hanging,
    },
    /// The outcome of `--until`.
    Until {
        /// The precision of the figures.
        until: Until,
        /// How long was measured.
        elapsed: Duration,
        /// Whether the number of requests ended the run.
        counted: bool,
    },
    /// Fewer requests were sent than were due.
    Behind(Behind),
    /// Requests were due while all connections were busy.
    Crowded(Crowded),
    /// Many requests were sent late.
    Late {
        /// How many.
        late: u64,
        /// How many were sent.
        sent: u64,
        /// The threshold above which a request is late.
        limit: Duration,
        /// The 99th percentile of the lateness, in nanoseconds; `None`: it is one of the few greatest.
        p99_ns: Option<u64>,
        /// The greatest lateness, in nanoseconds.
        max_ns: u64,
        /// A burst in the plan that explains it.
        burst: Option<Burst>,
        /// What made them late, if no other note says so.
        reason: Option<LateReason>,
    },
    /// Requests were not sent because they would have been too late.
    TooLate {
        /// How many.
        dropped: u64,
        /// How many were due, including those left over from a warm-up.
        due: u64,
        /// Whether the percentiles that the text shows contain them, which wrk2's do not.
        in_percentiles: bool,
    },
    /// Requests were sent at the ends of slices.
    Sliced {
        /// The length of a slice.
        slice: Duration,
        /// The mean lateness, in nanoseconds.
        mean_ns: f64,
    },
    /// A percentile of the latency since requests were due is not known.
    Uncertain(Uncertain),
    /// Something failed; one note for each row of the ledger except statuses.
    Failure(Failure),
    /// onrush itself was stalled.
    Stalled {
        /// The longest of those times, in chronological order.
        longest: Vec<Gap>,
        /// How many there were.
        count: usize,
        /// How long was measured, in nanoseconds.
        elapsed_ns: u64,
        /// The share (0 to 1) of the run that was stalled, short stalls included.
        share: f64,
        /// The share (0 to 1) of latencies that include stalled time.
        touched: f64,
        /// How many latencies there are.
        latencies: u64,
    },
    /// The machine was suspended.
    Suspended {
        /// For how long.
        lasted: Duration,
    },
    /// Some requests got no response.
    Lost(Lost),
    /// No request got a response.
    NothingAnswered(Lost),
    /// No request was sent.
    NothingSent(NothingSent),
    /// The only request got no response.
    NoAnswer(Lost),
    /// There were silences: no response for a while.
    Silences {
        /// The longest of those times, in chronological order.
        longest: Vec<Gap>,
        /// How many there were.
        count: usize,
        /// How long was measured, in nanoseconds.
        elapsed_ns: u64,
    },
    /// The target was unavailable for some of the time.
    Unavailable {
        /// The longest of those times, in chronological order.
        longest: Vec<Gap>,
        /// How many there were.
        count: usize,
        /// How long was measured, in nanoseconds.
        elapsed_ns: u64,
        /// The share (0 to 1) of the time.
        share: f64,
        /// How many requests were due meanwhile.
        due: u64,
    },
    /// The only response was not 2xx.
    Answer {
        /// Its status.
        status: u16,
        /// Its `Location`, as the server sent it.
        location: Option<String>,
    },
    /// Some responses were not 2xx.
    Statuses {
        /// The number of responses.
        answers: u64,
        /// Statuses and how often each came, the most frequent first.
        counts: Vec<(u16, u64)>,
        /// The `Location` of one of the redirects, as the server sent it.
        location: Option<String>,
    },
    /// All responses say that the port expects TLS.
    ExpectsTls {
        /// The number of responses.
        answers: u64,
    },
    /// Requests were in flight when measuring began.
    Carried {
        /// How many.
        carried: u64,
        /// The number of responses.
        answers: u64,
    },
    /// There were interim responses (1xx).
    Interim {
        /// How many.
        count: u64,
    },
    /// Latencies exceeded the histogram's range.
    Clamped {
        /// How many.
        count: u64,
    },
    /// The script's `delay` returned something other than a pause.
    PausesUnread,
    /// The script saw only the beginning of some bodies.
    CutBodies {
        /// How many.
        count: u64,
    },
    /// Many TLS handshakes resumed a session, which costs less than a full handshake.
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
    /// The requested size in bytes.
    pub requested: u32,
    /// The effective size in bytes of the smallest one, without what the kernel adds for its own use.
    pub given: u32,
}

/// Why no request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NothingSent {
    /// None was due while the run was measured.
    NotDue,
    /// Every connection paused for the script.
    Paused,
    /// There was no connection or no time to send one.
    Unable,
}

/// What became of the requests without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// All requests started.
    pub started: u64,
    /// Requests that failed; the ledger says how.
    pub failed: u64,
    /// Requests abandoned.
    pub abandoned: u64,
    /// Requests in flight at the end of the run; if others completed, only those older than responses took.
    pub open: u64,
    /// The age of the youngest of the abandoned and open requests, in nanoseconds, where known.
    pub youngest_ns: Option<u64>,
    /// The age of the oldest of the abandoned and open requests, in nanoseconds.
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
