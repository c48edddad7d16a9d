//! Requests with a schedule: the rate, the start of latencies, and the outcome of each due request.

use serde_json::Value;

use crate::harness::{Context, ProgramOutput, Scratch, cases, target, url};
use crate::monitor::Python;
use crate::results::{document, number};
use crate::simulation::{simulate, simulated_document};

cases! {
    rates_are_exact_to_the_request;
    rates_are_exact_in_virtual_time (Once);
    wrk2_links_print_wrk2_blocks (Once);
    delayed_requests_are_late_beside_service_latency (Once);
    closes_between_requests_cause_reconnects;
    low_rates_end_without_timeouts (Once);
    freezes_extend_latency_of_due_requests (Once);
    wrk2_backlogs_leave_at_once (Once);
    due_requests_are_accounted_for;
    stages_run_in_order (Once);
    slice_requests_leave_together;
    dying_servers_lose_no_request needs "python3";
    connections_open_while_requests_wait;
    notes_estimate_connections_for_rates (Once);
    advised_options_help (Once);
    streams_are_advised_where_allowed;
    connection_stages_open_and_close_connections;
    connection_stages_take_their_time (Once);
    connection_and_rate_stages_combine (Once);
}

/// A simulated server that responds to everything after a millisecond.
const QUICK: &str = "connect_us = 0.0\nlatency_us = 1000.0\n";

/// A run in wrk2 mode, in virtual time.
fn wrk2(context: &Context, words: &str, scenario: &str) -> ProgramOutput {
    let output = simulate(context.called("wrk2").words(words), scenario);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output
}

/// Checks that every due request was sent, dropped, or is still waiting.
fn assert_accounted(document: &Value) {
    let of = |name: &str| number(document, &format!("/requests/{name}"));
    assert_eq!(of("due") + of("due_before"), of("started") + of("dropped") + of("unsent"), "{}", document["requests"]);
    let rows = document["timeline"].as_array().unwrap().iter();
    assert_eq!(rows.map(|row| number(row, "/completed")).sum::<f64>(), of("completed"));
}

fn rates_are_exact_to_the_request(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("rate"));
    for (words, expected) in [("-t3 -c7 -d300ms -R500", 150.0), ("-c4 -R300 -n60", 60.0)] {
        let (_, document) = document(context.onrush().words(words).word(url(&server, "/")), &scratch);
        assert_eq!(number(&document, "/requests/due"), expected, "{words}");
        assert_accounted(&document);
        let sent = number(&document, "/requests/started");
        // Nothing else ends a run with `-n`.
        assert!(sent > 0.0 && (sent == expected || !words.contains("-n")), "{words}: {sent}");
    }
}

fn rates_are_exact_in_virtual_time(context: &Context) {
    for (words, expected) in
        [("-t1 -c5 -d2s -R500", 1_000.0), ("-t3 -c7 -d1s -R60k/m", 1_000.0), ("-c4 -R300 -n450", 450.0)]
    {
        let (_, document) = simulated_document(context.onrush().words(words), QUICK);
        assert_accounted(&document);
        let sent = ["due", "started"].map(|fate| number(&document, &format!("/requests/{fate}")));
        assert_eq!(sent, [expected; 2], "{words}");
        assert_eq!(number(&document, "/open_loop/lateness/max_us"), 0.0, "{words}");
    }
}

fn wrk2_links_print_wrk2_blocks(context: &Context) {
    let output = wrk2(context, "-t1 -c2 -d2 -R100 -L", QUICK);
    // The first request is due at once, the last 10 ms before the end.
    assert_eq!(output.requests(), 200, "{output:?}");
    let text = &output.stdout;
    assert!(text.contains("  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000% "), "{text}");
    let spectrum = "  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n";
    assert!(text.contains(spectrum), "{text}");
    let percentiles = text.lines().filter(|line| line.get(7..8) == Some("%")).count();
    assert_eq!(percentiles, 8, "{text}");
    assert_eq!(output.line("#[Max ").and_then(|line| line.split("Total count    = ").nth(1)), Some("         200]"));
    assert!(output.line("#[Buckets =           27, SubBuckets     =         2048]").is_some(), "{text}");
    assert!(text.contains(&format!("\n{}\n", "-".repeat(58))) && !text.contains("calibration"), "{text}");
}

