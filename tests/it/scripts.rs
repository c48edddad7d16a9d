//! Lua scripts: their input, their decisions, and the examples of onrush.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::harness::{Context, ProgramOutput, Scratch, cases, on_terminal, target, url};
use crate::hostile::watch;
use crate::peers::{read_head, server};
use crate::recorder::RecordingServer;
use crate::simulation::simulate;

cases! {
    example_scripts_state_purpose_and_are_tested (Once);
    post_example_sends_its_form (Once);
    counter_example_varies_every_request;
    auth_example_sends_its_token;
    auth_example_ends_on_failed_login (Once);
    batch_requests_are_marked_with_once (Once);
    pipeline_example_sends_three_requests_together;
    delay_example_excludes_pauses (Once);
    addresses_example_uses_accepting_addresses;
    report_example_adds_thread_counts (Once);
    stop_example_ends_runs;
    json_example_prints_like_wrk_cmm (Once);
    csv_example_appends_a_line (Once);
    paths_example_visits_paths_by_weight (Once);
    checks_example_fails_on_wrong_responses (Once);
    arguments_follow_the_url (Once);
    script_settings_are_sent (Once);
    phases_run_in_order_and_state;
    pipelined_batches_are_counted_and_timed;
    pipelined_batches_are_timed_exactly (Once);
    large_batches_take_little_memory (Alone);
    delays_are_not_part_of_latency (Once);
    script_results_match_the_report (Once);
    responses_have_headers_trailers_and_body;
    responses_carry_their_requests_value;
    seeds_repeat_random_numbers (Once);
    printed_output_keeps_its_order (Once);
}

/// The example scripts; each is tested above.
const EXAMPLES: [&str; 12] =
    ["addresses", "auth", "checks", "counter", "csv", "delay", "json", "paths", "pipeline", "post", "report", "stop"];

fn example_scripts_state_purpose_and_are_tested(_: &Context) {
    let entries = fs::read_dir(example("post").with_file_name("")).expect("there are examples");
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let expected = EXAMPLES.map(|name| format!("{name}.lua"));
    assert_eq!(names.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    for name in EXAMPLES {
        let text = fs::read_to_string(example(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[..2].iter().all(|line| line.starts_with("-- ") && line.ends_with('.')), "{name}: {lines:?}");
        assert!(lines[3].starts_with("--   onrush ") && lines[3].contains(&format!("-s {name}.lua ")), "{name}");
        assert!(cases().iter().any(|case| case.name.starts_with(&format!("{name}_example"))), "{name}");
    }
}

fn post_example_sends_its_form(context: &Context) {
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let output = onrush.words("-t1 -c2 -n10").word(at(recorder.address(), "/form")).script(example("post")).run();
        assert_ran(&output);
        for request in recorder.requests() {
            let form = "name=Ada&city=London";
            let host = format!("Host: {}", recorder.address());
            let (length, kind) = ("Content-Length: 20", "Content-Type: application/x-www-form-urlencoded");
            assert_request(&request, "POST /form HTTP/1.1", &[&host, length, kind], form);
        }
    }
}

fn counter_example_varies_every_request(context: &Context) {
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let onrush = onrush.words("-t2 -c2 -n20").word(at(recorder.address(), "/p")).script(example("counter"));
        assert_ran(&onrush.run());
        let requests = recorder.requests();
        let unique: BTreeSet<&String> = requests.iter().collect();
        assert_eq!((requests.len(), unique.len()), (20, 20), "{requests:?}");
        // The first request of the first thread was only inspected.
        assert!(requests.iter().all(|request| !request.contains("item=1.1 ")), "{requests:?}");
        let host = format!("Host: {}", recorder.address());
        let second = requests.iter().find(|request| request.contains("item=2.1 ")).expect("the second thread runs");
        assert_request(second, "GET /p?item=2.1 HTTP/1.1", &[&host, "X-Request: 2-1"], "");
    }
}

