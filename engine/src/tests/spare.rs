//! Connections that outlive a session: the next session uses them instead of connecting, and loses nothing if they are
//! closed.

use std::cell::Cell;
use std::rc::Rc;

use rustix::io::Errno;

use super::*;
use crate::backend::sim::{Act, Action, Peer};

/// Events on connections.
#[derive(Clone, Default)]
struct Seen {
    connects: Rc<Cell<u32>>,
    adopted: Rc<Cell<u32>>,
}

/// A network of servers that respond after 10 ms and close when asked to.
struct Servers {
    seen: Seen,
    /// True if connections of an earlier session are still open.
    are_there: bool,
}

struct Server;

impl Network for Servers {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.seen.connects.set(self.seen.connects.get() + 1);
        (now + MS, Ok(Box::new(Server)))
    }

    fn adopt(&mut self) -> Option<Box<dyn Peer>> {
        self.seen.adopted.set(self.seen.adopted.get() + 1);
        self.are_there.then(|| Box::new(Server) as Box<dyn Peer>)
    }
}

impl Peer for Server {
    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        let at = now + 10 * MS;
        actions.push(Action { at, act: Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()) });
        if bytes.windows(5).any(|word| word == b"close") {
            actions.push(Action { at, act: Act::Close });
        }
    }
}

/// Four connections with a total of `requests` requests.
fn requests(requests: u64) -> Config {
    Config { max_inflight: 4, requests: Some(requests), duration_ns: None, ..config() }
}

/// Runs one session. Returns the number of connects, and the number of connections it tried to adopt.
fn session(config: Config, are_there: bool, spares: Option<Vec<Spare>>) -> (Ran, [u32; 2]) {
    let (seen, link) = (Seen::default(), Arc::new(WorkerLink::default()));
    let backend = Sim::new(config.max_inflight, Box::new(Servers { seen: seen.clone(), are_there }));
    let engine = Engine::new(config, backend, job(get(), http1(1)), Arc::default(), Arc::clone(&link));
    let end = engine.with_spares(spares).run(Instant::now()).0;
    let mut totals = Totals::default();
    link.mailbox.collect(|interval| totals += interval);
    totals += &*end.interval;
    assert_conserved(&totals);
    assert!(totals.ledger.rows().is_empty(), "{:?}", totals.ledger.rows());
    (Ran { totals, end }, [seen.connects.get(), seen.adopted.get()])
}

/// The connections left by a session of twenty requests on four connections.
fn left(config: Config) -> Vec<Spare> {
    let (ran, connects) = session(config, true, Some(Vec::new()));
    assert_eq!((ran.totals.counters.connects, connects), (4, [4, 0]));
    ran.end.spares
}

#[test]
fn sessions_reuse_earlier_connections() {
    for warmup_ns in [0, 55 * MS] {
        let spares = left(requests(20));
        assert_eq!(spares.len(), 4);
        let (Ran { totals, end }, connects) = session(Config { warmup_ns, ..requests(20) }, true, Some(spares));
        let counters = &totals.counters;
        assert_eq!((counters.connects, connects), (0, [0, 4]));
        assert_eq!((counters.slots_opened, counters.completed, counters.open_at_end), (4, 20 + counters.carried, 0));
        let occupancy = counters.occupancy;
        let all_ns = occupancy.open_ns + occupancy.connecting_ns + occupancy.absent_ns + occupancy.done_ns;
        assert_eq!((all_ns, occupancy.connecting_ns), (4 * end.elapsed_ns, 0), "{occupancy:?}");
        assert_eq!(end.spares.len(), 4);
    }
}

#[test]
fn closed_spares_are_reopened_without_error() {
    let (Ran { totals, end }, connects) = session(requests(20), false, Some(left(requests(20))));
    assert_eq!((totals.counters.connects, totals.counters.slots_opened, connects), (4, 4, [4, 4]));
    assert_eq!((totals.counters.completed, totals.counters.idle_closed, end.spares.len()), (20, 0, 4));
}

#[test]
fn only_reusable_idle_connections_are_left() {
    let in_flight = Config { requests: None, duration_ns: Some(SECOND), ..requests(0) };
    assert!(session(in_flight, true, Some(Vec::new())).0.end.spares.is_empty(), "all have a request in flight");
    let once = Config { requests_per_connection: Some(per_connection(5)), ..requests(20) };
    assert!(left(once).is_empty(), "each has reached its limit");
    assert!(session(requests(20), true, None).0.end.spares.is_empty(), "they are not wanted");
}

#[test]
fn request_limits_span_sessions() {
    let limited = |requests| Config {
        max_inflight: 1,
        requests_per_connection: Some(per_connection(10)),
        ..self::requests(requests)
    };
    let (first, _) = session(limited(6), true, Some(Vec::new()));
    let (Ran { totals, .. }, connects) = session(limited(8), true, Some(first.end.spares));
    assert_eq!((totals.counters.completed, connects), (8, [1, 1]), "four on the old one, four on the next");
}

#[test]
fn unsuitable_spares_wait_for_later_sessions() {
    let elsewhere = Config { addresses: vec!["127.0.0.2:80".parse().unwrap()], ..requests(20) };
    let (ran, connects) = session(elsewhere, true, Some(left(requests(20))));
    assert_eq!((connects, ran.end.spares.len()), ([4, 0], 8));
    let fewer = Config { max_inflight: 3, ..requests(20) };
    let (ran, connects) = session(fewer, true, Some(left(requests(20))));
    assert_eq!((connects, ran.end.spares.len()), ([0, 3], 4));
}
