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
    /// Limit on this worker's connections, at least one, not counting [`stand_ins`](Self::stand_ins).
    pub max_inflight: u32,
    /// Number of extra connections that may replace connections that only finish their requests in flight.
    pub stand_ins: u32,
    /// Limit on this worker's requests in flight; `None`: unlimited. A batch longer than the limit is sent alone.
    pub in_flight_max: Option<u64>,
    /// Number of connections that the worker keeps open.
    pub demand: Demand,
    /// Number of connections that the earlier workers may open, so that all workers together take the addresses in
    /// turn.
    pub first_connection: usize,
    /// Limit on requests in flight per HTTP/1.1 connection.
    pub depth: usize,
    /// Limit on requests in flight per HTTP/2 connection; the server may allow fewer.
    pub streams: usize,
    /// Number of requests after which a connection is replaced; `None`: never for that reason.
    pub requests_per_connection: Option<PerConnection>,
    /// The addresses of the target, or of the proxy, in the resolver's order, at least one.
    pub addresses: Vec<SocketAddr>,
    /// The tunnel request that each new connection sends to a proxy, if there is a proxy.
    pub tunnel: Option<RequestParts>,
    /// The TLS config, if TLS is used.
    pub tls: Option<tls::Config>,
    /// Checks that every response must pass.
    pub checks: Checks,
    /// Counting rules.
    pub rules: Rules,
    /// Time for which the target is under load before measuring starts, in nanoseconds. Duration and number of requests
    /// below count from the end of the warm-up.
    pub warmup_ns: u64,
    /// Interval of rate samples and hand-overs, in nanoseconds.
    pub sample_ns: u64,
    /// Longest time the worker measures, in nanoseconds; `None`: until its requests have ended or it is stopped.
    pub duration_ns: Option<u64>,
    /// Longest uncounted time after the end, in nanoseconds, in which the worker waits for the outcome of requests due
    /// by the end; zero: it ends at once.
    pub run_on_ns: u64,
    /// True if the worker stays after the end, uncounted, until it is stopped: see
    /// [`Engine::stay`](crate::Engine::stay).
    pub stays: bool,
    /// Number of requests to start; `None`: unlimited.
    pub requests: Option<u64>,
    /// Age at which a request is abandoned, in nanoseconds; `None`: never.
    pub give_up_ns: Option<u64>,
    /// Time for which the target may be unreachable before the worker ends, in nanoseconds. Ignored if there is a
    /// duration.
    pub patience_ns: u64,
    /// True to busy-poll instead of sleeping while few requests are in flight.
    pub spins: bool,
    /// Allows a wait to last a moment longer to collect several completions, in a closed loop with many requests in
    /// flight. The value is the number of bytes a server may send in the meantime; `None`: never wait longer.
    pub lingers: Option<Ahead>,
    /// Seed of the worker's random numbers.
    pub seed: u64,
    /// True to record the bytes that go over the wire.
    pub transcribe: bool,
}

/// Number of bytes a server may send before it has to wait for the worker to read some of them.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// Limit for one response.
    pub response: u64,
    /// Limit for all responses on a connection together.
    pub connection: u64,
}

impl Config {
    /// Largest number of simultaneous connections, including stand-ins.
    pub fn slots(&self) -> u32 {
        self.max_inflight + self.stand_ins
    }
}
