//! Requests with a schedule: that the rate is kept, what a latency counts from, and what becomes of each due request.

use serde_json::Value;

use crate::harness::{Context, Output, Scratch, cases, target, url};
use crate::results::{document, number};

cases! {
    a_rate_is_kept_to_the_request;
    a_link_named_wrk2_prints_wrk2s_blocks;
    requests_that_had_to_wait_are_late_and_the_service_is_shown_beside;
    a_server_that_closes_between_requests_is_connected_to_again;
    a_low_rate_has_no_timeouts_and_ends_in_time;
    a_freeze_is_in_the_latency_of_what_was_due_meanwhile;
    every_request_that_was_due_is_accounted_for;
    stages_follow_one_another;
    requests_of_a_slice_leave_together_at_its_end;
    a_server_that_dies_loses_no_request_from_the_account;
    connections_are_opened_while_due_requests_wait_and_a_note_says_how_many_it_takes;
    stages_of_connections_open_and_close_them;
    stages_of_connections_and_of_the_rate_go_together;
}

/// A run as wrk2.
fn wrk2(context: &Context, words: &str, url: String) -> Output {
    let output = context.called("wrk2").words(words).word(url).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output
}

/// Every due request was sent, was dropped, or is still waiting.
fn assert_accounted(document: &Value) {
    let of = |name: &str| number(document, &format!("/requests/{name}"));
    assert_eq!(of("due") + of("due_before"), of("started") + of("dropped") + of("unsent"), "{}", document["requests"]);
    let rows = document["timeline"].as_array().unwrap().iter();
    assert_eq!(rows.map(|row| number(row, "/completed")).sum::<f64>(), of("completed"));
}

fn a_rate_is_kept_to_the_request(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("rate"));
    for (words, expected) in
        [("-t1 -c5 -d2s -R500", 1_000.0), ("-t3 -c7 -d1s -R60k/m", 1_000.0), ("-c4 -R300 -n450", 450.0)]
    {
        let (_, document) = document(context.onrush().words(words).word(url(&server, "/")), &scratch);
        let due = number(&document, "/requests/due");
        assert!(due <= expected && due >= 0.9 * expected, "{words}: {due}");
        assert_accounted(&document);
        let reached = number(&document, "/requests/started");
        assert!(reached <= expected && reached >= 0.9 * expected, "{words}: {reached}");
    }
}

fn a_link_named_wrk2_prints_wrk2s_blocks(context: &Context) {
    let server = target();
    let output = wrk2(context, "-t1 -c2 -d2 -R100 -L", url(&server, "/"));
    assert!((150..=200).contains(&output.requests()), "{output:?}");
    let text = &output.stdout;
    assert!(text.contains("  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000% "), "{text}");
    let spectrum = "  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n";
    assert!(text.contains(spectrum), "{text}");
    let percentiles = text.lines().filter(|line| line.get(7..8) == Some("%")).count();
    assert_eq!(percentiles, 8, "{text}");
    let counted = output.line("#[Max ").unwrap();
    let total: u64 = counted.trim_end_matches(']').rsplit(' ').next().unwrap().parse().unwrap();
    assert!(output.requests() - total <= 2, "{counted}");
    assert!(output.line("#[Buckets =           27, SubBuckets     =         2048]").is_some(), "{text}");
    assert!(text.contains(&format!("\n{}\n", "-".repeat(58))) && !text.contains("calibration"), "{text}");
}

fn requests_that_had_to_wait_are_late_and_the_service_is_shown_beside(context: &Context) {
    let server = target();
    // Two connections with responses after 50 ms: 40 a second of the hundred that are due.
    let output = wrk2(context, "-t1 -c2 -d2 -R100 -U", url(&server, "/delay/50"));
    assert!((40..=82).contains(&output.requests()), "{output:?}");
    let means: Vec<f64> = output
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("#[Mean    = ")?.split(',').next()?.trim().parse().ok())
        .collect();
    let [recorded_ms, uncorrected_ms] = means[..] else { panic!("{output:?}") };
    assert!(recorded_ms > 300.0 && (50.0..150.0).contains(&uncorrected_ms), "{means:?}");
    let title = "Uncorrected Latency (measured without taking delayed starts into account)";
    assert!(output.stdout.contains(title), "{output:?}");
}

