//! The whole program in virtual time: its expected output was computed by hand.

use serde_json::{Value, json};

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases};
use crate::results::number;

cases! {
    a_stall_of_ten_seconds_in_a_minute_is_reported_as_computed (Once);
    a_stall_is_reported_by_wrks_rules_as_computed (Once);
    answers_that_are_all_late_leave_wrks_latency_empty (Once);
    times_without_answers_are_those_of_all_threads_together (Once);
    what_was_in_flight_when_measuring_began_counts_with_its_whole_latency (Once);
    no_rate_is_higher_than_the_connections_can_make (Once);
    what_was_due_has_one_account (Once);
    connections_that_were_not_busy_are_said_first_with_where_they_were (Once);
    an_interim_answer_is_counted_and_is_no_first_byte (Once);
    a_bug_in_a_thread_is_named_and_loses_nothing (Once);
    the_same_command_line_gives_the_same_bytes (Once);
    resets_and_closes_are_named_wherever_they_happen (Once);
    running_out_of_ports_is_named_and_survived (Once);
    a_run_of_requests_waits_for_a_server_that_starts_late (Once);
    a_server_that_stays_away_ends_a_run_of_requests (Once);
    a_quiet_run_prints_its_report_and_errors (Once);
    stages_of_connections_tell_what_a_probe_would (Once);
    what_limited_a_run_is_known_in_virtual_time_too (Once);
    latencies_in_front_of_a_queue_are_those_that_theory_computes (Once);
    a_server_with_a_limit_refuses_what_it_has_no_room_for (Once);
    a_server_beyond_its_cliff_does_less (Once);
    a_noisy_server_is_faster_in_some_seconds_than_in_others (Once);
    a_pool_of_workers_serves_as_computed (Once);
    a_server_of_few_processes_leaves_the_other_connections_hanging (Once);
    connections_that_close_make_room_for_others_in_their_order (Once);
    delays_have_the_distribution_that_was_asked_for (Once);
    advice_on_connections_that_pause_settles (Once);
    a_scenario_that_cannot_be_understood_is_refused (Once);
    a_script_that_never_returns_is_named_in_virtual_time_too (Once);
    a_search_over_threads_needs_a_target_for_any_number_of_them (Once);
}

/// One request after the other, a millisecond each, in which nothing is answered from 20 s to 30 s.
const STALL: &str = "connect_us = 0.0\nlatency_us = 1000.0\n[[stall]]\nfrom_s = 20.0\nfor_s = 10.0\n";

// 19,999 requests end before the stall, each after 1 ms; one is sent 1 ms before it and ends with it, after 10.001 s;
// 30,000 follow. Mean: (49,999 · 1 ms + 10,001 ms) / 50,000 = 1.2 ms. Deviation: of 49,999 by 0.2 ms and of one by
// 9,999.8 ms, that is √2000 ms. Within it are 99.998 %.
//
// Rates: of 600 intervals of 100 ms, 199 saw 100 answers, one 99, 99 none, one the late one, and 300 saw 100 again.
// Mean: 500,000 / 600. Within one deviation are the 500 full ones. Bytes: 50,000 answers of 52.
const STALLED: &str = "\
Running 1m test @ http://127.0.0.1:8080/
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.20ms   44.72ms  10.00s   100.00%
    Req/Sec   833.33    372.94     1.00k    83.33%
  Latency Distribution
     50%    1.00ms
     75%    1.00ms
     90%    1.00ms
     99%    1.00ms
   99.9%    1.00ms
     max   10.00s 
  50000 requests in 1.00m, 2.48MB read
  Errors: 1 of 50,001 requests (1 with a late or unsuccessful response)
  Socket errors: connect 0, read 0, write 0, timeout 1
Requests/sec:    833.33
Transfer/sec:     42.32KB
";

// The late answer is in no latency. A latency of 1 ms is never rewritten: responses are 60 s / 50,000 = 1.2 ms apart.
// Rates: the intervals without an answer become one with its late end, of 1 answer in 10 s, which is 0 as a whole
// number. Mean: (499 · 1000 + 990) / 501. All but the zero are within one deviation, which is 44.68.
const STALLED_AS_WRK: &str = "\
Running 1m test @ http://127.0.0.1:8080/
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms    0.00us   1.00ms  100.00%
    Req/Sec     1.00k    44.68     1.00k    99.80%
  Latency Distribution
     50%    1.00ms
     75%    1.00ms
     90%    1.00ms
     99%    1.00ms
  50000 requests in 1.00m, 2.48MB read
  Socket errors: connect 0, read 0, write 0, timeout 1
Requests/sec:    833.33
Transfer/sec:     42.32KB
";