fn auth_example_sends_its_token(context: &Context) {
    for onrush in context.both() {
        // Only with the token is the response 200 and not 401.
        let address = server(|stream| {
            let mut stream = BufReader::new(stream);
            loop {
                let head = read_head(&mut stream)?;
                if head.starts_with("POST /login ") {
                    std::io::Read::read_exact(&mut stream, &mut [0; r#"{"user":"ada"}"#.len()])?;
                }
                let answer = if head.starts_with("POST /login ") {
                    "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{\"token\": \"t0ken\"}"
                } else if head.starts_with("GET /private ") && head.contains("\r\nAuthorization: Bearer t0ken\r\n") {
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                } else {
                    "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
                };
                stream.get_mut().write_all(answer.as_bytes())?;
            }
        });
        let output = onrush.words("-t1 -c3 -n20").word(at(address, "/private")).script(example("auth")).run();
        assert_ran(&output);
        assert_eq!(output.line("Non-2xx"), None, "{output:?}");
    }
}

fn auth_example_ends_on_failed_login(context: &Context) {
    let server = target();
    for onrush in context.both() {
        let output = onrush.words("-t1 -c3 -n100").word(url(&server, "/")).script(example("auth")).run();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains("the login failed with status 404\n"), "{output:?}");
    }
}

fn batch_requests_are_marked_with_once(context: &Context) {
    let server = target();
    let script = "function request() return wrk.format() .. wrk.format() .. wrk.format() end";
    let output = context.onrush().words("--once").lua(script).word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    output.note("the first of 3 requests that the script sends at once");
}

fn pipeline_example_sends_three_requests_together(context: &Context) {
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let output = onrush.words("-t1 -c1 -n12").word(at(recorder.address(), "/")).script(example("pipeline")).run();
        assert_ran(&output);
        let firsts: Vec<_> =
            recorder.requests().iter().map(|request| request.lines().next().unwrap().to_owned()).collect();
        let batch = ["GET /bytes/100 HTTP/1.1", "GET /bytes/200 HTTP/1.1", "POST /sink HTTP/1.1"];
        assert_eq!(firsts[..6], [batch, batch].concat());
    }
}

fn delay_example_excludes_pauses(context: &Context) {
    for onrush in context.both() {
        let onrush = onrush.words("-t1 -c200 -d6s").script(example("delay"));
        let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1000.0\n");
        assert_ran(&output);
        // 200 connections pause 100 ms on average, and get a response after 1 ms: 58.95 requests each, with a standard
        // deviation of 2.2. Four deviations of the total are 125.
        assert!((11_790 - 125..=11_790 + 125).contains(&output.requests()), "{output:?}");
        assert!(output.stdout.contains("    Latency     1.00ms    0.00us   1.00ms  100.00%\n"), "{output:?}");
    }
}

fn addresses_example_uses_accepting_addresses(context: &Context) {
    for onrush in context.both() {
        let server = target();
        let url = format!("http://localhost:{}/", server.address().port());
        let output = onrush.words("-t2 -c2 -n10").word(url).script(example("addresses")).run();
        assert_ran(&output);
        // The target listens on only one of localhost's addresses.
        for thread in [1, 2] {
            let line = format!("thread {thread} goes to {}\n", server.address());
            assert!(output.stdout.contains(&line), "{output:?}");
        }
    }
}

fn report_example_adds_thread_counts(context: &Context) {
    for onrush in context.both() {
        let server = target();
        let output = onrush.words("-t2 -c2 -n100").word(url(&server, "/status/404")).script(example("report")).run();
        assert_ran(&output);
        let total: u64 = (output.stdout.lines())
            .filter_map(|line| line.trim().strip_prefix("404 came back ")?.strip_suffix(" times")?.parse::<u64>().ok())
            .sum();
        assert_eq!(total, output.requests(), "{output:?}");
        assert!(output.stdout.contains(&format!("  {total} errors: status\n")), "{output:?}");
        assert!(output.stdout.contains("\n  99.9% within "), "{output:?}");
    }
}

