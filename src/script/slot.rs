//! Keeps states while no worker has them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::state::State;

/// Where the state of a thread lies; empty while a worker has it.
pub type Slot = Mutex<Option<State>>;

/// What lies in a slot, even if a thread that had it before panicked.
pub fn lock(slot: &Slot) -> MutexGuard<'_, Option<State>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
