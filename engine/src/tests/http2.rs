//! HTTP/2 through the engine, against randomly drawn servers: they change their stream limits, send GOAWAY, refuse and
//! reset, and open windows in crumbs, all of it in pieces. Accounts balance. Where nothing depends on timing, the
//! splitting of the bytes makes no difference.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use onrush_plan::Random;
use onrush_plan::http::HttpVersion;
use onrush_proto::Nanos;
use onrush_proto::http2::{Http2Options, SharedContext};
use onrush_stats::{Activity, Occupancy};
use rustix::io::Errno;

use super::pacing::{every, open_loop};
use super::*;
use crate::backend::sim::{Act, Action, Peer};

/// Number of servers tried in every test run.
const SEEDS: u64 = 100;

/// Windows that no response of these tests fills.
const AHEAD: Ahead = Ahead { response: 1 << 29, connection: 1 << 29 };

/// Length of the client's preface.
const PREFACE: usize = 24;

/// Behaviour of a server.
#[derive(Clone, Debug)]
struct Nature {
    /// Number of streams allowed; `None`: unlimited. Another number after some requests.
    streams: Option<u32>,
    streams_later: Option<u32>,
    latency_ns: u64,
    jitter_ns: u64,
    /// Number of requests on a connection before GOAWAY; zero: never.
    goaway_after: u32,
    /// True if GOAWAY announces the end first, as RFC 9113 (6.8) recommends.
    is_graceful: bool,
    /// True if the server answers nothing, and closes the connection after GOAWAY.
    closes: bool,
    /// Intervals of requests refused without processing, and of requests reset; zero: none.
    refuses_every: u32,
    resets_every: u32,
    /// The window for the body of each request, and the size of later increments.
    window: u32,
    crumb: u32,
    /// Number of requests on a connection after which it does nothing more; zero: never.
    hangs_after: u32,
    /// Size of each response's body, and of each frame of it.
    body: usize,
    frame: usize,
    /// Largest piece in which bytes arrive.
    piece: usize,
}

/// Actions of a run's servers, over all connections.
#[derive(Debug, Default, PartialEq, Eq)]
struct Did {
    connections: u32,
    answered: u64,
    refused: u64,
    reset: u64,
    goaways: u64,
    /// Largest number of streams beyond a client's confirmed allowance.
    excess: u32,
    body_bytes: u64,
}

struct Server {
    nature: Nature,
    did: Rc<RefCell<Did>>,
    random: Random,
}

struct Connection {
    nature: Nature,
    did: Rc<RefCell<Did>>,
    random: Random,
    input: Vec<u8>,
    is_greeted: bool,
    requests: u32,
    /// The last stream to be processed, once GOAWAY has announced it.
    last: Option<u32>,
    /// Streams with incomplete or unanswered requests, and the times of their answers.
    open: BTreeMap<u32, Nanos>,
    /// Stream limits sent and not acknowledged, oldest first.
    limits: Vec<Option<u32>>,
    allowed: Option<u32>,
    sent_until: Nanos,
}

