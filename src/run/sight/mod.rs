//! What can be seen of a target on this machine, and of the machine, while a run lasts.
//!
//! A thread of its own asks the kernel a few times a second: `listeners` which sockets listen where the load goes,
//! `holders` which processes hold them, `processes` what processor time these take, `groups` what they are allowed,
//! `connections` how their end of some connections is, and `machine` what is wrong with the machine itself. It sends
//! nothing to the target, touches no connection, and takes less than a hundredth of a processor.

mod connections;
mod groups;
mod holders;
mod listeners;
mod machine;
mod proc;
mod processes;
mod unseen;
mod watcher;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(super) use holders::sockets_of;
use listeners::Place;
use machine::Machine;
pub use unseen::Unseen;
use watcher::Watcher;

use crate::plan::{Addresses, Io, Plan};
use crate::verdict;

/// How long a run waits for the first search.
const FIRST_SEARCH_WAIT: Duration = Duration::from_millis(50);

/// What was seen of a target on this machine, and of the machine, while a run lasted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The target, if it is on this machine and could be seen.
    pub target: Option<verdict::Target>,
    /// The machine; the time that it was suspended is filled in by the run.
    pub machine: verdict::Machine,
    /// For how long the generator's control group was throttled, summed over processors.
    pub throttled_s: Option<f64>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// Watches the target and the machine until the run has ended, or until this is dropped.
pub struct Sight {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<Seen>>,
    /// Disconnected when the first search has ended.
    has_found: Receiver<()>,
    /// How long after the start counting began; `None`: not yet.
    counts_from: Option<Duration>,
}

/// What the watcher is told.
#[derive(Debug, Default)]
struct Orders {
    /// How often counting was to start over.
    restarts: AtomicU32,
    /// There is nothing more to see.
    ended: AtomicBool,
}

impl Sight {
    /// Begins to watch, if there is something to see: where the load goes, and who is there. `None` in simulations, for
    /// a single exchange, and where there can be no thread.
    pub fn begin(plan: &Plan, addresses: &Addresses) -> Option<Self> {
        if plan.once || matches!(plan.io, Io::Sim(_)) {
            return None;
        }
        let orders = Arc::new(Orders::default());
        let (heard, unix, addresses) = (Arc::clone(&orders), plan.way.unix.clone(), addresses.clone());
        // A queue may overflow in the first millisecond.
        let before = plan.warmup.is_zero().then(Machine::read);
        let (found, has_found) = mpsc::channel();
        let work = move || Watcher::new(Place::of(unix, addresses), before).watch(&heard, found);
        let thread = thread::Builder::new().name("sight".to_owned()).spawn(work).ok()?;
        Some(Self { orders, thread: Some(thread), has_found, counts_from: None })
    }

    /// Waits for the first search, but not for long: it should take no processor time from the run.
    pub fn wait(&self) {
        // If it has not ended by then it goes on beside the run.
        let _ = self.has_found.recv_timeout(FIRST_SEARCH_WAIT);
    }

    /// Measuring, and counting with it, begins at `begins` after the start; `passed` is the time since the start.
    pub fn count_from(&mut self, begins: Duration, passed: Duration) {
        if passed >= begins && self.counts_from != Some(begins) {
            self.counts_from = Some(begins);
            self.orders.restarts.fetch_add(1, Ordering::Relaxed);
            self.wake();
        }
    }

    /// Measuring has ended: what was seen.
    pub fn end(mut self) -> Seen {
        self.dismiss();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    fn dismiss(&self) {
        self.orders.ended.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Sight {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl Orders {
    /// Whether there is nothing more to see; everything that was ordered before is known then.
    fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits for an order, but not longer than that; `restarts` are those that were heard.
    fn wait(&self, restarts: u32, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.have_ended() && self.restarts.load(Ordering::Relaxed) == restarts {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
    }
}
