//! The second protocol through the unchanged engine: a proof for HTTP/2 and HTTP/3.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_proto::Nanos;
use onrush_proto::http1::{Wire, outline};
use onrush_stats::{Cause, Phase, TlsFailure};
use rustix::io::Errno;

use super::pacing::{every, open_loop};
use super::second_protocol::{Second, frame, kind, take_frame};
use super::*;
use crate::backend::sim::{Act, Action, Peer};

/// Received by the server, over all connections.
#[derive(Default)]
struct Seen {
    connections: u32,
    requests: u32,
    most_open: usize,
    body_bytes: usize,
    /// The first byte of each body.
    bodies: Vec<u8>,
    pongs: Vec<Nanos>,
    alive: Vec<Nanos>,
}

/// The server's response to a complete request, given its number (from 1): frames to send and their delays.
type Behaviour = fn(number: u32, stream: u8, open: &[u8]) -> Vec<(u64, Vec<u8>)>;

struct Server {
    seen: Rc<RefCell<Seen>>,
    behaviour: Behaviour,
    /// Frames sent at the start of the connection, with delays.
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
                    seen.body_bytes += payload.len();
                    if self.uploading.insert(stream) {
                        seen.bodies.push(payload[0]);
                    }
                    // Every part that arrives makes room for another 100 bytes, 1 ms later.
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
                            [kind::ANSWER, kind::END, kind::ERROR, kind::UNSEEN].contains(&bytes[0]) && bytes[1] == open
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
    config: Config,
    body: usize,
    client: fn() -> Second,
    greeting: &[(u64, Vec<u8>)],
    behaviour: Behaviour,
) -> (Ran, Rc<RefCell<Seen>>) {
    let make_protocol: MakeProtocol = Box::new(move |_| Ok(Protocol::Other(Box::new(client()))));
    run_against(config, job(request("POST", vec![b'x'; body]), make_protocol), greeting, behaviour)
}

/// Runs a job against such a server.
fn run_against(
    config: Config,
    job: Job,
    greeting: &[(u64, Vec<u8>)],
    behaviour: Behaviour,
) -> (Ran, Rc<RefCell<Seen>>) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let server = Server { seen: Rc::clone(&seen), behaviour, greeting: greeting.to_vec() };
    let ran = run_job(config, Box::new(server), job);
    assert_conserved(&ran.totals);
    (ran, seen)
}

/// A job in the second protocol, with `capacity` requests at a time per connection.
fn second(capacity: usize) -> Job {
    let make_protocol: MakeProtocol = Box::new(move |_| Ok(Protocol::Other(Box::new(Second::new(capacity, 0)))));
    job(request("GET", Vec::new()), make_protocol)
}

fn streams(slots: usize, requests: u64) -> Config {
    Config { depth: slots, requests: Some(requests), duration_ns: None, ..config() }
}

