//! The whole program in virtual time. Expected output was computed by hand.

use serde_json::{Value, json};

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases};
use crate::results::number;

cases! {
    stalls_are_reported_as_computed (Once);
    stalls_follow_wrks_rules_as_computed (Once);
    only_late_responses_leave_wrks_latency_empty (Once);
    silences_are_common_to_all_threads (Once);
    carried_over_requests_keep_their_latency (Once);
    rates_never_exceed_connection_capacity (Once);
    due_requests_have_one_account (Once);
    idle_connections_are_reported_first (Once);
    interim_responses_are_no_first_byte (Once);
    thread_bugs_are_named_and_lose_nothing (Once);
    equal_command_lines_give_equal_bytes (Once);
    resets_and_closes_are_named_anywhere (Once);
    port_exhaustion_is_named_and_survived (Once);
    request_runs_wait_for_late_servers (Once);
    absent_servers_end_request_runs (Once);
    quiet_runs_print_report_and_errors (Once);
    connection_stages_replace_probes (Once);
    limits_are_known_in_virtual_time (Once);
    queue_latencies_match_theory (Once);
    limited_servers_refuse_surplus_requests (Once);
    servers_beyond_their_cliff_slow_down (Once);
    noisy_servers_vary_by_second (Once);
    worker_pools_serve_as_computed (Once);
    few_processes_leave_connections_hanging (Once);
    closing_connections_make_room_in_order (Once);
    delays_have_the_requested_distribution (Once);
    advice_for_pausing_connections_converges (Once);
    invalid_scenarios_are_refused (Once);
    hanging_scripts_are_named_in_virtual_time (Once);
    thread_searches_need_divisible_capacity (Once);
}

/// Sequential requests of a millisecond each, with no response from 20 s to 30 s.
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

fn stalls_are_reported_as_computed(context: &Context) {
    let output = simulate(context.onrush().words("-c1 -d60s --probe off"), STALL);
    assert_eq!((output.code, output.stdout.as_str()), (0, STALLED));
    // Sent at 19.999 s, the request exceeds the timeout of 2 s at 21.999 s; checks are every tenth of a second.
    let notes = "note: no response from 20.0 s to 30.0 s
note: timeout: 1 × no complete response within 2 s (22.0 s into the run); change the limit with --timeout
";
    assert_eq!(output.stderr, notes);
}

fn stalls_follow_wrks_rules_as_computed(context: &Context) {
    let output = simulate(context.called("wrk").words("-t1 -c1 -d60s --latency"), STALL);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, STALLED_AS_WRK, ""));
}

fn quiet_runs_print_report_and_errors(context: &Context) {
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

fn only_late_responses_leave_wrks_latency_empty(context: &Context) {
    let slow = "connect_us = 0.0\nlatency_us = 2500000.0\n";
    let native = simulate(context.onrush().words("-c1 -d9s"), slow);
    assert_eq!((native.requests(), native.socket_errors("timeout")), (3, 3), "{native:?}");
    assert_eq!(native.line("Latency"), Some("Latency     2.50s     0.00us   2.50s   100.00%"));
    let compat = simulate(context.called("wrk").words("-t1 -c1 -d9s"), slow);
    assert_eq!((compat.requests(), compat.socket_errors("timeout")), (3, 3), "{compat:?}");
    assert_eq!(compat.line("Latency"), Some("Latency     0.00us    0.00us   0.00us    -nan%"));
}

fn silences_are_common_to_all_threads(context: &Context) {
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
        // Every response takes this long.
        ("-t1 -c1 -d9s", "latency_us = 900000.0"),
        // Another connection gets responses meanwhile.
        ("-t1 -c4 -d3s", "[[fault]]\nevery = 5000\nwhat = 'hang'"),
        // Workers that have sent all their requests.
        ("-t2 -c2 -n999", ""),
    ] {
        let output = simulate(context.onrush().words(options), scenario);
        assert!(output.requests() > 5 && !output.stderr.contains(words), "{output:?}");
    }
    let pauses = "function delay() return 700 end";
    let output = simulate(context.onrush().words("-t1 -c1 -d5s").lua(pauses), "");
    assert!(!output.stderr.contains(words), "nothing was asked either: {output:?}");
}

