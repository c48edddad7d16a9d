//! Searches for the highest load: what they find, print and refuse.
//!
//! The accuracy of a search within a minute is measured by hand; here it has a few seconds.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Context, Scratch, Served, cases, counts, target, url};
use crate::results::number;
use crate::tls_peers::{TlsServer, self_signed};

cases! {
    the_rate_of_a_target_of_known_capacity_is_found;
    connections_are_searched_in_a_closed_loop;
    a_run_that_is_repeated_for_longer_waits_for_what_is_in_flight;
    connections_outlast_the_runs_of_a_search;
    connections_that_speak_tls_outlast_them_too;
    an_objective_that_no_load_meets_exits_with_3;
    an_objective_that_every_load_meets_is_said_to_be_met;
    a_target_that_dies_ends_the_search_with_what_is_known;
    a_signal_ends_the_search_with_what_is_known;
    a_target_that_closes_every_connection_holds_nothing_up;
    a_target_that_is_not_there_is_refused_as_by_a_run;
    a_search_is_no_result_that_can_be_added_up;
    what_makes_no_search_is_refused;
}

fn the_rate_of_a_target_of_known_capacity_is_found(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("find-max"));
    let file = scratch.path().join("search.json");
    let words = "-t1 --find-max p90<200ms,errors<1% -d 15s -R 430 -o";
    let output = context.onrush().words(words).word(&file).word(url(&server, "/capacity?rps=500")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let highest = number(&document, "/highest/load");
    // A busy machine may spoil one or two of few runs, but never makes a target faster.
    assert!((400.0..=525.0).contains(&highest), "{highest}: {output:?}");
    assert!(output.stdout.starts_with(&format!("Highest rate with p90<200ms,errors<1%: {highest:.1}/s")), "{output:?}");
    assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    let points = document["points"].as_array().unwrap();
    let lines: Vec<&str> = output.stderr.lines().filter(|line| line.contains("/s  ")).collect();
    assert_eq!(lines.len(), points.len(), "a line for each run: {output:?}");
    assert_eq!(document["kind"], "search");
    assert!(points.iter().any(|point| point["holds"] == false), "{document}");
    let schema: Value = serde_json::from_str(include_str!("../../docs/search.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    assert!(validator.is_valid(&document), "{document}");
    assert!(output.took < Duration::from_secs(20), "{output:?}");
}

fn connections_are_searched_in_a_closed_loop(context: &Context) {
    let server = target();
    // Each further connection waits 10 ms longer: four of them 40 ms.
    let words = "-t1 -c2 --find-max p50<45ms --over connections -d 20s --format json";
    let output = context.onrush().words(words).word(url(&server, "/capacity?rps=100")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(number(&document, "/highest/load"), 4.0, "{output:?}");
    assert_eq!(document["over"], "connections");
}

fn a_run_that_is_repeated_for_longer_waits_for_what_is_in_flight(context: &Context) {
    const CONNECTIONS: usize = 10;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let in_flight = Arc::new(AtomicI64::new(0));
    let (sender, seen) = mpsc::channel();
    thread::spawn(move || {
        for (index, connection) in listener.incoming().flatten().enumerate() {
            // Fast at first, slow in the run that then has too few responses; the next run is longer.
            let delay = Duration::from_millis(if index < CONNECTIONS { 2 } else { 1_000 });
            if index == 2 * CONNECTIONS {
                let _ = sender.send(in_flight.load(Ordering::Relaxed));
            }
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || answer_after(delay, connection, &in_flight));
        }
    });
    let words = format!("-t1 -c{CONNECTIONS} --find-max p50<5s --over connections -d 30s http://{address}/");
    context.onrush().words(&words).interrupt_after(Duration::from_secs(7)).run();
    assert_eq!(seen.try_recv(), Ok(0), "requests in flight when the longer run began");
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

fn connections_outlast_the_runs_of_a_search(context: &Context) {
    let server = target();
    let words = "-t2 -c8 --find-max p90<200ms -d 10s -R 400";
    let output = context.onrush().words(words).word(url(&server, "/capacity?rps=500")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let runs = output.stderr.lines().filter(|line| line.contains("/s  ")).count();
    let connections = counts(server.address()).connections;
    // What is still in flight when a run has waited long enough is closed.
    assert!(runs >= 3 && (8..16).contains(&connections), "{connections} connections: {output:?}");
}

fn connections_that_speak_tls_outlast_them_too(context: &Context) {
    let server = TlsServer::new(&self_signed(&["localhost"]));
    for version in ["1.2", "1.3"] {
        let before = server.heard(|heard| heard.handshakes);
        let words = "-k -t1 -c4 --find-max p50<500ms -d 6s -R 100 --tls-max";
        let output = context.onrush().words(words).word(version).word(server.url("/")).run();
        assert_eq!(output.code, 0, "{output:?}");
        let runs = output.stderr.lines().filter(|line| line.contains("/s  ")).count();
        let handshakes = server.heard(|heard| heard.handshakes) - before;
        assert!(runs >= 2 && (4..8).contains(&handshakes), "TLS {version}, {handshakes} handshakes: {output:?}");
    }
}

fn an_objective_that_no_load_meets_exits_with_3(context: &Context) {
    let server = target();
    let words = "-t1 -c1 --find-max p50<5ms --over connections -d 8s";
    let output = context.onrush().words(words).word(url(&server, "/delay/20")).run();
    assert_eq!(
        (output.code, &output.stdout[..]),
        (3, "No number of connections tried holds p50<5ms, down to 1\n"),
        "{output:?}"
    );
}

fn an_objective_that_every_load_meets_is_said_to_be_met(context: &Context) {
    let server = target();
    let words = "-t1 -c2 --find-max errors<=100% --over threads -d 8s";
    let output = context.onrush().words(words).word(url(&server, "/delay/20")).run();
    let line = "Every number of threads tried holds errors<=100%, up to 2\n";
    assert_eq!((output.code, &output.stdout[..]), (0, line), "{output:?}");
}

fn a_target_that_dies_ends_the_search_with_what_is_known(context: &Context) {
    let served = Served::start();
    let address = served.address;
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_secs(5));
        drop(served);
    });
    let words = "-t1 --find-max p50<500ms -R 400 -d 30s";
    let output = context.onrush().words(words).word(format!("http://{address}/")).run();
    killer.join().unwrap();
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.starts_with("Highest rate with p50<500ms: unknown, at least "), "{output:?}");
    assert!(output.stdout.contains("/s: the target stopped responding at "), "{output:?}");
    assert!(output.stderr.contains(", but there was no response"), "{output:?}");
}

