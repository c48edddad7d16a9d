//! The decisions of a script about its thread.

use std::cell::Cell;
use std::net::SocketAddr;

/// The decisions of a script, shared between the functions in its state and the owner of the state.
#[derive(Debug, Default)]
pub struct Decisions {
    /// True if the script wants its thread to end.
    pub is_stopped: Cell<bool>,
    /// The address that the script chose for further connections, if any.
    pub address: Cell<Option<SocketAddr>>,
    /// The exit code, if the script called `os.exit`.
    pub exit: Cell<Option<i32>>,
}
