//! Coordinator and workers in virtual time, on a network with delays and losses. Connections end, machines fall silent,
//! and some are cut off for a while.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::token::Token;
use onrush_plan::Random;
use onrush_proto::{Code, Error};
use onrush_stats::{Activity, Cause, Counters, Phase, TlsFailure, Totals};

use super::channel::{Channel, CoordinatorCertificate, encode_frame};
use super::coordinator::{
    ConnectionAction, Coordinator, CoordinatorEvent, CoordinatorRequest, CoordinatorRules, PeerId, WorkerJobs,
};
use super::coordinator_server::CoordinatorServer;
use super::message::{
    CoordinatorMessage, Done, Hello, JoinRefusal, RowSums, UNPROVEN_MAX, Welcome, WorkerMessage, WorkerSetup,
};
use super::worker_client::Joining;
use crate::run::Interrupt;
use crate::run::outcome::WorkerShare;

const MS: u64 = 1_000_000;
const ROW_NS: u64 = 1_000 * MS;

/// Event of a worker in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerFate {
    /// Nothing happens to the worker.
    Well,
    /// The connection ends this long after the worker's start.
    Killed(u64),
    /// From this long after the worker's start, nothing arrives in either direction.
    Silent(u64),
    /// Cut off during this period after the worker's start: messages arrive afterwards.
    Cut(u64, u64),
}

impl WorkerFate {
    /// Draws a random fate.
    fn draw_fate(random: &mut Random) -> Self {
        let at = random.next() % (8_000 * MS);
        match random.next() % 8 {
            0 => Self::Killed(at),
            1 => Self::Silent(at),
            2 => Self::Cut(at, random.next() % (10_000 * MS)),
            _ => Self::Well,
        }
    }

    /// True if a coordinator that otherwise hears from the worker at least every second must lose it, false if it must
    /// not, `None` if both are possible. `rows`: length of the run in seconds.
    fn must_be_lost(self, rows: u64) -> Option<bool> {
        let end = rows * ROW_NS;
        match self {
            Self::Well => Some(false),
            Self::Killed(at) | Self::Silent(at) if at < end => Some(true),
            Self::Killed(_) | Self::Silent(_) => None,
            Self::Cut(_, length) if length < 3_500 * MS => Some(false),
            Self::Cut(at, length) if length > 5_500 * MS && at < end => Some(true),
            Self::Cut(..) => None,
        }
    }
}

/// A worker: clock, network and measurements.
struct SimulatedWorker {
    peer: PeerId,
    /// The worker's clock minus the coordinator's at time zero, and its drift in millionths.
    offset_ns: i64,
    drift_ppm: i64,
    /// Minimum network delay, and how much longer a message may take.
    way_ns: u64,
    jitter_ns: u64,
    /// One in this many messages is lost and arrives 200 ms later, after a retransmit.
    loses_one_in: Option<u64>,
    fate: WorkerFate,
    /// Start of the worker, in simulated time.
    began: Option<u64>,
    late_ns: u64,
    sent: RowSums,
    /// Arrival time of everything sent in each direction so far: messages do not overtake each other.
    there_ns: u64,
    back_ns: u64,
    is_stopped: bool,
}

impl SimulatedWorker {
    fn to_worker_clock(&self, now: u64) -> u64 {
        let moved = now as i64 + now as i64 / 1_000_000 * self.drift_ppm;
        (moved + self.offset_ns) as u64
    }

    /// Simulated time at which the worker's clock shows this.
    fn to_simulated_time(&self, clock: u64) -> u64 {
        let since = clock as i64 - self.offset_ns;
        (since - since / 1_000_000 * self.drift_ppm).max(0) as u64
    }

    fn is_cut(&self, now: u64) -> bool {
        let after = |at: u64| self.began.is_some_and(|began| now >= began + at);
        matches!(self.fate, WorkerFate::Killed(at) | WorkerFate::Silent(at) if after(at))
    }
}

enum SimulationEvent {
    ToWorker(usize, CoordinatorMessage),
    /// A worker has set up its part.
    IsPrepared(usize),
    Begins(usize),
    /// A worker ends its next row.
    Row(usize, u64),
    Gone(usize),
    ToCoordinator(usize, WorkerMessage),
    Tick,
}

