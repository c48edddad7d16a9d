//! Servers that send 408 before they close an idle connection, as HAProxy, Node and Jetty do, and other ends of
//! connections with a request in flight.

use std::cell::RefCell;
use std::rc::Rc;

use onrush_proto::Error;
use onrush_stats::{Cause, Phase};
use rustix::io::Errno;

use super::pacing::{every, open_loop};
use super::*;
use crate::backend::sim::{Act, Action, Peer};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
/// A 408 that leaves the connection open.
const STAYS: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
/// The 408 of HAProxy, of Node and of an old server.
const TIMEOUTS: [&[u8]; 3] = [
    b"HTTP/1.1 408 Request Time-out\r\nContent-length: 4\r\nConnection: close\r\n\r\nslow",
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
    b"HTTP/1.0 408 Request Time-out\r\nContent-Length: 0\r\n\r\n",
];

/// Servers that, on each connection, send these responses in turn, each a millisecond after its request; empty: they
/// only close.
#[derive(Clone)]
struct Servers {
    responses: Vec<&'static [u8]>,
    /// The responses of the second connection, if they differ.
    second: Option<Vec<&'static [u8]>>,
    /// Bytes sent with no request in flight: content, delay after the last response, and piece size.
    farewell: Option<(&'static [u8], u64, usize)>,
    /// Number of requests per connection.
    asked: Rc<RefCell<Vec<usize>>>,
}

struct Server {
    servers: Servers,
    number: usize,
}

impl Network for Servers {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.asked.borrow_mut().push(0);
        let number = self.asked.borrow().len() - 1;
        (now, Ok(Box::new(Server { servers: self.clone(), number })))
    }
}

impl Peer for Server {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        let asked = &mut self.servers.asked.borrow_mut()[self.number];
        let second = self.servers.second.as_ref().filter(|_| self.number == 1);
        let responses = second.unwrap_or(&self.servers.responses);
        let response = responses[*asked % responses.len()];
        *asked += 1;
        let at = now + MS;
        actions.push(Action { at, act: Act::Send(response.to_vec()) });
        if response != OK && response != STAYS {
            actions.push(Action { at, act: Act::Close });
        }
        if let Some((farewell, after_ns, size)) = self.servers.farewell {
            let pieces = (0..).zip(farewell.chunks(size));
            let send = |(number, piece): (u64, &[u8])| Action {
                at: at + after_ns + number * 1_000,
                act: Act::Send(piece.to_vec()),
            };
            actions.extend(pieces.map(send));
            actions.push(Action { at: at + after_ns + 5 * MS, act: Act::Close });
        }
    }
}

