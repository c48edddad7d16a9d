//! A limit on requests per connection, with servers that close and servers that do not.

use std::cell::RefCell;
use std::rc::Rc;

use rustix::io::Errno;

use super::scripted::Script;
use super::*;
use crate::backend::sim::{Act, Action, Peer};

/// Reaction of a server to a request that asks it to close.
#[derive(Clone, Copy, PartialEq)]
enum Manners {
    /// Closes, this long after its response, in nanoseconds.
    Closes(u64),
    /// Resets the connection.
    Resets,
    /// Ignores the request to close.
    Stays,
    /// Never responds.
    Hangs,
}

/// For each request of every connection: true if it asked to close.
type Seen = Rc<RefCell<Vec<Vec<bool>>>>;

/// Servers that respond after a millisecond.
#[derive(Clone)]
struct Servers {
    manners: Manners,
    /// The number of the response that announces the end of its connection.
    tired_after: Option<usize>,
    seen: Seen,
}

struct Server {
    servers: Servers,
    number: usize,
    head: Vec<u8>,
}

impl Network for Servers {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.seen.borrow_mut().push(Vec::new());
        let number = self.seen.borrow().len() - 1;
        (now, Ok(Box::new(Server { servers: self.clone(), number, head: Vec::new() })))
    }
}

impl Peer for Server {
    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        for &byte in bytes {
            self.head.push(byte);
            if !self.head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let head = String::from_utf8(std::mem::take(&mut self.head)).unwrap();
            let is_last = head.contains("\r\nConnection: close\r\n");
            let requests = &mut self.servers.seen.borrow_mut()[self.number];
            requests.push(is_last);
            let is_tired = self.servers.tired_after == Some(requests.len());
            let close = if is_tired { "Connection: close\r\n" } else { "" };
            let answer = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 2\r\n\r\nhi").into_bytes();
            let at = now + MS;
            match self.servers.manners {
                Manners::Hangs => continue,
                _ => actions.push(Action { at, act: Act::Send(answer) }),
            }
            match self.servers.manners {
                Manners::Closes(after) if is_last || is_tired => {
                    actions.push(Action { at: at + after, act: Act::Close });
                }
                Manners::Resets if is_last => actions.push(Action { at, act: Act::Reset }),
                _ => {}
            }
        }
    }
}

/// Runs against such servers. Returns the measurements and the requests received.
fn run(config: Config, manners: Manners, script: Option<Script>) -> (Ran, Vec<Vec<bool>>) {
    let servers = Servers { manners, tired_after: None, seen: Seen::default() };
    run_against(config, servers, script)
}

fn run_against(config: Config, servers: Servers, script: Option<Script>) -> (Ran, Vec<Vec<bool>>) {
    let seen = Rc::clone(&servers.seen);
    let depth = if script.is_some() { usize::MAX } else { config.depth };
    let job = job(get(), http1(depth));
    let job = match script {
        Some(script) => script.in_charge_of(job),
        None => job,
    };
    let ran = run_job(config, Box::new(servers), job);
    assert_conserved(&ran.totals);
    (ran, seen.take())
}

/// A run limited only to `requests` requests, at most `most` per connection.
fn limited(most: u64, requests: u64) -> Config {
    Config {
        requests_per_connection: Some(per_connection(most)),
        requests: Some(requests),
        duration_ns: None,
        ..config()
    }
}

fn assert_only_the_last_says_so(seen: &[Vec<bool>]) {
    for requests in seen {
        let before = requests.split_last().map_or(&[][..], |(_, before)| before);
        assert!(!before.contains(&true), "{seen:?}");
    }
}

#[test]
fn connections_close_before_their_replacement_opens() {
    for (after, elapsed) in [(0, 21 * MS), (10 * MS, 41 * MS), (999 * MS, 2019 * MS)] {
        let (ran, seen) = run(limited(7, 21), Manners::Closes(after), None);
        assert_only_the_last_says_so(&seen);
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 7]);
        assert!(seen.iter().all(|requests| requests[6]));
        assert_eq!((ran.totals.counters.closed_first, ran.totals.ledger.rows().len()), (0, 0));
        assert_eq!((ran.totals.latency.min(), ran.totals.latency.max()), (Some(MS), Some(MS)), "{after}");
        assert_eq!(ran.end.elapsed_ns, elapsed, "the wait after the last response does not count");
    }
}

