//! Number of connections: constant, growing while due requests wait, and over time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_plan::ConnectionLevels;
use onrush_plan::Partition;
use onrush_plan::levels::ConnectionLevel;
use onrush_stats::Occupancy;
use rustix::io::Errno;

use super::pacing::{Noting, assert_accounted, every, open_loop};
use super::*;
use crate::backend::Sim;
use crate::backend::sim::{Act, Action, Peer};
use crate::timers::LOOK_NS;

/// Change in the number of open connections, by time.
type Changes = Rc<RefCell<BTreeMap<u64, i64>>>;

/// Servers that respond after a time and record the number of connections.
struct Counting {
    latency_ns: u64,
    connect_ns: u64,
    changes: Changes,
}

struct Counted {
    peer: Noting,
    changes: Changes,
    now: u64,
}

impl Network for Counting {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        let (at, changes) = (now + self.connect_ns, Rc::clone(&self.changes));
        *changes.borrow_mut().entry(at.0).or_default() += 1;
        let peer = Noting { latency_ns: self.latency_ns, not_before: Nanos::default(), asked: Rc::default() };
        (at, Ok(Box::new(Counted { peer, changes, now: at.0 })))
    }
}

impl Peer for Counted {
    fn receive(&mut self, now: Nanos, bytes: &[u8], actions: &mut Vec<Action>) {
        self.now = now.0;
        self.peer.receive(now, bytes, actions);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // The connection is closed with the response to its last request.
        *self.changes.borrow_mut().entry(self.now + self.peer.latency_ns).or_default() -= 1;
    }
}

/// The number of connections from each moment on, in milliseconds.
fn over_time(changes: &Changes) -> Vec<(u64, i64)> {
    let mut count = 0;
    let sum = |(at, change): (&u64, &i64)| {
        count += change;
        (at / MS, count)
    };
    changes.borrow().iter().map(sum).collect()
}

fn run(config: Config, pacer: Pacer, latency_ns: u64, connect_ns: u64) -> (Ran, Vec<(u64, i64)>) {
    let changes = Changes::default();
    let network = Box::new(Counting { latency_ns, connect_ns, changes: Rc::clone(&changes) });
    let ran = run_job(config, network, Job { pacer, ..job(get(), http1(1)) });
    assert_conserved(&ran.totals);
    (ran, over_time(&changes))
}

fn levels(stages: &[(u64, u32, u32)]) -> Demand {
    let stage = |&(length_ms, from, to): &(u64, u32, u32)| ConnectionLevel {
        length: Duration::from_millis(length_ms),
        from,
        to,
    };
    Demand::Staged(ConnectionLevels { stages: stages.iter().map(stage).collect(), part: Partition::WHOLE })
}

#[test]
fn due_requests_limit_new_connections() {
    // One request per millisecond with a response after 20 ms takes 20 connections.
    for (most, expected) in [(100, 20), (12, 12)] {
        let config = Config { max_inflight: most, demand: Demand::Growing(2), ..open_loop(OpenLoop::default()) };
        let (Ran { totals, .. }, there) = run(config, every(MS, None), 20 * MS, 0);
        assert_accounted(&totals);
        assert_eq!(totals.counters.slots_opened, expected, "{there:?}");
        let open_loop = totals.open_loop.as_deref().unwrap();
        assert_eq!(
            (open_loop.late > 0, open_loop.unsent > 0, open_loop.all_busy_ns > 0),
            (most == 12, most == 12, most == 12)
        );
    }
}

#[test]
fn batches_count_each_request_in_flight() {
    let changes = Changes::default();
    let network = Box::new(Counting { latency_ns: 20 * MS, connect_ns: 0, changes: Rc::clone(&changes) });
    let config = Config {
        max_inflight: 10,
        in_flight_max: Some(10),
        demand: Demand::Growing(1),
        ..open_loop(OpenLoop::default())
    };
    let source = Box::new(Repeated(vec![get(); 4]));
    let ran = run_job(config, network, Job { source, pacer: every(MS, None), ..job(get(), http1(4)) });
    assert_conserved(&ran.totals);
    // Three batches would be twelve.
    assert_eq!(ran.totals.counters.slots_opened, 2);
    let in_flight = ran.totals.counters.occupancy.in_flight_ns as f64 / ran.end.elapsed_ns as f64;
    assert!((7.0..=8.0).contains(&in_flight), "{in_flight}");
}

