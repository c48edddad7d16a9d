//! Observes a target on this machine, and the machine itself, during a run.
//!
//! A separate thread queries the kernel a few times a second. `listeners` finds the listening sockets that receive the
//! load, `holders` the processes that hold them. `processes` reads processor time, `groups` control-group limits,
//! `connections` the target's end of some connections, and `machine` interference on the machine. The thread sends
//! nothing to the target, touches no connection, and takes less than 1 % of a processor.

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

pub(super) use holders::socket_inodes_of;
use listeners::LocalTarget;
use machine::MachineReading;
use poller::Poller;
use seen::MonitorReport;
pub use unseen::Unobserved;

use onrush_plan::{Io, Plan};

use crate::resolve::Addresses;

/// Maximum wait of a run for the first search.
const FIRST_SEARCH_WAIT: Duration = Duration::from_millis(50);

/// Watches the target and the machine until [`Self::stop_watching`], which returns the report, or until dropped.
pub struct Monitor {
    orders: Arc<PollerOrders>,
    thread: Option<JoinHandle<MonitorReport>>,
    /// Disconnected after the first search.
    has_found: Receiver<()>,
    /// Start of counting, since the start of the run; `None` before that.
    counts_from: Option<Duration>,
}

#[derive(Debug, Default)]
struct PollerOrders {
    /// Number of restarts ordered.
    restarts: AtomicU32,
    /// True once the poller should end.
    ended: AtomicBool,
}

impl Monitor {
    /// Starts watching. `None` in simulations, for `--once`, and if the thread cannot be created.
    pub fn start_watching(plan: &Plan, addresses: &Addresses) -> Option<Self> {
        if plan.once || matches!(plan.io, Io::Sim(_)) {
            return None;
        }
        let orders = Arc::new(PollerOrders::default());
        let (heard, unix, addresses) = (Arc::clone(&orders), plan.connect.unix.clone(), addresses.clone());
        // Read now: a queue may overflow in the first millisecond.
        let before = plan.warmup.is_zero().then(MachineReading::read);
        let (found, has_found) = mpsc::channel();
        let work = move || Poller::new(LocalTarget::for_addresses(unix, addresses), before).run_poller(&heard, found);
        let thread = thread::Builder::new().name("monitor".to_owned()).spawn(work).ok()?;
        Some(Self { orders, thread: Some(thread), has_found, counts_from: None })
    }

    /// Waits briefly for the first search, whose processor time should not fall into the run.
    pub fn wait_for_first_search(&self) {
        // A longer search continues during the run.
        let _ = self.has_found.recv_timeout(FIRST_SEARCH_WAIT);
    }

    /// Starts counting anew once `passed` (the time since the start of the run) has reached `begins`, when measuring
    /// starts. Further calls with the same `begins` do nothing.
    pub fn start_counting(&mut self, begins: Duration, passed: Duration) {
        if passed >= begins && self.counts_from != Some(begins) {
            self.counts_from = Some(begins);
            self.orders.restarts.fetch_add(1, Ordering::Relaxed);
            self.wake_poller();
        }
    }

    /// Ends watching and returns the observations since the start of counting; none if counting never started.
    pub fn stop_watching(mut self) -> MonitorReport {
        self.order_end();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    fn order_end(&self) {
        self.orders.ended.store(true, Ordering::Release);
        self.wake_poller();
    }

    fn wake_poller(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.order_end();
    }
}

impl PollerOrders {
    /// True if the poller should end; earlier orders are then visible too.
    fn is_end_ordered(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits for an order, up to `pause`; `restarts`: number of restarts already handled.
    fn wait_for_order(&self, restarts: u32, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_end_ordered() && self.restarts.load(Ordering::Relaxed) == restarts {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
    }
}