#[test]
fn responses_may_come_in_any_order() {
    // Four at a time, responses in reverse order: the first request waits for 4 ms, the last for 1 ms.
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
fn capacity_may_change_during_the_run() {
    let greeting = [
        (0, frame(kind::CAPACITY, 0, &[1])),
        (100 * MS, frame(kind::CAPACITY, 0, &[6])),
        (200 * MS, frame(kind::CAPACITY, 0, &[0])),
        (800 * MS, frame(kind::CAPACITY, 0, &[2])),
    ];
    let one_second = Config { depth: 8, ..config() };
    let (ran, seen) = run(
        one_second,
        0,
        || Second::new(1, 0),
        &greeting,
        |_, stream, _| vec![(MS, frame(kind::ANSWER, stream, b""))],
    );
    // 100 ms with one request in flight, 100 ms with six, 600 ms with none, 200 ms with two; 1 ms per response.
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
        run(config(), 0, || Second::new(1, 0), &greeting, |_, stream, _| vec![(0, frame(kind::ANSWER, stream, b""))]);
    assert_eq!(ran.totals.counters.completed, 1, "then the capacity was taken away");
    let expected: Vec<Nanos> = (1..=5).map(|n| Nanos(n * 100 * MS)).collect();
    assert_eq!(seen.borrow().pongs, expected);
}

#[test]
fn protocol_timers_are_exact_to_the_nanosecond() {
    let client = || Second::new(1, 0).alive_every(70 * MS + 7);
    let (_, seen) = run(config(), 0, client, &[], |_, stream, _| vec![(400 * MS, frame(kind::ANSWER, stream, b""))]);
    let expected: Vec<Nanos> = (1..=14).map(|n| Nanos(n * (70 * MS + 7))).filter(|at| at.0 < SECOND).collect();
    assert_eq!(seen.borrow().alive, expected);
}

#[test]
fn failed_streams_leave_others_open() {
    let behaviour: Behaviour = |number, stream, _| {
        let kind = if number % 5 == 0 { kind::ERROR } else { kind::ANSWER };
        vec![(MS, frame(kind, stream, b""))]
    };
    let (ran, seen) = run(streams(8, 100), 0, || Second::new(8, 0), &[], behaviour);
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.failed), (80, 20));
    let rows = ran.totals.ledger.rows();
    assert_eq!((rows.len(), rows[0].phase, rows[0].count), (1, Phase::Head, 20));
    assert!(matches!(rows[0].cause, Cause::Protocol(_)));
    assert_eq!(seen.borrow().connections, 1, "the connection stays open");
}