fn delayed_requests_are_late_beside_service_latency(context: &Context) {
    // Two connections with responses after 50 ms serve 40 per second of the hundred due. Each request waits 30 ms longer
    // than the previous one of its connection. The request sent at 1,960 ms gets no response.
    let output = wrk2(context, "-t1 -c2 -d2 -R100 -U", "connect_us = 0.0\nlatency_us = 50000.0");
    let means: Vec<f64> = output
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("#[Mean    = ")?.split(',').next()?.trim().parse().ok())
        .collect();
    let [recorded_ms, uncorrected_ms] = means[..] else { panic!("{output:?}") };
    assert_eq!((output.requests(), uncorrected_ms), (79, 50.0), "{output:?}");
    // 50 ms, plus 30 ms for each earlier request, over 40 and 39 requests. wrk2's histograms are precise to three
    // digits.
    assert!((recorded_ms - 49_580.0 / 79.0).abs() < 0.1, "{recorded_ms}");
    let title = "Uncorrected Latency (measured without taking delayed starts into account)";
    assert!(output.stdout.contains(title), "{output:?}");
}

fn closes_between_requests_cause_reconnects(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("idle-close"));
    let program = context.onrush().words("-t1 -c2 -d1s -R20").word(url(&server, "/closenohdr"));
    let (output, document) = document(program, &scratch);
    assert_accounted(&document);
    assert!(output.requests() > 0 && number(&document, "/connections/opened") > 2.0, "{document}");
    // In virtual time, no request is ever sent just as the server closes.
    let closing = format!("{QUICK}close = true");
    let (output, document) = simulated_document(context.onrush().words("-t1 -c2 -d2s -R20"), &closing);
    let opened = number(&document, "/connections/opened");
    assert_eq!((output.requests(), output.line("Socket errors:"), opened), (40, None, 42.0), "{document}");
    // Users look at this number.
    assert_eq!(wrk2(context, "-t1 -c2 -d2 -R20", &closing).socket_errors("read"), 40);
}

fn low_rates_end_without_timeouts(context: &Context) {
    let output = wrk2(context, "-t1 -c10 -d3 -R2", QUICK);
    assert_eq!((output.requests(), output.line("  Socket errors:")), (6, None), "{output:?}");
    assert_eq!(output.elapsed_ms(), 3_000.0, "{output:?}");
}

/// A target that freezes for 2 s at 500 requests/s, over 20 connections. Of the 5,000 requests, the 1,000 due in the
/// freeze wait for its end, then leave 20 at a time, every millisecond: the j-th after about j/20 ms, due 2 ms · j
/// later than the first. Its latency is thus 2 s - 1.95 ms · j. wrk2's 75th percentile is the 3,750th value, a
/// millisecond; its 90th the 4,500th, j = 501: 1.02 s; its 99th the 4,950th, j = 51: 1.90 s. (A real wrk2 printed 1.55
/// ms, 1.01 s and 1.91 s.) If sent at twice the rate, the backlog would last two more seconds.
fn wrk2_backlogs_leave_at_once(context: &Context) {
    let output = wrk2(context, "-t1 -c20 -d10s -R500 -L", &format!("{QUICK}[[stall]]\nfrom_s = 4.0\nfor_s = 2.0"));
    assert_eq!(output.requests(), 5_000, "{output:?}");
    let [p75_us, p90_us, p99_us] = ["75.000%", "90.000%", "99.000%"].map(|it| percentile_us(&output.stdout, it));
    assert_eq!(p75_us, 1_000.0, "{output:?}");
    assert!((p90_us - 1.02e6).abs() <= 10e3 && (p99_us - 1.90e6).abs() <= 10e3, "{output:?}");
}

/// A percentile in wrk2's list, in microseconds.
pub fn percentile_us(text: &str, percent: &str) -> f64 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(percent));
    let cell = line.unwrap_or_else(|| panic!("no {percent}: {text}")).trim();
    let (number, unit) = cell.split_at(cell.find(char::is_alphabetic).expect("a unit"));
    let scale = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => panic!("{cell}"),
    };
    number.parse::<f64>().expect("a number") * scale
}

fn freezes_extend_latency_of_due_requests(context: &Context) {
    // A request is due every 5 ms. From 1.0 to 1.4 s there are no responses: five connections wait 380 to 400 ms. The
    // next 76 requests wait for a connection; then five can leave every millisecond, and two more are late until the
    // backlog is gone.
    let freeze = format!("{QUICK}[[stall]]\nfrom_s = 1.0\nfor_s = 0.4");
    let (_, document) = simulated_document(context.onrush().words("-t1 -c5 -d2s -R200"), &freeze);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    assert_eq!(of("/requests/late"), 78.0, "{}", document["requests"]);
    let [scheduled, service] = ["scheduled", "service"].map(|view| of(&format!("/latency/{view}/mean_us")));
    // In total: 1,950 ms for the five, 14,883 ms for the 78, and a millisecond for each of the others.
    assert_eq!((scheduled, service), (17_150_000.0 / 400.0, 2_345_000.0 / 400.0));
    assert_eq!(of("/latency/service/max_us"), 400_000.0);
}