#[test]
fn connections_at_most_double_per_connect_time() {
    let config = Config { max_inflight: 100, demand: Demand::Growing(2), ..open_loop(OpenLoop::default()) };
    let (Ran { totals, .. }, there) = run(config, every(MS, None), 50 * MS, 50 * MS);
    assert_accounted(&totals);
    let at = |ms: u64| there.iter().take_while(|(at, _)| *at <= ms).last().map_or(0, |(_, count)| *count);
    // The first connection finds a working address, and the second follows.
    assert_eq!([at(50), at(100)], [1, 2], "{there:?}");
    for (before, after) in [(100, 150), (150, 200), (200, 250), (250, 300)] {
        assert!(at(after) > at(before) && at(after) <= 2 * at(before), "{there:?}");
    }
    assert!((50..=100).contains(&totals.counters.slots_opened), "{there:?}");
}

/// A server that responds to one request at a time, over all connections.
struct OneByOne {
    service_ns: u64,
    free_at: Rc<Cell<Nanos>>,
}

impl Network for OneByOne {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        (now, Ok(Box::new(Self { free_at: Rc::clone(&self.free_at), ..*self })))
    }
}

impl Peer for OneByOne {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        let at = self.free_at.get().max(now) + self.service_ns;
        self.free_at.set(at);
        actions.push(Action { at, act: Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()) });
    }
}

#[test]
fn calm_latency_reveals_a_slower_target() {
    let quickness = |network: Box<dyn Network>| {
        let config = Config { max_inflight: 10, ..open_loop(OpenLoop::default()) };
        let ran = run_job(config, network, Job { pacer: every(MS / 2, None), ..job(get(), http1(1)) });
        let open_loop = ran.totals.open_loop.as_deref().unwrap();
        // The first half of the connections, as long as the other half is free.
        assert_eq!((open_loop.calm, open_loop.calm_in_flight), (5, 1 + 2 + 3 + 4 + 5));
        assert!(open_loop.all_busy_ns > 900 * MS, "{}", open_loop.all_busy_ns);
        (open_loop.calm_ns / open_loop.calm / MS, (ran.totals.latency.mean().unwrap() / MS as f64).round() as u64)
    };
    assert_eq!(quickness(Box::new(OneByOne { service_ns: 4 * MS, free_at: Rc::default() })), (11, 39));
    let noting = Noting { latency_ns: 40 * MS, not_before: Nanos::default(), asked: Rc::default() };
    assert_eq!(quickness(Box::new(noting)), (40, 40));
}

#[test]
fn refusing_targets_get_no_further_connections() {
    let refuses = "refuse = [{ from_s = 0.1, for_s = 0.5 }]\nlatency_us = 1000\nclose = true\n\
                   answer = \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let config = Config { max_inflight: 1_000, demand: Demand::Growing(3), ..open_loop(OpenLoop::default()) };
    let scenario: Scenario = toml::from_str(refuses).unwrap();
    let ran = run_job(config, scenario.network(1), Job { pacer: every(MS, None), ..job(get(), http1(1)) });
    assert_accounted(&ran.totals);
    let refused = ran.totals.ledger.totals().connect;
    assert!((10..200).contains(&refused), "{refused}");
}

#[test]
fn stages_open_and_close_connections_evenly() {
    let stages = levels(&[(200, 2, 2), (400, 2, 6), (400, 4, 0)]);
    let config = Config { max_inflight: 6, demand: stages, ..config() };
    let (Ran { totals, end }, there) = run(config, Pacer::Closed, 10 * MS, 0);
    // Each connection closes when its response has arrived, up to 10 ms later.
    let expected = [(0, 2), (250, 3), (350, 4), (450, 5), (550, 6), (600, 4), (650, 3), (750, 2), (850, 1), (950, 0)];
    for (from, count) in expected {
        let reached = there.iter().find(|(at, there)| *at >= from && *there == count);
        assert!(reached.is_some_and(|(at, _)| *at <= from + 10), "{count} at {from} ms: {there:?}");
    }
    assert_eq!(there.iter().map(|(_, count)| *count).max(), Some(6));
    let counters = &totals.counters;
    assert_eq!((counters.slots_opened, counters.failed, counters.open_at_end), (6, 0, 0));
    let occupancy = counters.occupancy;
    let open_s = occupancy.open_ns as f64 / 1e9;
    assert!((2.8..=2.861).contains(&open_s), "0.4 + 1.6 + 0.8, and up to 10 ms for each of six: {occupancy:?}");
    let all_ns = occupancy.open_ns + occupancy.connecting_ns + occupancy.absent_ns + occupancy.done_ns;
    assert_eq!(all_ns, 6 * end.elapsed_ns, "{occupancy:?}");
}

#[test]
fn stages_may_be_without_connections() {
    let stages = levels(&[(100, 0, 0), (100, 3, 3), (100, 0, 0), (100, 0, 2), (600, 1, 1)]);
    let config = Config { max_inflight: 3, demand: stages, ..config() };
    let (Ran { totals, .. }, there) = run(config, Pacer::Closed, 10 * MS, 0);
    let at = |ms: u64| there.iter().take_while(|(at, _)| *at <= ms).last().map_or(0, |(_, count)| *count);
    assert_eq!([99, 150, 250, 330, 390, 500].map(at), [0, 3, 0, 1, 2, 1], "{there:?}");
    assert_eq!(totals.counters.failed, 0);
}