#[derive(Default)]
struct SimulationResult {
    merged: Totals,
    /// Measurements of workers in the rows that arrived before the loss of the worker.
    whole: Totals,
    ready_ns: u64,
    start_ns: u64,
    /// Shortest round trip of each worker, in nanoseconds.
    trips: Vec<u64>,
    /// Start error of each worker, in nanoseconds, by its number.
    errors: BTreeMap<usize, u64>,
    done: usize,
    lost: Vec<(u32, u64)>,
    hopeless: Option<String>,
}

struct SimulatedNetwork {
    random: Random,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: BTreeMap<u64, SimulationEvent>,
    next: u64,
    workers: Vec<SimulatedWorker>,
    coordinator: Coordinator,
    rows: u64,
    seen: SimulationResult,
}

impl SimulatedNetwork {
    fn new(seed: u64, machines: u32, rows: u64, fate: impl Fn(u32, &mut Random) -> WorkerFate) -> Self {
        let mut random = Random::new(seed);
        let rules = CoordinatorRules { machines, join: Duration::from_secs(60), loss: Duration::from_secs(5) };
        let workers = (0..machines).map(|index| SimulatedWorker {
            peer: index.into(),
            offset_ns: (random.next() % 1_000_000_000_000) as i64,
            drift_ppm: (random.next() % 200) as i64 - 100,
            way_ns: 20_000 + random.next() % (5 * MS),
            jitter_ns: random.next() % (3 * MS),
            loses_one_in: random.next().is_multiple_of(3).then(|| 10 + random.next() % 100),
            fate: fate(index, &mut random),
            began: None,
            late_ns: 0,
            sent: RowSums::default(),
            there_ns: 0,
            back_ns: 0,
            is_stopped: false,
        });
        let workers = workers.collect();
        Self {
            random,
            now: 0,
            events: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            next: 0,
            workers,
            coordinator: Coordinator::new(rules),
            rows,
            seen: SimulationResult::default(),
        }
    }

    fn schedule_event(&mut self, when: u64, event: SimulationEvent) {
        self.events.push(Reverse((when.max(self.now), self.next)));
        self.waiting.insert(self.next, event);
        self.next += 1;
    }

    fn draw_delay_ns(&mut self, worker: usize) -> u64 {
        let SimulatedWorker { way_ns, jitter_ns, loses_one_in, fate, began, .. } = self.workers[worker];
        let random = &mut self.random;
        let again = loses_one_in.filter(|one_in| random.next().is_multiple_of(*one_in)).map_or(0, |_| 200 * MS);
        let held = match (fate, began) {
            (WorkerFate::Cut(at, length), Some(began)) if self.now >= began + at => {
                (began + at + length).saturating_sub(self.now)
            }
            _ => 0,
        };
        held.max(again) + way_ns + random.next() % (jitter_ns + 1)
    }

    fn send_report(&mut self, worker: usize, report: WorkerMessage) {
        if !self.workers[worker].is_cut(self.now) {
            let arrives = (self.now + self.draw_delay_ns(worker)).max(self.workers[worker].back_ns);
            self.workers[worker].back_ns = arrives;
            self.schedule_event(arrives, SimulationEvent::ToCoordinator(worker, report));
        }
    }

    /// Runs the simulation until nothing more happens; `absent`: workers that never join.
    fn run_simulation(mut self, absent: &[usize]) -> SimulationResult {
        let order = CoordinatorMessage::Prepare { plan: String::new(), files: Vec::new(), row_ns: ROW_NS };
        let frames = self.workers.iter().map(|_| vec![encode_frame(&order)]).collect();
        let now = |now: u64| Duration::from_nanos(now);
        self.coordinator
            .handle_request(CoordinatorRequest::Prepare(WorkerJobs { frames, row: now(ROW_NS) }), Duration::ZERO);
        for worker in (0..self.workers.len()).filter(|worker| !absent.contains(worker)) {
            let joined = self.coordinator.join_worker(worker as PeerId, &format!("m{worker}"), None, Duration::ZERO);
            assert!(joined.is_ok());
            self.workers[worker].peer = worker as PeerId;
        }
        self.schedule_event(0, SimulationEvent::Tick);
        self.execute_actions();
        while let Some(Reverse((when, number))) = self.events.pop() {
            self.now = when;
            let event = self.waiting.remove(&number).expect("each event is waiting");
            self.handle_event(event);
            self.execute_actions();
            if self.seen.hopeless.is_some() || self.seen.done + self.seen.lost.len() == self.workers.len() {
                break;
            }
        }
        self.seen
    }

