//! State shared by workers and supervisor during a run, without locks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::atomic::AtomicCell;
use onrush_stats::Cause;

use super::kept::Budget;
use super::mailbox::Mailbox;

/// State shared by all workers of a run.
#[derive(Debug, Default)]
pub struct Control {
    /// True if all workers must end now.
    stop: AtomicBool,
    /// True if the run ends now, earlier than planned.
    enough: AtomicBool,
    /// Number of workers that do not yet know how all their requests ended.
    unsettled: AtomicU32,
    /// The memory for responses kept for scripts or as samples.
    pub kept: Arc<Budget>,
}

impl Control {
    /// The state before the start of a run with this many workers.
    pub fn new(workers: u32) -> Self {
        Self { unsettled: AtomicU32::new(workers), ..Self::default() }
    }

    /// Records that a worker knows the ends of all its requests, or has itself ended.
    pub fn report_settled(&self) {
        let _ = self.unsettled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |workers| workers.checked_sub(1));
    }

    /// True if all workers know the ends of their requests.
    pub fn is_settled(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed) == 0
    }

    /// Tells every worker to end as soon as it can, without waiting for responses.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the run now, in the same way as at its planned end. Workers notice in their next turn.
    pub fn end_run(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// True if the run ends now, earlier than planned.
    pub fn has_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }

    /// True once [`Self::stop`] has been called.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// State shared by one worker and the supervisor.
#[derive(Default)]
pub struct WorkerLink {
    /// Hand-over point of the worker's intervals.
    pub mailbox: Mailbox,
    /// True while no address has accepted the worker's first connection.
    refused: AtomicBool,
    /// True while the worker has had no connection to open.
    idle: AtomicBool,
    /// The last address that refused the worker, and the cause, until the supervisor takes it.
    refusal: AtomicCell<Option<Box<Refused>>>,
    /// Responses completed in the warm-up.
    warm_up: AtomicU64,
    /// Delay of the end of the warm-up, in nanoseconds.
    delay_ns: AtomicU64,
    callback: AtomicU8,
    /// Limit on requests in flight, see [`WorkerLink::set_in_flight_limit`].
    limit: AtomicU64,
    /// Number of requests in flight, shown after the end of the run.
    in_flight: AtomicU64,
}

/// An address that refused a worker's first connection, and the cause.
pub type Refused = (SocketAddr, Cause);

// A cell larger than a pointer would take a lock.
const _: () = assert!(AtomicCell::<Option<Box<Refused>>>::is_lock_free());

/// The script function that a worker is executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    /// None.
    None,
    /// In `delay()`.
    Delay,
    /// In `request()`.
    Request,
    /// In `response()`.
    Response,
}

impl Callback {
    const ALL: [Self; 4] = [Self::None, Self::Delay, Self::Request, Self::Response];

    /// The callback's name as a static string; `None` if no callback is called `name`.
    pub fn static_name(name: &str) -> Option<&'static str> {
        Self::ALL.iter().find_map(|callback| callback.name().filter(|known| *known == name))
    }

    /// The name of the script's function; `None` for [`Self::None`].
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Delay => Some("delay"),
            Self::Request => Some("request"),
            Self::Response => Some("response"),
        }
    }
}

impl WorkerLink {
    /// Records that `address` refused the worker's first connection. Replaces an earlier refusal that has not been
    /// taken.
    pub fn note_refused(&self, address: SocketAddr, cause: Cause) {
        self.refusal.store(Some(Box::new((address, cause))));
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Records that a connection was accepted. A refusal not yet taken can still be taken.
    pub fn note_accepted(&self) {
        self.refused.store(false, Ordering::Relaxed);
    }

    /// Takes the last refusal of the worker's first connection; `None` if there was none since the last call.
    pub fn take_refusal(&self) -> Option<Refused> {
        self.refusal.take().map(|refusal| *refusal)
    }

    /// Reports the number of complete responses during the warm-up to the supervisor.
    pub fn show_warm_up(&self, completed: u64) {
        self.warm_up.store(completed, Ordering::Relaxed);
    }

    /// Number of responses completed in the warm-up so far, as last reported.
    pub fn warm_up(&self) -> u64 {
        self.warm_up.load(Ordering::Relaxed)
    }

    /// Reports how much later than planned measuring started, in nanoseconds, because the worker was busy or stalled.
    pub fn show_warm_up_delay(&self, delay_ns: u64) {
        self.delay_ns.store(delay_ns, Ordering::Relaxed);
    }

    /// The time by which measuring started later than planned.
    pub fn warm_up_delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns.load(Ordering::Relaxed))
    }

    /// Reports to the supervisor whether the worker has had no connection to open yet.
    pub fn show_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// True if the worker has had no connection to open yet.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed)
    }

    /// True if no address has accepted the worker's first connection.
    pub fn found_no_address(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Limits this worker's requests in flight to `in_flight`, spread evenly over its connections, each with room for
    /// `lanes` requests. The worker applies the limit in its next turn: a connection with more in flight starts no
    /// request until enough of them have ended.
    pub fn set_in_flight_limit(&self, in_flight: u32, lanes: u32) {
        self.limit.store(u64::from(lanes.max(1)) << 32 | u64::from(in_flight), Ordering::Relaxed);
    }

    /// The arguments of the last [`Self::set_in_flight_limit`]: requests in flight and lanes per connection; both zero
    /// until a limit is set.
    pub fn in_flight_limits(&self) -> [u32; 2] {
        let limit = self.limit.load(Ordering::Relaxed);
        [limit as u32, (limit >> 32) as u32]
    }

    /// Reports the number of requests in flight to the supervisor; done only after the end of the run.
    pub fn show_in_flight(&self, requests: u64) {
        self.in_flight.store(requests, Ordering::Relaxed);
    }

    /// The number of requests in flight last reported after the end of the run.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Reports the callback that the worker is executing, so that the supervisor can name one that never returns.
    pub fn show_callback(&self, callback: Callback) {
        self.callback.store(callback as u8, Ordering::Relaxed);
    }

    /// The callback that the worker is executing.
    pub fn callback(&self) -> Callback {
        Callback::ALL[usize::from(self.callback.load(Ordering::Relaxed))]
    }
}