#[test]
fn workers_are_idle_until_their_first_connection() {
    let seen = |stages: &[(u64, u32, u32)]| {
        let config = Config { demand: levels(stages), ..config() };
        let noting = Noting { latency_ns: 10 * MS, not_before: Nanos::default(), asked: Rc::default() };
        let (backend, link) = (Sim::new(1, Box::new(noting)), Arc::new(WorkerLink::default()));
        let job = job(get(), http1(1));
        let mut engine = Engine::new(config, backend, job, Arc::default(), Arc::clone(&link));
        assert!(!link.is_idle(), "unknown before it begins");
        engine.begin_run(Instant::now());
        let mut seen = vec![link.is_idle()];
        while engine.take_turn().is_none() {
            seen.push(link.is_idle());
        }
        seen.dedup();
        seen
    };
    assert_eq!(seen(&[(1_000, 1, 1)]), [false]);
    assert_eq!(seen(&[(1_000, 0, 0)]), [true]);
    assert_eq!(seen(&[(100, 0, 0), (100, 1, 1), (800, 0, 0)]), [true, false]);
}

#[test]
fn warm_up_uses_first_stage_connections() {
    let stages = levels(&[(200, 2, 2), (200, 5, 5)]);
    let warm = Config { max_inflight: 5, demand: stages, warmup_ns: 300 * MS, duration_ns: Some(400 * MS), ..config() };
    let (Ran { totals, .. }, there) = run(warm, Pacer::Closed, 10 * MS, 0);
    let at = |ms: u64| there.iter().take_while(|(at, _)| *at <= ms).last().map_or(0, |(_, count)| *count);
    assert_eq!([200, 499, 500].map(at), [2, 2, 5], "{there:?}");
    assert_eq!(totals.counters.slots_opened, 5);
}

#[test]
fn many_connections_are_closed_in_portions() {
    let stages = levels(&[(500, 1_000, 1_000), (500, 0, 0)]);
    let config = Config { max_inflight: 1_000, demand: stages, ..config() };
    let (Ran { totals, .. }, there) = run(config, Pacer::Closed, 100 * MS, 0);
    assert_eq!(there.last().map(|(at, count)| (*at < 610, *count)), Some((true, 0)), "{there:?}");
    assert_eq!((totals.counters.slots_opened, totals.counters.open_at_end, totals.counters.failed), (1_000, 0, 0));
}

/// An engine with six connections that each get a response every 10 ms.
fn limited(config: Config) -> (Box<Engine<Sim>>, Arc<Control>, Arc<WorkerLink>) {
    let config = Config { max_inflight: 6, ..config };
    let backend = Sim::new(6, Box::new(Counting { latency_ns: 10 * MS, connect_ns: 0, changes: Changes::default() }));
    let (control, link) = (Arc::new(Control::new(1)), Arc::new(WorkerLink::default()));
    let mut engine =
        Box::new(Engine::new(config, backend, job(get(), http1(1)), Arc::clone(&control), Arc::clone(&link)));
    engine.begin_run(Instant::now());
    (engine, control, link)
}

#[test]
fn in_flight_limits_close_no_connection() {
    let (mut engine, _, link) = limited(config());
    for (until_ms, count) in [(200, 4), (400, 3), (500, 6)] {
        link.set_in_flight_limit(count, 1);
        let Advanced::Running(running) = engine.run_past(Nanos(until_ms * MS)) else { panic!("it lasts a second") };
        engine = running;
    }
    link.set_in_flight_limit(4, 1);
    let Advanced::Ended(end, None) = engine.run_past(Nanos::MAX) else { panic!("it does not stay") };
    let mut totals = Totals::default();
    link.mailbox.collect(|interval| totals += interval);
    totals += &*end.interval;
    assert_eq!(totals.counters.connects, 6, "each is opened once");
    // A response every 10 ms for each connection, and up to one more where a connection may send again.
    let least = 20 * 4 + 20 * 3 + 10 * 6 + 50 * 4;
    assert!((least - 6..=least + 6).contains(&totals.counters.completed), "{} {least}", totals.counters.completed);
    let in_flight_s = totals.counters.occupancy.in_flight_ns as f64 / 1e9;
    assert!((3.95..=4.15).contains(&in_flight_s), "0.8 + 0.6 + 0.6 + 2.0, and the rest of a response: {in_flight_s}");
}

