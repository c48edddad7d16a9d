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
use onrush_proto::http2::{GoawayReason, Http2Counts};
use onrush_proto::{Code, Error};
use onrush_stats::buffers::Sizes;
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

/// A change to the plan and outcome of a good run.
type RunChange = fn(&mut Plan, &mut Outcome);

#[test]
fn notes_name_cause_and_remedy() {
    let table: [RunChange; 39] = [
        |_, it| it.pauses_unread = true,
        |_, it| it.totals.counters.cut_responses = 1,
        |_, it| it.totals.counters.logged = 9_000,
        |plan, it| {
            plan.output.request_log = Some(RequestLogOptions { path: "requests.csv".into(), one_of: 10 });
            (it.totals.counters.logged, it.totals.counters.unlogged) = (9_000, 1_000);
        },
        |_, it| it.totals.latency.record_many(u64::MAX, 3),
        |_, it| it.dropped = vec![(address("[::1]:8080"), 111)],
        // How a run ended.
        |_, it| it.ended = RunEnd::Signal,
        |plan, it| {
            (plan.stop.requests, it.ended) = (Some(1_000_000), RunEnd::StayedAway);
            it.totals.counters.started = 100_000;
        },
        |plan, _| plan.stop.requests = Some(1_000_000),
        |plan, it| (plan.stop.requests, it.breakdown) = (Some(1_000_000), Some(Breakdown::Exit(0))),
        |plan, it| (plan.stop.requests, it.ended) = (Some(1_000_000), RunEnd::Requests),
        // Connections.
        |_, it| it.totals.counters.slots_opened = 7,
        |_, it| (it.totals.counters.slots_opened, it.ended) = (7, RunEnd::Requests),
        |plan, it| {
            plan.connect.socket.rcvbuf = Some(16_777_216);
            it.buffers.rcvbuf = Some(Sizes { min: 8_388_608, max: 33_554_432 });
        },
        // The kernel has a minimum buffer size: a smaller request is not capped.
        |plan, it| (plan.connect.socket.sndbuf, it.buffers.sndbuf) = (Some(1), Some(Sizes::new(4_608))),
        |plan, it| (plan.connect.socket.sndbuf, it.buffers.sndbuf) = (Some(262_144), Some(Sizes::new(4_608))),
        |_, it| resume_sessions(it, 1_000),
        |_, it| resume_sessions(it, 1_001),
        // Statuses, from more than 1 % of the responses on.
        |_, it| answer(it, &[(200, 99_000), (503, 1_000)], None),
        |_, it| answer(it, &[(200, 98_999), (503, 1_001)], None),
        |_, it| {
            let many: Vec<(u16, u64)> = (400..410).map(|status| (status, 10_000)).collect();
            answer(it, &many, None);
        },
        |_, it| answer(it, &[(301, 100_000)], Some("https://h/\x1b[2J")),
        |_, it| answer(it, &[(200, 60_000), (302, 40_000)], Some("/login")),
        |_, it| answer(it, &[(304, 100_000)], None),
        |_, it| it.totals.counters.early = 1_000,
        |_, it| it.totals.counters.early = 1_001,
        // HTTP/2.
        |plan, it| {
            (plan.load.connections, it.totals.counters.slots_opened) = (1, 1);
            let seen = it.http2.get_or_insert_default();
            (seen.connections, seen.streams_peak) = (3, 8);
        },
        |_, it| {
            it.totals.counters.returned = 5_000;
            // Each connection end was announced by a GOAWAY.
            let seen = it.http2.get_or_insert_default();
            (seen.goaway_received.named[0], seen.connections_ended.named[0]) = (20, 10);
        },
        |_, it| (it.totals.counters.returned, it.http2) = (5_000, Some(Http2Counts::default())),
        |plan, it| {
            (plan.http.versions, plan.http.settings.window) = (vec![HttpVersion::Http2], Some(1_000));
            receive_bodies(it, 1_001);
        },
        |plan, it| {
            (plan.http.versions, plan.http.settings.window) = (vec![HttpVersion::Http2], Some(1_000));
            receive_bodies(it, 1_000);
        },
        |plan, it| {
            plan.http.versions = vec![HttpVersion::Http2];
            receive_bodies(it, 1 << 40);
        },
        // Four requests in flight share the connection window.
        |plan, it| {
            (plan.http.versions, plan.http.settings.connection_window) = (vec![HttpVersion::Http2], Some(70_000));
            receive_bodies(it, 17_501);
        },
        |plan, it| {
            (plan.http.versions, plan.http.settings.connection_window) = (vec![HttpVersion::Http2], Some(70_000));
            receive_bodies(it, 17_500);
        },
        |_, it| (*it, it.pauses) = (outcome_with(10_000_000, opened(10)), true),
        |_, it| *it = outcome_with(10_000_000, opened(10)),
        // Nothing is known of the requests of threads that never returned.
        |_, it| {
            *it = outcome_with(10_000_000, Counters::default());
            it.stuck = vec![(1, "request"), (2, "request")];
        },
        |_, _| (),
        // Connections that are replaced were busy meanwhile.
        |_, it| it.totals.counters.occupancy.connecting_ns = 7_000_000_000,
    ];
    // The first note after each change; an empty line: there is none.
    let sentences = "\
the script's delay() did not always return a number of milliseconds: any other result counts as 0 (no pause)
the script saw only the beginning of 1 response: responses in progress share 256 MiB; use fewer connections (-c), or a response() with fewer parameters

the log of requests lacks 1,000 of 10,000 lines: its file was not written fast enough; use --log-sample 1/16, or a faster disk or reader
3 responses took over an hour and count as one hour
[::1]:8080 was left out: connection refused (ECONNREFUSED) at the start; the load went to 127.0.0.1:8080
interrupted after 10.00s of 10s: the report covers only that time
the target was unreachable for 30s: the run ended after 100,000 of 1,000,000 requests
the run ended after 10.00s with only 100,000 of 1,000,000 requests completed; use a longer -d


only 7 of 10 connections were established before the run ended

--rcvbuf: connections had 4,194,304 bytes, not 16,777,216: net.core.rmem_max allows no more; 'sysctl -w net.core.rmem_max=16777216' raises it

--sndbuf: connections had 2,304 bytes, not 262,144: net.core.wmem_max allows no more; 'sysctl -w net.core.wmem_max=262144' raises it

1,001 of 1,003 TLS handshakes resumed an earlier session, which costs less than a new client's full handshake; --tls-resume off makes all of them full

of 100,000 responses, 98,999 were 200 and 1,001 were 503
of 100,000 responses, 10,000 were 400, 10,000 were 401, 10,000 were 402, 10,000 were 403, 10,000 were 404, 10,000 were 405 and 40,000 had other statuses
all 100,000 responses were 301 to https://h/\\x1b[2J: you measured the redirect
of 100,000 responses, 60,000 were 200 and 40,000 were 302; a redirect leads to /login
all 100,000 responses were 304; --once shows one in full

1,001 of 100,000 responses came before the whole request had been sent; the rest of the request was not sent
all requests shared one connection at a time, which most servers handle in one thread; -c opens more
the server ended 10 connections (GOAWAY): 5,000 requests were sent again; latency counts from the first time
the server closed connections: 5,000 requests were sent again; latency counts from the first time
--h2-window 1000: the responses are larger, so the server may wait for window updates, which latencies include


--h2-connection-window 70000: the responses on a connection are larger, so the server may wait for window updates, which latencies include

no request was sent: the script's delay() asked for pauses longer than the run, or than connections stay open
no request could be sent



";
    assert_eq!(sentences.lines().count(), table.len());
    for (number, (change, sentence)) in table.into_iter().zip(sentences.lines()).enumerate() {
        let (mut plan, mut outcome) = (plan(Dialect::Native, "http://h/", 10, 2, 10), good());
        change(&mut plan, &mut outcome);
        let said = said_of(&plan, &outcome);
        assert_eq!(said.first().map_or("", String::as_str), sentence, "{number}");
    }
}

