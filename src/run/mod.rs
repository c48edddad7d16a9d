//! Carries a plan out: starts the workers, watches them, stops them and adds up what they measured.
//!
//! Only here (and in the embedded target) threads are spawned. It prints nothing: what is to be shown while the run
//! lasts goes to an observer.

pub mod choice;
mod congestion;
mod diag;
pub mod host;
mod interrupt;
mod outcome;
mod prepare;
pub mod probe;
pub mod sight;
pub mod snapshot;
pub mod sockets;
pub mod spin;
mod until;
mod waiting;
mod watch;
mod worker;

pub use crate::script::Listener;
pub use choice::{Choice, Unavailable};
pub use congestion::BadCongestion;
pub use host::{Ports, Shortage};
pub use interrupt::Interrupt;
pub use outcome::{Breakdown, Ended, Outcome, WorkerShare};
pub use prepare::{BadSource, NotStarted, prepare};
pub use sight::{Seen, Unseen};
pub use snapshot::{Progress, Second};
pub use sockets::Sample;
pub use until::{Known, Until};
pub use waiting::Waiting;
pub use watch::Prepared;

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::plan::Addresses;
use crate::script;

/// Who is told how a run goes while it lasts.
pub trait Observer {
    /// Which backend it runs on, and where the load goes.
    fn resolved(&mut self, _: &Choice, _: &Addresses) {}
    /// Everything is set up. It begins at the moment that is returned: at once, or when it was agreed upon with others.
    fn ready(&mut self) -> Instant {
        Instant::now()
    }
    /// How long a row of the outcome's time line is at first: whole tenths of a second.
    fn row(&self) -> Duration {
        Duration::from_secs(1)
    }
    /// Its progress; about five times a second.
    fn progress(&mut self, _: &Progress) {}
    /// What was done in another second of it, or in what was left at its end.
    fn second(&mut self, _: &Second) {}
    /// What a sample of sockets says, where the plan wants them; before the run is measured, too.
    fn sampled(&mut self, _: &Sample) {}
    /// Nobody accepts a first connection, and the run waits; at most once.
    fn waiting(&mut self, _: &Waiting) {}
    /// Who is told what a script says, from whichever thread, while the session lasts and after it. What it writes by means
    /// of its own, such as `print`, goes where it goes.
    fn listener(&mut self) -> Listener {
        Arc::new(|_| ())
    }
}

/// Does what calls a script, in a thread whose stack is large enough for that.
///
/// # Errors
///
/// When there can be no such thread.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(script::STACK_BYTES);
        let outcome = thread.spawn_scoped(scope, work)?.join();
        Ok(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// What may take for ever, in a thread that nobody waits for.
///
/// # Errors
///
/// When there can be no such thread.
pub fn beside(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// A duration in nanoseconds.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