fn a_stall_of_ten_seconds_in_a_minute_is_reported_as_computed(context: &Context) {
    let output = simulate(context.onrush().words("-c1 -d60s --probe off"), STALL);
    assert_eq!((output.code, output.stdout.as_str()), (0, STALLED));
    // Sent at 19.999 s, it passes the timeout of 2 s at 21.999 s, and is checked every tenth of a second.
    let notes = "note: no response from 20.0 s to 30.0 s
note: timeout: 1 × no complete response within 2 s (22.0 s into the run); change the limit with --timeout
";
    assert_eq!(output.stderr, notes);
}

fn a_stall_is_reported_by_wrks_rules_as_computed(context: &Context) {
    let output = simulate(context.called("wrk").words("-t1 -c1 -d60s --latency"), STALL);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, STALLED_AS_WRK, ""));
}

fn a_quiet_run_prints_its_report_and_errors(context: &Context) {
    let run = |words: &str| simulate(context.onrush().words("-c1 -d60s --probe off").words(words), STALL);
    let usual = run("");
    assert!(usual.stderr.starts_with("note: ") && !usual.verdict.is_empty(), "{usual:?}");
    for words in ["--quiet", "--notes=off"] {
        let output = run(words);
        assert_eq!((output.code, &output.stdout), (0, &usual.stdout), "{words}");
        assert_eq!((output.stderr.as_str(), output.verdict.as_str()), ("", ""), "{words}");
    }
    let broken = run("--quiet --fail-if rate>1");
    assert_eq!((broken.code, broken.stderr.as_str()), (3, "onrush: --fail-if rate>1: it was 833.33\n"));
}

fn answers_that_are_all_late_leave_wrks_latency_empty(context: &Context) {
    let slow = "connect_us = 0.0\nlatency_us = 2500000.0\n";
    let native = simulate(context.onrush().words("-c1 -d9s"), slow);
    assert_eq!((native.requests(), native.socket_errors("timeout")), (3, 3), "{native:?}");
    assert_eq!(native.line("Latency"), Some("Latency     2.50s     0.00us   2.50s   100.00%"));
    let compat = simulate(context.called("wrk").words("-t1 -c1 -d9s"), slow);
    assert_eq!((compat.requests(), compat.socket_errors("timeout")), (3, 3), "{compat:?}");
    assert_eq!(compat.line("Latency"), Some("Latency     0.00us    0.00us   0.00us    -nan%"));
}

fn times_without_answers_are_those_of_all_threads_together(context: &Context) {
    let words = "note: no response from";
    let outage = simulate(context.onrush().words("-t2 -c4 -d4s"), "[[stall]]\nfrom_s = 1.3\nfor_s = 1.2");
    assert!(outage.note(words).ends_with("no response from 1.3 s to 2.5 s"), "{outage:?}");
    let to_the_end = simulate(context.onrush().words("-t2 -c4 -d4s"), "[[stall]]\nfrom_s = 3.5\nfor_s = 9.0");
    assert!(to_the_end.note(words).ends_with("from 3.5 s to the end"), "{to_the_end:?}");
    // Connections that are closed after each response, and refused for a while.
    let refused = "connect_us = 0.0\nclose = true\nanswer = \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: \
                   0\\r\\n\\r\\n\"\n[[refuse]]\nfrom_s = 1.0\nfor_s = 0.5";
    let refused = simulate(context.onrush().words("-t2 -c2 -d4s"), refused);
    assert!(refused.note(words).contains("no response from 1.0 s to "), "{refused:?}");
    for (options, scenario) in [
        // Every response takes that long.
        ("-t1 -c1 -d9s", "latency_us = 900000.0"),
        // Another connection gets responses meanwhile.
        ("-t1 -c4 -d3s", "[[fault]]\nevery = 5000\nwhat = 'hang'"),
        // Workers that have had all their requests.
        ("-t2 -c2 -n999", ""),
    ] {
        let output = simulate(context.onrush().words(options), scenario);
        assert!(output.requests() > 5 && !output.stderr.contains(words), "{output:?}");
    }
    let pauses = "function delay() return 700 end";
    let output = simulate(context.onrush().words("-t1 -c1 -d5s").lua(pauses), "");
    assert!(!output.stderr.contains(words), "nothing was asked either: {output:?}");
}

fn what_was_in_flight_when_measuring_began_counts_with_its_whole_latency(context: &Context) {
    // On each connection requests are sent at 0, 500 and 1,000 ms. The window is from 250 to 1,250 ms.
    let options = "-t1 -c8 --warmup 250ms -d1s";
    let scenario = "connect_us = 0.0\nlatency_us = 500000.0";
    let (output, document) = simulated_document(context.onrush().words(options), scenario);
    assert_eq!((output.requests(), number(&document, "/rate_per_s")), (16, 16.0), "{output:?}");
    assert_eq!(number(&document, "/latency/service/min_us"), 500_000.0);
    let fates = ["carried", "started", "completed", "open"].map(|fate| number(&document, &format!("/requests/{fate}")));
    assert_eq!(fates, [8.0, 16.0, 16.0, 8.0], "what was carried and started was completed or is open");
    assert_in_flight(&document, 8.0);
    output.note("8 requests sent during the warm-up were still in flight when measuring began; their responses are among the 16 measured, ");
    let (longer, _) = simulated_document(context.onrush().words("-t1 -c8 --warmup 250ms -d50s --probe off"), scenario);
    assert_eq!((longer.requests(), longer.stderr.as_str()), (800, ""), "a hundredth is not worth a note");
}

