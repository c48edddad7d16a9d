//! Searches for the highest load: results, output and refusals of the whole program. Decisions and accuracy of searches
//! are simulated in lab/src/search.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Context, Scratch, Served, cases, target, url};
use crate::results::number;
use crate::simulation::{simulate, simulated_document};

cases! {
    known_capacities_are_found (Once);
    loads_meeting_the_objective_hold (Once);
    runs_with_early_last_responses_count_fully (Once);
    connections_are_searched_in_a_closed_loop (Once);
    searches_end_with_result_and_exit_code (Once);
    searches_continue_after_target_recovery (Once);
    connections_are_opened_first_and_outlast_the_runs (Once);
    runs_start_with_nothing_in_flight (Once);
    real_searches_report_their_duration;
    starved_targets_are_not_judged (Once) needs "taskset";
    signals_end_the_first_look (Once);
    missing_targets_are_refused_like_in_runs (Once);
    invalid_searches_are_refused (Once);
}

/// A target that serves 500 requests per second, one at a time.
const EVEN: &str = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\n";

fn known_capacities_are_found(context: &Context) {
    let words = "-t1 --find-max p90<200ms,errors<1% -d 60s -R 430";
    let (output, document) = simulated_document(context.onrush().words(words), EVEN);
    assert_eq!(output.code, 0, "{output:?}");
    // A higher rate r leaves (r - 500) × 3 s requests waiting at the end of a run of 3 s, warm-up included: 200 ms, or
    // 100 requests, at 533/s. The rise of the latency is detected much earlier.
    let highest = number(&document, "/highest/load");
    assert!((490.0..=505.0).contains(&highest), "{highest}: {output:?}");
    assert!(
        output.stdout.starts_with(&format!("Highest confirmed rate with p90<200ms,errors<1%: {highest:.1}/s")),
        "{output:?}"
    );
    assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    let quiet = simulate(context.onrush().words(words).words("--quiet"), EVEN);
    assert_eq!((quiet.code, &quiet.stdout, quiet.stderr.as_str()), (0, &output.stdout, ""));
    let points = document["points"].as_array().unwrap();
    let early: Vec<&Value> = points.iter().filter(|point| point["ended_early"] == true).collect();
    assert!(!early.is_empty(), "{document}");
    for point in early {
        // The run was measured for the reported time.
        let per_s = number(point, "/rate_per_s");
        assert!((490.0..=510.0).contains(&per_s), "{point}");
    }
    let lines: Vec<&str> = output.stderr.lines().filter(|line| line.contains("/s  ")).collect();
    assert_eq!(lines.len(), points.len(), "a line for each run: {output:?}");
    assert_eq!(document["kind"], "search");
    assert!(points.iter().any(|point| point["holds"] == false), "{document}");
    let schema: Value = serde_json::from_str(include_str!("../../docs/search.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    assert!(validator.is_valid(&document), "{document}");
    // Every run, warm-up and pause is part of the time limit of a search.
    let took_s = number(&document, "/duration_s");
    assert!((30.0..=62.0).contains(&took_s), "{took_s}: {output:?}");
}

/// The objective permits the failures. Responses of 100 ms and the limit of 102 ms are in the same bin of the timeline.
/// A single request is slower than the allowed deviation permits.
fn loads_meeting_the_objective_hold(context: &Context) {
    let resets = format!("{EVEN}[[fault]]\nevery = 50\nwhat = 'reset'");
    let [close, slow] =
        ["98000.0", "20000.0"].map(|us| EVEN.replace("latency_us = 0.0", &format!("latency_us = {us}")));
    for (objective, scenario) in [("p90<50ms,errors<3%", &resets), ("p99<102ms", &close), ("p99<50ms,stdev<5ms", &slow)]
    {
        let onrush = context.onrush().words("-t1 -R 430 --find-max").word(objective);
        let (output, document) = simulated_document(onrush, scenario);
        let highest = number(&document, "/highest/load");
        assert!(output.code == 0 && (470.0..=520.0).contains(&highest), "{highest}: {output:?}");
        let points = document["points"].as_array().unwrap();
        let held: Vec<&Value> = points.iter().filter(|point| point["holds"] == true).collect();
        assert!(held.iter().all(|point| point.get("ended_early").is_none()), "{output:?}");
        assert!(points.iter().all(|point| point["fault"] != "cold"), "{output:?}");
    }
}

/// With random arrivals, the last request may be due, and answered, long before the time is up.
fn runs_with_early_last_responses_count_fully(context: &Context) {
    // With a percentile, the load would continue after the last request of a run.
    let words = "-t1 --find-max mean<200ms,errors<1% -d 30s -R 40 --arrivals poisson";
    let (output, document) = simulated_document(context.onrush().words(words), EVEN);
    assert_eq!(output.code, 0, "{output:?}");
    let points = document["points"].as_array().unwrap();
    let holding: Vec<&Value> = points.iter().filter(|point| point["holds"] == true).collect();
    assert!(holding.len() >= 4, "{document}");
    for point in holding {
        let [load, per_s, duration_s] = ["/load", "/rate_per_s", "/duration_s"].map(|at| number(point, at));
        assert!((per_s / load - 1.0).abs() <= 0.02 && duration_s >= 2.0, "{point}");
    }
}

fn connections_are_searched_in_a_closed_loop(context: &Context) {
    // Each additional connection waits 10 ms longer: 40 ms with four.
    let slow = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 10000.0";
    let words = "-t1 -c2 --find-max p50<45ms --over connections -d 20s --format json";
    let output = simulate(context.onrush().words(words), slow);
    assert_eq!(output.code, 0, "{output:?}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(number(&document, "/highest/load"), 4.0, "{output:?}");
    assert_eq!(document["over"], "connections");
    for point in document["points"].as_array().unwrap() {
        assert_eq!(number(point, "/rate_per_s"), 100.0, "{point}");
    }
}

fn searches_end_with_result_and_exit_code(context: &Context) {
    let stalls: String = (0..160)
        .map(|n| format!("[[generator_stall]]\nfrom_s = {:.3}\nfor_s = 0.04\n", 0.3 + 0.37 * f64::from(n)))
        .collect();
    let limited = format!("{EVEN}{stalls}");
    let interrupted = format!("signal_s = 3.0\n{EVEN}");
    let (every, slow) = ("latency_us = 20000.0", "latency_us = 300000.0");
    for (words, scenario, code, result) in [
        (
            "--find-max errors<=100% --over threads -c2 -d 8s",
            every,
            0,
            "errors<=100% held at every number of threads tried, up to 2\n",
        ),
        (
            "--find-max p50<5ms --over connections -c1 -d 8s",
            every,
            3,
            "p50<5ms held at no number of connections tried, down to 1\n",
        ),
        (
            "--find-max p99<50ms",
            slow,
            3,
            "p99<50ms cannot hold at any rate: even when sent one at a time, every request took at least 300.00ms (13 requests \
             measured over 21 s)\n",
        ),
        // The percentile over all requests is unknown.
        (
            "--find-max p99<50ms -R 400 -d 30s",
            "latency_us = 1000.0\n[[fault]]\nevery = 10\nwhat = 'reset'",
            3,
            "p99<50ms held at no rate tried, down to ",
        ),
        (
            "--find-max p50<500ms -R 400 -d 30s",
            "[[stall]]\nfrom_s = 10.0\nfor_s = 1000000.0",
            5,
            "Highest rate with p50<500ms: unknown, at least 625.0/s: the target stopped responding at 937.5/s\n",
        ),
        (
            "--find-max p99<50ms -R 200 -d 8s",
            "[[fault]]\nevery = 1\nwhat = 'close'",
            5,
            "Highest rate with p99<50ms: unknown: the target did not respond at 200.0/s\n",
        ),
        ("--find-max p99<20ms -R 430", &limited, 6, "Highest rate with p99<20ms: unknown: at "),
        // One request first, then runs of 3 s: the signal arrives in the third run.
        (
            "--find-max p50<500ms -R 400",
            "signal_s = 7.0",
            130,
            "p50<500ms held at every rate tried, up to 500.0/s; the search was interrupted\n",
        ),
        // A single run, which may have been disturbed, does not break a gate.
        (
            "--find-max p99<30ms -R 600",
            &interrupted,
            130,
            "p99<30ms held at no rate tried, down to 600.0/s (tried once); the search was interrupted\n",
        ),
        ("--find-max p99<50ms", "signal_s = 0.4", 130, ""),
    ] {
        let output = simulate(context.onrush().words("-t1").words(words), scenario);
        assert!(output.code == code && output.stdout.starts_with(result), "{output:?}");
        assert_eq!(output.stdout.is_empty(), result.is_empty(), "{output:?}");
    }
}

/// Nothing is answered for three seconds, during which a run fails. The remaining requests do not affect the next run,
/// which starts when the target responds at once again.
fn searches_continue_after_target_recovery(context: &Context) {
    let stalled = format!("{EVEN}[[stall]]\nfrom_s = 5.0\nfor_s = 6.0\n");
    let (output, document) = simulated_document(context.onrush().words("-t1 --find-max p99<50ms -R 300"), &stalled);
    assert_eq!(output.code, 0, "{output:?}");
    let failed: Vec<f64> = document["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|point| point["holds"] == false && number(point, "/load") < 490.0)
        .map(|point| number(point, "/load"))
        .collect();
    assert_eq!(failed, [375.0], "one run, and none after it: {output:?}");
    // The search continues upwards although a lower rate has failed.
    assert!(number(&document, "/highest/load") >= 450.0, "{output:?}");
    assert!(output.stderr.contains("1 of "), "{output:?}");
    assert!(output.stderr.contains(" runs contradicts the others (the run at 375.0/s failed)"), "{output:?}");
    // Batches of twenty requests take two seconds each: ten requests per second.
    let slow = "latency_us = 1000.0\n[capacity]\nworkers = 20\nservice_us = 2000000.0\nqueue = 5000";
    let (output, document) = simulated_document(context.onrush().words("-t1 -R 5 --find-max p50<4s -d 5m"), slow);
    let highest = number(&document, "/highest/load");
    assert!(output.code == 0 && (9.0..=10.5).contains(&highest), "{output:?}");
    assert!(!output.stderr.contains("  void  "), "{output:?}");
    // The first run is disturbed, as by a target that still has to warm up.
    let outage = "[[outage]]\nfrom_s = 2.0\nfor_s = 3.0";
    let output = simulate(context.onrush().words("-t1 --find-max p99<50ms -d 20s"), outage);
    assert!(output.stderr.contains("): in this run, the target did not respond for "), "{output:?}");
}

/// Connects take almost a second. After the first second, no connection is accepted.
fn connections_are_opened_first_and_outlast_the_runs(context: &Context) {
    let late = format!("backlog = [{{ from_s = 0.0, for_s = 0.9 }}]\n{EVEN}");
    let output = simulate(context.onrush().words("-t1 --find-max p99<50ms -d 15s"), &late);
    assert!(output.stderr.contains("\na closed loop on 10 connections reached 500.0/s\n"), "{output:?}");
    let words = "-t2 -c8 --find-max errors<1% -d 60s -R 400";
    let refusing =
        format!("refuse = [{{ from_s = 1.0, for_s = 1000.0 }}]\n{EVEN}").replace("workers = 1", "workers = 2");
    let output = simulate(context.onrush().words(words), &refusing);
    let held = output.stderr.matches("/s  holds  ").count();
    assert!(held >= 3, "run after run: {output:?}");
}

/// A closed loop ends with a request in flight on each connection. The next run starts when all have been answered.
fn runs_start_with_nothing_in_flight(context: &Context) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let in_flight = Arc::new(AtomicI64::new(0));
    let (sender, seen) = mpsc::channel();
    thread::spawn(move || {
        let mut last = Instant::now();
        for connection in listener.incoming().flatten() {
            // The first connection of a run: the connections of one run arrive together, unless the machine is very
            // busy.
            if last.elapsed() > Duration::from_millis(900) {
                let _ = sender.send(in_flight.load(Ordering::Relaxed));
            }
            last = Instant::now();
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || answer_after(Duration::from_millis(150), connection, &in_flight));
        }
    });
    // A search takes at least five seconds.
    let words = format!("-t1 -c8 --find-max p50<5s --over connections -d 5s http://{address}/");
    let output = context.onrush().words(&words).run();
    let seen: Vec<i64> = seen.try_iter().collect();
    assert!(!seen.is_empty() && seen.iter().all(|in_flight| *in_flight == 0), "{seen:?}: {output:?}");
}

/// Responds to each request after a delay, and counts the requests that wait for their response.
fn answer_after(delay: Duration, mut connection: TcpStream, in_flight: &AtomicI64) {
    while connection.read(&mut [0; 1_024]).is_ok_and(|length| length > 0) {
        in_flight.fetch_add(1, Ordering::Relaxed);
        thread::sleep(delay);
        in_flight.fetch_sub(1, Ordering::Relaxed);
        if connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// A search in real time.
fn real_searches_report_their_duration(context: &Context) {
    let server = target();
    let words = "-t1 -c2 --find-max errors<=100% --over threads -d 5s";
    let scratch = Scratch::new("real-search");
    let file = scratch.path().join("search.json");
    let output = context.onrush().words(words).word("-o").word(&file).word(url(&server, "/delay/5")).run();
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let (points, took_s) = (document["points"].as_array().unwrap(), number(&document, "/duration_s"));
    let measured_s: f64 = points.iter().map(|point| number(point, "/duration_s")).sum();
    assert!(!points.is_empty() && measured_s < took_s && took_s < output.took.as_secs_f64(), "{document}: {output:?}");
}

/// Two busy loops have priority on the target's only processor, so the target repeatedly waits for milliseconds. The
/// result of the search depends on the machine; its claims do not.
fn starved_targets_are_not_judged(context: &Context) {
    let pin = "first=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status)
               taskset -pc $first $$ >&2";
    let looping =
        || BusyProcess(Command::new("sh").arg("-c").arg(format!("{pin}; while :; do :; done")).spawn().unwrap());
    let loops = [looping(), looping()];
    let server = Served::start_after(&format!("{pin}; exec nice -n 10 \"$0\" \"$@\""));
    let scratch = Scratch::new("starved");
    let file = scratch.path().join("search.json");
    // The shortest possible search.
    let words = "-t1 --find-max p90<50ms -d 5s -R 200 -o";
    let path = format!("http://{}/capacity?rps=1000", server.address);
    let output = context.onrush().words(words).word(&file).word(path).run();
    drop(loops);
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let points = document["points"].as_array().unwrap();
    let waited = |point: &&Value| point["target_queued"].as_f64().is_some_and(|share| share >= 0.01);
    assert!(points.iter().any(|point| waited(&point)), "that it waited is seen: {document:#} {output:?}");
    let (failed, held): (Vec<&Value>, Vec<&Value>) = points.iter().partition(|point| point["holds"] == false);
    match output.code {
        0 => assert!(!held.is_empty() && number(&document, "/highest/load") <= 1_100.0, "{output:?}"),
        5 => assert!(failed.iter().any(|point| point["fault"] == "unanswered"), "{document:#}"),
        6 => {
            let is_unknown =
                ["not confirmed: ", "unknown", " held at every rate tried"].iter().any(|it| output.stdout.contains(it));
            let causes = ["the target waited for a processor ", "the target was slower at first"];
            let has_cause = causes.iter().any(|cause| output.stderr.contains(cause));
            assert!(is_unknown || has_cause, "{output:?}");
        }
        // Code 3 would claim that the objective holds at no rate.
        code => panic!("{code}: {output:?}"),
    }
}

/// A process that occupies a processor until this is dropped.
struct BusyProcess(Child);

impl Drop for BusyProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signals_end_the_first_look(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-t1 --find-max p99<50ms").word(url(&server, "/"));
    let output = onrush.interrupt_after(Duration::from_millis(400)).run();
    assert_eq!((output.code, &output.stdout[..]), (130, ""), "{output:?}");
    assert!(
        output
            .stderr
            .contains("onrush: interrupted before the first run of the search was complete, so there is no result; "),
        "{output:?}"
    );
}

fn missing_targets_are_refused_like_in_runs(context: &Context) {
    for words in ["", "-R 500", "--format json -R 500", "--over connections -c2"] {
        let output = context.onrush().words("--find-max p99<50ms http://127.0.0.1:1/").words(words).run();
        assert_eq!((output.code, &output.stdout[..]), (2, ""), "{output:?}");
        assert!(output.stderr.contains("onrush: unable to connect to 127.0.0.1:1: connection refused"), "{output:?}");
    }
}

fn invalid_searches_are_refused(context: &Context) {
    for (words, line) in [
        ("--find-max p99<50", "--find-max \"p99<50\": at \"50\": which unit? write 50ms, 50us or 50s"),
        (
            "--find-max p99<5ms -n5",
            "--find-max and --requests: a search decides how many requests a run has; leave one of the two out",
        ),
        (
            "--find-max p99<5ms --over connections -R5",
            "--find-max and -R: only --over rate has a rate; leave one of the two out",
        ),
        (
            "--find-max dropped<1 --over threads",
            "--find-max dropped<1: this term needs a rate; use --over rate or another term",
        ),
        ("--find-max p99<5ms -o a.csv", "--find-max and -o: a search writes .json only; leave one of the two out"),
        (
            "--find-max p99<5ms -R 1000 -d 6s --warmup 10s",
            "--find-max p99<5ms: runs with a warm-up of 10s do not fit into a search of 6s; shorten --warmup, or raise the limit with -d",
        ),
        (
            "--find-max p99>50ms",
            "--find-max p99>50ms: this condition holds above a load, not below; reverse it, as in p99<50ms",
        ),
        ("--find-max p99=50ms", "--find-max p99=50ms: no latency has exactly this value; use < instead"),
        (
            "--find-max p99<5ms --find-max errors<1%",
            "--find-max is given twice; write one list: --find-max 'p99<5ms,…'",
        ),
        ("--find-max p99<5ms -d 2s", "--duration \"2s\": a search takes at least 5s; try 60s"),
        ("--find-max p99<5ms --over bytes", "--over \"bytes\": unknown; write rate, connections or threads"),
        ("--over rate", "--over: no search was requested; add --find-max, for instance --find-max 'p99<50ms'"),
        ("--find-max p99<5ms --compat wrk", "--find-max: wrk has no searches; leave it out"),
        (
            "--find-max p99.99<5ms -R 100",
            "--find-max p99.99<5ms: judging this condition takes 100,000 responses (1000s at 100.0/s), but the search is limited to 60s; raise the limit with -d, or ask for a lower percentile",
        ),
    ] {
        let output = context.onrush().words(words).word("http://127.0.0.1:1/").run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.ends_with(&format!(" {line}\n")), "{line}\n{output:?}");
    }
}
