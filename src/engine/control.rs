//! What workers share with each other and with the thread that watches them while a run lasts; no lock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::atomic::AtomicCell;

use super::kept::Budget;
use super::mailbox::Mailbox;
use crate::stats::Cause;

/// What all workers of a run share.
#[derive(Debug, Default)]
pub struct Control {
    /// Everybody is to end now.
    stop: AtomicBool,
    /// The memory for bodies that scripts want to see.
    pub bodies: Arc<Budget>,
}

impl Control {
    /// Asks every worker to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the workers are to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What one worker shares with the watcher.
#[derive(Default)]
pub struct Desk {
    /// Where its intervals change hands.
    pub mailbox: Mailbox,
    /// Nobody accepted its first connection, at any address.
    refused: AtomicBool,
    /// It has had no connection to open yet.
    idle: AtomicBool,
    /// Who refused it last and why, until the watcher takes it.
    refusal: AtomicCell<Option<Box<Refused>>>,
    /// Responses complete in the warm-up.
    warm_up: AtomicU64,
    /// How much later than planned the warm-up was over, in nanoseconds.
    delay_ns: AtomicU64,
    /// The [`Callback`] it is in.
    callback: AtomicU8,
}

/// Who refused a first connection, and why.
pub type Refused = (SocketAddr, Cause);

// A cell larger than a pointer would take a lock.
const _: () = assert!(AtomicCell::<Option<Box<Refused>>>::is_lock_free());

/// Where in a script a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    /// Nowhere.
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

    /// Its name in the script; `None` for nowhere.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Delay => Some("delay"),
            Self::Request => Some("request"),
            Self::Response => Some("response"),
        }
    }
}

impl Desk {
    /// Nobody accepted the first connection.
    pub fn refuse(&self, address: SocketAddr, cause: Cause) {
        self.refusal.store(Some(Box::new((address, cause))));
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Somebody accepted a connection.
    pub fn accept(&self) {
        self.refused.store(false, Ordering::Relaxed);
    }

    /// Who refused the first connection since this was last asked.
    pub fn take_refusal(&self) -> Option<Refused> {
        self.refusal.take().map(|refusal| *refusal)
    }

    /// So many responses are complete, and the warm-up is not over.
    pub fn show_warm_up(&self, completed: u64) {
        self.warm_up.store(completed, Ordering::Relaxed);
    }

    /// Responses complete in the warm-up.
    pub fn warm_up(&self) -> u64 {
        self.warm_up.load(Ordering::Relaxed)
    }

    /// Measuring has begun so many nanoseconds later than planned: the worker had something else to do, or stood still.
    pub fn show_delay(&self, delay_ns: u64) {
        self.delay_ns.store(delay_ns, Ordering::Relaxed);
    }

    /// How much later than planned measuring began.
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns.load(Ordering::Relaxed))
    }

    /// Says whether the worker has had no connection to open yet.
    pub fn show_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// Whether the worker has had no connection to open yet.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed)
    }

    /// Whether the worker has found nobody to connect to.
    pub fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// The worker is there now.
    pub fn enter(&self, callback: Callback) {
        self.callback.store(callback as u8, Ordering::Relaxed);
    }

    /// Where the worker is.
    pub fn callback(&self) -> Callback {
        Callback::ALL[usize::from(self.callback.load(Ordering::Relaxed))]
    }
}
