//! Duties of the driver, and the events it gets.

use std::iter;

use super::*;

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn capacity_is_the_smaller_limit_less_in_flight() {
    let mut client = Http2::new(&SharedContext::new(Http2Options { streams: 200, ..Http2Options::default() }));
    assert_eq!((client.capacity(), client.streams_allowed()), (100, None), "assumed until the server has spoken");
    client.start(&request("GET"), false).unwrap();
    assert_eq!(client.capacity(), 99);
    sent(&mut client);
    let limit = settings(&[(3, 5)]);
    feed(&mut client, &limit[..14]);
    assert_eq!(client.capacity(), 99);
    feed(&mut client, &limit[14..]);
    assert_eq!((client.capacity(), client.streams_allowed()), (4, Some(5)));
    feed(&mut client, &settings(&[(4, 70_000)]));
    assert_eq!(client.capacity(), 4);
    feed(&mut client, &settings(&[(3, 0)]));
    assert_eq!((client.capacity(), client.overdue_server_event(None)), (0, Some(Error::NoStreams)));
    feed(&mut client, &settings(&[(3, u32::MAX)]));
    assert_eq!((client.capacity(), client.overdue_server_event(None)), (199, None));

    let mut client = Http2::new(&SharedContext::new(Http2Options { streams: 200, ..Http2Options::default() }));
    assert_eq!(client.overdue_server_event(None), Some(Error::NoSettings));
    feed(&mut client, &settings(&[]));
    assert_eq!((client.capacity(), client.streams_allowed()), (200, Some(u32::MAX)));
}

#[test]
fn minimum_streams_ignore_values_before_counting() {
    let shared = SharedContext::new(Http2Options { streams: 200, ..Http2Options::default() });
    let mut client = Http2::new(&shared);
    let mut then = |allowed: u32| {
        feed(&mut client, &settings(&[(3, allowed)]));
        shared.observations().streams_allowed_min
    };
    assert_eq!([0, u32::MAX, 0, 4, 0, 9].map(&mut then), [0, u32::MAX, u32::MAX, 4, 4, 4].map(Some));
    let known = |allowed: &[u32]| {
        shared.reset_counts(allowed);
        let seen = shared.observations();
        (seen.streams_allowed_min, seen.streams_allowed_max, shared.streams_known())
    };
    assert_eq!(known(&[0]), (Some(0), Some(0), Some(4)));
    assert_eq!([0, 9].map(&mut then), [0, 9].map(Some));
    assert_eq!(known(&[]), (None, None, Some(4)));
    assert_eq!(known(&[7, u32::MAX]), (Some(7), Some(u32::MAX), Some(7)));
}

#[test]
fn ready_output_is_sent_at_once() {
    let mut client = Scene::new("").connected();
    feed(&mut client, &[settings(&[]), frame(0, "", "PING", b"12345678")].concat());
    client.start(&request("GET"), false).unwrap();
    client.start(&request("HEAD"), false).unwrap();
    let transmit = client.poll_transmit(Nanos(0)).unwrap();
    assert_eq!(
        described(&transmit.bytes()),
        [
            "SETTINGS ACK",
            "PING ACK 12345678",
            "HEADERS 1 :method: GET|:scheme: http|:path: / END_STREAM",
            "HEADERS 3 :method: HEAD|:scheme: http|:path: / END_STREAM"
        ]
    );
    assert!(client.poll_transmit(Nanos(0)).is_none());
}

#[test]
fn buffers_are_reused_across_connections() {
    let shared = SharedContext::new(Http2Options::default());
    let mut places = Vec::new();
    for _ in 0..3 {
        let mut client = Http2::new(&shared);
        client.start(&request("GET"), false).unwrap();
        let transmit = client.poll_transmit(Nanos(0)).unwrap();
        places.push(transmit.bytes().as_ptr());
    }
    assert_eq!([places[1], places[2]], [places[0]; 2]);
}

#[test]
fn the_current_response_follows_its_frame() {
    let mut client = Scene::new("GET GET").connected();
    let (head, body) = (headers(3, "", OK), data(3, "", b"hello"));
    feed(&mut client, &head[..8]);
    assert_eq!(client.reading(), None);
    feed(&mut client, &head[8..9]);
    assert_eq!(client.reading(), Some(StreamId(3)));
    heard(&mut client, &head[9..]);
    assert_eq!(client.reading(), None);
    heard(&mut client, &body[..10]);
    assert_eq!(client.reading(), Some(StreamId(3)));
    client.cancel(StreamId(3));
    assert_eq!(client.reading(), None);
}

