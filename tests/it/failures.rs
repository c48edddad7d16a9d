//! Failures are counted, named in plain words, and never cause more load than requested.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases, fetch_target_counts, signal, target, url};
use crate::peers::{self, RefusingPort, Silent, read_head};
use crate::results::{document, number};
use crate::simulation::{simulate, simulated_document};

cases! {
    refused_ports_end_runs_with_one_line;
    absent_targets_end_request_runs;
    waiting_for_targets_is_announced (Once);
    unanswered_connects_are_abandoned_and_named;
    unanswered_requests_time_out_once;
    unanswered_requests_time_out_like_wrk (Once);
    late_responses_count_twice_unless_timeout_0;
    frozen_targets_are_awaited;
    frozen_targets_are_named_with_duration (Once);
    abandoned_requests_replace_their_connection;
    bad_responses_are_named_and_conserved;
    bad_answers_end_compatible_runs_with_code_0 (Once);
    surplus_bytes_are_named_and_responses_count;
    unreadable_heads_are_shown_at_the_fault;
    silent_closes_are_named_and_conserved;
    failing_servers_are_not_hammered (Once);
    hostile_garbage_is_escaped_and_truncated (Once);
    hostile_locations_are_escaped_and_truncated (Once);
    redirects_are_reported_with_location (Once);
    mixed_statuses_are_reported (Once);
    tls_hints_in_bad_requests_are_recognized (Once);
    early_refusals_of_bodies_are_responses;
    large_bodies_reach_slow_readers_completely;
    refusing_addresses_are_skipped needs "unshare -rm true";
}

fn refused_ports_end_runs_with_one_line(context: &Context) {
    let refusing = RefusingPort::new();
    // Only the refusals end the run. The second thread may have no connection to open for a while.
    for words in ["-t2 -c100 -d1h --probe off", "-t2 --stages c=1h:1,1h:2"] {
        let output = context.onrush().words(words).word(format!("http://{}/", refusing.address)).run();
        assert_eq!(output.code, 2, "{output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
        let start = format!("onrush: unable to connect to {}: connection refused", refusing.address);
        assert!(output.stderr.starts_with(&start), "{output:?}");
        assert_eq!(output.stdout.lines().count(), 2, "no report of a run that never started: {output:?}");
    }
}

fn absent_targets_end_request_runs(context: &Context) {
    let refusing = RefusingPort::new();
    let url = format!("http://{}/", refusing.address);
    let output = context.onrush().words("-c4 -n100 --give-up 300ms").word(url).run();
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.took > Duration::from_millis(300), "{output:?}");
    assert_eq!(output.requests(), 0);
    output.note("the target was unreachable for 300ms");
    output.note(&format!("refused by {}", refusing.address));
    // Only one slot of either thread connects at first. Its back-off doubles from 1 ms: about nine attempts in 300 ms.
    assert!((1..=24).contains(&output.socket_errors("connect")), "{output:?}");
}

fn waiting_for_targets_is_announced(context: &Context) {
    let refusing = RefusingPort::new();
    let mut child = context.onrush().words("-n2").word(format!("http://{}/", refusing.address)).spawn();
    let start = Instant::now();
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("it is piped")).read_line(&mut line).expect("it can be read");
    assert_eq!(line, format!("onrush: waiting for {} (connection refused), up to 30 s\n", refusing.address));
    assert!(start.elapsed() < Duration::from_secs(20), "before the 30 s are over: {:?}", start.elapsed());
    signal(&child, Signal::INT);
    child.wait().expect("it ends");
}

fn unanswered_connects_are_abandoned_and_named(context: &Context) {
    let silent = Silent::new();
    let url = format!("http://{}/", silent.address);
    // Nothing else ends the run.
    let output = context.onrush().words("-c10 -d1h --probe off --timeout 200ms --give-up 200ms").word(&url).run();
    assert_eq!(output.code, 2, "{output:?}");
    assert_eq!(
        output.stderr,
        format!(
            "onrush: unable to connect to {}: no response to a connection attempt; a firewall drops the packets, or the \
             address is wrong\n",
            silent.address
        )
    );
    let output = context.onrush().words("-c10 -n10 --give-up 200ms").word(&url).run();
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    output.note("the target was unreachable for 200ms: the run ended after 0 of 10 requests");
}

