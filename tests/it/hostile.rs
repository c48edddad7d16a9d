//! Servers that break the rules in ways that involve the kernel: resets, silence, floods. Everything else is tested at
//! every split in virtual time, in `engine/src/tests/hostile.rs`. `docs/robustness.md` lists all of them.

use std::fs;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendFlags, send};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::{Case, Context, ProgramOutput, Scratch, cases};
use crate::http2_hostile;
use crate::peers::{read_head, server};

cases! {
    resets_at_every_response_byte_are_named;
    closes_at_every_response_byte_are_named;
    immediate_closes_are_counted_without_hammering;
    half_closing_servers_are_left_and_counted;
    dripping_responses_are_complete;
    paused_large_responses_complete_with_last_byte;
    endless_drips_do_not_outlast_runs;
    unread_large_requests_do_not_outlast_runs;
    unread_large_requests_are_abandoned;
    resets_after_early_responses_lose_no_request;
    urgent_data_is_not_part_of_responses;
    floods_end_with_runs_in_bounded_memory;
    floods_without_responses_are_named (Once);
    endless_heads_use_bounded_memory (Once, Alone);
    robustness_matrix_and_tests_match (Once);
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";
const HEAD_BYTES: usize = ANSWER.len() - 13;
/// Length of a large request, in bytes: more than all kernel buffers along the way can hold.
const LARGE: usize = 5 << 20;
/// Time beyond `-d` that a run may take on a busy machine. These servers never end it.
const GRACE: Duration = Duration::from_secs(15);

/// Runs against a server that sends one complete response per connection, then another one that `end` cuts off, a byte
/// later than on the previous connection. There are enough requests to cut the response at every byte.
fn run_cut(context: &Context, end: fn(TcpStream) -> io::Result<()>) -> ProgramOutput {
    let cuts = AtomicUsize::new(0);
    let address = server(move |stream| {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        read_head(&mut stream)?;
        stream.get_mut().write_all(ANSWER)?;
        read_head(&mut stream)?;
        stream.get_mut().write_all(&ANSWER[..cuts.fetch_add(1, Ordering::Relaxed)])?;
        end(stream.into_inner())
    });
    let output = context.onrush().words("-c1").word(format!("-n{}", 2 * ANSWER.len())).word(url(address)).run();
    assert_eq!((output.code, output.requests()), (0, ANSWER.len() as u64), "{output:?}");
    assert_eq!(output.socket_errors("read"), ANSWER.len() as u64, "{output:?}");
    output
}

fn resets_at_every_response_byte_are_named(context: &Context) {
    let output = run_cut(context, reset);
    let why = "connection reset by the server (ECONNRESET)";
    assert_eq!(failures(&output, why), [HEAD_BYTES, 13], "in the head and in the body: {output:?}");
}

fn closes_at_every_response_byte_are_named(context: &Context) {
    let output = run_cut(context, |_| Ok(()));
    assert_eq!(failures(&output, "closed by the server before a response began"), [1], "{output:?}");
    assert_eq!(failures(&output, "closed by the server inside a response head"), [HEAD_BYTES - 1], "{output:?}");
    assert_eq!(failures(&output, "closed by the server inside a response body"), [13], "{output:?}");
}

fn immediate_closes_are_counted_without_hammering(context: &Context) {
    for hang_up in [|_| Ok(()), reset] {
        let output = context.onrush().words("-c2 -n14").word(url(server(hang_up))).run();
        assert_unanswered(&output);
        output.note("none of the 14 requests got a complete response: all failed");
        let errors = output.socket_errors("read") + output.socket_errors("write");
        assert!(errors >= 14, "{output:?}");
        // One of two slots failed at least seven times, and waited for 1 ms, 2 ms and so on, plus or minus a quarter.
        assert!(output.elapsed_ms() >= 0.75 * 63.0, "{output:?}");
    }
}

fn half_closing_servers_are_left_and_counted(context: &Context) {
    let address = server(|mut stream| {
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let output = context.onrush().words("-c2 -n10").word(url(address)).run();
    assert_unanswered(&output);
    assert_eq!(failures(&output, "closed by the server before a response began"), [10], "{output:?}");
}

fn dripping_responses_are_complete(context: &Context) {
    let address = server(|stream| {
        let mut stream = BufReader::new(stream);
        loop {
            read_head(&mut stream)?;
            drip(stream.get_mut(), ANSWER.iter().copied())?;
        }
    });
    let output = context.onrush().words("-c2 -n4").word(url(address)).run();
    assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
    assert!(output.stdout.contains(&format!(", {}.00B read", 4 * ANSWER.len())), "{output:?}");
}

fn paused_large_responses_complete_with_last_byte(context: &Context) {
    const PIECES: [usize; 6] = [1, 70_000, 500_000, 262_144, 300_000, 1];
    const PAUSE: Duration = Duration::from_millis(20);
    let length: usize = PIECES.iter().sum();
    let address = server(move |stream| {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        loop {
            read_head(&mut stream)?;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.get_mut().write_all(head.as_bytes())?;
            for piece in PIECES {
                stream.get_mut().write_all(&vec![b'x'; piece])?;
                thread::sleep(PAUSE);
            }
        }
    });
    let output = context.onrush().words("-c2 -n4").word(url(address)).run();
    assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
    // No client waits during the pause after the last byte.
    let pauses = PAUSE * (2 * PIECES.len() as u32 - 1);
    assert!(output.took >= pauses, "{output:?}");
}

fn endless_drips_do_not_outlast_runs(context: &Context) {
    let address = server(|mut stream| {
        let endless = b"A: b\r\n".iter().copied().cycle();
        drip(&mut stream, b"HTTP/1.1 200 OK\r\n".iter().copied().chain(endless))
    });
    let output = context.onrush().words("-c2 -d1s --timeout 100ms").word(url(address)).run();
    assert_unanswered(&output);
    output.note("none of the 2 requests got a complete response: all were still in flight at the end");
    assert_eq!(output.socket_errors("timeout"), 2, "{output:?}");
}

fn unread_large_requests_do_not_outlast_runs(context: &Context) {
    let output = run_unread(context, "-c2 -d1s");
    output.note("none of the 2 requests got a complete response: all were still in flight at the end");
}

fn unread_large_requests_are_abandoned(context: &Context) {
    let output = run_unread(context, "-c2 -n4 --timeout 50ms --give-up 150ms");
    output.note("none of the 4 requests got a complete response: all were abandoned");
    assert_eq!(failures(&output, "no complete response within 50 ms"), [4], "{output:?}");
}

/// Sends large requests to a server that accepts and never reads.
fn run_unread(context: &Context, words: &str) -> ProgramOutput {
    let scratch = Scratch::new("unread");
    let address = server(|stream| {
        // Nothing waits for this thread, which outlasts the run.
        thread::sleep(GRACE + Duration::from_secs(5));
        drop(stream);
        Ok(())
    });
    let output = context.onrush().words(words).words("--body").word(large_body(&scratch)).word(url(address)).run();
    assert_unanswered(&output);
    output
}

/// The response is sent before the body is read, and the reset that follows may overtake it.
fn resets_after_early_responses_lose_no_request(context: &Context) {
    let scratch = Scratch::new("early-reset");
    let address = server(|stream| {
        let mut stream = BufReader::new(stream);
        read_head(&mut stream)?;
        stream.get_mut().write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        reset(stream.into_inner())
    });
    let output = context.onrush().words("-c2 -n10 --body").word(large_body(&scratch)).word(url(address)).run();
    let errors = output.socket_errors("read") + output.socket_errors("write");
    assert_eq!(output.requests() + errors, 10, "{output:?}");
}

fn urgent_data_is_not_part_of_responses(context: &Context) {
    let address = server(|stream| {
        let mut stream = BufReader::new(stream);
        loop {
            read_head(&mut stream)?;
            let stream = stream.get_mut();
            stream.write_all(&ANSWER[..30])?;
            send(&*stream, b"!", SendFlags::OOB)?;
            stream.write_all(&ANSWER[30..])?;
        }
    });
    let output = context.onrush().words("-c2 -n50").word(url(address)).run();
    assert_eq!((output.code, output.requests()), (0, 50), "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
}

/// An endless output: a start, and a repeated part.
type Flood = (&'static str, &'static str);

fn floods_end_with_runs_in_bounded_memory(context: &Context) {
    for flood in [
        ("HTTP/1.1 200 OK\r\n\r\n", "gigabytes at full speed; "),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", "gigabytes at full speed; "),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", "gigabytes at full speed; "),
        ("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    ] {
        let output = run_flooded(context, "-d500ms", flood);
        output.note("none of the 2 requests got a complete response: all were still in flight at the end");
        assert!(!output.stdout.contains(", 0.00B read"), "{flood:?}: {output:?}");
    }
}

fn floods_without_responses_are_named(context: &Context) {
    for (flood, why) in [
        (("", "\r\n"), "response head longer than 80 KiB"),
        (("HTTP/1.1 200 OK\r\n", "A: endless head\r\n"), "response head longer than 80 KiB"),
        (("HTTP/1.1 200 ", "endless reason "), "response head longer than 80 KiB"),
        (("", "\u{1b}]0;garbage\u{7}"), "not an HTTP response"),
    ] {
        let output = run_flooded(context, "-n4", flood);
        assert_eq!(failures(&output, why).iter().sum::<usize>(), 4, "{flood:?}: {output:?}");
        assert!(!output.stderr.contains('\u{1b}'), "{flood:?}: {output:?}");
    }
}

fn endless_heads_use_bounded_memory(context: &Context) {
    const CONNECTIONS: usize = 1_500;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("the soft limit can be raised");
    let head = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(79 * 1024));
    let address = server(move |stream| {
        let mut stream = BufReader::new(stream);
        read_head(&mut stream)?;
        stream.get_mut().write_all(head.as_bytes())?;
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let onrush = context.onrush().words("-t1 -d5s").word(format!("-c{CONNECTIONS}")).word(url(address));
    let (peak_kib, output) = watch(onrush.spawn());
    output.note("too many unfinished response heads");
    // All heads together are 119 MB.
    assert!((1..100_000).contains(&peak_kib), "{peak_kib} KiB: {output:?}");
}

/// Runs two connections against a server that floods every client once it has sent a request, and then waits for it to
/// leave. The run must use less memory than the flood.
fn run_flooded(context: &Context, end: &str, (beginning, repeated): Flood) -> ProgramOutput {
    let piece = repeated.repeat((1 << 18) / repeated.len());
    let address = server(move |stream| {
        let mut stream = BufReader::new(stream);
        read_head(&mut stream)?;
        stream.get_mut().write_all(beginning.as_bytes())?;
        for _ in 0..128 {
            stream.get_mut().write_all(piece.as_bytes())?;
        }
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let onrush = context.onrush().words("-t1 -c2 --io").word(context.backend).word(end);
    let (peak_kib, output) = watch(onrush.word(url(address)).spawn());
    assert!((1..60_000).contains(&peak_kib), "{peak_kib} KiB: {beginning:?} {repeated:?}");
    assert_unanswered(&output);
    output
}

/// Waits for the end of a program, and returns its peak memory in KiB.
pub fn watch(mut child: Child) -> (u64, ProgramOutput) {
    let (status, begun) = (format!("/proc/{}/status", child.id()), Instant::now());
    let mut peak_kib = 0;
    while child.try_wait().expect("a child can be waited for").is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().expect("a child can be ended");
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        // The kernel reports no memory for a program that has just ended.
        peak_kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak_kib);
        thread::sleep(Duration::from_millis(5));
    }
    let took = begun.elapsed();
    (peak_kib, ProgramOutput::new(child.wait_with_output().expect("the output can be read"), took))
}

/// The tables of `docs/robustness.md` are complete. `documents.rs` checks, like all other links, that their links lead
/// to existing tests.
fn robustness_matrix_and_tests_match(_: &Context) {
    let read = |path: &str| fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).expect("it is there");
    let document = read("docs/robustness.md");
    let tables =
        document.split("| The server … | what is counted and said | shown by |\n| --- | --- | --- |\n").skip(1);
    let rows: Vec<&str> = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with("| "))).collect();
    assert!(rows.len() > 30, "{} rows found", rows.len());
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        assert!(tests.starts_with("[`") && tests.ends_with(".rs)"), "no test is named in {row}");
    }
    let is_named = |name: &str, path: &str| document.contains(&format!("[`{name}`](../{path})"));
    for Case { name, .. } in cases().into_iter().filter(|case| case.name != "robustness_matrix_and_tests_match") {
        assert!(is_named(name, "tests/it/hostile.rs"), "{name} is not named");
    }
    for Case { name, .. } in http2_hostile::cases() {
        assert!(is_named(name, "tests/it/http2_hostile.rs"), "{name} is not named");
    }
    let in_virtual_time = "engine/src/tests/hostile.rs";
    for test in read(in_virtual_time).split("#[test]\nfn ").skip(1) {
        let name = test.split('(').next().unwrap_or_default();
        assert!(is_named(name, in_virtual_time), "{name} is not named");
    }
}

/// Checks that nothing was answered, that the run took no longer because of that, and that the exit code is right.
fn assert_unanswered(output: &ProgramOutput) {
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    assert!(output.took < GRACE, "{output:?}");
}

/// Failure counts in the notes that give this reason.
fn failures(output: &ProgramOutput, why: &str) -> Vec<usize> {
    let notes = output.stderr.lines().filter(|line| line.contains(&format!(" × {why}")));
    notes.map(|note| number_in(note, " ×") as usize).collect()
}

/// The number before these words.
fn number_in(text: &str, words: &str) -> u64 {
    let before = text.split(words).next().and_then(|before| before.split_whitespace().last());
    let number = before.and_then(|number| number.replace(',', "").parse().ok());
    number.unwrap_or_else(|| panic!("no number before {words:?} in {text:?}"))
}

/// Sends bytes one by one, a few milliseconds apart.
fn drip(stream: &mut TcpStream, bytes: impl Iterator<Item = u8>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    for byte in bytes {
        stream.write_all(&[byte])?;
        thread::sleep(Duration::from_millis(3));
    }
    Ok(())
}

/// Ends a connection with a reset instead of an end of the stream.
fn reset(stream: TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(&stream, Some(Duration::ZERO))?)
}

fn large_body(scratch: &Scratch) -> String {
    format!("@{}", scratch.file("body", vec![b'x'; LARGE]).display())
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/")
}
