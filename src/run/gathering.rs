//! Progress of waiting for machines.

use std::net::SocketAddr;

/// Progress of waiting for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Where they are waited for.
    pub address: SocketAddr,
    /// How many are to take part.
    pub machines: u32,
    /// Machines that have come.
    pub there: u32,
    /// How many of these have set their part up.
    pub prepared: u32,
}
