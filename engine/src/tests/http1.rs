//! HTTP/1.1 in virtual time, where every result is known in advance.

use onrush_proto::http1::encode;
use onrush_stats::{Cause, Phase};

use super::*;
use onrush_proto::Error;

#[test]
fn server_stall_is_one_long_latency() {
    let minute = Config { duration_ns: Some(60 * SECOND), ..config() };
    let ran = run_http(minute, "connect_us = 0.0\n[[stall]]\nfrom_s = 20.0\nfor_s = 10.0");
    // Sequential requests of 1 ms each. The request sent at 19.999 s would end at 20 s and ends at 30 s instead.
    let expected_long = 10_001 * MS;
    let latency = &ran.totals.latency;
    assert_eq!(latency.count(), 19_999 + 1 + 30_000);
    assert_eq!((latency.min(), latency.max()), (Some(MS), Some(expected_long)));
    let mean = (49_999.0 * MS as f64 + expected_long as f64) / 50_000.0;
    assert_eq!(latency.mean(), Some(mean));
    let short_and_long: Vec<u64> = latency.values().map(|(_, count)| count).collect();
    assert_eq!(short_and_long, [49_999, 1]);
    assert_eq!(ran.totals.counters.late, 1, "the long one passed the timeout of 2 s");
    assert_eq!(ran.end.elapsed_ns, 60 * SECOND);
    assert_conserved(&ran.totals);
}

#[test]
fn ten_connections_stall_together() {
    let minute = Config { max_inflight: 10, duration_ns: Some(60 * SECOND), ..config() };
    let ran = run_http(minute, "connect_us = 0.0\n[[stall]]\nfrom_s = 20.0\nfor_s = 10.0");
    let counts: Vec<u64> = ran.totals.latency.values().map(|(_, count)| count).collect();
    assert_eq!(counts, [10 * 49_999, 10]);
    assert_eq!(ran.totals.counters.late, 10);
}

#[test]
fn idle_times_are_zero_rates_only_natively() {
    let scenario = "connect_us = 0.0\n[[stall]]\nfrom_s = 0.5\nfor_s = 0.4";
    let native = run_http(config(), scenario);
    assert_eq!(native.totals.rates.count(), 10);
    assert_eq!(native.totals.rates.min(), Some(0));
    let rules = Rules { scale: Scale::WRK, ..config().rules };
    let compat = run_http(Config { rules, ..config() }, scenario);
    assert_eq!(compat.totals.rates.count(), 7, "five before the stall, none within, two after it");
    assert!(compat.totals.rates.min() > Some(0));
}

#[test]
fn native_runs_under_a_millisecond_have_rates() {
    let one = |compat| {
        let rules = Rules { scale: scale(compat), ..config().rules };
        let ran = run_http(Config { rules, requests: Some(1), duration_ns: None, ..config() }, SHORT);
        assert_eq!(ran.end.elapsed_ns, 400_000);
        ran.totals.rates.values().collect::<Vec<_>>()
    };
    const SHORT: &str = "connect_us = 0.0\nlatency_us = 400.0";
    assert_eq!((one(false), one(true)), (vec![(2_500, 1)], vec![]));
}

#[test]
fn half_last_intervals_have_a_rate() {
    for (duration_ms, compat, expected) in [(149, false, 1), (150, false, 2), (150, true, 1), (49, false, 1)] {
        let rules = Rules { scale: scale(compat), ..config().rules };
        let ran = run_http(Config { rules, duration_ns: Some(duration_ms * MS), ..config() }, "connect_us = 0.0");
        assert_eq!(ran.totals.rates.values().collect::<Vec<_>>(), [(1_000, expected)], "{duration_ms} ms, {compat}");
    }
}

#[test]
fn error_times_are_exact_to_a_tenth() {
    let rules = Rules { timeout_ns: Some(200 * MS), ..config().rules };
    let ran = run_http(Config { rules, ..config() }, "connect_us = 0.0\n[[stall]]\nfrom_s = 0.35\nfor_s = 10.0");
    let row = &ran.totals.ledger.rows()[0];
    assert_eq!((row.cause, row.first_s(), row.last_s()), (Cause::Late, 0.5, 0.5), "sent just before 0.35 s");
}

