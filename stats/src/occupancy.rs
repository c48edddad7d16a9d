//! How requests and connections spent the measured time.

use serde::{Deserialize, Serialize};

/// Sums over all requests, or over all connections, in nanoseconds. Only the parts within the measured time count.
#[derive(derive_more::AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Requests: from the first byte handed to the kernel to the end of the request, of any kind.
    pub in_flight_ns: u64,
    /// Connections: with at least one request in flight.
    pub busy_ns: u64,
    /// Connections: open, busy or not.
    pub open_ns: u64,
    /// Connections: open, waiting only for the server to close them.
    pub leaving_ns: u64,
    /// Connections: connecting or about to connect.
    pub connecting_ns: u64,
    /// Connections: waiting after a failure before the next attempt.
    pub waiting_ns: u64,
    /// Connections that were never established: their entire time.
    pub absent_ns: u64,
    /// Connections: not needed, because all requests have been started, or because the plan has fewer connections at
    /// that time.
    pub done_ns: u64,
    /// Connections: open, with nothing left to send at the end; part of `open_ns` and of `done_ns`.
    pub finished_ns: u64,
}
