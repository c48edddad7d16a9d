//! Requests as they are sent.

use super::*;
use crate::http1::{self, Wire};

/// The HEADERS of a request.
fn encoded(request: &Request, options: Http2Options) -> String {
    let mut client = Http2::new(&SharedContext::new(options));
    client.start(request, false).unwrap();
    sent(&mut client).into_iter().find(|frame| frame.starts_with("HEADERS 1 ")).unwrap()["HEADERS 1 ".len()..]
        .to_owned()
}

fn parts(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Request {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Request::new(RequestParts { method: method.into(), target: target.into(), headers, body: body.into() })
}

/// A request written by a script.
fn wire(text: &str) -> Request {
    let mut found = Vec::new();
    http1::outline(text.as_bytes(), &mut found).unwrap();
    Request::from(Wire::from_outline(&text.as_bytes().into(), found.remove(0)))
}

#[track_caller]
fn check_encoded(request: Request, expected: &str) {
    assert_eq!(encoded(&request, Http2Options::default()), expected);
}

#[test]
fn connections_begin_with_the_preface() {
    let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
    let transmit = client.poll_transmit(Nanos(0)).unwrap();
    assert!(transmit.bytes().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0"));
    assert_eq!(described(&transmit.bytes()), ["SETTINGS 2=0 4=1073741823 6=81920", "WINDOW_UPDATE 0 1073676288"]);
    let options =
        Http2Options { table: 0, frame_max: 1 << 20, window: 65_535, connection_window: 0, ..Http2Options::default() };
    let mut client = Http2::new(&SharedContext::new(options));
    assert_eq!(sent(&mut client), ["SETTINGS 1=0 2=0 5=1048576 6=81920"]);
}

#[test]
fn plain_gets_are_three_indices_and_host() {
    let get = parts("GET", "/", &[("Host", "127.0.0.1:8080")], b"");
    check_encoded(get.clone(), ":method: GET|:scheme: http|:authority: 127.0.0.1:8080|:path: / END_STREAM");
    let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
    sent(&mut client);
    client.start(&get, false).unwrap();
    let transmit = client.poll_transmit(Nanos(0)).unwrap();
    assert_eq!(transmit.bytes().len(), 9 + 3 + 12, "{:?}", transmit.bytes());
    let https = encoded(&get, Http2Options { is_https: true, ..Http2Options::default() });
    assert!(https.contains(":scheme: http|"), "a request belongs to one scheme");
    let https = encoded(&parts("GET", "/", &[], b""), Http2Options { is_https: true, ..Http2Options::default() });
    assert_eq!(https, ":method: GET|:scheme: https|:path: / END_STREAM");
}

#[test]
fn connection_fields_are_dropped_and_names_lowered() {
    let headers = [
        ("User-Agent", "A b"),
        ("HOST", "a"),
        ("Connection", "X-Hop, keep-alive"),
        ("x-hop", "1"),
        ("Keep-Alive", "1"),
        ("Proxy-Connection", "1"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "1"),
        ("TE", "gzip"),
        ("X-Hope", "1"),
        ("TE", "trailers"),
    ];
    check_encoded(
        parts("DELETE", "/a?b", &headers, b""),
        ":method: DELETE|:scheme: http|:authority: a|:path: /a?b|user-agent: A b|x-hope: 1|te: trailers END_STREAM",
    );
}

#[test]
fn targets_may_contain_authority() {
    for (target, expected) in [
        ("*", ":method: OPTIONS|:scheme: http|:authority: h|:path: * END_STREAM"),
        ("", ":method: OPTIONS|:scheme: http|:authority: h|:path: / END_STREAM"),
        ("https://a:1/b?c", ":method: OPTIONS|:scheme: https|:authority: a:1|:path: /b?c END_STREAM"),
        ("http://a", ":method: OPTIONS|:scheme: http|:authority: a|:path: * END_STREAM"),
        ("http://a?x", ":method: OPTIONS|:scheme: http|:authority: a|:path: /?x END_STREAM"),
    ] {
        check_encoded(parts("OPTIONS", target, &[("Host", "h")], b""), expected);
    }
    check_encoded(parts("CONNECT", "a:1", &[("Host", "h")], b""), ":method: CONNECT|:authority: a:1 END_STREAM");
}

#[test]
fn empty_paths_become_the_root() {
    for (target, path) in [("http://a", "/"), ("http://a?x", "/?x"), ("http://a/?x", "/?x")] {
        let expected = format!(":method: GET|:scheme: http|:authority: a|:path: {path} END_STREAM");
        check_encoded(parts("GET", target, &[], b""), &expected);
    }
}

#[test]
fn values_are_trimmed_and_empty_hosts_dropped() {
    let headers = [("Host", " "), ("a", " b c\t"), ("te", "trailers ")];
    check_encoded(
        parts("GET", "/", &headers, b""),
        ":method: GET|:scheme: http|:path: /|a: b c|te: trailers END_STREAM",
    );
    check_encoded(wire("GET / HTTP/1.1\r\nHost:\r\n\r\n"), ":method: GET|:scheme: http|:path: / END_STREAM");
}

#[test]
fn bodies_get_a_content_length() {
    check_encoded(parts("POST", "/", &[], b"hello"), ":method: POST|:scheme: http|:path: /|content-length: 5");
    check_encoded(parts("POST", "/", &[], b""), ":method: POST|:scheme: http|:path: /|content-length: 0 END_STREAM");
    check_encoded(
        parts("POST", "/", &[("Content-Length", "9")], b"hello"),
        ":method: POST|:scheme: http|:path: /|content-length: 9",
    );
}

#[test]
fn chunked_bodies_are_joined() {
    let chunked = [("Transfer-Encoding", "gzip, Chunked")];
    let request = parts("POST", "/", &chunked, b"5;x\r\nhello\r\n1\r\n!\r\n0\r\na: b\r\n\r\n");
    for request in [
        request,
        wire("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n1\r\n!\r\n0\r\na: b\r\n\r\n"),
    ] {
        let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
        client.start(&request, false).unwrap();
        assert_eq!(sent(&mut client)[2..], ["HEADERS 1 :method: POST|:scheme: http|:path: /", "DATA 1 6 END_STREAM"]);
    }
}

#[test]
fn script_requests_are_reencoded() {
    check_encoded(
        wire("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept:  b \r\n\r\n"),
        ":method: GET|:scheme: http|:authority: a|:path: /x|accept: b END_STREAM",
    );
    check_encoded(
        wire("\r\nPOST  http://b/x  HTTP/1.0\nHost: a\nContent-Length: 2\n\nhi"),
        ":method: POST|:scheme: http|:authority: b|:path: /x|content-length: 2",
    );
}

#[test]
fn batched_requests_have_their_own_bodies() {
    let text = "POST /1 HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiPOST /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nyou";
    let mut found = Vec::new();
    http1::outline(text.as_bytes(), &mut found).unwrap();
    let bytes = text.as_bytes().into();
    let mut client = Http2::new(&SharedContext::new(Http2Options { streams: 2, ..Http2Options::default() }));
    for outline in found {
        client.start(&Request::from(Wire::from_outline(&bytes, outline)), false).unwrap();
    }
    let transmit = client.poll_transmit(Nanos(0)).unwrap();
    let bodies: &[u8] = b"\0\0\x02\0\x01\0\0\0\x01hi\0\0\x03\0\x01\0\0\0\x03you";
    assert!(transmit.bytes().ends_with(bodies), "{:?}", transmit.bytes());
}

#[test]
fn credentials_are_never_indexed() {
    let mut client = Http2::new(&SharedContext::new(Http2Options::default()));
    sent(&mut client);
    let headers = [("Authorization", "\u{1}"), ("Cookie", "\u{2}"), ("Accept", "\u{3}")];
    client.start(&parts("GET", "/", &headers, b""), false).unwrap();
    let transmit = client.poll_transmit(Nanos(0)).unwrap();
    let expected: &[u8] = b"\x82\x86\x84\x1f\x08\x01\x01\x1f\x11\x01\x02\x0f\x04\x01\x03";
    assert_eq!(&transmit.bytes()[9..], expected);
}

#[test]
fn shrunk_tables_are_confirmed_once() {
    let mut client = Scene::new("GET").connected();
    feed(&mut client, &settings(&[(1, 4096), (1, 65_536), (1, 4095), (1, 4096)]));
    client.start(&request("GET"), false).unwrap();
    client.start(&request("GET"), false).unwrap();
    feed(&mut client, &settings(&[(1, 0)]));
    client.start(&request("GET"), false).unwrap();
    let headers = |stream, update| format!("HEADERS {stream} {update}:method: GET|:scheme: http|:path: / END_STREAM");
    assert_eq!(
        sent(&mut client),
        ["SETTINGS ACK", "SETTINGS ACK", &headers(3, "(table update)|"), &headers(5, ""), &headers(7, "")]
    );
    feed(&mut client, &settings(&[(1, 4096), (1, 100)]));
    client.start(&request("GET"), false).unwrap();
    assert_eq!(sent(&mut client), ["SETTINGS ACK", &headers(9, "")]);
}

#[test]
fn requests_are_encoded_once() {
    let shared = SharedContext::new(Http2Options::default());
    let request = parts("GET", "/", &[], b"");
    for request in [request, wire("GET / HTTP/1.1\r\n\r\n")] {
        assert!(std::rc::Rc::ptr_eq(&shared.http2_request(&request), &shared.http2_request(&request.clone())));
    }
}
