//! Ports that speak another protocol, or another version of HTTP. The run ends at once if that is certain; otherwise
//! the protocol is named.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::harness::{Context, ProgramOutput, cases};
use crate::peers::{read_head, server};

cases! {
    targets_of_other_protocols_end_runs;
    ports_expecting_tls_end_runs;
    request_runs_end_at_once;
    searches_end_at_once;
    warm_ups_end_at_once;
    imitated_tools_continue;
    one_good_response_keeps_runs_alive;
    one_of_several_servers_is_named;
    expected_statuses_end_nothing;
    silent_ports_are_named_with_advice;
}

const ALERT: &[u8] = b"\x15\x03\x01\x00\x02\x02\x46";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const GOAWAY: &[u8] = b"\0\0\x13\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01bad preface";
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const BAD: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
/// nginx's response to plain text on a TLS port.
const EXPECTS_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 45\r\n\r\n\
                             The plain HTTP request was sent to HTTPS port";

/// A server that answers the first bytes on each connection with these bytes.
fn answering(answer: &'static [u8]) -> SocketAddr {
    server(move |mut stream| {
        let _ = stream.read(&mut [0; 4096])?;
        stream.write_all(answer)?;
        // Unread bytes must not reset the connection before the answer has been read.
        io::copy(&mut stream, &mut io::sink()).map(drop)
    })
}

/// Runs for a minute, unless the run ends early.
fn run(context: &Context, words: &str, address: SocketAddr) -> ProgramOutput {
    context.onrush().words("-c4 -d60s").words(words).word(format!("http://{address}/")).run()
}

fn targets_of_other_protocols_end_runs(context: &Context) {
    for (answer, words, spoken, said) in [
        (ALERT, "", "HTTP/1.1", "the server speaks TLS (\"\\x15\\x03\\x01\\x00\\x02\\x02F\"); write https://"),
        (SETTINGS, "-R50", "HTTP/1.1", "); the server speaks HTTP/2: add --http2"),
        (GOAWAY, "", "HTTP/1.1", "); the server speaks HTTP/2: add --http2"),
        (
            b"<html>hello</html>\n",
            "",
            "HTTP/1.1",
            "not an HTTP response (\"<html>hello</html>\\x0a\"); does the port speak HTTP?",
        ),
        (b"RTSP/1.0 400 Bad Request\r\n\r\n", "-t1 -c1", "HTTP/1.1", "; does the port speak HTTP?"),
        (BAD, "--http2", "HTTP/2", "; leave out --http2, or write https:// if the port speaks TLS"),
        (b"<!DOCTYPE HTML>\n", "--http2", "HTTP/2", "; leave out --http2, or write https:// if the port speaks TLS"),
        (EXPECTS_TLS, "--http2", "HTTP/2", "; the server expects TLS at this port; write https://"),
        (ALERT, "--http2", "HTTP/2", "; write https://"),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "--http2",
            "HTTP/2",
            "not an HTTP response (\"SSH-2.0-OpenSSH_9.2\\x0d\\x0a\"); does the port speak HTTP?",
        ),
    ] {
        let address = answering(answer);
        let output = run(context, words, address);
        assert_refused_with(&output, &format!("onrush: {address} does not answer in {spoken}: "), said);
    }
}

fn ports_expecting_tls_end_runs(context: &Context) {
    let address = answering(EXPECTS_TLS);
    let begins = format!("onrush: {address} answers every request with status 400: ");
    assert_refused_with(&run(context, "", address), &begins, ": the server expects TLS at this port; write https://");
}

fn request_runs_end_at_once(context: &Context) {
    let address = answering(ALERT);
    let output = context.onrush().words("-c2 -n1000000").word(format!("http://{address}/")).run();
    assert_refused_with(&output, &format!("onrush: {address} does not answer in HTTP/1.1: "), "; write https://");
}

fn searches_end_at_once(context: &Context) {
    let address = answering(ALERT);
    let output = context.onrush().words("--find-max p99<10ms -R100 -d60s").word(format!("http://{address}/")).run();
    assert_eq!(output.code, 2, "{output:?}");
    output.note(&format!("{address} does not answer in HTTP/1.1: the server speaks TLS"));
}

fn warm_ups_end_at_once(context: &Context) {
    let address = answering(ALERT);
    let output = run(context, "--warmup 60s", address);
    assert_refused_with(&output, &format!("onrush: {address} does not answer in HTTP/1.1: "), "; write https://");
}

fn imitated_tools_continue(context: &Context) {
    for answer in [ALERT, EXPECTS_TLS] {
        let output = context.called("wrk").words("-t1 -c2 -d1").word(format!("http://{}/", answering(answer))).run();
        assert_eq!(output.code, 0, "{output:?}");
        output.assert_standard();
    }
}

/// A server that serves its first connection, but slowly; all others get a TLS alert.
fn mixed() -> SocketAddr {
    let accepted = AtomicUsize::new(0);
    server(move |mut stream| {
        if accepted.fetch_add(1, Ordering::Relaxed) > 0 {
            let _ = stream.read(&mut [0; 4096])?;
            return stream.write_all(ALERT);
        }
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            read_head(&mut reader)?;
            thread::sleep(Duration::from_millis(700));
            stream.write_all(GOOD)?;
        }
    })
}

fn one_good_response_keeps_runs_alive(context: &Context) {
    let output = context.onrush().words("-t1 -c3 -d4s").word(format!("http://{}/", mixed())).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.requests() > 0 && output.socket_errors("read") > 5, "{output:?}");
}

fn one_of_several_servers_is_named(context: &Context) {
    let output = context.onrush().words("-t1 -c3 -d4s").word(format!("http://{}/", mixed())).run();
    let said = "; other requests were answered: is one of several servers at this address set up differently?";
    assert!(output.note("the server speaks TLS").ends_with(said), "{output:?}");
}

fn expected_statuses_end_nothing(context: &Context) {
    let url = format!("http://{}/", answering(EXPECTS_TLS));
    let output = context.onrush().words("-t1 -c2 -d1s --expect-status 400").word(&url).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.requests() > 5, "{output:?}");
}

fn silent_ports_are_named_with_advice(context: &Context) {
    let reset = |stream: TcpStream| set_socket_linger(&stream, Some(Duration::ZERO)).map_err(io::Error::from);
    let hang_up = |stream: TcpStream| {
        let _ = (&stream).read(&mut [0; 4096])?;
        Ok(())
    };
    for address in [server(reset), server(hang_up)] {
        for (words, said) in [
            (
                "",
                "the server sent nothing at all: try https:// if the port expects TLS, or --http2 if it speaks nothing else",
            ),
            (
                "--http2",
                "the server sent nothing at all: leave out --http2 if it speaks HTTP/1.1, or try https:// if the port expects TLS",
            ),
        ] {
            let output = context.onrush().words("-c2 -d1s").words(words).word(format!("http://{address}/")).run();
            assert_eq!(output.code, 5, "{output:?}");
            assert!(output.note("read: ").ends_with(said), "{output:?}");
            assert!(output.verdict.starts_with("the target sent nothing at all: "), "{output:?}");
        }
    }
}

fn assert_refused_with(output: &ProgramOutput, begins: &str, ends: &str) {
    assert_eq!(output.code, 2, "{output:?}");
    let line = output.stderr.lines().last().unwrap_or_default();
    assert!(line.starts_with(begins) && line.ends_with(ends), "{begins}{ends}: {output:?}");
    assert!(!output.stdout.contains("requests in"), "{output:?}");
}