#[test]
fn only_frame_data_is_skippable() {
    let mut client = Scene::new("GET").connected();
    heard(&mut client, &headers(1, "", OK));
    let body = padded_data(1, "END_STREAM", 2, b"hello");
    for (bytes, skip) in [(&body[..9], 0), (&body[9..10], 5), (&body[10..11], 4)] {
        heard(&mut client, bytes);
        assert_eq!(client.may_skip(), skip);
    }
    client.handle_skipped(3);
    assert_eq!((client.poll_event(), client.may_skip()), (None, 1));
    client.handle_skipped(1);
    assert_eq!((client.poll_event(), client.may_skip()), (None, 0));
    assert_eq!(heard(&mut client, &body[15..]), ["1 complete"]);

    let mut client = Scene::new("GET").connected();
    heard(&mut client, &headers(1, "", OK));
    heard(&mut client, &data(1, "END_STREAM", b"hello")[..9]);
    client.handle_skipped(5);
    let mut events = Vec::new();
    take_events(&mut client, b"", &mut events);
    assert_eq!(events, ["1 complete"]);
}

#[test]
fn remaining_body_follows_content_length() {
    let mut client = Scene::new("GET GET").connected();
    for (stream, length) in [(1, "100000"), (3, "10")] {
        heard(&mut client, &headers(stream, "", &[(":status", "200"), ("content-length", length)]));
    }
    for (bytes, coming) in [
        (data(1, "", &[b'a'; 1_000]), 99_000),
        (padded_data(1, "", 2, b"bb"), 98_998),
        (data(3, "END_STREAM", b"0123456789"), 0),
        (data(1, "", b"c"), 98_997),
    ] {
        heard(&mut client, &bytes);
        assert_eq!(client.body_bytes_to_come(), coming);
    }

    let mut client = Scene::new("GET").connected();
    heard(&mut client, &[headers(1, "", OK), data(1, "", b"hello")].concat());
    assert_eq!(client.body_bytes_to_come(), 0, "the server does not say");
}

#[test]
fn fields_stay_until_the_next_input() {
    let mut client = Scene::new("GET").connected();
    let head = headers(1, "", &[(":status", "200"), ("a", "b"), ("c", "")]);
    client.handle_bytes(&head, Nanos(0));
    let fields: Vec<(&[u8], &[u8])> = vec![(b"a", b"b"), (b"c", b"")];
    assert_eq!(client.fields(&head).collect::<Vec<_>>(), fields);
    assert_eq!(client.poll_event(), Some(Event::Head { stream: StreamId(1), status: 200 }));
    assert_eq!(client.fields(&head).count(), 2);
    client.handle_bytes(b"\0", Nanos(0));
    let mut text = Vec::new();
    client.write_text(b"\0", &mut text);
    assert_eq!((client.fields(b"\0").count(), text), (0, vec![]));
}

#[test]
fn grpc_messages_survive_without_wanted_fields() {
    let call: &[(&str, &str)] = &[("a", "b"), ("grpc-message", "no%20luck"), ("grpc-status", "14")];
    for wants_fields in [false, true] {
        let mut scene = Scene::new("GET GET");
        scene.options.wants_fields = wants_fields;
        let mut client = scene.connected();
        heard(&mut client, &headers(1, "", OK));
        let in_head = [&[(":status", "200")], call].concat();
        for (stream, block) in [(1, call), (3, &in_head)] {
            let end = headers(stream, "END_STREAM", block);
            client.handle_bytes(&end, Nanos(0));
            let complete = Some(Event::Complete { stream: StreamId(stream), grpc_status: 14, is_early: false });
            assert!(iter::from_fn(|| Some(client.poll_event())).take(3).any(|event| event == complete));
            assert_eq!(client.fields(&end).value(b"grpc-message"), Some(&b"no%20luck"[..]), "{stream}");
            assert_eq!((client.poll_event(), client.fields(&end).count()), (None, 0));
        }
    }
}

#[test]
fn windows_are_renewed_at_half() {
    let mut scene = Scene::new("GET GET");
    scene.options.connection_window = 100_000;
    scene.options.window = 40_000;
    let piece = data(1, "", &[b'x'; 10_000]);
    let mut client = scene.connected();
    heard(&mut client, &headers(1, "", OK));
    for sent_expected in
        [&[][..], &[], &["WINDOW_UPDATE 1 30000"], &[], &[], &["WINDOW_UPDATE 0 60000", "WINDOW_UPDATE 1 30000"]]
    {
        assert_eq!(heard(&mut client, &piece).len(), 1);
        assert_eq!(sent(&mut client), sent_expected);
    }
    // The stream no longer needs a window, but the connection does, even for unwanted bytes.
    client.cancel(StreamId(1));
    assert_eq!(sent(&mut client), ["RST_STREAM 1 CANCEL"]);
    for _ in 0..5 {
        feed(&mut client, &piece);
        assert_eq!(sent(&mut client), [""; 0]);
    }
    feed(&mut client, &piece);
    assert_eq!(sent(&mut client), ["WINDOW_UPDATE 0 60000"]);
}

