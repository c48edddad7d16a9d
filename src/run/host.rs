//! What this machine allows: file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors a run needs beside its connections: standard streams, one ring or epoll instance per thread, the name service.
const SPARE: u64 = 32;

/// The machine allows fewer descriptors than a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// How many the run needs.
    pub needed: u64,
    /// The hard limit, which only an administrator can raise.
    pub hard: u64,
}

/// What to type when there are too few descriptors, to be put behind the reason.
pub fn way_out(connections: u32, threads: u32) -> String {
    format!(
        "; the run needs {} open files: 'ulimit -n' raises the limit up to the hard one",
        needed(connections, threads)
    )
}

/// How many descriptors a run needs.
pub fn needed(connections: u32, threads: u32) -> u64 {
    u64::from(connections) + u64::from(threads) + SPARE
}

/// Raises the soft limit of open files to what a run needs, as far as the hard limit allows. Says so if that is not
/// enough; the run then goes on with fewer connections.
pub fn raise_descriptor_limit(connections: u32, threads: u32) -> Option<Shortage> {
    let needed = needed(connections, threads);
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|soft| soft < needed) {
        // If the kernel refuses, connects will fail with a cause of their own.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(needed.min(hard)), maximum: limit.maximum });
    }
    (hard < needed).then_some(Shortage { needed, hard })
}