impl Network for Server {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.did.borrow_mut().connections += 1;
        let connection = Connection {
            nature: self.nature.clone(),
            did: Rc::clone(&self.did),
            random: Random::new(self.random.next()),
            input: Vec::new(),
            is_greeted: false,
            requests: 0,
            last: None,
            open: BTreeMap::new(),
            limits: Vec::new(),
            allowed: None,
            sent_until: now,
        };
        (now + 50_000, Ok(Box::new(connection)))
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![a, b, c, kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

impl Connection {
    /// Sends frames in pieces that arrive at the same time; nothing overtakes earlier frames.
    fn send(&mut self, at: Nanos, frames: &[u8], actions: &mut Vec<Action>) {
        self.sent_until = self.sent_until.max(at);
        let at = self.sent_until;
        actions.extend(frames.chunks(self.nature.piece).map(|piece| Action { at, act: Act::Send(piece.to_vec()) }));
    }

    fn settings_frame_allowing(&mut self, streams: Option<u32>) -> Vec<u8> {
        self.limits.push(streams);
        let window = setting(4, self.nature.window);
        let payload = [streams.map_or_else(Vec::new, |streams| setting(3, streams)), window].concat();
        frame(4, 0, 0, &payload)
    }

    fn complete(&mut self, stream: u32, now: Nanos, actions: &mut Vec<Action>) {
        self.requests += 1;
        if self.nature.hangs_after > 0 && self.requests > self.nature.hangs_after {
            return;
        }
        let is_hit = |every: u32, number: u32| every > 0 && number.is_multiple_of(every);
        let is_left_out = self.last.is_some_and(|last| stream > last);
        if is_left_out {
            // The request is never processed, as GOAWAY has announced.
            self.open.remove(&stream);
            return;
        }
        let at = now + self.nature.latency_ns + self.random.below(self.nature.jitter_ns + 1);
        let at = at.max(self.sent_until);
        let mut frames = Vec::new();
        if is_hit(self.nature.refuses_every, self.requests) {
            self.did.borrow_mut().refused += 1;
            frames = frame(3, 0, stream, &7_u32.to_be_bytes());
        } else if is_hit(self.nature.resets_every, self.requests) {
            self.did.borrow_mut().reset += 1;
            frames = frame(3, 0, stream, &2_u32.to_be_bytes());
        } else if !self.nature.closes {
            self.did.borrow_mut().answered += 1;
            let body = vec![b'x'; self.nature.body];
            frames.extend(frame(1, if body.is_empty() { 5 } else { 4 }, stream, &[0x88]));
            let chunks = body.chunks(self.nature.frame).count();
            for (number, part) in (1..).zip(body.chunks(self.nature.frame)) {
                frames.extend(frame(0, u8::from(number == chunks), stream, part));
            }
        }
        self.open.insert(stream, at);
        self.send(at, &frames, actions);
        if self.requests == 3 && self.nature.streams_later != self.nature.streams {
            let limit = self.settings_frame_allowing(self.nature.streams_later);
            self.send(now, &limit, actions);
        }
        if self.nature.goaway_after > 0 && self.requests == self.nature.goaway_after && self.last.is_none() {
            self.did.borrow_mut().goaways += 1;
            let goaway = |last: u32| frame(7, 0, 0, &[last.to_be_bytes(), 0_u32.to_be_bytes()].concat());
            if self.nature.is_graceful {
                self.send(now, &goaway(i32::MAX as u32), actions);
            }
            self.last = Some(stream);
            self.send(now, &goaway(stream), actions);
            if self.nature.closes {
                actions.push(Action { at: self.sent_until, act: Act::Close });
            }
        }
    }
}

impl Peer for Connection {
    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        self.input.extend_from_slice(bytes);
        if !self.is_greeted {
            if self.input.len() < PREFACE {
                return;
            }
            self.input.drain(..PREFACE);
            self.is_greeted = true;
            let limit = self.settings_frame_allowing(self.nature.streams);
            self.send(now, &limit, actions);
        }
        while let Some((&[a, b, c, kind, flags, s, t, u, v], rest)) = self.input.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if rest.len() < length {
                break;
            }
            let stream = u32::from_be_bytes([s, t, u, v]);
            self.input.drain(..9 + length);
            let ends = flags & 1 != 0;
            match kind {
                1 => {
                    self.open.retain(|_, at| *at > now);
                    self.open.insert(stream, Nanos::MAX);
                    // A new limit may be used before it is acknowledged.
                    let any = |limit: &Option<u32>| limit.unwrap_or(u32::MAX);
                    let allowed = self.limits.iter().chain([&self.allowed]).map(any).max().unwrap_or(u32::MAX);
                    let excess = (self.open.len() as u32).saturating_sub(allowed);
                    let mut did = self.did.borrow_mut();
                    did.excess = did.excess.max(excess);
                }
                0 => {
                    self.did.borrow_mut().body_bytes += length as u64;
                    if length > 0 {
                        // Windows grow in crumbs.
                        let crumb = self.nature.crumb.max(1);
                        let grant = |stream: u32, by: u32| frame(8, 0, stream, &by.to_be_bytes());
                        let grants = [grant(0, length as u32), if ends { Vec::new() } else { grant(stream, crumb) }];
                        self.send(now + 1_000, &grants.concat(), actions);
                    }
                }
                3 => {
                    self.open.remove(&stream);
                }
                4 if ends => self.allowed = self.limits.remove(0),
                _ => {}
            }
            if ends && matches!(kind, 0 | 1) {
                self.complete(stream, now, actions);
            }
        }
    }
}

