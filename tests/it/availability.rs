//! Unavailability of targets in virtual time, compared with shares computed by hand.

use serde_json::Value;

use crate::harness::{Context, cases};
use crate::results::number;
use crate::simulation::{simulate, simulated_document};

cases! {
    idle_outages_count_to_the_end (Once);
    outages_start_with_their_first_due_request (Once);
    outages_count_anywhere_in_the_run (Once);
    outages_count_however_many_requests_wait (Once);
    outages_count_whatever_queue_remains (Once);
    outages_count_with_delaying_scripts (Once);
    last_requests_of_a_count_are_awaited (Once);
    due_requests_never_exceed_the_total (Once);
    responding_targets_are_available (Once);
    early_batches_are_no_outage (Once);
    gaps_not_caused_by_targets_are_ignored (Once);
    sums_count_outages_seen_by_both_machines (Once);
    closed_loops_have_no_unavailability (Once);
}

/// Each response takes a millisecond.
const QUICK: &str = "connect_us = 0.0\nlatency_us = 1000.0\n";

/// Part of a scenario: the server is away for this many seconds.
fn outage(from_s: f64, for_s: f64) -> String {
    format!("[[outage]]\nfrom_s = {from_s:.3}\nfor_s = {for_s:.3}\n")
}

/// Unavailable periods, in seconds, and their share of the run.
fn unavailable(document: &Value) -> (Vec<(f64, f64)>, f64) {
    let spans = document["open_loop"]["unavailable"]["spans"].as_array().unwrap_or_else(|| panic!("{document:#}"));
    let spans = spans.iter().map(|span| {
        let start_s = number(span, "/start_s");
        (start_s, start_s + number(span, "/length_s"))
    });
    let rounded = |seconds: f64| (seconds * 1e6).round() / 1e6;
    let spans = spans.map(|(from_s, until_s)| (rounded(from_s), rounded(until_s))).collect();
    (spans, number(document, "/open_loop/unavailable/share"))
}

/// One request every 100 ms. The server is killed 50 ms after a request.
fn idle_outages_count_to_the_end(context: &Context) {
    let words = "-t1 -c1 -d10s -R 10 --fail-if unavailable>58.9% --fail-if unavailable>59.1%";
    let (output, document) =
        simulated_document(context.onrush().words(words), &(QUICK.to_owned() + &outage(4.05, 99.0)));
    assert_eq!((output.code, unavailable(&document)), (3, (vec![(4.1, 10.0)], 0.59)), "{output:?}");
    assert!(
        output.stderr.ends_with("onrush: --fail-if unavailable>58.9%: it was 59.000 % of the time\n"),
        "{output:?}"
    );
    output.note(
        "the target was unavailable for 59.0 % of the time: no response from 4.1 s to the end, while 59 requests were due",
    );
    assert_eq!(document["open_loop"]["unavailable"]["due"], 59);
    assert_eq!(document["open_loop"]["unavailable"]["longer_than_s"], 0.2);
    // All requests are due before the outage, and some of them cannot be sent.
    let (output, document) = simulated_document(
        context.onrush().words("-t1 -c1 -n100 -R 100 --give-up 5s"),
        &format!("connect_us = 0.0\nlatency_us = 20000.0\n{}", outage(1.5, 99.0)),
    );
    let (spans, share) = unavailable(&document);
    assert!(spans.len() == 1 && (1.48..1.5).contains(&spans[0].0) && share > 0.7, "{output:?} {spans:?}");
}