#[test]
fn servers_not_closing_are_left_after_a_second() {
    let (ran, seen) = run(limited(5, 20), Manners::Stays, None);
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5]);
    assert_eq!(ran.totals.counters.closed_first, 3, "the run ends with the last response");
    assert!(ran.totals.ledger.rows().is_empty());
    assert_eq!(ran.totals.latency.max(), Some(MS));
    let waited_ns = ran.end.elapsed_ns - 20 * MS;
    assert!((3 * SECOND..=3 * SECOND + 300 * MS).contains(&waited_ns), "{waited_ns}");
}

#[test]
fn resets_on_requested_close_are_no_error() {
    let (ran, seen) = run(limited(3, 12), Manners::Resets, None);
    assert_eq!(seen.len(), 4);
    assert_eq!((ran.totals.counters.closed_first, ran.totals.ledger.rows().len()), (0, 0));
}

#[test]
fn connections_may_be_limited_to_one_request() {
    let (ran, seen) = run(Config { max_inflight: 3, ..limited(1, 30) }, Manners::Closes(0), None);
    assert_eq!(seen.len(), 30);
    assert!(seen.iter().all(|requests| *requests == [true]));
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.connects), (30, 30));
}

#[test]
fn pipelining_keeps_the_request_limit() {
    let (ran, seen) = run(Config { depth: 4, ..limited(10, 95) }, Manners::Closes(0), None);
    assert_only_the_last_says_so(&seen);
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 10, 10, 10, 10, 10, 10, 10, 5]);
    assert!(ran.totals.ledger.rows().is_empty());
}

#[test]
fn earlier_server_closes_are_no_error() {
    for manners in [Manners::Closes(MS), Manners::Stays] {
        let servers = Servers { manners, tired_after: Some(3), seen: Seen::default() };
        let (ran, seen) = run_against(limited(5, 12), servers, None);
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3, 3]);
        assert!(seen.iter().flatten().all(|is_last| !is_last));
        assert!(ran.totals.ledger.rows().is_empty());
        assert_eq!(ran.totals.counters.closed_first, if manners == Manners::Stays { 3 } else { 0 });
    }
}

#[test]
fn script_batches_are_never_divided_by_limits() {
    let (_, seen) = run(limited(10, 27), Manners::Closes(0), Some(Script::writing(&[3])));
    assert_only_the_last_says_so(&seen);
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [9, 9, 9]);
    assert!(seen.iter().all(|requests| requests[8]));

    // The third batch does not fit after the first two, which could not be foreseen. It goes out on its own connection,
    // and the run does not wait for the server to close the other, because it was not asked to.
    let (ran, seen) = run(limited(10, 20), Manners::Closes(0), Some(Script::writing(&[3, 3, 9, 5])));
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [6, 9, 5]);
    assert_eq!(ran.totals.counters.closed_first, 1);
    assert_eq!(ran.end.elapsed_ns, 4 * MS);
}

#[test]
fn batches_above_the_limit_end_the_run() {
    let (ran, seen) = run(limited(10, 100), Manners::Closes(0), Some(Script::writing(&[2, 11])));
    assert_eq!(seen.iter().flatten().count(), 2);
    let Some(ScriptFailure::Raised(failure)) = ran.end.failure else { panic!("there is a reason") };
    assert!(failure.starts_with("request() of the script returned a batch of 11 requests for one"), "{failure}");
    assert!(failure.contains("but --requests-per-connection allows at most 10; raise it"), "{failure}");
}

#[test]
fn connections_left_in_warm_up_do_not_count() {
    let warm = Config { warmup_ns: 1500 * MS, duration_ns: Some(SECOND), requests: None, ..limited(5, 0) };
    let (ran, _) = run(warm, Manners::Stays, None);
    assert_eq!(ran.totals.counters.closed_first, 1, "two in all");
}

#[test]
fn connections_of_abandoned_requests_close_at_once() {
    let hanging = Config { give_up_ns: Some(100 * MS), ..limited(5, 3) };
    let (ran, seen) = run(hanging, Manners::Hangs, None);
    assert_eq!((seen.len(), ran.totals.counters.abandoned), (3, 3));
    assert!(ran.end.elapsed_ns < 400 * MS, "{}", ran.end.elapsed_ns);
}
