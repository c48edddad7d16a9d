//! Holds a thread's Lua state while no worker uses it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::state::LuaState;

/// Holds the state of a thread; empty while a worker uses it.
pub type StateHolder = Mutex<Option<LuaState>>;

/// Locks a holder, even if another thread panicked while holding the lock.
pub fn lock_holder(holder: &StateHolder) -> MutexGuard<'_, Option<LuaState>> {
    holder.lock().unwrap_or_else(PoisonError::into_inner)
}