#[test]
fn draining_connections_are_replaced_without_error() {
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
fn unprocessed_requests_restart_and_count_once() {
    let behaviour: Behaviour = |number, stream, _| match number % 10 {
        0 => vec![(0, frame(kind::GOAWAY, 0, b"")), (0, frame(kind::UNSEEN, stream, b""))],
        _ => vec![(MS, frame(kind::ANSWER, stream, b""))],
    };
    let (ran, seen) = run(streams(2, 45), 0, || Second::new(2, 0), &[], behaviour);
    let counters = &ran.totals.counters;
    assert_eq!((counters.completed, counters.failed), (45, 0));
    assert_eq!(counters.started, 45);
    assert_eq!(u64::from(seen.borrow().requests), counters.started + counters.returned);
    assert!(counters.returned >= 4);
}

#[test]
fn requests_may_have_several_messages() {
    let behaviour: Behaviour = |_, stream, _| {
        let part = |ms| (ms * MS, frame(kind::PART, stream, b"part"));
        vec![part(1), part(2), part(3), (4 * MS, frame(kind::ANSWER, stream, b"last"))]
    };
    let (ran, _) = run(streams(2, 20), 0, || Second::new(2, 0), &[], behaviour);
    assert_eq!((ran.totals.counters.interim, ran.totals.counters.completed), (60, 20));
    assert_eq!(ran.totals.latency.min(), Some(4 * MS), "the latency ends with the last part");
}

#[test]
fn flow_control_pauses_and_resumes_uploads() {
    let behaviour: Behaviour = |_, stream, _| vec![(0, frame(kind::ANSWER, stream, b""))];
    // 1000 bytes with room for 100 at first, and 100 more 1 ms after each part: 9 waits.
    let (ran, seen) = run(streams(1, 1), 1000, || Second::new(1, 100), &[], behaviour);
    assert_eq!(seen.borrow().body_bytes, 1000);
    assert_eq!(ran.totals.counters.completed, 1);
    assert_eq!(ran.totals.latency.max(), Some(9 * MS));
}

/// Two responses with alternating pieces, if there are two requests: the first lasts from 1 ms to 6 ms, the second from
/// 2 ms to 4 ms.
fn interleaved(_: u32, _: u8, open: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let &[a, b] = open else { return vec![] };
    vec![
        (MS, frame(kind::HEAD, a, b"first")),
        (2 * MS, frame(kind::HEAD, b, b"second")),
        (3 * MS, frame(kind::DATA, a, b"aaaa")),
        (3 * MS, frame(kind::DATA, b, b"bb")),
        (4 * MS, frame(kind::DATA, a, b"aa")),
        (4 * MS, frame(kind::END, b, b"")),
        (5 * MS, frame(kind::DATA, a, b"a")),
        (6 * MS, frame(kind::END, a, b"")),
    ]
}

#[test]
fn interleaved_responses_have_separate_first_bytes() {
    let two = streams(2, 20);
    let two = Config { rules: Rules { phases: true, ..two.rules }, ..two };
    let (ran, _) = run_against(two, second(2), &[], interleaved);
    let phases = ran.totals.phases.expect("they were wanted");
    // A third request, if there is another to pair it with, starts at the second's end and waits for the first's.
    assert_eq!((phases.ttfb.count(), phases.ttfb.min()), (20, Some(MS)));
    let table: Vec<(u64, u64)> = ran.totals.latency.values().map(|(ns, count)| (ns / MS, count)).collect();
    assert!(table.iter().any(|&(ms, _)| ms == 4) && table.iter().any(|&(ms, _)| ms >= 6), "{table:?}");
    let (ttfb, ttlb) = (phases.ttfb.mean().unwrap(), phases.ttlb.mean().unwrap());
    assert!((ttfb + ttlb - ran.totals.latency.mean().unwrap()).abs() < 1.0, "{ttfb} + {ttlb}");
    assert!(phases.ttlb.min() >= Some(2 * MS), "the second response takes 2 ms from its first byte, the first 5 ms");
}

#[test]
fn first_bytes_count_before_complete_frames() {
    let behaviour: Behaviour = |_, stream, _| {
        let head = frame(kind::HEAD, stream, b"a head");
        let (first, rest) = head.split_at(3);
        vec![(MS, first.to_vec()), (5 * MS, rest.to_vec()), (9 * MS, frame(kind::END, stream, b""))]
    };
    let one = streams(1, 10);
    let (ran, _) = run_against(Config { rules: Rules { phases: true, ..one.rules }, ..one }, second(1), &[], behaviour);
    let phases = ran.totals.phases.expect("they were wanted");
    // The stream's name came with the first bytes, so the stream is known only after they were read.
    assert_eq!((phases.ttfb.min(), phases.ttlb.max()), (Some(5 * MS), Some(4 * MS)));
}

/// Heads and bodies of the responses passed to a script.
type Received = Rc<RefCell<Vec<(String, String)>>>;

/// A job with a script that reads heads and bodies.
fn receiving(job: Job) -> (Job, Received) {
    let received = Received::default();
    let sink = Rc::clone(&received);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let call: HandleResponse = Box::new(move |answer| {
        sink.borrow_mut().push((text(answer.head), text(answer.body)));
        Ok(())
    });
    let response = Some(OnResponse { headers: true, body: true, call });
    (Job { callbacks: Callbacks { response, ..Callbacks::default() }, ..job }, received)
}

#[test]
fn scripts_get_interleaved_bodies_whole() {
    let (job, received) = receiving(second(2));
    run_against(streams(2, 2), job, &[], interleaved);
    let said = |head: &str, body: &str| (head.to_owned(), body.to_owned());
    assert_eq!(*received.borrow(), [said("second", "bb"), said("first", "aaaaaaa")]);
}

#[test]
fn stream_resets_inside_bodies_spare_others() {
    let behaviour: Behaviour = |_, _, open| match open {
        &[a, b] => vec![
            (MS, frame(kind::HEAD, a, b"first")),
            (MS, frame(kind::HEAD, b, b"second")),
            (2 * MS, frame(kind::DATA, a, b"aaaa")),
            (2 * MS, frame(kind::DATA, b, b"bb")),
            (3 * MS, frame(kind::ERROR, a, b"")),
            (4 * MS, frame(kind::DATA, b, b"bb")),
            (5 * MS, frame(kind::END, b, b"")),
        ],
        _ => vec![],
    };
    let (job, received) = receiving(second(2));
    let (ran, seen) = run_against(streams(2, 2), job, &[], behaviour);
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.failed), (1, 1));
    assert_eq!(*received.borrow(), [("second".to_owned(), "bbbb".to_owned())]);
    assert_eq!(seen.borrow().connections, 1);
}

