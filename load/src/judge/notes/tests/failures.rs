//! The notes on failures.

use onrush_proto::Code;

use super::*;
use crate::run::Ports;

/// A failure that occurred throughout the run.
fn failing(times: u64, phase: Phase, cause: Cause, example: &str) -> Outcome {
    let mut outcome = good();
    for i in 0..times {
        let tenth = if i == 0 { 0 } else { 99 };
        outcome.totals.ledger.record(phase, cause, tenth, || example.chars().map(|byte| byte as u8).collect());
    }
    outcome
}

#[test]
fn port_shortages_name_who_closed_first() {
    let mut outcome = failing(2, Phase::Connect, Cause::Errno(99), "10.0.0.1:80");
    outcome.ports = Some(Ports { usable: 28_232, time_wait: 28_000 });
    assert!(!said(&outcome)[0].contains("had to close"));
    outcome.totals.counters.closed_first = 27_000;
    let sentence = "connect: 2 × no local port left (EADDRNOTAVAIL); there are 28,232 per pair of addresses, and 28,000 \
                    connections on this machine are in TIME_WAIT (onrush had to close 27,000 connections itself, so the \
                    TIME_WAIT state is here): keep connections alive, use more source addresses (-b) or more addresses of \
                    the target, or widen net.ipv4.ip_local_port_range";
    assert_eq!(said(&outcome), [sentence]);
}

#[test]
fn proxy_failures_have_remedies() {
    let table = [
        (ProxyFailure::Status(407), ""),
        (ProxyFailure::Answer(Error::NotHttp), "SSH\u{1b}"),
        (ProxyFailure::Early, ""),
        (ProxyFailure::Status(418), ""),
    ];
    let sentences = "\
the proxy requires a user and a password (status 407); put both in the proxy URL: --http-proxy http://user:password@host:port
the proxy's response to CONNECT cannot be read: not an HTTP response, received: \"SSH\\x1b\"; is it the port of an HTTP proxy?
the proxy responded before it received CONNECT; is it the port of an HTTP proxy?
the proxy responded to CONNECT with status 418; the proxy's log may say why
";
    assert_eq!(sentences.lines().count(), table.len());
    for ((failure, example), expected) in table.into_iter().zip(sentences.lines()) {
        let outcome = failing(2, Phase::Connect, Cause::Proxy(failure), example);
        assert_eq!(said(&outcome), [format!("connect: 2 × {expected}")]);
    }
}

#[test]
fn missing_descriptors_for_growth_are_noted() {
    let mut outcome = failing(2, Phase::Connect, Cause::Errno(24), "10.0.0.1:80");
    outcome.totals.counters.slots_opened = 10;
    outcome.descriptors = Some(Shortage { needed: 1_036, hard: 64 });
    let words =
        "the limit is 64 open files, but 1,036 are needed; 'sudo prlimit --pid $$ --nofile=1036' raises the limit";
    assert_eq!(said(&outcome), [format!("connect: 2 × too many open files (EMFILE); {words}")]);
}

#[test]
fn connect_failures_have_remedies() {
    let there = "10.0.0.1:80";
    let table = [
        (Cause::Errno(111), "127.0.0.1:9"),
        (Cause::Errno(24), there),
        (Cause::Errno(99), there),
        (Cause::Errno(110), there),
        (Cause::Errno(101), "[2001:db8::1]:80"),
        (Cause::Errno(113), ""),
        (Cause::Kernel(12), ""),
    ];
    let sentences = "\
2 connections refused by 127.0.0.1:9: nothing listens there
connect: 2 × too many open files (EMFILE); raise the limit with 'ulimit -n 46'
connect: 2 × no local port left (EADDRNOTAVAIL); a closed connection keeps its port for a minute: keep connections alive or use more addresses
connect: 2 × no response from the host (ETIMEDOUT), seen with 10.0.0.1:80; a firewall drops the packets, or the address is wrong
connect: 2 × no route to the network (ENETUNREACH), seen with [2001:db8::1]:80; 'ip route get 2001:db8::1' shows the route
connect: 2 × no route to the host (EHOSTUNREACH); 'ip route' shows the routes
connect: 2 × refused by this machine's kernel: out of memory (ENOMEM); this machine or its control group is short of memory
";
    assert_eq!(sentences.lines().count(), table.len());
    for ((cause, example), sentence) in table.into_iter().zip(sentences.lines()) {
        assert_eq!(said(&failing(2, Phase::Connect, cause, example)), [sentence]);
    }
}

