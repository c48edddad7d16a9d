//! The hot path allocates nothing: a counting allocator compares a short run with one of a hundred times as many
//! requests, on each backend of the operating system against the embedded target.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use onrush::backend::{self, Backend, Clock, Dialer, Epoll, Uring};
use onrush::engine::{self, Callbacks, Engine, Job, Pacer, Repeated, Rules, Scale, Settings, WorkerLink};
use onrush::serve::{Config, Server};
use onrush_proto::{Parts, Request};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is; counting touches no memory that it manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and all memory comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of this thread during a run of this many requests on ten connections.
fn allocations<B: Backend>(server: &Server, requests: u64, make: fn(u32, Clock) -> io::Result<B>) -> u64 {
    let settings = Settings {
        max_inflight: 10,
        demand: engine::Demand::All,
        depth: 1,
        requests_per_connection: None,
        tunnel: None,
        addresses: vec![server.address()],
        first_connection: 0,
        tls: None,
        rules: Rules {
            scale: Scale::EXACT,
            timeout_ns: Some(2_000_000_000),
            phases: true,
            pipelines: false,
            open_loop: None,
        },
        warmup_ns: 0,
        duration_ns: None,
        requests: Some(requests),
        give_up_ns: None,
        patience_ns: 30_000_000_000,
        spins: false,
        seed: 1,
        transcribe: false,
    };
    let backend = make(settings.max_inflight, Clock::start()).expect("there are descriptors");
    let parts = Parts {
        method: "GET".into(),
        target: "/".into(),
        headers: vec![("Host".into(), server.address().to_string())],
        ..Parts::default()
    };
    let job = Job {
        source: Box::new(Repeated(vec![Request::new(parts)])),
        pacer: Pacer::Closed,
        make_protocol: engine::http1(1),
        callbacks: Callbacks::default(),
    };
    let engine = Engine::new(settings, backend, job, Arc::default(), Arc::<WorkerLink>::default());
    let before = ALLOCATIONS.with(Cell::get);
    let end = engine.run(Instant::now());
    let during = ALLOCATIONS.with(Cell::get) - before;
    assert!(end.interval.ledger.rows().is_empty(), "nothing failed");
    during
}

fn assert_nothing_is_allocated<B: Backend>(make: fn(u32, Clock) -> io::Result<B>) {
    let config = Config { address: "127.0.0.1:0".parse().expect("an address"), threads: 1 };
    let server = Server::start(&config).expect("the target starts");
    allocations(&server, 1_000, make);
    let (few, many) = (allocations(&server, 1_000, make), allocations(&server, 100_000, make));
    assert!(few > 0, "making connections allocates, so the counter counts");
    assert!(many < few + 20, "{}: {few} allocations for 1,000 requests, {many} for 100,000", B::NAME);
}

#[test]
fn a_request_allocates_nothing() {
    assert_nothing_is_allocated(|connections, clock| Epoll::new(connections, clock, Dialer::default()));
    if backend::default_name() == Uring::NAME {
        assert_nothing_is_allocated(|connections, clock| Uring::new(connections, clock, Dialer::default()));
    }
}
