//! Scheduled requests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use onrush_plan::schedule::{Arrivals, CatchUp, Dues, Rate, ScheduleSpan, Stage};
use onrush_plan::{Partition, Schedule, fixtures};
use onrush_stats::Gap;
use onrush_stats::silences::common_gaps;
use rustix::io::Errno;

use super::*;
use crate::backend::sim::{Act, Action, Peer};
use crate::backend::thread_cpu_ns;

/// A request every `step_ns` nanoseconds, from zero on; a batch takes the due times of all its requests.
pub fn every(step_ns: u64, catch_up: Option<CatchUp>) -> Pacer {
    Pacer::Scheduled(Scheduled::new(dues(step_ns, ScheduleSpan::default()), catch_up, 0))
}

/// A request every `step_ns` nanoseconds, from zero on.
fn dues(step_ns: u64, span: ScheduleSpan) -> Dues {
    let minute_ns = 60 * SECOND;
    assert!(minute_ns.is_multiple_of(step_ns), "a minute is a multiple");
    let rate = Rate::from_per_minute(minute_ns / step_ns).unwrap();
    let (arrivals, stages) = (Arrivals::Uniform, vec![Stage::open_ended(rate)]);
    let schedule =
        Schedule { arrivals, stages, part: Partition::WHOLE, catch_up: None, max_late: None, send_slice: None };
    schedule.dues(Partition::WHOLE, span, 1)
}

/// Servers that respond after `latency_ns`, but not before a given moment, and record the arrivals of requests.
pub(super) struct Noting {
    pub latency_ns: u64,
    pub not_before: Nanos,
    pub asked: Rc<RefCell<Vec<u64>>>,
}

impl Network for Noting {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        (now, Ok(Box::new(Self { asked: Rc::clone(&self.asked), ..*self })))
    }
}

impl Peer for Noting {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        self.asked.borrow_mut().push(now.0);
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
        actions.push(Action { at: (now + self.latency_ns).max(self.not_before), act: Act::Send(answer) });
    }
}

/// Rules under which latencies count from due times.
pub(super) fn open_loop(rules: OpenLoop) -> Config {
    let rules = OpenLoop { late_ns: MS + rules.slice_ns, ..rules };
    Config { rules: Rules { open_loop: Some(rules), ..config().rules }, ..config() }
}

/// Checks that every due request was sent, dropped, or is unsent at the end.
pub(super) fn assert_accounted(totals: &Totals) {
    let open_loop = totals.open_loop.as_deref().expect("there is a schedule");
    let counters = &totals.counters;
    let accounted = counters.started + open_loop.dropped + open_loop.unsent;
    assert_eq!(open_loop.due + open_loop.carried, accounted, "{counters:?}");
    assert_eq!(open_loop.lateness.count(), counters.started);
    assert_eq!(open_loop.scheduled.count(), counters.completed);
    let unanswered = counters.abandoned + counters.open_at_end + open_loop.dropped + open_loop.unsent;
    assert_eq!(open_loop.censored.count(), unanswered);
}

/// Sends a request to a scenario every `step_ns`.
fn run_scenario(config: Config, step_ns: u64, scenario: &str) -> Totals {
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is valid");
    let pacer = every(step_ns, None);
    let ran = run_job(config, scenario.network(1), Job { pacer, ..job(get(), http1(1)) });
    assert_conserved(&ran.totals);
    assert_accounted(&ran.totals);
    ran.totals
}

/// Sends a request every `step_ns`. Returns the measurements and the arrivals of the requests.
fn run(config: Config, step_ns: u64, latency_ns: u64) -> (Ran, Vec<u64>) {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns, not_before: Nanos::default(), asked: Rc::clone(&asked) };
    let pacer = every(step_ns, None);
    let ran = run_job(config, Box::new(network), Job { pacer, ..job(get(), http1(1)) });
    assert_conserved(&ran.totals);
    (ran, asked.take())
}

