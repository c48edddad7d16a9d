//! Sends that leave with a wait, and the length of busy-polling.

use std::cell::RefCell;
use std::net::TcpListener;
use std::rc::Rc;

use onrush_proto::Transmit;

use super::pacing::{Noting, assert_accounted, every, open_loop};
use super::*;
use crate::backend::{Clock, Completion, Dialer, Epoll};

/// A simulated network in which sends leave with the next wait, as with io_uring.
struct Gathering {
    sim: Sim,
    queued: Vec<(ConnId, Transmit)>,
    /// The time, which advances when it is read, when a request is written, and on waking up.
    now: Nanos,
    look_ns: u64,
    write_ns: u64,
    wake_ns: u64,
}

impl Gathering {
    fn new(network: Box<dyn Network>) -> Self {
        let (sim, queued, now) = (Sim::new(3, network), Vec::new(), Nanos::default());
        Self { sim, queued, now, look_ns: 0, write_ns: 0, wake_ns: 0 }
    }
}

impl Backend for Gathering {
    const NAME: &'static str = "gathering";
    const GATHERS: bool = true;

    fn now(&mut self) -> Nanos {
        self.now = (self.now + self.look_ns).max(self.sim.now());
        self.now
    }

    fn connect(&mut self, conn: ConnId, address: SocketAddr) {
        self.sim.connect(conn, address);
    }

    fn send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        self.now = self.now + self.write_ns;
        let length = bytes.bytes().len();
        self.queued.push((conn, bytes));
        length
    }

    fn discard(&mut self, conn: ConnId, n: u64) {
        self.sim.discard(conn, n);
    }

    fn send_last(&mut self, _: ConnId, _: &[u8]) {}

    fn close(&mut self, conn: ConnId) {
        self.queued.retain(|(queued, _)| *queued != conn);
        self.sim.close(conn);
    }

    fn take_sent_count(&mut self) -> u64 {
        self.sim.take_sent_count()
    }

    fn wait(&mut self, until: Nanos) -> bool {
        self.sim.wait(self.now);
        for (conn, bytes) in self.queued.drain(..) {
            self.sim.send(conn, bytes);
        }
        let is_ready = self.sim.wait(until.max(self.now));
        if self.sim.now() > self.now {
            self.now = self.sim.now() + self.wake_ns;
        }
        is_ready
    }

    fn gather(&mut self, _: Nanos, _: Nanos) -> bool {
        false
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.sim.next_completion()
    }

    fn received_bytes(&mut self) -> &mut [u8] {
        self.sim.received_bytes()
    }
}

#[test]
fn only_handed_over_requests_count_as_started() {
    // The responses at the very end are handled last. The requests that they make room for never leave.
    let scenario: Scenario = toml::from_str("connect_us = 0.0\nlatency_us = 10000.0").unwrap();
    // In the window after a warm-up, the first responses answer earlier requests.
    for (warmup_ns, carried) in [(0, 0), (50 * MS, 3)] {
        let three = Config { max_inflight: 3, warmup_ns, duration_ns: Some(100 * MS), ..config() };
        let backend = Gathering::new(scenario.clone().network(1));
        let ran = run_backend(Control::default(), three, backend, job(get(), http1(1)));
        let counters = ran.totals.counters;
        assert_eq!(
            (counters.carried, counters.started, counters.completed, counters.open_at_end),
            (carried, 30 - carried, 30, 0),
            "{warmup_ns}"
        );
        assert_eq!(counters.bytes_sent, (30 - carried) * "GET / HTTP/1.1\r\nHost: test\r\n\r\n".len() as u64);
        assert!(ran.totals.censored.is_none());
        assert_conserved(&ran.totals);
    }
}

#[test]
fn timers_allow_no_further_busy_polling() {
    // A peer in the kernel that accepts and never responds.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rules = Rules { timeout_ns: Some(MS), ..config().rules };
    let addresses = vec![listener.local_addr().unwrap()];
    let config = Config { spins: true, addresses, rules, duration_ns: Some(SECOND / 2), ..config() };
    let backend = Epoll::new(1, Clock::start(), Dialer::default()).unwrap();
    let ran = run_backend(Control::default(), config, backend, job(get(), http1(1)));
    let counters = ran.totals.counters;
    assert_eq!((counters.started, counters.late), (1, 1));
    // A millisecond each for the connect and the request, and nothing for the sweeps.
    let activity = ran.totals.activity;
    assert!(activity.spun_ns < 20 * MS, "{activity:?}");
    assert!(activity.spun_ns <= activity.cpu_ns(), "{activity:?}");
}

/// Sends a request each millisecond for a tenth of a second; writing one takes 3 µs. Returns the measurements and the
/// times when the requests left.
fn run_gathering(config: Config, latency_ns: u64) -> (Totals, Vec<u64>) {
    let asked = Rc::<RefCell<Vec<u64>>>::default();
    let network = Noting { latency_ns, not_before: Nanos::default(), asked: Rc::clone(&asked) };
    let backend = Gathering { look_ns: 100, write_ns: 3_000, wake_ns: 20_000, ..Gathering::new(Box::new(network)) };
    let config = Config { spins: true, duration_ns: Some(SECOND / 10), ..config };
    let job = Job { pacer: every(MS, None), ..job(get(), http1(1)) };
    let ran = run_backend(Control::default(), config, backend, job);
    assert_accounted(&ran.totals);
    (ran.totals, asked.take())
}

#[test]
fn requests_are_prepared_early_and_leave_on_time() {
    // Responses come before the next request is due, or after it.
    for (max_inflight, latency_ns) in [(1, 300_000), (3, 300_000), (3, 2 * MS + 500_000)] {
        for warmup_ns in [0, SECOND / 20] {
            let config = Config { max_inflight, warmup_ns, ..open_loop(OpenLoop::default()) };
            let (totals, asked) = run_gathering(config, latency_ns);
            // Measuring begins, and so ends, a moment late.
            assert!((0..=1).contains(&(asked.len() as u64 - (SECOND / 10 + warmup_ns) / MS)), "{}", asked.len());
            assert!((0..).zip(&asked).all(|(number, at)| *at >= number * MS), "none is early: {asked:?}");
            let lateness = &totals.open_loop.as_deref().unwrap().lateness;
            assert!(lateness.percentile(90.0) < 1_000, "{max_inflight} {latency_ns}: {}", lateness.percentile(90.0));
        }
    }
}

#[test]
fn workers_wake_for_slice_ends() {
    let rules = OpenLoop { slice_ns: MS, ..OpenLoop::default() };
    let (totals, asked) = run_gathering(Config { max_inflight: 3, ..open_loop(rules) }, 2 * MS + 500_000);
    assert_eq!(asked.len(), 100);
    assert!((0..).zip(&asked).all(|(number, at)| *at >= number * MS), "none is early: {asked:?}");
    let lateness = &totals.open_loop.as_deref().unwrap().lateness;
    assert!(lateness.percentile(90.0) < 10_000, "{}", lateness.percentile(90.0));
}