/// A server without faults.
fn quiet() -> Nature {
    Nature {
        streams: None,
        streams_later: None,
        latency_ns: 0,
        jitter_ns: 0,
        goaway_after: 0,
        is_graceful: false,
        closes: false,
        refuses_every: 0,
        resets_every: 0,
        window: 65_535,
        crumb: 0,
        hangs_after: 0,
        body: 0,
        frame: 16_000,
        piece: usize::MAX,
    }
}

/// A server, the number of requests, and the way they are sent.
fn draw(random: &mut Random) -> (Nature, Config, usize, bool) {
    let one_in = |random: &mut Random, n: u64| random.below(n) == 0;
    let some = |random: &mut Random, most: u64| 1 + random.below(most) as u32;
    let allowed = |random: &mut Random| [None, Some(some(random, 12)), Some(100)][random.below(3) as usize];
    let streams = allowed(random);
    let nature = Nature {
        streams,
        streams_later: if one_in(random, 3) { allowed(random) } else { streams },
        latency_ns: 10_000 * u64::from(some(random, 500)),
        jitter_ns: random.below(3) * 2 * MS,
        goaway_after: if one_in(random, 2) { some(random, 20) } else { 0 },
        is_graceful: one_in(random, 2),
        closes: false,
        refuses_every: if one_in(random, 3) { 2 + some(random, 9) } else { 0 },
        resets_every: if one_in(random, 3) { some(random, 9) } else { 0 },
        window: [0, some(random, 2_000), 65_535][random.below(3) as usize],
        crumb: some(random, 3_000),
        hangs_after: 0,
        body: [0, some(random, 100) as usize, 40_000][random.below(3) as usize],
        frame: 16_000,
        piece: usize::MAX,
    };
    let config = Config {
        max_inflight: some(random, 4),
        stand_ins: [0, 2, 8][random.below(3) as usize],
        streams: some(random, 30) as usize,
        requests: Some(u64::from(some(random, 300))),
        requests_per_connection: one_in(random, 5).then(|| per_connection(u64::from(some(random, 30)))),
        give_up_ns: Some(20 * SECOND),
        ..if one_in(random, 3) { open_loop(OpenLoop::default()) } else { config() }
    };
    // Nothing opens a window of zero here.
    let body = if nature.window > 0 && one_in(random, 3) { 5_000 } else { 0 };
    let is_paced = config.rules.open_loop.is_some();
    (nature, Config { duration_ns: None, ..config }, body, is_paced)
}

/// Runs a drawn case. Returns its counts and the servers' actions.
fn carry_out(seed: u64, piece: usize, lingers: Option<Ahead>) -> (Ran, Did) {
    let mut random = Random::new(seed);
    let (nature, config, body, is_paced) = draw(&mut random);
    let shared = SharedContext::new(Http2Options { streams: config.streams as u32, ..Http2Options::default() });
    let did = Rc::default();
    let server =
        Server { nature: Nature { piece, ..nature }, did: Rc::clone(&did), random: Random::new(random.next()) };
    let job = Job {
        pacer: if is_paced { every(MS, None) } else { Pacer::Closed },
        http2: Some(shared.clone()),
        ..job(
            request(if body > 0 { "POST" } else { "GET" }, vec![b'b'; body]),
            http_by_alpn(&[HttpVersion::Http2], false, 1, &shared),
        )
    };
    let ran = run_job(Config { lingers, ..config }, Box::new(server), job);
    (ran, Rc::into_inner(did).expect("the run is over").into_inner())
}