/// Every third request hangs: 20 complete, ten are abandoned, and nothing is left.
fn what_was_due_has_one_account(context: &Context) {
    let options = "-t1 -c10 -n30 -R100 --give-up 1s";
    let scenario = "connect_us = 0.0\nlatency_us = 1000.0\n[[fault]]\nevery = 3\nwhat = 'hang'";
    let (output, document) = simulated_document(context.onrush().words(options), scenario);
    assert_eq!(output.line("Requests due"), Some("Requests due: 30 (20 completed, 10 abandoned)"), "{output:?}");
    assert_eq!(output.line("Errors"), Some("Errors: 10 of 30 requests (10 abandoned)"));
    output.note("10 of 30 requests got no complete response: 10 were abandoned (--give-up) after ");
    let counts =
        ["/requests/due", "/requests/abandoned", "/requests/unsent", "/errors/abandoned", "/evidence/load/left"];
    assert_eq!(counts.map(|count| number(&document, count)), [30.0, 10.0, 0.0, 10.0, 0.0]);
    assert!(!output.verdict.contains(" left "), "{}", output.verdict);
    let rows = document["timeline"].as_array().unwrap();
    let erroneous: u64 = rows.iter().filter_map(|row| row["erroneous"].as_u64()).sum();
    assert_eq!(erroneous, 10, "{rows:?}");
}

/// If the last request of `-n` ends the run, nothing balances the warm-up's requests.
fn no_rate_is_higher_than_the_connections_can_make(context: &Context) {
    // Requests are sent at 0, 500 and 1,000 ms on each connection; the window is from 250 to 1,500 ms.
    let options = "-t1 -c8 --warmup 250ms -n16";
    let (output, document) =
        simulated_document(context.onrush().words(options), "connect_us = 0.0\nlatency_us = 500000.0");
    let fates = ["carried", "started", "completed", "open"].map(|fate| number(&document, &format!("/requests/{fate}")));
    // The line of the requests counts the requests of the rate.
    assert_eq!((output.requests(), fates), (16, [8.0, 16.0, 24.0, 0.0]), "{output:?}");
    assert_eq!(output.line("8 more"), Some("8 more were carried over from the warm-up"));
    assert_eq!(
        (output.line("Requests/sec"), number(&document, "/rate_per_s")),
        (Some("Requests/sec:     12.80"), 12.8)
    );
}

/// Figures that look good because of missing requests.
fn connections_that_were_not_busy_are_said_first_with_where_they_were(context: &Context) {
    let run = |scenario| simulated_document(context.onrush().words("-t1 -c10 -d10s --probe off"), scenario);
    // For six of ten seconds the target refuses, and every response before that ends its connection. The first steps of
    // the back-off, which doubles from 1 ms to 1 s, are short.
    let (output, document) =
        run("connect_us = 100.0\nclose = true\nanswer = \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\
                                  Content-Length: 0\\r\\n\\r\\n\"\n[[refuse]]\nfrom_s = 4.0\nfor_s = 6.0");
    let busy = number(&document, "/in_flight/busy_connections");
    assert!((3.6..3.7).contains(&busy), "10 of 11 parts of four seconds: {busy}");
    let first = "note: only 3.6 of 10 connections had a request in flight on average: 6.0 were waiting to reconnect, 0.4 were \
                 connecting\n";
    assert!(output.stderr.starts_with(first), "{output:?}");
    // Four connections never find a port.
    let (output, document) = run("ports = 6\nconnect_us = 0.0");
    assert!(output.verdict.contains("4 of 10 connections were missing on average"), "{output:?}");
    assert_in_flight(&document, 6.0);
    // Every 3,000th request gets no response, until all connections wait for such a one.
    let (output, document) = run("connect_us = 0.0\n[[fault]]\nevery = 3000\nwhat = 'hang'");
    let said = "left requests unanswered: 10 at the end, after at least a second and three times the slowest response; the \
                latencies leave them out";
    assert!(output.verdict.contains(said), "{output:?}");
    assert_in_flight(&document, 10.0);
}

/// Checks how many connections were busy, with one request each, on average.
fn assert_in_flight(document: &Value, expected: f64) {
    for name in ["mean", "busy_connections"] {
        let mean = number(document, &format!("/in_flight/{name}"));
        assert!((mean - expected).abs() < 0.01, "{name}: {mean} instead of {expected}");
    }
}

