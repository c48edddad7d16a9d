//! Under its own name, onrush corrects wrk's mistakes: the command lines of `compat`, with the corrected outcome.

use crate::compat::{DURATIONS, interrupted};
use crate::harness::{Context, Onrush, ProgramOutput, Served, cases, exchange, fetch_target_counts, target, url};
use crate::recorder::RecordingServer;
use crate::report::PLAIN_BYTES;
use crate::simulation::simulate;

cases! {
    plain_runs_print_possible_latencies;
    every_latency_option_adds_percentiles (Once);
    tables_show_delay_and_thread_rate;
    exact_delays_are_measured_exactly (Once);
    missing_arguments_print_usage_on_stderr (Once);
    help_and_version_succeed;
    schemes_are_optional (Once);
    bad_urls_are_named_in_one_line (Once);
    surplus_threads_are_refused_only_if_requested (Once);
    bad_numbers_name_option_and_value (Once);
    milliseconds_and_fractions_are_times (Once);
    refused_command_lines_open_no_connection (Once);
    durations_round_like_wrk_and_interrupts_succeed (Once);
    unreachable_is_code_2_and_unknown_1 (Once);
    statuses_from_400_count_but_302_does_not;
    late_responses_count_with_latency (Once);
    announced_closes_are_no_error;
    http_1_0_closes_by_default;
    unannounced_closes_are_read_errors;
    resets_and_garbage_are_rare_with_code_5;
    bodies_may_end_with_the_connection;
    chunked_bytes_include_framing;
    user_headers_and_url_parts_are_sent;
    descriptor_shortage_is_reported_with_remedy;
    no_unrequested_connection_is_made;
    single_requests_have_a_rate (Once);
}

/// A short run of one thread and two connections.
fn short(context: &Context, url: &str) -> ProgramOutput {
    let output = context.onrush().words("-t1 -c2 -n100").word(url).run();
    assert_eq!(output.code, 0, "{output:?}");
    output
}

/// Runs [`short`], and checks that there is no complaint.
fn good(context: &Context, url: &str) -> ProgramOutput {
    let output = short(context, url);
    assert_good(&output);
    output
}

fn assert_good(output: &ProgramOutput) {
    assert_eq!(output.code, 0, "{output:?}");
    output.assert_nothing_but_percentiles();
    assert_eq!(output.stderr, "", "{output:?}");
}

/// Checks that a command line was refused with one line and no other output, and returns the line.
fn refused(program: Onrush) -> String {
    let output = program.run_plain();
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    output.stderr
}

fn plain_runs_print_possible_latencies(context: &Context) {
    let server = target();
    let output = context.onrush().words("-t1 -c2 -d1s").word(url(&server, "/delay/5")).run();
    assert_good(&output);
    assert!(
        output
            .stdout
            .starts_with(&format!("Running 1s test @ http://{}/delay/5\n  1 threads and 2 ", server.address()))
    );
    output.assert_bytes_per_request(PLAIN_BYTES);
    // Two connections have at most two requests in flight on average. wrk's own figures break this law.
    let open = output.latency_us().mean / 1e6 * output.requests_per_s();
    assert!((0.1..=2.02).contains(&open), "{open} requests open on average: {output:?}");
}

fn every_latency_option_adds_percentiles(context: &Context) {
    let server = target();
    for spelling in ["--latency", "-L", "--lat"] {
        let output = context.onrush().words("-t1 -c2 -n1000").word(spelling).word(url(&server, "/")).run();
        assert_eq!(output.code, 0, "{output:?}");
        output.assert_native_percentiles();
    }
}

fn tables_show_delay_and_thread_rate(context: &Context) {
    let server = target();
    let output = context.onrush().words("-t2 -c10 -n100").word(url(&server, "/delay/20")).run();
    assert_eq!((output.code, output.requests()), (0, 100), "{output:?}");
    // Ten connections get at most one response per 20 ms each.
    assert!(output.latency_us().mean >= 20e3 && output.requests_per_s() <= 500.0, "{output:?}");
    assert!(output.thread_rate().mean > 0.0, "{output:?}");
}

/// Virtual time guarantees bounds that a busy machine would exceed.
fn exact_delays_are_measured_exactly(context: &Context) {
    let output = simulate(context.onrush().words("-t2 -c10 -d2s"), "latency_us = 20000.0");
    assert_eq!(output.requests(), 990, "after 100 µs for the connect, 99 responses fit");
    let latency = output.latency_us();
    assert_eq!((latency.mean, latency.stdev, latency.max), (20e3, 0.0, 20e3), "{output:?}");
    assert!((240.0..=260.0).contains(&output.thread_rate().mean), "{output:?}");
}

fn missing_arguments_print_usage_on_stderr(context: &Context) {
    let output = context.onrush().run_plain();
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.starts_with("Usage: onrush [options] <url>\n"), "{output:?}");
}