#[test]
fn staying_workers_continue_after_results() {
    let run = |config: Config| {
        let (engine, control, link) = limited(config);
        let Advanced::Ended(end, Some(mut engine)) = engine.run_past(Nanos::MAX) else { panic!("it stays") };
        let (mut of_run, mut totals) = (Totals::default(), Totals::default());
        link.mailbox.collect(|interval| of_run += interval);
        of_run += &*end.interval;
        let mut per_phase = Vec::new();
        for limit in [6, 3, 0, 6] {
            link.set_in_flight_limit(limit, 1);
            let (completed, begun) = (totals.counters.completed, engine.roster.backend.now());
            for look in 1..=20 {
                let Advanced::Running(running) = engine.run_past(begun + look * LOOK_NS) else {
                    panic!("nobody stopped it")
                };
                engine = running;
                link.mailbox.collect(|interval| totals += interval);
            }
            per_phase.push((totals.counters.completed - completed, link.in_flight()));
        }
        control.stop();
        let Advanced::Left(stayed) = engine.run_past(Nanos::MAX) else { panic!("it was stopped") };
        assert_eq!((stayed.stalled_ns, totals.counters.failed, totals.counters.connects), (0, 0, 0));
        (of_run.counters, per_phase)
    };
    // Ten milliseconds per response, two hundred per limit; requests in flight get their responses first.
    let near = |per_phase: Vec<(u64, u64)>| {
        for ((completed, open), expected) in per_phase.into_iter().zip([(120, 6), (63, 3), (3, 0), (114, 6)]) {
            assert!(completed.abs_diff(expected.0) <= 20 && open == expected.1, "{completed} {open} {expected:?}");
        }
    };
    let (before, per_phase) = run(Config { stays: true, ..config() });
    assert_eq!((before.failed, before.open_at_end), (0, 6));
    near(per_phase);
    let (before, per_phase) = run(Config { stays: true, requests: Some(100), ..config() });
    assert_eq!((before.started, before.open_at_end), (100, 0));
    near(per_phase);
}

#[test]
fn unneeded_slots_exist_only_in_accounts() {
    for (demand, first, stand_ins) in [
        (Demand::Growing(2), 2, 0),
        (Demand::Growing(2), 2, 3),
        (levels(&[(900, 3, 3), (100, 6, 6)]), 3, 2),
        (Demand::All, 50, 4),
    ] {
        let config = Config { max_inflight: 50, stand_ins, demand, duration_ns: Some(SECOND), ..config() };
        let noting = Noting { latency_ns: 10 * MS, not_before: Nanos::default(), asked: Rc::default() };
        let (backend, link) = (Sim::new(60, Box::new(noting)), Arc::new(WorkerLink::default()));
        let engine = Engine::new(config, backend, job(get(), http1(1)), Arc::default(), Arc::clone(&link));
        assert_eq!(engine.roster.slots.len() as u32, first + stand_ins);
        let (end, _) = engine.run(Instant::now());
        let mut totals = Totals::default();
        link.mailbox.collect(|interval| totals += interval);
        totals += &*end.interval;
        let Occupancy { open_ns, connecting_ns, waiting_ns, absent_ns, done_ns, .. } = totals.counters.occupancy;
        let all_ns = open_ns + connecting_ns + waiting_ns + absent_ns + done_ns;
        assert_eq!(
            all_ns - totals.counters.occupancy.finished_ns,
            50 * end.elapsed_ns,
            "{:?}",
            totals.counters.occupancy
        );
    }
}

#[test]
fn late_responses_belong_to_the_staying_worker() {
    let config = Config { max_inflight: 6, stays: true, ..config() };
    let scenario: Scenario =
        toml::from_str("latency_us = 10000.0\n[[generator_stall]]\nfrom_s = 0.985\nfor_s = 0.05").unwrap();
    let backend = Sim::new(6, scenario.network(1));
    let (control, link) = (Arc::new(Control::new(1)), Arc::new(WorkerLink::default()));
    let mut engine = Box::new(Engine::new(config, backend, job(get(), http1(1)), control, Arc::clone(&link)));
    engine.begin_run(Instant::now());
    let Advanced::Ended(end, Some(engine)) = engine.run_past(Nanos::MAX) else { panic!("it stays") };
    assert_eq!((end.elapsed_ns, end.interval.until_ns), (SECOND, SECOND));
    link.mailbox.collect(|_| ());
    link.set_in_flight_limit(6, 1);
    let (mut engine, mut totals) = (engine, Totals::default());
    for look in 1..=100 {
        let Advanced::Running(running) = engine.run_past(Nanos(SECOND) + look * LOOK_NS) else {
            panic!("nobody stopped it")
        };
        engine = running;
        link.mailbox.collect(|interval| totals += interval);
    }
    let completed = totals.counters.completed;
    // A response every 10 ms for each of six, except for the rest of the stall.
    assert!((540..=606).contains(&completed), "a connection waits for a response that was lost: {completed}");
}
