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
    /// The most connections that this worker may have, at least one.
    pub max_inflight: u32,
    /// Further connections that may replace ones that only finish their requests.
    pub stand_ins: u32,
    /// The most requests in flight, if they are limited.
    pub in_flight_max: Option<u64>,
    /// How many of them it keeps open.
    pub demand: Demand,
    /// How many connections the workers before it may have: connections use the addresses in turn.
    pub first_connection: usize,
    /// The most requests in flight on one connection.
    pub depth: usize,
    /// The most streams in flight on one HTTP/2 connection.
    pub streams: usize,
    /// The most requests on one connection, before it is replaced.
    pub requests_per_connection: Option<PerConnection>,
    /// The addresses of the target, or of the proxy, in the resolver's order, at least one.
    pub addresses: Vec<SocketAddr>,
    /// The request for a tunnel that each new connection sends to a proxy, if there is one.
    pub tunnel: Option<RequestParts>,
    /// The TLS config, if TLS is used.
    pub tls: Option<tls::Config>,
    /// Checks of responses.
    pub checks: Checks,
    /// Counting rules.
    pub rules: Rules,
    /// How long the target is loaded before measuring begins, in nanoseconds; everything below counts from then.
    pub warmup_ns: u64,
    /// How often rates are sampled and intervals handed over, in nanoseconds.
    pub sample_ns: u64,
    /// The longest the worker runs, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// How long it goes on after that, uncounted, to learn how the requests that were due have ended, in nanoseconds;
    /// zero: it ends at once.
    pub run_on_ns: u64,
    /// True if it stays after the end, uncounted, until it is stopped: see [`Engine::stay`](crate::Engine::stay).
    pub stays: bool,
    /// How many requests it starts.
    pub requests: Option<u64>,
    /// How long a request may last before it is abandoned, in nanoseconds.
    pub give_up_ns: Option<u64>,
    /// How long the target may be unreachable in a run that has no other end, in nanoseconds.
    pub patience_ns: u64,
    /// True to busy-poll instead of sleeping while few requests are in flight.
    pub spins: bool,
    /// Lets a wait collect several completions for a moment, where many requests are in flight and none is due at a
    /// time; the value tells how much a server may send meanwhile.
    pub lingers: Option<Ahead>,
    /// The start of the worker's random sequence.
    pub seed: u64,
    /// True to record the bytes that go over the wire.
    pub transcribe: bool,
}

/// How many bytes a server may send before it has to wait until a worker has read some of them.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// Of a response.
    pub response: u64,
    /// Of all responses on a connection.
    pub connection: u64,
}

impl Config {
    /// The most connections at any moment.
    pub fn slots(&self) -> u32 {
        self.max_inflight + self.stand_ins
    }
}
