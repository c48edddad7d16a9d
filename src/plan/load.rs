//! How much load: threads and connections, each thread's share of them, and how long a connection is used.

/// The number of threads and the total number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads that generate load.
    pub threads: u32,
    /// Connections of all threads together; at least one each.
    pub connections: u32,
}

/// How many requests a connection may have before it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerConnection {
    /// So many at most, at least one.
    pub most: u64,
    /// The option that asked for it, to be named where a script does not keep to it.
    pub option: &'static str,
}

impl Load {
    /// The connections of thread `index`: none of the total is dropped, the first threads take the remainder.
    pub fn connections_of(self, index: u32) -> u32 {
        share(u64::from(self.connections), self.threads, index) as u32
    }
}

/// The part of `total` that falls to thread `index` of `threads`, the first threads taking the remainder.
pub fn share(total: u64, threads: u32, index: u32) -> u64 {
    let (threads, index) = (u64::from(threads), u64::from(index));
    total / threads + u64::from(index < total % threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_is_dropped_by_the_division() {
        for (threads, connections) in [(1, 1), (3, 10), (12, 400), (64, 64), (7, 2048)] {
            let load = Load { threads, connections };
            let shares: Vec<u32> = (0..threads).map(|index| load.connections_of(index)).collect();
            assert_eq!(shares.iter().sum::<u32>(), connections);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
