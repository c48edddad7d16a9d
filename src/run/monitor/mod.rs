//! Observes a target on this machine, and the machine itself, during a run.
//!
//! A separate thread asks the kernel a few times a second: `listeners` finds the sockets that listen where the load
//! goes, `holders` the processes that hold them, `processes` reads their processor time, `groups` their limits,
//! `connections` their end of some connections, and `machine` the disturbances of the machine. It sends nothing to the
//! target, touches no connection, and takes less than 1 % of a processor.

mod connections;
mod groups;
mod holders;
mod listeners;
mod machine;
mod poller;
mod processes;
pub mod seen;
mod unseen;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(super) use holders::sockets_of;
use listeners::LocalTarget;
use machine::MachineReading;
use poller::Poller;
use seen::MonitorReport;
pub use unseen::Unobserved;

use onrush_plan::{Addresses, Io, Plan};

/// How long a run waits for the first search.
const FIRST_SEARCH_WAIT: Duration = Duration::from_millis(50);

/// Watches the target and the machine until the run has ended, or until this is dropped.
pub struct Monitor {
    orders: Arc<PollerOrders>,
    thread: Option<JoinHandle<MonitorReport>>,
    /// Disconnected when the first search has ended.
    has_found: Receiver<()>,
    /// When counting began, after the start; `None`: not yet.
    counts_from: Option<Duration>,
}

#[derive(Debug, Default)]
struct PollerOrders {
    /// Number of orders to start counting over.
    restarts: AtomicU32,
    /// True if the poller is to end.
    ended: AtomicBool,
}

impl Monitor {
    /// Begins to watch. `None` in simulations, for `--once`, and if the thread cannot be created.
    pub fn begin(plan: &Plan, addresses: &Addresses) -> Option<Self> {
        if plan.once || matches!(plan.io, Io::Sim(_)) {
            return None;
        }
        let orders = Arc::new(PollerOrders::default());
        let (heard, unix, addresses) = (Arc::clone(&orders), plan.connect.unix.clone(), addresses.clone());
        // Read now: a queue may overflow in the first millisecond.
        let before = plan.warmup.is_zero().then(MachineReading::read);
        let (found, has_found) = mpsc::channel();
        let work = move || Poller::new(LocalTarget::for_addresses(unix, addresses), before).watch(&heard, found);
        let thread = thread::Builder::new().name("monitor".to_owned()).spawn(work).ok()?;
        Some(Self { orders, thread: Some(thread), has_found, counts_from: None })
    }

    /// Waits for the first search, but not for long: its processor time should not fall into the run.
    pub fn wait(&self) {
        // A longer search continues during the run.
        let _ = self.has_found.recv_timeout(FIRST_SEARCH_WAIT);
    }

    /// Measuring, and with it counting, begins at `begins` after the start; `passed` is the time since the start.
    pub fn count_from(&mut self, begins: Duration, passed: Duration) {
        if passed >= begins && self.counts_from != Some(begins) {
            self.counts_from = Some(begins);
            self.orders.restarts.fetch_add(1, Ordering::Relaxed);
            self.wake();
        }
    }

    /// Ends watching when measuring has ended, and returns the observations.
    pub fn end(mut self) -> MonitorReport {
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

impl Drop for Monitor {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl PollerOrders {
    /// True if the poller is to end; earlier orders are visible then.
    fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits for an order, but no longer than `pause`; `restarts`: number of restarts carried out.
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