fn check(seed: u64) {
    let (whole, did) = carry_out(seed, usize::MAX, Some(AHEAD));
    let (_, config, ..) = draw(&mut Random::new(seed));
    let counters = &whole.totals.counters;
    let about = || {
        format!(
            "seed {seed}: {:?}\n{counters:?}\n{did:?}\n{:?}",
            draw(&mut Random::new(seed)).0,
            whole.totals.ledger.rows()
        )
    };
    assert_conserved(&whole.totals);
    assert_eq!(Some(counters.started), config.requests, "{}", about());
    assert_eq!(counters.completed, did.answered, "{}", about());
    // A body in crumbs of a few bytes may take longer than a request may.
    assert_eq!(counters.completed + counters.failed + counters.abandoned, counters.started, "{}", about());
    assert!(did.excess == 0, "{}", about());
    // Only requests that the server refused or that GOAWAY left out are returned.
    if did.refused + did.goaways == 0 {
        assert_eq!(counters.returned, 0, "{}", about());
    }
    let in_flight = counters.occupancy.in_flight_ns as f64 / whole.end.elapsed_ns.max(1) as f64;
    let most = f64::from(config.max_inflight) * config.streams as f64;
    assert!(in_flight <= most + 0.01, "{in_flight} of {most}: {}", about());
    // No connection has more in flight than it may, so as many must have been busy. Returned requests are also in
    // flight between two connections.
    let &Occupancy { in_flight_ns, busy_ns, .. } = &counters.occupancy;
    assert!(counters.returned > 0 || in_flight_ns <= busy_ns * config.streams as u64, "{}", about());
    // Frames between two pieces depend on the windows and the GOAWAY that have arrived by then. Pieces on several
    // connections arrive in turns. Their order decides which connection sends the last request of all, and so which one
    // is replaced, and for which one a back-off is drawn first.
    let is_in_turns =
        config.max_inflight > 1 && (config.requests_per_connection.is_some() || did.refused + did.reset > 0);
    if did.body_bytes + did.goaways > 0 || is_in_turns {
        return;
    }
    // Byte by byte, unless there are many. A wait for several may begin between two pieces.
    let piece = 1 + draw(&mut Random::new(seed)).0.body / 50;
    let [(whole, did), (split, same)] = [usize::MAX, piece].map(|piece| carry_out(seed, piece, None));
    let counters = [&split, &whole].map(|ran| format!("{:?}", ran.totals.counters));
    assert_eq!(counters[0], counters[1], "in pieces of {piece}: {}", about());
    assert_eq!(same, did, "in pieces of {piece}: {}", about());
}

#[test]
fn http2_accounts_balance_for_random_servers() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (length, first) = (number("SIMULATE_SECONDS"), number("SIMULATE_SEED").unwrap_or(1));
    let began = Instant::now();
    let is_over = |seed| match length {
        Some(length) => began.elapsed() >= Duration::from_secs(length),
        None => seed > SEEDS,
    };
    (first..).take_while(|seed| !is_over(*seed)).for_each(check);
}

/// Runs a closed loop of requests without bodies against these servers.
fn run_against(config: Config, network: impl Network + 'static) -> Ran {
    let shared = SharedContext::new(Http2Options {
        streams: config.streams as u32,
        frame_max: 1 << 20,
        ..Http2Options::default()
    });
    let job = Job { http2: Some(shared.clone()), ..job(get(), http_by_alpn(&[HttpVersion::Http2], false, 1, &shared)) };
    run_job(config, Box::new(network), job)
}

#[test]
fn silent_connections_are_replaced() {
    // The first connection answers three requests and then falls silent.
    struct Fickle(Server);
    impl Network for Fickle {
        fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
            self.0.nature.hangs_after = if self.0.did.borrow().connections == 0 { 3 } else { 0 };
            self.0.connect(now, address)
        }
    }
    let nature = Nature { latency_ns: MS, ..quiet() };
    let did = Rc::<RefCell<Did>>::default();
    let server = Server { nature, did: Rc::clone(&did), random: Random::new(1) };
    let config = Config { streams: 4, lingers: Some(AHEAD), give_up_ns: Some(100 * MS), ..config() };
    let ran = run_against(config, Fickle(server));
    assert_conserved(&ran.totals);
    let counters = &ran.totals.counters;
    assert_eq!((did.borrow().connections, counters.abandoned), (2, 4), "{counters:?}");
    assert!(counters.completed > 3_000, "{counters:?}");
}

#[test]
fn regular_connection_ends_cost_no_request() {
    for (goaway_after, streams) in [(1, 8), (2, 64), (10, 64)] {
        let did = Rc::<RefCell<Did>>::default();
        let nature = Nature { goaway_after, latency_ns: MS, ..quiet() };
        let server = Server { nature, did: Rc::clone(&did), random: Random::new(1) };
        let config = Config { streams, requests: Some(500), duration_ns: None, ..config() };
        let ran = run_against(config, server);
        let counters = &ran.totals.counters;
        assert_eq!((counters.completed, counters.failed), (500, 0), "{goaway_after}: {counters:?}");
    }
}

