//! One worker's part of the plan.

use std::net::SocketAddr;

use onrush_proto::Parts;

use super::demand::Demand;
use super::rules::Rules;
use super::tls;
use crate::plan::PerConnection;

/// One worker's part of the plan.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most connections that this worker may have, at least one.
    pub max_inflight: u32,
    /// How many of them it keeps open.
    pub demand: Demand,
    /// How many connections the workers before it may have: connections take turns through the addresses.
    pub first_connection: usize,
    /// Requests in flight on one connection at most.
    pub depth: usize,
    /// Requests on one connection at most, before the next one is opened.
    pub requests_per_connection: Option<PerConnection>,
    /// The addresses of the target, or of the proxy, in the resolver's order, at least one.
    pub addresses: Vec<SocketAddr>,
    /// What asks a proxy for a tunnel on each new connection, if that is needed.
    pub tunnel: Option<Parts>,
    /// How TLS is spoken, if it is.
    pub tls: Option<tls::Config>,
    /// What latencies count.
    pub rules: Rules,
    /// How long load is put on the target before anything counts, in nanoseconds; everything below counts from there.
    pub warmup_ns: u64,
    /// The longest the worker runs, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// How many requests it starts.
    pub requests: Option<u64>,
    /// When a request is given up, in nanoseconds.
    pub give_up_ns: Option<u64>,
    /// How long a target may stay away from a run that has no other end, in nanoseconds.
    pub patience_ns: u64,
    /// Whether it looks again and again instead of sleeping while few requests are in flight.
    pub spins: bool,
    /// The start of the worker's random sequence.
    pub seed: u64,
    /// Whether what goes over the wire is kept.
    pub transcribe: bool,
}
