//! Ends a run early, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells a run to end early. Copies are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    asked: AtomicBool,
    /// What is done now may never come back.
    is_lasting: AtomicBool,
}

impl Interrupt {
    /// Has the run end.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Does what may never come back, such as what a script does before the start: nobody looks meanwhile whether the
    /// run is to end.
    pub fn unheard<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.is_lasting.store(true, Ordering::Relaxed);
        let done = work();
        self.0.is_lasting.store(false, Ordering::Relaxed);
        done
    }

    /// Whether something is done now that may never come back.
    pub fn is_unheard(&self) -> bool {
        self.0.is_lasting.load(Ordering::Relaxed)
    }
}
