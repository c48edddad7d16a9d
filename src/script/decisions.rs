//! The settings that a script has made for its thread.

use std::cell::Cell;
use std::net::SocketAddr;

/// What a script has decided. Shared by the functions in its state and by the owner of the state.
#[derive(Debug, Default)]
pub struct Decisions {
    /// It wants the thread to end.
    pub is_stopped: Cell<bool>,
    /// Where further connections are to go.
    pub address: Cell<Option<SocketAddr>>,
    /// The program is to end, with this code.
    pub exit: Cell<Option<i32>>,
}
