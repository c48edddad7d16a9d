//! The load: threads and connections, each thread's share of them, and the lifetime of a connection.

use serde::{Deserialize, Serialize};

/// The number of threads and connections. Here and in the engine, `connections` is the initial number, `max_inflight`
/// the largest number allowed, and `wanted` the current target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Number of threads that generate load, at least one.
    pub threads: u32,
    /// Connections of all threads together, at least one per thread. If the number varies: the initial number, or with
    /// stages the largest number of any stage.
    pub connections: u32,
    /// Limit on the connections of all threads together, at least `connections`. If it is higher, connections are added
    /// while due requests wait for one.
    pub max_inflight: u32,
}

/// Number of requests after which a connection is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerConnection {
    /// Number of requests that a connection carries before it is replaced; at least one.
    pub most: u64,
    /// The option that sets the number; a message names it if a script violates the limit.
    pub option: Limiter,
}

/// An option that limits the requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limiter {
    /// `--disable-keepalive`: one request, with `Connection: close`.
    DisableKeepalive,
    /// `--requests-per-connection`: any number of requests.
    RequestsPerConnection,
}

impl Limiter {
    /// The option as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::DisableKeepalive => "--disable-keepalive",
            Self::RequestsPerConnection => "--requests-per-connection",
        }
    }
}

impl Load {
    /// Threads that share a fixed number of connections.
    pub fn new(threads: u32, connections: u32) -> Self {
        Self { threads, connections, max_inflight: connections }
    }

    /// Number of connections of thread `index`; the first threads take the remainder.
    pub fn connections_of(self, index: u32) -> u32 {
        share(u64::from(self.connections), self.threads, index) as u32
    }

    /// Largest number of connections of thread `index`.
    pub fn most_connections_of(self, index: u32) -> u32 {
        share(u64::from(self.max_inflight), self.threads, index) as u32
    }

    /// Largest number of connections of all threads before thread `index`.
    pub fn most_connections_before(self, index: u32) -> u32 {
        (0..index).map(|before| self.most_connections_of(before)).sum()
    }

    /// True if connections are added while due requests wait for one.
    pub fn may_grow(self) -> bool {
        self.max_inflight > self.connections
    }
}

/// The share of `total` for part `index` of `parts`; the first parts take the remainder.
pub fn share(total: u64, parts: u32, index: u32) -> u64 {
    let (parts, index) = (u64::from(parts), u64::from(index));
    total / parts + u64::from(index < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_is_dropped_by_the_division() {
        for (threads, connections) in [(1, 1), (3, 10), (12, 400), (64, 64), (7, 2048)] {
            let load = Load::new(threads, connections);
            let shares: Vec<u32> = (0..threads).map(|index| load.connections_of(index)).collect();
            assert_eq!(shares.iter().sum::<u32>(), connections);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
