//! Responses as they should be.

use super::*;

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn responses_are_heads_and_data() {
    let input = [
        headers(1, "", &[(":status", "200"), ("content-length", "10"), ("server", "a b")]),
        data(1, "", b"hello"),
        data(1, "", b""),
        data(1, "END_STREAM", b"world"),
    ];
    check(
        "GET",
        input.concat(),
        &["1 head HTTP/2 200|content-length: 10|server: a b||", "1 data helloworld", "1 complete"],
    );
}

#[test]
fn responses_are_interleaved_in_any_order() {
    let input = [
        headers(3, "", OK),
        headers(5, "END_STREAM", &[(":status", "204")]),
        headers(1, "", &[(":status", "404")]),
        data(3, "", b"three"),
        data(1, "END_STREAM", b"one"),
        data(3, "END_STREAM", b"more"),
    ];
    check(
        "GET GET GET",
        input.concat(),
        &[
            "3 head HTTP/2 200||",
            "5 head HTTP/2 204||",
            "5 complete",
            "1 head HTTP/2 404||",
            "3 data three",
            "1 data one",
            "1 complete",
            "3 data more",
            "3 complete",
        ],
    );
}

#[test]
fn interim_responses_leave_the_request_open() {
    let input = [
        headers(1, "", &[(":status", "100")]),
        headers(1, "", &[(":status", "103"), ("link", "</a>")]),
        headers(1, "END_STREAM", OK),
    ];
    check(
        "GET",
        input.concat(),
        &["1 interim HTTP/2 100||", "1 interim HTTP/2 103|link: </a>||", "1 head HTTP/2 200||", "1 complete"],
    );
}

#[test]
fn trailers_end_the_response() {
    let input = [headers(1, "", OK), data(1, "", b"x"), headers(1, "END_STREAM", &[("a", "b"), ("expires", "0")])];
    check("GET", input.concat(), &["1 head HTTP/2 200||", "1 data x", "1 trailer a: b|expires: 0|", "1 complete"]);
    let empty = [headers(1, "", OK), headers(1, "END_STREAM", &[])];
    check("GET", empty.concat(), &["1 head HTTP/2 200||", "1 complete"]);
}

#[test]
fn padding_is_skipped() {
    let mut padded = vec![4];
    padded.extend(block(OK));
    padded.extend(b"\0\0\0\0");
    let mut with_priority = vec![2, 0, 0, 0, 0, 9];
    with_priority.extend(block(OK));
    with_priority.extend(b"\0\0");
    let input = [
        frame(1, "PADDED END_HEADERS", "HEADERS", &padded),
        padded_data(1, "", 5, b"hello"),
        padded_data(1, "", 0, b""),
        padded_data(1, "END_STREAM", 255, b"!"),
        frame(3, "PADDED PRIORITY END_HEADERS END_STREAM", "HEADERS", &with_priority),
    ];
    check(
        "GET GET",
        input.concat(),
        &["1 head HTTP/2 200||", "1 data hello!", "1 complete", "3 head HTTP/2 200||", "3 complete"],
    );
}

#[test]
fn header_blocks_may_span_frames() {
    let block = block(&[(":status", "200"), ("server", "a long enough name")]);
    let (a, rest) = block.split_at(3);
    let (b, c) = rest.split_at(4);
    let first = [&[3, 0, 0, 0, 0, 1][..], a, &[0; 3]].concat();
    let input = [
        frame(1, "END_STREAM PADDED PRIORITY", "HEADERS", &first),
        frame(1, "", "CONTINUATION", b),
        frame(1, "", "CONTINUATION", b""),
        frame(1, "END_HEADERS", "CONTINUATION", c),
    ];
    check("GET", input.concat(), &["1 head HTTP/2 200|server: a long enough name||", "1 complete"]);
    let input = [frame(1, "END_STREAM", "HEADERS", b""), frame(1, "END_HEADERS", "CONTINUATION", &block)];
    check("GET", input.concat(), &["1 head HTTP/2 200|server: a long enough name||", "1 complete"]);
}

