//! Messages between the coordinator of a run and its workers.
//!
//! The first message of each side proves that it knows the secret of the run; until then nothing else is read. Each
//! message is a frame: its length, then the bytes.

use std::net::SocketAddr;

use onrush_engine::WorkerEnd;
use onrush_stats::Totals;
use serde::{Deserialize, Serialize};

use crate::run::Shortage;
use crate::run::outcome::{Breakdown, RunEnd, WorkerShare};

/// The version of these messages. A worker of another version is refused.
pub const VERSION: u32 = 4;

/// The longest frame, in bytes, of a peer that has not proved anything ...
pub const UNPROVEN_MAX: usize = 4 << 10;
/// ... and of one that has.
pub const PROVEN_MAX: usize = 32 << 20;
/// The length of the pieces in which files are sent.
pub const PIECE: usize = 1 << 20;

/// A worker's first message. It never changes: from a worker of another version, only this is understood.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The proof that it knows the secret.
    pub proof: [u8; 32],
    /// The version of its messages.
    pub version: u32,
    /// The version of its program.
    pub program: String,
    /// The name of its machine.
    pub name: String,
    /// The number of its part, from zero, if something has numbered the workers.
    pub index: Option<u32>,
}

/// The coordinator's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Welcome {
    /// The worker takes part in the run.
    Joined {
        /// The proof that the coordinator knows the secret.
        proof: [u8; 32],
        /// The number of its part.
        index: u32,
        /// How many machines take part.
        machines: u32,
        /// A peer that has been silent for so many nanoseconds is lost.
        loss_ns: u64,
    },
    /// The worker takes no part.
    Refused {
        /// Why.
        refusal: JoinRefusal,
        /// The proof that the coordinator knows the secret, unless the worker's is another one.
        proof: [u8; 32],
    },
}

/// Why a worker is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinRefusal {
    /// Its secret is another one.
    Secret,
    /// It has another version; the coordinator's.
    Version(String),
    /// Another worker has the number of its part.
    Taken(u32),
    /// All parts are taken; how many there are.
    TooMany(u32),
    /// There is no part with its number; how many there are.
    NoPart(u32),
    /// The run has begun.
    Begun,
}

/// Messages from the coordinator to a worker that takes part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CoordinatorMessage {
    /// Set this part of a run up.
    Prepare {
        /// The part of the plan, as JSON.
        plan: String,
        /// The files that it needs, as their digests and lengths; their contents follow.
        files: Vec<(String, u64)>,
        /// Length of a row, in nanoseconds.
        row_ns: u64,
    },
    /// The next piece of the files, in their order.
    Piece(Vec<u8>),
    /// Answer with [`WorkerMessage::Pong`] at once.
    Ping(u64),
    /// Begin at this moment of your own clock, in nanoseconds.
    Start(u64),
    /// End the run now.
    Stop,
    /// There is nothing more to do.
    Dismiss,
}

/// Messages from a worker that takes part.
#[derive(Serialize, Deserialize)]
pub enum WorkerMessage {
    /// Its part is set up.
    Prepared(WorkerSetup),
    /// Its part cannot be set up.
    Unprepared {
        /// Why.
        reason: String,
        /// True if the fault is in the command line, such as a script.
        is_wrong: bool,
    },
    /// The answer to a ping with this number, and its own clock then, in nanoseconds.
    Pong {
        /// The number of the ping.
        number: u64,
        /// The worker's clock.
        clock_ns: u64,
    },
    /// Measurements in the next row.
    Row {
        /// The number of the row, from zero.
        number: u64,
        /// The measurements.
        totals: Box<Totals>,
    },
    /// Its part has ended.
    Done(Box<Done>),
}

/// How a worker has set its part up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSetup {
    /// The name of its machine.
    pub name: String,
    /// The addresses of the target that accept connections.
    pub addresses: Vec<SocketAddr>,
    /// The backend, and why it was picked.
    pub backend: (String, String),
    /// How many threads it has.
    pub threads: u32,
    /// The release of its kernel.
    pub kernel: String,
    /// How many processors it may use.
    pub processors: u32,
}

/// The end of a worker's part, without its rows.
#[derive(Default, Serialize, Deserialize)]
pub struct Done {
    /// Results of its threads; `None`: the thread returned nothing.
    pub ends: Vec<Option<WorkerEnd>>,
    /// Shares of its threads.
    pub shares: Vec<WorkerShare>,
    /// Its threads that never returned from their script, numbered from zero, and the callback.
    pub stuck: Vec<(u32, String)>,
    /// Why it broke off, if it did.
    pub breakdown: Option<Breakdown>,
    /// Why it ended.
    pub ended: RunEnd,
    /// How late it began to measure, because the order to begin came late or it was stopped in the warm-up, in
    /// nanoseconds; 0 if it was in time.
    pub late_ns: u64,
    /// How long it lasted, in nanoseconds.
    pub elapsed_ns: u64,
    /// For how long its machine was suspended, in nanoseconds.
    pub suspended_ns: u64,
    /// The processor time of its other threads, in nanoseconds.
    pub beside_ns: Option<u64>,
    /// The most connections that it could have ...
    pub connections: u64,
    /// ... and why these are fewer than planned, if they are.
    pub shortage: Option<Shortage>,
    /// How many requests its script pipelines.
    pub batch: u64,
    /// Name and sentence of the verdict, if the generator limited its part.
    pub limit: Option<(String, String)>,
    /// Sum of its rows.
    pub sum: RowSums,
}

/// Sum of rows, enough to notice that one is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSums {
    /// How many there are.
    pub rows: u64,
    /// Requests sent.
    pub started: u64,
    /// Complete responses.
    pub completed: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// The count of the metric `errors`.
    pub failures: u64,
    /// The fingerprint of all latencies.
    pub latencies: u64,
}

impl RowSums {
    /// Adds a row.
    pub fn add(&mut self, row: &Totals) {
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