    fn handle_event(&mut self, event: SimulationEvent) {
        let now = Duration::from_nanos(self.now);
        match event {
            SimulationEvent::Tick => {
                self.coordinator.on_tick(now);
                self.schedule_event(self.now + 50 * MS, SimulationEvent::Tick);
            }
            SimulationEvent::ToCoordinator(worker, report) => {
                if let WorkerMessage::Row { totals, .. } = &report
                    && self.seen.lost.iter().all(|(lost, _)| *lost as usize != worker)
                {
                    self.seen.whole += totals;
                }
                self.coordinator.handle_message(self.workers[worker].peer, report, now);
            }
            // Messages already sent arrive first.
            SimulationEvent::Gone(worker) if self.workers[worker].back_ns > self.now => {
                self.schedule_event(self.workers[worker].back_ns, SimulationEvent::Gone(worker));
            }
            SimulationEvent::Gone(worker) => self.coordinator.lose_worker(self.workers[worker].peer, "it has ended"),
            SimulationEvent::IsPrepared(worker) => {
                self.send_report(worker, WorkerMessage::Prepared(WorkerSetup::default()))
            }
            SimulationEvent::ToWorker(worker, _) if self.workers[worker].is_cut(self.now) => {}
            SimulationEvent::ToWorker(worker, order) => match order {
                CoordinatorMessage::Ping(number) => {
                    let clock_ns = self.workers[worker].to_worker_clock(self.now);
                    self.send_report(worker, WorkerMessage::Pong { number, clock_ns });
                }
                CoordinatorMessage::Start(at_ns) => {
                    let when = self.workers[worker].to_simulated_time(at_ns);
                    self.workers[worker].late_ns = self.now.saturating_sub(when);
                    self.schedule_event(when, SimulationEvent::Begins(worker));
                }
                CoordinatorMessage::Stop => self.workers[worker].is_stopped = true,
                CoordinatorMessage::Prepare { .. } | CoordinatorMessage::Piece(_) | CoordinatorMessage::Dismiss => {}
            },
            SimulationEvent::Begins(worker) => {
                self.workers[worker].began = Some(self.now);
                self.seen.errors.insert(worker, self.now.abs_diff(self.seen.start_ns));
                if let WorkerFate::Killed(at) = self.workers[worker].fate {
                    self.schedule_event(self.now + at, SimulationEvent::Gone(worker));
                }
                self.schedule_event(self.now + ROW_NS, SimulationEvent::Row(worker, 0));
            }
            SimulationEvent::Row(worker, number) => self.end_row(worker, number),
        }
    }

    /// A worker measures something and reports it.
    fn end_row(&mut self, worker: usize, number: u64) {
        let mut row = Totals { from_ns: number * ROW_NS, until_ns: (number + 1) * ROW_NS, ..Totals::default() };
        for _ in 0..20 + self.random.next() % 50 {
            row.latency.record(self.random.next() % (20 * MS));
            row.counters.completed += 1;
            row.counters.started += 1;
        }
        if !self.workers[worker].is_cut(self.now) {
            self.workers[worker].sent.add_row(&row);
        }
        self.send_report(worker, WorkerMessage::Row { number, totals: Box::new(row) });
        if number + 1 < self.rows && !self.workers[worker].is_stopped {
            return self.schedule_event(self.now + ROW_NS, SimulationEvent::Row(worker, number + 1));
        }
        let SimulatedWorker { sent, late_ns, .. } = self.workers[worker];
        self.send_report(
            worker,
            WorkerMessage::Done(Box::new(Done {
                late_ns,
                elapsed_ns: self.now,
                batch: 1,
                sum: sent,
                ..Done::default()
            })),
        );
    }