#[test]
fn due_requests_start_on_any_ready_connection() {
    let ten = Config { max_inflight: 10, ..open_loop(OpenLoop::default()) };
    let (ran, asked) = run(ten, 9_765_625, 30 * MS);
    let expected: Vec<u64> = (0..).map(|k| k * 9_765_625).take_while(|&at| at < SECOND).collect();
    assert_eq!(asked, expected);
    assert_eq!((ran.totals.latency.min(), ran.totals.latency.max()), (Some(30 * MS), Some(30 * MS)));
    let activity = ran.totals.activity;
    assert_eq!((activity.submissions, activity.lateness_max_ns), (expected.len() as u64, 0));
}

#[test]
fn requests_without_ready_connections_start_late() {
    // One connection serves a hundred requests a second, and two hundred are due.
    let (ran, asked) = run(Config { duration_ns: Some(995 * MS), ..open_loop(OpenLoop::default()) }, 5 * MS, 10 * MS);
    assert_eq!(asked, (0..100).map(|k| k * 10 * MS).collect::<Vec<_>>());
    let activity = ran.totals.activity;
    assert_eq!(activity.lateness_max_ns, 99 * 5 * MS, "the hundredth was due at 495 ms and sent at 990 ms");
    assert_eq!(activity.lateness_sum_ns, (0..100).map(|k| k * 5 * MS).sum::<u64>());
}

#[test]
fn lost_ready_connections_are_replaced() {
    let scenario: Scenario = toml::from_str("connect_us = 0.0\nlatency_us = 1000.0\nclose = true").unwrap();
    let pacer = every(10 * MS, None);
    let three = Config { max_inflight: 3, duration_ns: Some(995 * MS), ..open_loop(OpenLoop::default()) };
    let ran = run_job(three, scenario.network(1), Job { pacer, ..job(get(), http1(1)) });
    let counters = ran.totals.counters;
    assert_eq!((counters.started, counters.completed, counters.failed), (100, 100, 0));
    assert!(counters.connects >= 99, "{counters:?}");
}

#[test]
fn script_pauses_delay_due_requests() {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns: MS, not_before: Nanos::default(), asked: Rc::clone(&asked) };
    let pacer = every(10 * MS, None);
    let callbacks = Callbacks { think_ns: Some(Box::new(|| Ok(Some(25 * MS)))), ..Callbacks::default() };
    let four = Config { requests: Some(4), duration_ns: None, ..open_loop(OpenLoop::default()) };
    run_job(four, Box::new(network), Job { pacer, callbacks, ..job(get(), http1(1)) });
    assert_eq!(asked.take(), [25, 51, 77, 103].map(|ms| ms * MS));
}

#[test]
fn stalls_count_in_all_due_requests() {
    // 1,000 requests a second for 100 s over 100 connections, responses after 10 µs, except for 10 s in the middle.
    let long = Config {
        max_inflight: 100,
        duration_ns: Some(100 * SECOND - 1),
        give_up_ns: None,
        ..open_loop(OpenLoop::default())
    };
    let stall = "connect_us = 0.0\nlatency_us = 10.0\n[[stall]]\nfrom_s = 45.0\nfor_s = 10.0";
    let totals = run_scenario(long, MS, stall);
    let scheduled = &totals.open_loop.as_deref().unwrap().scheduled;
    assert_eq!(totals.counters.completed, 100_000);
    let at = |percentile: f64| scheduled.percentile(percentile) as f64;
    // A tenth of all requests were due during the stall. Each waited for the rest of the stall: evenly distributed.
    for (percentile, seconds) in [(95.0, 5.0), (99.0, 9.0), (99.9, 9.9), (100.0, 10.0)] {
        let expected = seconds * SECOND as f64;
        assert!((at(percentile) - expected).abs() < 0.002 * expected, "p{percentile}: {}", at(percentile));
    }
    assert!(at(50.0) < 11_000.0 && at(89.0) < 11_000.0, "{}", at(50.0));
    // The service latency alone shows the stall once per connection.
    assert_eq!(totals.latency.values().filter(|&(ns, _)| ns > SECOND).map(|(_, count)| count).sum::<u64>(), 100);
}

