//! Searches for the highest load: what they find, print and refuse. Most are simulated; the accuracy of a search against
//! a real target is measured by hand.

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
    the_rate_of_a_target_of_known_capacity_is_found (Once);
    a_run_whose_last_response_comes_early_counts_whole (Once);
    a_limit_close_above_the_usual_latency_stops_no_run_that_holds (Once);
    a_run_that_is_stopped_early_says_how_long_it_measured (Once);
    a_deviation_excuses_no_overload (Once);
    a_search_that_onrush_limited_has_no_result (Once);
    a_search_among_random_service_times_finds_what_theory_computes (Once);
    connections_are_searched_in_a_closed_loop (Once);
    a_quiet_search_prints_its_result_only (Once);
    a_run_begins_when_nothing_is_in_flight_any_more (Once);
    the_first_look_begins_when_its_connections_are_open (Once);
    a_search_of_fifteen_seconds_has_a_result (Once);
    a_search_goes_on_when_the_target_has_recovered (Once);
    connections_outlast_the_runs_of_a_search (Once);
    a_real_search_takes_the_time_that_it_says;
    a_target_without_a_processor_is_not_held_to_what_it_did (Once) needs "taskset";
    an_objective_that_no_load_meets_exits_with_3 (Once);
    a_target_too_slow_without_any_load_ends_the_search_early (Once);
    a_target_that_is_slow_at_first_is_searched_all_the_same (Once);
    what_failed_while_the_target_was_slow_is_no_limit_of_it (Once);
    a_disturbed_run_is_repeated_before_the_search_goes_on_from_it (Once);
    a_target_that_takes_seconds_for_each_response_recovers (Once);
    a_target_that_was_not_there_in_a_run_is_not_called_cold (Once);
    a_single_failed_run_before_a_signal_shows_nothing (Once);
    a_rate_at_which_requests_fail_holds_no_percentile (Once);
    failures_that_the_objective_permits_do_not_count_against_a_rate (Once);
    an_objective_that_every_load_meets_is_said_to_be_met (Once);
    a_target_that_dies_ends_the_search_with_what_is_known (Once);
    a_target_that_collapses_is_known_up_to_its_cliff (Once);
    a_signal_ends_the_search_with_what_is_known (Once);
    a_target_that_closes_every_connection_holds_nothing_up (Once);
    a_target_that_is_not_there_is_refused_as_by_a_run (Once);
    a_search_is_no_result_that_can_be_added_up (Once);
    what_makes_no_search_is_refused (Once);
}

/// A target that does 500 requests a second, one after the other.
const EVEN: &str = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\n";