/// The server is away for three of eight seconds. The first connect afterwards is at most a second late.
fn outages_start_with_their_first_due_request(context: &Context) {
    let scenario = QUICK.to_owned() + &outage(2.0, 3.0);
    for (words, due) in [
        ("-t1 -c10 -R 500", 1_500),
        ("-t4 -c12 -R 500", 1_500),
        // Each thread gets one request per second. The request due at 2 s is the first thread's.
        ("-t4 -c4 -R 4", 12),
        ("-t2 -c10 -R 500 --arrivals burst:50", 1_500),
    ] {
        let gates = "--fail-if errors>0.5% --fail-if unavailable>37%";
        let (output, document) =
            simulated_document(context.onrush().words(words).words("-d8s").words(gates), &scenario);
        let (spans, share) = unavailable(&document);
        let [(from_s, until_s)] = spans[..] else { panic!("{words}: {spans:?}") };
        assert!(from_s == 2.0 && (5.0..6.0).contains(&until_s), "{words}: {spans:?}");
        assert!((share - (until_s - from_s) / 8.0).abs() < 1e-6, "{words}: {share} {spans:?}");
        let was = number(&document, "/open_loop/unavailable/due") as u64;
        assert!((due..due + due / 3).contains(&was), "{words}: {was}");
        // A request that was never sent for lack of a connection is no error.
        let broken: Vec<bool> =
            document["gates"].as_array().unwrap().iter().map(|gate| gate["broken"].as_bool().unwrap()).collect();
        assert_eq!((output.code, &broken[..]), (3, &[false, true][..]), "{words}: {document:#}");
    }
    // With random arrivals, a request is due some time after the last response before the outage.
    let words = "-t3 -c9 -R 20 --arrivals poisson -d8s";
    let (_, document) = simulated_document(context.onrush().words(words), &scenario);
    let (spans, _) = unavailable(&document);
    assert!(spans.len() == 1 && (2.0..2.5).contains(&spans[0].0) && spans[0].1 >= 5.0, "{spans:?}");
}

fn outages_count_anywhere_in_the_run(context: &Context) {
    for (words, from_s, for_s, expected) in [
        // Responses are late by the length of the outage: they all arrive at its end.
        ("-t1 -c10 -R 100 -d8s", 0.0, 2.0, vec![(0.0, 2.0)]),
        ("-t1 -c10 -R 100 -d8s", 7.0, 9.0, vec![(7.0, 8.0)]),
        ("-t2 -c10 -R 100 -d8s --warmup 2s", 1.0, 2.5, vec![(0.0, 1.5)]),
        ("-t2 -c10 -R 100 -d8s --warmup 2s", 0.0, 99.0, vec![(0.0, 8.0)]),
        ("-t1 -c10 -d8s -R 100 --max-late 100ms", 3.0, 2.0, vec![(3.0, 5.0)]),
        ("-t1 -c2 -d8s -R 100 --max-inflight 50", 3.0, 2.0, vec![(3.0, 5.0)]),
        // Nothing is due for four seconds, and it is unknown whether the target would have responded.
        ("-t1 -c10 --stages 2s:100,4s:0,2s:100", 1.0, 6.0, vec![(1.0, 2.0), (6.0, 7.0)]),
        // The first request is due after a second.
        ("-t1 -c10 --stages 8s:0..2", 0.0, 4.0, vec![(0.0, 4.0)]),
    ] {
        let scenario = format!("connect_us = 0.0\nlatency_us = 0.0\n[[stall]]\nfrom_s = {from_s:?}\nfor_s = {for_s:?}");
        let (_, document) = simulated_document(context.onrush().words(words), &scenario);
        let (spans, share) = unavailable(&document);
        assert_eq!(spans, expected, "{words} {from_s} {for_s}");
        let total_s: f64 = spans.iter().map(|(from_s, until_s)| until_s - from_s).sum();
        assert!((share - total_s / 8.0).abs() < 1e-6, "{words}: {share}");
    }
}

/// Three thousand of four thousand requests wait for the end of the outage, so the median latency is as long as an
/// outage.
fn outages_count_however_many_requests_wait(context: &Context) {
    let scenario = QUICK.to_owned() + "[[stall]]\nfrom_s = 1.0\nfor_s = 3.0\n[[stall]]\nfrom_s = 5.0\nfor_s = 3.0\n";
    let words = "-t2 -c10 --max-inflight 4000 -R 500 -d10s";
    let (_, document) = simulated_document(context.onrush().words(words), &scenario);
    let median_us = number(&document, "/latency/service/percentiles_us/50");
    assert!(median_us > 300_000.0, "{median_us}");
    let (spans, _) = unavailable(&document);
    let [(one_s, one_ends_s), (other_s, other_ends_s)] = spans[..] else { panic!("{spans:?}") };
    assert_eq!((one_ends_s, other_ends_s), (4.0, 8.0), "{spans:?}");
    assert!((0.996..=1.0).contains(&one_s) && (4.996..=5.0).contains(&other_s), "{spans:?}");
}