#[test]
fn silences_require_requests_in_flight() {
    let five_seconds = || Config { duration_ns: Some(5 * SECOND - 1), ..open_loop(OpenLoop::default()) };
    let silences = |scenario: &str| {
        let scenario: Scenario = toml::from_str(scenario).unwrap();
        let end =
            run_job(five_seconds(), scenario.network(1), Job { pacer: every(SECOND, None), ..job(get(), http1(1)) })
                .end;
        let silences = common_gaps(&end.silences, &end.awaited);
        silences.iter().map(|gap: &Gap| (gap.from_ns / MS, gap.until_ns / MS)).collect::<Vec<_>>()
    };
    let quick = "connect_us = 0.0\nlatency_us = 10.0";
    assert_eq!(silences(quick), [], "a request a second is no silence");
    let stall = |from: &str, seconds: &str| format!("{quick}\n[[stall]]\nfrom_s = {from}\nfor_s = {seconds}");
    // One request is due at the beginning of the second second, not before.
    assert_eq!(silences(&stall("0.5", "1.0")), [(1_000, 1_500)]);
    assert_eq!(silences(&stall("3.5", "9.0")), [(4_000, u64::MAX / MS)]);
}

#[test]
fn unconnected_requests_await_responses_from_due_time() {
    // Every response ends its connection, and for a while no connect succeeds after that.
    let down = |from_s: f64, for_s: f64| {
        let quick = "connect_us = 0.0\nlatency_us = 10.0\nclose = true";
        format!("{quick}\n[[refuse]]\nfrom_s = {from_s:.3}\nfor_s = {for_s:.3}")
    };
    let silences = |max_late_ns: Option<u64>, pause_ns: u64, scenario: &str| {
        let rules = OpenLoop { max_late_ns, ..OpenLoop::default() };
        let config = Config { duration_ns: Some(5 * SECOND - 1), ..open_loop(rules) };
        let scenario: Scenario = toml::from_str(scenario).unwrap();
        let think_ns = (pause_ns > 0).then(|| Box::new(move || Ok(Some(pause_ns))) as Box<_>);
        let callbacks = Callbacks { think_ns, ..Callbacks::default() };
        let job = Job { pacer: every(50 * MS, None), callbacks, ..job(get(), http1(1)) };
        let end = run_job(config, scenario.network(1), job).end;
        let silences = common_gaps(&end.silences, &end.awaited);
        silences.iter().map(|gap: &Gap| (gap.from_ns / MS, gap.until_ns / MS)).collect::<Vec<_>>()
    };
    for max_late_ns in [None, Some(100 * MS), Some(1)] {
        let [outage] = silences(max_late_ns, 0, &down(1.01, 2.0))[..] else { panic!("{max_late_ns:?}: not one") };
        assert!(outage.0 == 1_100 && (3_010..3_400).contains(&outage.1), "{max_late_ns:?}: {outage:?}");
        assert_eq!(silences(max_late_ns, 0, &down(3.01, 9.0)), [(3_100, u64::MAX / MS)], "{max_late_ns:?}");
    }
    assert_eq!(silences(None, SECOND, &down(9.0, 1.0)), [], "the script makes them wait");
}