fn servers(responses: &[&'static [u8]]) -> Servers {
    Servers { responses: responses.to_vec(), second: None, farewell: None, asked: Rc::default() }
}

/// Sequential requests, as fast as they are answered.
fn run_closed(requests: u64, is_compat: bool, servers: &Servers) -> Totals {
    let rules = Rules { scale: scale(is_compat), ..config().rules };
    let limited = Config { requests: Some(requests), duration_ns: None, rules, ..config() };
    let totals = run_on(limited, Box::new(servers.clone()), get(), http1(1)).totals;
    assert_conserved(&totals);
    totals
}

fn rows(totals: &Totals) -> Vec<(Phase, Cause, u64)> {
    totals.ledger.rows().iter().map(|row| (row.phase, row.cause, row.count)).collect()
}

#[test]
fn idle_408_is_an_idle_close() {
    for farewell in TIMEOUTS {
        for size in 1..=farewell.len() {
            for is_compat in [false, true] {
                let servers = Servers { farewell: Some((farewell, MS, size)), ..servers(&[OK]) };
                let mut config = Config { duration_ns: Some(995 * MS), ..open_loop(OpenLoop::default()) };
                config.rules.scale = scale(is_compat);
                let job = Job { pacer: every(10 * MS, None), ..job(get(), http1(1)) };
                let totals = run_job(config, Box::new(servers), job).totals;
                assert_conserved(&totals);
                let counters = &totals.counters;
                assert_eq!((counters.completed, counters.failed, counters.returned), (100, 0, 0));
                assert_eq!((counters.idle_closed, counters.connects), (100, 101), "in pieces of {size}");
                let error = (Phase::Head, Cause::Protocol(Error::ClosedBeforeResponse), 100);
                assert_eq!(rows(&totals), if is_compat { vec![error] } else { vec![] }, "in pieces of {size}");
            }
        }
    }
}

#[test]
fn crossing_408_returns_the_request() {
    for timeout in TIMEOUTS {
        let servers = servers(&[OK, OK, timeout]);
        let totals = run_closed(10, false, &servers);
        let counters = &totals.counters;
        assert_eq!((counters.started, counters.completed, counters.returned), (10, 10, 4));
        assert_eq!((counters.idle_closed, counters.connects), (4, 5));
        assert_eq!((rows(&totals), totals.statuses.iter().collect()), (vec![], vec![(200, 10)]));
        assert_eq!(servers.asked.take(), [3, 3, 3, 3, 2]);
        // Requests sent again have taken two milliseconds since they were first sent.
        let counts: Vec<u64> = totals.latency.values().map(|(_, count)| count).collect();
        assert_eq!((totals.latency.min(), totals.latency.max(), counts), (Some(MS), Some(2 * MS), vec![6, 4]));
        assert_eq!(totals.counters.bytes_received, 10 * OK.len() as u64 + 4 * timeout.len() as u64);
    }
}

#[test]
fn wrk_counts_408_as_the_response() {
    let totals = run_closed(10, true, &servers(&[OK, OK, TIMEOUTS[0]]));
    assert_eq!((totals.counters.completed, totals.counters.returned, totals.counters.idle_closed), (10, 0, 0));
    assert_eq!(totals.statuses.iter().collect::<Vec<_>>(), [(200, 7), (408, 3)]);
}

/// The first request of a connection, one sent before, one that stays open, and any other status.
#[test]
fn other_answers_in_flight_are_responses() {
    let unavailable: &[u8] = b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (responses, statuses) in [
        (vec![TIMEOUTS[0]], vec![(408, 6)]),
        (vec![OK, STAYS, OK], vec![(200, 4), (408, 2)]),
        (vec![OK, unavailable], vec![(200, 3), (503, 3)]),
    ] {
        let totals = run_closed(6, false, &servers(&responses));
        assert_eq!((totals.counters.completed, totals.counters.returned), (6, 0));
        assert_eq!(totals.statuses.iter().collect::<Vec<_>>(), statuses);
    }
}

#[test]
fn requests_are_sent_again_once() {
    // The third request is returned by the first connection and leaves on the second, which times out as well.
    let servers = Servers { second: Some(vec![OK, OK, TIMEOUTS[0]]), ..servers(&[OK, TIMEOUTS[0]]) };
    let limited = Config { requests: Some(4), duration_ns: None, max_inflight: 2, ..config() };
    let totals = run_on(limited, Box::new(servers), get(), http1(1)).totals;
    assert_conserved(&totals);
    assert_eq!((totals.counters.completed, totals.counters.returned), (4, 1));
    assert_eq!(totals.statuses.iter().collect::<Vec<_>>(), [(200, 3), (408, 1)]);
}

#[test]
fn closes_fail_requests_in_flight() {
    let totals = run_closed(6, false, &servers(&[OK, b""]));
    assert_eq!((totals.counters.completed, totals.counters.failed, totals.counters.returned), (3, 3, 0));
    assert_eq!(rows(&totals), [(Phase::Head, Cause::Protocol(Error::ClosedBeforeResponse), 3)]);
}

#[test]
fn endless_unsolicited_responses_are_abandoned() {
    let servers = Servers { farewell: Some((b"HTTP/1.1 408 Request", MS, 3)), ..servers(&[OK]) };
    let config = Config { duration_ns: Some(995 * MS), ..open_loop(OpenLoop::default()) };
    let job = Job { pacer: every(10 * MS, None), ..job(get(), http1(1)) };
    let totals = run_job(config, Box::new(servers), job).totals;
    assert_conserved(&totals);
    let row = (Phase::Body, Cause::Protocol(Error::ExtraBytes));
    assert!(rows(&totals).iter().all(|(phase, cause, _)| (*phase, *cause) == row), "{:?}", rows(&totals));
    assert_eq!(totals.counters.idle_closed, 0);
}