fn stop_example_ends_runs(context: &Context) {
    for onrush in context.both() {
        let server = target();
        // If the script does not stop the run, the test finally fails.
        let onrush = onrush.words("-t2 -c2 -d20").script(example("stop")).word(url(&server, "/")).script_args("50");
        let output = onrush.run();
        assert_ran(&output);
        assert_eq!(output.requests(), 100, "{output:?}");
        assert!(output.took.as_secs() < 20, "{output:?}");
    }
}

fn json_example_prints_like_wrk_cmm(context: &Context) {
    for onrush in [context.onrush(), context.called("wrk"), context.called("wrk-cmm")] {
        let server = target();
        let output = onrush.words("-t1 -c2 -n200 --latency").word(url(&server, "/")).script(example("json")).run();
        assert_eq!((output.code, output.line("Socket errors")), (0, None), "{output:?}");
        let (report, json) = output.stdout.split_once("\n\nJSON Output\n-----------\n\n{\n").expect("a title");
        assert!(report.lines().last().is_some_and(|line| line.starts_with("Transfer/sec:")), "{output:?}");
        let field = |name: &str| -> f64 {
            let rest = json.split(&format!("\"{name}\": ")).nth(1).unwrap_or_else(|| panic!("no {name} in {json}"));
            rest.split([',', '\n']).next().unwrap().parse().unwrap()
        };
        let (requests, us) = (field("requests"), field("duration_in_microseconds"));
        let rows = ["50", "75", "90", "99", "99.999"].map(|p| {
            let rest = json.split(&format!("\"percentile\": {p},\n\t\t\t\"latency_in_microseconds\": ")).nth(1);
            let value: u64 = rest.and_then(|rest| rest.lines().next()?.parse().ok()).expect("a whole number");
            format!("\t\t{{\n\t\t\t\"percentile\": {p},\n\t\t\t\"latency_in_microseconds\": {value}\n\t\t}}")
        });
        let expected = format!(
            "\t\"requests\": {requests},\n\t\"duration_in_microseconds\": {us:.2},\n\t\"bytes\": {},\n\
             \t\"requests_per_sec\": {:.2},\n\t\"bytes_transfer_per_sec\": {:.2},\n\t\"latency_distribution\": [\n{}\n\t]\n}}\n",
            field("bytes"),
            requests / us * 1e6,
            field("bytes") / us * 1e6,
            rows.join(",\n"),
        );
        assert_eq!(json, expected);
        assert_eq!(requests as u64, output.requests());
    }
}

fn csv_example_appends_a_line(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("csv"));
    let file = scratch.path().join("results.csv");
    let mut rows = Vec::new();
    for onrush in context.both() {
        let onrush = onrush.words("-t1 -c2 -n100").script(example("csv")).word(url(&server, "/status/500")).word(&file);
        let output = onrush.run();
        assert_ran(&output);
        rows.push(output.requests());
    }
    let text = fs::read_to_string(&file).expect("it was written");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[0][0], lines[0][8]), (3, "url", "max_us"), "{text}");
    for (line, requests) in lines[1..].iter().zip(rows) {
        let requests = requests.to_string();
        assert_eq!([line[0], line[1], line[4]], [&*url(&server, "/status/500"), &*requests, &*requests], "{text}");
        assert!(line[6].parse::<u64>().unwrap() <= line[8].parse().unwrap(), "{text}");
    }
    let output = context.onrush().words("-c2 -n20").script(example("csv")).word(url(&server, "/")).run();
    assert!(output.stdout.contains("\nurl,requests,seconds,"), "{output:?}");
}

fn paths_example_visits_paths_by_weight(context: &Context) {
    for onrush in context.both() {
        let server = target();
        let output = onrush.words("-t1 -c4 -n1000").word(url(&server, "/")).script(example("paths")).run();
        assert_ran(&output);
        // The random numbers depend only on the seed. 100 are expected, with a standard deviation of 9.5: 62 to 138 is
        // four deviations.
        let missing = output.number_before("\nRequests/sec");
        assert!(output.line("Non-2xx").is_some() && (62.0..=138.0).contains(&missing), "{missing}: {output:?}");
    }
}