#[test]
fn only_overly_late_requests_are_dropped() {
    let rules = OpenLoop { max_late_ns: Some(500 * MS), ..OpenLoop::default() };
    let one = Config { duration_ns: Some(9_995 * MS), give_up_ns: None, ..open_loop(rules) };
    let totals = run_scenario(one, 10 * MS, "connect_us = 0.0\n[[stall]]\nfrom_s = 3.0\nfor_s = 2.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    assert_eq!((open_loop.due, open_loop.unsent), (1_000, 0));
    // One request waits for the server. Of the 199 requests due after it, the last 50 were due less than 500 ms ago.
    assert!((149..=151).contains(&open_loop.dropped), "{}", open_loop.dropped);
    // The requests are sent a millisecond apart, while a few more become due.
    assert!((50..=60).contains(&open_loop.late), "{}", open_loop.late);
    assert!(open_loop.lateness.max().unwrap() <= 500 * MS);
}

#[test]
fn unsent_requests_are_counted_with_their_age() {
    let totals = run_scenario(open_loop(OpenLoop::default()), 10 * MS, "connect_us = 0.0\nlatency_us = 100000.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    // A connection that takes 100 ms per request, with a request due every 10 ms.
    assert_eq!((open_loop.due, open_loop.late, totals.counters.started), (100, 10, 11));
    assert_eq!((open_loop.unsent, open_loop.censored.count()), (89, 90));
    assert_eq!(open_loop.censored.max(), Some(900 * MS));
}

/// Batches of two on a server that responds only to the first request of a connection. Reconnecting takes longer than
/// the run.
fn given_back(rules: OpenLoop) -> Totals {
    let config = Config { depth: 2, requests: Some(6), duration_ns: Some(100 * MS), ..open_loop(rules) };
    let scenario = "connect_us = 0.0\nclose = true\nanswer = \"HTTP/1.0 200 OK\\r\\n\\r\\n\"\n[[refuse]]\nfrom_s = 0.0005\nfor_s = 9.0";
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is valid");
    let source = Box::new(Repeated(vec![get(), get()]));
    let pacer = every(10 * MS, None);
    let ran = run_job(config, scenario.network(1), Job { source, pacer, ..job(get(), http1(2)) });
    assert_conserved(&ran.totals);
    assert_accounted(&ran.totals);
    ran.totals
}

#[test]
fn returned_unsent_requests_are_due_once() {
    let totals = given_back(OpenLoop::default());
    let open_loop = totals.open_loop.as_deref().unwrap();
    assert_eq!((totals.counters.completed, totals.counters.returned, totals.counters.open_at_end), (1, 1, 1));
    assert_eq!((open_loop.due, totals.counters.started, open_loop.unsent), (6, 2, 4));
}

#[test]
fn returned_requests_do_not_cause_drops() {
    let totals = given_back(OpenLoop { max_late_ns: Some(0), ..OpenLoop::default() });
    let open_loop = totals.open_loop.as_deref().unwrap();
    assert_eq!((open_loop.due, totals.counters.started), (6, 2));
    assert_eq!(open_loop.dropped + open_loop.unsent, 4);
}

#[test]
fn unsent_warm_up_requests_are_carried_over() {
    let warm = Config { warmup_ns: SECOND, ..open_loop(OpenLoop::default()) };
    let totals = run_scenario(warm, 10 * MS, "connect_us = 0.0\nlatency_us = 20000.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    // Half of the due requests can be sent: after a second 51 have been, the others wait, and the window is spent on
    // them.
    assert_eq!((open_loop.due, open_loop.carried, open_loop.unsent), (100, 49, 99));
    assert_eq!((totals.counters.carried, totals.counters.started), (1, 50));
}

#[test]
fn calm_latency_includes_the_warm_up() {
    let warm = Config { max_inflight: 10, warmup_ns: SECOND, ..open_loop(OpenLoop::default()) };
    let totals = run_scenario(warm, 10 * MS, "connect_us = 0.0\nlatency_us = 200000.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    // The first five requests find less than half of the connections busy; after that all are.
    assert_eq!((open_loop.calm, open_loop.calm_ns), (5, 5 * 200 * MS));
    assert!(open_loop.carried > 0, "{open_loop:?}");
}

#[test]
fn idle_closes_before_due_requests_are_no_error() {
    let closes = "connect_us = 0.0\nlatency_us = 1000.0\nclose = true";
    for is_error in [false, true] {
        let mut config = Config { duration_ns: Some(995 * MS), ..open_loop(OpenLoop::default()) };
        config.rules.scale.counts_idle_closes = is_error;
        let totals = run_scenario(config, 10 * MS, closes);
        let counters = &totals.counters;
        assert_eq!((counters.completed, counters.failed), (100, 0));
        assert_eq!((counters.idle_closed, counters.connects), (100, 101));
        assert_eq!(totals.ledger.totals().read, if is_error { 100 } else { 0 });
    }
}

/// The counts when a server freezes for the first half of two seconds, with a schedule of 100 requests a second.
fn after_a_stall(catch_up: Option<CatchUp>) -> Totals {
    let network = Noting { latency_ns: MS, not_before: Nanos(500 * MS), asked: Rc::default() };
    let two_seconds = Config { duration_ns: Some(1_995 * MS), ..open_loop(OpenLoop::default()) };
    run_job(two_seconds, Box::new(network), Job { pacer: every(10 * MS, catch_up), ..job(get(), http1(1)) }).totals
}

#[test]
fn unfinished_catch_up_counts_as_held_back() {
    let counted = |catch_up| {
        let totals = after_a_stall(catch_up);
        let open_loop = totals.open_loop.as_deref().unwrap();
        (open_loop.unsent, open_loop.held_back)
    };
    assert_eq!(counted(CatchUp::from_thousandths(1_000)), (49, 49));
    assert_eq!(counted(None), (0, 0));
}

#[test]
fn slow_catch_up_marks_requests_held_back() {
    let counted = |factor: Option<u64>, stalls: &[(f64, f64)]| {
        let rules = OpenLoop { max_late_ns: Some(300 * MS), ..OpenLoop::default() };
        let still =
            stalls.iter().map(|(from, length)| format!("\n[[generator_stall]]\nfrom_s = {from}\nfor_s = {length}"));
        let scenario: Scenario =
            toml::from_str(&format!("connect_us = 0.0\nlatency_us = 1000.0{}", still.collect::<String>())).unwrap();
        let pacer = every(10 * MS, factor.and_then(CatchUp::from_thousandths));
        let totals = run_job(open_loop(rules), scenario.network(1), Job { pacer, ..job(get(), http1(1)) }).totals;
        let open_loop = totals.open_loop.as_deref().unwrap();
        (open_loop.dropped, open_loop.held_back - open_loop.unsent)
    };
    let twice = [(0.105, 0.2), (0.505, 0.2)];
    assert_eq!(counted(None, &twice), (0, 0));
    let (dropped, held_back) = counted(Some(1_000), &twice);
    assert!((9..=11).contains(&dropped) && held_back == dropped, "{held_back} of {dropped}");
    let (dropped, held_back) = counted(Some(1_000), &[(0.105, 0.5)]);
    assert!((19..=21).contains(&dropped) && held_back == 0, "{held_back} of {dropped}");
}

/// Arrivals of requests at a server that freezes for the first half second, with a schedule of 100 requests a second.
fn asked_after_a_stall(catch_up: Option<CatchUp>) -> Vec<u64> {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns: MS, not_before: Nanos(500 * MS), asked: Rc::clone(&asked) };
    let pacer = every(10 * MS, catch_up);
    let two_seconds = Config { duration_ns: Some(1_995 * MS), ..config() };
    run_job(two_seconds, Box::new(network), Job { pacer, ..job(get(), http1(1)) });
    asked.take().into_iter().map(|ns| ns / MS).collect()
}

#[test]
fn late_requests_catch_up_immediately_by_default() {
    let asked = asked_after_a_stall(None);
    // Requests due in the stall leave a millisecond apart, as do five more that became due in the meantime.
    let expected: Vec<u64> = [0].into_iter().chain((1..200).map(|k| (10 * k).max(499 + k))).collect();
    assert_eq!(asked, expected);
}

#[test]
fn schedules_run_faster_until_caught_up() {
    let asked = asked_after_a_stall(Some(CatchUp::DOUBLE));
    // After the request that was due at 10 ms and left at 500 ms, one every 5 ms: caught up at 990 ms.
    let expected: Vec<u64> = [0].into_iter().chain((1..200).map(|k| (10 * k).max(495 + 5 * k))).collect();
    assert_eq!(asked, expected);
    // With a factor of 1 the schedule stays as late as it was.
    let never = asked_after_a_stall(CatchUp::from_thousandths(1_000));
    assert_eq!(
        never,
        [0].into_iter().chain((1..151).map(|k| 490 + 10 * k)).take_while(|&at| at < 2_000).collect::<Vec<_>>()
    );
}

#[test]
fn requests_leave_at_their_slice_end() {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns: 0, not_before: Nanos::default(), asked: Rc::clone(&asked) };
    let slice_ns = 100 * MS;
    let span = ScheduleSpan { duration_ns: Some(SECOND), ..ScheduleSpan::default() };
    let pacer = Pacer::Scheduled(Scheduled::new(dues(30 * MS, span), None, slice_ns));
    let ten = Config { max_inflight: 10, ..open_loop(OpenLoop { slice_ns, ..OpenLoop::default() }) };
    let ran = run_job(ten, Box::new(network), Job { pacer, ..job(get(), http1(1)) });
    // A request due exactly at the end of a slice leaves then; one that would leave after the end of the run leaves at
    // its due time.
    let due = (0..).map(|k| 30 * k).take_while(|ms| *ms < 1_000);
    let expected: Vec<u64> = due.map(|ms: u64| if ms > 900 { ms } else { ms.next_multiple_of(100) } * MS).collect();
    assert_eq!(asked.take(), expected);
    let open_loop = ran.totals.open_loop.as_deref().unwrap();
    assert_eq!((open_loop.late, open_loop.unsent, open_loop.lateness.max()), (0, 0, Some(90 * MS)));
}

/// Sends a request every millisecond in slices of 10 ms to a server that responds with these acts after 3 ms. Returns
/// the measurements.
fn run_in_slices(answer: Vec<Act>) -> Totals {
    let network = Answering { latency_ns: 3 * MS, answer };
    let slice_ns = 10 * MS;
    let span = ScheduleSpan { duration_ns: Some(SECOND), ..ScheduleSpan::default() };
    let pacer = Pacer::Scheduled(Scheduled::new(dues(MS, span), None, slice_ns));
    let many = Config { max_inflight: 50, ..open_loop(OpenLoop { slice_ns, ..OpenLoop::default() }) };
    let ran = run_job(many, Box::new(network), Job { pacer, ..job(get(), http1(1)) });
    assert_accounted(&ran.totals);
    ran.totals
}

/// Servers that act in the same way for every request.
#[derive(Clone)]
struct Answering {
    latency_ns: u64,
    answer: Vec<Act>,
}

impl Network for Answering {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        (now, Ok(Box::new(self.clone())))
    }
}

impl Peer for Answering {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        actions.extend(self.answer.iter().cloned().map(|act| Action { at: now + self.latency_ns, act }));
    }
}