#[test]
fn early_goaways_do_not_back_off() {
    let nature = Nature { goaway_after: 10, latency_ns: 20 * MS, ..quiet() };
    let server = Server { nature, did: Rc::default(), random: Random::new(1) };
    let ran = run_against(Config { streams: 10, stand_ins: 4, ..config() }, server);
    assert_conserved(&ran.totals);
    let counters = &ran.totals.counters;
    // Ten requests per 20 ms, with the time of a connect in between.
    assert!((450..=500).contains(&counters.completed), "{counters:?}");
    assert_eq!((counters.occupancy.waiting_ns, counters.late), (0, 0), "{counters:?}");
}

#[test]
fn servers_refusing_all_streams_cause_back_off() {
    // More requested streams do not use more of the server's places.
    for (refuses_every, resets_every, asked) in [(1, 0, 8), (0, 1, 8), (0, 1, 200)] {
        let did = Rc::<RefCell<Did>>::default();
        let nature = Nature { refuses_every, resets_every, latency_ns: 10_000, streams: Some(8), ..quiet() };
        let server = Server {
            nature: Nature { streams_later: nature.streams, ..nature },
            did: Rc::clone(&did),
            random: Random::new(1),
        };
        let config = Config { streams: asked as usize, ..config() };
        let ran = run_against(config, server);
        assert_conserved(&ran.totals);
        let turned_away = did.borrow().refused + did.borrow().reset;
        // About ten times a second in each of eight places. Up to a hundred are tried before the server's SETTINGS
        // arrive.
        let first = asked.min(100) - 8;
        assert!((40..200 + first).contains(&turned_away), "{turned_away}: {:?}", ran.totals.counters);
        assert_eq!(did.borrow().connections, 1);
    }
}

#[test]
fn servers_refusing_some_streams_are_retried_soon() {
    let did = Rc::<RefCell<Did>>::default();
    let nature = Nature { resets_every: 4, latency_ns: MS, ..quiet() };
    let server = Server { nature, did: Rc::clone(&did), random: Random::new(1) };
    let config = Config { streams: 8, lingers: Some(AHEAD), ..config() };
    let ran = run_against(config, server);
    let counters = &ran.totals.counters;
    // A place is busy for a millisecond, and empty for another after each fourth request.
    assert!(counters.completed > 4_000 && counters.failed > 1_000, "{counters:?}");
}

#[test]
fn returned_requests_time_out_like_others() {
    // The only connection returns requests, and no other can be opened.
    struct Gone(Server);
    impl Network for Gone {
        fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
            if self.0.did.borrow().connections > 0 {
                return (now + 50_000, Err(Errno::CONNREFUSED));
            }
            self.0.connect(now, address)
        }
    }
    for (give_up_ns, late, abandoned) in [(None, 8, 0), (Some(100 * MS), 8, 8), (Some(40 * MS), 0, 8)] {
        let nature = Nature { goaway_after: 1, latency_ns: MS, ..quiet() };
        let server = Server { nature, did: Rc::default(), random: Random::new(1) };
        let rules = Rules { timeout_ns: Some(50 * MS), ..config().rules };
        let config = Config { streams: 8, give_up_ns, rules, ..config() };
        let ran = run_against(config, Gone(server));
        assert_conserved(&ran.totals);
        let counters = &ran.totals.counters;
        let open = 8 - abandoned;
        assert_eq!((counters.completed, counters.returned), (1, 8), "{counters:?}");
        assert_eq!((counters.late, counters.abandoned, counters.open_at_end), (late, abandoned, open), "{counters:?}");
        let in_flight = counters.occupancy.in_flight_ns as f64 / ran.end.elapsed_ns as f64;
        let expected = 8.0 * give_up_ns.map_or(1.0, |ns| ns as f64 / SECOND as f64);
        assert!((in_flight - expected).abs() < 0.1, "{in_flight}, {expected}");
    }
}

#[test]
fn constant_goaways_cause_back_off() {
    // The server announces that it processes the first request, and answers nothing.
    let did = Rc::<RefCell<Did>>::default();
    let nature = Nature { goaway_after: 1, closes: true, ..quiet() };
    let server = Server { nature, did: Rc::clone(&did), random: Random::new(1) };
    let config = Config { streams: 100, stand_ins: 64, ..config() };
    let ran = run_against(config, server);
    assert_conserved(&ran.totals);
    assert!((20..40).contains(&did.borrow().connections), "{:?}", did.borrow());
}

