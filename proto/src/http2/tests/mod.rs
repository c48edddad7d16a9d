//! Conversations: the server's bytes, and the resulting events and replies, for every split.

mod any_bytes;
mod breaches;
mod driver;
mod floods;
mod life;
mod memo;
mod memory;
mod requests;
mod responses;
mod server;
mod uploads;

use proptest::prelude::*;

use self::server::*;
use super::frame::{flag, kind};
use super::*;
use crate::told::{event_text, join_event_bytes};
use crate::{Breach, RequestParts};

/// The state of a connection before the server's input.
#[derive(Clone)]
struct Scene {
    options: Http2Options,
    /// The requests, by their methods. `POST` has a body of 70,000 bytes, more than the first window.
    methods: &'static str,
    /// True if the server's SETTINGS come before the input.
    is_greeted: bool,
}

impl Scene {
    /// A scene in which everything is wanted, and the server's SETTINGS come first.
    fn new(methods: &'static str) -> Self {
        let options = Http2Options { streams: 100, wants_body: true, wants_fields: true, ..Http2Options::default() };
        Self { options, methods, is_greeted: true }
    }

    /// A connection on which the requests have been sent.
    fn connected(&self) -> Http2 {
        let mut client = Http2::new(&SharedContext::new(self.options.clone()));
        for method in self.methods.split_whitespace() {
            client.start(&request(method), false).unwrap();
        }
        sent(&mut client);
        if self.is_greeted {
            feed(&mut client, &settings(&[]));
            assert_eq!(sent(&mut client), ["SETTINGS ACK"]);
        }
        client
    }

    /// Checks the events caused by `input`, followed by the frames sent. `<eof>` at the end of the input ends the
    /// stream. Neither may depend on the split: one piece, byte by byte, and cut in two anywhere (a long input at some
    /// places).
    #[track_caller]
    fn check(&self, input: impl AsRef<[u8]>, events: &[&str]) {
        let input = input.as_ref();
        assert_eq!(self.converse(input, [input.len()]), events, "in one piece");
        assert_eq!(self.converse(input, [1]), events, "byte by byte");
        let step = 1 + input.len() / 1000 * 50;
        for cut in (1..input.len()).step_by(step) {
            assert_eq!(self.converse(input, [cut, input.len()]), events, "cut at {cut}");
        }
    }

    /// The events as text, with data and trailers joined, followed by the frames sent. The piece sizes repeat until the
    /// input ends.
    fn converse(&self, input: &[u8], sizes: impl IntoIterator<Item = usize, IntoIter: Clone>) -> Vec<String> {
        let mut client = self.connected();
        let mut sizes = sizes.into_iter().cycle();
        let mut events = Vec::new();
        let mut frames = Vec::new();
        let (mut bytes, ends) = input.strip_suffix(b"<eof>").map_or((input, false), |bytes| (bytes, true));
        while let Some((piece, rest)) = sizes.next().and_then(|size| bytes.split_at_checked(size.min(bytes.len()))) {
            if piece.is_empty() {
                break;
            }
            let mut left = piece;
            while !left.is_empty() {
                let used = client.handle_bytes(left, Nanos(0));
                let made_events = take_events(&mut client, left, &mut events);
                assert!(used == left.len() || (used > 0 && made_events), "stopped after {used} of {left:?}");
                frames.extend(sent(&mut client));
                left = &left[used..];
            }
            bytes = rest;
        }
        if ends {
            client.handle_eof();
            take_events(&mut client, b"", &mut events);
            frames.extend(sent(&mut client));
        }
        events.extend(frames.into_iter().map(|frame| format!("> {frame}")));
        events
    }
}

/// Checks the effects of `input` on a connection with a `GET`; see [`Scene::check`].
#[track_caller]
fn check(methods: &'static str, input: impl AsRef<[u8]>, events: &[&str]) {
    Scene::new(methods).check(input, events);
}