fn help_and_version_succeed(context: &Context) {
    for spelling in ["-h", "--help"] {
        let output = context.onrush().word(spelling).run_plain();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        assert!(output.stdout.contains("Usage: onrush [options] <url>\n"), "{output:?}");
    }
    let version = format!("onrush {} [{}]", env!("CARGO_PKG_VERSION"), context.backend);
    for spelling in ["-v", "--version", "--ver"] {
        let output = context.onrush().word("--io").word(context.backend).word(spelling).run_plain();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        assert_eq!(output.stdout, format!("{version}\n"));
    }
    let server = target();
    let program = context.onrush().words("-v -t1 -c1 -n9 --io").word(context.backend);
    let output = program.word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    output.assert_nothing_but_percentiles();
    assert!(output.stderr.starts_with(&format!("{version}: ")), "the line says why: {output:?}");
}

fn schemes_are_optional(context: &Context) {
    let server = target();
    for bare in [server.address().to_string(), format!("{}/", server.address())] {
        let output = context.onrush().words("-c1 -n1").word(&bare).run();
        assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
        assert!(output.stdout.starts_with(&format!("Running 1 requests test @ {bare}\n")), "{output:?}");
    }
    let stderr = refused(context.onrush().word("foo.invalid"));
    assert!(stderr.starts_with("onrush: cannot resolve foo.invalid: "), "{stderr}");
    let stderr = refused(context.onrush().word("http://h_x.invalid/"));
    assert!(stderr.starts_with("onrush: cannot resolve h_x.invalid: "), "{stderr}");
}

fn bad_urls_are_named_in_one_line(context: &Context) {
    for bad in ["http:///x", "http://h:70000/", "http://h:/", "http://h/a b", "ftp://h/"] {
        let stderr = refused(context.onrush().word(bad));
        assert!(stderr.starts_with(&format!("onrush: {bad:?} is not a URL: ")), "{stderr}");
    }
}

fn surplus_threads_are_refused_only_if_requested(context: &Context) {
    let stderr = refused(context.onrush().words("-t2 -c1 http://127.0.0.1/"));
    assert!(stderr.starts_with("onrush: --threads \"2\": at most 1, the number of connections"), "{stderr}");
    let server = target();
    let output = context.onrush().words("-c1 -n1").word(url(&server, "/")).run();
    assert!(output.stdout.contains("\n  1 threads and 1 connections\n"), "{output:?}");
}

fn bad_numbers_name_option_and_value(context: &Context) {
    let table = [
        ("-d", "1x", "duration"),
        ("-d", "0", "duration"),
        ("-d", "1h30m", "duration"),
        ("-t", "0", "threads"),
        ("-c", "0", "connections"),
        ("-c", "1kb", "connections"),
        ("-c", "-1", "connections"),
        ("-n", "1.5", "requests"),
        ("--timeout", "5k", "timeout"),
    ];
    for (option, value, name) in table {
        let stderr = refused(context.onrush().word(option).word(value).word("http://127.0.0.1/"));
        assert!(stderr.starts_with(&format!("onrush: --{name} \"{value}\": ")), "{stderr}");
    }
}

fn milliseconds_and_fractions_are_times(context: &Context) {
    for (typed, elapsed) in [("300ms", "300.00ms"), ("0.4s", "400.00ms"), ("0.005m", "300.00ms")] {
        let output = simulate(context.onrush().words("-t1 -c1 -d").word(typed), "");
        assert_eq!((output.code, output.elapsed()), (0, elapsed), "{typed}: {output:?}");
    }
}

fn refused_command_lines_open_no_connection(context: &Context) {
    let server = target();
    for words in ["-t2 -c1", "-d 1x", "-t 0", "-c 1kb", "--bogus", "--body @/nonexistent"] {
        refused(context.onrush().word(url(&server, "/")).words(words));
    }
    assert_eq!(fetch_target_counts(server.address()).connections, 0);
}

fn durations_round_like_wrk_and_interrupts_succeed(context: &Context) {
    for (typed, shown) in DURATIONS {
        let output = interrupted(context.onrush().words("-t1 -c1 -d").word(typed));
        assert_eq!(output.code, 0, "{typed}: {output:?}");
        output.assert_standard();
        assert!(output.stdout.starts_with(&format!("Running {shown} test @ ")), "{typed}: {output:?}");
        output.note("note: interrupted after ");
    }
}

fn unreachable_is_code_2_and_unknown_1(context: &Context) {
    let output = context.onrush().words("-t1 -c1 -d1s http://127.0.0.1:1/").run_plain();
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.starts_with("onrush: unable to connect to 127.0.0.1:1: connection refused"), "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert!(!output.stdout.contains("Requests/sec"), "{output:?}");

    let stderr = refused(context.onrush().words("-t1 -c1 http://nosuch.invalid/"));
    assert!(stderr.starts_with("onrush: cannot resolve nosuch.invalid: "), "{stderr}");
}

