//! How many machines are there, while a run waits for them.

use std::net::SocketAddr;

/// How many machines are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Where they are waited for.
    pub address: SocketAddr,
    /// How many are to take part.
    pub machines: u32,
    /// How many are there.
    pub there: u32,
    /// How many of these have set their part up.
    pub prepared: u32,
}