#[test]
fn gathered_responses_keep_their_arrival_time() {
    let totals = run_in_slices(vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())]);
    assert_eq!((totals.latency.min(), totals.latency.max()), (Some(3 * MS), Some(3 * MS)));
    let waits = totals.activity.waits;
    assert!((100..150).contains(&waits), "{waits}: one for each slice, and those for timers");
}

#[test]
fn responses_ending_connections_are_gathered_once() {
    let answer = b"HTTP/1.1 200 OK\r\n\r\nall of it".to_vec();
    let totals = run_in_slices(vec![Act::Send(answer), Act::Close]);
    let late: u64 = totals.latency.values().filter(|(ns, _)| *ns > 4 * MS).map(|(_, count)| count).sum();
    assert!(late <= 11, "{late}: those of one slice");
    assert_eq!(totals.latency.max(), Some(10 * MS), "and by no more than that");
}

#[test]
fn slices_hold_while_late_requests_catch_up() {
    let mut pacer = Scheduled::new(dues(MS, ScheduleSpan::default()), Some(CatchUp::DOUBLE), 4 * MS);
    let begin = Nanos(7 * MS);
    pacer.begin_schedule(begin);
    let next = |pacer: &Scheduled| (pacer.due_at().since(begin) / MS, pacer.next_at().since(begin) / MS);
    for (expected, now) in [((0, 0), 0), ((1, 4), 30), ((2, 32), 32), ((3, 32), 32), ((4, 32), 32), ((5, 32), 32)] {
        assert_eq!(next(&pacer), expected);
        pacer.take_due(1, begin + now * MS, false);
    }
    assert_eq!(next(&pacer), (6, 36), "30 ms and half of the 5 since then, and that to the end of the slice");
}