fn request(method: &str) -> Request {
    let body = if method == "POST" { vec![b'x'; 70_000] } else { Vec::new() };
    Request::new(RequestParts {
        method: method.into(),
        target: "/".into(),
        body: body.into(),
        ..RequestParts::default()
    })
}

/// Passes bytes that cause no event.
#[track_caller]
fn feed(client: &mut Http2, bytes: &[u8]) {
    assert_eq!(heard(client, bytes), [""; 0]);
}

/// Passes bytes and returns the events.
fn heard(client: &mut Http2, mut bytes: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let used = client.handle_bytes(bytes, Nanos(0));
        take_events(client, bytes, &mut events);
        bytes = &bytes[used..];
    }
    events
}

/// The frames sent by the client, all accepted by the transport.
fn sent(client: &mut Http2) -> Vec<String> {
    sent_at(client, Nanos(0))
}

/// [`sent`] at another time.
fn sent_at(client: &mut Http2, now: Nanos) -> Vec<String> {
    let mut bytes = Vec::new();
    while let Some(transmit) = client.poll_transmit(now) {
        bytes.extend_from_slice(&transmit.bytes());
        client.handle_sent(transmit.bytes().len());
    }
    described(&bytes)
}

/// Appends the events as text. Returns true if there were any.
fn take_events(client: &mut Http2, input: &[u8], events: &mut Vec<String>) -> bool {
    let mut any = false;
    while let Some(event) = client.poll_event() {
        any = true;
        let mut text = Vec::new();
        client.write_text(input, &mut text);
        let lines = String::from_utf8_lossy(&text).replace("\r\n", "|");
        let text = match event {
            Event::Interim { stream, status } => {
                assert!(lines.starts_with(&format!("HTTP/2 {status}|")));
                format!("{} interim {lines}", stream.0)
            }
            Event::Head { stream, status } => {
                assert!(lines.starts_with(&format!("HTTP/2 {status}|")));
                format!("{} head {lines}", stream.0)
            }
            Event::Data { stream, range } => {
                join_event_bytes(events, format!("{} data ", stream.0), &input[range]);
                continue;
            }
            Event::Trailer { stream } => format!("{} trailer {lines}", stream.0),
            Event::Lives { .. } | Event::Message { .. } => unreachable!("no request opens a lasting stream"),
            event => event_text(&event),
        };
        events.push(text);
    }
    any
}

/// Varied conversations, good and bad, for random splits.
fn samples() -> Vec<(Scene, Vec<u8>)> {
    let ok = || headers(1, "", &[(":status", "200"), ("server", "x")]);
    vec![
        (
            Scene::new("GET GET"),
            [ok(), data(1, "", b"hello"), headers(3, "END_STREAM", &[(":status", "404")]), data(1, "END_STREAM", b"!")]
                .concat(),
        ),
        (
            Scene::new("POST GET"),
            [
                headers(3, "", &[(":status", "100")]),
                padded_data(3, "", 3, b"early"),
                frame(0, "", "WINDOW_UPDATE", &1000_u32.to_be_bytes()),
                ok(),
                settings(&[(4, 10), (3, 1)]),
                frame(0, "", "PING", b"12345678"),
                headers(1, "END_STREAM", &[("expires", "never")]),
            ]
            .concat(),
        ),
        (
            Scene::new("GET GET GET"),
            [ok(), goaway(3, Code::NO_ERROR), data(1, "END_STREAM", b"bye"), b"<eof>".to_vec()].concat(),
        ),
        (
            Scene { is_greeted: false, ..Scene::new("GET") },
            [settings(&[(1, 0)]), ok(), frame(1, "", "HEADERS", b"\x80"), data(1, "", b"?")].concat(),
        ),
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        sample in 0..4_usize,
        sizes in proptest::collection::vec(1..40_usize, 1..30),
        cut in 0..100_usize,
    ) {
        let (scene, input) = &samples()[sample];
        let input = &input[..input.len().saturating_sub(cut).max(1)];
        let whole = scene.converse(input, [input.len()]);
        prop_assert_eq!(scene.converse(input, sizes), whole);
    }
}
