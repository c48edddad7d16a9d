//! The second protocol through the unchanged engine: what HTTP/2 and HTTP/3 will ask of it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_proto::Nanos;
use rustix::io::Errno;

use super::second_protocol::{Second, frame, kind, take_frame};
use super::*;
use crate::backend::sim::{Act, Action, Peer};
use crate::stats::{Cause, Phase};

/// What the server saw, over all connections.
#[derive(Default)]
struct Seen {
    connections: u32,
    requests: u32,
    most_open: usize,
    body_bytes: usize,
    pongs: Vec<Nanos>,
    alive: Vec<Nanos>,
}

/// What the server does with a complete request: given its number (from 1), the frames to send and after how long.
type Behaviour = fn(number: u32, stream: u8, open: &[u8]) -> Vec<(u64, Vec<u8>)>;

struct Server {
    seen: Rc<RefCell<Seen>>,
    behaviour: Behaviour,
    /// Sent when the connection begins: delays and frames.
    greeting: Vec<(u64, Vec<u8>)>,
}

struct ServerPeer {
    seen: Rc<RefCell<Seen>>,
    behaviour: Behaviour,
    greeting: Vec<(u64, Vec<u8>)>,
    input: Vec<u8>,
    open: Vec<u8>,
    uploading: HashSet<u8>,
}

impl Network for Server {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.seen.borrow_mut().connections += 1;
        let peer = ServerPeer {
            seen: Rc::clone(&self.seen),
            behaviour: self.behaviour,
            greeting: self.greeting.clone(),
            input: Vec::new(),
            open: Vec::new(),
            uploading: HashSet::new(),
        };
        (now, Ok(Box::new(peer)))
    }
}

impl Peer for ServerPeer {
    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        let mut send = |(delay, bytes)| actions.push(Action { at: now + delay, act: Act::Send(bytes) });
        self.greeting.drain(..).for_each(&mut send);
        self.input.extend_from_slice(bytes);
        while let Some((kind, stream, payload)) = take_frame(&mut self.input) {
            let mut seen = self.seen.borrow_mut();
            match kind {
                kind::PONG => seen.pongs.push(now),
                kind::ALIVE => seen.alive.push(now),
                kind::BODY if !payload.is_empty() => {
                    self.uploading.insert(stream);
                    seen.body_bytes += payload.len();
                    // Every part that arrives makes room for 100 bytes more, 1 ms later.
                    send((MS, frame(kind::WINDOW, 0, &[1])));
                }
                _ => {
                    self.uploading.remove(&stream);
                    seen.requests += 1;
                    self.open.push(stream);
                    seen.most_open = seen.most_open.max(self.open.len());
                    let answers = (self.behaviour)(seen.requests, stream, &self.open);
                    for (_, bytes) in &answers {
                        let ended = |&open: &u8| {
                            [kind::ANSWER, kind::ERROR, kind::UNSEEN].contains(&bytes[0]) && bytes[1] == open
                        };
                        self.open.retain(|open| !ended(open));
                    }
                    answers.into_iter().for_each(&mut send);
                }
            }
        }
    }
}

fn run(
    settings: Settings,
    body: usize,
    client: fn() -> Second,
    greeting: &[(u64, Vec<u8>)],
    behaviour: Behaviour,
) -> (Ran, Rc<RefCell<Seen>>) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let server = Server { seen: Rc::clone(&seen), behaviour, greeting: greeting.to_vec() };
    let make_protocol: MakeProtocol = Box::new(move |_| Protocol::Other(Box::new(client())));
    let ran = run_on(settings, Box::new(server), request("POST", vec![b'x'; body]), make_protocol);
    assert_conserved(&ran.totals);
    (ran, seen)
}

fn streams(slots: usize, requests: u64) -> Settings {
    Settings { slots, requests: Some(requests), duration_ns: None, ..settings() }
}

#[test]
fn answers_may_come_in_any_order() {
    // Four at a time, answered last first: the one started first waits for 4 ms, the last for 1 ms.
    let (ran, seen) = run(
        streams(4, 40),
        0,
        || Second::new(4, 0),
        &[],
        |_, _, open| match open {
            &[a, b, c, d] => vec![
                (MS, frame(kind::ANSWER, d, b"")),
                (2 * MS, frame(kind::ANSWER, c, b"")),
                (3 * MS, frame(kind::ANSWER, b, b"")),
                (4 * MS, frame(kind::ANSWER, a, b"")),
            ],
            _ => vec![],
        },
    );
    assert_eq!(ran.totals.counters.completed, 40);
    assert_eq!(seen.borrow().connections, 1);
    assert_eq!(seen.borrow().most_open, 4);
    let latencies: Vec<(u64, u64)> = ran.totals.latency.values().map(|(ns, count)| (ns / MS, count)).collect();
    assert!(latencies.len() >= 4, "{latencies:?}");
}