#[test]
fn stalls_during_catch_up_restart_it() {
    let dues = fixtures::schedule(1_000).dues(Partition::WHOLE, ScheduleSpan::default(), 1);
    let mut pacer = Pacer::Scheduled(Scheduled::new(dues, CatchUp::from_thousandths(4_000), 0));
    pacer.begin_schedule(Nanos(7 * MS));
    let quarter = MS / 4;
    for (due, next, now) in [
        // A request less than a millisecond late is not held up.
        (0, 0, MS - 1),
        (MS, MS, 50 * MS),
        (2 * MS, 50 * MS + quarter, 50 * MS + quarter),
        (3 * MS, 50 * MS + 2 * quarter, 60 * MS),
        (4 * MS, 60 * MS + quarter, 60 * MS + quarter + 9),
        (5 * MS, 60 * MS + 2 * quarter, 60 * MS + 2 * quarter),
    ] {
        let begin = Nanos(7 * MS);
        assert_eq!((pacer.due_at(), pacer.next_at()), (begin + due, begin + next));
        assert_eq!(pacer.take_due(1, begin + now, false), begin + due);
    }
}

#[test]
fn wrk2_limits_catch_up_only_after_own_stalls() {
    let of = |as_wrk2: bool, scenario: &str| {
        let pacer = every(10 * MS, Some(CatchUp::DOUBLE));
        let scenario: Scenario = toml::from_str(&format!("connect_us = 0.0\nlatency_us = 1000.0\n{scenario}")).unwrap();
        let two_seconds =
            Config { duration_ns: Some(1_995 * MS), ..open_loop(OpenLoop { as_wrk2, ..OpenLoop::default() }) };
        let totals = run_job(two_seconds, scenario.network(1), Job { pacer, ..job(get(), http1(1)) }).totals;
        totals.open_loop.unwrap().late
    };
    let freeze = "[[stall]]\nfrom_s = 0.0\nfor_s = 0.5";
    // From the response at 500 ms on, a request leaves every millisecond: 10 ms · k is more than a millisecond before
    // 499 ms + k up to k = 55. At twice the rate, 495 ms + 5 ms · k applies, up to k = 98.
    assert_eq!((of(true, freeze), of(false, freeze)), (55, 98));
    // From 502.5 ms to 1,002.5 ms: 10 ms · k is before 1,002.5 ms + 5 ms · (k - 51) from k = 51 up to 149.
    let stall = "[[generator_stall]]\nfrom_s = 0.5025\nfor_s = 0.5";
    assert_eq!((of(true, stall), of(false, stall)), (99, 99));
}

