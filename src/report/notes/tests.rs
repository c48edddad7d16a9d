//! Every sentence, said about the outcome that causes it.

use onrush_proto::Error;

use super::*;
use crate::plan::Dialect;
use crate::report::fixtures::{address, fail, flawless, outcome, plan};
use crate::run::Ports;
use crate::stats::{Cause, Counters, Negotiated, ProxyFailure};

/// What is said about an outcome of 10 seconds of `http://h/` on 2 threads and 10 connections.
fn said(outcome: &Outcome) -> Vec<String> {
    notes(&plan(Dialect::Native, "http://h/", 10, 2, 10), outcome).iter().map(Note::to_string).collect()
}

/// 100,000 answers after 1 ms each on 10 connections in 10 seconds: beyond doubt.
fn good() -> Outcome {
    flawless(100_000, 10)
}

/// A failure that happened from the beginning of the run to its end.
fn failing(times: u64, phase: Phase, cause: Cause, example: &str) -> Outcome {
    let mut outcome = good();
    for i in 0..times {
        let tenth = if i == 0 { 0 } else { 99 };
        outcome.totals.ledger.record(phase, cause, tenth, || example.chars().map(|byte| byte as u8).collect());
    }
    outcome
}

#[test]
fn a_good_run_needs_no_words() {
    assert_eq!(said(&good()), Vec::<String>::new());
}

#[test]
fn a_script_that_limits_the_load_or_saw_too_little_is_said() {
    let mut outcome = good();
    // 2 threads, 10 seconds.
    outcome.totals.counters.script_ns = 10_000_000_000;
    assert_eq!(said(&outcome), Vec::<String>::new(), "half of the time is not most of it");
    outcome.totals.counters.script_ns = 12_600_000_000;
    outcome.totals.counters.cut_bodies = 1;
    assert_eq!(
        said(&outcome),
        [
            "the threads spent 63 % of their time inside the script: it limits the load; do less in it, or add threads (-t)",
            "the script saw only the beginning of 1 body: all that are being read at one time share 256 MiB; use fewer \
             connections (-c), or do without the third parameter of response()"
        ]
    );
}

#[test]
fn too_few_ports_are_explained_by_who_closed_first() {
    let mut outcome = failing(2, Phase::Connect, Cause::Errno(99), "10.0.0.1:80");
    outcome.ports = Some(Ports { usable: 28_232, time_wait: 28_000 });
    let expected = |ours: &str| {
        format!(
            "connect: 2 × no local port left (EADDRNOTAVAIL), for instance 10.0.0.1:80: there are 28,232 between two \
             addresses, and 28,000 connections on this machine are in TIME_WAIT{ours}: keep connections alive, use more \
             source addresses (-b) or more addresses of the target, or widen net.ipv4.ip_local_port_range"
        )
    };
    assert_eq!(said(&outcome), [expected("")]);
    outcome.totals.counters.closed_first = 27_000;
    let ours = " (onrush closed 27,000 connections first, because the server left them open)";
    assert_eq!(said(&outcome), [expected(ours)]);
}

#[test]
fn what_a_proxy_did_is_said_with_the_way_out() {
    let table = [
        (
            ProxyFailure::Status(407),
            "",
            "the proxy wants a user and a password (status 407): write them in its URL: \
             --http-proxy http://user:password@host:port",
        ),
        (
            ProxyFailure::Answer(Error::NotHttp),
            "SSH\u{1b}",
            "the proxy's answer to the request for a tunnel cannot be read: not an HTTP response, for instance \
             \"SSH\\x1b\": is it the port of a proxy that speaks HTTP?",
        ),
        (
            ProxyFailure::Early,
            "",
            "the proxy answered before it had been asked for a tunnel: is it the port of a proxy that speaks HTTP?",
        ),
        (
            ProxyFailure::Status(418),
            "",
            "the proxy answered the request for a tunnel with status 418: its log may say why",
        ),
    ];
    for (failure, example, expected) in table {
        let outcome = failing(2, Phase::Connect, Cause::Proxy(failure), example);
        assert_eq!(said(&outcome), [format!("connect: 2 × {expected}")]);
    }
}