    /// Executes the coordinator's actions.
    fn execute_actions(&mut self) {
        loop {
            while let Some(act) = self.coordinator.acts.pop_front() {
                match act {
                    ConnectionAction::Send(peer, order) => {
                        let worker = peer as usize;
                        let arrives = (self.now + self.draw_delay_ns(worker)).max(self.workers[worker].there_ns);
                        self.workers[worker].there_ns = arrives;
                        self.schedule_event(arrives, SimulationEvent::ToWorker(worker, order));
                    }
                    ConnectionAction::Frames(peer, _) => {
                        let takes = self.random.next() % (500 * MS);
                        self.schedule_event(self.now + takes, SimulationEvent::IsPrepared(peer as usize));
                    }
                    ConnectionAction::Close(_) => {}
                }
            }
            let Some(told) = self.coordinator.told.pop_front() else { return };
            match told {
                CoordinatorEvent::Ready(prepared, ahead) => {
                    assert_eq!(prepared.len(), self.workers.len());
                    assert!(self.seen.ready_ns == 0, "everybody is ready only once");
                    self.seen.ready_ns = self.now;
                    self.seen.trips = prepared.iter().map(|(_, trip)| trip.as_nanos() as u64).collect();
                    let start = Duration::from_nanos(self.now) + ahead;
                    self.seen.start_ns = start.as_nanos() as u64;
                    self.coordinator.handle_request(CoordinatorRequest::Start(start), Duration::from_nanos(self.now));
                }
                CoordinatorEvent::Row(_, row) => self.seen.merged += &*row,
                CoordinatorEvent::Done(index, done, drift_ns) => {
                    let error_ns = self.seen.errors[&(index as usize)];
                    // Clocks drift between the round trip and the start.
                    let known_ns = done.late_ns + self.seen.trips[index as usize] / 2 + 100_000;
                    assert!(error_ns <= known_ns, "{error_ns} of {known_ns}");
                    // The sign of a drift is never wrong.
                    let drift_ppm = self.workers[index as usize].drift_ppm;
                    assert!(drift_ns.is_none_or(|ns| ns.signum() == drift_ppm.signum()), "{drift_ns:?}, {drift_ppm}");
                    self.seen.done += 1;
                }
                CoordinatorEvent::Lost(index, _) => self.seen.lost.push((index, self.now)),
                CoordinatorEvent::Hopeless(why, _) => self.seen.hopeless = Some(why),
                CoordinatorEvent::Waiting { .. } | CoordinatorEvent::Refused(_) => {}
            }
        }
    }
}

fn assert_same_totals(one: &Totals, other: &Totals) {
    assert_eq!(one.counters, other.counters);
    assert!(one.latency.values().eq(other.latency.values()));
    assert_eq!(
        (one.latency.sum(), one.latency.sum_of_squares(), one.latency.min(), one.latency.max()),
        (other.latency.sum(), other.latency.sum_of_squares(), other.latency.min(), other.latency.max())
    );
}

/// Number of seeds in every test run, starting from 1.
const SEEDS: u64 = 120;

/// Runs a simulation in which the seed determines each machine's fate.
fn check_random_simulation(seed: u64) {
    let mut random = Random::new(seed);
    let (machines, rows) = (1 + (random.next() % 12) as u32, 1 + random.next() % 12);
    let fates: Vec<WorkerFate> = match random.next() % 3 {
        0 => vec![WorkerFate::Well; machines as usize],
        _ => (0..machines).map(|_| WorkerFate::draw_fate(&mut random)).collect(),
    };
    let seen = SimulatedNetwork::new(seed, machines, rows, |index, _| fates[index as usize]).run_simulation(&[]);
    assert_eq!((seen.done + seen.lost.len(), &seen.hopeless), (machines as usize, &None), "seed {seed}");
    // Nobody starts before everybody is ready, and everything that arrived is summed exactly once.
    assert_eq!(seen.errors.len(), machines as usize);
    assert_same_totals(&seen.merged, &seen.whole);
    for (index, fate) in (0..).zip(&fates) {
        let lost = seen.lost.iter().find(|(lost, _)| *lost == index);
        assert!(
            fate.must_be_lost(rows).is_none_or(|must| must == lost.is_some()),
            "seed {seed}: {fate:?}, {rows} rows"
        );
        if let (Some((_, at_ns)), WorkerFate::Killed(at) | WorkerFate::Silent(at) | WorkerFate::Cut(at, _)) =
            (lost, fate)
        {
            assert!(*at_ns <= seen.start_ns + at + 6_000 * MS, "seed {seed}: {fate:?}");
        }
    }
}

