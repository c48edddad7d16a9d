//! One worker's part of the plan.

use std::net::SocketAddr;

use onrush_plan::{Checks, PerConnection};
use onrush_proto::RequestParts;

use super::demand::Demand;
use super::rules::Rules;
use super::tls;

/// One worker's part of the plan.
#[derive(Clone, Debug)]
pub struct Config {
    /// Connection limit of this worker, at least one.
    pub max_inflight: u32,
    /// Additional connections that may replace those that only finish their requests.
    pub stand_ins: u32,
    /// Limit on requests in flight, if any.
    pub in_flight_max: Option<u64>,
    /// Number of connections that the worker keeps open.
    pub demand: Demand,
    /// Number of connections allowed to the workers before this one: connections use the addresses in turn.
    pub first_connection: usize,
    /// Limit on requests in flight per connection.
    pub depth: usize,
    /// Limit on streams in flight per HTTP/2 connection.
    pub streams: usize,
    /// Number of requests after which a connection is replaced.
    pub requests_per_connection: Option<PerConnection>,
    /// The addresses of the target, or of the proxy, in the resolver's order, at least one.
    pub addresses: Vec<SocketAddr>,
    /// The tunnel request that each new connection sends to a proxy, if there is a proxy.
    pub tunnel: Option<RequestParts>,
    /// The TLS config, if TLS is used.
    pub tls: Option<tls::Config>,
    /// Checks of responses.
    pub checks: Checks,
    /// Counting rules.
    pub rules: Rules,
    /// Time for which the target is loaded before measuring, in nanoseconds. Everything below counts from its end.
    pub warmup_ns: u64,
    /// Interval of rate samples and hand-overs, in nanoseconds.
    pub sample_ns: u64,
    /// Longest run time of the worker, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// Longest uncounted time after the end, in nanoseconds, in which the worker learns the outcome of due requests;
    /// zero: it ends at once.
    pub run_on_ns: u64,
    /// True if the worker stays after the end, uncounted, until it is stopped: see
    /// [`Engine::stay`](crate::Engine::stay).
    pub stays: bool,
    /// Number of requests to start.
    pub requests: Option<u64>,
    /// Age at which a request is abandoned, in nanoseconds.
    pub give_up_ns: Option<u64>,
    /// Time for which the target may be unreachable in a run without another end, in nanoseconds.
    pub patience_ns: u64,
    /// True to busy-poll instead of sleeping while few requests are in flight.
    pub spins: bool,
    /// Lets a wait collect several completions for a moment, if many requests are in flight and none is due at a time.
    /// The value is the amount that a server may send meanwhile.
    pub lingers: Option<Ahead>,
    /// The start of the worker's random sequence.
    pub seed: u64,
    /// True to record the bytes that go over the wire.
    pub transcribe: bool,
}

/// Number of bytes a server may send before it must wait until a worker has read some of them.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// Of a response.
    pub response: u64,
    /// Of all responses on a connection.
    pub connection: u64,
}

impl Config {
    /// Largest number of simultaneous connections.
    pub fn slots(&self) -> u32 {
        self.max_inflight + self.stand_ins
    }
}