#[test]
fn the_capacity_may_change_while_running() {
    let greeting = [
        (0, frame(kind::CAPACITY, 0, &[1])),
        (100 * MS, frame(kind::CAPACITY, 0, &[6])),
        (200 * MS, frame(kind::CAPACITY, 0, &[0])),
        (800 * MS, frame(kind::CAPACITY, 0, &[2])),
    ];
    let one_second = Settings { slots: 8, ..settings() };
    let (ran, seen) = run(
        one_second,
        0,
        || Second::new(1, 0),
        &greeting,
        |_, stream, _| vec![(MS, frame(kind::ANSWER, stream, b""))],
    );
    // 100 ms with one, 100 ms with six, 600 ms with none, 200 ms with two, 1 ms each.
    let expected = 100 + 600 + 400;
    let completed = ran.totals.counters.completed;
    assert!((expected - 10..=expected + 10).contains(&completed), "{completed}");
    assert_eq!(seen.borrow().connections, 1);
}

#[test]
fn control_frames_are_answered_with_nothing_in_flight() {
    let greeting: Vec<(u64, Vec<u8>)> = std::iter::once((0, frame(kind::CAPACITY, 0, &[0])))
        .chain((1..=5).map(|n| (n * 100 * MS, frame(kind::PING, 0, &[n as u8]))))
        .collect();
    let (ran, seen) =
        run(settings(), 0, || Second::new(1, 0), &greeting, |_, stream, _| vec![(0, frame(kind::ANSWER, stream, b""))]);
    assert_eq!(ran.totals.counters.completed, 1, "then the capacity was taken away");
    let expected: Vec<Nanos> = (1..=5).map(|n| Nanos(n * 100 * MS)).collect();
    assert_eq!(seen.borrow().pongs, expected);
}

#[test]
fn a_protocol_has_its_own_timer_to_the_nanosecond() {
    let client = || Second::new(1, 0).alive_every(70 * MS + 7);
    let (_, seen) = run(settings(), 0, client, &[], |_, stream, _| vec![(400 * MS, frame(kind::ANSWER, stream, b""))]);
    let expected: Vec<Nanos> = (1..=14).map(|n| Nanos(n * (70 * MS + 7))).filter(|at| at.0 < SECOND).collect();
    assert_eq!(seen.borrow().alive, expected);
}

#[test]
fn one_request_fails_while_the_others_live() {
    let behaviour: Behaviour = |number, stream, _| {
        let kind = if number % 5 == 0 { kind::ERROR } else { kind::ANSWER };
        vec![(MS, frame(kind, stream, b""))]
    };
    let (ran, seen) = run(streams(8, 100), 0, || Second::new(8, 0), &[], behaviour);
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.failed), (80, 20));
    let rows = ran.totals.ledger.rows();
    assert_eq!((rows.len(), rows[0].phase, rows[0].count), (1, Phase::Head, 20));
    assert!(matches!(rows[0].cause, Cause::Protocol(_)));
    assert_eq!(seen.borrow().connections, 1, "the connection lives on");
}

#[test]
fn a_draining_connection_finishes_its_requests_and_is_replaced_without_an_error() {
    let behaviour: Behaviour = |number, stream, _| {
        let answer = (5 * MS, frame(kind::ANSWER, stream, b""));
        if number % 10 == 0 { vec![(0, frame(kind::GOAWAY, 0, b"")), answer] } else { vec![answer] }
    };
    let (ran, seen) = run(streams(3, 50), 0, || Second::new(3, 0), &[], behaviour);
    assert_eq!((ran.totals.counters.started, ran.totals.counters.completed), (50, 50));
    assert!(ran.totals.ledger.rows().is_empty());
    assert!((4..=6).contains(&seen.borrow().connections), "{}", seen.borrow().connections);
}

#[test]
fn a_request_that_was_not_looked_at_is_started_again_and_counted_once() {
    let behaviour: Behaviour = |number, stream, _| match number % 10 {
        0 => vec![(0, frame(kind::GOAWAY, 0, b"")), (0, frame(kind::UNSEEN, stream, b""))],
        _ => vec![(MS, frame(kind::ANSWER, stream, b""))],
    };
    let (ran, seen) = run(streams(2, 45), 0, || Second::new(2, 0), &[], behaviour);
    let counters = &ran.totals.counters;
    assert_eq!((counters.completed, counters.failed), (45, 0));
    assert_eq!(counters.started - counters.returned, 45);
    assert_eq!(u64::from(seen.borrow().requests), counters.started);
    assert!(counters.returned >= 4);
}

#[test]
fn one_request_may_have_several_answers() {
    let behaviour: Behaviour = |_, stream, _| {
        let part = |ms| (ms * MS, frame(kind::PART, stream, b"part"));
        vec![part(1), part(2), part(3), (4 * MS, frame(kind::ANSWER, stream, b"last"))]
    };
    let (ran, _) = run(streams(2, 20), 0, || Second::new(2, 0), &[], behaviour);
    assert_eq!((ran.totals.counters.interim, ran.totals.counters.completed), (60, 20));
    assert_eq!(ran.totals.latency.min(), Some(4 * MS), "the latency ends with the last answer");
}

#[test]
fn flow_control_stalls_an_upload_and_lets_it_go_on() {
    let behaviour: Behaviour = |_, stream, _| vec![(0, frame(kind::ANSWER, stream, b""))];
    // 1000 bytes with room for 100 at first, and 100 more 1 ms after each part: 9 waits.
    let (ran, seen) = run(streams(1, 1), 1000, || Second::new(1, 100), &[], behaviour);
    assert_eq!(seen.borrow().body_bytes, 1000);
    assert_eq!(ran.totals.counters.completed, 1);
    assert_eq!(ran.totals.latency.max(), Some(9 * MS));
}