#[test]
fn unwanted_bodies_are_skipped_between_wanted_ones() {
    let behaviour: Behaviour = |_, _, open| match open {
        &[a, b] => {
            let large = frame(kind::DATA, a, &[b'a'; 50_000]);
            let (begin, rest) = large.split_at(1_000);
            vec![
                (MS, [frame(kind::HEAD, a, b""), frame(kind::HEAD, b, b"")].concat()),
                (2 * MS, [&frame(kind::DATA, b, b"bb"), begin].concat()),
                // The rest of the large body, and the next frames, arrive together.
                (3 * MS, [rest, &frame(kind::DATA, b, b"bb"), &frame(kind::END, b, b"")].concat()),
                (4 * MS, frame(kind::END, a, b"")),
            ]
        }
        _ => vec![],
    };
    let (ran, _) = run_against(streams(2, 2), second(2), &[], behaviour);
    assert_eq!(ran.totals.counters.completed, 2);
    let frames = 4 + 4 + (4 + 50_000) + (4 + 2) * 2 + 4 + 4;
    assert_eq!(ran.totals.counters.bytes_received, frames);
    let latencies: Vec<u64> = ran.totals.latency.values().map(|(ns, _)| ns / MS).collect();
    assert_eq!(latencies, [3, 4]);
}

#[test]
fn requests_in_flight_outlast_the_warm_up() {
    let behaviour: Behaviour = |_, stream, _| vec![(30 * MS, frame(kind::ANSWER, stream, b""))];
    let four = Config { depth: 4, warmup_ns: 100 * MS, duration_ns: Some(300 * MS), ..config() };
    let (ran, _) = run_against(four, second(4), &[], behaviour);
    let counters = &ran.totals.counters;
    // Rounds of 30 ms: the fourth begins at 90 ms, and its responses arrive in the window.
    assert_eq!((counters.carried, counters.completed, counters.open_at_end), (4, 40, 4));
    assert_eq!(counters.occupancy.in_flight_ns, 4 * 300 * MS);
    assert_eq!((ran.totals.latency.count(), ran.totals.latency.min()), (40, Some(30 * MS)));
}

/// Batches of this many requests, numbered in their bodies.
struct Numbered {
    length: usize,
    next: usize,
    /// Number of batches.
    last: usize,
}

impl Source for Numbered {
    fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        let numbers = self.next..(self.next + self.length).min(self.last);
        self.next = numbers.end;
        batch.extend(numbers.map(|number| request("POST", vec![number as u8])));
        Ok(!batch.is_empty())
    }
}

#[test]
fn excess_batch_requests_start_later_in_order() {
    let behaviour: Behaviour = |_, stream, _| vec![(MS, frame(kind::ANSWER, stream, b""))];
    let window = || Protocol::Other(Box::new(Second::new(4, 1_000)));
    let source = Box::new(Numbered { length: 10, next: 0, last: 100 });
    let job = Job { source, make_protocol: Box::new(move |_| Ok(window())), ..second(4) };
    let (ran, seen) = run_against(streams(4, 30), job, &[], behaviour);
    assert_eq!((ran.totals.counters.started, ran.totals.counters.completed), (30, 30));
    // A batch is complete when the last of its parts is.
    assert_eq!(ran.totals.counters.batches, 3);
    assert_eq!(seen.borrow().bodies, (0..30).collect::<Vec<u8>>());
}

#[test]
fn excess_batch_requests_may_change_connection() {
    let behaviour: Behaviour = |_, stream, _| vec![(MS, frame(kind::ANSWER, stream, b""))];
    let window = || Protocol::Other(Box::new(Second::new(4, 1_000)));
    let source = Box::new(Numbered { length: 10, next: 0, last: 100 });
    let job = Job { source, make_protocol: Box::new(move |_| Ok(window())), ..second(4) };
    let three = Config { max_inflight: 3, ..streams(4, 60) };
    let (ran, seen) = run_against(three, job, &[], behaviour);
    assert_eq!((ran.totals.counters.started, ran.totals.counters.completed), (60, 60));
    assert_eq!(seen.borrow().bodies, (0..60).collect::<Vec<u8>>(), "in the order of the source, on any connection");
}

