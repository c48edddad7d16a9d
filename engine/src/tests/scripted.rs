//! The script's callbacks, in virtual time. The script is a few closures' worth of Rust.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;

use onrush_proto::http1::{Wire, outline};

use super::*;
use crate::backend::sim::Scenario;
use crate::backend::thread_cpu_ns;

/// Status; lengths of head, trailers and body; latency.
type Received = (u16, usize, usize, usize, u64);

/// A script that sends batches of the given sizes and records the responses.
#[derive(Clone, Default)]
pub struct Script {
    wants: Wants,
    /// The batch sizes; the last one repeats.
    batches: Vec<usize>,
    delay_ns: u64,
    /// The response at which the script ends the worker.
    stops_at: Option<usize>,
    fails_at: Option<usize>,
    address: Option<SocketAddr>,
    written: usize,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Script {
    /// A script that only writes batches of these sizes.
    pub fn writing(batches: &[usize]) -> Self {
        Self { wants: writes(), batches: batches.to_vec(), ..Self::default() }
    }
}

/// The script's state, shared by its callbacks.
type Shared = Rc<RefCell<Script>>;

/// The requests that a script writes.
struct Written(Shared);

impl Source for Written {
    fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        self.0.borrow_mut().write(batch)
    }
}

impl Script {
    fn write(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        if self.fails_at == Some(self.written) {
            return Err(ScriptFailure::Raised("boom".to_owned()));
        }
        let size = *self.batches.get(self.written).or(self.batches.last()).expect("a size");
        self.written += 1;
        let bytes: Rc<[u8]> = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(size).into();
        let mut outlines = Vec::new();
        outline(&bytes, &mut outlines).expect("requests");
        batch.extend(outlines.into_iter().map(|outline| Request::from(Wire::from_outline(&bytes, outline))));
        Ok(true)
    }

    fn record(&self, response: &Response<'_>) {
        let lengths = (response.head.len(), response.trailers.len(), response.body.len());
        self.received.lock().unwrap().push((response.status, lengths.0, lengths.1, lengths.2, response.latency_ns));
    }

    /// The job with all of the script's callbacks.
    pub fn in_charge_of(self, job: Job) -> Job {
        let (wants, address) = (self.wants, self.address);
        let shared = Rc::new(RefCell::new(self));
        let [source, of_response, of_delay, of_end, of_time] = [0; 5].map(|_| Rc::clone(&shared));
        let response = wants.response.then(|| OnResponse {
            headers: wants.headers,
            body: wants.body,
            call: Box::new(move |response| {
                of_response.borrow().record(response);
                Ok(())
            }),
        });
        let is_stopped = move || {
            let script = of_end.borrow();
            script.stops_at.is_some_and(|count| script.received.lock().unwrap().len() >= count)
        };
        let callbacks = Callbacks {
            response,
            think_ns: wants
                .delay
                .then(|| Box::new(move || Ok(Some(of_delay.borrow().delay_ns))) as Box<dyn FnMut() -> _>),
            is_stopped: Some(Box::new(is_stopped)),
            address: Some(Box::new(move || address)),
            spent_ns: Some(Box::new(move || of_time.borrow().written as u64)),
            take_long: None,
        };
        let source = if wants.request { Box::new(Written(source)) } else { job.source };
        Job { source, callbacks, ..job }
    }
}

fn writes() -> Wants {
    Wants { request: true, ..Wants::default() }
}

fn run_script(config: Config, scenario: &str, script: Script) -> Ran {
    run_script_under(Control::default(), config, scenario, script)
}

fn run_script_under(control: Control, config: Config, scenario: &str, script: Script) -> Ran {
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is well written");
    let backend = Sim::new(config.max_inflight, scenario.network(1));
    run_backend(control, config, backend, script.in_charge_of(job(get(), http1(usize::MAX))))
}

const INSTANT: &str = "connect_us = 0.0";

