//! Holds the Lua state of a thread while no worker has it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::state::LuaState;

/// Holds the state of a thread; empty while a worker has it.
pub type StateHolder = Mutex<Option<LuaState>>;

/// Locks a holder, even if a thread that held the lock panicked.
pub fn lock(holder: &StateHolder) -> MutexGuard<'_, Option<LuaState>> {
    holder.lock().unwrap_or_else(PoisonError::into_inner)
}