fn unanswered_requests_time_out_once(context: &Context) {
    let server = target();
    let native = context.onrush().words("-t1 -c3 -d1s --timeout 100ms").word(url(&server, "/hang")).run();
    assert_eq!((native.code, native.requests(), native.socket_errors("timeout")), (5, 0, 3), "{native:?}");
    native.note("timeout: 3 × no complete response within 100 ms");
    native.note("none of the 3 requests got a complete response: all were still in flight at the end");
}

fn unanswered_requests_time_out_like_wrk(context: &Context) {
    // wrk accepts no fractions, and a timeout of one second cannot be exceeded in a run of one second.
    let compat =
        simulate(context.called("wrk").words("-t1 -c3 -d2s --timeout 1s"), "[[fault]]\nevery = 1\nwhat = 'hang'");
    assert_eq!((compat.code, compat.requests(), compat.socket_errors("timeout")), (0, 0, 3), "{compat:?}");
    assert_eq!(compat.stderr, "", "compatible runs say nothing unasked");
}

fn late_responses_count_twice_unless_timeout_0(context: &Context) {
    let server = target();
    let run =
        |timeout| context.onrush().words("-c1 -n2 --timeout").word(timeout).word(url(&server, "/delay/100")).run();
    let late = run("30ms");
    assert_eq!((late.code, late.requests(), late.socket_errors("timeout")), (0, 2, 2), "{late:?}");
    let row = late.line("Latency").expect("the row is there");
    let mean_ms: f64 = row.split_whitespace().nth(1).and_then(|cell| cell.strip_suffix("ms")?.parse().ok()).unwrap();
    assert!(mean_ms >= 100.0, "the real latency is recorded: {row}");
    let never = run("0");
    assert_eq!((never.code, never.requests()), (0, 2), "{never:?}");
    assert_eq!(never.line("Socket errors"), None, "{never:?}");
}

fn frozen_targets_are_awaited(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("freeze"));
    let url = url(&server, "/freeze?every=300ms&ms=250");
    let (output, document) = document(context.onrush().words("-t1 -c1 -d800ms").word(url), &scratch);
    assert_eq!((output.code, output.line("Non-2xx")), (0, None), "{output:?}");
    // The target itself may get its processor back too late to respond before the end.
    let waits_us = ["/latency/service/max_us", "/censored/max_us"].map(|longest| number(&document, longest));
    assert!(waits_us.into_iter().any(|longest_us| longest_us > 200_000.0), "{waits_us:?}: {document}");
}

fn frozen_targets_are_named_with_duration(context: &Context) {
    let frozen = "connect_us = 0.0\n[[stall]]\nfrom_s = 0.5\nfor_s = 0.4";
    let (output, document) = simulated_document(context.onrush().words("-t1 -c2 -d950ms"), frozen);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.note("no response from ").ends_with("no response from 0.5 s to 0.9 s"), "{output:?}");
    // Each connection waited once, and sent too many other requests for a percentile to show the wait.
    assert_eq!(number(&document, "/latency/service/max_us"), 401_000.0, "{document}");
    assert!(number(&document, "/latency/service/percentiles_us/99") < 1_001.0, "{document}");
}

fn abandoned_requests_replace_their_connection(context: &Context) {
    let server = target();
    let options = "-c1 -n4 --timeout 100ms --give-up 500ms";
    let output = context.onrush().words(options).word(url(&server, "/stall?every=2&ms=20000")).run();
    // On every connection, the first request is answered and the second is not.
    assert_eq!((output.code, output.requests()), (0, 2), "{output:?}");
    assert!(output.socket_errors("timeout") >= 2, "{output:?}");
    output.note("2 of 4 requests got no complete response: 2 were abandoned");
    let counts = fetch_target_counts(server.address());
    assert_eq!((counts.connections, counts.requests), (2, 4));
}

/// Paths of the target with bad responses, and the report's message for each.
const BAD_ANSWERS: [(&str, &str); 7] = [
    ("/reset", "connection reset by the server (ECONNRESET)"),
    ("/garbage", "not an HTTP response"),
    ("/endless-head", "response head longer than 80 KiB"),
    ("/bad-length", "bad Content-Length"),
    ("/two-lengths", "two Content-Length fields"),
    ("/length-and-chunked", "both Content-Length and Transfer-Encoding"),
    ("/bad-chunk", "bad chunk size"),
];