fn carried_over_requests_keep_their_latency(context: &Context) {
    // Requests are sent at 0, 500 and 1,000 ms on each connection. The window is from 250 to 1,250 ms.
    let options = "-t1 -c8 --warmup 250ms -d1s";
    let scenario = "connect_us = 0.0\nlatency_us = 500000.0";
    let (output, document) = simulated_document(context.onrush().words(options), scenario);
    assert_eq!((output.requests(), number(&document, "/rate_per_s")), (16, 16.0), "{output:?}");
    assert_eq!(number(&document, "/latency/service/min_us"), 500_000.0);
    let fates = ["carried", "started", "completed", "open"].map(|fate| number(&document, &format!("/requests/{fate}")));
    assert_eq!(fates, [8.0, 16.0, 16.0, 8.0], "what was carried and started was completed or is open");
    assert_in_flight(&document, 8.0);
    output.note("8 requests sent during the warm-up were still in flight when measuring began; their full latencies are among the 16 measured; ");
    let (longer, _) = simulated_document(context.onrush().words("-t1 -c8 --warmup 250ms -d50s --probe off"), scenario);
    assert_eq!((longer.requests(), longer.stderr.as_str()), (800, ""), "a hundredth is not worth a note");
}

/// Every third request hangs: 20 complete, ten are abandoned, and nothing remains.
fn due_requests_have_one_account(context: &Context) {
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
fn rates_never_exceed_connection_capacity(context: &Context) {
    // Requests are sent at 0, 500 and 1,000 ms on each connection. The window is from 250 to 1,500 ms.
    let options = "-t1 -c8 --warmup 250ms -n16";
    let (output, document) =
        simulated_document(context.onrush().words(options), "connect_us = 0.0\nlatency_us = 500000.0");
    let fates = ["carried", "started", "completed", "open"].map(|fate| number(&document, &format!("/requests/{fate}")));
    // The line of requests counts those on which the rate is based.
    assert_eq!((output.requests(), fates), (16, [8.0, 16.0, 24.0, 0.0]), "{output:?}");
    assert_eq!(output.line("8 more"), Some("8 more were carried over from the warm-up"));
    assert_eq!(
        (output.line("Requests/sec"), number(&document, "/rate_per_s")),
        (Some("Requests/sec:     12.80"), 12.8)
    );
}

/// Figures that look good because requests are missing.
fn idle_connections_are_reported_first(context: &Context) {
    let run = |scenario| simulated_document(context.onrush().words("-t1 -c10 -d10s --probe off"), scenario);
    // The target refuses connections for six of ten seconds, and every response before that ends its connection. The
    // first steps of the back-off, which doubles from 1 ms to 1 s, are short.
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
    // Every 3,000th request gets no response, until all connections wait for one.
    let (output, document) = run("connect_us = 0.0\n[[fault]]\nevery = 3000\nwhat = 'hang'");
    let said = "left requests unanswered: 10 at the end, after at least a second and three times the slowest response; the \
                latencies leave them out";
    assert!(output.verdict.contains(said), "{output:?}");
    assert_in_flight(&document, 10.0);
}

/// Checks the average number of busy connections, with one request each.
fn assert_in_flight(document: &Value, expected: f64) {
    for name in ["mean", "busy_connections"] {
        let mean = number(document, &format!("/in_flight/{name}"));
        assert!((mean - expected).abs() < 0.01, "{name}: {mean} instead of {expected}");
    }
}

/// A head of 28 bytes arrives a microsecond before each response.
fn interim_responses_are_no_first_byte(context: &Context) {
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

fn thread_bugs_are_named_and_lose_nothing(context: &Context) {
    let scenario = "[[fault]]\nevery = 5000\nwhat = 'bug'";
    let (output, document) = simulated_document(context.onrush().words("-t2 -c2 -d1000000s"), scenario);
    assert_eq!(output.code, 1, "{output:?}");
    output.assert_standard();
    // Both threads make a request per millisecond. The first one meets its 5,000th in the last tenth of 5 s.
    assert!((9_790..=9_900).contains(&output.requests()), "{output:?}");
    assert_eq!(number(&document, "/requests/completed") as u64, output.requests());
    let why = document["incomplete"].as_str().expect("it is marked");
    assert!(why.contains(" died because of the bug named above; "), "{why}");
    output.note(why);
    output.note("a bug, on purpose");
}

/// A server with every random feature.
const TROUBLED: &str = "
    jitter_us = 5000.0
    [capacity]\nworkers = 2\nservice_us = 4000.0\nspread = 'exponential'\nqueue = 40\nnoise = 0.2
    cliff = { waiting = 20, slower = 1.5 }
    [[fault]]\nevery = 211\nwhat = 'reset'\nafter_bytes = 20
    [[fault]]\nevery = 317\nwhat = 'close'\nafter_bytes = 45
    [[fault]]\nevery = 419\nwhat = 'hang'
    [[fault]]\nevery = 523\nwhat = { answer = 'nonsense' }";

/// Covers everything that ends a run or decides about the next one: the number of responses, a stop rule, a gate, an
/// abandonment limit, a signal.
fn equal_command_lines_give_equal_bytes(context: &Context) {
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

fn resets_and_closes_are_named_anywhere(context: &Context) {
    // The head of the response takes 39 bytes, the whole response 52.
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

fn port_exhaustion_is_named_and_survived(context: &Context) {
    let output = simulate(context.onrush().words("-t1 -c10 -d1s"), "ports = 6\nconnect_us = 0.0");
    assert_eq!((output.code, output.requests()), (0, 6_000), "six connections carry on: {output:?}");
    assert!(output.verdict.contains("4 of 10 connections were missing on average"), "{output:?}");
    let failed = output.socket_errors("connect");
    output.note(&format!("connect: {failed} × no local port left (EADDRNOTAVAIL)"));
    assert!((4 * 8..=4 * 13).contains(&failed), "four slots, their waits doubling from 1 ms: {output:?}");
}

fn request_runs_wait_for_late_servers(context: &Context) {
    // Two seconds of work after three seconds of refusals.
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

fn absent_servers_end_request_runs(context: &Context) {
    let output = simulate(context.onrush().words("-t1 -c4 -n10"), "[[refuse]]\nfrom_s = 0.0\nfor_s = 1000.0");
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    output.note("the target was unreachable for 30s: the run ended after 0 of 10 requests");
    let away = "[[refuse]]\nfrom_s = 0.5\nfor_s = 1000.0\n[[fault]]\nevery = 200\nwhat = 'reset'";
    let output = simulate(context.onrush().words("-t1 -c1 -n100000 --give-up 5s"), away);
    assert_eq!(output.code, 5, "although some were answered: {output:?}");
    assert!(output.requests() > 0, "{output:?}");
    output.note("the target was unreachable for 5s");
}

/// The thread is lost; the other one continues, and so does time.
fn hanging_scripts_are_named_in_virtual_time(context: &Context) {
    let script = "function setup(thread) made = (made or 0) + 1 thread:set('id', made) end
                  function response() while id == 1 do end end";
    let output = simulate(context.onrush().words("-t2 -c2 -d2s").lua(script), "connect_us = 0.0\nlatency_us = 1000.0");
    assert_eq!((output.code, output.requests()), (1, 2_000), "{output:?}");
    assert!(
        output.stderr.contains("onrush: thread 1 is still in the script's response() more than a second after"),
        "{output:?}"
    );
}

fn thread_searches_need_divisible_capacity(context: &Context) {
    let words = "-c4 --find-max errors<1% --over threads -d 8s";
    let output = simulate(context.onrush().words(words), "[capacity]\nworkers = 4\nservice_us = 1000.0");
    let line = "onrush: --over threads: not every number of threads divides the scenario's capacity; search --over \
                connections\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, line));
}

fn invalid_scenarios_are_refused(context: &Context) {
    let capacity = |more: &str| format!("[capacity]\nworkers = 1\n{more}");
    for scenario in [
        "latency_us = 'soon'",
        "latencies = 1.0",
        "[[fault]]\nevery = 1\nwhat = 'dance'",
        // Virtual time would not advance.
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

/// One worker takes 2 ms on average, exponentially distributed, and requests arrive at random, 250 per second (M/M/1).
/// The response time is exponentially distributed with a mean of 1/(500/s - 250/s).
///
/// The variance of the mean of n successive times is ρ (2 + 5ρ - 4ρ² + ρ³) / (1 - ρ)⁴ / n services² (Daley 1968), which
/// is 29/n for ρ = 1/2. With n = 20,000, the deviation is 0.038 of 2 services, or 1.9 %; five deviations are allowed.
fn queue_latencies_match_theory(context: &Context) {
    let words = "-t1 -c100 --max-inflight 500 -R 250 --arrivals poisson -d80s";
    let scenario = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\n\
                    spread = 'exponential'";
    let (output, document) = simulated_document(context.onrush().words(words), scenario);
    for (figure, expected_us) in [("mean_us", 4_000.0), ("percentiles_us/50", 4_000.0 * 2.0_f64.ln())] {
        let was_us = number(&document, &format!("/latency/scheduled/{figure}"));
        assert!((was_us / expected_us - 1.0).abs() < 0.095, "{figure}: {was_us} not {expected_us}: {output:?}");
    }
}

/// Two workers, 10 ms each: 200/s. Of 30 connections, two are served and ten wait. 18 are refused after a millisecond
/// for lack of room, and ask again.
fn limited_servers_refuse_surplus_requests(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 1000.0\n[capacity]\nservice_us = 10000.0\nqueue = 10\nworkers =";
    for threads in ["-t1", "-t2"] {
        let onrush = context.onrush().words(threads).words("-c30 -d2s");
        let output = simulate(onrush, &format!("{scenario} 2"));
        // Two of these 200 per second are done at the end of the two seconds, and in transit.
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

/// One worker, 2 ms each, but four times as long while more than ten requests wait on arrival.
fn servers_beyond_their_cliff_slow_down(context: &Context) {
    let cliff = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\n\
                 cliff = { waiting = 10, slower = 4.0 }";
    for (connections, latency, rate) in [("-c11", "22.00ms", "500.00"), ("-c13", "104.00ms", "125.00")] {
        // By 1 s, everything that was started at the old pace is done.
        let onrush = context.onrush().words("-t1 --warmup 1s -d8s").words(connections);
        let output = simulate(onrush, cliff);
        let words = |start| output.line(start).map_or(Vec::new(), |line| line.split_whitespace().skip(1).collect());
        assert_eq!(words("Latency"), [latency, "0.00us", latency, "100.00%"], "{output:?}");
        assert_eq!(words("Requests/sec:"), [rate], "{output:?}");
    }
}

/// One worker, a millisecond each, plus or minus a fifth: between 1,000/1.2 and 1,000/0.8 per second, plus or minus one
/// at the ends.
fn noisy_servers_vary_by_second(context: &Context) {
    let noisy = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 1000.0\nnoise = 0.2";
    let (_, document) = simulated_document(context.onrush().words("-t1 -c4 -d20s"), noisy);
    let rows = document["timeline"].as_array().unwrap();
    let rates: Vec<u64> = rows.iter().map(|row| row["completed"].as_u64().unwrap()).collect();
    assert!(rates.len() == 20 && rates.iter().all(|rate| (832..=1_251).contains(rate)), "{rates:?}");
    // All of 20 uniformly distributed numbers are in the same half once in 500,000 times.
    assert!(rates.iter().any(|rate| *rate < 980) && rates.iter().any(|rate| *rate > 1_020), "{rates:?}");
}

/// Four workers, 5 ms each: 800/s. With 16 connections, each request waits for three others. The service times have the
/// names of the embedded target's paths.
fn worker_pools_serve_as_computed(context: &Context) {
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
fn few_processes_leave_connections_hanging(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 0.0\nserves = 4\ndelay = { ms = 5.0 }";
    for threads in ["-t1", "-t2"] {
        let onrush = context.onrush().words(threads).words("-c16 -d1.001s");
        let (output, document) = simulated_document(onrush, scenario);
        let fates = ["started", "completed", "open"].map(|fate| number(&document, &format!("/requests/{fate}")));
        assert_eq!(fates, [816.0, 800.0, 16.0], "{output:?}");
        assert_eq!(number(&document, "/latency/service/max_us"), 5_000.0);
    }
}

/// One of three connections is served in 10 ms and then closed; its successor waits for the other two.
fn closing_connections_make_room_in_order(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 0.0\nserves = 1\ndelay = { ms = 10.0 }\nclose = true\nanswer = \
                    \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let onrush = context.onrush().words("-t1 -c3 -n100");
    let (output, document) = simulated_document(onrush, scenario);
    assert_eq!((output.requests(), number(&document, "/rate_per_s")), (100, 100.0), "{output:?}");
    let figures = ["min_us", "percentiles_us/50", "max_us"];
    let latencies = figures.map(|figure| number(&document, &format!("/latency/service/{figure}")));
    assert_eq!(latencies, [10_000.0, 30_000.0, 30_000.0], "{output:?}");
}

/// Means of 20,000 times are within five of their standard deviations.
fn delays_have_the_requested_distribution(context: &Context) {
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

/// Runs a command line in a scenario, and also returns its document.
pub fn simulated_document(onrush: Onrush, scenario: &str) -> (ProgramOutput, Value) {
    let scratch = Scratch::new("simulated");
    let path = scratch.path().join("r.json");
    let output = simulate(onrush.word("-o").word(&path), scenario);
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("no document: {error}: {output:?}"));
    (output, serde_json::from_str(&text).expect("it is JSON"))
}

fn limits_are_known_in_virtual_time(context: &Context) {
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

fn connection_stages_replace_probes(context: &Context) {
    let workers =
        |workers: u32, spread: &str| format!("[capacity]\nworkers = {workers}\nservice_us = 10000.0\n{spread}");
    let exponential = "spread = 'exponential'";
    let table = [
        ("c=5s:4,5s:16", workers(4, ""), "the target is at its limit (4 in flight instead of 16 gave 9.2 % less)"),
        (
            "c=5s:8,5s:16,5s:8",
            workers(4, exponential),
            "the target is at its limit (half as many in flight gave the same ",
        ),
        ("c=20s:0..16", workers(4, ""), "the target is at its limit (8 in flight instead of 15 gave the same 400/s)"),
        (
            "c=5s:8,5s:16",
            "delay = { ms = 10.0, dist = 'exp' }".to_owned(),
            "the number of requests in flight is the limit (half as many in flight gave half)",
        ),
        (
            "c=40s:16,40s:8",
            "delay = { ms = 10.0 }".to_owned(),
            "the number of requests in flight is the limit (half as many in flight gave half)",
        ),
        ("c=20s:8,20s:16", workers(11, exponential), "the target is near its limit (half as many in flight gave 3"),
        // Connections increase with time, so either may explain an increase of responses.
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

/// Following the advice gives no other number: at 100 requests per second, pauses of half a second take 50 connections.
fn advice_for_pausing_connections_converges(context: &Context) {
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