#[test]
fn tiny_windows_are_renewed_in_time() {
    for (window, frame, expected) in [
        // Less than half of the window is used, and less than another such frame is left.
        (2_047, 300, "WINDOW_UPDATE 1 300"),
        (2_047, 1_020, "WINDOW_UPDATE 1 1020"),
        (16_383, 8_191, "WINDOW_UPDATE 1 8191"),
        (20_000, 9_000, "WINDOW_UPDATE 1 9000"),
    ] {
        let mut scene = Scene::new("GET");
        scene.options.window = window;
        let mut client = scene.connected();
        heard(&mut client, &headers(1, "", OK));
        let piece = data(1, "", &vec![b'x'; frame]);
        for _ in 0..3 {
            heard(&mut client, &piece);
            assert_eq!(sent(&mut client), [expected], "{frame} of {window}");
        }
    }
    // A server that keeps to its window never counts as one that does not read, however small its frames are.
    let mut scene = Scene::new("GET");
    scene.options.window = 16_383;
    let mut client = scene.connected();
    heard(&mut client, &headers(1, "", OK));
    let events = heard(&mut client, &data(1, "", b"x").repeat(16_383));
    assert!(!events.iter().any(|event| event.contains("failed")), "{events:?}");
    assert_eq!(sent(&mut client).len(), 7);
}

#[test]
fn observations_are_counted_over_connections() {
    let shared = SharedContext::new(Http2Options { streams: 4, ..Http2Options::default() });
    let mut one = Http2::new(&shared);
    let mut other = Http2::new(&shared);
    for client in [&mut one, &mut other] {
        client.start(&request("GET"), false).unwrap();
        client.start(&request("GET"), false).unwrap();
        sent_at(client, Nanos(100));
    }
    feed(&mut one, &settings(&[(3, 2)]));
    sent_at(&mut one, Nanos(150));
    heard(&mut one, &[headers(1, "END_STREAM", &[(":status", "200"), ("a", "b")]), rst(3, Code::CANCEL)].concat());
    sent_at(&mut one, Nanos(250));
    feed(&mut other, &settings(&[]));
    heard(&mut other, &data(1, "", b"x"));
    // The first GOAWAY announces the second.
    heard(&mut other, &goaway(3, Code::NO_ERROR));
    heard(&mut other, &goaway(3, Code(77)));
    heard(&mut other, &frame(0, "", "DATA", b""));
    let seen = shared.observations();
    assert_eq!((seen.connections, seen.streams_allowed_min, seen.streams_peak), (2, Some(2), 2));
    let only = |code: Code| {
        let mut codes = Codes::default();
        codes.note(code);
        codes
    };
    assert_eq!(seen.reset_received, only(Code::CANCEL));
    assert_eq!(seen.reset_sent, only(Code::PROTOCOL_ERROR));
    let mut both = only(Code::new(77));
    both.note(Code::NO_ERROR);
    assert_eq!((&seen.goaway_received, &seen.connections_ended), (&both, &only(Code::new(77))));
    let because = |code| GoawayReason { code, text: b"because".to_vec(), times: 1 };
    assert_eq!(seen.reasons, [because(Code::NO_ERROR), because(Code::new(77))]);
    assert_eq!(seen.goaway_sent, only(Code::PROTOCOL_ERROR));
    assert_eq!((seen.header_bytes_received, seen.header_bytes_decoded), (6, 7 + 3 + 2));
    assert_eq!((seen.streams_blocked_ns, seen.window_blocked_ns), (100, 0));
    let mut twice = seen.clone();
    twice.add_counts(&seen);
    assert_eq!((twice.connections, twice.streams_allowed_min, twice.streams_peak), (4, Some(2), 2));
    assert_eq!((twice.goaway_received.other, twice.connections_ended.other, twice.streams_blocked_ns), (2, 2, 200));
}

#[test]
fn padding_counts_against_windows() {
    let shared = SharedContext::new(Http2Options::default());
    let mut client = Http2::new(&shared);
    sent(&mut client);
    feed(&mut client, &settings(&[]));
    client.start(&request("GET"), false).unwrap();
    sent(&mut client);
    heard(&mut client, &[headers(1, "", OK), data(1, "", b"four"), frame(1, "PADDED", "DATA", b"\x02x..")].concat());
    let counted = || shared.observations().data_bytes_received;
    assert_eq!(counted(), 0);
    client.count_so_far(Nanos(1));
    assert_eq!(counted(), 8);
    shared.reset_counts(&[]);
    heard(&mut client, &data(1, "END_STREAM", b"end"));
    drop(client);
    assert_eq!(counted(), 3);
}

#[test]
fn next_connections_assume_the_allowed_streams() {
    let shared = SharedContext::new(Http2Options { streams: 200, ..Http2Options::default() });
    let mut first = Http2::new(&shared);
    feed(&mut first, &settings(&[(3, 5)]));
    let mut next = Http2::new(&shared);
    assert_eq!((next.capacity(), next.streams_allowed()), (5, None));
    feed(&mut next, &settings(&[]));
    assert_eq!(next.capacity(), 200);
    feed(&mut next, &settings(&[(3, 150)]));
    assert_eq!(Http2::new(&shared).capacity(), 5);
}