fn bad_responses_are_named_and_conserved(context: &Context) {
    let server = target();
    for (path, words) in BAD_ANSWERS {
        let output = context.onrush().words("-c4 -n8").word(url(&server, path)).run();
        assert_eq!((output.code, output.requests()), (5, 0), "{path}: {output:?}");
        assert_eq!(output.socket_errors("read"), 8, "{path}: {output:?}");
        output.note(&format!("read: 8 × {words}"));
        output.note("none of the 8 requests got a complete response: all failed");
    }
    let requests = fetch_target_counts(server.address()).requests;
    assert_eq!(requests, 8 * BAD_ANSWERS.len() as u64, "not one request more");
}

fn bad_answers_end_compatible_runs_with_code_0(context: &Context) {
    let server = target();
    for (path, words) in [BAD_ANSWERS[0], BAD_ANSWERS[1]] {
        let output = context.called("wrk").words("-t1 -c2 -n10 --notes").word(url(&server, path)).run();
        assert_eq!((output.code, output.requests(), output.socket_errors("read")), (0, 0, 10), "{path}: {output:?}");
        output.note(&format!("read: 10 × {words}"));
    }
}

fn surplus_bytes_are_named_and_responses_count(context: &Context) {
    let server = target();
    let output = context.onrush().words("-c2 -n10").word(url(&server, "/extra")).run();
    assert_eq!((output.code, output.requests()), (0, 10), "{output:?}");
    output.note("× bytes after a complete response");
    assert!(output.note("      received: ").contains("stray"), "the bytes are shown: {output:?}");
    assert!((1..=10).contains(&output.socket_errors("read")), "{output:?}");
}

fn unreadable_heads_are_shown_at_the_fault(context: &Context) {
    let long = "x".repeat(200);
    let head = format!("HTTP/1.1 200 OK\r\nX-Long: {long}\r\nno colon\r\n\r\n");
    let address = peers::server(move |stream| {
        let mut stream = BufReader::new(stream);
        read_head(&mut stream)?;
        stream.get_mut().write_all(head.as_bytes())
    });
    let output = context.onrush().words("-c1 -n4").word(format!("http://{address}/")).run();
    output.note("read: 4 × malformed header field; --once shows a response in full");
    output.note("      received: \"...no colon\\x0d\\x0a\\x0d\\x0a\"");
    let output = context.onrush().words("--once").word(format!("http://{address}/")).run_plain();
    let shown = format!("< HTTP/1.1 200 OK\n< X-Long: {long}\n< no colon\n<\n");
    assert!(output.stdout.contains(&shown), "{output:?}");
    assert!(output.stdout.contains("the response is incomplete"), "{output:?}");
    // A truncated secret is still a secret.
    for padding in [0, 90] {
        let address = peers::server(move |stream| {
            let mut stream = BufReader::new(stream);
            read_head(&mut stream)?;
            let (before, value) = ("x".repeat(90), "secret".repeat(1 + padding));
            let head = format!("HTTP/1.1 200 OK\r\nX: {before}\r\nSet-Cookie: id={value}\x7f\r\n\r\n");
            stream.get_mut().write_all(head.as_bytes())
        });
        for words in ["-c1 -n1", "--once"] {
            let output = context.onrush().words(words).word(format!("http://{address}/")).run_plain();
            assert!(output.stderr.contains("Set-Cookie: ") && !output.stderr.contains("secret"), "{output:?}");
            assert!(!output.stdout.contains("secret"), "{output:?}");
        }
    }
}