/// With `SIMULATE_SECONDS` in the environment, the test runs that long, starting from `SIMULATE_SEED`.
#[test]
fn arrived_rows_are_summed_once() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let limit = number("SIMULATE_SECONDS").map(Duration::from_secs);
    let (began, first) = (Instant::now(), number("SIMULATE_SEED").unwrap_or(1));
    let is_over = |seed: u64| limit.map_or(seed - first >= SEEDS, |limit| began.elapsed() >= limit && seed > first);
    let seeds = (first..).take_while(|seed| !is_over(*seed)).inspect(|seed| check_random_simulation(*seed)).count();
    println!("{seeds} runs on several machines, seeds {first} to {}", first + seeds as u64 - 1);
}

#[test]
fn runs_start_after_all_have_joined() {
    let seen = SimulatedNetwork::new(7, 4, 3, |_, _| WorkerFate::Well).run_simulation(&[1, 3]);
    assert!(seen.errors.is_empty() && seen.ready_ns == 0);
    let said = seen.hopeless.expect("two are missing");
    // Slots are filled in order, so the last ones are empty.
    assert!(said.starts_with("2 of 4 machines joined within 60 s; missing: 3, 4; no request was sent"), "{said}");
}

#[test]
fn two_thousand_machines_finish_despite_losses() {
    let seen = SimulatedNetwork::new(11, 2_000, 4, |index, _| match index % 100 {
        3 => WorkerFate::Killed(1_500 * MS),
        _ => WorkerFate::Well,
    })
    .run_simulation(&[]);
    assert_eq!((seen.done, seen.lost.len()), (1_980, 20));
    assert_same_totals(&seen.merged, &seen.whole);
}

/// A coordinator of a started run with this many machines; only the first has a part.
fn started_coordinator(machines: u32) -> Coordinator {
    let mut frames = vec![Vec::new(); machines as usize];
    frames[0] = vec![encode_frame(&CoordinatorMessage::Stop)];
    let mut coordinator =
        Coordinator::new(CoordinatorRules { machines, join: Duration::from_secs(60), loss: Duration::from_secs(5) });
    coordinator.handle_request(
        CoordinatorRequest::Prepare(WorkerJobs { frames, row: Duration::from_secs(1) }),
        Duration::ZERO,
    );
    for (peer, name) in (1..=machines).zip(["a", "b"]) {
        coordinator.join_worker(peer.into(), name, None, Duration::ZERO).unwrap();
    }
    coordinator.handle_message(1, WorkerMessage::Prepared(WorkerSetup::default()), Duration::ZERO);
    let mut number = 1;
    while !coordinator.told.iter().any(|told| matches!(told, CoordinatorEvent::Ready(..))) {
        coordinator.handle_message(1, WorkerMessage::Pong { number, clock_ns: 5 }, Duration::ZERO);
        number += 1;
    }
    coordinator.handle_request(CoordinatorRequest::Start(Duration::ZERO), Duration::ZERO);
    coordinator.told.clear();
    coordinator
}

#[test]
fn clock_drift_beyond_round_trips_is_reported() {
    // Before the run, messages take no time; during it, the round trip takes 4 ms.
    for (clock_ns, drift_ns) in [(2 * MS + 5, None), (MS / 2, None), (4 * MS + 6, Some(2 * MS as i64 + 1))] {
        let mut coordinator = started_coordinator(1);
        let ms = Duration::from_millis;
        coordinator.on_tick(ms(1_000));
        let number = coordinator.acts.iter().rev().find_map(|act| match act {
            ConnectionAction::Send(1, CoordinatorMessage::Ping(number)) => Some(*number),
            _ => None,
        });
        let clock_ns = 1_000 * MS + clock_ns;
        coordinator.handle_message(
            1,
            WorkerMessage::Pong { number: number.expect("it is pinged"), clock_ns },
            ms(1_004),
        );
        coordinator.handle_message(1, WorkerMessage::Done(Box::default()), ms(2_000));
        let said = coordinator.told.iter().find_map(|told| match told {
            CoordinatorEvent::Done(_, _, drift_ns) => Some(*drift_ns),
            _ => None,
        });
        assert_eq!(said, Some(drift_ns), "{clock_ns}");
    }
}