fn a_server_that_closes_between_requests_is_connected_to_again(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("idle-close"));
    let output = wrk2(context, "-t1 -c2 -d2 -R20", url(&server, "/closenohdr"));
    assert!((25..=40).contains(&output.requests()), "{output:?}");
    assert!(output.socket_errors("read") >= 20, "people watch that number: {output:?}");
    let program = context.onrush().words("-t1 -c2 -d2 -R20").word(url(&server, "/closenohdr"));
    let (output, document) = document(program, &scratch);
    assert!((25..=40).contains(&output.requests()), "{output:?}");
    assert!(number(&document, "/connections/opened") >= 20.0, "{document}");
    // On a busy machine a request may be sent just as the server closes.
    let errors = document["errors"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
    assert!(errors <= 8, "{output:?}");
}

fn a_low_rate_has_no_timeouts_and_ends_in_time(context: &Context) {
    let server = target();
    let output = wrk2(context, "-t1 -c10 -d3 -R2", url(&server, "/"));
    assert!((5..=6).contains(&output.requests()) && output.line("  Socket errors:").is_none(), "{output:?}");
    assert!((2_800.0..3_900.0).contains(&output.elapsed_ms()), "{output:?}");
}

fn a_freeze_is_in_the_latency_of_what_was_due_meanwhile(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("freeze"));
    let program = context.onrush().words("-t1 -c5 -d2s -R200").word(url(&server, "/freeze?every=1s&ms=400"));
    let (_, document) = document(program, &scratch);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    // A fifth of the requests or more were due while the target was stalled, and five of them waited in the server.
    assert!(of("/requests/late") > 40.0, "{}", document["requests"]);
    let [scheduled, service] = ["scheduled", "service"].map(|view| of(&format!("/latency/{view}/mean_us")));
    assert!(scheduled > 3.0 * service, "{scheduled} and {service}");
    assert!(of("/latency/scheduled/max_us") >= of("/latency/service/max_us"));
}

fn every_request_that_was_due_is_accounted_for(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("accounts"));
    let slow = url(&server, "/delay/20");
    for words in
        ["-R1k --max-late 100ms", "-R1k", "-R1k --warmup 500ms", "-R1k --arrivals poisson", "-R1k --arrivals burst:50"]
    {
        let (_, document) = document(context.onrush().words("-t2 -c4 -d1s").words(words).word(&slow), &scratch);
        assert_accounted(&document);
        let of = |name: &str| number(&document, &format!("/requests/{name}"));
        assert!((40.0..=250.0).contains(&of("completed")), "{words}: {}", document["requests"]);
        assert_eq!(of("dropped") > 0.0, words.contains("max-late"), "{words}: {}", document["requests"]);
        assert!((500.0..=1_200.0).contains(&of("due")), "{words}: {}", document["requests"]);
    }
}

fn stages_follow_one_another(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("stages"));
    let program = context.onrush().words("-t2 -c4 --stages 1s:100,1s:100..300,1s:0").word(url(&server, "/"));
    let (output, document) = document(program, &scratch);
    assert_accounted(&document);
    let rows = document["timeline"].as_array().unwrap();
    let started: Vec<f64> = rows.iter().map(|row| number(row, "/started")).collect();
    assert_eq!(number(&document, "/requests/due"), 300.0, "{started:?}");
    assert!((started[0] - 100.0).abs() <= 30.0 && (started[1] - 200.0).abs() <= 30.0, "{started:?}");
    assert!((2_800.0..3_900.0).contains(&output.elapsed_ms()), "{output:?}");
}

fn requests_of_a_slice_leave_together_at_its_end(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("slices"));
    let program = context.onrush().words("-t1 -c60 -n500 -R500 --send-slice 100ms").word(url(&server, "/"));
    let (output, document) = document(program, &scratch);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    assert_eq!(of("/plan/schedule/send_slice_s"), 0.1);
    // Every 2 ms one is due: half a slice each, and more on a busy machine.
    assert_eq!((of("/requests/due"), of("/requests/unsent")), (500.0, 0.0), "{}", document["requests"]);
    assert!(of("/open_loop/lateness/mean_us") >= 49_000.0, "{}", document["open_loop"]["lateness"]["mean_us"]);
    let waits = of("/threads/0/waits/count");
    assert!(waits < 900.0, "at its own moment each request would need two: {waits}");
    assert!(output.stderr.contains("sends were grouped into slices of 100ms (--send-slice)"), "{output:?}");
}

