//! Ends a run early, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells a run to end early. Clones share the same flags.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    asked: AtomicBool,
    /// The call that is being made may never return.
    is_lasting: AtomicBool,
}

impl Interrupt {
    /// Tells the run to end.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the run has been told to end.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Makes a call that may never return, such as that of a script's `setup`: during it, the flag is not checked.
    pub fn unheard<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.is_lasting.store(true, Ordering::Relaxed);
        let done = work();
        self.0.is_lasting.store(false, Ordering::Relaxed);
        done
    }

    /// Whether such a call is being made.
    pub fn is_unheard(&self) -> bool {
        self.0.is_lasting.load(Ordering::Relaxed)
    }
}
