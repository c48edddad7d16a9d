//! Every note, with the outcome that causes it.

mod failures;
mod flight;
mod machines;
mod open_loop;
mod order;
mod silences;
mod until;

use std::time::Duration;

use onrush_plan::http::HttpVersion;
use onrush_plan::{Dialect, Http, Plan, RequestLogOptions};
use onrush_proto::http2::{Http2Counts, Reason};
use onrush_proto::{Code, Error};
use onrush_stats::buffers::{BufferSizes, Sizes};
use onrush_stats::{Cause, Counters, Distribution, Gap, Negotiated, Occupancy, Phase, ProxyFailure};

use super::*;
use crate::fixtures::{address, flawless, outcome_with, plan, record_failures, schedule};
use crate::judge::{JudgedRun, Judgement, judge_document};
use crate::record::Weight;
use crate::run::{Breakdown, Outcome, RunEnd, Shortage, WorkerShare};

/// All notes, including those made superfluous by the verdict.
fn notes_of(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let document = Document::of(plan, outcome);
    let verdict = judge_document(&document, &plan.output).verdict.map(|verdict| Verdict { says: &[], ..verdict });
    all_notes(&document, verdict.as_ref(), true)
}

/// The notes on an outcome of `http://h/` with 2 threads and 10 connections for 10 seconds.
fn said(outcome: &Outcome) -> Vec<String> {
    let schedule = outcome.totals.open_loop.as_ref().map(|_| schedule(1_000));
    said_of(&Plan { schedule, ..plan(Dialect::Native, "http://h/", 10, 2, 10) }, outcome)
}

fn said_of(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    notes_of(plan, outcome).into_iter().map(|note| note.text).collect()
}

/// The ids of the notes.
fn ids(plan: &Plan, outcome: &Outcome) -> Vec<NoteId> {
    notes_of(plan, outcome).iter().map(|note| note.id).collect()
}

/// A run beyond doubt: 100,000 responses after 1 ms each, on 10 connections in 10 seconds.
fn good() -> Outcome {
    flawless(100_000, 10)
}

/// An outcome with these silences, in milliseconds.
fn silent(gaps_ms: &[(u64, u64)]) -> Outcome {
    let mut outcome = good();
    let gap = |&(from_ms, until_ms): &(u64, u64)| Gap { from_ns: from_ms * 1_000_000, until_ns: until_ms * 1_000_000 };
    outcome.silences = gaps_ms.iter().map(gap).collect();
    outcome
}

#[test]
fn good_runs_get_no_note() {
    assert_eq!(said(&good()), Vec::<String>::new());
    let mut replaced = good();
    replaced.totals.counters.occupancy.connecting_ns = 7_000_000_000;
    assert_eq!(said(&replaced), Vec::<String>::new(), "those that they replace were busy meanwhile");
}

#[test]
fn notes_do_not_repeat_the_verdict() {
    let judged = |plan: &Plan, outcome: &Outcome| judge_document(&Document::of(plan, outcome), &plan.output);
    let plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    let mut refused = good();
    record_failures(&mut refused, 40, Phase::Connect, Cause::Errno(99));
    let occupancy = &mut refused.totals.counters.occupancy;
    (occupancy.absent_ns, occupancy.busy_ns) = (50_000_000_000, 50_000_000_000);
    let stalled = Outcome { stalls: vec![Gap { from_ns: 1_000_000_000, until_ns: 3_000_000_000 }], ..good() };
    for (id, limited_by, outcome) in
        [(NoteId::Stalled, LimitedBy::GeneratorCpu, stalled.clone()), (NoteId::Idle, LimitedBy::Ports, refused)]
    {
        assert!(has_note(&all_notes(&Document::of(&plan, &outcome), None, false), id), "{id:?}");
        let Judgement { verdict, notes, .. } = judged(&plan, &outcome);
        assert_eq!(verdict.unwrap().limited_by, limited_by);
        assert!(!has_note(&notes, id), "{notes:?}");
    }
    // The verdict on a short run is not printed.
    let mut short = Outcome { stalls: vec![Gap { from_ns: 100_000_000, until_ns: 500_000_000 }], ..stalled };
    short.elapsed = Duration::from_millis(900);
    assert!(has_note(&judged(&plan, &short).notes, NoteId::Stalled));
    let some = silent(&[(2_000, 6_000)]);
    assert!(has_note(&judged(&plan, &some).notes, NoteId::Silences), "it does not say when");
}

