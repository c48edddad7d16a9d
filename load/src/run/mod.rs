//! Runs a plan: starts the workers, watches them, stops them and sums their measurements.
//!
//! Only this module and the embedded target spawn threads. Nothing is printed here: observers receive the progress.
//!
//! Reading order: `prepare` sets up the workers, each a `worker`. `supervisor` releases, watches and stops them, and
//! `outcome` sums their results. The supervisor sees them as `workers`: `threads`, engines in virtual time
//! (`simulated`), or `machines`, collected by `gather`. `snapshot` keeps the sums during the run for each `observer`,
//! and `stages` the sums of each stage. `until`, `interrupt` and `waiting` end a run, `tail` keeps workers after the
//! end, and `dues` and `due_gaps` compute the schedule. `choice`, `congestion`, `spin`, `host` and `reach` check the
//! machine before the start. `monitor` watches a local target and `sockets` samples connections, both through the
//! kernel interface in `diag`.

pub mod choice;
mod clock;
mod congestion;
mod diag;
mod due_gaps;
mod dues;
mod workers;

mod gather;
mod gathering;
pub mod host;
mod interrupt;
mod machine;
pub mod machines;
pub mod monitor;
mod observer;
mod outcome;
mod prepare;
mod probe;
pub mod reach;
mod simulated;
pub mod snapshot;
pub mod sockets;
pub mod spin;
mod stages;
mod supervisor;
mod tail;
mod threads;
mod until;
mod waiting;
mod worker;

pub use choice::{Choice, NoBackend};
pub use clock::Clock;
pub use congestion::BadCongestion;
pub use due_gaps::DueGap;
pub use gather::Gathered;
pub use gathering::Gathering;
pub use host::{Ports, Shortage};
pub use interrupt::Interrupt;
pub use machine::MachineShare;
pub use monitor::Unobserved;
pub use monitor::seen::{Listening, Machine, MonitorReport, Network, Target};
pub use observer::Observer;
pub use outcome::{Breakdown, Outcome, RunEnd, WorkerShare};
pub use prepare::{BadSource, prepare_run};
pub use probe::{Elasticity, Probe, Slot};
pub use snapshot::{RunProgress, TimelineRow};
pub use sockets::SocketSample;
pub use supervisor::Prepared;
pub use tail::{RUN_TICK, TICK, Tail, TailEnd};
pub use threads::NotStarted;
pub use until::{MetricPrecision, StopRuleResult};
pub use waiting::Waiting;

pub use onrush_engine::{KeepSample, Listener, PassOn, Passed, Sample as Response, SampleOf};
pub use worker::{RunScript, WorkerScript};

use std::io;
use std::thread;
use std::time::Duration;

use onrush_plan::limits::SCRIPT_STACK_BYTES;

/// Runs work that calls a script in a thread with a large enough stack, and waits for it. Passes on a panic.
///
/// # Errors
///
/// Fails if the thread cannot be created.
pub fn run_on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NotStarted> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(SCRIPT_STACK_BYTES);
        let failed = |reason| NotStarted::Helper { job: "the script", reason };
        let outcome = thread.spawn_scoped(scope, work).map_err(failed)?.join();
        Ok(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Runs work that may never end in a named thread that nobody joins.
///
/// # Errors
///
/// Fails if the thread cannot be created.
pub fn spawn_detached(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// A duration in nanoseconds, at most [`u64::MAX`].
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