#[test]
fn batches_and_responses_have_separate_latencies() {
    let rules = Rules { pipelines: true, ..config().rules };
    let three = Config { rules, requests: Some(9), duration_ns: None, ..config() };
    let ran = run_script(three, INSTANT, Script { wants: writes(), batches: vec![3], ..Script::default() });
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.batches), (9, 3));
    assert_eq!(ran.totals.latency.count(), 9);
    let batches = ran.totals.batch_latency.as_ref().expect("there are batches");
    assert_eq!((batches.count(), batches.min()), (3, ran.totals.latency.max()));
    assert_eq!(ran.totals.activity.script_ns, 3);
    assert_conserved(&ran.totals);
}

#[test]
fn unsent_requests_are_never_late() {
    // Of each 16 KiB leaving together, the kernel takes the rest after a quarter of a second: the last of 300 kB after
    // 4.5 s.
    let slow = "connect_us = 0.0\nlatency_us = 1000.0\nwindow = 10000\nwindow_pause_us = 250000.0";
    let batch = || Script { wants: writes(), batches: vec![10_000], ..Script::default() };
    let rules = Rules { pipelines: true, ..config().rules };
    let whole = Config { rules, requests: Some(10_000), duration_ns: None, ..config() };
    let ran = run_script(whole.clone(), slow, batch());
    let late = |ran: &Ran| (ran.totals.counters.late, ran.totals.ledger.totals().timeout);
    assert_eq!((ran.totals.counters.completed, late(&ran)), (10_000, (1, 1)), "the last one has the time of its batch");
    // A latency covers the two pieces that leave together, and the millisecond until the response.
    let latency = &ran.totals.latency;
    assert!(latency.percentile(99.9) < SECOND / 2 && latency.percentile(50.0) > 0, "{latency:?}");
    // Requests that have not left by the end of the run have waited for no response.
    let ran = run_script(Config { requests: None, duration_ns: Some(3 * SECOND), ..whole }, slow, batch());
    assert_eq!((late(&ran), ran.totals.counters.open_late_at_end), ((0, 0), 0));
    assert!(ran.totals.censored.as_ref().and_then(|ages| ages.max()) <= Some(SECOND), "{:?}", ran.totals.censored);
    assert_conserved(&ran.totals);
}

#[test]
fn waiting_batch_requests_fail_with_their_connection() {
    let slow = "connect_us = 0.0\nlatency_us = 1000.0\nwindow = 5000\nwindow_pause_us = 3000.0\n";
    let fault = |what: &str| format!("{slow}[[fault]]\nevery = 1500\nwhat = {what}");
    let closing = fault(r#"{ answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" }"#);
    let wrong = fault(r#"{ answer = "HTTP/1.1 2OO OK\r\n\r\n" }"#);
    // Of 12,000 requests in three batches: completed, failed, abandoned, sent again.
    for (scenario, expected) in [
        (fault("'reset'"), [4_388, 7_612, 0, 0]),
        (fault("'close'"), [4_388, 7_612, 0, 0]),
        (closing, [5_331, 0, 6_669, 9_630]),
        (wrong, [4_388, 7_612, 0, 0]),
        (fault("'hang'"), [11_992, 0, 8, 0]),
        (format!("{slow}[[outage]]\nfrom_s = 0.01\nfor_s = 0.01"), [8_500, 3_500, 0, 0]),
    ] {
        let rules = Rules { pipelines: true, ..config().rules };
        let config = Config { rules, requests: Some(12_000), duration_ns: None, give_up_ns: Some(SECOND), ..config() };
        let ran = run_script(config, &scenario, Script::writing(&[4_000]));
        let counters = &ran.totals.counters;
        let found = [counters.completed, counters.failed, counters.abandoned, counters.returned];
        assert_eq!(found, expected, "{scenario}");
        assert_eq!(found[..3].iter().sum::<u64>(), 12_000);
        assert_conserved(&ran.totals);
    }
}

#[test]
fn last_batches_are_cut_to_the_limit() {
    let five = Config { requests: Some(5), duration_ns: None, ..config() };
    let ran = run_script(five, INSTANT, Script { wants: writes(), batches: vec![3], ..Script::default() });
    assert_eq!((ran.totals.counters.started, ran.totals.counters.completed, ran.totals.counters.batches), (5, 5, 2));
}

#[test]
fn batches_may_differ_in_size() {
    let ten = Config { requests: Some(10), duration_ns: None, ..config() };
    let ran = run_script(ten, INSTANT, Script { wants: writes(), batches: vec![1, 4, 2, 3], ..Script::default() });
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.batches), (10, 4));
}

