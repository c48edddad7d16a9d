//! What a worker and the thread that watches it tell each other while a run lasts: flags, no lock.

use std::sync::atomic::{AtomicBool, Ordering};

use super::mailbox::Mailbox;

/// The flags of a whole run.
#[derive(Debug, Default)]
pub struct Control {
    /// Everybody is to end now.
    stop: AtomicBool,
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
}