/// Under a load of nine tenths of its capacity, the target has not worked off a queue of three seconds by the end.
fn outages_count_whatever_queue_remains(context: &Context) {
    let capacity = "connect_us = 0.0\nlatency_us = 1000.0\n[capacity]\nworkers = 2\nservice_us = 20000\n";
    for words in ["-t2 -c100", "-t1 -c100", "-t1 -c2", "-t1 -c10 --max-inflight 4000"] {
        for (scenario, from_s) in [(outage(2.0, 3.0), 2.0), ("[[stall]]\nfrom_s = 2.0\nfor_s = 3.0\n".to_owned(), 1.9)]
        {
            let (_, document) = simulated_document(
                context.onrush().words(words).words("-R 90 -d10s"),
                &(capacity.to_owned() + &scenario),
            );
            let (spans, share) = unavailable(&document);
            let [(began_s, ended_s)] = spans[..] else { panic!("{words} {scenario}: {spans:?}") };
            assert!((from_s..2.1).contains(&began_s) && (5.0..6.0).contains(&ended_s), "{words} {scenario}: {spans:?}");
            assert!((0.29..0.41).contains(&share), "{words}: {share}");
        }
    }
}

fn outages_count_with_delaying_scripts(context: &Context) {
    let script = "function delay() return 5 end";
    for (for_s, longest_s) in [(99.0, 3.0), (1.0, 2.1)] {
        let words = "-t2 -c10 -R 200 -d5s";
        let scenario = QUICK.to_owned() + &outage(2.0, for_s);
        let (_, document) = simulated_document(context.onrush().words(words).lua(script), &scenario);
        let (spans, share) = unavailable(&document);
        assert!(spans.len() == 1 && (1.95..2.05).contains(&spans[0].0), "{spans:?}");
        assert!(share > 0.19 && share < (longest_s + 0.05) / 5.0, "{share}");
    }
}

/// The last request is due after 0.99 s. No response arrives from 0.996 s to 4.996 s.
fn last_requests_of_a_count_are_awaited(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 105000.0\n[[stall]]\nfrom_s = 0.996\nfor_s = 4.0\n";
    for threads in ["-t1", "-t2"] {
        let words = "-c100 -n 100 -R 100 --timeout 10s";
        let (output, document) = simulated_document(context.onrush().words(threads).words(words), scenario);
        let (spans, share) = unavailable(&document);
        assert!(spans.len() == 1 && (0.98..1.0).contains(&spans[0].0) && spans[0].1 > 4.9, "{spans:?} {output:?}");
        assert!((0.75..0.82).contains(&share), "{share}");
        let due = number(&document, "/open_loop/unavailable/due") as u64;
        assert!((10..=12).contains(&due), "{due}");
    }
}