#[test]
fn dropped_requests_have_the_maximum_age() {
    let rules = OpenLoop { max_late_ns: Some(20 * MS), ..OpenLoop::default() };
    let totals = run_scenario(open_loop(rules), 10 * MS, "connect_us = 0.0\nlatency_us = 500000.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    // Two requests are sent, and the requests due between them are dropped; the first of those was due at 10 ms.
    assert!(open_loop.dropped > 40, "{}", open_loop.dropped);
    let open = open_loop.open.as_ref().unwrap();
    assert_eq!((open_loop.censored.count() - open.count(), open_loop.censored.min()), (open_loop.dropped, open.min()));
}

/// A network in which time passes for a polling worker: a microsecond per poll.
struct Polled {
    network: Box<dyn Network>,
    now: Cell<Nanos>,
    /// Wake-up times requested by the worker.
    woken: Rc<RefCell<Vec<Nanos>>>,
}

impl Network for Polled {
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.network.connect(now, address)
    }

    fn awakes(&self, at: Nanos) -> Nanos {
        self.woken.borrow_mut().push(at);
        self.now.set(if at == self.now.get() { at + 1_000 } else { at });
        self.now.get()
    }
}

#[test]
fn busy_polling_workers_wake_before_due_times() {
    let woken = Rc::<RefCell<Vec<Nanos>>>::default();
    let network = Polled { network: Scenario::default().network(1), now: Cell::default(), woken: Rc::clone(&woken) };
    let config = Config { spins: true, ..open_loop(OpenLoop::default()) };
    let job = Job { pacer: every(10 * MS, None), ..job(get(), http1(1)) };
    let ran = run_job(config, Box::new(network), job);
    assert_accounted(&ran.totals);
    for number in 1..100 {
        assert!(woken.borrow().contains(&Nanos(number * 10 * MS - 50_000)), "before request {number}");
    }
}

