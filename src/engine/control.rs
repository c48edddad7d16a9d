//! What workers share with each other and with the thread that watches them while a run lasts; no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::kept::Budget;
use super::mailbox::Mailbox;

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
    /// The [`Callback`] it is in.
    callback: AtomicU8,
}

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
    /// Nobody accepted the first connection, or somebody did after all.
    pub fn set_refused(&self, refused: bool) {
        self.refused.store(refused, Ordering::Relaxed);
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
