//! Messages between the coordinator of a run and its workers.
//!
//! The first message of each side proves knowledge of the run's secret; nothing else is read before that. Each message
//! is a frame: its length, then the bytes.

use std::net::SocketAddr;

use onrush_engine::WorkerEnd;
use onrush_stats::Totals;
use serde::{Deserialize, Serialize};

use crate::run::Shortage;
use crate::run::outcome::{Breakdown, RunEnd, WorkerShare};

/// Version of the protocol. A worker with another version is refused.
pub const VERSION: u32 = 4;

/// Maximum frame length, in bytes, of a peer without a proof ...
pub const UNPROVEN_MAX: usize = 4 << 10;
/// ... and of a peer with one.
pub const PROVEN_MAX: usize = 32 << 20;
/// Maximum length of one piece of a file, in bytes.
pub const PIECE: usize = 1 << 20;

/// A worker's first message. Its format never changes, because it is all that is understood from another version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Proof of knowledge of the secret.
    pub proof: [u8; 32],
    /// Protocol version of the worker.
    pub version: u32,
    /// Program version of the worker.
    pub program: String,
    /// Name of the worker's machine.
    pub name: String,
    /// Number of the worker's part, from zero, if the workers were numbered.
    pub index: Option<u32>,
}

/// The coordinator's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Welcome {
    /// The worker takes part in the run.
    Joined {
        /// Proof that the coordinator knows the secret.
        proof: [u8; 32],
        /// Number of the worker's part.
        index: u32,
        /// Number of machines that take part.
        machines: u32,
        /// Maximum silence of a peer, in nanoseconds.
        loss_ns: u64,
    },
    /// The worker does not take part.
    Refused {
        /// The reason.
        refusal: JoinRefusal,
        /// Proof that the coordinator knows the secret, unless the worker's secret differs.
        proof: [u8; 32],
    },
}

/// Reason for refusing a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinRefusal {
    /// The worker's secret differs.
    Secret,
    /// The worker's version differs; holds the coordinator's version.
    Version(String),
    /// Another worker has the same number.
    Taken(u32),
    /// All parts are taken; holds the number of parts.
    TooMany(u32),
    /// No part has this number; holds the number of parts.
    NoPart(u32),
    /// The run has started, and lost workers are not replaced.
    Begun,
}

/// Messages from the coordinator to a worker that takes part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CoordinatorMessage {
    /// Set up this part of a run.
    Prepare {
        /// The part of the plan, as JSON.
        plan: String,
        /// Digests and lengths of the required files; the contents follow.
        files: Vec<(String, u64)>,
        /// Length of time that a row covers, in nanoseconds.
        row_ns: u64,
    },
    /// The next piece of the files, in order.
    Piece(Vec<u8>),
    /// Answer at once with [`WorkerMessage::Pong`] and this number.
    Ping(u64),
    /// Start at this moment of the worker's own clock, in nanoseconds.
    Start(u64),
    /// End the run now.
    Stop,
    /// There is nothing more to do.
    Dismiss,
}

/// Messages from a worker that takes part.
#[derive(Serialize, Deserialize)]
pub enum WorkerMessage {
    /// The worker's part is set up.
    Prepared(WorkerSetup),
    /// The worker's part cannot be set up.
    Unprepared {
        /// The reason.
        reason: String,
        /// True if the command line is at fault, for instance a script.
        is_wrong: bool,
    },
    /// Answer to a ping.
    Pong {
        /// Number of the ping.
        number: u64,
        /// Reading of the worker's clock at the answer, in nanoseconds.
        clock_ns: u64,
    },
    /// Measurements of the next row.
    Row {
        /// Number of the row, from zero.
        number: u64,
        /// The measurements.
        totals: Box<Totals>,
    },
    /// The worker's part has ended.
    Done(Box<Done>),
}

/// The setup of a worker's part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSetup {
    /// Name of the worker's machine.
    pub name: String,
    /// The addresses of the target that accept connections.
    pub addresses: Vec<SocketAddr>,
    /// Name of the backend, and the reason it was picked.
    pub backend: (String, String),
    /// Number of worker threads.
    pub threads: u32,
    /// The machine's kernel release.
    pub kernel: String,
    /// Number of processors available to the worker.
    pub processors: u32,
}

/// Final report on a worker's part, without its rows.
#[derive(Default, Serialize, Deserialize)]
pub struct Done {
    /// Results of the threads, in order; `None` for a thread that returned none.
    pub ends: Vec<Option<WorkerEnd>>,
    /// Shares of the threads in the load, in order.
    pub shares: Vec<WorkerShare>,
    /// Threads (numbered from zero) that never returned from their script, with the blocking callback.
    pub stuck: Vec<(u32, String)>,
    /// Reason the part broke off, if it did.
    pub breakdown: Option<Breakdown>,
    /// Reason why the part ended.
    pub ended: RunEnd,
    /// How late measuring started, in nanoseconds, because the order to start arrived late or the worker was stopped in
    /// the warm-up; 0 if on time.
    pub late_ns: u64,
    /// Length of the part, in nanoseconds.
    pub elapsed_ns: u64,
    /// Total suspension of the machine, in nanoseconds.
    pub suspended_ns: u64,
    /// Processor time of threads other than the workers, in nanoseconds; `None` if unknown.
    pub beside_ns: Option<u64>,
    /// Maximum number of connections ...
    pub connections: u64,
    /// ... and the open-file shortage, if that kept it below the plan.
    pub shortage: Option<Shortage>,
    /// Number of requests in the first batch of the script.
    pub batch: u64,
    /// Name and sentence of the verdict, if the generator limited this part.
    pub limit: Option<(String, String)>,
    /// Sums over the rows.
    pub sum: RowSums,
}

/// Sums over rows, enough to detect a missing one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSums {
    /// Number of rows.
    pub rows: u64,
    /// Number of requests sent.
    pub started: u64,
    /// Number of complete responses.
    pub completed: u64,
    /// Number of bytes received.
    pub bytes_received: u64,
    /// The value of the metric `errors`.
    pub failures: u64,
    /// Fingerprint of all latencies, which differs with near certainty if one latency does.
    pub latencies: u64,
}

impl RowSums {
    /// Adds a row. Sums wrap, because they are only compared.
    pub fn add_row(&mut self, row: &Totals) {
        let counters = &row.counters;
        self.rows += 1;
        self.started = self.started.wrapping_add(counters.started);
        self.completed = self.completed.wrapping_add(counters.completed);
        self.bytes_received = self.bytes_received.wrapping_add(counters.bytes_received);
        self.failures = self.failures.wrapping_add(row.errors());
        let open_loop = row.open_loop.as_deref();
        let scheduled = open_loop.map_or(0, |open_loop| open_loop.scheduled.fingerprint().wrapping_mul(3));
        let lateness = open_loop.map_or(0, |open_loop| open_loop.lateness.fingerprint());
        for print in [row.latency.fingerprint(), scheduled, lateness] {
            self.latencies = self.latencies.wrapping_add(print);
        }
    }
}
