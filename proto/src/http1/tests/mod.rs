//! Conversations: requests, responses, and the resulting events, for every split.

mod chunks;
mod driver;
mod framing;
mod heads;
mod life;
mod outline;
mod tunnel;

use proptest::prelude::*;

use super::*;
use crate::told::{event_text, join_event_bytes};
use crate::{Request, RequestParts};

/// HTTP/1 does not use the time.
const NOW: Nanos = Nanos(0);

/// Checks the events of `input` as the response to requests with `methods`, all sent before. `<eof>` at the end of the
/// input ends the stream. Events must not depend on the split: one piece, byte by byte, and cut in two anywhere (a long
/// input at some places).
#[track_caller]
fn check(methods: &str, input: impl AsRef<[u8]>, events: &[&str]) {
    let input = input.as_ref();
    assert_eq!(converse(methods, input, [input.len()]), events, "in one piece");
    assert_eq!(converse(methods, input, [1]), events, "byte by byte");
    let step = 1 + input.len() / 1000 * 50;
    for cut in (1..input.len()).step_by(step) {
        assert_eq!(converse(methods, input, [cut, input.len()]), events, "cut at {cut}");
    }
}

/// The events as text, with data and trailers joined. The piece sizes repeat until the input ends.
fn converse(methods: &str, input: &[u8], sizes: impl IntoIterator<Item = usize, IntoIter: Clone>) -> Vec<String> {
    let mut client = connected(methods);
    let mut sizes = sizes.into_iter().cycle();
    let mut events = Vec::new();
    let (mut bytes, ends) = input.strip_suffix(b"<eof>").map_or((input, false), |bytes| (bytes, true));
    while let Some((piece, rest)) = sizes.next().and_then(|size| bytes.split_at_checked(size.min(bytes.len()))) {
        if piece.is_empty() {
            break;
        }
        let mut left = piece;
        while !left.is_empty() {
            let used = client.handle_bytes(left, NOW);
            let made_events = take_events(&mut client, left, &mut events);
            assert!(used == left.len() || (used > 0 && made_events), "stopped after {used} of {left:?} for no reason");
            left = &left[used..];
        }
        bytes = rest;
    }
    if ends {
        client.handle_eof();
        take_events(&mut client, b"", &mut events);
    }
    events
}

/// A connection on which a request of each method has been sent.
fn connected(methods: &str) -> Http1 {
    let methods: Vec<&str> = methods.split_whitespace().collect();
    let mut client = Http1::new(methods.len());
    for method in methods {
        client.start(&request(method), false).unwrap();
    }
    while let Some(transmit) = client.poll_transmit(NOW) {
        client.handle_sent(transmit.bytes().len());
    }
    client
}

fn request(method: &str) -> Request {
    Request::new(RequestParts { method: method.into(), target: "/".into(), ..RequestParts::default() })
}

/// The text of the last head or trailers.
fn text(client: &Http1, input: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    client.write_text(input, &mut text);
    text
}

/// Appends the events as text. Returns true if there were any.
fn take_events(client: &mut Http1, input: &[u8], events: &mut Vec<String>) -> bool {
    let mut any = false;
    while let Some(event) = client.poll_event() {
        any = true;
        let line = match event {
            Event::Interim { stream, status } => format!("{} interim {status}", stream.0),
            Event::Head { stream, status } => format!("{} head {status}", stream.0),
            Event::Data { stream, range } => {
                join_event_bytes(events, format!("{} data ", stream.0), &input[range]);
                continue;
            }
            Event::Trailer { stream } => {
                join_event_bytes(events, format!("{} trailer ", stream.0), &text(client, input));
                continue;
            }
            Event::Lives { .. } | Event::Message { .. } => unreachable!("HTTP/1 is never switched to another protocol"),
            event => event_text(&event),
        };
        events.push(line);
    }
    any
}

/// Checks that the response to a `GET` fails with `error` before its head is reported.
#[track_caller]
fn check_fails(input: impl AsRef<[u8]>, error: Error) {
    check("GET", input, &[&format!("0 failed: {error}"), "draining"]);
}

/// Varied conversations, good and bad, for random splits.
const SAMPLES: [(&str, &str); 6] = [
    (
        "GET GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworld<eof>",
    ),
    (
        "GET HEAD",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=b\r\nhello\r\n\
         6\r\n world\r\n0\r\nA: b\r\n\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 5\n\nextra",
    ),
    ("GET GET", "HTTP/1.0 200 OK\r\nServer: SimpleHTTP\r\n\r\nall of this is one body\r\n0\r\n\r\n<eof>"),
    ("GET GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5x\r\n<eof>"),
    ("GET GET GET", "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    ("POST GET", "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno<html>"),
];

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        sample in 0..SAMPLES.len(),
        sizes in proptest::collection::vec(1..40_usize, 1..30),
        cut in 0..300_usize,
    ) {
        let (methods, input) = SAMPLES[sample];
        let input = &input.as_bytes()[..input.len().saturating_sub(cut).max(1)];
        let whole = converse(methods, input, [input.len()]);
        prop_assert_eq!(converse(methods, input, sizes), whole);
    }
}