#[test]
fn idle_machines_are_not_lost() {
    let mut coordinator = started_coordinator(2);
    coordinator.lose_worker(2, "it has ended");
    assert!(coordinator.told.is_empty());
    let frames = vec![vec![encode_frame(&CoordinatorMessage::Stop)]; 2];
    coordinator.handle_request(
        CoordinatorRequest::Prepare(WorkerJobs { frames, row: Duration::from_secs(1) }),
        Duration::ZERO,
    );
    let said = coordinator.told.pop_front();
    assert!(
        matches!(said, Some(CoordinatorEvent::Hopeless(words, false)) if words == "machine 2 (b) was lost earlier")
    );
}

#[test]
fn silent_machines_are_lost_unless_receiving_files() {
    for (pieces, is_lost) in [(0, true), (1, false)] {
        let mut coordinator = Coordinator::new(CoordinatorRules {
            machines: 1,
            join: Duration::from_secs(60),
            loss: Duration::from_secs(5),
        });
        let frames = vec![(0..=pieces).map(|_| encode_frame(&CoordinatorMessage::Stop)).collect()];
        coordinator.handle_request(
            CoordinatorRequest::Prepare(WorkerJobs { frames, row: Duration::from_secs(1) }),
            Duration::ZERO,
        );
        coordinator.join_worker(1, "a", None, Duration::ZERO).unwrap();
        (1..=110).for_each(|tenths| coordinator.on_tick(Duration::from_millis(100 * tenths)));
        let said = coordinator
            .told
            .iter()
            .any(|told| matches!(told, CoordinatorEvent::Refused(why) if why.contains("no message for 5 s")));
        assert_eq!(said, is_lost, "{pieces}");
    }
}

#[test]
fn addresses_of_workers_are_bounded() {
    let mut coordinator =
        Coordinator::new(CoordinatorRules { machines: 1, join: Duration::from_secs(60), loss: Duration::from_secs(5) });
    let frames = vec![vec![encode_frame(&CoordinatorMessage::Stop)]];
    coordinator.handle_request(
        CoordinatorRequest::Prepare(WorkerJobs { frames, row: Duration::from_secs(1) }),
        Duration::ZERO,
    );
    coordinator.join_worker(1, "a", None, Duration::ZERO).unwrap();
    let addresses = vec!["127.0.0.1:1".parse().unwrap(); 100_000];
    coordinator.handle_message(
        1,
        WorkerMessage::Prepared(WorkerSetup { addresses, ..WorkerSetup::default() }),
        Duration::ZERO,
    );
    for number in 1..=20 {
        coordinator.handle_message(1, WorkerMessage::Pong { number, clock_ns: 5 }, Duration::ZERO);
    }
    let ready = coordinator.told.iter().find_map(|told| match told {
        CoordinatorEvent::Ready(prepared, _) => Some(prepared[0].0.addresses.len()),
        _ => None,
    });
    assert_eq!(ready, Some(256));
}

/// A failure of a kind that no failure with another code has.
fn failure_row(code: i32) -> onrush_stats::FailureRow {
    let example = Vec::new();
    onrush_stats::FailureRow {
        phase: Phase::Send,
        cause: Cause::Errno(code),
        count: 1,
        first_tenth: 0,
        last_tenth: 0,
        example,
    }
}