/// A head of 28 bytes arrives a microsecond before each response.
fn an_interim_answer_is_counted_and_is_no_first_byte(context: &Context) {
    let scenario = "connect_us = 0.0\nsplit = 28\nanswer = \"HTTP/1.1 103 Early Hints\\r\\n\\r\\n\
                    HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let (output, document) = simulated_document(context.onrush().words("-t1 -c1 -n10 --breakout=all"), scenario);
    assert_eq!((output.requests(), number(&document, "/requests/interim")), (10, 10.0), "{output:?}");
    assert_eq!(number(&document, "/phases/ttfb/min_us"), 1_001.0, "{document}");
    assert_eq!(number(&document, "/phases/ttlb/max_us"), 1.0, "{document}");
    assert_eq!(output.line("Interim responses"), Some("Interim responses (1xx): 10"));
    output.note(
        "10 interim responses (1xx) came before the final ones: the time to first byte is that of the final response",
    );
    let (plain, _) = simulated_document(context.onrush().words("-t1 -c1 -n10"), scenario);
    assert_eq!(plain.line("Interim responses"), None, "{plain:?}");
    let once = simulate(context.onrush().words("--once"), &format!("latency_us = 10.0\n{scenario}"));
    assert!(once.stdout.contains("first byte 11.00us after the request"), "{once:?}");
}

fn a_bug_in_a_thread_is_named_and_loses_nothing(context: &Context) {
    let scenario = "[[fault]]\nevery = 5000\nwhat = 'bug'";
    let (output, document) = simulated_document(context.onrush().words("-t2 -c2 -d1000000s"), scenario);
    assert_eq!(output.code, 1, "{output:?}");
    output.assert_standard();
    // Both threads make a request a millisecond; the first one meets its 5,000th in the last tenth of 5 s.
    assert!((9_790..=9_900).contains(&output.requests()), "{output:?}");
    assert_eq!(number(&document, "/requests/completed") as u64, output.requests());
    let why = document["incomplete"].as_str().expect("it is marked");
    assert!(why.contains(" died during the run because of the bug named above: "), "{why}");
    output.note(why);
    output.note("a bug, on purpose");
}

/// A server with everything that is random.
const TROUBLED: &str = "
    jitter_us = 5000.0
    [capacity]\nworkers = 2\nservice_us = 4000.0\nspread = 'exponential'\nqueue = 40\nnoise = 0.2
    cliff = { waiting = 20, slower = 1.5 }
    [[fault]]\nevery = 211\nwhat = 'reset'\nafter_bytes = 20
    [[fault]]\nevery = 317\nwhat = 'close'\nafter_bytes = 45
    [[fault]]\nevery = 419\nwhat = 'hang'
    [[fault]]\nevery = 523\nwhat = { answer = 'nonsense' }";

/// Whatever ends a run, or decides about the next one: responses, a stop rule, a gate, a limit of patience, a signal.
fn the_same_command_line_gives_the_same_bytes(context: &Context) {
    let pauses = "function delay() return math.random(20) end function response() end";
    for (words, more, script, code) in [
        ("-t2 -c10 -n2000 --give-up 3s --latency", "", "", 0),
        ("-t2 -R 200 --find-max p90<60ms,errors<5% -d 30s", "", "", 0),
        ("-t2 -c4 --until rate±5% -d 5m", "", "", 0),
        ("-t2 -c8 -d5s --fail-if errors>0%,p99>1ms --annotate", "", "", 3),
        ("-t2 -c8 -n5000 --give-up 2s", "refuse = [{ from_s = 0.3, for_s = 99.0 }]\nclose = true", "", 5),
        ("-t2 -c8 -d1h", "refuse = [{ from_s = 0.0, for_s = 99.0 }]", "", 2),
        ("-t2 -R 600 --arrivals poisson --warmup 1s -d5s", "", "", 0),
        ("-t2 -c8 -d5s", "", pauses, 0),
        ("-t2 -c8 -d1h", "signal_s = 3.21", "", 0),
        ("-t2 -c8 -d5s --give-up 2s", "serves = 4\ndelay = { ms = 2.0, sd = 1.0 }", "", 0),
    ] {
        let scratch = Scratch::new("same-bytes");
        let file = scratch.path().join("r.json");
        let run = |seed: &str| {
            let onrush = context.onrush().words(words).words("-v --seed").word(seed).word("-o").word(&file);
            let onrush = if script.is_empty() { onrush } else { onrush.lua(script) };
            let output = simulate(onrush, &format!("{more}\n{TROUBLED}"));
            (output.code, output.stdout, output.stderr, output.verdict, std::fs::read_to_string(&file).ok())
        };
        let first = run("7");
        assert_eq!(first.0, code, "{words}: {first:?}");
        assert_eq!(first, run("7"), "{words}");
        if code != 2 {
            assert_ne!(first.4, run("8").4, "{words}: another seed is another run");
        }
    }
}