#[test]
fn capped_buffers_are_noted() {
    let (mut plan, mut outcome) = (plan(Dialect::Native, "http://h/", 10, 2, 10), good());
    (plan.connect.socket.rcvbuf, plan.connect.socket.sndbuf) = (Some(16_777_216), Some(1));
    // The kernel has a minimum buffer size: a smaller request is not capped.
    outcome.buffers =
        BufferSizes { rcvbuf: Some(Sizes { min: 8_388_608, max: 33_554_432 }), sndbuf: Some(Sizes::new(4_608)) };
    let words = "--rcvbuf: connections had 4,194,304 bytes, not 16,777,216: net.core.rmem_max allows no more; \
                 'sysctl -w net.core.rmem_max=16777216' raises it";
    assert_eq!(said_of(&plan, &outcome), [words]);
    outcome.buffers.rcvbuf = Some(Sizes::new(33_554_432));
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
    plan.connect.socket.sndbuf = Some(262_144);
    assert!(said_of(&plan, &outcome)[0].contains("net.core.wmem_max"));
    outcome.buffers = BufferSizes::default();
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new(), "there was no connection");
}

#[test]
fn bad_script_delays_are_noted() {
    let mut outcome = good();
    (outcome.pauses, outcome.pauses_unread) = (true, true);
    let words =
        "the script's delay() did not always return a number of milliseconds: any other result counts as 0 (no pause)";
    assert_eq!(said(&outcome), [words]);
    outcome.pauses_unread = false;
    outcome.totals = onrush_stats::Totals {
        counters: Counters { slots_opened: 10, ..Counters::default() },
        ..onrush_stats::Totals::default()
    };
    let words = "no request was sent: the script's delay() asked for pauses longer than the run, or longer than the \
                 connections stayed open";
    assert_eq!(said(&outcome), [words]);
    outcome.pauses = false;
    assert_eq!(said(&outcome), ["no request could be sent"]);
}

#[test]
fn truncated_script_responses_are_noted() {
    let mut outcome = good();
    outcome.totals.counters.cut_responses = 1;
    assert_eq!(
        said(&outcome),
        ["the script saw only the beginning of 1 response: all that are being received share 256 MiB; use fewer \
             connections (-c), or a response() with fewer parameters"]
    );
}

#[test]
fn missing_request_log_lines_are_noted() {
    let (mut outcome, mut plan) = (good(), plan(Dialect::Native, "http://h/", 10, 2, 10));
    plan.output.request_log = Some(RequestLogOptions { path: "requests.csv".into(), one_of: 10 });
    outcome.totals.counters.logged = 9_000;
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
    outcome.totals.counters.unlogged = 1_000;
    let words = "the log of requests lacks 1,000 of 10,000 lines: its file was not written as fast as they came; \
                 --log-sample 1/16 logs fewer, a faster disk or reader takes more";
    assert_eq!(said_of(&plan, &outcome), [words]);
}

#[test]
fn runs_ending_before_all_requests_say_so() {
    let (mut outcome, mut plan) = (good(), plan(Dialect::Native, "http://h/", 10, 2, 10));
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
    plan.stop.requests = Some(1_000_000);
    let words = "the run ended after 10.00s with only 100,000 of 1,000,000 requests completed: use a longer -d";
    assert_eq!(said_of(&plan, &outcome), [words]);
    outcome.breakdown = Some(Breakdown::Exit(0));
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new(), "it did not come to that");
    (outcome.breakdown, outcome.ended) = (None, RunEnd::Requests);
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
}

#[test]
fn batches_are_not_judged_by_one_request() {
    let (mut outcome, mut plan) = (flawless(1, 1), plan(Dialect::Native, "http://h/", 10, 1, 1));
    outcome.batch = 3;
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
    plan.once = true;
    let words = "this is the first of 3 requests that the script sends at once; the others were not sent";
    assert_eq!(said_of(&plan, &outcome), [words]);
}