#[test]
fn tables_persist_between_blocks() {
    let insert = [&block(OK)[..], b"\x40\x01a\x01b"].concat();
    let refer = [&block(OK)[..], b"\xbe"].concat();
    let whole = |stream, block: &[u8]| frame(stream, "END_HEADERS END_STREAM", "HEADERS", block);
    let input = [whole(1, &insert), whole(3, &refer), whole(5, &insert), whole(7, &refer), whole(9, &refer)];
    let mut events = Vec::new();
    for stream in [1, 3, 5, 7, 9] {
        events.extend([format!("{stream} head HTTP/2 200|a: b||"), format!("{stream} complete")]);
    }
    check("GET GET GET GET GET", input.concat(), &events.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn bodyless_responses_may_have_a_length() {
    for status in ["204", "304"] {
        let head = format!("1 head HTTP/2 {status}|content-length: 5||");
        check("GET", headers(1, "END_STREAM", &[(":status", status), ("content-length", "5")]), &[&head, "1 complete"]);
    }
    let input = [headers(1, "", &[(":status", "200"), ("content-length", "5")]), data(1, "END_STREAM", b"")];
    check("HEAD", input.concat(), &["1 head HTTP/2 200|content-length: 5||", "1 complete"]);
}

#[test]
fn tunnels_end_with_their_head() {
    check("CONNECT", headers(1, "", OK), &["1 head HTTP/2 200||", "1 complete", "> RST_STREAM 1 CANCEL"]);
    check(
        "CONNECT",
        [headers(1, "", &[(":status", "403")]), data(1, "END_STREAM", b"no")].concat(),
        &["1 head HTTP/2 403||", "1 data no", "1 complete"],
    );
}

#[test]
fn grpc_statuses_fail_calls() {
    let failed = "1 complete, grpc-status 14";
    let trailers = |status| headers(1, "END_STREAM", &[("grpc-status", status)]);
    let head = headers(1, "", OK);
    check(
        "GET",
        [head.clone(), data(1, "", b"x"), trailers("14")].concat(),
        &["1 head HTTP/2 200||", "1 data x", "1 trailer grpc-status: 14|", failed],
    );
    check(
        "GET",
        [head.clone(), trailers("0")].concat(),
        &["1 head HTTP/2 200||", "1 trailer grpc-status: 0|", "1 complete"],
    );
    check(
        "GET",
        [head.clone(), trailers("bad")].concat(),
        &["1 head HTTP/2 200||", "1 trailer grpc-status: bad|", "1 complete, grpc-status 2"],
    );
    for (status, error) in [("16", "16"), ("17", "17"), ("18", "17"), ("4294967296", "17")] {
        let trailer = format!("1 trailer grpc-status: {status}|");
        let failed = format!("1 complete, grpc-status {error}");
        check("GET", [head.clone(), trailers(status)].concat(), &["1 head HTTP/2 200||", &trailer, &failed]);
    }
    check(
        "GET",
        headers(1, "END_STREAM", &[(":status", "200"), ("grpc-status", "14")]),
        &["1 head HTTP/2 200|grpc-status: 14||", failed],
    );
}

#[test]
fn unwanted_parts_are_not_reported() {
    let mut scene = Scene::new("GET GET");
    scene.options.wants_body = false;
    scene.options.wants_fields = false;
    let input = [
        headers(1, "", &[(":status", "200"), ("a", "b")]),
        padded_data(1, "", 3, b"body"),
        headers(1, "END_STREAM", &[("a", "b")]),
        headers(3, "", &[(":status", "302"), ("location", "/")]),
        data(3, "END_STREAM", b"body"),
    ];
    scene
        .check(input.concat(), &["1 head HTTP/2 200||", "1 complete", "3 head HTTP/2 302|location: /||", "3 complete"]);
}

#[test]
fn settings_and_pings_are_acknowledged_in_order() {
    let scene = Scene { is_greeted: false, ..Scene::new("GET") };
    let input = [
        settings(&[(3, 5), (0x1234, 7)]),
        frame(0, "ACK", "SETTINGS", b""),
        frame(0, "", "PING", b"abcdefgh"),
        frame(0, "ACK", "PING", b"ignored!"),
        settings(&[]),
        frame(0, "", "PING", b"12345678"),
    ];
    scene.check(input.concat(), &["> SETTINGS ACK", "> PING ACK abcdefgh", "> SETTINGS ACK", "> PING ACK 12345678"]);
}

#[test]
fn unknown_frames_are_ignored() {
    let mut reserved = headers(1, "END_STREAM", OK);
    reserved[5] |= 0x80;
    reserved[4] |= 0x52;
    let input = [
        frame(0, "", "unknown", b"payload"),
        frame(1, "END_STREAM END_HEADERS", "unknown", b""),
        frame(1, "", "PRIORITY", b"\0\0\0\x01\x10"),
        frame(8, "", "PRIORITY", b"\0\0\0\x01\x10"),
        window(0, 1),
        reserved,
    ];
    check("GET", input.concat(), &["1 head HTTP/2 200||", "1 complete"]);
}

#[test]
fn connect_uploads_are_cancelled() {
    let body = vec![b'x'; 70_000].into();
    let parts = RequestParts { method: "CONNECT".into(), target: "a:1".into(), body, ..RequestParts::default() };
    let mut client = Scene::new("").connected();
    client.start(&Request::new(parts), false).unwrap();
    sent(&mut client);
    let events = heard(&mut client, &headers(1, "END_STREAM", &[(":status", "200")]));
    assert_eq!(events, ["1 head HTTP/2 200||", "1 complete, early"]);
    assert_eq!(sent(&mut client), ["RST_STREAM 1 CANCEL"]);
}