#[test]
fn batch_size_does_not_change_request_cost() {
    let began_ns = thread_cpu_ns();
    let many = Config { requests: Some(200_000), duration_ns: None, ..config() };
    let ran = run_script(many, INSTANT, Script { wants: writes(), batches: vec![200_000], ..Script::default() });
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.batches), (200_000, 1));
    // A second or two. Two minutes when each response moved all later requests, and fifteen seconds when the simulated
    // server moved its received bytes that way.
    let spent_s = (thread_cpu_ns() - began_ns) / SECOND;
    assert!(spent_s < 10, "{spent_s} s of processor time");
}

#[test]
fn late_batches_are_one_timeout_in_wrk() {
    for (compat, expected) in [(true, 1), (false, 3)] {
        let rules = Rules { scale: scale(compat), timeout_ns: Some(MS / 2), pipelines: true, ..config().rules };
        let three = Config { rules, requests: Some(3), duration_ns: None, ..config() };
        let ran = run_script(three, INSTANT, Script { wants: writes(), batches: vec![3], ..Script::default() });
        assert_eq!(ran.totals.counters.late, expected);
    }
}

#[test]
fn pauses_precede_batches_without_adding_latency() {
    let wants = Wants { delay: true, ..Wants::default() };
    let ran = run_script(config(), INSTANT, Script { wants, delay_ns: 9 * MS, ..Script::default() });
    // 9 ms of pause and 1 ms until the response: one request every 10 ms, the first sent at 9 ms.
    assert_eq!(ran.totals.counters.completed, 100, "the last one at the very end");
    assert_eq!((ran.totals.latency.min(), ran.totals.latency.max()), (Some(MS), Some(MS)));
}

#[test]
fn connections_closed_in_pauses_are_replaced() {
    let wants = Wants { delay: true, ..Wants::default() };
    let scenario = "connect_us = 0.0\nclose = true\n\
                    answer = \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let ran = run_script(config(), scenario, Script { wants, delay_ns: 9 * MS, ..Script::default() });
    assert!((98..=100).contains(&ran.totals.counters.completed), "{}", ran.totals.counters.completed);
    assert!(ran.totals.counters.connects >= ran.totals.counters.completed);
}

#[test]
fn pauses_outlast_the_servers_idle_timeout() {
    let wants = Wants { delay: true, ..Wants::default() };
    let three = Config { requests: Some(3), duration_ns: None, ..config() };
    let scenario = "connect_us = 0.0\nlatency_us = 1000.0\nidle_us = 200000.0";
    let ran = run_script(three, scenario, Script { wants, delay_ns: 500 * MS, ..Script::default() });
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.started), (3, 3));
    assert!((1_500..1_800).contains(&(ran.end.elapsed_ns / MS)), "{}", ran.end.elapsed_ns);
    assert!(ran.totals.counters.connects > 3, "the server closes while it pauses");
}

#[test]
fn moved_batch_rests_do_not_pause_again() {
    let limited = Config { requests_per_connection: Some(per_connection(3)), requests: Some(4), ..config() };
    let script = Script { delay_ns: 9 * MS, ..Script::writing(&[1, 3]) };
    let script = Script { wants: Wants { delay: true, ..writes() }, ..script };
    let ran = run_script(limited, "connect_us = 0.0\nlatency_us = 1000.0", script);
    // A pause and a response, twice: the second connection continues where the first has no room.
    assert_eq!((ran.totals.counters.connects, ran.end.elapsed_ns / MS), (2, 20));
}