/// Batches for 300 ms and longer, all answered after a millisecond.
fn early_batches_are_no_outage(context: &Context) {
    let script = |sizes: &str| {
        format!(
            "local sizes, number = {sizes}, 0 function request() number = number % #sizes + 1 \
             return wrk.format():rep(sizes[number]) end"
        )
    };
    for (words, sizes) in [
        ("-t1 -c1 -d6s", "{30}"),
        ("-t2 -c4 -d6s", "{30}"),
        ("-t1 -c1 -d6s", "{1, 59, 100}"),
        ("-t1 -c1 -d6s", "{3000}"),
        ("-t2 -c4 -n500", "{40}"),
        ("-t2 -c4 -d6s --warmup 1s", "{1, 59}"),
        ("-t1 -c1 -d6s --arrivals poisson --warmup 1s", "{30}"),
        ("-t1 -c1 -d6s --arrivals burst:20", "{30}"),
    ] {
        let gates = "-R 100 --fail-if unavailable>0.1%";
        let onrush = context.onrush().words(words).words(gates).lua(&script(sizes));
        let (output, document) = simulated_document(onrush, QUICK);
        assert_eq!((output.code, unavailable(&document).0), (0, Vec::new()), "{words} {sizes}: {output:?}");
        assert!(!output.stderr.contains("no response"), "{output:?}");
    }
    // No response arrives from 2.05 s to 4.05 s: seven batches are due from 2.1 s on.
    let stall = "connect_us = 0.0\nlatency_us = 0.0\n[[stall]]\nfrom_s = 2.05\nfor_s = 2.0";
    for (words, due) in [("-t1 -c10", 210), ("-t2 -c20", 180)] {
        let onrush = context.onrush().words(words).words("-d6s -R 100").lua(&script("{30}"));
        let (_, document) = simulated_document(onrush, stall);
        let began_s = if due == 210 { 2.1 } else { 2.4 };
        assert_eq!(unavailable(&document).0, [(began_s, 4.05)], "{words}");
        assert_eq!(document["open_loop"]["unavailable"]["due"], due, "{words}");
    }
}

/// A signal ends the two threads at different times.
fn due_requests_never_exceed_the_total(context: &Context) {
    let scenario = format!("signal_s = 3.0\n{QUICK}{}", outage(1.0, 99.0));
    let words = "-t2 -c10 -R 200 --warmup 2s -d5s";
    let (output, document) = simulated_document(context.onrush().words(words), &scenario);
    let [meanwhile, in_all] =
        ["/open_loop/unavailable/due", "/requests/due"].map(|path| number(&document, path) as u64);
    assert!(meanwhile > 150 && meanwhile <= in_all, "{meanwhile} of {in_all}: {output:?}");
}

fn responding_targets_are_available(context: &Context) {
    for (words, scenario) in [
        // Slow but healthy: half a second between two responses, each of which takes 300 ms.
        ("-t1 -c4 -d20s -R 2", "latency_us = 300000.0"),
        ("-t2 -c4 -d20s -R 2", "latency_us = 300000.0"),
        ("-t1 -c4 -d20s -R 2", "latency_us = 10000.0\njitter_us = 590000.0"),
        ("-t1 -c4 -d20s -R 2", "latency_us = 900000.0"),
        ("-t1 -c100 -d20s -R 5", "latency_us = 10000.0\njitter_us = 3000000.0"),
        ("-t2 -c100 -d20s -R 50", "latency_us = 300000.0\njitter_us = 3000000.0"),
        // Few requests with quick responses, on more threads than requests per second.
        ("-t4 -c4 -d20s -R 2", "latency_us = 1000.0"),
        ("-t1 -c1 -d20s -R 1 --send-slice 900ms", "latency_us = 1000.0"),
        ("-t1 -c20 -d20s -R 10 --arrivals burst:20", "latency_us = 1000.0"),
        // One request never gets a response.
        ("-t1 -c4 -d20s -R 10", "latency_us = 1000.0\n[[fault]]\nevery = 150\nwhat = 'hang'"),
        // One of four backends is down.
        ("-t1 -c8 -d8s -R 500", "latency_us = 1000.0\n[[fault]]\nevery = 4\nwhat = 'reset'"),
        ("-t4 -c8 -d8s -R 500", "latency_us = 1000.0\n[[connection_fault]]\nevery = 4\nwhat = 'hang'"),
        // The target responds with errors.
        ("-t1 -c8 -d8s -R 500", "answer = \"HTTP/1.1 503 X\\r\\nContent-Length: 0\\r\\n\\r\\n\""),
        // The last request before a pause fails.
        ("-t1 -c1 --stages 1s:10,9s:0,1s:10", "latency_us = 1000.0\n[[fault]]\nevery = 10\nwhat = 'reset'"),
    ] {
        let (output, document) = simulated_document(context.onrush().words(words), scenario);
        assert_eq!(unavailable(&document), (vec![], 0.0), "{words} {scenario}: {output:?}");
        assert!(!output.stderr.contains("unavailable"), "{output:?}");
    }
    let words = "-t1 -c8 -d8s -R 500 --fail-if errors>24% --fail-if unavailable>0";
    let scenario = format!("{QUICK}[[fault]]\nevery = 4\nwhat = 'reset'");
    let output = simulate(context.onrush().words(words), &scenario);
    assert_eq!(output.code, 3, "{output:?}");
    let lines: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("onrush: ")).collect();
    assert!(lines.len() == 1 && lines[0].ends_with(" % of requests"), "{lines:?}");
}

