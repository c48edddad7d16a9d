//! The settings that a script has made for its thread.

use std::cell::Cell;
use std::net::SocketAddr;

/// The decisions of a script, shared between the functions in its state and the owner of the state.
#[derive(Debug, Default)]
pub struct Decisions {
    /// True if the thread is to end.
    pub is_stopped: Cell<bool>,
    /// The address for further connections.
    pub address: Cell<Option<SocketAddr>>,
    /// The exit code, if the program is to end.
    pub exit: Cell<Option<i32>>,
}
