//! Tests of when a target and a machine are watched.

use std::net::SocketAddr;

use super::*;
use crate::cli::{self, Commands, Invocation};

fn start_monitor(words: &str, address: SocketAddr) -> Option<Monitor> {
    let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into), &Commands::NONE) else {
        panic!("{words}")
    };
    Monitor::start_watching(&plan, &Addresses(vec![address]))
}

#[test]
fn unmeasured_runs_are_not_watched() {
    let here = "127.0.0.1:80".parse().unwrap();
    assert!(start_monitor("onrush --io sim:unused http://127.0.0.1/", here).is_none());
    assert!(start_monitor("onrush --once http://127.0.0.1/", here).is_none());
    let monitor = start_monitor("onrush http://127.0.0.1/", here).unwrap();
    assert_eq!(monitor.stop_watching(), MonitorReport::default(), "measuring did not begin");
}

#[test]
fn machine_is_observed_without_target() {
    // An address for documentation (RFC 5737).
    let mut monitor =
        start_monitor("onrush --warmup 1s http://203.0.113.1/", "203.0.113.1:80".parse().unwrap()).unwrap();
    monitor.start_counting(Duration::from_secs(1), Duration::from_millis(999));
    assert_eq!(monitor.counts_from, None, "the warm-up is not over");
    monitor.start_counting(Duration::from_secs(1), Duration::from_secs(1));
    // The warm-up ended later than planned.
    monitor.start_counting(Duration::from_secs(2), Duration::from_secs(2));
    let seen = monitor.stop_watching();
    assert_eq!((seen.target, seen.unseen), (None, vec![Unobserved::Remote]));
    assert!(seen.machine.stolen.is_some() && seen.machine.clock_step_s.is_none() && seen.throttled_s.is_some());
}