#[test]
fn accepting_addresses_are_not_suspected() {
    let mut outcome = failing(2, Phase::Connect, Cause::Unanswered, "10.0.0.1:80");
    outcome.totals.counters.connects = 10;
    let expected = "connect: 2 × no response to a connection attempt, seen with 10.0.0.1:80; others were accepted, so \
                    either the server's accept queue was full (see its listen backlog and net.core.somaxconn) or a firewall \
                    limits connections";
    assert_eq!(said(&outcome), [expected]);
}

#[test]
fn send_and_read_failures_have_remedies() {
    let table = [
        (Phase::Send, Cause::Errno(32)),
        (Phase::Head, Cause::Errno(104)),
        (Phase::Body, Cause::Errno(110)),
        (Phase::Timeout, Cause::Late),
        (Phase::Timeout, Cause::LateInHead),
        (Phase::Timeout, Cause::LateToClose),
    ];
    let sentences = "\
write: 1,029 × connection already closed by the server (EPIPE); the server's log or its limits on keep-alive may say why
read: 1,029 × connection reset by the server (ECONNRESET); the server's log or its limits on connections may say why
read: 1,029 × no response from the host (ETIMEDOUT); the host, or the path to it, stopped responding
timeout: 1,029 × no complete response within 2 s; change the limit with --timeout
timeout: 1,029 × no end of the response's head within 2 s; an empty line ends the head, after its last field
timeout: 1,029 × no end of the response within 2 s; it lasts until the server closes the connection; the response has neither Content-Length nor Transfer-Encoding: chunked
";
    assert_eq!(sentences.lines().count(), table.len());
    for ((phase, cause), sentence) in table.into_iter().zip(sentences.lines()) {
        assert_eq!(said(&failing(1_029, phase, cause, "")), [sentence]);
    }
}

#[test]
fn frequent_failures_come_first() {
    let failures = [
        (3, Phase::Timeout, Cause::Late),
        (1, Phase::Head, Cause::Errno(104)),
        (2, Phase::Head, Cause::Errno(32)),
        (2, Phase::Head, Cause::Errno(103)),
        (1, Phase::Connect, Cause::Errno(111)),
    ];
    let order = |failures: &[(u64, Phase, Cause)]| {
        let mut outcome = good();
        failures.iter().for_each(|&(times, phase, cause)| record_failures(&mut outcome, times, phase, cause));
        let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let rows = notes_of(&plan, &outcome).into_iter().filter(|note| note.id == NoteId::Failure);
        rows.map(|note| note.text).collect::<Vec<_>>()
    };
    let sorted = order(&failures);
    let beginnings =
        ["timeout: 3", "read: 2 × connection already", "read: 2 × connection aborted", "1 conn", "read: 1"];
    assert_eq!(sorted.len(), beginnings.len());
    assert!(sorted.iter().zip(beginnings).all(|(note, beginning)| note.starts_with(beginning)), "{sorted:?}");
    let reversed: Vec<_> = failures.iter().copied().rev().collect();
    assert_eq!(order(&reversed), sorted);
}

#[test]
fn broken_responses_are_noted_with_an_example() {
    let table = [
        (Error::ClosedBeforeResponse, ""),
        (Error::ClosedInBody, ""),
        (Error::NotHttp, "\x16\x03\u{ff}"),
        (Error::Reset(Code::HTTP_1_1_REQUIRED), ""),
        (Error::GoAway(Code::PROTOCOL_ERROR), "bad \u{1b}preface"),
        (Error::SpeaksTls, ""),
        (Error::Reset(Code::REFUSED_STREAM), ""),
        (Error::Length, "-5"),
    ];
    let sentences = "\
read: 28 × closed by the server before a response began
read: 28 × closed by the server inside a response body; the server's log may say why
read: 28 × not an HTTP response, received: \"\\x16\\x03\\xff\"; the server's log may say why
read: 28 × reset by the server (HTTP_1_1_REQUIRED); the server wants this request in HTTP/1.1: leave out --http2
read: 28 × ended by the server (PROTOCOL_ERROR), received: \"bad \\x1bpreface\"
read: 28 × the server speaks TLS; other requests were answered: is one of several servers at this address set up differently?
read: 28 × reset by the server (REFUSED_STREAM); fewer --streams or a lower rate (-R) may help
read: 28 × bad Content-Length, received: \"-5\"; --once shows a response in full
";
    assert_eq!(sentences.lines().count(), table.len());
    for ((error, example), sentence) in table.into_iter().zip(sentences.lines()) {
        assert_eq!(said(&failing(28, Phase::Head, Cause::Protocol(error), example)), [sentence]);
    }
}