fn the_rate_of_a_target_of_known_capacity_is_found(context: &Context) {
    let words = "-t1 --find-max p90<200ms,errors<1% -d 60s -R 430";
    let (output, document) = simulated_document(context.onrush().words(words), EVEN);
    assert_eq!(output.code, 0, "{output:?}");
    // A higher rate r leaves (r - 500) × 3 s requests waiting at the end of a run of 3 s, warm-up included: 200 ms, or
    // 100 requests, at 533/s. That the latency rises is found out much earlier.
    let highest = number(&document, "/highest/load");
    assert!((490.0..=505.0).contains(&highest), "{highest}: {output:?}");
    assert!(
        output.stdout.starts_with(&format!("Highest confirmed rate with p90<200ms,errors<1%: {highest:.1}/s")),
        "{output:?}"
    );
    assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    let points = document["points"].as_array().unwrap();
    let lines: Vec<&str> = output.stderr.lines().filter(|line| line.contains("/s  ")).collect();
    assert_eq!(lines.len(), points.len(), "a line for each run: {output:?}");
    assert_eq!(document["kind"], "search");
    assert!(points.iter().any(|point| point["holds"] == false), "{document}");
    let schema: Value = serde_json::from_str(include_str!("../../docs/search.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    assert!(validator.is_valid(&document), "{document}");
    // Every run, every warm-up and every pause is part of the time that a search may take.
    let took_s = number(&document, "/duration_s");
    assert!((30.0..=62.0).contains(&took_s), "{took_s}: {output:?}");
}

/// With random arrivals the last request may be due, and answered, long before the time is up.
fn a_run_whose_last_response_comes_early_counts_whole(context: &Context) {
    // With a percentile, the load would go on after the last request of a run.
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

/// Responses take 100 ms, and 102 ms are allowed; 500 a second is the limit. The two are in one bin of the timeline.
fn a_limit_close_above_the_usual_latency_stops_no_run_that_holds(context: &Context) {
    let slow = EVEN.replace("latency_us = 0.0", "latency_us = 98000.0");
    let (output, document) = simulated_document(context.onrush().words("-t1 -R 430 --find-max p99<102ms"), &slow);
    let points = document["points"].as_array().unwrap();
    let held: Vec<&Value> = points.iter().filter(|point| point["holds"] == true).collect();
    assert!(held.iter().all(|point| point.get("ended_early").is_none()), "{output:?}");
    assert!(held.iter().any(|point| point["confirms"] == true && number(point, "/duration_s") > 9.0), "{output:?}");
    let highest = number(&document, "/highest/load");
    assert!(output.code == 0 && (475.0..=505.0).contains(&highest), "{output:?}");
}

/// A run of half an hour's search measures for a minute, the fifth part of which is twelve seconds.
fn a_run_that_is_stopped_early_says_how_long_it_measured(context: &Context) {
    let words = "-t1 -R 600 --find-max p99<50ms -d 30m";
    let (output, document) = simulated_document(context.onrush().words(words), &format!("signal_s = 120.0\n{EVEN}"));
    let points = document["points"].as_array().unwrap();
    let early: Vec<&Value> = points.iter().filter(|point| point["ended_early"] == true).collect();
    assert!(early.len() >= 2, "{output:?}");
    for point in early {
        let [per_s, duration_s] = ["/rate_per_s", "/duration_s"].map(|at| number(point, at));
        assert!((490.0..=510.0).contains(&per_s) && duration_s >= 12.0, "{point}: {output:?}");
    }
}

/// Responses take 22 ms, so that a single request is slower than the deviation may be.
fn a_deviation_excuses_no_overload(context: &Context) {
    let slow = EVEN.replace("latency_us = 0.0", "latency_us = 20000.0");
    let words = "-t1 -R 430 --find-max p99<50ms,stdev<5ms";
    let (output, document) = simulated_document(context.onrush().words(words), &slow);
    assert!(output.code == 0 && !output.stderr.contains("contradict"), "{output:?}");
    let points = document["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point["fault"] != "cold"), "{output:?}");
    let [low, high] = ["low", "high"].map(|end| number(&document, &format!("/interval/{end}")));
    assert!(low <= 500.0 && high >= 500.0 && high - low < 60.0, "{low} to {high}: {output:?}");
}

/// onrush is stalled for 40 ms again and again. Two runs in which that was less than a hundredth of the time fail by the
/// target's fault; the search ends because of the others.
fn a_search_that_onrush_limited_has_no_result(context: &Context) {
    let stalls: String = (0..160)
        .map(|n| format!("[[generator_stall]]\nfrom_s = {:.3}\nfor_s = 0.04\n", 0.3 + 0.37 * f64::from(n)))
        .collect();
    let output = simulate(context.onrush().words("-t1 -R 430 --find-max p99<20ms"), &format!("{EVEN}{stalls}"));
    assert!(output.stdout.starts_with("Highest rate with p99<20ms: unknown: at "), "{output:?}");
    assert!(output.stdout.ends_with(", onrush itself was the limit\n") && output.code == 6, "{output:?}");
}

/// Two workers with exponentially distributed times of 4 ms on average, one for each thread, of which each has evenly
/// spaced requests (D/M/1): a response takes longer than t with the probability e^(-(1 - σ) t / 4 ms), where
/// σ = e^(-(1 - σ) / ρ). For a p99 of 50 ms: 1 - σ = 0.368, ρ = 0.802, so that both threads do 401 requests a second.
/// With the seeds 1 to 24, the interval has that in it 20 times.
fn a_search_among_random_service_times_finds_what_theory_computes(context: &Context) {
    let random = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 2\nservice_us = 4000.0\n\
                  spread = 'exponential'";
    let onrush = context.onrush().words("-t2 --max-inflight 1000 --find-max p99<50ms -d 120s -R 300 --seed 2");
    let (output, document) = simulated_document(onrush, random);
    let [low, high] = ["low", "high"].map(|end| number(&document, &format!("/interval/{end}")));
    assert!(low <= 401.0 && 401.0 <= high && high - low < 100.0, "{low} to {high}: {output:?}");
}

fn a_quiet_search_prints_its_result_only(context: &Context) {
    let search = |words: &str| {
        let onrush = context.onrush().words("-t1 --find-max p90<200ms -d 60s -R 430").words(words);
        simulate(onrush, EVEN)
    };
    let (usual, quiet) = (search(""), search("--quiet"));
    assert_eq!((quiet.code, &quiet.stdout, quiet.stderr.as_str()), (usual.code, &usual.stdout, ""));
    assert!(usual.stderr.lines().count() > 5, "{usual:?}");
}

fn connections_are_searched_in_a_closed_loop(context: &Context) {
    // Each further connection waits 10 ms longer: four of them 40 ms.
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

/// A closed loop ends with a request in flight on each connection; the next run begins when all have been answered.
fn a_run_begins_when_nothing_is_in_flight_any_more(context: &Context) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let in_flight = Arc::new(AtomicI64::new(0));
    let (sender, seen) = mpsc::channel();
    thread::spawn(move || {
        let mut last = Instant::now();
        for connection in listener.incoming().flatten() {
            // The first connection of a run.
            if last.elapsed() > Duration::from_millis(400) {
                let _ = sender.send(in_flight.load(Ordering::Relaxed));
            }
            last = Instant::now();
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || answer_after(Duration::from_millis(150), connection, &in_flight));
        }
    });
    // At the least a search takes five seconds.
    let words = format!("-t1 -c8 --find-max p50<5s --over connections -d 5s http://{address}/");
    let output = context.onrush().words(&words).run();
    let seen: Vec<i64> = seen.try_iter().collect();
    assert!(!seen.is_empty() && seen.iter().all(|in_flight| *in_flight == 0), "{seen:?}: {output:?}");
}

/// Responds to each request after a delay, and counts those that wait.
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

/// Connects wait for most of a second.
fn the_first_look_begins_when_its_connections_are_open(context: &Context) {
    let late = format!("backlog = [{{ from_s = 0.0, for_s = 0.9 }}]\n{EVEN}");
    let output = simulate(context.onrush().words("-t1 --find-max p99<50ms -d 15s"), &late);
    assert!(output.stderr.contains("\na closed loop on 10 connections reached 500.0/s\n"), "{output:?}");
}

fn a_search_of_fifteen_seconds_has_a_result(context: &Context) {
    let slow = EVEN.replace("2000.0", "8000.0");
    let (output, document) = simulated_document(context.onrush().words("-t1 --find-max p95<50ms -d 15s"), &slow);
    let highest = number(&document, "/highest/load");
    assert!(output.code == 0 && (112.0..=126.0).contains(&highest), "125/s: {output:?}");
    assert!(output.stdout.contains("/s (the estimated limit is roughly between 1"), "{output:?}");
    assert!(number(&document, "/duration_s") <= 17.0, "{document}");
    // No run of a third of it has the 1,000 responses that a p99 needs.
    let (output, document) = simulated_document(context.onrush().words("-t1 --find-max p99<50ms -d 15s"), &slow);
    let [low, high] = ["low", "high"].map(|end| number(&document, &format!("/interval/{end}")));
    assert!(output.code == 6 && low <= 125.0 && high >= 125.0, "{output:?}");
    assert!(
        output
            .stdout
            .contains(" held, but there was no time for the run that confirms it; the estimated limit is roughly"),
        "{output:?}"
    );
}

/// Nothing is answered for three seconds, in which a run fails. Requests that it leaves are no part of the next run, which
/// begins when the target answers at once.
fn a_search_goes_on_when_the_target_has_recovered(context: &Context) {
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
    // It goes on upwards although a lower rate has failed.
    assert!(number(&document, "/highest/load") >= 450.0, "{output:?}");
    assert!(output.stderr.contains("1 of "), "{output:?}");
    assert!(output.stderr.contains(" runs contradicts the others (the run at 375.0/s failed)"), "{output:?}");
}

/// Nobody accepts a connection after the first second.
fn connections_outlast_the_runs_of_a_search(context: &Context) {
    let words = "-t2 -c8 --find-max errors<1% -d 60s -R 400";
    let refusing =
        format!("refuse = [{{ from_s = 1.0, for_s = 1000.0 }}]\n{EVEN}").replace("workers = 1", "workers = 2");
    let output = simulate(context.onrush().words(words), &refusing);
    let held = output.stderr.matches("/s  holds  ").count();
    assert!(held >= 3, "run after run: {output:?}");
}

/// A search by the machine's clock.
fn a_real_search_takes_the_time_that_it_says(context: &Context) {
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

/// Two busy loops have priority on the only processor of the target, so that it waits for milliseconds again and again.
/// What the search finds is up to the machine; what it claims is not.
fn a_target_without_a_processor_is_not_held_to_what_it_did(context: &Context) {
    let pin = "first=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status)
               taskset -pc $first $$ >&2";
    let looping = || Looping(Command::new("sh").arg("-c").arg(format!("{pin}; while :; do :; done")).spawn().unwrap());
    let loops = [looping(), looping()];
    let server = Served::start_after(&format!("{pin}; exec nice -n 10 \"$0\" \"$@\""));
    let scratch = Scratch::new("starved");
    let file = scratch.path().join("search.json");
    // No search is shorter.
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
        // 3 would claim that no rate holds.
        code => panic!("{code}: {output:?}"),
    }
}

/// A process that uses a processor until this is dropped.
struct Looping(Child);

impl Drop for Looping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn an_objective_that_no_load_meets_exits_with_3(context: &Context) {
    let words = "-t1 -c1 --find-max p50<5ms --over connections -d 8s";
    let output = simulate(context.onrush().words(words), "latency_us = 20000.0");
    assert_eq!((output.code, &output.stdout[..]), (3, "p50<5ms held at no number of connections tried, down to 1\n"));
    let lines = "\
searching for the highest number of connections at which p50<5ms holds, for up to 8s
a closed loop on 1 connection reached 50.0/s
 connections  result   reached, measured
           1  fails    50.0/s, p50<5ms: 20.00ms
           1  fails    50.0/s, p50<5ms: 20.00ms
";
    assert_eq!(output.stderr, lines);
}

/// No lower rate and no longer search would help.
fn a_target_too_slow_without_any_load_ends_the_search_early(context: &Context) {
    let slow = "latency_us = 300000.0";
    let constant = "latency_us = 1000.0\n[capacity]\nworkers = 2\nservice_us = 4000.0\nqueue = 5000";
    for (words, scenario, runs, took) in [
        ("-t1 --find-max p99<50ms", slow, 4, "at least 300.00ms (13 requests measured over 21 s)"),
        ("-t1 --find-max p99<50ms -R 36", slow, 5, "at least 300.00ms (16 requests measured over 24 s)"),
        // A p99 takes 1,000 responses, for which there is no time; nor would it help.
        ("-t1 --find-max p99<50ms -d 15s", slow, 0, "at least 300.00ms (11 requests measured over 5 s)"),
        ("-t2 --find-max p99<3ms -d 20s", constant, 4, "at least 5.00ms (13 requests measured over 8 s)"),
        // Three requests after a run take longer than the five seconds in which most targets have recovered.
        ("-t1 --find-max p99<1s -R 20", "latency_us = 2000000.0", 2, "at least 2.00s (7 requests measured over 28 s)"),
    ] {
        let (output, document) = simulated_document(context.onrush().words(words), scenario);
        assert!(output.code == 3 && output.stdout.starts_with("p99<"), "{output:?}");
        assert!(
            output.stdout.ends_with(&format!(
                " cannot hold at any rate: even when sent one at a time, every request took {took}\n"
            )),
            "{output:?}"
        );
        let points = document["points"].as_array().unwrap();
        assert_eq!((points.len(), &document["ended"]), (runs, &Value::from("hopeless")), "{output:?}");
        // What it reached of its rate is no figure of the target: it was cut short.
        assert!(points.iter().all(|point| point["ended_early"] == true), "{document}");
        assert_eq!(output.stderr.matches(", stopped after ").count(), runs, "{output:?}");
    }
    // One that is fast without load is searched, and so is one that needs more time only.
    let output = simulate(context.onrush().words("-t1 --find-max p99<400ms -d 15s"), slow);
    assert!(output.code == 1 && output.stderr.contains("raise the limit with -d"), "{output:?}");
}

/// A target that takes 100 ms for each response at first, for so many seconds, whatever it is asked for.
fn slow_for(seconds: u32) -> String {
    (0..10 * seconds).map(|n| format!("[[stall]]\nfrom_s = {}.{}\nfor_s = 0.0999\n", n / 10, n % 10)).collect()
}

/// It does 500 requests a second later.
fn what_failed_while_the_target_was_slow_is_no_limit_of_it(context: &Context) {
    for (seconds, first) in
        [(3, "-R 430"), (5, ""), (10, ""), (10, "-R 430"), (12, ""), (15, "-R 430"), (15, "-R 300"), (20, "-R 430")]
    {
        let scenario = format!("{EVEN}{}", slow_for(seconds));
        let onrush = context.onrush().words("-t1 --find-max p99<50ms").words(first);
        let (output, document) = simulated_document(onrush, &scenario);
        let highest = document.pointer("/highest/load").and_then(Value::as_f64);
        let is_known = output.code == 0 && highest.is_some_and(|load| (430.0..=505.0).contains(&load));
        assert!(is_known || output.code == 6, "{seconds} s, {first}: {output:?}");
        let points = document["points"].as_array().unwrap();
        let against = document["contradicting"].as_u64().unwrap_or(0) as usize;
        assert!(output.code == 6 || 3 * against < points.len(), "{seconds} s, {first}: {output:?}");
    }
}

/// Nothing is answered for the second in which the second run begins.
fn a_disturbed_run_is_repeated_before_the_search_goes_on_from_it(context: &Context) {
    let stalled = format!("{EVEN}[[stall]]\nfrom_s = 3.0\nfor_s = 1.0\n");
    let (output, document) = simulated_document(context.onrush().words("-t1 --find-max p90<50ms -R 50"), &stalled);
    let points = document["points"].as_array().unwrap();
    let [failed, repeated] = [1, 2].map(|run| (number(&points[run], "/load"), points[run]["holds"] == true));
    assert_eq!((failed, repeated), ((62.5, false), (62.5, true)), "{output:?}");
    let highest = number(&document, "/highest/load");
    assert!(output.code == 0 && (470.0..=505.0).contains(&highest), "{output:?}");
}

/// Whatever it is asked for, a response takes 100 ms at first, and later 1 ms.
fn a_target_that_is_slow_at_first_is_searched_all_the_same(context: &Context) {
    let (output, document) = simulated_document(
        context.onrush().words("-t1 --find-max p99<50ms -d 20s -R 500"),
        &format!("latency_us = 1000.0\n{}", slow_for(5)),
    );
    assert!(output.code == 6 && output.stdout.contains(" held at every rate tried, up to "), "{output:?}");
    assert!(output.stderr.contains("): the target was slower at first; add --warmup"), "{output:?}");
    assert!(!output.stdout.contains("limit is"), "nothing failed when it was warm: {output:?}");
    let points = document["points"].as_array().unwrap();
    assert_eq!([0, 1, 2].map(|first| &points[first]["fault"]), ["cold"; 3], "{document}");
    assert!(points.iter().any(|point| point["holds"] == true && number(point, "/load") > 500.0), "{output:?}");
}

/// Twenty requests at a time take two seconds each: ten a second.
fn a_target_that_takes_seconds_for_each_response_recovers(context: &Context) {
    let slow = "latency_us = 1000.0\n[capacity]\nworkers = 20\nservice_us = 2000000.0\nqueue = 5000";
    let (output, document) = simulated_document(context.onrush().words("-t1 -R 5 --find-max p50<4s -d 5m"), slow);
    let highest = number(&document, "/highest/load");
    assert!(output.code == 0 && (9.0..=10.5).contains(&highest), "{output:?}");
    assert!(!output.stderr.contains("  void  "), "{output:?}");
}

/// The first of its runs is disturbed, as that of a target that has yet to warm up would be.
fn a_target_that_was_not_there_in_a_run_is_not_called_cold(context: &Context) {
    for (scenario, silent_s, refuses) in
        [("[[outage]]\nfrom_s = 2.0\nfor_s = 3.0", 1.9, true), ("[[stall]]\nfrom_s = 2.0\nfor_s = 0.5", 0.4, false)]
    {
        let output = simulate(context.onrush().words("-t1 --find-max p99<50ms -d 20s"), scenario);
        let note = output.stderr.lines().find(|line| line.starts_with("note: 1 of ")).unwrap_or_default();
        let (_, rest) = note.split_once("): in this run, the target did not respond for ").expect(note);
        let text: String = rest.chars().take_while(|it| it.is_ascii_digit() || *it == '.').collect();
        let unit = if rest[text.len()..].starts_with("ms") { 1e-3 } else { 1.0 };
        let seconds = text.parse::<f64>().unwrap() * unit;
        assert!((silent_s..silent_s + 1.0).contains(&seconds), "{output:?}");
        assert_eq!(note.contains(" attempts to connect failed"), refuses, "{output:?}");
        assert!(note.ends_with("; find out why, and repeat the search"), "{output:?}");
    }
}

/// A gate does not break because of one run, which may have been disturbed.
fn a_single_failed_run_before_a_signal_shows_nothing(context: &Context) {
    let words = "-t1 --find-max p99<30ms -R 600";
    for (signal_s, once, code) in [(3.0, " (tried once)", 130), (6.0, "", 3)] {
        let output = simulate(context.onrush().words(words), &format!("signal_s = {signal_s:.1}\n{EVEN}"));
        let line = format!("p99<30ms held at no rate tried, down to 600.0/s{once}; the search was interrupted\n");
        assert_eq!((output.code, output.stdout), (code, line), "{}", output.stderr);
    }
}

/// A tenth of the requests is reset, so that nobody knows the 99th percentile of all, at any rate.
fn a_rate_at_which_requests_fail_holds_no_percentile(context: &Context) {
    let scenario = "latency_us = 1000.0\n[[fault]]\nevery = 10\nwhat = 'reset'";
    let output = simulate(context.onrush().words("-t1 --find-max p99<50ms -R 400 -d 30s"), scenario);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stdout.starts_with("p99<50ms held at no rate tried, down to "), "{output:?}");
    assert!(output.stderr.contains("p99<50ms: at least 1.00ms, with no upper bound, because "), "{output:?}");
    // Nor does the closed loop at the beginning, in which responses are as fast.
    for every in [20, 50] {
        let scenario = format!("latency_us = 1000.0\n[[fault]]\nevery = {every}\nwhat = 'reset'");
        let output = simulate(context.onrush().words("-t1 --find-max p99<50ms -d 30s"), &scenario);
        assert_eq!(output.code, 3, "{output:?}");
        assert!(!output.stderr.contains("may hold more than this search has shown"), "{output:?}");
    }
}

/// Of 500 requests a second, one in 50 is reset.
fn failures_that_the_objective_permits_do_not_count_against_a_rate(context: &Context) {
    let scenario = format!("{EVEN}[[fault]]\nevery = 50\nwhat = 'reset'");
    for (objective, first) in
        [("errors<3%", 430), ("p90<50ms,errors<3%", 430), ("p90<50ms,errors<3%", 350), ("p90<50ms,errors<3%", 300)]
    {
        let onrush = context.onrush().words(&format!("-t1 -R {first} --find-max")).word(objective);
        let (output, document) = simulated_document(onrush, &scenario);
        let highest = number(&document, "/highest/load");
        assert!(output.code == 0 && (470.0..=520.0).contains(&highest), "{highest}: {output:?}");
    }
}

fn an_objective_that_every_load_meets_is_said_to_be_met(context: &Context) {
    let words = "-t1 -c2 --find-max errors<=100% --over threads -d 8s";
    let output = simulate(context.onrush().words(words), "latency_us = 20000.0");
    let line = "errors<=100% held at every number of threads tried, up to 2\n";
    assert_eq!((output.code, &output.stdout[..]), (0, line), "{output:?}");
}

fn a_target_that_dies_ends_the_search_with_what_is_known(context: &Context) {
    let words = "-t1 --find-max p50<500ms -R 400 -d 30s";
    let output = simulate(context.onrush().words(words), "[[stall]]\nfrom_s = 10.0\nfor_s = 1000000.0");
    let line = "Highest rate with p50<500ms: unknown, at least 625.0/s: the target stopped responding at 937.5/s\n";
    assert_eq!((output.code, &output.stdout[..]), (5, line), "{output:?}");
    assert!(output.stderr.contains("  fails    0.0/s, no response\n"), "{output:?}");
}

/// With more than 20 requests waiting a worker takes three times as long: up to 500/s nothing waits, above it 167/s are
/// left.
fn a_target_that_collapses_is_known_up_to_its_cliff(context: &Context) {
    let words = "-t1 --max-inflight 2000 --find-max p99<100ms -d 60s -R 300";
    let cliff = format!("{EVEN}cliff = {{ waiting = 20, slower = 3.0 }}");
    let (output, document) = simulated_document(context.onrush().words(words), &cliff);
    let highest = number(&document, "/highest/load");
    assert!((460.0..=505.0).contains(&highest), "{highest}: {output:?}");
    let beyond = document["points"].as_array().unwrap().iter().filter(|point| number(point, "/load") > 550.0);
    let reached: Vec<f64> = beyond.map(|point| number(point, "/rate_per_s")).collect();
    assert!(!reached.is_empty() && reached.iter().all(|rate| *rate < 250.0), "{reached:?}");
}

fn a_signal_ends_the_search_with_what_is_known(context: &Context) {
    let words = "-t1 --find-max p50<500ms -R 400";
    let output = simulate(context.onrush().words(words), "signal_s = 7.0");
    // One request to begin with, and runs of 3 s: the signal comes in the third.
    let line = "p50<500ms held at every rate tried, up to 500.0/s; the search was interrupted\n";
    assert_eq!((output.code, &output.stdout[..]), (130, line), "{output:?}");
    let output = simulate(context.onrush().words("-t1 --find-max p99<50ms"), "signal_s = 0.4");
    assert_eq!((output.code, &output.stdout[..]), (130, ""), "{output:?}");
    assert!(
        output
            .stderr
            .ends_with("onrush: interrupted before the first run of the search was over, so there is no result; let it run for up to 60s, or set another time with -d\n"),
        "{output:?}"
    );
    // A real one, in the closed loop of the first second.
    let server = target();
    let onrush = context.onrush().words("-t1 --find-max p99<50ms").word(url(&server, "/"));
    let output = onrush.interrupt_after(Duration::from_millis(400)).run();
    assert_eq!((output.code, &output.stdout[..]), (130, ""), "{output:?}");
}

fn a_target_that_closes_every_connection_holds_nothing_up(context: &Context) {
    let words = "-t1 --find-max p99<50ms -R 200 -d 8s";
    let (output, document) = simulated_document(context.onrush().words(words), "[[fault]]\nevery = 1\nwhat = 'close'");
    let line = "Highest rate with p99<50ms: unknown: the target did not respond at 200.0/s\n";
    assert_eq!((output.code, &output.stdout[..]), (5, line), "{output:?}");
    assert!((3.0..=17.0).contains(&number(&document, "/duration_s")), "{output:?}");
}

fn a_target_that_is_not_there_is_refused_as_by_a_run(context: &Context) {
    for words in ["", "-R 500", "--format json -R 500", "--over connections -c2"] {
        let output = context.onrush().words("--find-max p99<50ms http://127.0.0.1:1/").words(words).run();
        assert_eq!((output.code, &output.stdout[..]), (2, ""), "{output:?}");
        assert!(output.stderr.contains("onrush: unable to connect to 127.0.0.1:1: connection refused"), "{output:?}");
    }
}

fn a_search_is_no_result_that_can_be_added_up(context: &Context) {
    let scratch = Scratch::new("search");
    let file = scratch.path().join("search.json");
    let words = "-t1 -c1 --find-max errors<1% --over threads -d 5s -o";
    assert_eq!(simulate(context.onrush().words(words).word(&file), "").code, 0);
    let output = context.onrush().word("merge").word(&file).run_plain();
    let reason = "is the document of a search, not of a run: read it as JSON, for instance with jq\n";
    assert!(output.code == 1 && output.stderr.ends_with(reason), "{output:?}");
}

fn what_makes_no_search_is_refused(context: &Context) {
    for (words, line) in [
        ("--find-max p99<50", "--find-max \"p99<50\": at \"50\": which unit? write 50ms, 50us or 50s"),
        (
            "--find-max p99<5ms -n5",
            "--find-max and -n: a search decides how many requests a run has; leave one of the two out",
        ),
        (
            "--find-max p99<5ms --over connections -R5",
            "--find-max and -R: only --over rate has a rate; leave one of the two out",
        ),
        (
            "--find-max dropped<1 --over threads",
            "--find-max dropped<1: this needs a rate; use --over rate or another term",
        ),
        ("--find-max p99<5ms -o a.csv", "--find-max and -o: a search writes .json only; leave one of the two out"),
        (
            "--find-max p99<5ms -R 1000 -d 6s --warmup 10s",
            "--find-max p99<5ms: runs with a warm-up of 10s do not fit into a search of 6s; shorten --warmup, or raise the limit with -d",
        ),
        (
            "--find-max p99>50ms",
            "--find-max p99>50ms: this holds above a load, not below it; write what must hold, as in p99<50ms",
        ),
        ("--find-max p99=50ms", "--find-max p99=50ms: a latency is never exactly that; use < instead"),
        (
            "--find-max p99<5ms --find-max errors<1%",
            "--find-max is given twice; write one list: --find-max 'p99<5ms,…'",
        ),
        ("--find-max p99<5ms -d 2s", "--duration \"2s\": a search takes at least 5s; try 60s"),
        ("--find-max p99<5ms --over bytes", "--over \"bytes\": unknown; write rate, connections or threads"),
        ("--over rate", "--over: there is no search; add --find-max, for instance --find-max 'p99<50ms'"),
        ("--find-max p99<5ms --compat wrk", "--find-max: wrk has no searches; leave it out"),
        (
            "--find-max p99.99<5ms -R 100",
            "--find-max p99.99<5ms: it takes 100,000 responses to judge that (1000s at 100.0/s), but the search is limited to 60s; raise the limit with -d, or ask for a lower percentile",
        ),
    ] {
        let output = context.onrush().words(words).word("http://127.0.0.1:1/").run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.ends_with(&format!(" {line}\n")), "{line}\n{output:?}");
    }
}