/// The counters of a run that opened connections and sent nothing.
fn opened(slots_opened: u64) -> Counters {
    Counters { slots_opened, ..Counters::default() }
}

/// Completed two full TLS handshakes and others that resumed a session.
fn resume_sessions(outcome: &mut Outcome, resumed: u64) {
    (0..resumed + 2).for_each(|answer| outcome.totals.handshakes.record(Negotiated::default(), answer > 1));
}

/// Replaces the statuses of the responses.
fn answer(outcome: &mut Outcome, statuses: &[(u16, u64)], location: Option<&str>) {
    outcome.totals.statuses.clear();
    for &(status, times) in statuses {
        (0..times).for_each(|_| outcome.totals.statuses.record(status));
    }
    outcome.totals.location = location.map(str::to_owned);
}

/// Four requests in flight on each connection, whose responses have so many bytes.
fn receive_bodies(outcome: &mut Outcome, bytes_each: u64) {
    let counters = &mut outcome.totals.counters;
    counters.occupancy.in_flight_ns = 4 * counters.occupancy.busy_ns;
    // Responses to requests left in flight by the warm-up count as received bytes, too.
    counters.carried = 40;
    let data_bytes_received = (counters.started + 40) * bytes_each;
    let seen = outcome.http2.get_or_insert_default();
    (seen.connections, seen.data_bytes_received) = (10, data_bytes_received);
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
fn exhausted_stream_limits_are_noted() {
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.http = Http { versions: vec![HttpVersion::Http2], streams: Some(50), ..plan.http };
    let mut outcome = good();
    // A hundredth of the total time of ten connections in ten seconds.
    let seen = outcome.http2.get_or_insert_default();
    (seen.streams_allowed_min, seen.streams_blocked_ns) = (Some(20), 1_000_000_000);
    // The first connection may have opened more streams before it knew the limit.
    (seen.streams_allowed_max, seen.streams_peak) = (Some(20), 50);
    let words =
        "--streams 50: the server allows only 20 on a connection; for 500 requests in flight, use -c 25 --streams 20";
    assert_eq!(said_of(&plan, &outcome), [words]);
    let document = Document::of(&plan, &outcome);
    let useless = http2::http2_notes(&document, ConnectionsAdvice::Useless);
    assert!(!useless[0].text.contains("-c"), "the target is the limit");
    let mut growing = plan.clone();
    growing.load.max_inflight = 500;
    assert_eq!(ids(&growing, &outcome), [], "more connections are opened");
    let advised = |plan: &Plan, outcome: &Outcome| {
        said_of(plan, outcome).last().and_then(|note| Some(note.split_once("use -c ")?.1.to_owned()))
    };
    let mut few = plan.clone();
    few.stop.requests = Some(260);
    assert_eq!(advised(&few, &outcome).as_deref(), Some("13 --streams 20"));
    few.stop.requests = Some(200);
    assert_eq!(advised(&few, &outcome), None, "there are enough");
    let mut vast = plan.clone();
    (vast.load.connections, vast.http.streams) = (1_000_000, Some(100_000));
    outcome.http2.as_mut().unwrap().streams_blocked_ns *= 100_000;
    assert_eq!(advised(&vast, &outcome), None);
    outcome.http2.as_mut().unwrap().streams_blocked_ns /= 100_000;
    let mut raised = outcome.clone();
    raised.http2.as_mut().unwrap().streams_allowed_max = Some(21);
    let words =
        "--streams 50: the server's limit on a connection varied, down to 20; at times all allowed streams were in use";
    assert_eq!(said_of(&plan, &raised), [words], "nobody knows how many connections would be enough");
    outcome.http2.as_mut().unwrap().streams_blocked_ns -= 1;
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
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
    let reason = |text: &[u8], times| GoawayReason { code: Code::INTERNAL_ERROR, text: text.to_vec(), times };
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
    let words = "the server allows no streams (SETTINGS_MAX_CONCURRENT_STREAMS is 0): no more requests can be sent";
    assert!(said(&outcome).contains(&words.to_owned()), "as many as it was sent before it said so");
    (plan.stop.requests, outcome.ended) = (Some(100), RunEnd::Requests);
    assert!(!has(&plan, &outcome, NoteId::NoStreams), "all were answered");
    plan.stop.requests = Some(101);
    assert!(has(&plan, &outcome, NoteId::NoStreams), "the last one was abandoned");
    outcome.totals.counters.completed = 0;
    assert!(has(&plan, &outcome, NoteId::NoStreams) && !has(&plan, &outcome, NoteId::Returned));
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
fn failed_connections_are_counted_with_reason() {
    let mut outcome = flawless(100_000, 10);
    outcome.totals.counters.slots_opened = 7;
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
    let first = Outcome { batch: 3, ..answered(304, None) };
    let words = "this is the first of 3 requests that the script sends at once; the others were not sent";
    assert_eq!(said_once(&first), ["the response was 304", words]);
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
}
