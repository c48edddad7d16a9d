//! Ends of connections and requests.

use std::collections::HashSet;

use super::super::seen::REASONS_MAX;
use super::*;

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn reset_codes_decide_retries() {
    for code in (0..20).map(Code) {
        let kind = if code == Code::REFUSED_STREAM { "failed, retryable" } else { "failed" };
        let failed = format!("1 {kind}: reset by the server ({code})");
        let input = [rst(1, code), headers(3, "END_STREAM", OK)].concat();
        check("GET GET", input, &[&failed, "3 head HTTP/2 200||", "3 complete"]);
    }
}

#[test]
fn unnamed_codes_are_one_cause() {
    let mut scene = Scene::new("");
    scene.options.streams = 1000;
    let mut client = scene.connected();
    let mut errors = HashSet::new();
    for number in 0..900 {
        let stream = client.start(&request("GET"), false).unwrap();
        sent(&mut client);
        let code = Code(0xe + number * 4_000_000);
        client.handle_bytes(&rst(stream.0, code), Nanos(0));
        let Some(Event::Failed { error, .. }) = client.poll_event() else { unreachable!("it was reset") };
        errors.insert(error);
        let mut ended = scene.connected();
        ended.handle_bytes(&goaway(0, code), Nanos(0));
        let Some(Event::Draining { error: Some(error) }) = ended.poll_event() else { unreachable!("an error") };
        errors.insert(error);
    }
    let mut words: Vec<String> = errors.iter().map(Error::to_string).collect();
    words.sort();
    assert_eq!(words, ["ended by the server (unknown code)", "reset by the server (unknown code)"]);
}

#[test]
fn resets_after_complete_responses_change_nothing() {
    let input = [headers(1, "END_STREAM", OK), rst(1, Code::NO_ERROR), rst(1, Code::CANCEL)].concat();
    check("GET", input, &["1 head HTTP/2 200||", "1 complete"]);
}

#[test]
fn early_responses_complete_requests() {
    let input = [headers(1, "END_STREAM", &[(":status", "413")]), rst(1, Code::NO_ERROR), window(1, 9)].concat();
    let events = ["1 head HTTP/2 413||", "1 complete, early", "> RST_STREAM 1 CANCEL"];
    check("POST", input, &events);
}

#[test]
fn goaway_returns_unprocessed_requests() {
    let input =
        [goaway(3, Code::NO_ERROR), headers(1, "END_STREAM", OK), headers(3, "END_STREAM", OK), b"<eof>".to_vec()];
    check(
        "GET GET GET GET",
        input.concat(),
        &[
            "5 failed, retryable: ended by the server (NO_ERROR)",
            "7 failed, retryable: ended by the server (NO_ERROR)",
            "draining",
            "1 head HTTP/2 200||",
            "1 complete",
            "3 head HTTP/2 200||",
            "3 complete",
        ],
    );
}

#[test]
fn announcing_goaways_only_drain() {
    // The highest bit is reserved.
    let input =
        [goaway(0xffff_ffff, Code::NO_ERROR), headers(1, "END_STREAM", OK), goaway(0x8000_0001, Code::NO_ERROR)];
    check(
        "GET GET",
        input.concat(),
        &["draining", "1 head HTTP/2 200||", "1 complete", "3 failed, retryable: ended by the server (NO_ERROR)"],
    );
}

#[test]
fn goaway_errors_reach_requests_or_the_connection() {
    check(
        "GET GET",
        [goaway(1, Code::ENHANCE_YOUR_CALM), b"<eof>".to_vec()].concat(),
        &[
            "3 failed, retryable: ended by the server (ENHANCE_YOUR_CALM)",
            "draining",
            "1 failed: ended by the server (ENHANCE_YOUR_CALM)",
        ],
    );
    check(
        "GET",
        goaway(0, Code::ENHANCE_YOUR_CALM),
        &[
            "1 failed, retryable: ended by the server (ENHANCE_YOUR_CALM)",
            "draining: ended by the server (ENHANCE_YOUR_CALM)",
        ],
    );
}

