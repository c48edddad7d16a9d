//! Called as wrk, onrush meets the expectations of wrk's users, except for useless ones. Each test consists of a
//! command line of wrk, the behaviour of the server, and the expected output.

use rustix::process::Signal;

use crate::harness::{
    Context, Onrush, ProgramOutput, Scratch, Served, cases, exchange, fetch_target_counts, finish, signal, target, url,
    wait_until,
};
use crate::recorder::RecordingServer;
use crate::report::PLAIN_BYTES;
use crate::simulation::simulate;

cases! {
    plain_runs_print_exactly_eight_lines;
    links_and_options_select_wrk_mode (Once);
    every_latency_option_adds_four_percentiles (Once);
    tables_show_delay_and_thread_rate;
    exact_delays_are_measured_exactly (Once);
    missing_urls_print_usage_with_code_1 (Once);
    versions_are_printed_before_the_run;
    bad_urls_are_named_above_the_usage (Once);
    hosts_may_contain_underscores (Once);
    fewer_connections_than_threads_are_refused (Once);
    numbers_that_wrk_refuses_are_refused_with_a_reason (Once);
    misused_options_print_getopt_messages (Once);
    posix_mode_ends_options_at_first_word (Once);
    refused_command_lines_open_no_connection (Once);
    durations_round_like_wrk_and_interrupts_succeed (Once);
    unreachable_targets_print_wrks_message_only (Once);
    statuses_from_400_count_but_302_does_not;
    late_responses_count_without_latency (Once);
    announced_closes_are_no_error;
    http_1_0_closes_by_default;
    unannounced_closes_are_read_errors;
    resets_and_garbage_are_bounded_read_errors;
    bodies_may_end_with_the_connection;
    chunked_bytes_include_framing;
    user_headers_and_url_parts_are_sent;
    descriptor_shortage_costs_only_connections (Once);
    exactly_one_extra_connection_probes_the_target;
}

/// A short run of one thread and two connections.
fn short(context: &Context, url: &str) -> ProgramOutput {
    let output = context.called("wrk").words("-t1 -c2 -n100").word(url).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output
}

/// Checks that a command line was refused in the way in which wrk refuses every mistake, and returns standard error.
fn refused(program: Onrush) -> String {
    let output = program.run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stdout.starts_with("Usage: wrk <options> <url>\n"), "{output:?}");
    output.stderr
}

fn plain_runs_print_exactly_eight_lines(context: &Context) {
    let server = target();
    let output = context.called("wrk").words("-t1 -c2 -d1").word(url(&server, "/delay/5")).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output.assert_nothing_but_standard();
    assert!(
        output
            .stdout
            .starts_with(&format!("Running 1s test @ http://{}/delay/5\n  1 threads and 2 ", server.address()))
    );
    output.assert_bytes_per_request(PLAIN_BYTES);
}

fn links_and_options_select_wrk_mode(context: &Context) {
    let server = target();
    let scratch = Scratch::new("link");
    let link = scratch.link("wrk");
    let ways = || [context.called_at(&link), context.onrush().compat()];
    for program in ways() {
        let output = program.words("-t1 -c2 -n100").word(url(&server, "/")).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        output.assert_nothing_but_standard();
    }
    for program in ways() {
        assert_eq!(refused(program.word("foo")), "invalid URL: foo\n");
    }
}

fn every_latency_option_adds_four_percentiles(context: &Context) {
    let server = target();
    for spelling in ["--latency", "-L", "--lat"] {
        let output = context.called("wrk").words("-t1 -c2 -n100").word(spelling).word(url(&server, "/")).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        output.assert_percentiles();
    }
}

fn tables_show_delay_and_thread_rate(context: &Context) {
    let server = target();
    let output = context.called("wrk").words("-t2 -c10 -n100").word(url(&server, "/delay/20")).run();
    assert_eq!((output.code, output.requests()), (0, 100), "{output:?}");
    let rate = output.requests_per_s();
    // Ten connections get at most one response per 20 ms each, and each thread has half of the connections.
    assert!(output.latency_us().mean >= 20e3 && rate <= 500.0, "{output:?}");
    assert!(output.thread_rate().mean > 0.0, "{output:?}");
}

/// Virtual time guarantees bounds that a busy machine would exceed.
fn exact_delays_are_measured_exactly(context: &Context) {
    let output = simulate(context.called("wrk").words("-t2 -c10 -d2s"), "latency_us = 20000.0");
    assert!((970..=1000).contains(&output.requests()), "{output:?}");
    let latency = output.latency_us();
    assert!((20e3..=20.01e3).contains(&latency.mean) && latency.stdev < 10.0, "{output:?}");
    assert!((240.0..=260.0).contains(&output.thread_rate().mean), "{output:?}");
}

