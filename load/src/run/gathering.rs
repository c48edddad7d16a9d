//! Progress of the wait for machines.

use std::net::SocketAddr;

/// Progress of the wait for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Address the coordinator listens on.
    pub address: SocketAddr,
    /// Number of machines expected.
    pub machines: u32,
    /// Number of machines that have joined.
    pub there: u32,
    /// Number of joined machines that have set up their part.
    pub prepared: u32,
}