fn a_server_that_dies_loses_no_request_from_the_account(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("dies"));
    let address = url(&server, "/");
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        drop(server);
    });
    let (output, document) = document(context.onrush().words("-t1 -c3 -d2s -R200").word(address), &scratch);
    assert_accounted(&document);
    let of = |name: &str| number(&document, &format!("/requests/{name}"));
    assert!((300.0..=400.0).contains(&of("due")), "{}", document["requests"]);
    assert!(of("unsent") > 150.0 && of("completed") < 200.0, "{}", document["requests"]);
    assert!(output.stderr.contains("still unsent at the end"), "{output:?}");
}

fn connections_are_opened_while_due_requests_wait_and_a_note_says_how_many_it_takes(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("max-inflight"));
    // A request is in flight for a tenth of a second: thirty connections are needed.
    let slow = url(&server, "/delay/100");
    let (output, few) = document(context.onrush().words("-t1 -c4 -d2s -R300").word(&slow), &scratch);
    assert!(output.stderr.contains("all 4 connections were busy; about "), "{output:?}");
    assert_eq!(number(&few, "/connections/established"), 4.0);
    assert!(number(&few, "/requests/unsent") > 400.0, "{}", few["requests"]);
    let needed: f64 =
        output.stderr.split("--max-inflight ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
    assert!((30.0..80.0).contains(&needed), "{output:?}");
    let words = format!("-t2 -c4 -d2s -R300 --max-inflight {}", 2.0 * needed);
    let (output, enough) = document(context.onrush().words(&words).word(&slow), &scratch);
    assert_accounted(&enough);
    assert!(!output.stderr.contains("connections were busy"), "{output:?}");
    let of = |pointer: &str| number(&enough, pointer);
    assert_eq!((of("/plan/connections"), of("/plan/max_inflight"), of("/connections/asked")), (4.0, 2.0 * needed, 4.0));
    assert!((29.0..=2.0 * needed).contains(&of("/connections/established")), "{}", enough["connections"]);
    assert_eq!(of("/connections/established"), of("/connections/opened"), "they stay open");
    assert!(of("/requests/completed") > 2.0 * number(&few, "/requests/completed"), "{}", enough["requests"]);
}

fn stages_of_connections_open_and_close_them(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("levels"));
    let program = context.onrush().words("-t2 --stages c=1s:3,1s:10,1s:10..0").word(url(&server, "/delay/20"));
    let (output, document) = document(program, &scratch);
    let of = |pointer: &str| number(&document, pointer);
    let rows = document["timeline"].as_array().unwrap();
    let completed: Vec<f64> = rows.iter().map(|row| number(row, "/completed")).collect();
    // Each connection gets up to fifty responses a second, fewer on a busy machine.
    for (row, most) in [(0, 150.0), (1, 500.0), (2, 260.0)] {
        assert!(completed[row] <= most + 10.0, "{completed:?}");
    }
    assert!(completed.iter().sum::<f64>() > 250.0, "{completed:?}");
    assert_eq!(["asked", "established", "opened"].map(|name| of(&format!("/connections/{name}"))), [10.0; 3]);
    assert_eq!((of("/plan/connections"), of("/plan/connection_stages/2/to")), (10.0, 0.0));
    let busy = of("/in_flight/busy_connections");
    assert!((4.0..=6.5).contains(&busy), "{busy}");
    assert_eq!(output.line("Socket errors:"), None, "{output:?}");
    assert!((2_800.0..3_900.0).contains(&output.elapsed_ms()), "{output:?}");
}

fn stages_of_connections_and_of_the_rate_go_together(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("both-stages"));
    let words = "-t2 --stages 1s:100,1s:200 --stages c=500ms:0,1500ms:20";
    let (_, document) = document(context.onrush().words(words).word(url(&server, "/")), &scratch);
    assert_accounted(&document);
    let of = |pointer: &str| number(&document, pointer);
    let due = of("/requests/due");
    assert!(
        (200.0..=300.0).contains(&due) && of("/connections/established") == 20.0,
        "{due} {}",
        document["connections"]
    );
    // Without a connection nothing is sent in the first half second.
    assert!(of("/requests/late") >= 45.0 && of("/latency/scheduled/max_us") > 450_000.0, "{}", document["requests"]);
    assert!(of("/requests/started") > 150.0, "{}", document["requests"]);
}
