//! Reuse and end of connections.

use super::*;

#[test]
fn announced_closes_return_later_requests() {
    for fields in [
        "Connection: close",
        "connection: CLOSE",
        "Connection: keep-alive, Close",
        "Connection: upgrade ,\tclose,",
        "Connection: close, upgrade",
        "Connection: keep-alive\r\nConnection: close",
        "Proxy-Connection: close",
    ] {
        check(
            "GET GET",
            format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\n\r\nhi<eof>"),
            &[
                "0 head 200",
                "0 data hi",
                "0 complete",
                "1 failed, retryable: the connection was closed before the request was answered",
                "draining",
            ],
        );
    }
}

#[test]
fn versions_decide_keep_alive_by_default() {
    for (start, lives) in [
        ("HTTP/1.1 200 OK\r\n", true),
        ("HTTP/1.2 200 OK\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: closed\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive, upgrade\r\n", true),
        ("HTTP/1.0 200 OK\r\nProxy-Connection: keep-alive\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\n", false),
        ("HTTP/1.0 200 OK\r\n", false),
        ("HTTP/2.0 200 OK\r\n", false),
        ("HTTP/2.0 200 OK\r\nConnection: keep-alive\r\n", true),
        ("HTTP/0.9 200 OK\r\n", false),
    ] {
        let mut events = vec!["0 head 200", "0 data hi", "0 complete"];
        events.extend((!lives).then_some("draining"));
        check("GET", format!("{start}Content-Length: 2\r\n\r\nhi"), &events);
    }
}

#[test]
fn bytes_after_the_drain_are_ignored() {
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\n<eof>",
        &["0 head 200", "0 data hi", "0 complete", "draining"],
    );
}

#[test]
fn unsolicited_bytes_fail_the_connection() {
    check(
        "GET",
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n<eof>",
        &["0 head 204", "0 complete", "draining: bytes after a complete response"],
    );
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!",
        &["0 head 200", "0 data hi", "0 complete", "draining: bytes after a complete response"],
    );
    for early in ["HTTP/1.1 204 No Content\r\n\r\n", "\r\n"] {
        check("", early, &["draining: bytes before any request"]);
    }
}

#[test]
fn empty_lines_after_bodies_are_skipped() {
    let events = ["0 head 200", "0 data hi", "0 complete", "1 head 204", "1 complete"];
    for empty in ["\r\n", "\n", "\r\n\r\n"] {
        let first = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi{empty}");
        check("GET GET", format!("{first}HTTP/1.1 204 No Content\r\n\r\n{empty}"), &events);
        check("GET", format!("{first}!"), &[&events[..3], &["draining: bytes after a complete response"]].concat());
        let ended = "draining: closed by the server before a response began";
        for end in ["<eof>", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"] {
            check("GET", format!("{first}{end}"), &[&events[..3], &[ended]].concat());
        }
    }
    let endless = format!("HTTP/1.1 204 No Content\r\n\r\n{}", "\r\n".repeat(HEAD_MAX / 2 + 1));
    check("GET", endless, &["0 head 204", "0 complete", "draining: bytes after a complete response"]);
}

#[test]
fn idle_ends_fail_the_connection() {
    let events = ["0 head 204", "0 complete", "draining: closed by the server before a response began"];
    check("GET", "HTTP/1.1 204 No Content\r\n\r\n<eof>", &events);
}

#[test]
fn ends_before_any_response_fail_all_requests() {
    let failed = |stream: u32| format!("{stream} failed: closed by the server before a response began");
    check("GET GET", "<eof>", &[&failed(0), &failed(1), "draining"]);
    check("GET GET", "\r\n<eof>", &[&failed(0), &failed(1), "draining"]);
    check(
        "GET GET GET",
        "HTTP/1.1 204 No\r\n\r\n<eof>",
        &["0 head 204", "0 complete", &failed(1), &failed(2), "draining"],
    );
    check("GET", "HTTP/1.1 100 Continue\r\n\r\n<eof>", &["0 interim 100", &failed(0), "draining"]);
}

#[test]
fn truncated_responses_fail_all_requests() {
    let behind = "1 failed: the connection was closed before the request was answered";
    let failed = "0 failed: closed by the server inside a response body";
    for head in ["H", "HTTP/1.1 200 OK\r\n", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r"] {
        let events = ["0 failed: closed by the server inside a response head", behind, "draining"];
        check("GET GET", format!("{head}<eof>"), &events);
    }
    for body in [
        "Content-Length: 3\r\n\r\nhi",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
    ] {
        let events = ["0 head 200", "0 data hi", failed, behind, "draining"];
        check("GET GET", format!("HTTP/1.1 200 OK\r\n{body}<eof>"), &events);
    }
    let trailers = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nExpires: ne<eof>";
    check("GET GET", trailers, &["0 head 200", "0 trailer Expires: ne", failed, behind, "draining"]);
    check("GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n<eof>", &["0 head 200", failed, "draining"]);
}