#[test]
fn exhausted_sources_end_the_worker() {
    let behaviour: Behaviour = |_, stream, _| vec![(MS, frame(kind::ANSWER, stream, b""))];
    let source = Box::new(Numbered { length: 10, next: 0, last: 25 });
    let window = || Protocol::Other(Box::new(Second::new(4, 1_000)));
    let job = Job { source, make_protocol: Box::new(move |_| Ok(window())), ..second(4) };
    let forever = Config { max_inflight: 2, depth: 4, duration_ns: Some(100 * SECOND), ..config() };
    let (ran, seen) = run_against(forever, job, &[], behaviour);
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.open_at_end), (25, 0));
    assert_eq!(seen.borrow().bodies.len(), 25);
    assert!(ran.end.elapsed_ns < 10 * MS, "{}", ran.end.elapsed_ns);
}

#[test]
fn http1_bytes_are_refused_by_other_protocols() {
    let bytes: Rc<[u8]> = (*b"GET / HTTP/1.1\r\n\r\n").into();
    let mut outlines = Vec::new();
    outline(&bytes, &mut outlines).expect("a request");
    let written = Request::from(Wire::from_outline(&bytes, outlines.remove(0)));
    let job = Job { source: Box::new(Repeated(vec![written])), ..second(1) };
    let (ran, _) = run_against(config(), job, &[], |_, _, _| unreachable!("nothing is sent"));
    let reason = "the request was written as HTTP/1.1, which this connection does not speak";
    assert_eq!(ran.end.failure, Some(ScriptFailure::Raised(reason.to_owned())));
    assert_eq!(ran.totals.counters.started, 0);
}

#[test]
fn open_ended_streams_are_never_late() {
    let behaviour: Behaviour = |number, stream, _| {
        let messages = (1..=8).map(|n| (n * 100 * MS, frame(kind::MESSAGE, stream, b"tick")));
        match number {
            1 => messages.chain([(900 * MS, frame(kind::END, stream, b""))]).collect(),
            _ => vec![],
        }
    };
    let rules = Rules { timeout_ns: Some(150 * MS), ..config().rules };
    let limited = Config { rules, give_up_ns: Some(300 * MS), ..streams(2, 2) };
    let (ran, _) = run_against(limited, second(2), &[], behaviour);
    let counters = &ran.totals.counters;
    // The second request gets no response and is abandoned.
    assert_eq!((counters.completed, counters.abandoned, counters.late), (1, 1, 1));
    assert_eq!(ran.totals.latency.max(), Some(900 * MS));
}