#[test]
fn inconsistent_messages_lose_the_worker() {
    let ready = || started_coordinator(1);
    let row = |number| WorkerMessage::Row { number, totals: Box::default() };
    let why = |coordinator: &mut Coordinator, report| {
        coordinator.handle_message(1, report, Duration::ZERO);
        match coordinator.told.pop_back() {
            Some(CoordinatorEvent::Lost(0, why)) => Some(why),
            _ => None,
        }
    };
    let mut coordinator = ready();
    assert_eq!(why(&mut coordinator, row(0)), None);
    assert_eq!(why(&mut coordinator, row(0)).unwrap(), "machine 1 (a): protocol error: unexpected row of measurements");
    assert_eq!(why(&mut coordinator, row(1)), None, "it is lost already");
    let mut flooded = ready();
    let flood = (0..30).find_map(|number| why(&mut flooded, row(number)));
    assert_eq!(flood.unwrap(), "machine 1 (a): protocol error: unexpected row of measurements");
    let mut late = ready();
    let totals = Box::new(Totals { until_ns: 1 << 62, ..Totals::default() });
    let said = why(&mut late, WorkerMessage::Row { number: 0, totals });
    assert_eq!(said.unwrap(), "machine 1 (a): protocol error: unexpected row of measurements");
    for row in [
        Totals { counters: Counters { bytes_received: u64::MAX - 7, ..Counters::default() }, ..Totals::default() },
        Totals {
            counters: Counters { failed: 1 << 62, abandoned: 3 << 62, ..Counters::default() },
            ..Totals::default()
        },
    ] {
        let said = why(&mut ready(), WorkerMessage::Row { number: 0, totals: Box::new(row) });
        assert_eq!(said.unwrap(), "machine 1 (a): protocol error: impossible figures");
    }
    let activity = Some(Activity { user_ns: u64::MAX, ..Activity::default() });
    let shares = vec![WorkerShare { connections: 1, counters: Counters::default(), activity }];
    let said = why(&mut ready(), WorkerMessage::Done(Box::new(Done { shares, ..Done::default() })));
    assert_eq!(said.unwrap(), "machine 1 (a): protocol error: impossible figures");
    // A ledger of 32 MiB that would take hours to add.
    let mut row = Totals::default();
    row.ledger.record(Phase::Send, Cause::Errno(1), 0, || vec![b'x'; 32 << 20]);
    let said = why(&mut ready(), WorkerMessage::Row { number: 0, totals: Box::new(row) });
    let kinds = "machine 1 (a): protocol error: too many kinds of errors, or an example that is too long";
    assert_eq!(said.unwrap(), kinds);
    let rows: Vec<_> = (0..1_000_000).map(failure_row).collect();
    let ledger = postcard::from_bytes(&postcard::to_stdvec(&rows).unwrap()).expect("a ledger is its rows");
    let begun = Instant::now();
    let row = Box::new(Totals { ledger, ..Totals::default() });
    assert_eq!(why(&mut ready(), WorkerMessage::Row { number: 0, totals: row }).unwrap(), kinds);
    assert!(begun.elapsed() < Duration::from_secs(30), "it is not added");
    let mut wrong = ready();
    let said = why(&mut wrong, WorkerMessage::Prepared(WorkerSetup::default()));
    assert_eq!(said.unwrap(), "machine 1 (a): protocol error: unexpected message");
}

#[test]
fn remote_error_codes_are_bounded_like_local_ones() {
    // The number is at the end of the encoded bytes.
    let read = |error: Error, number: u32| -> Error {
        let mut bytes = postcard::to_stdvec(&error).unwrap();
        bytes.pop();
        postcard::from_bytes(&postcard::to_extend(&number, bytes).unwrap()).unwrap()
    };
    let calm = Code::ENHANCE_YOUR_CALM;
    assert_eq!(read(Error::GoAway(Code::NO_ERROR), 11), Error::GoAway(calm));
    for error in [Error::GoAway(calm), Error::Reset(calm)] {
        assert_eq!(read(error, 77), read(error, u32::MAX), "{error}");
    }
}

/// A row with data in every part.
fn full_row() -> Totals {
    let mut row = Totals::default();
    for value in 1..2_000 {
        row.latency.record(value * 7_919);
        row.rates.record(value);
        row.open_loop.get_or_insert_default().scheduled.record(value * 8_000);
        row.phases.get_or_insert_default().ttfb.record(value * 900);
        row.by_class.get_or_insert_default().record(503, value * 10);
    }
    row.by_name.get_or_insert_default().record_failure(3);
    row.statuses.record(200);
    row.ledger.record(Phase::Connect, Cause::Tls(TlsFailure::Alert(7)), 5, || b"x".to_vec());
    row.location = Some("/".to_owned());
    row
}