#[test]
fn temporary_failures_have_their_time() {
    let table = [
        (0, 99, None),
        (10, 24, Some("first 1.0 s, last 2.4 s into the run")),
        (0, 98, Some("first 0.0 s, last 9.8 s into the run")),
        (4, 99, Some("first 0.4 s, last 9.9 s into the run")),
        (4, 4, Some("0.4 s into the run")),
    ];
    for (first, last, times) in table {
        let mut outcome = good();
        for tenth in [first, last] {
            outcome.totals.ledger.record(Phase::Connect, Cause::Errno(111), tenth, || b"127.0.0.1:9".to_vec());
        }
        let note = said(&outcome).concat();
        let said = note.split_once('(').and_then(|(_, rest)| Some(rest.split_once("): nothing listened there")?.0));
        assert_eq!(said, times, "{note}");
    }
}

#[test]
fn single_failures_are_singular() {
    let outcome = failing(1, Phase::Connect, Cause::Errno(111), "127.0.0.1:9");
    assert_eq!(said(&outcome), ["1 connection refused by 127.0.0.1:9 (0.0 s into the run): nothing listened there"]);
}

#[test]
fn ledger_statuses_are_noted_once() {
    let mut outcome = good();
    record_failures(&mut outcome, 5, Phase::Status, Cause::Status(503));
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn other_protocols_name_what_to_write() {
    let settings = "\0\0\0\x04\0\0\0\0\0";
    let goaway = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    let http1 = "leave out --http2, or write https:// if the port speaks TLS";
    for (error, example, expects_tls, advice) in [
        (Error::AnsweredInHttp1, "HTTP/1.1 400", false, http1),
        (Error::AnsweredInHttp1, "HTTP/1.1 400", true, "the server expects TLS at this port; write https://"),
        (Error::SpeaksTls, "\x15\x03", false, "write https://"),
        (Error::NotHttp, settings, false, "the server speaks HTTP/2: add --http2"),
        (Error::EarlyBytes, goaway, false, "the server speaks HTTP/2: add --http2"),
        (Error::NotHttp, "SSH-2.0-OpenSSH_9.2", false, "does the port speak HTTP?"),
    ] {
        let mut outcome = failing(28, Phase::Head, Cause::Protocol(error), example);
        (outcome.totals.counters.completed, outcome.totals.expects_tls) = (0, expects_tls);
        let note = said(&outcome).into_iter().find(|note| note.starts_with("read: 28 × ")).unwrap_or_default();
        assert!(note.ends_with(&format!("\"; {advice}")), "{note}");
    }
}

#[test]
fn silent_servers_may_expect_tls() {
    let nothing = |phase, cause| {
        let mut outcome = failing(28, phase, cause, "");
        outcome.totals.counters.completed = 0;
        said(&outcome).into_iter().find(|note| note.contains(": 28 × ")).unwrap_or_default()
    };
    let closed = Cause::Protocol(Error::ClosedBeforeResponse);
    for (phase, cause) in [(Phase::Head, Cause::Errno(104)), (Phase::Send, Cause::Errno(32)), (Phase::Head, closed)] {
        let note = nothing(phase, cause);
        let said = "; the server sent nothing at all: try https:// if the port expects TLS, or --http2 if it speaks \
                    nothing else";
        assert!(note.ends_with(said), "{note}");
    }
    assert!(!nothing(Phase::Head, Cause::Errno(110)).contains("https"));
}