#[test]
fn request_limits_are_exact() {
    let limited = Config { max_inflight: 7, requests: Some(1000), duration_ns: None, ..config() };
    let ran = run_http(limited, "connect_us = 0.0");
    assert_eq!(ran.totals.counters.started, 1000);
    assert_eq!(ran.totals.counters.completed, 1000);
    assert_eq!(ran.end.elapsed_ns, 143 * MS, "1000 requests over 7 connections, 1 ms each");
}

#[test]
fn every_started_request_ends_exactly_once() {
    let scenario = "
        [[fault]]\nevery = 7\nwhat = 'reset'\nafter_bytes = 20
        [[fault]]\nevery = 11\nwhat = 'close'\nafter_bytes = 45
        [[fault]]\nevery = 13\nwhat = 'hang'
        [[fault]]\nevery = 17\nwhat = { answer = 'nonsense' }";
    let give_up_ns = Some(SECOND);
    let limited = Config { max_inflight: 5, requests: Some(500), duration_ns: None, give_up_ns, ..config() };
    let totals = run_http(limited, scenario).totals;
    assert_conserved(&totals);
    let counters = &totals.counters;
    assert_eq!((counters.started, counters.open_at_end), (500, 0));
    assert_eq!(counters.failed + counters.abandoned, 500 - counters.completed);
    // Of 500: 71 divisible by 7; 45 − 6 by 11 and not 7; 38 − 5 − 3 by 13 and neither; 29 − 4 − 2 − 2 by 17 only.
    let count = |phase, cause| {
        totals.ledger.rows().iter().find(|row| (row.phase, row.cause) == (phase, cause)).map(|row| row.count)
    };
    assert_eq!(count(Phase::Head, Cause::Errno(104)), Some(71));
    assert_eq!(count(Phase::Body, Cause::Protocol(Error::ClosedInBody)), Some(39));
    assert_eq!(counters.abandoned, 30);
    assert_eq!(count(Phase::Head, Cause::Protocol(Error::NotHttp)), Some(21));
}

#[test]
fn abandoning_a_request_abandons_those_behind() {
    let hanging: Scenario = toml::from_str("connect_us = 0.0\n[[fault]]\nevery = 1\nwhat = 'hang'").unwrap();
    let give_up_ns = Some(100 * MS);
    let pipelined = Config { depth: 4, requests: Some(8), duration_ns: None, give_up_ns, ..config() };
    let totals = run_on(pipelined, hanging.network(1), get(), http1(4)).totals;
    assert_eq!((totals.counters.abandoned, totals.counters.failed), (8, 0));
    let rows: Vec<_> = totals.ledger.rows().iter().map(|row| (row.phase, row.cause, row.count)).collect();
    assert_eq!((rows, totals.errors()), (vec![(Phase::Abandoned, Cause::GivenUp, 8)], 8));
    assert_conserved(&totals);
}

#[test]
fn unanswered_requests_time_out_then_are_abandoned() {
    let give_up = Config { duration_ns: Some(10 * SECOND), give_up_ns: Some(4 * SECOND), ..config() };
    let totals = run_http(give_up, "connect_us = 0.0\n[[fault]]\nevery = 1\nwhat = 'hang'").totals;
    // Sent at 0, 4 and 8 s: all three exceed 2 s (the third only reaches it at the end), two are abandoned.
    assert_eq!((totals.counters.started, totals.counters.abandoned), (3, 2));
    assert_eq!(totals.counters.late, 2);
    assert_eq!((totals.counters.open_at_end, totals.counters.open_late_at_end), (1, 0));
    let censored = totals.censored.as_ref().expect("three requests got no response");
    assert_eq!((censored.count(), censored.min(), censored.max()), (3, Some(2 * SECOND), Some(4 * SECOND)));
    assert_eq!((totals.ledger.totals().timeout, totals.ledger.totals().abandoned), (2, 2));
    assert_eq!((totals.counters.late_ended, totals.errors()), (2, 2), "each once");
    assert_eq!(totals.counters.completed, 0);
    assert_conserved(&totals);
}