fn gaps_not_caused_by_targets_are_ignored(context: &Context) {
    let stall = "[[generator_stall]]\nfrom_s = 3.0\nfor_s = 1.0\n";
    let (_, document) = simulated_document(context.onrush().words("-t2 -c4 -R 100 -d8s"), &format!("{QUICK}{stall}"));
    assert_eq!(unavailable(&document), (vec![], 0.0));
    let both = format!("{QUICK}{stall}[[stall]]\nfrom_s = 2.0\nfor_s = 3.0");
    let (_, document) = simulated_document(context.onrush().words("-t1 -c4 -R 100 -d8s"), &both);
    let (spans, share) = unavailable(&document);
    assert!(spans.len() == 2 && spans[0].0 == 2.0 && spans[1] == (4.0, 5.0), "{spans:?}");
    assert!((3.0..3.02).contains(&spans[0].1) && (share - 0.25).abs() < 0.003, "{spans:?} {share}");
    // A script pauses each connection, although more requests are due.
    let script = "function delay() return 900 end";
    let (_, document) = simulated_document(context.onrush().words("-t1 -c1 -R 10 -d8s").lua(script), QUICK);
    assert_eq!(unavailable(&document), (vec![], 0.0));
}

fn sums_count_outages_seen_by_both_machines(context: &Context) {
    let scratch = crate::harness::Scratch::new("availability");
    let file = |name: &str, rate: u64, scenario: &str| {
        let path = scratch.path().join(name);
        let scenario = format!("connect_us = 0.0\nlatency_us = 0.0\n{scenario}");
        let words = format!("-t1 -c4 -R {rate} -d8s --seed {rate} -o");
        assert_eq!(simulate(context.onrush().words(&words).word(&path), &scenario).code, 0);
        path
    };
    let one = file("a.json", 100, "[[stall]]\nfrom_s = 2.0\nfor_s = 3.0");
    let other = file("b.json", 50, "[[stall]]\nfrom_s = 4.0\nfor_s = 2.0");
    let output = context.onrush().word("merge").word("--force").word(&one).word(&other).run_plain();
    let sum: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(unavailable(&sum), (vec![(4.0, 5.0)], 0.125));
    assert!(sum["open_loop"]["unavailable"]["due"].is_null());
    let shown = context.onrush().word("show").word(&one).run_plain();
    let note = "note: the target was unavailable for 37.5 % of the time: no response from 2.0 s to 5.0 s, while 300 requests \
                were due\n";
    assert!(shown.stderr.contains(note), "{shown:?}");
    let table = context.onrush().words("table --columns unavailable,errors").word(&one).run_plain();
    assert!(table.stdout.contains("37.50"), "{table:?}");
}

fn closed_loops_have_no_unavailability(context: &Context) {
    for program in context.both() {
        let output = program.words("-d1s --fail-if unavailable>1% http://127.0.0.1:1/").run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains("unavailable>1%: there is no rate; add -R"), "{output:?}");
    }
    let until = context.onrush().words("-R 10 --until unavailable+-1% http://127.0.0.1:1/").run_plain();
    assert!(until.code == 1 && until.stderr.contains("unavailable has no confidence interval"), "{until:?}");
    let (_, document) = simulated_document(context.onrush().words("-t1 -c1 -d2s"), QUICK);
    assert!(document["open_loop"].is_null());
}
