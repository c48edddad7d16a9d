//! The counts behind `/stats`: kept per thread and summed on request.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one thread. Only that thread writes them, so plain loads and stores suffice. The alignment prevents
/// false sharing of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ThreadCounters {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl ThreadCounters {
    /// Counts an accepted connection and returns its number on this thread, from 1.
    pub(super) fn add_connection(&self) -> u64 {
        let number = self.connections.load(Ordering::Relaxed) + 1;
        self.connections.store(number, Ordering::Relaxed);
        number
    }

    /// Counts a request whose head has been read.
    pub(super) fn add_request(&self) {
        self.requests.store(self.requests.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Sums the counts of all threads into the body of `/stats`.
pub(super) fn to_json(threads: &[ThreadCounters]) -> String {
    let sum =
        |of: fn(&ThreadCounters) -> &AtomicU64| threads.iter().map(|one| of(one).load(Ordering::Relaxed)).sum::<u64>();
    let connections = sum(|one| &one.connections);
    let requests = sum(|one| &one.requests);
    format!("{{\"connections\": {connections}, \"requests\": {requests}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_are_summed() {
        let threads = [ThreadCounters::default(), ThreadCounters::default()];
        assert_eq!([threads[0].add_connection(), threads[0].add_connection()], [1, 2]);
        threads[0].add_request();
        threads[1].add_request();
        assert_eq!(to_json(&threads), "{\"connections\": 2, \"requests\": 2}\n");
    }
}