#[test]
fn late_responses_keep_their_latency_natively() {
    let slow = Config { duration_ns: Some(9 * SECOND), give_up_ns: None, ..config() };
    let scenario = "connect_us = 0.0\nlatency_us = 2500000.0";
    let native = run_http(slow.clone(), scenario).totals;
    assert_eq!((native.counters.completed, native.counters.late), (3, 3));
    assert_eq!(native.errors(), 3);
    assert_eq!(native.latency.min(), Some(2_500 * MS));
    let rules = Rules { scale: Scale::WRK, ..slow.rules };
    let compat = run_http(Config { rules, ..slow }, scenario).totals;
    assert_eq!((compat.counters.completed, compat.counters.late), (3, 3));
    assert_eq!(compat.latency.count(), 0);
}

#[test]
fn refusing_servers_are_retried_ever_more_slowly() {
    let minute = Config { duration_ns: Some(60 * SECOND), ..config() };
    let ran = run_http(minute, "[[refuse]]\nfrom_s = 0.0\nfor_s = 100.0");
    // Doubling from 1 ms to 1 s takes about 1 s; then one per second, plus or minus a quarter.
    let refused = ran.totals.ledger.totals().connect;
    assert!((60..90).contains(&refused), "{refused}");
    assert!(ran.end.refusal.is_some());
}

#[test]
fn accept_and_reset_does_not_busy_loop() {
    let minute = Config { duration_ns: Some(60 * SECOND), ..config() };
    let ran = run_http(minute, "[[fault]]\nevery = 1\nwhat = 'reset'");
    assert!((60..90).contains(&ran.totals.counters.connects), "{}", ran.totals.counters.connects);
    let rules = Rules { scale: Scale::WRK, ..config().rules };
    let compat = run_http(Config { rules, ..config() }, "[[fault]]\nevery = 1\nwhat = 'reset'");
    assert!(compat.totals.counters.connects > 80, "at most 10 ms between two of them");
}

#[test]
fn request_runs_end_after_long_unreachability() {
    let limited = Config { requests: Some(10), duration_ns: None, patience_ns: 5 * SECOND, ..config() };
    let back = run_http(limited.clone(), "[[refuse]]\nfrom_s = 0.0\nfor_s = 3.0");
    assert_eq!(back.totals.counters.completed, 10, "refused connects use up no request");
    assert!(!back.end.stayed_away);
    let away = run_http(limited, "[[refuse]]\nfrom_s = 0.0\nfor_s = 60.0");
    assert!(away.end.stayed_away);
    assert_eq!(away.totals.counters.started, 0);
    assert!(away.end.elapsed_ns < 7 * SECOND);
}

#[test]
fn announced_closes_are_no_error() {
    let scenario = "connect_us = 1000.0\nclose = true\nanswer = \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let totals = run_http(config(), scenario).totals;
    assert_eq!(totals.counters.completed, 500, "connect and response take 1 ms each");
    assert!(totals.ledger.rows().is_empty());
}

#[test]
fn responses_ending_with_the_stream_succeed() {
    let scenario = "connect_us = 1000.0\nclose = true\nanswer = \"HTTP/1.1 200 OK\\r\\n\\r\\nto the end\"";
    let totals = run_http(config(), scenario).totals;
    assert_eq!((totals.counters.completed, totals.counters.connects), (500, 500));
    assert!(totals.ledger.rows().is_empty());
}