fn a_signal_ends_the_search_with_what_is_known(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-t1 --find-max p50<500ms -R 400").word(url(&server, "/"));
    let output = onrush.interrupt_after(Duration::from_secs(5)).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("Every rate tried holds p50<500ms, up to "), "{output:?}");
    assert!(output.took < Duration::from_secs(7), "{output:?}");
    let onrush = context.onrush().words("-t1 --find-max p99<50ms").word(url(&server, "/"));
    let output = onrush.interrupt_after(Duration::from_millis(400)).run();
    assert_eq!((output.code, &output.stdout[..]), (5, ""), "{output:?}");
}

fn a_target_that_closes_every_connection_holds_nothing_up(context: &Context) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // The first request is read and gets no response.
            let _ = BufReader::new(&connection).read(&mut [0; 1]);
            let _ = (&connection).flush();
        }
    });
    let words = "-t1 --find-max p99<50ms -R 200 -d 8s";
    let output = context.onrush().words(words).word(format!("http://{address}/")).run();
    assert_eq!(output.code, 5, "{output:?}");
    assert!(
        output.stdout.starts_with("Highest rate with p99<50ms: unknown: the target did not respond at "),
        "{output:?}"
    );
    assert!(output.took < Duration::from_secs(20), "{output:?}");
}

fn a_target_that_is_not_there_is_refused_as_by_a_run(context: &Context) {
    for words in ["", "-R 500", "--format json -R 500", "--over connections -c2"] {
        let output = context.onrush().words("--find-max p99<50ms http://127.0.0.1:1/").words(words).run();
        assert_eq!((output.code, &output.stdout[..]), (2, ""), "{output:?}");
        assert!(output.stderr.contains("onrush: unable to connect to 127.0.0.1:1: connection refused"), "{output:?}");
    }
}

fn a_search_is_no_result_that_can_be_added_up(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("search"));
    let file = scratch.path().join("search.json");
    let words = "-t1 -c1 --find-max errors<1% --over threads -d 5s -o";
    assert_eq!(context.onrush().words(words).word(&file).word(url(&server, "/")).run().code, 0);
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
            "--find-max p99<5ms: a warm-up of 10s and a run of 2s do not fit into the rest of the 6s; shorten --warmup, or raise the limit with -d",
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
            "--find-max p99.99<5ms: each run needs 100,000 responses (1000s at 100.0/s), but the search is limited to 60s; raise the limit with -d, or ask for a lower percentile",
        ),
    ] {
        let output = context.onrush().words(words).word("http://127.0.0.1:1/").run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.ends_with(&format!(" {line}\n")), "{line}\n{output:?}");
    }
}