fn statuses_from_400_count_but_302_does_not(context: &Context) {
    let server = target();
    for status in [404, 600] {
        let output = short(context, &url(&server, &format!("/status/{status}")));
        output.assert_all_counted_as_errors();
        // The note, or the verdict if printed.
        let said = format!("{}{}", output.stderr, output.verdict);
        assert!(said.contains(&format!("responses were {status}")), "{output:?}");
    }
    let output = short(context, &url(&server, "/status/302"));
    output.assert_standard();
    assert_eq!((output.line("Non-2xx"), output.line("Status")), (None, Some("Status 302: 100")), "{output:?}");
    assert!(output.stderr.contains(" responses were 302 to /: you measured the redirect\n"), "{output:?}");
}

fn late_responses_count_with_latency(context: &Context) {
    let onrush = context.onrush().words("-t1 -c2 -d3 --timeout 1");
    let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1200000.0");
    assert_eq!(output.code, 0, "{output:?}");
    let latency = output.latency_us();
    assert_eq!((latency.mean, latency.max), (1.2e6, 1.2e6), "{output:?}");
    assert_eq!(output.line("4 requests"), Some("4 requests in 3.00s, 208.00B read"), "{output:?}");
    let errors = output.line("Socket errors");
    assert_eq!(errors, Some("Socket errors: connect 0, read 0, write 0, timeout 4"), "{output:?}");
}

fn announced_closes_are_no_error(context: &Context) {
    let server = target();
    let output = good(context, &url(&server, "/close"));
    assert_a_connection_for_each_request(&output, fetch_target_counts(server.address()).connections);
}

fn http_1_0_closes_by_default(context: &Context) {
    let server = target();
    let output = good(context, &url(&server, "/http10"));
    assert_a_connection_for_each_request(&output, fetch_target_counts(server.address()).connections);

    let server = target();
    let output = good(context, &url(&server, "/http10?keep-alive"));
    assert!(output.requests() > 10, "{output:?}");
    assert!(fetch_target_counts(server.address()).connections <= 2);
}

/// One connection per request, and up to two open and one pending at the end.
fn assert_a_connection_for_each_request(output: &ProgramOutput, connections: u64) {
    let requests = output.requests();
    assert!(requests > 10, "{output:?}");
    assert!((requests..=requests + 3).contains(&connections), "{connections} connections: {output:?}");
}

fn unannounced_closes_are_read_errors(context: &Context) {
    let server = target();
    let output = short(context, &url(&server, "/closenohdr"));
    output.assert_standard();
    assert!(output.requests() > 10, "{output:?}");
    let errors = output.socket_errors("read") + output.socket_errors("write");
    assert_eq!(output.requests() + errors, 100, "{output:?}");
    assert!(output.requests().abs_diff(errors) <= 2, "{output:?}");
    assert!(output.stderr.contains(" × closed by the server before a response began"), "{output:?}");
}

