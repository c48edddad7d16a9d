//! How evenly requests were distributed over connections.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The connections open at the end of a run and the requests on each, if the requests per connection are not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSpread {
    /// Number of connections.
    pub connections: u64,
    /// Number of requests on these connections, over their whole life.
    pub requests: u64,
    /// Largest number of requests on one connection.
    pub most: u64,
}

impl ConnectionSpread {
    /// Records a connection with this many requests.
    pub fn record(&mut self, requests: u64) {
        *self += Self { connections: 1, requests, most: requests };
    }

    /// Largest number of requests on one connection, as a multiple of the mean; `None` without requests.
    pub fn hottest_to_mean(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.most as f64 * self.connections as f64 / self.requests as f64)
    }
}

impl AddAssign for ConnectionSpread {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.requests += other.requests;
        self.most = self.most.max(other.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hottest_connection_is_relative_to_mean() {
        let mut spread = ConnectionSpread::default();
        assert_eq!(spread.hottest_to_mean(), None);
        [10, 10, 10, 50].into_iter().for_each(|requests| spread.record(requests));
        assert_eq!(spread.hottest_to_mean(), Some(2.5));
    }
}
