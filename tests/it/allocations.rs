//! The hot path allocates nothing: a counting allocator compares a short run with a run of twenty times as many
//! requests.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use onrush_engine::backend::{Backend, Clock, Dialer, Epoll, Uring};
use onrush_engine::{Callbacks, Config, Engine, Job, Pacer, Repeated, Rules, Scale, WorkerLink};
use onrush_proto::{Request, RequestParts};
use onrush_serve::EmbeddedServer;

use crate::counting;
use crate::harness::{Context, cases, target};

cases! {
    requests_allocate_nothing;
}

/// Allocations of this thread during a run of this many requests on ten connections.
fn allocations<B: Backend>(server: &EmbeddedServer, requests: u64, make: fn(u32, Clock) -> io::Result<B>) -> u64 {
    let config = Config {
        max_inflight: 10,
        stand_ins: 0,
        in_flight_max: None,
        demand: onrush_engine::Demand::All,
        sample_ns: onrush_engine::SAMPLE_NS,
        depth: 1,
        streams: 1,
        requests_per_connection: None,
        tunnel: None,
        addresses: vec![server.address()],
        first_connection: 0,
        tls: None,
        checks: onrush_plan::Checks::default(),
        rules: Rules {
            scale: Scale::EXACT,
            timeout_ns: Some(2_000_000_000),
            phases: true,
            by_name: false,
            pipelines: false,
            open_loop: None,
        },
        warmup_ns: 0,
        duration_ns: None,
        run_on_ns: 0,
        stays: false,
        requests: Some(requests),
        give_up_ns: None,
        patience_ns: 30_000_000_000,
        spins: false,
        lingers: None,
        seed: 1,
        transcribe: false,
    };
    let backend = make(config.max_inflight, Clock::start()).expect("there are descriptors");
    let parts = RequestParts {
        method: "GET".into(),
        target: "/".into(),
        headers: vec![("Host".into(), server.address().to_string())],
        ..RequestParts::default()
    };
    let job = Job {
        source: Box::new(Repeated(vec![Request::new(parts)])),
        pacer: Pacer::Closed,
        make_protocol: onrush_engine::http1(1),
        http2: None,
        callbacks: Callbacks::default(),
    };
    let engine = Engine::new(config, backend, job, Arc::default(), Arc::<WorkerLink>::default());
    let before = counting::allocations();
    let (end, _) = engine.run(Instant::now());
    let during = counting::allocations() - before;
    assert!(end.interval.ledger.rows().is_empty(), "nothing failed");
    during
}

fn assert_nothing_is_allocated<B: Backend>(make: fn(u32, Clock) -> io::Result<B>) {
    let server = target();
    allocations(&server, 1_000, make);
    let (few, many) = (allocations(&server, 1_000, make), allocations(&server, 20_000, make));
    assert!(few > 0, "making connections allocates, so the counter counts");
    assert!(many < few + 20, "{}: {few} allocations for 1,000 requests, {many} for 20,000", B::NAME);
}

fn requests_allocate_nothing(context: &Context) {
    if context.backend == Uring::NAME {
        assert_nothing_is_allocated(|connections, clock| Uring::new(connections, clock, Dialer::default()));
    } else {
        assert_nothing_is_allocated(|connections, clock| Epoll::new(connections, clock, Dialer::default()));
    }
}