/// The waits between attempts double from 1 ms, plus or minus a quarter.
fn resets_and_garbage_are_rare_with_code_5(context: &Context) {
    let server = target();
    // One of two connections fails at least seven times, and waits six times: 63 ms. More garbage would end the run.
    for (path, requests, waits_ms) in [("/reset", 14, 63.0), ("/garbage", 4, 1.0)] {
        let output = context.onrush().words("-t1 -c2").word(format!("-n{requests}")).word(url(&server, path)).run();
        assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
        output.assert_standard();
        assert_eq!(output.socket_errors("read"), requests, "{output:?}");
        assert!(output.elapsed_ms() >= 0.75 * waits_ms, "{output:?}");
        let cause = if path == "/reset" { "(ECONNRESET)" } else { r#"      received: "\x00\xffthis is not HTTP\x0d"# };
        assert!(output.stderr.contains(cause), "{output:?}");
    }
}

fn bodies_may_end_with_the_connection(context: &Context) {
    let server = target();
    let output = good(context, &url(&server, "/eof"));
    assert_a_connection_for_each_request(&output, fetch_target_counts(server.address()).connections);
}

fn chunked_bytes_include_framing(context: &Context) {
    let server = target();
    let request = "GET /chunked/12 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let answer = exchange(server.address(), request).replace("Connection: close\r\n", "");
    good(context, &url(&server, "/chunked/12")).assert_bytes_per_request(answer.len() as u64);

    // A number of bytes this small is printed as a whole number.
    let output = context.onrush().words("-c1 -n5").word(url(&server, "/chunked/12")).run();
    let expected = format!(", {}.00B read\n", 5 * answer.len());
    assert!(output.stdout.contains(&expected), "no {expected:?} in {output:?}");
}

fn user_headers_and_url_parts_are_sent(context: &Context) {
    let server = RecordingServer::start("127.0.0.1");
    let mut program = context.onrush().words("-t1 -c1 -n9");
    for header in ["Host: h.example", "A: b: c", "NoSpace:x", "Dup: 1", "Dup: 2"] {
        program = program.word("-H").word(header);
    }
    let output = program.word(format!("http://{}/p?q=1#frag", server.address())).run();
    assert_eq!(output.code, 0, "{output:?}");
    output.assert_bytes_per_request(51);
    let expected = "GET /p?q=1 HTTP/1.1\r\nHost: h.example\r\nA: b: c\r\nNoSpace: x\r\nDup: 1\r\nDup: 2\r\n\r\n";
    let requests = server.requests();
    assert!(requests.len() == 9 && requests.iter().all(|request| request == expected), "{:?}", requests.first());

    let server = RecordingServer::start("127.0.0.1");
    let address = server.address();
    let output = context.onrush().words("-c1 -n1").word(format!("http://u:p@{address}?x=1")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let expected = format!("GET /?x=1 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic dTpw\r\n\r\n");
    assert_eq!(server.requests(), [expected]);
}

fn descriptor_shortage_is_reported_with_remedy(context: &Context) {
    let server = Served::start();
    let program = context.limited("-n 64").words("-t1 -c100 -d1s");
    let output = program.word(format!("http://{}/delay/50", server.address)).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.requests() > 0, "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
    // The limit is 64: two are for the thread and 32 for everything else.
    assert_eq!(fetch_target_counts(server.address).connections, 30, "{output:?}");
    let expected = "note: running with 30 of 100 connections: the limit is 64 open files, but 134 are needed; 'sudo \
                    prlimit --pid $$ --nofile=134' raises the limit";
    assert_eq!(output.note("open files"), expected);
    assert_eq!(output.stdout.lines().nth(1), Some("  1 threads and 30 connections of the 100 asked for"), "{output:?}");
    assert_eq!(output.stderr.matches("connections").count(), 1, "{output:?}");
    assert!(!output.of_the_machine.contains("100 connections"), "{output:?}");
    // With a limit this low, there are too few even for the threads themselves.
    let output = context.limited("-n 12").words("-t8 -c8 -d1s").word(format!("http://{}/", server.address)).run();
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
    let raise = "'sudo prlimit --pid $$ --nofile=56' raises the limit";
    assert_eq!(
        output.stderr,
        format!(
            "note: the limit is 12 open files, but 56 are needed; {raise}\nonrush: cannot set up a thread: Too many \
             open files; the run needs 56 open files: {raise}\n"
        )
    );
    let output = context.limited("-n 8").words("serve --threads 4 --addr 127.0.0.1:0").run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("raise the limit on open files with 'ulimit -n', or use fewer --threads");
    // The shortage influences the measurement, and is printed even without other notes. With --quiet, only the report
    // contains it.
    for (silence, said) in [("--quiet", ""), ("--notes=off", expected)] {
        let program = context.limited("-n 64").words("-t1 -c100 -n100").word(silence);
        let output = program.word(format!("http://{}/delay/50", server.address)).run_plain();
        assert_eq!((output.code, output.stderr.trim_end()), (0, said), "{output:?}");
        assert!(output.stdout.contains(" 30 connections of the 100 asked for\n"), "{output:?}");
    }
    // Without a report, only the cause is printed.
    let output =
        context.limited("-n 5").words("-t2 -c100 -d1s").word(format!("http://{}/", server.address)).run_plain();
    let raise = "'sudo prlimit --pid $$ --nofile=136' raises the limit";
    let expected =
        format!("note: the limit is 5 open files, but 136 are needed; {raise}\nonrush: cannot set up a thread: ");
    assert!(output.stderr.starts_with(&expected) && output.stderr.lines().count() == 2, "{output:?}");
}

fn no_unrequested_connection_is_made(context: &Context) {
    let server = target();
    let output = context.onrush().words("-t1 -c3 -n3").word(url(&server, "/delay/200")).run();
    assert_eq!((output.code, output.requests()), (0, 3), "{output:?}");
    let counts = fetch_target_counts(server.address());
    assert_eq!((counts.connections, counts.requests), (3, 3));
}

fn single_requests_have_a_rate(context: &Context) {
    let server = target();
    let output = context.onrush().words("-n1 -t2 -c2").word(url(&server, "/")).run();
    let row = output.stdout.lines().find(|line| line.contains("Req/Sec")).expect("the row is there");
    let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
    assert_eq!((cells.len(), cells[1], cells[3]), (4, "0.00", "100.00%"), "{row}");
    assert!(cells[0] == cells[2] && cells[0] != "0.00", "{row}");
}
