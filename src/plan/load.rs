//! The load: threads and connections, each thread's share of them, and how long a connection is used.

use serde::{Deserialize, Serialize};

/// The number of threads and the total number of connections. Here and in the engine `connections` is how many there are at
/// first, `max_inflight` how many there are at most, and `wanted` how many there are to be now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Threads that generate load.
    pub threads: u32,
    /// Connections of all threads together, at least one each: all the time, at first, or the most of their stages.
    pub connections: u32,
    /// The most connections that there may be: more than at first where others are opened while due requests wait for one.
    pub max_inflight: u32,
}

/// How many requests a connection may have before it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerConnection {
    /// The largest number, at least one.
    pub most: u64,
    /// Who asked for it, to be named where a script does not keep to it.
    pub option: Limiter,
}

/// An option that limits the requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limiter {
    /// One request, and the server is told that it is the last.
    DisableKeepalive,
    /// Any number.
    RequestsPerConnection,
}

impl Limiter {
    /// The option as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::DisableKeepalive => "--disable-keepalive",
            Self::RequestsPerConnection => "--requests-per-connection",
        }
    }
}

impl Load {
    /// Threads that share connections, and no more of these than at first.
    pub fn new(threads: u32, connections: u32) -> Self {
        Self { threads, connections, max_inflight: connections }
    }

    /// The connections of thread `index`: none of the total is dropped, the first threads take the remainder.
    pub fn connections_of(self, index: u32) -> u32 {
        share(u64::from(self.connections), self.threads, index) as u32
    }

    /// The most connections that thread `index` may have.
    pub fn most_of(self, index: u32) -> u32 {
        share(u64::from(self.max_inflight), self.threads, index) as u32
    }

    /// The most connections that all threads before that one may have.
    pub fn most_before(self, index: u32) -> u32 {
        (0..index).map(|before| self.most_of(before)).sum()
    }

    /// Whether more connections are opened while due requests wait for one.
    pub fn grows(self) -> bool {
        self.max_inflight > self.connections
    }
}

/// The part of `total` that falls to part `index` of `parts`, the first ones taking the remainder.
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