fn checks_example_fails_on_wrong_responses(context: &Context) {
    for [path, code, last, log] in [
        ["/", "0", "0 of ", ""],
        ["/status/404", "1", "", "expected a greeting, got status 404\n"],
        ["/bytes/5", "1", "", "expected a greeting, got "],
    ] {
        let server = target();
        let output = context.onrush().words("-t1 -c2 -n20").word(url(&server, path)).script(example("checks")).run();
        assert_eq!(output.code.to_string(), code, "{output:?}");
        output.assert_standard();
        let verdict = output.line(last).filter(|line| line.ends_with(" responses were wrong"));
        let verdict = verdict.or_else(|| output.stdout.lines().last()).expect("a verdict");
        assert!(verdict.starts_with(last) && verdict.ends_with(" responses were wrong"), "{output:?}");
        assert!(output.stderr.contains(log), "{output:?}");
    }
}

fn arguments_follow_the_url(context: &Context) {
    let script = "function init(args) print(#args, args[0], args[1], args[2], args[3], arg) end";
    for onrush in context.both() {
        let server = target();
        let url = url(&server, "/");
        let output = onrush.words("-t1 -c1 -n3").lua(script).word(&url).script_args("-x --foo=1 bar").run();
        assert_ran(&output);
        let line = format!("3\t{url}\t-x\t--foo=1\tbar\tnil\nRunning ");
        assert!(output.stdout.starts_with(&line), "{output:?}");
    }
}

fn script_settings_are_sent(context: &Context) {
    let script = r#"
        wrk.method = "POST"
        wrk.body = "foo=bar&baz=quux"
        wrk.headers["Content-Type"] = "text/x"
        function init(args)
            assert(wrk.headers.Host and wrk.request == nil)
            wrk.headers["X-Num"] = 7
        end"#;
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let output = onrush.words("-t1 -c1 -n3").lua(script).word(at(recorder.address(), "/p")).run();
        assert_ran(&output);
        let host = format!("Host: {}", recorder.address());
        let fields = [&host, "Content-Type: text/x", "X-Num: 7", "Content-Length: 16"];
        assert_request(&recorder.requests()[0], "POST /p HTTP/1.1", &fields, "foo=bar&baz=quux");
    }
}

fn phases_run_in_order_and_state(context: &Context) {
    let script = r#"
        print("load", wrk.thread)
        local made = 0
        function setup(thread)
            made = made + 1
            threads = threads or {}
            threads[made] = thread
            thread:set("id", made)
            thread:set("list", { "a", "b" })
            thread:set("flag", true)
            print("setup " .. made)
        end
        function init(args)
            count = 0
            print("init " .. id, list[2], flag, wrk.request, type(wrk.thread))
        end
        function request()
            count = count + 1
            return wrk.format(nil, "/seq" .. id .. "." .. count)
        end
        function done()
            print("done", count, threads[1]:get("count") > 1, threads[2]:get("count") > 0)
        end"#;
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let output = onrush.words("-t2 -c2 -n10").lua(script).word(at(recorder.address(), "/")).run();
        assert_ran(&output);
        let before = output.stdout.split("Running").next().unwrap();
        let expected = "load\tnil\nload\tnil\nsetup 1\ninit 1\tb\ttrue\tnil\tuserdata\n\
            load\tnil\nsetup 2\ninit 2\tb\ttrue\tnil\tuserdata\n";
        assert_eq!(before, expected);
        assert!(output.stdout.ends_with("done\tnil\ttrue\ttrue\n"), "{output:?}");
        let paths: BTreeSet<_> =
            recorder.requests().iter().map(|request| request.split(' ').nth(1).unwrap().to_owned()).collect();
        assert!(paths.contains("/seq1.2") && paths.contains("/seq2.1") && !paths.contains("/seq1.1"), "{paths:?}");
    }
}