#[test]
fn reasons_of_goaway_are_kept_and_bounded() {
    let reasons = |inputs: &[Vec<u8>], size: usize| {
        let shared = SharedContext::new(Http2Options::default());
        for input in inputs {
            let mut client = Http2::new(&shared);
            sent(&mut client);
            input.chunks(size).for_each(|piece| drop(heard(&mut client, piece)));
        }
        let seen = shared.observations();
        seen.reasons.into_iter().map(|GoawayReason { code, text, times }| (code, text, times)).collect::<Vec<_>>()
    };
    let ended = |text: &[u8]| {
        let payload = [&0u32.to_be_bytes()[..], &Code::ENHANCE_YOUR_CALM.0.to_be_bytes(), text].concat();
        [settings(&[]), frame(0, "", "GOAWAY", &payload)].concat()
    };
    let long = [b'x'; 5_000];
    for size in [1, 7, 10_000] {
        let inputs = [ended(b"pings"), ended(b""), ended(b"pings"), ended(&long)];
        let expected = [(b"pings".to_vec(), 2), (vec![b'x'; 100], 1)];
        let expected: Vec<_> =
            expected.into_iter().map(|(text, times)| (Code::ENHANCE_YOUR_CALM, text, times)).collect();
        assert_eq!(reasons(&inputs, size), expected, "in pieces of {size}");
    }
    let different: Vec<_> = (0..100).map(|number| ended(format!("reason {number}").as_bytes())).collect();
    assert_eq!(reasons(&different, 10_000).len(), REASONS_MAX);
}

#[test]
fn goaway_may_precede_settings() {
    let scene = Scene { is_greeted: false, ..Scene::new("GET") };
    let events = [
        "1 failed, retryable: ended by the server (HTTP_1_1_REQUIRED)",
        "draining: ended by the server (HTTP_1_1_REQUIRED)",
    ];
    scene.check(goaway(0, Code::HTTP_1_1_REQUIRED), &events);
}

#[test]
fn frames_of_returned_requests_are_an_error() {
    check(
        "GET GET",
        [goaway(1, Code::NO_ERROR), headers(3, "", OK)].concat(),
        &[
            "3 failed, retryable: ended by the server (NO_ERROR)",
            "draining",
            "1 failed: a frame on a closed stream (STREAM_CLOSED)",
            "> GOAWAY 0 STREAM_CLOSED",
        ],
    );
}

#[test]
fn transport_ends_fail_requests_in_flight() {
    let begun = [headers(1, "", OK), data(1, "", b"x"), frame(3, "", "HEADERS", b"\x88")].concat();
    check(
        "GET GET GET",
        [&begun[..], b"<eof>"].concat(),
        &[
            "1 head HTTP/2 200||",
            "1 data x",
            "1 failed: closed by the server inside a response body",
            "3 failed: closed by the server inside a response head",
            "5 failed: closed by the server before a response began",
            "draining",
        ],
    );
    check("", "<eof>", &["draining: closed by the server before a response began"]);
}

#[test]
fn unaccepted_requests_may_be_retried() {
    for is_told_at_once in [true, false] {
        let options = Http2Options { streams: 3, is_told_at_once, ..Http2Options::default() };
        let mut client = Http2::new(&SharedContext::new(options));
        client.start(&request("GET"), false).unwrap();
        client.start(&request("GET"), false).unwrap();
        let transmit = client.poll_transmit(Nanos(0)).unwrap();
        // All bytes except the last of the second HEADERS.
        client.handle_sent(transmit.bytes().len() - 1);
        client.start(&request("GET"), false).unwrap();
        let mut events = Vec::new();
        client.handle_eof();
        take_events(&mut client, b"", &mut events);
        let sent = |stream| format!("{stream} failed: closed by the server before a response began");
        let unsent =
            |stream| format!("{stream} failed, retryable: the connection was closed before the request was answered");
        // A transport that reports later may have accepted that byte, too.
        let second = if is_told_at_once { unsent(3) } else { sent(3) };
        assert_eq!(events, [sent(1), second, unsent(5), "draining".to_owned()]);
        assert!(client.poll_transmit(Nanos(0)).is_none());
    }
}

#[test]
fn goaway_follows_the_last_response() {
    let mut client = Http2::new(&SharedContext::new(Http2Options { streams: 3, ..Http2Options::default() }));
    client.start(&request("GET"), false).unwrap();
    client.start(&request("GET"), true).unwrap();
    assert_eq!(client.capacity(), 0);
    assert_eq!(client.start(&request("GET"), false), Err(StartError::Busy));
    sent(&mut client);
    feed(&mut client, &settings(&[]));
    assert_eq!(heard(&mut client, &headers(3, "END_STREAM", OK)), ["3 head HTTP/2 200||", "3 complete"]);
    assert_eq!(sent(&mut client), ["SETTINGS ACK"]);
    assert_eq!(heard(&mut client, &headers(1, "END_STREAM", OK)), ["1 head HTTP/2 200||", "1 complete", "draining"]);
    assert_eq!(sent(&mut client), ["GOAWAY 0 NO_ERROR"]);
    client.handle_eof();
    assert_eq!(client.poll_event(), None);
}