#[test]
fn lingering_needs_enough_requests_in_flight() {
    let lingers = |streams, change: fn(&mut Config)| {
        let server =
            Server { nature: Nature { latency_ns: MS, ..quiet() }, did: Rc::default(), random: Random::new(1) };
        let mut config = Config { streams, lingers: Some(AHEAD), ..config() };
        change(&mut config);
        let Activity { lingers, linger_max_ns, .. } = run_against(config, server).totals.activity;
        (lingers, linger_max_ns)
    };
    let (many, longest_ns) = lingers(32, |_| ());
    // A fortieth of a millisecond, and of the time that these waits add.
    assert!(many > 0 && (MS / 40..MS / 38).contains(&longest_ns), "{many} {longest_ns}");
    assert!(lingers(8, |_| ()).0 > 0);
    // All bytes count, although only bodies use windows: the ten bytes of each response in flight together fill this
    // window.
    let shared = |config: &mut Config| config.lingers = Some(Ahead { connection: 320, ..AHEAD });
    let short_ns = lingers(32, shared).1;
    assert!(short_ns > 0 && short_ns < longest_ns * 2 / 3, "{short_ns} {longest_ns}");
    assert_eq!(lingers(7, |_| ()), (0, 0));
    assert_eq!(lingers(32, |config| config.lingers = None), (0, 0));
    assert_eq!(lingers(32, |config| config.rules.open_loop = Some(OpenLoop::default())), (0, 0));
}

#[test]
fn consecutive_long_frames_prevent_lingering() {
    for (frame, lingers) in [(16 * 1024, true), (20_000, false)] {
        let nature = Nature { body: 100_000, frame, piece: 1_000, latency_ns: 2 * MS, ..quiet() };
        let server = Server { nature, did: Rc::default(), random: Random::new(1) };
        let ran = run_against(Config { streams: 8, lingers: Some(AHEAD), ..config() }, server);
        assert_eq!(ran.totals.activity.lingers > 0, lingers, "{frame}");
        assert!(ran.totals.counters.completed > 1_000, "{frame}");
    }
}

#[test]
fn returned_requests_are_late_again_after_warm_up() {
    let nature = Nature { goaway_after: 1, closes: true, ..quiet() };
    let server = Server { nature, did: Rc::default(), random: Random::new(1) };
    let rules = Rules { timeout_ns: Some(100 * MS), ..config().rules };
    let config =
        Config { streams: 100, stand_ins: 64, warmup_ns: SECOND, duration_ns: Some(50 * MS), rules, ..config() };
    let totals = run_against(config, server).totals;
    assert_conserved(&totals);
    let counters = &totals.counters;
    assert!(counters.carried > 0 && counters.open_late_at_end > 0, "{counters:?}");
    assert!(counters.open_late_at_end <= counters.late, "{counters:?}");
}

#[test]
fn lingering_hardly_delays_quick_responses() {
    // Four connections of 64 answer after a third of a millisecond, shortly one after another, the others after a
    // hundred.
    struct Mixed(Server);
    const QUICK: u64 = 300_000;
    const STEP: u64 = 5_000;
    impl Network for Mixed {
        fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
            let number = u64::from(self.0.did.borrow().connections);
            self.0.nature.latency_ns = if number < 4 { QUICK + number * STEP } else { 100 * MS };
            self.0.connect(now, address)
        }
    }
    for (body, requests) in [(0, 40_000), (40_000, 5_000)] {
        let nature = Nature { body, piece: 10_000, ..quiet() };
        let server = Server { nature, did: Rc::default(), random: Random::new(1) };
        let config =
            Config { max_inflight: 64, streams: 8, lingers: Some(AHEAD), requests: Some(requests), ..config() };
        let ran = run_against(config, Mixed(server));
        let quick = ran.totals.latency.values().filter(|&(ns, _)| ns < 50 * MS);
        let (mut prolonged, mut all, slowest) = (0, 0, QUICK + 3 * STEP);
        for (ns, count) in quick {
            assert!(ns < slowest + QUICK / 9, "{ns}");
            (prolonged, all) = (prolonged + if ns > slowest + STEP { count } else { 0 }, all + count);
        }
        assert!(all > requests * 4 / 5 && prolonged > 0, "{prolonged} of {all}");
    }
}