#[test]
fn response_counts_do_not_depend_on_splits() {
    let answer_bytes = Scenario::default().answer.len() as u64;
    for split in 1..=answer_bytes {
        let pieces = run_http(config(), &format!("connect_us = 0.0\nsplit = {split}")).totals;
        assert!(pieces.ledger.rows().is_empty(), "split {split}");
        let unfinished = pieces.counters.bytes_received - pieces.counters.completed * answer_bytes;
        assert!(unfinished < answer_bytes, "split {split}: {unfinished}");
    }
}

#[test]
fn resets_and_closes_at_every_byte_are_counted() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";
    for what in ["reset", "close"] {
        for after in 0..answer.len() {
            let scenario = format!("[[fault]]\nevery = 2\nwhat = '{what}'\nafter_bytes = {after}");
            let ten = Config { requests: Some(10), duration_ns: None, ..config() };
            let totals = run_http(ten, &scenario).totals;
            assert_eq!((totals.counters.completed, totals.counters.failed), (5, 5), "{what} after {after}");
            assert_eq!(totals.ledger.totals().read, 5, "{what} after {after}");
            let body = answer.len() - 13;
            let phase = if after < body { Phase::Head } else { Phase::Body };
            assert_eq!(totals.ledger.rows()[0].phase, phase, "{what} after {after}");
        }
    }
}

#[test]
fn early_responses_end_upload_and_connection() {
    let scenario = "
        window = 1000\nwindow_pause_us = 1000.0\nconnect_us = 0.0\nlatency_us = 100.0
        [[fault]]\nevery = 1\nwhat = { early = \"HTTP/1.1 413 Too Large\\r\\nContent-Length: 0\\r\\n\\r\\n\" }";
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    let five = Config { requests: Some(5), duration_ns: None, ..config() };
    let post = request("POST", vec![b'x'; 100_000]);
    let ran = run_on(five, scenario.network(1), post, http1(1));
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.early), (5, 5));
    assert_eq!(ran.totals.counters.connects, 5, "each on a connection of its own");
    assert_eq!(ran.totals.counters.bytes_sent, 5 * 1000, "the rest of the body was never sent");
    assert_eq!(ran.totals.ledger.totals().status, 5);
    assert_eq!(ran.totals.ledger.totals().write + ran.totals.ledger.totals().read, 0);
}

#[test]
fn large_uploads_survive_short_writes() {
    let scenario = "window = 999\nwindow_pause_us = 1.0\nconnect_us = 0.0";
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    let three = Config { requests: Some(3), duration_ns: None, ..config() };
    let post = request("POST", vec![b'x'; 1_000_000]);
    let Request::Parts(said) = &post else { unreachable!("it is given in parts") };
    let bytes = encode(&said.parts).len() as u64;
    let ran = run_on(three, scenario.network(1), post, http1(1));
    assert_eq!((ran.totals.counters.completed, ran.totals.counters.bytes_sent), (3, 3 * bytes));
}

#[test]
fn port_exhaustion_is_reported_and_survived() {
    let many = Config { max_inflight: 10, ..config() };
    let totals = run_http(many, "ports = 6\nconnect_us = 0.0").totals;
    assert_eq!(totals.counters.slots_opened, 6);
    let row = &totals.ledger.rows()[0];
    assert_eq!((row.phase, row.cause), (Phase::Connect, Cause::Errno(99)));
    assert_eq!(totals.counters.completed, 6 * 1000, "six connections carry on");
}

#[test]
fn refusing_addresses_are_dropped_from_the_rotation() {
    let addresses = ["[::1]:80", "127.0.0.1:80", "127.0.0.2:80"].map(|text| text.parse().unwrap()).to_vec();
    let four = Config { max_inflight: 4, addresses, ..config() };
    let ran = run_http(four, "connect_us = 0.0\nlistens = ['127.0.0.1', '127.0.0.2']");
    assert_eq!(ran.end.dropped, [("[::1]:80".parse().unwrap(), 111)]);
    assert_eq!(ran.end.working.len(), 2);
    assert_eq!(ran.totals.counters.slots_opened, 4);
    assert!(ran.totals.ledger.rows().is_empty(), "a dropped address is a note, not an error");
}