fn missing_urls_print_usage_with_code_1(context: &Context) {
    for words in ["", "--help", "-h"] {
        assert_eq!(refused(context.called("wrk").words(words)), "", "{words}");
    }
}

fn versions_are_printed_before_the_run(context: &Context) {
    let is_version = |line: &str| {
        matches!(line.split(' ').collect::<Vec<_>>()[..],
        ["wrk", number, backend, "Copyright", ..] if !number.is_empty() && backend == format!("[{}]", context.backend))
    };
    let split = |output: &ProgramOutput| {
        let (first, rest) = output.stdout.split_once('\n').expect("a line");
        assert!(is_version(first), "{output:?}");
        rest.to_owned()
    };

    for spelling in ["-v", "--version", "--ver"] {
        let output = context.called("wrk").word("--io").word(context.backend).word(spelling).run_plain();
        assert_eq!((output.code, output.stderr.as_str()), (1, ""), "{output:?}");
        assert!(split(&output).starts_with("Usage: wrk <options> <url>\n"), "{output:?}");
    }

    let server = target();
    let program = || context.called("wrk").words("-v -t1 -c1 -n9 --io").word(context.backend);
    let output = program().word(url(&server, "/")).run_plain();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    ProgramOutput { stdout: split(&output), ..output }.assert_nothing_but_standard();

    let output = program().word("http://127.0.0.1:1/").run_plain();
    assert_eq!((output.code, split(&output).as_str()), (1, ""), "{output:?}");
    assert_eq!(output.stderr, "unable to connect to 127.0.0.1:1 Connection refused\n");
}

fn bad_urls_are_named_above_the_usage(context: &Context) {
    for bad in ["foo", "127.0.0.1:80/", "http:///x", "http://h:70000/", "http://h:/", "http://h/a b"] {
        assert_eq!(refused(context.called("wrk").word(bad)), format!("invalid URL: {bad}\n"));
    }
}

fn hosts_may_contain_underscores(context: &Context) {
    let output = context.called("wrk").words("-t1 -c1 http://h_x.invalid/").run_plain();
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.starts_with("unable to resolve h_x.invalid:http "), "{output:?}");
}

fn fewer_connections_than_threads_are_refused(context: &Context) {
    for words in ["-t2 -c1 http://127.0.0.1/", "-c1 http://127.0.0.1/", "-c0 -t1 http://127.0.0.1/"] {
        let stderr = refused(context.called("wrk").words(words));
        assert_eq!(stderr, "number of connections must be >= threads\n", "{words}");
    }
    assert_eq!(refused(context.called("wrk").words("-t2 -c1 foo")), "invalid URL: foo\n");
}

