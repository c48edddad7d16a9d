//! How a worker's time is accounted for: completions per wait, lateness of requests, and interval boundaries.

use std::time::Duration;

use rustix::io::Errno;

use super::*;
use crate::backend::sim::Peer;

/// Runs this many connections, all opened at the start, with every response 10 ms after its request.
fn run_together(connections: u32, more: &str) -> Ran {
    let config = Config { max_inflight: connections, ..config() };
    run_http(config, &format!("connect_us = 0.0\nlatency_us = 10000.0\n{more}"))
}

#[test]
fn waits_account_for_all_completions() {
    for connections in [1, 10, 3 * HANDLED_PER_TURN as u32] {
        let Ran { totals, .. } = run_together(connections, "");
        let (activity, counters) = (totals.activity, totals.counters);
        assert_eq!(activity.completions, counters.connects + counters.completed, "{connections}");
        assert_eq!(activity.submissions, 0, "in a closed loop what is sent at once is not late");
        let at_most = HANDLED_PER_TURN as u64;
        assert_eq!(activity.completions_max, u64::from(connections).min(at_most), "{connections}");
        // One wait per round of responses, plus waits that end with a timer or while connections are left to open.
        let rounds = 100 * u64::from(connections).div_ceil(at_most);
        assert!((rounds..rounds + 400).contains(&activity.waits), "{connections}: {activity:?}");
    }
}

#[test]
fn arrivals_during_a_stall_are_one_backlog() {
    let connections = 3 * HANDLED_PER_TURN as u32;
    let Ran { totals, .. } = run_together(connections, "[[generator_stall]]\nfrom_s = 0.505\nfor_s = 0.2");
    let (activity, counters) = (totals.activity, totals.counters);
    assert_eq!(activity.completions, counters.connects + counters.completed);
    assert!(activity.completions_max > HANDLED_PER_TURN as u64, "{activity:?}");
}

/// A network on which a connect keeps the worker busy for a while, in real time.
struct Busy(Box<dyn Network>);

impl Network for Busy {
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        std::thread::sleep(BUSY);
        self.0.connect(now, address)
    }
}

const BUSY: Duration = Duration::from_millis(200);

#[test]
fn warm_up_activity_is_not_counted() {
    // The warm-up is over before anything is handled.
    let warm = Config { max_inflight: 1, warmup_ns: 50 * MS, duration_ns: Some(100 * MS), ..config() };
    let scenario: Scenario = toml::from_str("connect_us = 0.0\nlatency_us = 1000.0").unwrap();
    let network = Box::new(Busy(scenario.network(1)));
    let Ran { totals, .. } = run_on(warm, network, get(), http1(1));
    let activity = totals.activity;
    assert_eq!((activity.completions, totals.counters.completed), (100, 100));
    assert!(activity.wall_ns < BUSY.as_nanos() as u64, "{activity:?}");
}

#[test]
fn activity_is_recorded_per_interval() {
    // Nothing is collected: the first interval is in the mailbox, all others are merged.
    let Ran { totals, end } = run_together(1, "");
    let (all, others) = (totals.activity, end.interval.activity);
    assert!(others.wall_ns > 0 && all.wall_ns > others.wall_ns, "{all:?}, {others:?}");
    assert!(others.cpu_ns() > 0 && all.cpu_ns() > others.cpu_ns(), "{all:?}, {others:?}");
    // A connect, and the responses up to the end of the interval.
    assert_eq!(all.completions - others.completions, 1 + 10);
}