#[test]
fn connection_ends_fail_unanswered_requests() {
    let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
    client.start(&request("GET"), true).unwrap();
    sent(&mut client);
    client.handle_eof();
    let mut events = Vec::new();
    take_events(&mut client, b"", &mut events);
    assert_eq!(events, ["1 failed: closed by the server before a response began", "draining"]);
}

#[test]
fn cancelled_requests_are_reset_and_forgotten() {
    let mut client = Scene::new("GET GET POST").connected();
    client.cancel(StreamId(1));
    client.cancel(StreamId(5));
    assert_eq!(client.capacity(), 99);
    assert_eq!(sent(&mut client), ["RST_STREAM 1 CANCEL", "RST_STREAM 5 CANCEL"]);
    let late = [headers(1, "", OK), data(1, "END_STREAM", b"late"), window(5, 1), headers(5, "END_STREAM", OK)];
    feed(&mut client, &late.concat());
    assert_eq!(heard(&mut client, &headers(3, "END_STREAM", OK)), ["3 head HTTP/2 200||", "3 complete"]);
    client.cancel(StreamId(3));
    client.cancel(StreamId(8));
    assert_eq!(sent(&mut client), [""; 0]);
}

#[test]
fn unsent_requests_are_cancelled_silently() {
    let mut client = Scene::new("").connected();
    client.start(&request("GET"), false).unwrap();
    client.start(&request("GET"), false).unwrap();
    client.cancel(StreamId(1));
    assert_eq!(sent(&mut client), ["HEADERS 3 :method: GET|:scheme: http|:path: / END_STREAM"]);
}

#[test]
fn cancelled_requests_do_not_block_uploads() {
    let mut client = Scene::new("").connected();
    client.start(&request("GET"), false).unwrap();
    let headers = vec![("a".to_owned(), "\u{7}".repeat(100_000))];
    client
        .start(&Request::new(RequestParts { method: "GET".into(), headers, ..RequestParts::default() }), false)
        .unwrap();
    client.cancel(StreamId(1));
    let transmit = client.poll_transmit(Nanos(0)).unwrap();
    assert!(transmit.bytes().len() > 100_000);
}

#[test]
fn cancelled_requests_have_no_events() {
    let mut client = Scene::new("GET").connected();
    client.handle_bytes(&headers(1, "END_STREAM", OK), Nanos(0));
    client.cancel(StreamId(1));
    assert_eq!(client.poll_event(), None);
    assert_eq!(client.capacity(), 100);
    assert_eq!(sent(&mut client), [""; 0]);
}

#[test]
fn cancelled_bodies_are_not_reported() {
    let mut client = Scene::new("GET GET").connected();
    let body = data(1, "END_STREAM", b"0123456789");
    assert_eq!(heard(&mut client, &headers(1, "", OK)), ["1 head HTTP/2 200||"]);
    assert_eq!(heard(&mut client, &body[..12]), ["1 data 012"]);
    client.cancel(StreamId(1));
    feed(&mut client, &body[12..]);
    assert_eq!(heard(&mut client, &headers(3, "END_STREAM", OK)), ["3 head HTTP/2 200||", "3 complete"]);
}

#[test]
fn cancelled_requests_are_no_flood() {
    let mut client = Scene::new("").connected();
    for _ in 0..100 {
        client.start(&request("GET"), false).unwrap();
    }
    sent(&mut client);
    (1..200).step_by(2).for_each(|number| client.cancel(StreamId(number)));
    assert_eq!(sent(&mut client).len(), 100);
    for number in (1..200).step_by(2) {
        feed(&mut client, &headers(number, "END_STREAM", OK));
    }
}

#[test]
fn failed_connections_ignore_input() {
    let mut client = Scene::new("GET").connected();
    let events = heard(&mut client, &frame(1, "", "SETTINGS", b""));
    assert_eq!(events, ["1 failed: a connection's frame on a request's stream (PROTOCOL_ERROR)", "draining"]);
    assert_eq!(client.capacity(), 0);
    assert_eq!(client.start(&request("GET"), false), Err(StartError::Busy));
    client.cancel(StreamId(1));
    assert_eq!(sent(&mut client), ["GOAWAY 0 PROTOCOL_ERROR"]);
    feed(&mut client, &headers(1, "", OK));
    client.handle_eof();
    assert_eq!((client.poll_event(), client.may_skip(), client.reading()), (None, 0, None));
    assert!(client.poll_transmit(Nanos(0)).is_none());
}

