//! The decisions of a script about its thread.

use std::cell::Cell;
use std::net::SocketAddr;

/// The decisions of a script, shared between the functions in its state and the owner of the state.
#[derive(Debug, Default)]
pub struct Decisions {
    /// True if the thread should end.
    pub is_stopped: Cell<bool>,
    /// Address for further connections.
    pub address: Cell<Option<SocketAddr>>,
    /// Exit code, if the program should end.
    pub exit: Cell<Option<i32>>,
}
