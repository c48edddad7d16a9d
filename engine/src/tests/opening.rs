//! Thousands of connections: opened in batches, with a turn for everything else in between.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use rustix::io::Errno;

use super::*;
use crate::backend::sim::{Act, Action, Peer};
use crate::roster::opened_per_turn;

/// The peer's view, in order: a `c` for each connect, an `r` for each request.
type Seen = Rc<RefCell<String>>;

/// A network without delays.
struct Instant {
    seen: Seen,
    behaviour: Behaviour,
    /// Time at which all connects but the first succeed.
    others_at: Nanos,
    /// Stops the run at this connect.
    stops: Option<(usize, Arc<Control>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    KeepAlive,
    Close,
    Never,
}

struct Server(Seen, Behaviour);

impl Network for Instant {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.seen.borrow_mut().push('c');
        if let Some((at, control)) = &self.stops
            && self.seen.borrow().matches('c').count() == *at
        {
            control.stop();
        }
        let at = if self.seen.borrow().len() > 1 { self.others_at.max(now) } else { now };
        (at, Ok(Box::new(Server(Rc::clone(&self.seen), self.behaviour))))
    }
}

impl Peer for Server {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        self.0.borrow_mut().push('r');
        let mut act = |act| actions.push(Action { at: now, act });
        match self.1 {
            Behaviour::KeepAlive => act(Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec())),
            Behaviour::Close => {
                act(Act::Send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec()));
                act(Act::Close);
            }
            Behaviour::Never => {}
        }
    }
}

fn run(config: Config, behaviour: Behaviour, stop_at: Option<usize>) -> (Totals, String) {
    run_where_others_connect(Nanos::default(), config, behaviour, stop_at)
}

fn run_where_others_connect(
    others_at: Nanos,
    config: Config,
    behaviour: Behaviour,
    stop_at: Option<usize>,
) -> (Totals, String) {
    let (seen, control, link) = (Seen::default(), Arc::new(Control::default()), Arc::new(WorkerLink::default()));
    let stops = stop_at.map(|at| (at, Arc::clone(&control)));
    let network = Instant { seen: Rc::clone(&seen), behaviour, others_at, stops };
    let backend = Sim::new(config.max_inflight, Box::new(network));
    let end =
        Engine::new(config, backend, job(get(), http1(1)), control, Arc::clone(&link)).run(std::time::Instant::now()).0;
    let mut totals = Totals::default();
    link.mailbox.collect(|interval| totals += interval);
    totals += &*end.interval;
    (totals, seen.take())
}

/// Largest number of connections opened in one turn of the loop.
const MOST: usize = opened_per_turn(HANDLED_PER_TURN);

/// Largest number of consecutive connects without a request in between.
fn longest_burst(seen: &str) -> usize {
    seen.split('r').map(str::len).max().unwrap_or(0)
}

#[test]
fn responses_are_handled_while_connections_open() {
    let many = Config { max_inflight: 1_000, requests: Some(50_000), duration_ns: None, ..config() };
    for behaviour in [Behaviour::KeepAlive, Behaviour::Close] {
        let (totals, seen) = run(many.clone(), behaviour, None);
        assert_eq!((totals.counters.completed, totals.counters.slots_opened), (50_000, 1_000));
        assert!(longest_burst(&seen) <= MOST, "{}", longest_burst(&seen));
        let served = seen[..seen.rfind('c').unwrap()].matches('r').count();
        assert!(served > 1_000, "{served} requests before the last connect");
    }
}

#[test]
fn runs_may_end_while_connections_open() {
    let many = Config { max_inflight: 10_000, ..config() };
    let (totals, seen) = run(many, Behaviour::Never, Some(100));
    let connects = seen.matches('c').count();
    assert!((100..100 + MOST).contains(&connects), "{connects}");
    assert!(totals.counters.slots_opened < 10_000);
}

#[test]
fn sweeps_reach_every_connection() {
    let connections = 2 * SWEPT_PER_TURN + 1;
    let many =
        Config { max_inflight: connections, duration_ns: Some(150 * MS), give_up_ns: Some(100 * MS), ..config() };
    let (totals, _) = run(many, Behaviour::Never, None);
    assert_eq!(totals.counters.abandoned, u64::from(connections));
}

#[test]
fn only_unanswered_connects_are_late() {
    let connections = 1 + 3 * HANDLED_PER_TURN as u32;
    let many = Config { max_inflight: connections, duration_ns: Some(2 * SECOND), ..config() };
    let (totals, _) = run_where_others_connect(Nanos(2 * SECOND), many.clone(), Behaviour::Never, None);
    assert!(totals.counters.slots_opened < u64::from(connections), "there was not time for all");
    assert!(totals.ledger.rows().is_empty(), "{:?}", totals.ledger.rows());
    let (totals, _) = run_where_others_connect(Nanos(2 * SECOND + 1), many, Behaviour::Never, None);
    let unanswered: u64 = totals.ledger.rows().iter().map(|row| row.count).sum();
    assert_eq!(unanswered, u64::from(connections) - 1);
}