fn resets_and_closes_are_named_wherever_they_happen(context: &Context) {
    // The head of the response has 39 bytes, all of it 52.
    let closed = |after: usize| match after {
        0 => "closed by the server before a response began",
        1..39 => "closed by the server inside a response head",
        _ => "closed by the server inside a response body",
    };
    for after in [0, 1, 8, 17, 38, 39, 40, 51] {
        for (what, words) in [("reset", "connection reset by the server (ECONNRESET)"), ("close", closed(after))] {
            let scenario = format!("[[fault]]\nevery = 2\nwhat = '{what}'\nafter_bytes = {after}");
            let output = simulate(context.onrush().words("-t1 -c2 -n10"), &scenario);
            assert_eq!((output.code, output.requests()), (0, 5), "{what} after {after}: {output:?}");
            assert_eq!(output.socket_errors("read"), 5, "{what} after {after}: {output:?}");
            output.note(&format!("read: 5 × {words}"));
            output.note("5 of 10 requests got no complete response: 5 failed");
        }
    }
}

fn running_out_of_ports_is_named_and_survived(context: &Context) {
    let output = simulate(context.onrush().words("-t1 -c10 -d1s"), "ports = 6\nconnect_us = 0.0");
    assert_eq!((output.code, output.requests()), (0, 6_000), "six connections carry on: {output:?}");
    assert!(output.verdict.contains("4 of 10 connections were missing on average"), "{output:?}");
    let failed = output.socket_errors("connect");
    output.note(&format!("connect: {failed} × no local port left (EADDRNOTAVAIL)"));
    assert!((4 * 8..=4 * 13).contains(&failed), "four slots, their waits doubling from 1 ms: {output:?}");
}

fn a_run_of_requests_waits_for_a_server_that_starts_late(context: &Context) {
    // Two seconds' work after three seconds of refusals.
    let output = simulate(context.onrush().words("-t1 -c4 -n8000"), "[[refuse]]\nfrom_s = 0.0\nfor_s = 3.0");
    assert_eq!((output.code, output.requests()), (0, 8_000), "refused connects use up none: {output:?}");
    let elapsed_s: f64 =
        output.stdout.split("requests in ").nth(1).and_then(|text| text.split("s,").next()?.parse().ok()).unwrap();
    // The last back-off before the target was back is at most a second.
    assert!((5.0..6.1).contains(&elapsed_s), "{output:?}");
    let refused = output.socket_errors("connect");
    let note = output.note(&format!("{refused} connections refused by 127.0.0.1:8080 (first 0.0 s, last 2."));
    assert!(note.ends_with(" s into the run): nothing listened there"), "{note}");
    assert!((8..=16).contains(&refused), "waits double from 1 ms: {output:?}");
}

fn a_server_that_stays_away_ends_a_run_of_requests(context: &Context) {
    let output = simulate(context.onrush().words("-t1 -c4 -n10"), "[[refuse]]\nfrom_s = 0.0\nfor_s = 1000.0");
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    output.note("the target was unreachable for 30s: the run ended after 0 of 10 requests");
    let away = "[[refuse]]\nfrom_s = 0.5\nfor_s = 1000.0\n[[fault]]\nevery = 200\nwhat = 'reset'";
    let output = simulate(context.onrush().words("-t1 -c1 -n100000 --give-up 5s"), away);
    assert_eq!(output.code, 5, "although some were answered: {output:?}");
    assert!(output.requests() > 0, "{output:?}");
    output.note("the target was unreachable for 5s");
}

/// Its thread is lost; the other one goes on, and time with it.
fn a_script_that_never_returns_is_named_in_virtual_time_too(context: &Context) {
    let script = "function setup(thread) made = (made or 0) + 1 thread:set('id', made) end
                  function response() while id == 1 do end end";
    let output = simulate(context.onrush().words("-t2 -c2 -d2s").lua(script), "connect_us = 0.0\nlatency_us = 1000.0");
    assert_eq!((output.code, output.requests()), (1, 2_000), "{output:?}");
    assert!(
        output.stderr.contains("onrush: thread 1 is still in the script's response() more than a second after"),
        "{output:?}"
    );
}

fn a_search_over_threads_needs_a_target_for_any_number_of_them(context: &Context) {
    let words = "-c4 --find-max errors<1% --over threads -d 8s";
    let output = simulate(context.onrush().words(words), "[capacity]\nworkers = 4\nservice_us = 1000.0");
    let line = "onrush: --over threads: the scenario's capacity is divided among the threads, and not every number of them \
                divides it; search --over connections\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, line));
}