#[test]
fn huge_backlogs_are_counted_quickly() {
    let began_ns = thread_cpu_ns();
    for max_late_ns in [None, Some(1_000)] {
        let rules = OpenLoop { max_late_ns, ..OpenLoop::default() };
        let totals = run_scenario(open_loop(rules), 1, "connect_us = 0.0\nlatency_us = 10000.0");
        let open_loop = totals.open_loop.as_deref().unwrap();
        assert_eq!(open_loop.due, 1_000_000_000, "a request a nanosecond");
    }
    let spent_s = (thread_cpu_ns() - began_ns) / SECOND;
    assert!(spent_s < 20, "{spent_s} s of processor time");
}

#[test]
fn requests_due_in_a_final_stall_are_unsent() {
    let config = Config { duration_ns: Some(1_500 * MS), ..open_loop(OpenLoop::default()) };
    let totals = run_scenario(config, 10 * MS, "connect_us = 0.0\n[[generator_stall]]\nfrom_s = 1.005\nfor_s = 2.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    assert_eq!((open_loop.due, totals.counters.started, open_loop.unsent), (150, 101, 49));
    assert_eq!(open_loop.censored.max(), Some(490 * MS));
    assert_eq!(totals.until_ns, 1_500 * MS);
}

#[test]
fn request_limits_exclude_warm_up_leftovers() {
    for max_late_ns in [None, Some(300 * MS)] {
        let config = Config {
            warmup_ns: SECOND,
            requests: Some(50),
            duration_ns: None,
            ..open_loop(OpenLoop { max_late_ns, ..OpenLoop::default() })
        };
        let totals = run_scenario(config, 10 * MS, "connect_us = 0.0\nlatency_us = 20000.0");
        let open_loop = totals.open_loop.as_deref().unwrap();
        assert_eq!((open_loop.due, open_loop.unsent), (50, 0));
        assert!(open_loop.carried > 20, "{}", open_loop.carried);
    }
}

#[test]
fn stalls_over_warm_up_ends_drop_late_requests() {
    let rules = OpenLoop { max_late_ns: Some(50 * MS), ..OpenLoop::default() };
    let config = Config { warmup_ns: SECOND, ..open_loop(rules) };
    let totals = run_scenario(config, 10 * MS, "connect_us = 0.0\n[[generator_stall]]\nfrom_s = 0.805\nfor_s = 0.7");
    let open_loop = totals.open_loop.as_deref().unwrap();
    // The window counts from 1.505 s to the planned end, including earlier due requests; requests too late by then are
    // dropped.
    assert_eq!((open_loop.due, totals.until_ns), (100, 495 * MS));
    assert!((44..=46).contains(&(open_loop.dropped - open_loop.carried)), "{open_loop:?}");
}