fn silent_closes_are_named_and_conserved(context: &Context) {
    let server = target();
    let output = context.onrush().words("-c2 -n40").word(url(&server, "/closenohdr")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let failed = output.socket_errors("read") + output.socket_errors("write");
    assert!(failed > 0, "{output:?}");
    assert_eq!(output.requests() + failed, 40, "{output:?}");
    output.note(&format!("of 40 requests got no complete response: {failed} failed"));
    let named = ["closed by the server", "connection reset by the server", "connection already closed by the server"];
    assert!(named.iter().any(|words| output.stderr.contains(words)), "{output:?}");
}

/// The delay between attempts on a real server is in `native` and `compat`: `resets_and_garbage_are_`….
fn failing_servers_are_not_hammered(context: &Context) {
    for what in ["'reset'", r#"{ answer = "HTTP/1.1 no status\r\n\r\n" }"#] {
        let scenario = format!("[[fault]]\nevery = 1\nwhat = {what}");
        let opened = |onrush: Onrush| {
            let (_, document) = simulated_document(onrush.words("-d1s"), &scenario);
            number(&document, "/connections/opened") as u64
        };
        // Waits that double from 1 ms, plus or minus a quarter: ten or eleven attempts.
        let native = opened(context.onrush().words("-t1 -c4"));
        assert!((4 * 9..=4 * 12).contains(&native), "{native} for {what}");
        // Waits of 6 to 10 ms, and 1.1 ms until the next failure.
        let compat = opened(context.called("wrk").words("-t1 -c2"));
        assert!((2 * 90..=2 * 141).contains(&compat), "{compat} for {what}");
    }
}

fn hostile_garbage_is_escaped_and_truncated(context: &Context) {
    let garbage = [b"\x1b]0;mine\x07\x1b[2J\r\nnote: all is well\r\n\x9b31m\xff".to_vec(), vec![b'A'; 5_000]].concat();
    let output = run_against_answer(context, garbage);
    assert_eq!(output.code, 5, "{output:?}");
    output.note("not an HTTP response");
    assert!(output.note("      received: ").contains(r"\x1b]0;mine\x07\x1b[2J\x0d\x0anote"), "{output:?}");
    assert_is_fit_for_a_terminal(&output);
    let escapes = vec![0x1b; 5_000];
    assert_is_fit_for_a_terminal(&run_against_answer(context, escapes));
}

fn hostile_locations_are_escaped_and_truncated(context: &Context) {
    let head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://e/\xc2\x9b\xff".to_vec();
    let output = run_against_answer(context, [head, vec![b'A'; 5_000], b"\r\n\r\n".to_vec()].concat());
    assert_eq!((output.code, output.requests()), (0, 3), "{output:?}");
    assert!(output.note("responses were 302").contains(r"http://e/\x"), "{output:?}");
    assert_is_fit_for_a_terminal(&output);
}

/// Runs three requests against a server that responds to each with these bytes.
fn run_against_answer(context: &Context, answer: Vec<u8>) -> ProgramOutput {
    let address = peers::server(move |stream| {
        let mut stream = BufReader::new(stream);
        loop {
            read_head(&mut stream)?;
            stream.get_mut().write_all(&answer)?;
        }
    });
    context.onrush().words("-c1 -n3").word(format!("http://{address}/")).run()
}

fn assert_is_fit_for_a_terminal(output: &ProgramOutput) {
    let fit = |character: char| matches!(character, ' '..='~' | '\n' | '×');
    assert!(output.stderr.chars().all(fit), "{output:?}");
    // The rest of a line is onrush's own text, which is short.
    for line in output.stderr.lines() {
        assert!(line.chars().count() < 120 + 100, "{line}");
        assert!(!line.contains(&"A".repeat(121)), "{line}");
    }
}

fn redirects_are_reported_with_location(context: &Context) {
    let server = target();
    let output = context.onrush().words("-c2 -n20").word(url(&server, "/status/301")).run();
    assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
    output.note("all 20 responses were 301 to /: you measured the redirect");
    assert_eq!(output.line("Non-2xx"), None, "wrk counts statuses from 400 on");
}

fn mixed_statuses_are_reported(context: &Context) {
    let answered = AtomicU64::new(0);
    let address = peers::server(move |stream| {
        let mut stream = BufReader::new(stream);
        loop {
            read_head(&mut stream)?;
            let status = if answered.fetch_add(1, Ordering::Relaxed) % 3 == 2 { 503 } else { 200 };
            stream.get_mut().write_all(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
        }
    });
    let output = context.onrush().words("-c3 -n30").word(format!("http://{address}/")).run();
    assert_eq!((output.code, output.requests()), (0, 30), "{output:?}");
    output.note("of 30 responses, 20 were 200 and 10 were 503");
    assert_eq!(output.line("Non-2xx"), Some("Non-2xx or 3xx responses: 10"));
    assert_eq!(output.line("Socket errors"), None, "a status is a complete answer");
}

fn tls_hints_in_bad_requests_are_recognized(context: &Context) {
    let said = |body: &str, split: usize| {
        let answer = format!("HTTP/1.1 400 Bad Request\\r\\nContent-Length: {}\\r\\n\\r\\n{body}", body.len());
        let scenario = format!("split = {split}\nanswer = \"{answer}\"\n");
        simulate(context.onrush().words("-c2 -n20"), &scenario).stderr
    };
    // In one piece, with the body after the head, and byte by byte.
    for split in [0, 47, 1] {
        let go = said("Client sent an HTTP request to an HTTPS server.", split);
        assert!(go.contains("all 20 responses were 400: the server expects TLS at this port; write https://"), "{go}");
    }
    let other = said("{'type': 'https://tools.ietf.org/html/rfc9110#section-15.5.1'}", 0);
    assert!(other.contains("all 20 responses were 400; --once shows one in full"), "{other}");
}

fn early_refusals_of_bodies_are_responses(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("early"));
    let body = scratch.file("body", vec![b'x'; 5 << 20]);
    let run = |onrush: Onrush| {
        let onrush = onrush.words("-t1 -c2 -n4 --body").word(format!("@{}", body.display()));
        onrush.word(url(&server, "/early/413")).run()
    };
    for output in [run(context.onrush()), run(context.called("wrk"))] {
        assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
        assert_eq!(output.line("Non-2xx"), Some("Non-2xx or 3xx responses: 4"));
        assert_eq!(output.line("Socket errors"), None, "{output:?}");
    }
    // The kernel's buffers may hold the whole body. Windows do not.
    let output = run(context.onrush().words("--http2"));
    let note = output.note("came before");
    assert!(
        note.contains(
            "all 4 responses came before the whole request had been sent; the rest of the request was not sent"
        ),
        "{output:?}"
    );
}

fn large_bodies_reach_slow_readers_completely(context: &Context) {
    // More than the capacity of all buffers on the way. The length of a piece is prime: no two parts of the body at an
    // even distance are equal.
    let piece: Vec<u8> = (0..65_537_u32).map(|index| (index ^ (index >> 8)) as u8).collect();
    let body = Arc::new(piece.repeat(200));
    let scratch = Scratch::new("large");
    let file = scratch.file("body", &*body);
    let (arrived, arrival) = mpsc::channel();
    let expected = Arc::clone(&body);
    let address = peers::server(move |stream| {
        let mut stream = BufReader::new(stream);
        let head = read_head(&mut stream)?;
        let mut piece = vec![0; expected.len() / 100];
        let mut intact = true;
        for expected in expected.chunks(piece.len()) {
            thread::sleep(Duration::from_millis(3));
            stream.read_exact(&mut piece[..expected.len()])?;
            intact &= piece[..expected.len()] == *expected;
        }
        let _ = arrived.send((head, intact));
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    });
    let body = format!("@{}", file.display());
    let output = context.onrush().words("-c1 -n1 --body").word(body).word(format!("http://{address}/sink")).run();
    assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
    let (head, intact) = arrival.recv().expect("the body arrived");
    assert!(head.starts_with("POST /sink HTTP/1.1\r\n") && head.contains("Content-Length: 13107400\r\n"), "{head}");
    assert!(intact, "the body is not what was sent");
}

fn refusing_addresses_are_skipped(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("hosts"));
    let hosts = scratch.file("hosts", "::1 localhost\n127.0.0.1 localhost\n");
    let port = server.address().port();
    let run = |onrush: Onrush, options| {
        let onrush = onrush.with(|command| *command = with_hosts(&hosts, command));
        onrush.words(options).word(format!("http://localhost:{port}/delay/20")).run()
    };
    let output = run(context.onrush(), "-t2 -c6 -n120");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.requests() > 0);
    assert_eq!(output.line("Socket errors"), None, "a dropped address is no error: {output:?}");
    output.note(&format!("[::1]:{port} was left out: connection refused"));
    assert_eq!(fetch_target_counts(server.address()).connections, 6, "every connection went to the address that works");
    // The intermediate shell cannot call the program by another name.
    let output = run(context.called("wrk"), "--compat wrk -t2 -c6 -n12");
    assert_eq!((output.code, output.line("Socket errors")), (0, None), "{output:?}");
    assert_eq!(output.stderr, "", "compatible runs say nothing unasked");
}

/// The command in a separate namespace, with this file as `/etc/hosts`.
fn with_hosts(hosts: &Path, command: &Command) -> Command {
    let mut wrapped = Command::new("unshare");
    let script = r#"mount --bind "$0" /etc/hosts && exec "$@""#;
    wrapped.args(["-rm", "sh", "-c", script]).arg(hosts).arg(command.get_program()).args(command.get_args());
    wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wrapped
}
