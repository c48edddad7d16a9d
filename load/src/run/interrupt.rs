//! Ends a run early from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells a run to end early. All clones share one request.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    asked: AtomicBool,
    /// True during a call that may never return.
    is_blocked: AtomicBool,
}

impl Interrupt {
    /// Asks the run to end; it does so at its next check. The request cannot be withdrawn.
    pub fn request_end(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// True if the run was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Makes a call that may block forever, such as a script's `setup`. The flag is not checked during the call.
    pub fn run_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.is_blocked.store(true, Ordering::Relaxed);
        let done = work();
        self.0.is_blocked.store(false, Ordering::Relaxed);
        done
    }

    /// True during a call of [`Self::run_blocking`], when signals go unnoticed.
    pub fn is_blocked(&self) -> bool {
        self.0.is_blocked.load(Ordering::Relaxed)
    }
}