fn a_scenario_that_cannot_be_understood_is_refused(context: &Context) {
    let capacity = |more: &str| format!("[capacity]\nworkers = 1\n{more}");
    for scenario in [
        "latency_us = 'soon'",
        "latencies = 1.0",
        "[[fault]]\nevery = 1\nwhat = 'dance'",
        // Virtual time would not go on.
        "latency_us = -5.0",
        "[[stall]]\nfrom_s = 1.0\nfor_s = -inf",
        "serves = -1",
        "delay = { ms = 0.0 }",
        "delay = { ms = 5.0, sd = -1.0 }",
        "delay = { ms = 5.0, sd = 1.0, dist = 'exp' }",
        "delay = { ms = 5.0, dist = 'two' }",
        "delay = { ms = 5.0, slow = 9.0 }",
        "delay = { ms = 5.0, standard_deviation = 1.0 }",
        "pool = { ms = 5.0 }",
        "pool = { workers = 1, ms = 5.0, size = 1 }",
        &capacity("service_us = 1.0\n[pool]\nworkers = 1\nms = 5.0"),
        &capacity("service_us = nan"),
        &capacity("service_us = 0.0"),
        &capacity("service_us = 1.0\nnoise = 2.0"),
        &capacity("service_us = 1.0\ncliff = { waiting = 1, slower = -1.0 }"),
        &capacity("service_us = 1.0\nspread = { log-normal = -1.0 }"),
    ] {
        let output = simulate(context.onrush().words("-d1s"), scenario);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains("\" is not a valid scenario: "), "{output:?}");
    }
}

/// One worker takes 2 ms on average, exponentially distributed, and requests come at random, 250 a second (M/M/1). The
/// time of a response is exponentially distributed with mean 1/(500/s - 250/s).
///
/// The variance of the mean of n successive times is ρ (2 + 5ρ - 4ρ² + ρ³) / (1 - ρ)⁴ / n services² (Daley 1968), which
/// is 29/n for ρ = 1/2. With n = 20,000 the deviation is 0.038 of 2 services or 1.9 %, of which five are allowed.
fn latencies_in_front_of_a_queue_are_those_that_theory_computes(context: &Context) {
    let words = "-t1 -c100 --max-inflight 500 -R 250 --arrivals poisson -d80s";
    let scenario = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\n\
                    spread = 'exponential'";
    let (output, document) = simulated_document(context.onrush().words(words), scenario);
    for (figure, expected_us) in [("mean_us", 4_000.0), ("percentiles_us/50", 4_000.0 * 2.0_f64.ln())] {
        let was_us = number(&document, &format!("/latency/scheduled/{figure}"));
        assert!((was_us / expected_us - 1.0).abs() < 0.095, "{figure}: {was_us} not {expected_us}: {output:?}");
    }
}

/// Two workers, 10 ms each: 200/s. Of 30 connections two are being served and ten wait; 18 are told at once, after a
/// millisecond, that there is no room, and ask again.
fn a_server_with_a_limit_refuses_what_it_has_no_room_for(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 1000.0\n[capacity]\nservice_us = 10000.0\nqueue = 10\nworkers =";
    for threads in ["-t1", "-t2"] {
        let onrush = context.onrush().words(threads).words("-c30 -d2s");
        let output = simulate(onrush, &format!("{scenario} 2"));
        // Two of these 200 a second are done when the two seconds end, and on their way.
        assert!(output.verdict.contains("99 % of the responses were 503"), "{output:?}");
        assert_eq!(output.line("Status 503"), Some("Status 503: 35,602 · 200: 398"), "{output:?}");
    }
    let (_, document) = simulated_document(context.onrush().words("-t1 -c30 -d2s"), &format!("{scenario} 2"));
    let refused = &document["latency"]["by_class"]["5xx"];
    assert_eq!((&refused["count"], &refused["max_us"]), (&json!(35_602), &json!(1_000.0)), "{refused}");
    assert!(document["latency"]["by_class"]["4xx"].is_null());
    let output = simulate(context.onrush().words("-t2 -c30 -d2s"), &format!("{scenario} 3"));
    let line = "onrush: workers = 3 cannot be divided among 2 threads; change it, or -t\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, line));
}

/// One worker, 2 ms each, but four times as long while more than ten requests wait when one arrives.
fn a_server_beyond_its_cliff_does_less(context: &Context) {
    let cliff = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\n\
                 cliff = { waiting = 10, slower = 4.0 }";
    for (connections, latency, rate) in [("-c11", "22.00ms", "500.00"), ("-c13", "104.00ms", "125.00")] {
        // From 1 s on, all that was begun at the old pace is done.
        let onrush = context.onrush().words("-t1 --warmup 1s -d8s").words(connections);
        let output = simulate(onrush, cliff);
        let words = |start| output.line(start).map_or(Vec::new(), |line| line.split_whitespace().skip(1).collect());
        assert_eq!(words("Latency"), [latency, "0.00us", latency, "100.00%"], "{output:?}");
        assert_eq!(words("Requests/sec:"), [rate], "{output:?}");
    }
}

