//! The experiment that may follow a closed loop.

use std::time::Duration;

/// An experiment after a run, which finds out what limited it by another number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Whether that is half as many more, instead of a quarter fewer.
    pub up: bool,
    /// The longest it may take.
    pub time: Duration,
}

impl Probing {
    /// The other number of requests in flight after a run with `connections`; `None`: there is none.
    pub fn other(&self, connections: u32) -> Option<u32> {
        let other =
            if self.up { connections + connections.div_ceil(2) } else { connections / 4 * 3 + connections % 4 * 3 / 4 };
        (other > 0 && other != connections).then_some(other)
    }
}