#[test]
fn resumed_sessions_are_said_where_handshakes_are_a_part_of_the_load() {
    let mut outcome = good();
    for answer in 0..1_002 {
        outcome.totals.handshakes.record(Negotiated::default(), answer > 1);
    }
    assert_eq!(said(&outcome), Vec::<String>::new(), "one for a hundred answers");
    outcome.totals.handshakes.record(Negotiated::default(), true);
    assert_eq!(
        said(&outcome),
        ["1,001 of 1,003 TLS handshakes resumed an earlier session, which costs less than a new client does: \
             --tls-resume off has none resumed"]
    );
}

#[test]
fn of_threads_that_never_came_back_it_is_not_said_that_they_did_nothing() {
    let mut outcome = outcome(10_000_000, Counters::default());
    assert_eq!(said(&outcome).len(), 2);
    outcome.stuck = vec![(1, "request"), (2, "request")];
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn failures_to_connect_are_said_with_a_way_out() {
    let there = "10.0.0.1:80";
    let table = [
        (Cause::Errno(111), "127.0.0.1:9", "2 connections refused by 127.0.0.1:9: nothing listens there"),
        (Cause::Errno(111), "", "2 connections refused: nothing listens there"),
        (Cause::Errno(24), "", "connect: 2 × too many open files (EMFILE): raise the limit with 'ulimit -n 44'"),
        (
            Cause::Errno(99),
            there,
            "connect: 2 × no local port left (EADDRNOTAVAIL), for instance 10.0.0.1:80: \
             a closed connection blocks its port for a minute: keep them alive or use more addresses",
        ),
        (
            Cause::Errno(110),
            there,
            "connect: 2 × no answer from the host (ETIMEDOUT), for instance 10.0.0.1:80: \
             a firewall drops the packets, or the address is wrong",
        ),
        (
            Cause::Unanswered,
            there,
            "connect: 2 × no answer to an attempt to connect, for instance 10.0.0.1:80: \
             a firewall drops the packets, or the address is wrong",
        ),
        (
            Cause::Errno(101),
            "[2001:db8::1]:80",
            "connect: 2 × no route to the network (ENETUNREACH), for instance [2001:db8::1]:80: \
             'ip route get 2001:db8::1' shows the way there",
        ),
        (
            Cause::Errno(113),
            "",
            "connect: 2 × no route to the host (EHOSTUNREACH): 'ip route' shows the ways there are",
        ),
        (
            Cause::Kernel(12),
            "",
            "connect: 2 × refused by the kernel of this machine: no memory left (ENOMEM): \
             this machine, or its control group, is short of memory",
        ),
    ];
    for (cause, example, sentence) in table {
        assert_eq!(said(&failing(2, Phase::Connect, cause, example)), [sentence]);
    }
}

#[test]
fn nobody_suspects_an_address_at_which_others_were_accepted() {
    let mut outcome = failing(2, Phase::Connect, Cause::Unanswered, "10.0.0.1:80");
    outcome.totals.counters.connects = 10;
    let expected = "connect: 2 × no answer to an attempt to connect, for instance 10.0.0.1:80: others were accepted, so \
                    the server's queue was full, or a firewall limits connections: see its listen backlog and \
                    net.core.somaxconn";
    assert_eq!(said(&outcome), [expected]);
}

#[test]
fn failures_to_send_and_to_read_are_said_with_a_way_out() {
    let table = [
        (
            Phase::Send,
            Cause::Errno(32),
            "write: 1,029 × connection already closed by the server (EPIPE): \
             the server's log or its limits on keep-alive may say why",
        ),
        (
            Phase::Send,
            Cause::Kernel(105),
            "write: 1,029 × refused by the kernel of this machine: no buffer space left (ENOBUFS): \
             this machine, or its control group, is short of memory",
        ),
        (
            Phase::Head,
            Cause::Errno(104),
            "read: 1,029 × connection reset by the server (ECONNRESET): \
             the server's log or its limits on connections may say why",
        ),
        (
            Phase::Body,
            Cause::Errno(110),
            "read: 1,029 × no answer from the host (ETIMEDOUT): the network or the host went away",
        ),
        (
            Phase::Timeout,
            Cause::Late,
            "timeout: 1,029 × no complete answer within 2s: --timeout sets another threshold",
        ),
    ];
    for (phase, cause, sentence) in table {
        assert_eq!(said(&failing(1_029, phase, cause, "")), [sentence]);
    }
}

#[test]
fn failures_come_in_the_order_of_their_phases_and_the_most_frequent_first() {
    let failures = [
        (3, Phase::Timeout, Cause::Late),
        (1, Phase::Head, Cause::Errno(104)),
        (2, Phase::Head, Cause::Errno(32)),
        (2, Phase::Head, Cause::Errno(103)),
        (1, Phase::Connect, Cause::Errno(111)),
    ];
    let order = |failures: &[(u64, Phase, Cause)]| {
        let mut outcome = good();
        failures.iter().for_each(|&(times, phase, cause)| fail(&mut outcome, times, phase, cause));
        let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let rows = notes(&plan, &outcome).into_iter().filter_map(|note| match note {
            Note::Failure(failure) => Some((failure.row.count, failure.row.phase, failure.row.cause)),
            _ => None,
        });
        rows.collect::<Vec<_>>()
    };
    let sorted = [failures[4], failures[2], failures[3], failures[1], failures[0]];
    assert_eq!(order(&failures), sorted);
    let reversed: Vec<_> = failures.iter().copied().rev().collect();
    assert_eq!(order(&reversed), sorted);
}

#[test]
fn broken_answers_are_said_with_an_example() {
    let table = [
        (Error::ClosedBeforeResponse, "", "read: 28 × closed by the server before a response began"),
        (
            Error::ClosedInBody,
            "",
            "read: 28 × closed by the server inside a response body: the server's log may say why",
        ),
        (
            Error::NotHttp,
            "\x16\x03\u{ff}",
            "read: 28 × not an HTTP response, for instance \"\\x16\\x03\\xff\": \
             is it an HTTP port?",
        ),
        (
            Error::NotHttp,
            "\u{0}\u{ff}",
            "read: 28 × not an HTTP response, for instance \"\\x00\\xff\": is it an HTTP port?",
        ),
        (Error::Length, "-5", "read: 28 × bad Content-Length, for instance \"-5\": --once shows an answer in full"),
    ];
    for (error, example, sentence) in table {
        assert_eq!(said(&failing(28, Phase::Head, Cause::Protocol(error), example)), [sentence]);
    }
}

#[test]
fn what_did_not_last_the_whole_run_is_said_with_its_time() {
    let table = [
        (0, 99, "2 connections refused by 127.0.0.1:9: nothing listens there"),
        (10, 24, "2 connections refused by 127.0.0.1:9 from 1.0 to 2.4 s: nothing listened there"),
        (0, 98, "2 connections refused by 127.0.0.1:9 from 0.0 to 9.8 s: nothing listened there"),
        (4, 99, "2 connections refused by 127.0.0.1:9 from 0.4 to 9.9 s: nothing listened there"),
        (4, 4, "2 connections refused by 127.0.0.1:9 at 0.4 s: nothing listened there"),
    ];
    for (first, last, sentence) in table {
        let mut outcome = good();
        for tenth in [first, last] {
            outcome.totals.ledger.record(Phase::Connect, Cause::Errno(111), tenth, || b"127.0.0.1:9".to_vec());
        }
        assert_eq!(said(&outcome), [sentence]);
    }
}

#[test]
fn one_of_a_kind_is_said_in_the_singular() {
    let outcome = failing(1, Phase::Connect, Cause::Errno(111), "127.0.0.1:9");
    assert_eq!(said(&outcome), ["1 connection refused by 127.0.0.1:9 at 0.0 s: nothing listened there"]);
}

#[test]
fn statuses_in_the_ledger_are_not_said_twice() {
    let mut outcome = good();
    fail(&mut outcome, 5, Phase::Status, Cause::Status(503));
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn connections_that_never_lived_are_counted_with_the_reason() {
    let mut outcome = flawless(100_000, 10);
    outcome.totals.counters.slots_opened = 7;
    assert_eq!(said(&outcome), ["only 7 of 10 connections lived: the run ended before the others were open"]);
    outcome.descriptors = Some(Shortage { needed: 2_060, hard: 1_024 });
    let files = "1,024 open files are allowed, 2,060 needed; 'sudo prlimit --pid $$ --nofile=2060' allows them";
    assert_eq!(said(&outcome), [format!("only 7 of 10 connections lived: {files}")]);
    fail(&mut outcome, 3, Phase::Connect, Cause::Errno(24));
    assert!(said(&outcome)[1].ends_with("too many open files (EMFILE) at 0.0 s"), "{:?}", said(&outcome));
    outcome.descriptors = None;
    assert_eq!(said(&outcome)[0], "only 7 of 10 connections lived");
    assert!(said(&outcome)[1].ends_with("raise the limit with 'ulimit -n 44'"), "{:?}", said(&outcome));
    outcome.totals.counters.slots_opened = 0;
    assert_eq!(said(&outcome)[0], "none of 10 connections lived");
}

#[test]
fn connections_that_no_request_needed_are_not_missed() {
    let mut outcome = flawless(100_000, 10);
    outcome.totals.counters.slots_opened = 7;
    outcome.ended = Ended::Requests;
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn requests_without_an_answer_are_said_with_their_share() {
    let mut outcome = good();
    let counters = &mut outcome.totals.counters;
    (counters.started, counters.abandoned, counters.open_at_end, counters.open_late_at_end) = (101_000, 12, 10, 8);
    counters.failed = 978;
    let censored = outcome.totals.censored.get_or_insert_default();
    [4_000_000, 31_200_000_000].into_iter().for_each(|age| censored.record(age));
    let sentence = "0.99 % of 101,000 requests got no answer: \
                    978 failed, 12 abandoned, 8 still open at the end (after up to 31.20s)";
    assert_eq!(said(&outcome), [sentence]);
}

#[test]
fn abandoned_requests_are_said_with_how_long_they_lasted() {
    let mut outcome = good();
    outcome.totals.counters.started += 2;
    outcome.totals.counters.abandoned = 2;
    let censored = outcome.totals.censored.get_or_insert_default();
    [30_000_000_000, 31_200_000_000].into_iter().for_each(|age| censored.record(age));
    assert_eq!(said(&outcome), ["0.00 % of 100,002 requests got no answer: 2 abandoned (after 30.00s to 31.20s)"]);
}

#[test]
fn requests_that_are_open_at_the_end_and_not_late_are_nothing_unusual() {
    let mut outcome = good();
    outcome.totals.counters.started += 10;
    outcome.totals.counters.open_at_end = 10;
    outcome.totals.censored.get_or_insert_default().record(50_000);
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn requests_that_wait_far_longer_than_any_answer_took_are_said() {
    let mut outcome = good();
    outcome.totals.counters.started += 10;
    outcome.totals.counters.open_at_end = 10;
    let censored = outcome.totals.censored.get_or_insert_default();
    censored.record_many(900_000, 3);
    censored.record_many(1_900_000_000, 7);
    let sentence = "0.01 % of 100,010 requests got no answer: 7 still open at the end (after up to 1.90s)";
    assert_eq!(said(&outcome), [sentence]);
}

#[test]
fn a_run_without_any_answer_says_what_became_of_the_requests() {
    let counters = Counters { started: 12, failed: 2, open_at_end: 10, slots_opened: 10, ..Counters::default() };
    let mut silent = outcome(10_000_000, counters);
    let censored = silent.totals.censored.get_or_insert_default();
    [9_970_000_000, 9_980_000_000].into_iter().for_each(|age| censored.record(age));
    let sentence = "nothing was answered: of 12 requests 2 failed, 10 still open at the end (after 9.97s to 9.98s)";
    assert_eq!(said(&silent), [sentence]);
    let unsent = outcome(10_000_000, Counters { slots_opened: 10, ..Counters::default() });
    assert_eq!(said(&unsent), ["nothing was answered: no request could be sent"]);
}

/// 100,000 answers with these statuses.
fn answering(statuses: &[(u16, u64)], location: Option<&str>) -> Outcome {
    let mut outcome = good();
    outcome.totals.statuses.clear();
    for &(status, times) in statuses {
        (0..times).for_each(|_| outcome.totals.statuses.record(status));
    }
    outcome.totals.location = location.map(str::to_owned);
    outcome
}

#[test]
fn statuses_are_counted_when_a_class_beside_2xx_exceeds_a_hundredth() {
    assert_eq!(said(&answering(&[(200, 99_000), (503, 1_000)], None)), Vec::<String>::new());
    let sentence = "of 100,000 answers: 98,999 × 200, 1,001 × 503";
    assert_eq!(said(&answering(&[(200, 98_999), (503, 1_001)], None)), [sentence]);
    let sentence = "of 100,000 answers: 90,000 × 404, 9,000 × 200, 600 × 500, 400 × 502";
    assert_eq!(said(&answering(&[(404, 90_000), (200, 9_000), (500, 600), (502, 400)], None)), [sentence]);
    let many: Vec<(u16, u64)> = (400..410).map(|status| (status, 10_000)).collect();
    let sentence = "of 100,000 answers: 10,000 × 400, 10,000 × 401, 10,000 × 402, 10,000 × 403, 10,000 × 404, \
                    10,000 × 405, 40,000 × others";
    assert_eq!(said(&answering(&many, None)), [sentence]);
}

#[test]
fn a_measured_redirect_is_said_with_its_destination() {
    let all = answering(&[(301, 100_000)], Some("https://h/\x1b[2J"));
    assert_eq!(said(&all), ["all 100,000 answers were 301 to https://h/\\x1b[2J: you measured the redirect"]);
    let some = answering(&[(200, 60_000), (302, 40_000)], Some("/login"));
    assert_eq!(said(&some), ["of 100,000 answers: 60,000 × 200, 40,000 × 302; a redirect leads to /login"]);
    let none = answering(&[(304, 100_000)], None);
    assert_eq!(said(&none), ["all 100,000 answers were 304: --once shows one in full"]);
    let broken = answering(&[(500, 100_000)], None);
    assert_eq!(said(&broken), ["all 100,000 answers were 500: --once shows one in full"]);
}

#[test]
fn an_address_that_was_left_out_is_named_with_those_that_were_not() {
    let mut outcome = good();
    outcome.dropped = vec![(address("[::1]:8080"), 111)];
    let sentence =
        "[::1]:8080 was left out: connection refused (ECONNREFUSED) at the start; the load went to 127.0.0.1:8080";
    assert_eq!(said(&outcome), [sentence]);
}

#[test]
fn an_early_end_is_said_with_its_time() {
    let mut outcome = good();
    outcome.ended = Ended::Signal;
    assert_eq!(said(&outcome), ["ended by a signal after 10.00s: the report covers only that time"]);
    outcome.ended = Ended::StayedAway;
    outcome.totals.counters.started = 100_000;
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.stop.requests = Some(1_000_000);
    let sentence = "the target stayed away for 30s: the run ended after 100,000 of 1,000,000 requests";
    assert_eq!(notes(&plan, &outcome)[0].to_string(), sentence);
}

#[test]
fn latencies_beyond_an_hour_are_counted() {
    let mut outcome = good();
    outcome.totals.latency.record_many(u64::MAX, 3);
    assert_eq!(said(&outcome)[0], "latencies longer than an hour: 3, recorded as one hour");
}

#[test]
fn wrks_mean_is_said_once_when_it_would_differ_by_a_fifth() {
    // 100 us apart: a stall of 350 us makes a mean of 80 us, and wrk would add 250 us and 150 us.
    let counters = Counters { started: 10, completed: 10, batches: 10, slots_opened: 1, ..Counters::default() };
    let mut outcome = outcome(1_000, counters);
    outcome.totals.latency.record_many(50_000, 9);
    outcome.totals.latency.record(350_000);
    let said = |dialect| notes(&plan(dialect, "http://h/", 1, 1, 1), &outcome);
    let sentence = "latency as measured; wrk would print Avg 100.00us: see docs/measuring.md";
    assert_eq!(said(Dialect::Native).iter().map(Note::to_string).collect::<Vec<_>>(), [sentence]);
    assert_eq!(said(Dialect::Wrk), []);
}

#[test]
fn notes_are_printed_in_colour_only_if_asked() {
    let notes = [Note::Clamped { count: 1 }, Note::Clamped { count: 2 }];
    let printed = |colour| {
        let mut out = Vec::new();
        print_notes(&notes, colour, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let plain = "note: latencies longer than an hour: 1, recorded as one hour
note: latencies longer than an hour: 2, recorded as one hour
";
    assert_eq!(printed(false), plain);
    assert_eq!(printed(true), plain.replace("note:", "\x1b[1;33mnote:\x1b[0m"));
}