/// One worker, a millisecond each, a fifth more or less: between 1,000/1.2 and 1,000/0.8 a second, and one more or less
/// at the ends.
fn a_noisy_server_is_faster_in_some_seconds_than_in_others(context: &Context) {
    let noisy = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 1000.0\nnoise = 0.2";
    let (_, document) = simulated_document(context.onrush().words("-t1 -c4 -d20s"), noisy);
    let rows = document["timeline"].as_array().unwrap();
    let rates: Vec<u64> = rows.iter().map(|row| row["completed"].as_u64().unwrap()).collect();
    assert!(rates.len() == 20 && rates.iter().all(|rate| (832..=1_251).contains(rate)), "{rates:?}");
    // Of 20 evenly distributed numbers, all are in one half once in 500,000 times.
    assert!(rates.iter().any(|rate| *rate < 980) && rates.iter().any(|rate| *rate > 1_020), "{rates:?}");
}

/// Four workers, 5 ms each: 800/s. With 16 connections each request waits for three others. The service times have the
/// names of the embedded target's paths.
fn a_pool_of_workers_serves_as_computed(context: &Context) {
    let pool = "connect_us = 0.0\nlatency_us = 0.0\npool = { workers = 4, ms = 5 }";
    for threads in ["-t1", "-t2"] {
        let output = simulate(context.onrush().words(threads).words("-c16 --warmup 1s -d2s"), pool);
        let words = |start| output.line(start).map_or(Vec::new(), |line| line.split_whitespace().skip(1).collect());
        assert_eq!(words("Latency"), ["20.00ms", "0.00us", "20.00ms", "100.00%"], "{output:?}");
        assert_eq!(words("Requests/sec:"), ["800.00"], "{output:?}");
    }
    let output = simulate(context.onrush().words("-t3 -c16 -d1s"), pool);
    let line = "onrush: workers = 4 cannot be divided among 3 threads; change it, or -t\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, line));
}

/// Four of 16 connections are served, 5 ms each: the other twelve never get a response.
fn a_server_of_few_processes_leaves_the_other_connections_hanging(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 0.0\nserves = 4\ndelay = { ms = 5.0 }";
    for threads in ["-t1", "-t2"] {
        let onrush = context.onrush().words(threads).words("-c16 -d1.001s");
        let (output, document) = simulated_document(onrush, scenario);
        let fates = ["started", "completed", "open"].map(|fate| number(&document, &format!("/requests/{fate}")));
        assert_eq!(fates, [816.0, 800.0, 16.0], "{output:?}");
        assert_eq!(number(&document, "/latency/service/max_us"), 5_000.0);
    }
}

/// One of three connections is served, 10 ms, and is then closed: the next one has waited for the other two.
fn connections_that_close_make_room_for_others_in_their_order(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 0.0\nserves = 1\ndelay = { ms = 10.0 }\nclose = true\nanswer = \
                    \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let onrush = context.onrush().words("-t1 -c3 -n100");
    let (output, document) = simulated_document(onrush, scenario);
    assert_eq!((output.requests(), number(&document, "/rate_per_s")), (100, 100.0), "{output:?}");
    let figures = ["min_us", "percentiles_us/50", "max_us"];
    let latencies = figures.map(|figure| number(&document, &format!("/latency/service/{figure}")));
    assert_eq!(latencies, [10_000.0, 30_000.0, 30_000.0], "{output:?}");
}

/// Means of 20,000 times are within five of their deviations.
fn delays_have_the_distribution_that_was_asked_for(context: &Context) {
    for (delay, mean_us, deviation_us) in [
        ("ms = 5.0", 5_000.0, 0.0),
        ("ms = 5.0, sd = 1.5", 5_000.0, 1_500.0),
        ("ms = 5.0, dist = 'exp'", 5_000.0, 5_000.0),
        ("ms = 2.0, dist = 'two', slow = 8.0", 5_000.0, 3_000.0),
    ] {
        let scenario = format!("connect_us = 0.0\nlatency_us = 0.0\ndelay = {{ {delay} }}");
        let (output, document) = simulated_document(context.onrush().words("-t1 -c10 -n20000"), &scenario);
        let [mean, deviation] = ["mean_us", "stdev_us"].map(|it| number(&document, &format!("/latency/service/{it}")));
        assert!((mean - mean_us).abs() <= deviation_us * 5.0 / 20_000_f64.sqrt() + 5.0, "{delay}: {mean}: {output:?}");
        assert!((deviation - deviation_us).abs() <= 0.05 * deviation_us, "{delay}: {deviation}: {output:?}");
    }
}

/// Runs a command line in a scenario, and returns its document too.
pub fn simulated_document(onrush: Onrush, scenario: &str) -> (ProgramOutput, Value) {
    let scratch = Scratch::new("simulated");
    let path = scratch.path().join("r.json");
    let output = simulate(onrush.word("-o").word(&path), scenario);
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("no document: {error}: {output:?}"));
    (output, serde_json::from_str(&text).expect("it is JSON"))
}

