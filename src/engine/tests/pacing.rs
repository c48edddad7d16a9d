//! Requests that are due at moments of their own: what the loop does with a pacer that is not the closed loop.

use std::cell::RefCell;
use std::rc::Rc;

use rustix::io::Errno;

use super::*;
use crate::backend::sim::{Act, Action, Peer};

/// A request every so many nanoseconds, from zero on; a batch takes the time of as many.
struct Every {
    step_ns: u64,
    taken: u64,
}

impl Pace for Every {
    fn next_at(&self) -> Nanos {
        Nanos(self.taken * self.step_ns)
    }

    fn take(&mut self, requests: u64) {
        self.taken += requests;
    }
}

/// Servers that answer after so long, and note when they were asked.
struct Noting {
    latency_ns: u64,
    asked: Rc<RefCell<Vec<u64>>>,
}

impl Network for Noting {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        (now, Ok(Box::new(Self { latency_ns: self.latency_ns, asked: Rc::clone(&self.asked) })))
    }
}

impl Peer for Noting {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        self.asked.borrow_mut().push(now.0);
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
        actions.push(Action { at: now + self.latency_ns, act: Act::Send(answer) });
    }
}

/// Asks every `step_ns`; returns what was measured and when the servers were asked.
fn run(settings: Settings, step_ns: u64, latency_ns: u64) -> (Ran, Vec<u64>) {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns, asked: Rc::clone(&asked) };
    let pacer = Pacer::Other(Box::new(Every { step_ns, taken: 0 }));
    let ran = run_job(settings, Box::new(network), Job { pacer, ..job(get(), http1(1)) });
    assert_conserved(&ran.totals);
    (ran, asked.take())
}

#[test]
fn a_request_starts_when_it_is_due_on_any_connection_that_is_ready() {
    let ten = Settings { connections: 10, ..settings() };
    let (ran, asked) = run(ten, 7 * MS + 3, 30 * MS);
    let expected: Vec<u64> = (0..).map(|k| k * (7 * MS + 3)).take_while(|&at| at < SECOND).collect();
    assert_eq!(asked, expected);
    assert_eq!((ran.totals.latency.min(), ran.totals.latency.max()), (Some(30 * MS), Some(30 * MS)));
    let evidence = ran.totals.evidence;
    assert_eq!((evidence.submissions, evidence.lateness_max_ns), (expected.len() as u64, 0));
}

#[test]
fn what_no_connection_is_ready_for_starts_as_soon_as_one_is_and_is_late() {
    // One connection answers a hundred times a second, and two hundred requests are due.
    let (ran, asked) = run(Settings { duration_ns: Some(995 * MS), ..settings() }, 5 * MS, 10 * MS);
    assert_eq!(asked, (0..100).map(|k| k * 10 * MS).collect::<Vec<_>>());
    let evidence = ran.totals.evidence;
    assert_eq!(evidence.lateness_max_ns, 99 * 5 * MS, "the hundredth was due at 495 ms and sent at 990 ms");
    assert_eq!(evidence.lateness_sum_ns, (0..100).map(|k| k * 5 * MS).sum::<u64>());
}

#[test]
fn a_connection_that_is_lost_while_it_is_ready_is_replaced() {
    let scenario: Scenario = toml::from_str("connect_us = 0.0\nlatency_us = 1000.0\nclose = true").unwrap();
    let pacer = Pacer::Other(Box::new(Every { step_ns: 10 * MS, taken: 0 }));
    let three = Settings { connections: 3, duration_ns: Some(995 * MS), ..settings() };
    let ran = run_job(three, scenario.network(1), Job { pacer, ..job(get(), http1(1)) });
    let counters = ran.totals.counters;
    assert_eq!((counters.started, counters.completed, counters.failed), (100, 100, 0));
    assert!(counters.connects >= 99, "{counters:?}");
}

#[test]
fn pauses_of_a_script_come_before_what_is_due() {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns: MS, asked: Rc::clone(&asked) };
    let pacer = Pacer::Other(Box::new(Every { step_ns: 10 * MS, taken: 0 }));
    let callbacks = Callbacks { think_ns: Some(Box::new(|| Ok(25 * MS))), ..Callbacks::default() };
    let four = Settings { requests: Some(4), duration_ns: None, ..settings() };
    run_job(four, Box::new(network), Job { pacer, callbacks, ..job(get(), http1(1)) });
    assert_eq!(asked.take(), [25, 51, 77, 103].map(|ms| ms * MS));
}