/// Responses of HAProxy, Node and Jetty before they close an idle connection (RFC 9110, 15.5.9).
const LAST_WORDS: [&str; 5] = [
    "HTTP/1.1 408 Request Time-out\r\nContent-length: 4\r\nConnection: close\r\n\r\nslow",
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
    "HTTP/1.0 408 Request Time-out\r\nCache-Control: no-cache\r\n\r\nslow",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 503 Going Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
];

/// The events of `input` in pieces of `size`, followed by the end of the stream, on a connection that has had
/// `answered` responses; `waits`: a further request has not left.
fn unasked(answered: usize, waits: bool, input: &str, size: usize) -> Vec<String> {
    let (mut client, mut events) = (Http1::new(1), Vec::new());
    let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
    for _ in 0..answered {
        client.start(&request("GET"), false).unwrap();
        let length = client.poll_transmit(NOW).unwrap().bytes().len();
        client.handle_sent(length);
        client.handle_bytes(answer, NOW);
        take_events(&mut client, answer, &mut events);
    }
    if waits {
        client.start(&request("GET"), false).unwrap();
    }
    events.clear();
    for piece in input.as_bytes().chunks(size) {
        assert_eq!(client.handle_bytes(piece, NOW), piece.len());
        take_events(&mut client, piece, &mut events);
        assert_eq!(client.capacity(), 0);
        assert!(client.poll_transmit(NOW).is_none(), "nothing leaves any more");
    }
    client.handle_eof();
    take_events(&mut client, b"", &mut events);
    events
}

#[test]
fn unsolicited_responses_may_announce_the_end() {
    let mistakes = [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 408 Request Timeout\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 408 Request Timeout\r\n",
        "HTTP/1.1 4",
        "HTTQ",
        "hello",
    ];
    for (answered, error) in [(0, Error::EarlyBytes), (1, Error::ExtraBytes)] {
        let inputs = LAST_WORDS.map(|input| (input, Error::ClosedBeforeResponse));
        for (input, expected) in inputs.into_iter().chain(mistakes.map(|input| (input, error))) {
            for size in 1..=input.len() {
                let mut told = vec![format!("draining: {expected}")];
                assert_eq!(unasked(answered, false, input, size), told, "{input:?} in pieces of {size}");
                // A request that has not left by then leaves on another connection.
                told.insert(0, format!("{answered} failed, retryable: {}", Error::ConnectionEnded));
                assert_eq!(unasked(answered, true, input, size), told, "{input:?} in pieces of {size}");
            }
        }
    }
}

#[test]
fn only_idle_408_responses_can_be_declined() {
    let other = [
        "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nslow",
    ];
    let declined = |requests: usize, sent: usize, input: &str| {
        let (mut client, mut events) = (Http1::new(2), Vec::new());
        let first = b"HTTP/1.1 204 No Content\r\n\r\n";
        for _ in 0..requests {
            client.start(&request("GET"), false).unwrap();
        }
        let length = client.poll_transmit(NOW).unwrap().bytes().len();
        client.handle_sent(length);
        if requests > 1 {
            client.poll_transmit(NOW).unwrap();
            client.handle_sent(sent);
            client.handle_bytes(first, NOW);
            take_events(&mut client, first, &mut events);
            client.start(&request("GET"), false).unwrap();
        }
        client.handle_bytes(input.as_bytes(), NOW);
        let Some(Event::Head { stream, .. }) = client.poll_event() else { panic!("no head") };
        let is_declined = client.decline_timeout(stream);
        events.clear();
        take_events(&mut client, input.as_bytes(), &mut events);
        (is_declined, events)
    };
    let whole = 18;
    let behind = format!("2 failed, retryable: {}", Error::ConnectionEnded);
    for input in &LAST_WORDS[..3] {
        // All requests after it also leave on another connection.
        assert_eq!(declined(2, whole, input), (true, vec![behind.clone(), "draining".into()]), "{input:?}");
        assert!(!declined(1, whole, input).0, "the first request of a connection: {input:?}");
        assert!(!declined(2, whole - 1, input).0, "not all of it has been sent: {input:?}");
    }
    for input in other {
        assert!(!declined(2, whole, input).0, "the connection stays open: {input:?}");
    }
}

#[test]
fn truncated_responses_name_the_missing_part() {
    for (input, missing) in [
        ("", None),
        ("\r\n", None),
        ("H", Some(Missing::HeadEnd)),
        ("HTTP/1.1 200 OK\r\n", Some(Missing::HeadEnd)),
        ("HTTP/1.1 100 Continue\r\n\r\n", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", None),
        ("HTTP/1.1 200 OK\r\n\r\n", Some(Missing::Close)),
        ("HTTP/1.1 200 OK\r\n\r\nhi", Some(Missing::Close)),
    ] {
        for size in [1, input.len().max(1)] {
            let (mut client, mut events) = (connected("GET GET"), Vec::new());
            for piece in input.as_bytes().chunks(size) {
                let mut left = piece;
                while !left.is_empty() {
                    let used = client.handle_bytes(left, NOW);
                    take_events(&mut client, left, &mut events);
                    left = &left[used..];
                }
            }
            assert_eq!(client.missing_part(StreamId(0)), missing, "{input:?} in pieces of {size}");
            assert_eq!(client.missing_part(StreamId(1)), None, "{input:?}");
        }
    }
}