#[test]
fn serialized_http2_requests_may_need_connections() {
    let plan = plan(Dialect::Native, "http://h/", 10, 1, 1);
    let mut outcome = flawless(10_000, 1);
    let seen = outcome.http2.get_or_insert_default();
    (seen.connections, seen.streams_peak) = (3, 8);
    let line = "all requests shared one connection at a time, which most servers handle in one thread; -c opens more";
    assert_eq!(said_of(&plan, &outcome), [line]);
    let plan = crate::fixtures::plan(Dialect::Native, "http://h/", 10, 1, 2);
    assert!(said_of(&plan, &outcome).concat().contains("; fewer --streams use more of them"));
    outcome.http2.get_or_insert_default().connections = 1;
    assert!(!said_of(&plan, &outcome).concat().contains("at a time"));
}

#[test]
fn exhausted_stream_limits_are_noted() {
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.http = Http { versions: vec![HttpVersion::Http2], streams: Some(50), ..plan.http };
    let mut outcome = good();
    // A hundredth of the total time of ten connections in ten seconds.
    let seen = outcome.http2.get_or_insert_default();
    (seen.streams_allowed_min, seen.streams_blocked_ns) = (Some(20), 1_000_000_000);
    // The first connection may have opened more streams before it knew the limit.
    (seen.streams_allowed_max, seen.streams_peak) = (Some(20), 50);
    let words = "--streams 50: the server allows 20 on a connection; for up to 500 requests in flight use more connections (-c 25 --streams 20)";
    assert_eq!(said_of(&plan, &outcome), [words]);
    let document = Document::of(&plan, &outcome);
    let useless = http2::http2_notes(&document, ConnectionsAdvice::Useless);
    assert!(!useless[0].text.contains("-c"), "the target is the limit");
    let mut growing = plan.clone();
    growing.load.max_inflight = 500;
    assert_eq!(ids(&growing, &outcome), [], "more connections are opened");
    let advised = |plan: &Plan, outcome: &Outcome| {
        said_of(plan, outcome).last().and_then(|note| Some(note.split_once("(-c ")?.1.to_owned()))
    };
    let mut few = plan.clone();
    few.stop.requests = Some(260);
    assert_eq!(advised(&few, &outcome).as_deref(), Some("13 --streams 20)"));
    few.stop.requests = Some(200);
    assert_eq!(advised(&few, &outcome), None, "there are enough");
    let mut vast = plan.clone();
    (vast.load.connections, vast.http.streams) = (1_000_000, Some(100_000));
    outcome.http2.as_mut().unwrap().streams_blocked_ns *= 100_000;
    assert_eq!(advised(&vast, &outcome), None);
    outcome.http2.as_mut().unwrap().streams_blocked_ns /= 100_000;
    let mut raised = outcome.clone();
    raised.http2.as_mut().unwrap().streams_allowed_max = Some(21);
    let words = "--streams 50: how many the server allowed on a connection varied, down to 20; at times all of them were in use";
    assert_eq!(said_of(&plan, &raised), [words], "nobody knows how many connections would be enough");
    outcome.http2.as_mut().unwrap().streams_blocked_ns -= 1;
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
}

#[test]
fn small_windows_are_noted() {
    let (mut plan, mut outcome) = (plan(Dialect::Native, "http://h/", 10, 2, 10), good());
    outcome.http2.get_or_insert_default().connections = 10;
    outcome.totals.counters.occupancy.in_flight_ns = 4 * outcome.totals.counters.occupancy.busy_ns;
    // Requests left in flight by the warm-up also send bytes.
    outcome.totals.counters.carried = 40;
    let responses = outcome.totals.counters.started + 40;
    let said = |plan: &Plan, bytes_each: u64| {
        let mut outcome = outcome.clone();
        outcome.http2.as_mut().unwrap().data_bytes_received = responses * bytes_each;
        said_of(plan, &outcome)
    };
    plan.http = Http { versions: vec![HttpVersion::Http2], ..plan.http };
    assert_eq!(said(&plan, 1 << 40), Vec::<String>::new());
    let words = |flag, on| {
        [format!(
            "{flag}: the responses{on} are larger, so that the server may have to wait for onrush, which is part of the latency"
        )]
    };
    plan.http.settings.window = Some(1_000);
    assert_eq!(said(&plan, 1_000), Vec::<String>::new());
    assert_eq!(said(&plan, 1_001), words("--h2-window 1000", ""));
    // Four requests in flight share the connection window.
    (plan.http.settings.window, plan.http.settings.connection_window) = (None, Some(70_000));
    assert_eq!(said(&plan, 17_500), Vec::<String>::new());
    assert_eq!(said(&plan, 17_501), words("--h2-connection-window 70000", " on a connection"));
}