#[test]
fn rows_round_trip_and_bad_bytes_fail() {
    let row = full_row();
    let sent = encode_frame(&WorkerMessage::Row { number: 7, totals: Box::new(row.clone()) });
    let bytes = &sent[4..];
    assert!(bytes.len() < 60_000, "{}", bytes.len());
    let Ok(WorkerMessage::Row { number: 7, totals }) = postcard::from_bytes(bytes) else { panic!("it is read") };
    assert_same_totals(&totals, &row);
    assert_eq!((&totals.ledger, &totals.statuses, &totals.location), (&row.ledger, &row.statuses, &row.location));
    let mut random = Random::new(3);
    let mut read = 0;
    for _ in 0..3_000 {
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + random.next() % 4 {
            let at = (random.next() % bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        bytes.truncate((random.next() % (2 * bytes.len() as u64)) as usize);
        if let Ok(WorkerMessage::Row { totals, .. }) = postcard::from_bytes::<WorkerMessage>(&bytes) {
            read += 1;
            let Totals { latency, rates, .. } = &*totals;
            for it in [latency, rates] {
                assert!(it.stdev() >= 0.0 && it.percentile(99.0) <= it.max().unwrap_or_default());
                assert!(it.mean().is_none_or(|mean| mean >= it.min().unwrap_or_default() as f64));
            }
        }
    }
    assert!(read > 0, "some changes make another row");
}

#[test]
fn strangers_cannot_dismiss_workers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let refuse = |refusal: JoinRefusal| {
        let joins = {
            let address = address.clone();
            std::thread::spawn(move || {
                let scratch = tempfile::tempdir().unwrap();
                let token = Token::read_or_make(&scratch.path().join("token")).unwrap();
                let patience = Duration::from_secs(20);
                let joining = Joining {
                    coordinator: &address,
                    token: &token,
                    index: None,
                    name: "a",
                    patience,
                    waiting: &|_| (),
                };
                joining.join(&Interrupt::default()).err().unwrap().to_string()
            })
        };
        let mut channel =
            Channel::to_worker(listener.accept().unwrap().0, &CoordinatorCertificate::new().unwrap(), UNPROVEN_MAX)
                .unwrap();
        while channel.receive_message::<Hello>().unwrap().is_none() {
            channel.pump_bytes().unwrap();
        }
        channel.send_message(&Welcome::Refused { refusal, proof: [7; 32] });
        while !joins.is_finished() {
            let _ = channel.pump_bytes();
        }
        joins.join().unwrap()
    };
    for refusal in [JoinRefusal::Begun, JoinRefusal::TooMany(3)] {
        let said = refuse(refusal);
        assert!(said.ends_with("the coordinator does not know the secret in --token-file"), "{said}");
    }
    // A coordinator with another secret cannot prove anything.
    assert!(refuse(JoinRefusal::Secret).ends_with("the secrets differ; use the same --token-file on both machines"));
}

#[test]
fn closed_coordinator_connections_are_retried() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let closes = std::thread::spawn(move || listener.incoming().take(3).count());
    let scratch = tempfile::tempdir().unwrap();
    let token = Token::read_or_make(&scratch.path().join("token")).unwrap();
    let waits = std::cell::RefCell::new(Vec::new());
    let waiting = |words: &str| waits.borrow_mut().push(words.to_owned());
    let patience = Duration::from_secs(2);
    let joining = Joining { coordinator: &address, token: &token, index: None, name: "a", patience, waiting: &waiting };
    let begun = Instant::now();
    let said = joining.join(&Interrupt::default()).err().unwrap().to_string();
    // The third peer also closed the port.
    assert!(begun.elapsed() < Duration::from_secs(30) && said.contains("Connection refused"), "{said}");
    assert_eq!((closes.join().unwrap(), waits.borrow().len()), (3, 1));
}

#[test]
fn silent_strangers_make_room_and_are_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let token = Token::read_or_make(&scratch.path().join("token")).unwrap();
    let rules = CoordinatorRules { machines: 1, join: Duration::from_millis(10), loss: Duration::from_secs(5) };
    let server = CoordinatorServer::open("127.0.0.1:0".parse().unwrap(), token, rules).unwrap();
    let strangers: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    // There is room for 18. No other rule closes a connection so early.
    let (mut first, began) = (&strangers[0], Instant::now());
    assert_eq!(first.read(&mut [0]).unwrap_or_default(), 0);
    assert!(began.elapsed() < Duration::from_secs(4));
    let mut second = &strangers[1];
    assert_eq!(second.read(&mut [0]).unwrap_or_default(), 0);
    server.send_request(CoordinatorRequest::Prepare(WorkerJobs {
        frames: vec![Vec::new()],
        row: Duration::from_secs(1),
    }));
    let said = loop {
        match server.next_event(Duration::from_secs(5)) {
            Some(CoordinatorEvent::Hopeless(words, _)) => break words,
            Some(_) => {}
            None => panic!("nothing was said"),
        }
    };
    assert!(said.contains("; 2 connections without the secret made room for others; no request"), "{said}");
}