fn numbers_that_wrk_refuses_are_refused_with_a_reason(context: &Context) {
    let table = [
        ("-d", "1x", "duration"),
        ("-d", "1.5s", "duration"),
        ("-d", "1ms", "duration"),
        ("-d", "0", "duration"),
        ("-d", "1h30m", "duration"),
        ("-d", "-5", "duration"),
        ("-t", "0", "threads"),
        ("-t", "1c1d1", "threads"),
        ("-c", "1kb", "connections"),
        ("-c", "-1", "connections"),
        ("--timeout", "5k", "timeout"),
    ];
    for (option, value, name) in table {
        let stderr = refused(context.called("wrk").word(option).word(value).word("http://127.0.0.1/"));
        assert!(stderr.starts_with(&format!("wrk: --{name} \"{value}\": ")), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

fn misused_options_print_getopt_messages(context: &Context) {
    let table = [
        ("--bogus", "wrk: unrecognized option '--bogus'\n"),
        ("-z", "wrk: invalid option -- 'z'\n"),
        ("-d", "wrk: option requires an argument -- 'd'\n"),
        ("--dur", "wrk: option '--duration' requires an argument\n"),
        ("--t 1", "wrk: option '--t' is ambiguous; possibilities: '--threads' '--timeout'\n"),
        ("--latency=5", "wrk: option '--latency' doesn't allow an argument\n"),
        ("-r", ""),
        ("-?", ""),
    ];
    for (words, stderr) in table {
        assert_eq!(refused(context.called("wrk").word("http://127.0.0.1/").words(words)), stderr, "{words}");
    }
}

fn posix_mode_ends_options_at_first_word(context: &Context) {
    let server = target();
    let program = context.called("wrk").words("-t1 -c1 -n1").word(url(&server, "/")).word("--bogus");
    let posix = |command: &mut std::process::Command| {
        command.env("POSIXLY_CORRECT", "1");
    };
    let output = program.with(posix).run_plain();
    assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
    assert_eq!(output.stderr, "wrk: extra arguments are ignored (only scripts use them): \"--bogus\"\n");
}

fn refused_command_lines_open_no_connection(context: &Context) {
    let server = target();
    for words in ["-t2 -c1", "-d 1x", "-t 0", "-c 1kb", "--bogus", "-h"] {
        refused(context.called("wrk").word(url(&server, "/")).words(words));
    }
    assert_eq!(fetch_target_counts(server.address()).connections, 0);
}

fn durations_round_like_wrk_and_interrupts_succeed(context: &Context) {
    for (typed, shown) in DURATIONS {
        let output = interrupted(context.called("wrk").words("-t1 -c1 -d").word(typed));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{typed}: {output:?}");
        output.assert_standard();
        assert!(output.stdout.starts_with(&format!("Running {shown} test @ ")), "{typed}: {output:?}");
    }
}

/// Durations as typed, and as printed in the report.
pub const DURATIONS: [(&str, &str); 7] =
    [("90", "2m"), ("1h", "60m"), ("51", "1m"), ("50", "50s"), ("10S", "10s"), ("2M", "2m"), ("10 s", "10s")];

/// A run interrupted as soon as some requests have been answered.
pub fn interrupted(onrush: Onrush) -> ProgramOutput {
    let server = RecordingServer::start("127.0.0.1");
    let child = onrush.word(format!("http://{}/", server.address())).spawn();
    wait_until(|| server.requests().len() > 5);
    signal(&child, Signal::INT);
    finish(child)
}

fn unreachable_targets_print_wrks_message_only(context: &Context) {
    let output = context.called("wrk").words("-t1 -c1 http://127.0.0.1:1/").run_plain();
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert_eq!(output.stderr, "unable to connect to 127.0.0.1:1 Connection refused\n");

    let output = context.called("wrk").words("-t1 -c1 http://nosuch.invalid/").run_plain();
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.starts_with("unable to resolve nosuch.invalid:http "), "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
}

fn statuses_from_400_count_but_302_does_not(context: &Context) {
    let server = target();
    for status in [404, 600] {
        short(context, &url(&server, &format!("/status/{status}"))).assert_all_counted_as_errors();
    }
    short(context, &url(&server, "/status/302")).assert_nothing_but_standard();
}

fn late_responses_count_without_latency(context: &Context) {
    let onrush = context.called("wrk").words("-t1 -c2 -d3 --timeout 1");
    let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1200000.0");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.line("Latency"), Some("Latency     0.00us    0.00us   0.00us    -nan%"), "{output:?}");
    assert_eq!(output.line("4 requests"), Some("4 requests in 3.00s, 208.00B read"), "{output:?}");
    let errors = output.line("Socket errors");
    assert_eq!(errors, Some("Socket errors: connect 0, read 0, write 0, timeout 4"), "{output:?}");
}

fn announced_closes_are_no_error(context: &Context) {
    let server = target();
    let output = short(context, &url(&server, "/close"));
    output.assert_nothing_but_standard();
    assert_a_connection_for_each_request(&output, fetch_target_counts(server.address()).connections);
}

fn http_1_0_closes_by_default(context: &Context) {
    let server = target();
    let output = short(context, &url(&server, "/http10"));
    output.assert_nothing_but_standard();
    assert_a_connection_for_each_request(&output, fetch_target_counts(server.address()).connections);

    let server = target();
    let output = short(context, &url(&server, "/http10?keep-alive"));
    output.assert_nothing_but_standard();
    assert!(output.requests() > 10, "{output:?}");
    assert!(fetch_target_counts(server.address()).connections <= 1 + 2);
}

/// One connection for the probe, one per request, and up to two open and one pending at the end.
fn assert_a_connection_for_each_request(output: &ProgramOutput, connections: u64) {
    let requests = output.requests();
    assert!(requests > 10, "{output:?}");
    assert!((requests + 1..=requests + 1 + 3).contains(&connections), "{connections} connections: {output:?}");
}

fn unannounced_closes_are_read_errors(context: &Context) {
    let server = target();
    let output = short(context, &url(&server, "/closenohdr"));
    output.assert_standard();
    assert!(output.requests() > 10, "{output:?}");
    let errors = output.socket_errors("read") + output.socket_errors("write");
    assert_eq!(output.requests() + errors, 100, "{output:?}");
    assert!(output.requests().abs_diff(errors) <= 2, "{output:?}");
}

/// wrk reconnects at once, ten thousand times a second. A pause of 6 to 10 ms limits this to hundreds.
fn resets_and_garbage_are_bounded_read_errors(context: &Context) {
    let server = target();
    for path in ["/reset", "/garbage"] {
        let output = context.called("wrk").words("-t1 -c2 -n40").word(url(&server, path)).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        output.assert_standard();
        assert_eq!((output.requests(), output.socket_errors("read")), (0, 40), "{output:?}");
        assert!(output.stdout.contains(", 0.00B read\n"), "{output:?}");
        // One of the two connections failed at least 20 times, and waited 19 times.
        assert!(output.elapsed_ms() >= 19.0 * 6.0, "{output:?}");
    }
}

fn bodies_may_end_with_the_connection(context: &Context) {
    let server = target();
    let output = short(context, &url(&server, "/eof"));
    output.assert_nothing_but_standard();
    assert_a_connection_for_each_request(&output, fetch_target_counts(server.address()).connections);
}

fn chunked_bytes_include_framing(context: &Context) {
    let server = target();
    let request = "GET /chunked/12 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let answer = exchange(server.address(), request).replace("Connection: close\r\n", "");
    assert!(answer.contains("\r\nX-Trail: t\r\n"), "the answer has a trailer: {answer}");
    let output = short(context, &url(&server, "/chunked/12"));
    output.assert_nothing_but_standard();
    output.assert_bytes_per_request(answer.len() as u64);
}

fn user_headers_and_url_parts_are_sent(context: &Context) {
    let server = RecordingServer::start("127.0.0.1");
    let mut program = context.called("wrk").words("-t1 -c1 -n9");
    for header in ["Host: h.example", "A: b: c", "NoSpace:x", "Dup: 1", "Dup: 2"] {
        program = program.word("-H").word(header);
    }
    let output = program.word(format!("http://{}/p?q=1#frag", server.address())).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output.assert_bytes_per_request(51);
    let expected = "GET /p?q=1 HTTP/1.1\r\nHost: h.example\r\nA: b: c\r\nNoSpace: x\r\nDup: 1\r\nDup: 2\r\n\r\n";
    let requests = server.requests();
    assert!(requests.len() == 9 && requests.iter().all(|request| request == expected), "{:?}", requests.first());

    let server = RecordingServer::start("127.0.0.1");
    let address = server.address();
    let output = context.called("wrk").words("-t1 -c1 -n1").word(format!("http://u:p@{address}?x=1")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let expected = format!("GET /?x=1 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic dTpw\r\n\r\n");
    assert_eq!(server.requests().first(), Some(&expected));
}

fn descriptor_shortage_costs_only_connections(context: &Context) {
    let server = Served::start();
    let url = format!("http://{}/delay/50", server.address);
    let output = context.limited("-n 64").compat().words("-t1 -c100 -d1").word(&url).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output.assert_standard();
    assert!(output.requests() > 0, "{output:?}");
    assert!(output.socket_errors("connect") >= 40, "{output:?}");

    let output = context.limited("-n 64").compat().words("--notes -t1 -c100 -d1").word(&url).run();
    let opened = fetch_target_counts(server.address).connections;
    assert_eq!(output.code, 0, "{output:?}");
    let note = output.stderr.lines().next().unwrap_or_default();
    let lived = note.split(' ').nth(2).and_then(|number| number.parse::<u64>().ok()).unwrap_or_default();
    assert!((50..=61).contains(&lived), "{output:?}");
    assert!(
        note.starts_with(&format!(
            "note: only {lived} of 100 connections were established: the limit is 64 open files, "
        ))
    );
    assert!(note.contains("prlimit"), "{note}");
    // The first run had a separate limit, because an observer of the machine opens files, too.
    let before = opened - 2 - lived;
    assert!((50..=61).contains(&before), "{opened}: two runs, of {before} and {lived} connections, each with a probe");
}

fn exactly_one_extra_connection_probes_the_target(context: &Context) {
    let server = target();
    let output = context.called("wrk").words("-t1 -c3 -n3").word(url(&server, "/delay/200")).run();
    assert_eq!((output.code, output.requests()), (0, 3), "{output:?}");
    let counts = fetch_target_counts(server.address());
    assert_eq!((counts.connections, counts.requests), (1 + 3, 3));
}