#[test]
fn unexplained_connection_errors_are_counted() {
    let mut outcome = good();
    let ended = &mut outcome.http2.get_or_insert_default().connections_ended.named;
    ended[0] = 7;
    assert_eq!(said(&outcome), Vec::<String>::new());
    let ended = &mut outcome.http2.get_or_insert_default().connections_ended.named;
    (ended[0xb], ended[0x2]) = (1_000, 2);
    let words = "the server ended 1,002 connections with an error (GOAWAY): ENHANCE_YOUR_CALM 1,000, INTERNAL_ERROR 2; \
                 its log may say why";
    assert_eq!(said(&outcome), [words]);
    let ended = |outcome: &Outcome| {
        let note = said(outcome).into_iter().find_map(|note| Some(note.split_once(" (GOAWAY): ")?.1.to_owned()));
        note.and_then(|note| Some(note.strip_suffix("; its log may say why")?.to_owned())).unwrap_or_default()
    };
    record_failures(&mut outcome, 3, Phase::Head, Cause::Protocol(Error::GoAway(Code::ENHANCE_YOUR_CALM)));
    assert_eq!(ended(&outcome), "INTERNAL_ERROR 2");
    // The server's text is shown with the code.
    let seen = outcome.http2.get_or_insert_default();
    let reason = |text: &[u8], times| Reason { code: Code::INTERNAL_ERROR, text: text.to_vec(), times };
    seen.reasons.extend([reason(b"too many\x1b pings", 2), reason(b"another", 1)]);
    assert_eq!(ended(&outcome), "INTERNAL_ERROR 2 (\"too many\\x1b pings\", for instance)");
    // A stream reset and a code without a name are different errors.
    let mut outcome = good();
    let seen = &mut outcome.http2.get_or_insert_default().connections_ended;
    (seen.named[0xb], seen.other) = (1, 12);
    record_failures(&mut outcome, 3, Phase::Head, Cause::Protocol(Error::Reset(Code::ENHANCE_YOUR_CALM)));
    assert_eq!(ended(&outcome), "ENHANCE_YOUR_CALM 1, unknown code 12");
    record_failures(&mut outcome, 3, Phase::Head, Cause::Protocol(Error::GoAway(Code::new(4_660))));
    assert_eq!(ended(&outcome), "ENHANCE_YOUR_CALM 1");
}

#[test]
fn servers_allowing_no_streams_are_noted() {
    let mut outcome = good();
    outcome.totals.counters.returned = 5_000;
    let seen = outcome.http2.get_or_insert_default();
    (seen.connections, seen.streams_allowed_min, seen.streams_allowed_max) = (1, Some(0), Some(0));
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    let has = |plan: &Plan, outcome: &Outcome, id| ids(plan, outcome).contains(&id);
    assert!(!has(&plan, &outcome, NoteId::NoStreams), "it answered some before it allowed none");
    assert!(has(&plan, &outcome, NoteId::Returned));
    outcome.totals.counters.completed = 100;
    let words =
        "the server allows no streams (SETTINGS_MAX_CONCURRENT_STREAMS is 0), so that no more requests can be sent";
    assert!(said(&outcome).contains(&words.to_owned()), "as many as it was sent before it said so");
    (plan.stop.requests, outcome.ended) = (Some(100), RunEnd::Requests);
    assert!(!has(&plan, &outcome, NoteId::NoStreams), "all were answered");
    plan.stop.requests = Some(101);
    assert!(has(&plan, &outcome, NoteId::NoStreams), "the last one was abandoned");
    outcome.totals.counters.completed = 0;
    assert!(has(&plan, &outcome, NoteId::NoStreams) && !has(&plan, &outcome, NoteId::Returned));
}

#[test]
fn early_responses_are_noted() {
    let mut outcome = good();
    outcome.totals.counters.early = 1_000;
    assert_eq!(said(&outcome), Vec::<String>::new(), "a hundredth");
    let words = "came before the whole request had been sent; the rest was left out";
    for (early, which) in [(1_001, "1,001 of 100,000"), (100_000, "all 100,000")] {
        outcome.totals.counters.early = early;
        assert_eq!(said(&outcome), [format!("{which} responses {words}")]);
    }
}

