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
    /// Number of workers that do not know yet how their requests ended.
    unsettled: AtomicU32,
    /// The memory for responses kept for scripts or as samples.
    pub kept: Arc<Budget>,
}

impl Control {
    /// A control for this many workers.
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

    /// Tells every worker to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the run as at its planned end.
    pub fn end_run(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// True if the run ends now, earlier than planned.
    pub fn has_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }

    /// True if the workers must end.
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

/// The address that refused a first connection, and the cause.
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

    /// The static name of the callback called `name`.
    pub fn static_name(name: &str) -> Option<&'static str> {
        Self::ALL.iter().find_map(|callback| callback.name().filter(|known| *known == name))
    }

    /// The callback's name in the script.
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
    /// Notes that the first connection was refused.
    pub fn note_refused(&self, address: SocketAddr, cause: Cause) {
        self.refusal.store(Some(Box::new((address, cause))));
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Notes that a connection was accepted.
    pub fn note_accepted(&self) {
        self.refused.store(false, Ordering::Relaxed);
    }

    /// Takes the last refusal of the first connection, if it is new.
    pub fn take_refusal(&self) -> Option<Refused> {
        self.refusal.take().map(|refusal| *refusal)
    }

    /// Shows the number of complete responses during the warm-up.
    pub fn show_warm_up(&self, completed: u64) {
        self.warm_up.store(completed, Ordering::Relaxed);
    }

    /// Responses completed in the warm-up.
    pub fn warm_up(&self) -> u64 {
        self.warm_up.load(Ordering::Relaxed)
    }

    /// Shows the delay of the start of measuring: the worker was busy or stalled.
    pub fn show_warm_up_delay(&self, delay_ns: u64) {
        self.delay_ns.store(delay_ns, Ordering::Relaxed);
    }

    /// Delay of the start of measuring.
    pub fn warm_up_delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns.load(Ordering::Relaxed))
    }

    /// Shows whether the worker has had no connection to open yet.
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

    /// Limits the requests in flight from now on, evenly over the connections, each of which has `lanes` lanes.
    /// Requests in flight beyond the limit are answered first.
    pub fn set_in_flight_limit(&self, in_flight: u32, lanes: u32) {
        self.limit.store(u64::from(lanes.max(1)) << 32 | u64::from(in_flight), Ordering::Relaxed);
    }

    /// The limit on requests in flight and the lanes per connection; both zero until a limit is set.
    pub fn in_flight_limits(&self) -> [u32; 2] {
        let limit = self.limit.load(Ordering::Relaxed);
        [limit as u32, (limit >> 32) as u32]
    }

    /// Shows the number of requests in flight.
    pub fn show_in_flight(&self, requests: u64) {
        self.in_flight.store(requests, Ordering::Relaxed);
    }

    /// The last shown number of requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Shows the callback that the worker is executing.
    pub fn show_callback(&self, callback: Callback) {
        self.callback.store(callback as u8, Ordering::Relaxed);
    }

    /// The callback that the worker is executing.
    pub fn callback(&self) -> Callback {
        Callback::ALL[usize::from(self.callback.load(Ordering::Relaxed))]
    }
}