/// Sends three requests at once, and prints the times of the responses.
const BATCH: &str = r#"
    function init() batch = wrk.format():rep(3) end
    function request() return batch end
    function done(_, latency)
        print("us", latency.min, latency:percentile(50), latency.max)
    end"#;

/// The printed times, in milliseconds.
fn batch_times(output: &ProgramOutput) -> Vec<f64> {
    let words = output.line("us").expect("the line of done").split('\t').skip(1);
    words.map(|word| word.parse::<f64>().unwrap() / 1e3).collect()
}

fn pipelined_batches_are_counted_and_timed(context: &Context) {
    for onrush in context.both() {
        let is_compat = onrush.is_compat();
        let server = target();
        let output = onrush.words("-t1 -c1 -n9").lua(BATCH).word(url(&server, "/delay/20")).run();
        assert_ran(&output);
        let times = batch_times(&output);
        // In wrk mode, the batch is timed; otherwise each response, from the first byte of the batch on.
        let least = if is_compat { [60.0, 60.0, 60.0] } else { [20.0, 40.0, 60.0] };
        assert!(times.iter().zip(least).all(|(ms, least)| *ms >= least), "{output:?}");
    }
}

/// The second half of each response arrives half a millisecond after the first, followed by the next response.
fn pipelined_batches_are_timed_exactly(context: &Context) {
    let scenario = "connect_us = 0.0\nlatency_us = 1000.0\nsplit = 26\nsplit_pause_us = 500.0\n";
    for (onrush, expected) in context.both().into_iter().zip([[1.5, 2.0, 2.5], [2.5, 2.5, 2.5]]) {
        let output = simulate(onrush.words("-t1 -c1 -n9").lua(BATCH), scenario);
        let times = batch_times(&output);
        assert!(times.iter().zip(expected).all(|(ms, expected)| (ms - expected).abs() < 0.001), "{times:?}");
    }
}

/// The server reads no more than the length of the first request, so most of the batch is never sent.
fn large_batches_take_little_memory(context: &Context) {
    let equal = "function init() batch = wrk.format():rep(500000) end";
    let different = r#"function init()
        local requests = {}
        for i = 1, 300000 do requests[i] = wrk.format("GET", "/" .. i) end
        batch = table.concat(requests)
    end"#;
    // With the script and a test build of the program, peak memory is 119 and 167 MB. With a record per request, it was
    // more than 217 and 210 MB.
    for (init, most_kib) in [(equal, 150_000), (different, 195_000)] {
        let address = server(|stream| {
            let mut stream = BufReader::new(stream);
            read_head(&mut stream)?;
            std::thread::sleep(std::time::Duration::from_secs(10));
            Ok(())
        });
        let script = format!("{init} function request() return batch end");
        let onrush =
            context.onrush().words("-t1 -c1 -d2s --io").word(context.backend).lua(&script).word(at(address, "/"));
        let (peak_kib, output) = watch(onrush.spawn());
        assert!((1..most_kib).contains(&peak_kib), "{peak_kib} KiB: {output:?}");
    }
}

fn delays_are_not_part_of_latency(context: &Context) {
    let script = "function delay() return 99.9 end";
    for onrush in context.both() {
        let is_compat = onrush.is_compat();
        let onrush = onrush.words("-t1 -c2 -d10s").lua(script);
        let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1000.0\n");
        assert_ran(&output);
        // Fractions of a millisecond are truncated, and the first request is also delayed.
        assert!((198..=200).contains(&output.requests()), "{is_compat}: {output:?}");
        assert!(output.stdout.contains("    Latency     1.00ms    0.00us   1.00ms  100.00%\n"), "{output:?}");
    }
    let server = target();
    let output = context.onrush().words("-t1 -c2 -n4").lua(script).word(url(&server, "/")).run();
    assert_ran(&output);
    assert!(output.took.as_millis() >= 2 * 99, "each connection pauses twice: {output:?}");
}