#[test]
fn script_time_counts_after_the_warm_up() {
    let warm = Config { warmup_ns: 1_000_000_000, ..config() };
    let ran =
        run_script(warm, "latency_us = 10000.0", Script { wants: writes(), batches: vec![1], ..Script::default() });
    // This script takes a nanosecond for each request.
    assert!(ran.totals.counters.started > 0);
    assert_eq!(ran.totals.activity.script_ns, ran.totals.counters.started);
}

#[test]
fn scripts_get_only_the_wanted_parts() {
    let scenario = "connect_us = 0.0\nanswer = \"HTTP/1.1 201 OK\\r\\nContent-Length: 4\\r\\n\\r\\nbody\"\nsplit = 3";
    for (headers, body, lengths) in [(false, false, (0, 0)), (true, false, (38, 0)), (true, true, (38, 4))] {
        let script = Script { wants: Wants { response: true, headers, body, ..Wants::default() }, ..Script::default() };
        let two = Config { requests: Some(2), duration_ns: None, ..config() };
        let ran = run_script(two, scenario, script.clone());
        let received = script.received.lock().unwrap();
        assert_eq!(received.len(), 2);
        for &(status, head, trailers, body, latency_ns) in received.iter() {
            assert_eq!((status, head, trailers, body), (201, lengths.0, 0, lengths.1));
            assert!(latency_ns >= ran.totals.latency.min().unwrap());
        }
    }
}

#[test]
fn cut_responses_are_counted() {
    let wants = Wants { response: true, body: true, ..Wants::default() };
    let answer = format!("HTTP/1.1 200 OK\\r\\nContent-Length: 4000\\r\\n\\r\\n{}", "x".repeat(4000));
    let scenario = format!("connect_us = 0.0\nlatency_us = 1000.0\nanswer = \"{answer}\"\nsplit = 100");
    for (connections, bytes, are_cut) in [(1, 5_000, false), (4, 5_000, true), (4, 24_000, false)] {
        let mut control = Control::default();
        control.kept = Arc::new(Budget::with_capacity(bytes));
        let script = Script { wants, ..Script::default() };
        let many = Config { max_inflight: connections, requests: Some(40), duration_ns: None, ..config() };
        let ran = run_script_under(control, many, &scenario, script.clone());
        let received = script.received.lock().unwrap();
        assert_eq!((ran.totals.counters.completed, received.len()), (40, 40));
        let cut = received.iter().filter(|response| response.3 < 4000).count();
        assert_eq!(ran.totals.counters.cut_responses, cut as u64);
        assert_eq!(cut > 0, are_cut, "{connections} connections and {bytes} bytes: {received:?}");
    }
}

#[test]
fn scripts_can_end_workers_at_a_response() {
    let script =
        Script { wants: Wants { response: true, ..Wants::default() }, stops_at: Some(10), ..Script::default() };
    let ran = run_script(Config { max_inflight: 4, ..config() }, INSTANT, script);
    assert_eq!(ran.totals.counters.completed, 10);
    assert!(ran.end.failure.is_none() && ran.end.elapsed_ns < 5 * MS);
}

#[test]
fn failing_scripts_end_the_run() {
    let script = Script { wants: writes(), batches: vec![1], fails_at: Some(5), ..Script::default() };
    let ran = run_script(Config { max_inflight: 4, ..config() }, INSTANT, script);
    assert_eq!(ran.end.failure, Some(ScriptFailure::Raised("boom".to_owned())));
    assert_eq!(ran.totals.counters.started, 5);
}

#[test]
fn scripts_choose_connection_addresses() {
    let other = "127.0.0.9:81".parse().unwrap();
    let script = Script { address: Some(other), ..Script::default() };
    let ran = run_script(config(), "connect_us = 0.0\nlistens = ['127.0.0.9']", script.clone());
    assert_eq!(ran.end.working, [other]);
    let ran = run_script(config(), "connect_us = 0.0\nlistens = ['127.0.0.1']", script);
    assert_eq!((ran.totals.counters.completed, ran.end.refusal.map(|refusal| refusal.0)), (0, Some(other)));
}