#[test]
fn returned_requests_are_counted_with_their_cause() {
    let mut outcome = good();
    outcome.totals.counters.returned = 5_000;
    let seen = outcome.http2.get_or_insert_default();
    // Each connection end was announced by a GOAWAY.
    (seen.goaway_received.named[0], seen.connections_ended.named[0]) = (20, 10);
    let rest = "5,000 requests were sent again; latency counts from the first time";
    assert_eq!(said(&outcome), [format!("the server ended 10 connections (GOAWAY): {rest}")]);
    outcome.http2 = Some(Http2Counts::default());
    assert_eq!(said(&outcome), [format!("the server closed connections: {rest}")]);
}

#[test]
fn unclosed_connections_limit_the_load() {
    let mut outcome = good();
    let counters = &mut outcome.totals.counters;
    counters.occupancy.busy_ns = 60_000_000_000;
    counters.occupancy.leaving_ns = 35_000_000_000;
    assert_eq!(
        said(&outcome),
        [
            "only 6.0 of 10 connections had a request in flight on average: 3.5 were waiting for the server to close them, \
          0.5 were idle between a response and the next request"
        ]
    );
}

#[test]
fn stuck_threads_are_all_named() {
    let mut outcome = good();
    assert_eq!(crate::failure::incompleteness_reason(&outcome), None);
    outcome.stuck = vec![(1, "response"), (2, "delay"), (3, "response")];
    outcome.breakdown = Some(Breakdown::Exit(7));
    let words = "the script called os.exit(7); thread 2 is still in the script's delay() more than a second after it \
                 should have ended: what it measured last is missing from the report; look for an endless loop or a \
                 blocking call in delay(); threads 1, 3 are still in the script's response() more than a second after \
                 they should have ended: what they measured last is missing from the report; look for an endless loop \
                 or a blocking call in response()";
    assert_eq!(crate::failure::incompleteness_reason(&outcome).as_deref(), Some(words));
}

#[test]
fn script_ended_threads_are_named() {
    let after = |stopped_ms: &[(usize, u64)], requests| {
        let mut outcome = good();
        outcome.workers = vec![WorkerShare { connections: 5, counters: Counters::default(), activity: None }; 2];
        outcome.stopped = stopped_ms.iter().map(|&(thread, ms)| (thread, Duration::from_millis(ms))).collect();
        let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        plan.stop.requests = requests;
        notes_of(&plan, &outcome).into_iter().find(|note| note.id == NoteId::ScriptEnded)
    };
    let text = |stopped_ms: &[(usize, u64)], requests| after(stopped_ms, requests).map(|note| (note.weight, note.text));
    let (doubt, hint) = (Weight::Doubt, Weight::Hint);
    assert_eq!(after(&[], None), None);
    let one = "the script ended thread 1 after 100.00ms";
    assert_eq!(text(&[(1, 100)], None), Some((doubt, one.to_owned())), "the run went on");
    assert_eq!(text(&[(1, 100)], Some(100_001)), Some((doubt, format!("{one}: 1 request was not sent"))));
    let both = "the script ended both threads after 9.90s to 10.00s";
    assert_eq!(text(&[(1, 9_900), (2, 10_000)], None), Some((hint, both.to_owned())), "as one may end a run");
    assert_eq!(
        text(&[(1, 9_900), (2, 10_000)], Some(100_900)),
        Some((doubt, format!("{both}: 900 requests were not sent")))
    );
    let warm_up = "the script ended both threads in the warm-up";
    assert_eq!(text(&[(1, 0), (2, 0)], None).unwrap().1, warm_up);
}

#[test]
fn resumption_is_noted_with_many_handshakes() {
    let mut outcome = good();
    for answer in 0..1_002 {
        outcome.totals.handshakes.record(Negotiated::default(), answer > 1);
    }
    assert_eq!(said(&outcome), Vec::<String>::new(), "one for a hundred responses");
    outcome.totals.handshakes.record(Negotiated::default(), true);
    assert_eq!(
        said(&outcome),
        [
            "1,001 of 1,003 TLS handshakes resumed an earlier session, which costs less than the full handshake of a new \
             client: --tls-resume off makes all of them full"
        ]
    );
}