#[test]
fn connections_may_use_different_protocols() {
    /// A server that responds in the client's protocol.
    struct Bilingual(Rc<RefCell<Vec<&'static str>>>);
    struct Heard(Rc<RefCell<Vec<&'static str>>>);
    impl Network for Bilingual {
        fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
            (now, Ok(Box::new(Heard(Rc::clone(&self.0)))))
        }
    }
    impl Peer for Heard {
        fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
            let (name, answer) = match bytes {
                [b'G', ..] => ("http/1.1", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
                _ => ("second", frame(kind::ANSWER, bytes[1], b"")),
            };
            self.0.borrow_mut().push(name);
            actions.push(Action { at: now + MS, act: Act::Send(answer) });
        }
    }
    let spoken = Rc::new(RefCell::new(Vec::new()));
    let mut count = 0;
    let make_protocol: MakeProtocol = Box::new(move |alpn| {
        assert_eq!(alpn, None, "there is no TLS to negotiate one");
        count += 1;
        if count % 2 == 0 { Ok(Protocol::Other(Box::new(Second::new(1, 0)))) } else { http1(1)(None) }
    });
    let four = Config { max_inflight: 4, ..streams(1, 40) };
    let ran = run_job(four, Box::new(Bilingual(Rc::clone(&spoken))), job(get(), make_protocol));
    assert_eq!(ran.totals.counters.completed, 40);
    assert_eq!(
        ["http/1.1", "second"].map(|name| spoken.borrow().iter().filter(|protocol| **protocol == name).count()),
        [20, 20]
    );
}

#[test]
fn missing_protocol_choice_is_a_tls_failure() {
    let make_protocol: MakeProtocol = Box::new(|_| Err(TlsFailure::NoProtocol));
    let job = Job { make_protocol, ..second(1) };
    let (ran, seen) = run_against(Config { patience_ns: SECOND, ..streams(1, 1) }, job, &[], |_, _, _| Vec::new());
    assert!(ran.end.stayed_away && seen.borrow().requests == 0);
    let row = &ran.totals.ledger.rows()[0];
    assert_eq!((row.phase, row.cause), (Phase::Tls, Cause::Tls(TlsFailure::NoProtocol)));
    assert_eq!((ran.totals.counters.connects, ran.totals.counters.started), (0, 0));
}

#[test]
fn returned_requests_keep_their_content() {
    // The third request is never processed.
    let behaviour: Behaviour = |number, stream, _| {
        let kind = if (3..=6).contains(&number) { kind::UNSEEN } else { kind::ANSWER };
        vec![(MS, frame(kind, stream, b""))]
    };
    let source = Box::new(Numbered { length: 1, next: 0, last: 8 });
    let window = || Protocol::Other(Box::new(Second::new(1, 1_000)));
    let job = Job { source, make_protocol: Box::new(move |_| Ok(window())), ..second(1) };
    let (ran, seen) = run_against(streams(1, 8), job, &[], behaviour);
    let counters = &ran.totals.counters;
    // A request returned three times fails.
    assert_eq!((counters.started, counters.completed, counters.returned, counters.failed), (8, 7, 3, 1));
    assert_eq!(seen.borrow().bodies, [0, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn unanswered_connections_return_requests_only_once() {
    let behaviour: Behaviour = |_, stream, _| vec![(MS, frame(kind::UNSEEN, stream, b""))];
    let (ran, seen) = run_against(streams(1, 5), second(1), &[], behaviour);
    assert_eq!((ran.totals.counters.returned, ran.totals.counters.failed), (5, 5));
    assert_eq!(seen.borrow().requests, 10);
}

#[test]
fn connection_growth_accounts_for_stream_capacity() {
    let behaviour: Behaviour = |_, stream, _| vec![(20 * MS, frame(kind::ANSWER, stream, b""))];
    let rules = Config {
        depth: 4,
        max_inflight: 8,
        in_flight_max: Some(8),
        demand: Demand::Growing(1),
        ..open_loop(OpenLoop::default())
    };
    let (ran, seen) = run_against(rules, Job { pacer: every(MS, None), ..second(4) }, &[], behaviour);
    // Four are in flight on each of two connections, although a request is due every millisecond.
    assert_eq!(seen.borrow().connections, 2);
    let in_flight = ran.totals.counters.occupancy.in_flight_ns as f64 / ran.end.elapsed_ns as f64;
    assert!((7.0..=8.0).contains(&in_flight), "{in_flight}");
}

#[test]
fn goaway_connections_are_replaced_at_once() {
    // The first response of every four takes 50 ms longer, and GOAWAY comes with the fourth request.
    let behaviour: Behaviour = |number, stream, _| {
        let answer = (if number % 4 == 1 { 60 } else { 10 } * MS, frame(kind::ANSWER, stream, b""));
        if number % 4 == 0 { vec![(0, frame(kind::GOAWAY, 0, b"")), answer] } else { vec![answer] }
    };
    for (stand_ins, least, most) in [(0, 600, 620), (4, 150, 320)] {
        let config = Config { stand_ins, ..streams(4, 40) };
        let (ran, seen) = run(config, 0, || Second::new(4, 0), &[], behaviour);
        assert_eq!((ran.totals.counters.completed, ran.totals.counters.slots_opened), (40, 1));
        assert_eq!(seen.borrow().connections, 10);
        let elapsed_ms = ran.end.elapsed_ns / MS;
        assert!((least..=most).contains(&elapsed_ms), "{elapsed_ms} ms with {stand_ins}");
        // Never more in flight than on one connection.
        let in_flight = ran.totals.counters.occupancy.in_flight_ns as f64 / ran.end.elapsed_ns as f64;
        assert!(in_flight <= 4.01, "{in_flight}");
    }
}