fn due_requests_are_accounted_for(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("accounts"));
    let slow = url(&server, "/delay/20");
    for words in
        ["-R1k --max-late 100ms", "-R1k", "-R1k --warmup 200ms", "-R1k --arrivals poisson", "-R1k --arrivals burst:50"]
    {
        let (_, document) = document(context.onrush().words("-t2 -c4 -d300ms").words(words).word(&slow), &scratch);
        assert_accounted(&document);
        let of = |name: &str| number(&document, &format!("/requests/{name}"));
        assert!(of("completed") > 0.0 && of("due") > of("completed"), "{words}: {}", document["requests"]);
        assert_eq!(of("dropped") > 0.0, words.contains("max-late"), "{words}: {}", document["requests"]);
    }
}

fn stages_run_in_order(context: &Context) {
    let words = "-t2 -c4 --stages 1s:100,1s:100..300,1s:0";
    let (output, document) = simulated_document(context.onrush().words(words), QUICK);
    assert_accounted(&document);
    let rows = document["timeline"].as_array().unwrap();
    let started: Vec<f64> = rows.iter().map(|row| number(row, "/started")).collect();
    // A request due at the end of a second is sent in that second.
    assert_eq!((number(&document, "/requests/due"), &started[..]), (300.0, &[101.0, 199.0, 0.0][..]));
    assert_eq!(output.elapsed_ms(), 3_000.0, "{output:?}");
    let stages = document["stages"].as_array().unwrap();
    let of = |pointer| stages.iter().map(|stage| number(stage, pointer)).collect::<Vec<f64>>();
    assert_eq!(of("/asked_per_s"), [100.0, 200.0, 0.0]);
    assert_eq!((of("/start_s"), of("/started")), (vec![0.0, 1.0, 2.0], started));
    // The stages together contain all latencies of the run.
    assert_eq!(of("/latency/count").iter().sum::<f64>(), number(&document, "/latency/scheduled/count"));
}

fn slice_requests_leave_together(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("slices"));
    let program = context.onrush().words("-t1 -c60 -n250 -R500 --send-slice 100ms").word(url(&server, "/"));
    let (output, document) = document(program, &scratch);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    assert_eq!(of("/plan/schedule/send_slice_s"), 0.1);
    // A request is due every 2 ms: half a slice of delay each, and more on a busy machine.
    assert_eq!((of("/requests/due"), of("/requests/unsent")), (250.0, 0.0), "{}", document["requests"]);
    assert!(of("/open_loop/lateness/mean_us") >= 49_000.0, "{}", document["open_loop"]["lateness"]["mean_us"]);
    let waits = of("/threads/0/waits/count");
    assert!(waits < 450.0, "at its own moment each request would need two: {waits}");
    assert!(output.stderr.contains("sends were grouped into slices of 100ms (--send-slice)"), "{output:?}");
}

fn dying_servers_lose_no_request(context: &Context) {
    let (server, scratch) = (Python::start("afterwards(listen(64), 0.2, lambda: os._exit(1))"), Scratch::new("dies"));
    let (output, document) = document(context.onrush().words("-t1 -c3 -d1s -R200").word(server.url()), &scratch);
    assert_accounted(&document);
    let of = |name: &str| number(&document, &format!("/requests/{name}"));
    assert_eq!(of("due"), 200.0, "{}", document["requests"]);
    assert!(of("unsent") > 0.0 && of("completed") < 200.0, "{}", document["requests"]);
    assert!(output.stderr.contains("still unsent at the end"), "{output:?}");
}

fn connections_open_while_requests_wait(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("max-inflight"));
    // A request is in flight for at least 50 ms: at least ten connections are needed.
    let program = context.onrush().words("-t2 -c2 -d500ms -R200 --max-inflight 100").word(url(&server, "/delay/50"));
    let (_, document) = document(program, &scratch);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    assert_eq!(["/plan/connections", "/plan/max_inflight", "/connections/asked"].map(of), [2.0, 100.0, 2.0]);
    assert!((9.0..=100.0).contains(&of("/connections/established")), "{}", document["connections"]);
    assert_eq!(of("/connections/established"), of("/connections/opened"), "they stay open");
}