#[test]
fn stream_numbers_run_out() {
    let mut client = Scene::new("").connected();
    client.streams.skip_to(STREAM_MAX - 2);
    client.sender.skip_to(STREAM_MAX - 2);
    assert_eq!(client.start(&request("GET"), false), Ok(StreamId(STREAM_MAX - 2)));
    assert_eq!(client.start(&request("GET"), false), Ok(StreamId(STREAM_MAX)));
    assert_eq!(client.capacity(), 0);
    assert_eq!(sent(&mut client).len(), 2);
    for number in [STREAM_MAX - 2, STREAM_MAX] {
        heard(&mut client, &headers(number, "END_STREAM", OK));
    }
    assert_eq!(sent(&mut client), ["GOAWAY 0 NO_ERROR"]);
}

#[test]
fn goaway_prevents_new_streams() {
    let mut client = Scene::new("GET").connected();
    client.start(&request("GET"), false).unwrap();
    client.start(&request("POST"), false).unwrap();
    assert_eq!(
        heard(&mut client, &goaway(i32::MAX as u32, Code::NO_ERROR)),
        [
            "3 failed, retryable: ended by the server (NO_ERROR)",
            "5 failed, retryable: ended by the server (NO_ERROR)",
            "draining"
        ]
    );
    assert_eq!(sent(&mut client), [""; 0]);
    assert_eq!(heard(&mut client, &headers(1, "END_STREAM", OK)), ["1 head HTTP/2 200||", "1 complete"]);

    let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
    client.start(&request("GET"), false).unwrap();
    let first = [settings(&[]), goaway(9, Code::NO_ERROR)].concat();
    assert_eq!(heard(&mut client, &first), ["1 failed, retryable: ended by the server (NO_ERROR)", "draining"]);
}

#[test]
fn answered_requests_are_not_retryable() {
    let refused = [headers(1, "", OK), rst(1, Code::REFUSED_STREAM)].concat();
    check("GET", refused, &["1 head HTTP/2 200||", "1 failed: reset by the server (REFUSED_STREAM)"]);
    check(
        "GET GET",
        [headers(3, "", OK), headers(1, "", &[(":status", "100")]), goaway(0, Code::NO_ERROR)].concat(),
        &[
            "3 head HTTP/2 200||",
            "1 interim HTTP/2 100||",
            "1 failed, retryable: ended by the server (NO_ERROR)",
            "3 failed: ended by the server (NO_ERROR)",
            "draining",
        ],
    );
    // Even if its last byte has not been reported as sent.
    let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
    client.start(&request("GET"), false).unwrap();
    client.poll_transmit(Nanos(0)).unwrap();
    heard(&mut client, &[settings(&[]), headers(1, "", OK)].concat());
    client.handle_eof();
    let mut events = Vec::new();
    take_events(&mut client, b"", &mut events);
    assert_eq!(events, ["1 failed: closed by the server inside a response body", "draining"]);
}

#[test]
fn heads_wait_for_allowed_streams() {
    let get = |number| format!("HEADERS {number} :method: GET|:scheme: http|:path: / END_STREAM");
    let mut client = Scene::new("GET GET").connected();
    for _ in 0..4 {
        client.start(&request("GET"), false).unwrap();
    }
    feed(&mut client, &settings(&[(3, 3)]));
    assert_eq!(sent(&mut client), ["SETTINGS ACK".to_owned(), get(5)]);
    assert!(client.poll_transmit(Nanos(0)).is_none());
    client.cancel(StreamId(7));
    assert_eq!(sent(&mut client), [""; 0]);
    heard(&mut client, &headers(1, "END_STREAM", OK));
    assert_eq!(sent(&mut client), [get(9)]);
    feed(&mut client, &settings(&[(3, 0)]));
    assert_eq!(client.overdue_server_event(Some(StreamId(11))), Some(Error::NoStreams));
    assert_eq!(client.overdue_server_event(Some(StreamId(9))), None);
    heard(&mut client, &[3, 5, 9].map(|number| headers(number, "END_STREAM", OK)).concat());
    assert_eq!(sent(&mut client), ["SETTINGS ACK"]);
    feed(&mut client, &settings(&[(3, 1)]));
    assert_eq!(sent(&mut client), ["SETTINGS ACK".to_owned(), get(11)]);
}