#[test]
fn lost_threads_are_not_called_idle() {
    let mut outcome = outcome_with(10_000_000, Counters::default());
    assert_eq!(said(&outcome).len(), 2);
    outcome.stuck = vec![(1, "request"), (2, "request")];
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn failed_connections_are_counted_with_reason() {
    let mut outcome = flawless(100_000, 10);
    outcome.totals.counters.slots_opened = 7;
    assert_eq!(said(&outcome), ["only 7 of 10 connections were established before the run ended"]);
    // The limit leaves no room for connections beside the threads. That is known before the run.
    outcome.descriptors = Some(Shortage { needed: 2_060, hard: 24 });
    let files =
        "the limit is 24 open files, but 2,060 are needed; 'sudo prlimit --pid $$ --nofile=2060' raises the limit";
    assert_eq!(said(&outcome), [format!("only 7 of 10 connections were established: {files}")]);
    let announced = |outcome: &Outcome| {
        let notes = notes_of(&plan(Dialect::Native, "http://h/", 10, 2, 10), outcome);
        notes.iter().filter(|note| note.was_announced).count()
    };
    assert_eq!(announced(&outcome), 0);
    outcome.totals.counters.slots_opened = 2;
    assert_eq!(announced(&outcome), 1);
    outcome.totals.counters.slots_opened = 7;
    // The imitated tools try anyway, and the limit may not be reached.
    let names_limit =
        |outcome: &Outcome| said_of(&plan(Dialect::Wrk, "http://h/", 10, 2, 10), outcome)[0].contains("open files");
    assert!(!names_limit(&outcome));
    record_failures(&mut outcome, 3, Phase::Connect, Cause::Errno(24));
    assert!(names_limit(&outcome));
    outcome.descriptors = None;
    outcome.totals.counters.slots_opened = 0;
    assert!(said(&outcome)[0].starts_with("none of the 10 connections was established"), "{:?}", said(&outcome));
    let one = said_of(&plan(Dialect::Native, "http://h/", 10, 1, 1), &outcome);
    assert_eq!(one[0], "the connection was not established");
}

#[test]
fn unneeded_connections_are_not_missed() {
    let mut outcome = flawless(100_000, 10);
    outcome.totals.counters.slots_opened = 7;
    outcome.ended = RunEnd::Requests;
    assert_eq!(said(&outcome), Vec::<String>::new());
}

/// 100,000 responses with these statuses.
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
fn statuses_above_one_percent_are_counted() {
    assert_eq!(said(&answering(&[(200, 99_000), (503, 1_000)], None)), Vec::<String>::new());
    assert_eq!(said(&answering(&[(200, 98_999), (503, 1_001)], None)).len(), 1);
    let sentence = "of 100,000 responses, 90,000 were 404, 9,000 were 200, 600 were 500 and 400 were 502";
    assert_eq!(said(&answering(&[(404, 90_000), (200, 9_000), (500, 600), (502, 400)], None)), [sentence]);
    let many: Vec<(u16, u64)> = (400..410).map(|status| (status, 10_000)).collect();
    assert!(said(&answering(&many, None))[0].ends_with(" 10,000 were 405 and 40,000 had other statuses"));
}

#[test]
fn redirects_are_noted_with_their_destination() {
    let all = answering(&[(301, 100_000)], Some("https://h/\x1b[2J"));
    assert_eq!(said(&all), ["all 100,000 responses were 301 to https://h/\\x1b[2J: you measured the redirect"]);
    let some = answering(&[(200, 60_000), (302, 40_000)], Some("/login"));
    assert_eq!(said(&some), ["of 100,000 responses, 60,000 were 200 and 40,000 were 302; a redirect leads to /login"]);
    let none = answering(&[(304, 100_000)], None);
    assert_eq!(said(&none), ["all 100,000 responses were 304: --once shows one in full"]);
}

#[test]
fn unused_addresses_are_named_with_used_ones() {
    let mut outcome = good();
    outcome.dropped = vec![(address("[::1]:8080"), 111)];
    let sentence =
        "[::1]:8080 was left out: connection refused (ECONNREFUSED) at the start; the load went to 127.0.0.1:8080";
    assert_eq!(said(&outcome), [sentence]);
}

#[test]
fn early_ends_are_noted_with_their_time() {
    let mut outcome = good();
    outcome.ended = RunEnd::Signal;
    assert_eq!(said(&outcome), ["interrupted after 10.00s of 10s: the report covers only that time"]);
    outcome.ended = RunEnd::StayedAway;
    outcome.totals.counters.started = 100_000;
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.stop.requests = Some(1_000_000);
    let sentence = "the target was unreachable for 30s: the run ended after 100,000 of 1,000,000 requests";
    assert_eq!(notes_of(&plan, &outcome)[0].text, sentence);
}

#[test]
fn latencies_beyond_an_hour_are_counted() {
    let mut outcome = good();
    outcome.totals.latency.record_many(u64::MAX, 3);
    assert_eq!(said(&outcome)[0], "3 responses took longer than an hour: recorded as one hour");
}

#[test]
fn wrks_mean_is_shown_on_request() {
    // Requests are 100 µs apart. A stall of 350 µs makes the mean 80 µs; wrk would add 250 µs and 150 µs.
    let counters = Counters { started: 10, completed: 10, batches: 10, slots_opened: 1, ..Counters::default() };
    let mut outcome = outcome_with(1_000, counters);
    outcome.totals.latency.record_many(50_000, 9);
    outcome.totals.latency.record(350_000);
    let mut plan = plan(Dialect::Native, "http://h/", 1, 1, 1);
    (plan.output.notes, plan.output.verbose) = (true, true);
    let printed = |plan: &Plan, outcome: &Outcome| JudgedRun::from_outcome(plan, outcome).lines(&plan.output, false);
    let line = "note: latency as measured; wrk would print Avg 100.00us: see docs/measuring.md\n";
    assert!(printed(&plan, &outcome).starts_with(line), "{}", printed(&plan, &outcome));
    plan.output.verbose = false;
    assert!(!printed(&plan, &outcome).contains("wrk would"));
    (plan.dialect, plan.output.verbose) = (Dialect::Wrk, true);
    assert!(!printed(&plan, &outcome).contains("wrk would"));
}

/// The notes on a single request.
fn said_once(outcome: &Outcome) -> Vec<String> {
    let mut plan = plan(Dialect::Native, "http://h/", 10, 1, 1);
    plan.once = true;
    plan.output.verbose = true;
    said_of(&plan, outcome)
}

#[test]
fn single_request_notes_fit_one_request() {
    let answered = |status, location: Option<&str>| {
        let mut outcome = flawless(1, 1);
        outcome.totals.statuses.clear();
        outcome.totals.statuses.record(status);
        outcome.totals.location = location.map(str::to_owned);
        outcome
    };
    assert_eq!(said_once(&answered(200, None)), Vec::<String>::new());
    assert_eq!(said_once(&answered(403, None)), ["the response was 403: a run would measure the error page"]);
    assert_eq!(said_once(&answered(301, Some("/a"))), ["the response was 301 to /a: a run would measure the redirect"]);
    assert_eq!(said_once(&answered(304, None)), ["the response was 304"]);
    let counters = Counters { started: 1, slots_opened: 1, ..Counters::default() };
    let mut failed = outcome_with(1_000, Counters { failed: 1, ..counters });
    record_failures(&mut failed, 1, Phase::Head, Cause::Protocol(Error::ClosedInHead));
    let sentence = "read: closed by the server inside a response head; the server's log may say why";
    assert_eq!(said_once(&failed), [sentence]);
    let mut silent = outcome_with(30_000_000, Counters { abandoned: 1, ..counters });
    silent.totals.censored.get_or_insert_default().record(30_000_000_000);
    assert_eq!(said_once(&silent), ["the request got no complete response: it was abandoned (--give-up) after 30.00s"]);
    let mut hasty = plan(Dialect::Native, "http://h/", 10, 1, 1);
    (hasty.once, hasty.give_up) = (true, hasty.timeout);
    let line = "the request got no complete response: it was abandoned (--timeout) after 30.00s";
    assert_eq!(said_of(&hasty, &silent), [line]);
    let unsent = outcome_with(1_000, Counters::default());
    assert_eq!(said_once(&unsent), ["no request could be sent"]);
}