fn what_limited_a_run_is_known_in_virtual_time_too(context: &Context) {
    let quick = "connect_us = 100.0\nlatency_us = 1000.0\n";
    let table = [
        ("-c8", "", "connections", None),
        ("-c8 --probe 20s", "jitter_us = 9000.0", "connections", None),
        // 300/s: each response takes 2.3 s, and is late.
        ("-c700 --probe 6s", "[capacity]\nworkers = 3\nservice_us = 10000.0", "target", None),
        ("-c8 -R500", "jitter_us = 9000.0", "schedule", None),
        ("-c8 -R20k", "jitter_us = 9000.0", "unclear", None),
        ("-c8", "ports = 5", "ports", None),
        ("-c8", "[[generator_stall]]\nfrom_s = 4.0\nfor_s = 1.0", "generator_cpu", Some("stalled")),
        ("-c8", "[[stall]]\nfrom_s = 4.0\nfor_s = 4.0", "target", Some("stall_hidden")),
        ("-c8", "close = true\n[[refuse]]\nfrom_s = 7.0\nfor_s = 9.0", "target", Some("target_died")),
        ("-c1 -n15", "", "unclear", None),
    ];
    for (words, scenario, limited_by, finding) in table {
        let onrush = context.onrush().words(&format!("-t1 -d12s {words}"));
        let (output, document) = simulated_document(onrush, &format!("{quick}{scenario}"));
        let verdict = &document["verdict"];
        assert_eq!(verdict["limited_by"], limited_by, "{words} {scenario}: {verdict:#}");
        let findings: Vec<&str> = verdict["findings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(findings, finding.into_iter().collect::<Vec<_>>(), "{words} {scenario}: {verdict:#}");
        assert!(output.verdict.contains(verdict["reason"].as_str().unwrap()) || words.contains("-n15"), "{output:?}");
    }
}

/// Runs a command line in a scenario.
pub fn simulate(onrush: Onrush, scenario: &str) -> ProgramOutput {
    let scratch = Scratch::new("scenario");
    let file = scratch.file("scenario.toml", scenario);
    let io = format!("sim:{}", file.display());
    let mut output = onrush.word("--io").word(io).word("http://127.0.0.1:8080/").run_plain();
    output.take_verdict();
    output
}

fn stages_of_connections_tell_what_a_probe_would(context: &Context) {
    let workers =
        |workers: u32, spread: &str| format!("[capacity]\nworkers = {workers}\nservice_us = 10000.0\n{spread}");
    let exponential = "spread = 'exponential'";
    let table = [
        (
            "c=5s:4,5s:16",
            workers(4, ""),
            "the target is at its limit (4 in flight instead of 16 brought the same 400/s)",
        ),
        (
            "c=5s:8,5s:16,5s:8",
            workers(4, exponential),
            "the target is at its limit (half as many in flight brought the same ",
        ),
        (
            "c=20s:0..16",
            workers(4, ""),
            "the target is at its limit (8 in flight instead of 15 brought the same 400/s)",
        ),
        (
            "c=5s:8,5s:16",
            "delay = { ms = 10.0, dist = 'exp' }".to_owned(),
            "the number of requests in flight is the limit (half as many in flight brought half)",
        ),
        (
            "c=40s:16,40s:8",
            "delay = { ms = 10.0 }".to_owned(),
            "the number of requests in flight is the limit (half as many in flight brought half)",
        ),
        ("c=20s:8,20s:16", workers(11, exponential), "the target is near its limit (half as many in flight brought 3"),
        // More connections come as time passes, so that either may be why there are more responses.
        ("c=20s:0..16", "delay = { ms = 10.0 }".to_owned(), "the limit is unclear"),
        ("c=10s:16", workers(4, ""), "the limit is unclear"),
    ];
    for (stages, scenario, expected) in table {
        let scenario = format!("connect_us = 100.0\nlatency_us = 1000.0\n{scenario}");
        let output = simulate(context.onrush().words("-t1 --stages").word(stages), &scenario);
        assert!(
            output.verdict.contains(expected) && !output.verdict.contains("--probe"),
            "{stages} {scenario}: {output:?}"
        );
    }
}

/// Whoever follows it gets no other number: at 100 requests per second, pauses of half a second take 50 connections.
fn advice_on_connections_that_pause_settles(context: &Context) {
    let pauses = "function delay() return 500 end";
    let mut connections = 20;
    for advice in 0.. {
        let words = format!("-t1 -c{connections} -d6s -R 100");
        let output = simulate(context.onrush().words(&words).lua(pauses), "connect_us = 0.0\nlatency_us = 1000.0");
        let Some((_, number)) = output.stderr.split_once("use -c ") else { break };
        let number: u32 = number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        assert!(number > connections && number <= 125 && advice < 2, "{connections}: {output:?}");
        connections = number;
    }
    assert!((51..=125).contains(&connections), "{connections}");
}