fn notes_estimate_connections_for_rates(context: &Context) {
    // A request is in flight for a tenth of a second: thirty connections are needed.
    let slow = "connect_us = 0.0\nlatency_us = 100000.0";
    let (output, few) = simulated_document(context.onrush().words("-t1 -c4 -d2s -R300"), slow);
    assert!(output.stderr.contains(" were still unsent at the end; about "), "{output:?}");
    assert!(output.verdict.contains("with all 4 connections in use"), "{output:?}");
    assert_eq!(["established", "asked"].map(|name| number(&few, &format!("/connections/{name}"))), [4.0; 2]);
    // Of 600 requests, each connection sent one every tenth of a second, and the first one another just at the end.
    assert_eq!(number(&few, "/requests/unsent"), 519.0, "{}", few["requests"]);
    let needed = output.stderr.split("use -c ").nth(1).and_then(|rest| rest.lines().next());
    // 30 busy on average, plus twice the square root.
    assert_eq!(needed, Some("41"), "{output:?}");
    let (output, enough) = simulated_document(context.onrush().words("-t1 -c41 -d2s -R300"), slow);
    assert_accounted(&enough);
    assert_eq!((output.stderr.as_str(), number(&enough, "/connections/established")), ("", 41.0), "{output:?}");
    assert_eq!(number(&enough, "/requests/late"), 0.0, "{}", enough["requests"]);
}

fn advised_options_help(context: &Context) {
    let slow = "connect_us = 0.0\nlatency_us = 50000.0";
    for (few, more, advised) in [
        ("-c8 -d2s", "-c80 -d2s", "-c"),
        ("-c2 -d2s --max-inflight 8", "-c2 -d2s --max-inflight 80", "--max-inflight"),
        ("--stages c=2s:8", "--stages c=2s:80", "--stages c="),
    ] {
        let run = |words| simulated_document(context.onrush().words("-t1 -R1000").words(words), slow);
        let (output, document) = run(few);
        assert!(output.verdict.contains(&format!("allow more ({advised})")), "{few}: {output:?}");
        // Of 2,000, each connection sends 20 per second.
        assert!(number(&document, "/requests/completed") <= 320.0, "{few}: {output:?}");
        let (output, document) = run(more);
        assert!(number(&document, "/requests/completed") >= 1_900.0, "{more}: {output:?}");
    }
}

fn streams_are_advised_where_allowed(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("streams"));
    let run = |streams| {
        let words = format!("-t1 -c2 -d1s -R1000 --http2 --streams {streams}");
        document(context.onrush().words(&words).word(url(&server, "/delay/50")), &scratch)
    };
    let (output, few) = run(4);
    assert_eq!(few["evidence"]["load"]["room"], "streams", "{few}");
    let is_advised = output.verdict.contains("allow more (--streams)");
    assert!(is_advised || few["verdict"]["limited_by"] == "generator_cpu", "{output:?}");
    let [few, more] = [few, run(40).1].map(|document| number(&document, "/requests/completed"));
    assert!(few <= 160.0 && more > few, "{more} after {few}");
}

fn connection_stages_open_and_close_connections(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("levels"));
    let program = context.onrush().words("-t2 --stages c=200ms:3,300ms:10,200ms:10..0").word(url(&server, "/delay/20"));
    let (output, document) = document(program, &scratch);
    let of = |pointer: &str| number(&document, pointer);
    assert_eq!(["asked", "established", "opened"].map(|name| of(&format!("/connections/{name}"))), [10.0; 3]);
    assert_eq!((of("/plan/connections"), of("/plan/connection_stages/2/to")), (10.0, 0.0));
    assert_eq!((output.requests() > 0, output.line("Socket errors:")), (true, None), "{output:?}");
}

fn connection_stages_take_their_time(context: &Context) {
    let stages = "-t2 --stages c=1s:3,1s:10,1s:10..0";
    let (output, document) =
        simulated_document(context.onrush().words(stages), "connect_us = 0.0\nlatency_us = 20000.0");
    let rows = document["timeline"].as_array().unwrap();
    let completed: Vec<f64> = rows.iter().map(|row| number(row, "/completed")).collect();
    // Each connection gets fifty responses per second. In the last one, they leave after 50 ms, 150 ms and so on, each
    // after the response then awaited: 3 + 8 + … + 48.
    assert_eq!(completed, [150.0, 500.0, 255.0]);
    let busy = number(&document, "/in_flight/busy_connections");
    assert!((busy - 6.0).abs() < 0.1, "3, 10 and 5: {busy}");
    assert_eq!(output.elapsed_ms(), 3_000.0, "{output:?}");
}

fn connection_and_rate_stages_combine(context: &Context) {
    let words = "-t2 --stages 1s:100,1s:200 --stages c=500ms:0,1500ms:20";
    let (_, document) = simulated_document(context.onrush().words(words), QUICK);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    assert_eq!(["/requests/due", "/requests/started", "/connections/established"].map(of), [300.0, 300.0, 20.0]);
    // Without a connection, nothing is sent in the first half second, in which fifty requests are due; the next one
    // waits for them.
    assert_eq!((of("/requests/late"), of("/latency/scheduled/max_us")), (51.0, 501_000.0), "{}", document["requests"]);
}
