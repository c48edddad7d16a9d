//! Carries a plan out: starts the workers, watches them, stops them and adds up what they measured.
//!
//! Only this module and the embedded target spawn threads. It prints nothing: progress goes to an observer.

pub mod choice;
mod clock;
mod congestion;
mod crew;
mod diag;
mod due_gaps;
mod dues;
pub mod host;
mod interrupt;
pub mod monitor;
mod outcome;
mod prepare;
pub mod probe;
mod simulated;
pub mod snapshot;
pub mod sockets;
pub mod spin;
mod supervisor;
mod threads;
mod until;
mod waiting;
mod worker;

pub use crate::script::Listener;
pub use choice::{Choice, NoBackend};
pub use clock::Clock;
pub use congestion::BadCongestion;
pub use due_gaps::DueGap;
pub use host::{Ports, Shortage};
pub use interrupt::Interrupt;
pub use monitor::{Seen, Unseen};
pub use outcome::{Breakdown, Ended, Outcome, WorkerShare};
pub use prepare::{BadSource, prepare};
pub use snapshot::{Progress, TimelineRow};
pub use sockets::Sample;
pub use supervisor::Prepared;
pub use threads::NotStarted;
pub use until::{Known, Until};
pub use waiting::Waiting;

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use onrush_plan::Addresses;

use crate::script;

/// Is told of a run's progress.
pub trait Observer {
    /// Which backend was picked, and the addresses of the target.
    fn resolved(&mut self, _: &Choice, _: &Addresses) {}
    /// Everything is set up. The run begins at the moment that is returned: now, or one that was agreed with other
    /// machines.
    fn ready(&mut self) -> Instant {
        Instant::now()
    }
    /// The initial length of a row of the timeline: a multiple of 100 ms.
    fn row(&self) -> Duration {
        Duration::from_secs(1)
    }
    /// Its progress; about five times a second.
    fn progress(&mut self, _: &Progress) {}
    /// Another row of the timeline is complete.
    fn second(&mut self, _: &TimelineRow) {}
    /// Whether the run may end now, because more of it would change nothing.
    fn is_enough(&self) -> bool {
        false
    }
    /// A sample of sockets, if the plan asks for them; those taken during the warm-up included.
    fn sampled(&mut self, _: &Sample) {}
    /// No first connection was accepted, and the run waits for the target; called at most once.
    fn waiting(&mut self, _: &Waiting) {}
    /// Returns what receives the messages of a script, from any thread, during the session and after it. Output that
    /// the script writes itself, with `print` for instance, does not pass through it.
    fn listener(&mut self) -> Listener {
        Arc::new(|_| ())
    }
}

/// Runs work that calls a script in a thread whose stack is large enough for it.
///
/// # Errors
///
/// When the thread cannot be created.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NotStarted> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(script::STACK_BYTES);
        let failed = |reason| NotStarted::Helper { job: "the script", reason };
        let outcome = thread.spawn_scoped(scope, work).map_err(failed)?.join();
        Ok(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Runs work that may never end in a thread that is not joined.
///
/// # Errors
///
/// When the thread cannot be created.
pub fn beside(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// A duration in nanoseconds.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
