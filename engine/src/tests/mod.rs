//! The engine in virtual time: HTTP/1.1 against simulated servers, and a second protocol through the same loop.

mod account;
mod checks;
mod crowding;
mod demand;
mod hostile;
mod http1;
mod http2;
mod leave;
mod multiplex;
mod opening;
pub(super) mod pacing;
mod phases;
mod request_log;
mod run_on;
mod scripted;
mod second_protocol;
mod spare;
mod stall;
mod timing_out;
mod tunnel;
mod waiting;
mod window;

use std::net::SocketAddr;
use std::sync::Arc;

use onrush_plan::load::Limiter;
use onrush_plan::{Checks, PerConnection};
use onrush_proto::{Request, RequestParts};
use onrush_stats::Totals;

use super::*;
use crate::backend::Sim;
use crate::backend::sim::{Network, Scenario};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// A limit on the requests per connection.
pub fn scale(is_compat: bool) -> Scale {
    if is_compat { Scale::WRK } else { Scale::EXACT }
}

pub fn per_connection(most: u64) -> PerConnection {
    PerConnection { most, option: Limiter::RequestsPerConnection }
}

/// One worker with one connection and no limits; each test changes its subject.
pub fn config() -> Config {
    Config {
        max_inflight: 1,
        stand_ins: 0,
        in_flight_max: None,
        demand: Demand::All,
        depth: 1,
        streams: 1,
        sample_ns: SAMPLE_NS,
        requests_per_connection: None,
        tunnel: None,
        addresses: vec!["127.0.0.1:80".parse().unwrap()],
        first_connection: 0,
        tls: None,
        checks: Checks::default(),
        rules: Rules {
            scale: Scale::EXACT,
            timeout_ns: Some(2 * SECOND),
            phases: false,
            by_name: false,
            pipelines: false,
            open_loop: None,
        },
        warmup_ns: 0,
        duration_ns: Some(SECOND),
        run_on_ns: 0,
        stays: false,
        requests: None,
        give_up_ns: Some(30 * SECOND),
        patience_ns: 30 * SECOND,
        spins: false,
        lingers: None,
        seed: 1,
        transcribe: false,
    }
}

/// Measurements and end of a run.
pub struct Ran {
    pub totals: Totals,
    pub end: WorkerEnd,
}

/// Runs HTTP/1.1 against a scenario.
pub fn run_http(config: Config, scenario: &str) -> Ran {
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is valid");
    run_on(config, scenario.network(1), get(), http1(1))
}

/// Sends one request repeatedly, in any protocol on any network.
pub fn run_on(config: Config, network: Box<dyn Network>, request: Request, make_protocol: MakeProtocol) -> Ran {
    run_job(config, network, job(request, make_protocol))
}

/// A closed loop that sends one request repeatedly.
pub fn job(request: Request, make_protocol: MakeProtocol) -> Job {
    let source = Box::new(Repeated(vec![request]));
    Job { source, pacer: Pacer::Closed, make_protocol, http2: None, callbacks: Callbacks::default() }
}

/// Runs any job on any network.
pub fn run_job(config: Config, network: Box<dyn Network>, job: Job) -> Ran {
    let backend = Sim::new(config.slots(), network);
    run_backend(Control::default(), config, backend, job)
}

/// [`run_job`] on any backend, with a given [`Control`].
pub fn run_backend(control: Control, config: Config, backend: impl Backend, job: Job) -> Ran {
    let (control, link) = (Arc::new(control), Arc::new(WorkerLink::default()));
    let end = Engine::new(config, backend, job, control, Arc::clone(&link)).run(Instant::now()).0;
    let mut totals = Totals::default();
    link.mailbox.collect(|interval| totals += interval);
    totals += &*end.interval;
    totals.settle_phases();
    Ran { totals, end }
}

pub fn get() -> Request {
    request("GET", Vec::new())
}

pub fn request(method: &str, body: Vec<u8>) -> Request {
    Request::new(RequestParts {
        method: method.into(),
        target: "/".into(),
        headers: vec![("Host".into(), "test".into())],
        body: body.into(),
    })
}

/// Checks that every started request has ended in exactly one way.
pub fn assert_conserved(totals: &Totals) {
    let counters = &totals.counters;
    let ended = counters.completed + counters.failed + counters.abandoned + counters.open_at_end;
    assert_eq!(counters.started + counters.carried, ended, "{counters:?}");
}