fn script_results_match_the_report(context: &Context) {
    let script = r#"
        function done(summary, latency, requests)
            local sum, values = 0, #latency
            for i = 1, values do
                local value, count = latency(i)
                assert(value >= latency.min and value <= latency.max)
                sum = sum + count
            end
            local errors = summary.errors
            print("sums", summary.duration, summary.requests, summary.bytes, sum)
            print("errors", errors.connect, errors.read, errors.write, errors.status, errors.timeout, #summary.ledger)
            local zero, distinct = latency(0)
            print("odd", zero, distinct == values, latency.bogus, requests.bogus)
            print("ends", latency:percentile(0) == latency.min, latency:percentile(100) == latency.max)
            print("rate", requests.mean > 0 and requests.max >= requests.mean and requests.stdev >= 0)
        end"#;
    for onrush in context.both() {
        let is_compat = onrush.is_compat();
        let server = target();
        let output = onrush.words("-t1 -c2 -n200").lua(script).word(url(&server, "/bytes/100")).run();
        assert_ran(&output);
        let sums: Vec<u64> = output
            .line("sums")
            .unwrap()
            .split('\t')
            .skip(1)
            .map(|word| word.parse().expect("a whole number"))
            .collect();
        let [duration, requests, bytes, sum] = sums[..] else { panic!("{output:?}") };
        assert!((1..=output.took.as_micros() as u64).contains(&duration), "{output:?}");
        assert_eq!(requests, output.requests());
        assert!(bytes >= 100 * requests, "{output:?}");
        assert!(if is_compat { sum >= requests } else { sum == requests }, "{output:?}");
        for line in ["errors\t0\t0\t0\t0\t0\t0", "odd\t0\ttrue\tbogus\tbogus", "ends\ttrue\ttrue", "rate\ttrue"] {
            assert!(output.stdout.lines().any(|printed| printed == line), "{line}: {output:?}");
        }
    }
}

fn responses_have_headers_trailers_and_body(context: &Context) {
    let script = r#"
        function response(status, headers, body)
            local names = {}
            for name, value in pairs(headers) do names[#names + 1] = name .. "=" .. value end
            table.sort(names)
            first = first or status .. " " .. table.concat(names, ";") .. " [" .. body .. "]"
        end
        function setup(thread) one = thread end
        function done() print(one:get("first")) end"#;
    let answer = "HTTP/1.1 202 Fine\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\nX-None:\r\nx-lower: L\r\n\r\n\
        5\r\nhello\r\n7;a=b\r\n, world\r\n0\r\nX-Trail: t\r\n\r\n";
    let expected = "202 Transfer-Encoding=chunked;X-A=2;X-None=;X-Trail=t;x-lower=L [hello, world]\n";
    for onrush in context.both() {
        let address = server(move |stream| {
            let mut stream = BufReader::new(stream);
            loop {
                read_head(&mut stream)?;
                // Sent in two pieces, the first of which ends inside the trailers.
                let (first, second) = answer.split_at(answer.len() - 8);
                stream.get_mut().write_all(first.as_bytes())?;
                std::thread::sleep(std::time::Duration::from_millis(5));
                stream.get_mut().write_all(second.as_bytes())?;
            }
        });
        let output = onrush.words("-t1 -c1 -n5").lua(script).word(at(address, "/")).run();
        assert_ran(&output);
        assert!(output.stdout.ends_with(expected), "{output:?}");
    }
}

fn responses_carry_their_requests_value(context: &Context) {
    let script = "
        local n, threads = 0, {}
        function setup(thread) threads[#threads + 1] = thread end
        function init() right, wrong = 0, 0 end
        function request()
            n = n + 1
            local path = '/echo?' .. n
            return wrk.format('GET', path):rep(n % 3 + 1), { path .. ' ' }
        end
        function response(status, headers, body, latency, value)
            if value == nil and latency == nil then
                nothing = (nothing or 0) + 1
            elseif body:find(value[1], 1, true) then
                right = right + 1
            else
                wrong = wrong + 1
            end
        end
        function done()
            for _, thread in ipairs(threads) do print(thread:get('right') > 0, thread:get('wrong'), thread:get('nothing')) end
        end";
    let server = target();
    for words in ["", "--http2 --streams 10", "-R3000"] {
        let onrush = context.onrush().words("-t2 -c8 -n2000").words(words).lua(script);
        let output = onrush.word(url(&server, "/")).run();
        assert_ran(&output);
        assert!(output.stdout.ends_with("true\t0\tnil\ntrue\t0\tnil\n"), "{words}: {output:?}");
    }
    let output = context.called("wrk").words("-t1 -c1 -n20").lua(script).word(url(&server, "/")).run();
    assert!(output.stdout.ends_with("false\t0\t20\n"), "{output:?}");
}

fn seeds_repeat_random_numbers(context: &Context) {
    let script = "function init() print('drawn', wrk.thread.id, math.random(1e9)) end";
    let server = target();
    let drawn = |words: &str| {
        let output = context.onrush().words("-t2 -c2 -n4").words(words).lua(script).word(url(&server, "/")).run();
        assert_ran(&output);
        output.stdout.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let first = drawn("--seed 7");
    assert_eq!(first, drawn("--seed 7"));
    assert_ne!(first, drawn("--seed 8"));
    assert_eq!(drawn("--seed 1"), drawn(""));
    let number = |line: &String| line.split('\t').nth(2).map(str::to_owned);
    assert_ne!(number(&first[0]), number(&first[1]), "each thread draws its own");
}

fn printed_output_keeps_its_order(context: &Context) {
    let script = r#"
        local ffi = require("ffi")
        ffi.cdef("int printf(const char *text, ...);")
        local function say(what)
            print(what .. " print")
            io.write(what, " write\n")
            ffi.C.printf("%s printf\n", what)
            io.stdout:write(what, " stdout\n")
        end
        function init() io.stdout:setvbuf("full") say("init") end
        function done() say("done") end"#;
    let said = |what: &str| ["print", "write", "printf", "stdout"].map(|how| format!("{what} {how}\n")).concat();
    let scratch = Scratch::new("order");
    let file = scratch.file("order.lua", script);
    for is_terminal in [false, true] {
        for onrush in context.both() {
            let server = target();
            let onrush = onrush.words("-t1 -c1 -n2").script(&file).word(url(&server, "/"));
            let stdout = if is_terminal {
                let onrush = onrush.words("--io").word(context.backend);
                let (shown, output) = on_terminal(onrush, |command, terminal| _ = command.stdout(terminal));
                assert_eq!(output.code, 0, "{output:?}");
                shown.replace('\r', "")
            } else {
                onrush.run().stdout
            };
            assert!(stdout.starts_with(&(said("init") + "Running ")), "{is_terminal}: {stdout}");
            assert!(stdout.ends_with(&said("done")), "{is_terminal}: {stdout}");
            assert_eq!(stdout.matches("print").count(), 4, "{stdout}");
        }
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/scripts/{name}.lua"))
}

/// URL of a path at an address.
fn at(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

/// Checks that there is a report, that some requests were answered, and that the only failures are statuses.
#[track_caller]
pub fn assert_ran(output: &ProgramOutput) {
    assert_eq!(output.code, 0, "{output:?}");
    output.assert_standard();
    assert!(output.requests() > 0, "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
}

/// Checks that a request consists of this line, these fields in any order, and this body.
#[track_caller]
fn assert_request(request: &str, line: &str, fields: &[&str], body: &str) {
    let (head, sent_body) = request.split_once("\r\n\r\n").expect("a head ends with an empty line");
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some(line));
    assert_eq!(lines.collect::<BTreeSet<_>>(), fields.iter().copied().collect());
    assert_eq!(sent_body, body);
}
