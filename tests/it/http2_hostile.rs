//! Servers that break the rules of HTTP/2, or use them against the client. The rules are tested frame by frame in
//! `proto/src/http2/tests`. Here the program must name the cause, end in time, stay small and lose no request.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Context, ProgramOutput, Scratch, cases};
use crate::hostile::watch;
use crate::http2_peers::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2Peer, OK, PING, RST_STREAM, STREAMS, WINDOW,
    failures, field, frame, goaway, number, read, response, run, settings,
};
use crate::peers::server;

cases! {
    servers_without_settings_are_abandoned;
    servers_allowing_no_streams_are_abandoned;
    servers_opening_no_window_are_abandoned;
    frequent_goaways_lose_no_request;
    servers_returning_all_requests_are_abandoned;
    goaways_with_errors_are_named;
    reasons_of_goaways_are_shown_and_counted;
    stream_resets_are_named_by_code;
    oversized_header_blocks_are_named;
    frame_floods_are_named;
    endless_bodies_are_abandoned;
    wrong_first_frames_are_named;
}

/// Time limit of such a run on a busy machine. These servers never end it.
const LONGEST: Duration = Duration::from_secs(20);
/// Memory limit of a run, in KiB: less than the flood.
const MEMORY_KIB: u64 = 60_000;

fn servers_without_settings_are_abandoned(context: &Context) {
    let address = server(|stream| Http2Peer::silent(stream)?.drain());
    let result = run_small(context, "-n4 --give-up 200ms", address);
    assert_eq!(failures(&result, "no SETTINGS from the server"), 4, "{result}");
}

/// Requests sent before the limit is known are refused. The others never start, so the run needs a time limit.
fn servers_allowing_no_streams_are_abandoned(context: &Context) {
    let address = server(|stream| {
        let mut peer = Http2Peer::new(stream, &[(STREAMS, 0)])?;
        loop {
            let stream = peer.request()?;
            peer.send(RST_STREAM, 0, stream, &7u32.to_be_bytes())?;
        }
    });
    let result = run_small(context, "-d1s --give-up 300ms", address);
    assert!(failures(&result, "the server allows no streams") > 0, "{result}");
    assert_eq!(number(&result["http2"]["streams_allowed"]), 0, "{result}");
}

fn servers_opening_no_window_are_abandoned(context: &Context) {
    let scratch = Scratch::new("http2-window");
    let body = scratch.file("body", vec![b'x'; 1 << 20]);
    let words = format!("-n4 --give-up 200ms --body @{}", body.display());
    // No window for the stream, or none for the connection after the first 64 KiB.
    for window in [0, i32::MAX as u32] {
        let address = server(move |stream| Http2Peer::new(stream, &[(WINDOW, window)])?.drain());
        let result = run_small(context, &words, address);
        assert_eq!(failures(&result, "the server opens no window for the request's body"), 4, "{result}");
        assert!(number(&result["http2"]["window_blocked_us"]) >= 200_000, "{result}");
    }
}

fn frequent_goaways_lose_no_request(context: &Context) {
    // Of eight requests on a connection, the last is returned seven times before it is the first.
    for (words, each) in [("-c1 --streams 8", 1), ("-c2 --streams 7", 10)] {
        let (output, result, responses) = run_ended(context, words, each);
        assert_eq!((output.requests(), responses), (200, 200), "{each}: {output:?}");
        assert_eq!(output.line("Socket errors"), None, "{each}: {output:?}");
        assert!(number(&result["http2"]["returned"]) > 0, "{each}: {result}");
    }
}

/// Only a connection with at least one response may return a request repeatedly.
fn servers_returning_all_requests_are_abandoned(context: &Context) {
    let address = server(|stream| {
        let mut peer = Http2Peer::new(stream, &[])?;
        peer.request()?;
        peer.stream.write_all(&goaway(0, 0))?;
        peer.drain()
    });
    let result = run_small(context, "-n4", address);
    assert_eq!(failures(&result, "ended by the server (NO_ERROR)"), 4, "{result}");
    assert_eq!(number(&result["http2"]["returned"]), 4, "{result}");
}

/// Runs 200 requests against a server that ends each connection after `each` requests, even if others are in flight.
/// The last value returned is the number of responses that the server sent.
fn run_ended(context: &Context, words: &str, each: u64) -> (ProgramOutput, Value, u64) {
    let responses = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&responses);
    let address = server(move |stream| {
        let mut peer = Http2Peer::new(stream, &[(STREAMS, 100)])?;
        for _ in 1..each {
            let stream = peer.request()?;
            peer.respond(stream)?;
            counted.fetch_add(1, Ordering::Relaxed);
        }
        let stream = peer.request()?;
        counted.fetch_add(1, Ordering::Relaxed);
        // Both at once, so that no request is sent between the two.
        peer.stream.write_all(&[response(stream), goaway(stream, 0)].concat())?;
        peer.drain()
    });
    let (output, result) = run(context.onrush().words("-t1 -n200 --http2").words(words).word(url(address)));
    assert!(output.code == 0 && output.took < LONGEST, "{output:?}");
    let goaways = number(&result["http2"]["goaway_received"]["NO_ERROR"]);
    assert!(goaways >= output.requests() / each - 2, "{goaways}: {result}");
    (output, result, responses.load(Ordering::Relaxed))
}

fn goaways_with_errors_are_named(context: &Context) {
    let address = server(|stream| {
        let mut peer = Http2Peer::new(stream, &[])?;
        let stream = peer.request()?;
        peer.stream.write_all(&goaway(stream, 11))
    });
    let result = run_small(context, "-n4", address);
    assert!(failures(&result, "ended by the server (ENHANCE_YOUR_CALM)") >= 4, "{result}");
    assert_eq!(result["http2"]["goaway_received"], json!({ "ENHANCE_YOUR_CALM": 4 }), "{result}");
    assert_eq!(result["http2"].get("goaway_reasons"), None, "{result}");
}

/// Some servers send nothing else if they do not accept a client.
fn reasons_of_goaways_are_shown_and_counted(context: &Context) {
    const WHY: &[u8] = b"too_many_pings\x1b[31m\r\nnote: fine";
    let shown = "too_many_pings\\x1b[31m\\x0d\\x0anote: fine";
    for with_settings in [true, false] {
        let address = server(move |stream| {
            let mut peer = if with_settings { Http2Peer::new(stream, &[])? } else { Http2Peer::silent(stream)? };
            // Without SETTINGS of the server, its first frame read may not be answered either.
            let stream = if with_settings { peer.request()? } else { 1 };
            let payload = [&stream.to_be_bytes()[..], &11u32.to_be_bytes(), WHY].concat();
            peer.send(GOAWAY, 0, 0, &payload)?;
            peer.stream.shutdown(Shutdown::Write)?;
            peer.drain()
        });
        let scratch = Scratch::new("http2-reasons");
        let [json, markdown] = ["r.json", "r.md"].map(|name| scratch.path().join(name));
        let onrush = context.onrush().words("-t1 -c2 -n4 --http2 -o").word(&json).word("-o").word(&markdown);
        let output = onrush.word(url(address)).run();
        assert_unanswered(&output);
        output.note("ended by the server (ENHANCE_YOUR_CALM)");
        output.note(&format!("      received: \"{shown}\""));
        assert!(std::fs::read_to_string(&markdown).is_ok_and(|text| text.contains(shown)), "{output:?}");
        let result = read(&json);
        // A connection may be opened for a request that another one finally sends.
        let received = number(&result["http2"]["goaway_received"]["ENHANCE_YOUR_CALM"]);
        assert!(received >= 4, "{result}");
        assert_eq!(number(&result["http2"]["goaway_reasons"]["ENHANCE_YOUR_CALM"][shown]), received, "{result}");
    }
}

fn stream_resets_are_named_by_code(context: &Context) {
    // A refused stream's request has not been processed, and is sent once more.
    for (code, name, resets) in [(7u32, "REFUSED_STREAM", 8), (2, "INTERNAL_ERROR", 4), (8, "CANCEL", 4)] {
        let address = server(move |stream| {
            let mut peer = Http2Peer::new(stream, &[])?;
            loop {
                let stream = peer.request()?;
                peer.send(RST_STREAM, 0, stream, &code.to_be_bytes())?;
            }
        });
        let result = run_small(context, "-n4", address);
        assert_eq!(failures(&result, &format!("reset by the server ({name})")), 4, "{result}");
        assert_eq!(result["http2"]["reset_received"], json!({ name: resets }), "{result}");
    }
}

fn oversized_header_blocks_are_named(context: &Context) {
    let many: Vec<u8> = (0..100_000).flat_map(|number| field(&format!("x-{number}"), "y")).collect();
    let bomb = [field("x-bomb", &"y".repeat(4000)), vec![0xbe; 12_000]].concat();
    for block in [many, bomb] {
        let block = [OK, &block].concat();
        let address = server(move |stream| {
            let mut peer = Http2Peer::new(stream, &[])?;
            let stream = peer.request()?;
            let pieces: Vec<&[u8]> = block.chunks(1 << 14).collect();
            for (at, piece) in pieces.iter().enumerate() {
                let kind = if at == 0 { HEADERS } else { CONTINUATION };
                let flags = if at + 1 == pieces.len() { END_HEADERS } else { 0 };
                let ends = if at == 0 { END_STREAM } else { 0 };
                peer.send(kind, flags | ends, stream, piece)?;
            }
            peer.drain()
        });
        let result = run_small(context, "-n4", address);
        assert_eq!(failures(&result, "header block longer than 80 KiB (ENHANCE_YOUR_CALM)"), 4, "{result}");
        assert_eq!(result["http2"]["goaway_sent"], json!({ "ENHANCE_YOUR_CALM": 4 }), "{result}");
    }
}

fn frame_floods_are_named(context: &Context) {
    // The first two require replies. Which of their limits is reached first depends on the amount received at a time.
    let unread = "replies requested but not read (ENHANCE_YOUR_CALM)";
    let useless = "10,000 frames without progress (ENHANCE_YOUR_CALM)";
    let floods: [Flood; 6] = [
        (|_| frame(PING, 0, 0, &[0; 8]), |_| Vec::new(), [unread, useless]),
        (|_| settings(&[(WINDOW, 70_000)]), |_| Vec::new(), [unread, useless]),
        (|_| frame(UNKNOWN, 0, 0, &[]), |_| Vec::new(), [useless; 2]),
        (|stream| frame(HEADERS, END_HEADERS, stream, EARLY_HINTS), |_| Vec::new(), [useless; 2]),
        (|stream| frame(DATA, 0, stream, &[]), |stream| frame(HEADERS, END_HEADERS, stream, OK), [useless; 2]),
        (
            |stream| frame(CONTINUATION, 0, stream, &[]),
            |stream| frame(HEADERS, 0, stream, OK),
            ["header block in too many frames (ENHANCE_YOUR_CALM)"; 2],
        ),
    ];
    for (repeated, beginning, [one, other]) in floods {
        let address = server(move |stream| {
            let mut peer = Http2Peer::new(stream, &[])?;
            let stream = peer.request()?;
            peer.stream.write_all(&beginning(stream))?;
            flood(peer, &repeated(stream))
        });
        let result = run_small(context, "-n4", address);
        let others = if one == other { 0 } else { failures(&result, other) };
        assert_eq!(failures(&result, one) + others, 4, "{result}");
    }
}

/// Repeated frames on a stream, the frames before them, and their possible names.
type Flood = (fn(u32) -> Vec<u8>, fn(u32) -> Vec<u8>, [&'static str; 2]);

/// An unknown frame type.
const UNKNOWN: u8 = 0xfa;
/// `:status: 103`.
const EARLY_HINTS: &[u8] = &[0x08, 3, b'1', b'0', b'3'];

/// Sends 32 MiB of identical frames, and reads no replies.
fn flood(mut peer: Http2Peer, repeated: &[u8]) -> io::Result<()> {
    let piece = repeated.repeat((1 << 18) / repeated.len());
    for _ in 0..128 {
        peer.stream.write_all(&piece)?;
    }
    peer.drain()
}

fn endless_bodies_are_abandoned(context: &Context) {
    let address = server(|stream| {
        let mut peer = Http2Peer::new(stream, &[])?;
        let stream = peer.request()?;
        peer.send(HEADERS, END_HEADERS, stream, OK)?;
        flood(peer, &frame(DATA, 0, stream, &[b'x'; 1 << 14]))
    });
    let result = run_small(context, "-n4 --give-up 300ms", address);
    assert_eq!(number(&result["requests"]["abandoned"]), 4, "{result}");
    assert!(number(&result["bytes_received"]) > 4 << 20, "{result}");
}

fn wrong_first_frames_are_named(context: &Context) {
    let address = server(|stream: TcpStream| {
        let mut peer = Http2Peer::silent(stream)?;
        peer.send(PING, 0, 0, &[0; 8])?;
        peer.drain()
    });
    // One of two connections may be opened for a request that the other finally sends.
    let result = run_small(context, "-c1 -n4", address);
    assert_eq!(failures(&result, "the first frame is not SETTINGS (PROTOCOL_ERROR)"), 4, "{result}");
    assert_eq!(result["http2"]["goaway_sent"], json!({ "PROTOCOL_ERROR": 4 }), "{result}");
}

/// Runs two connections that get no response, and checks that the run ends in time and uses little memory. Returns the
/// result.
fn run_small(context: &Context, words: &str, address: SocketAddr) -> Value {
    let scratch = Scratch::new("http2-hostile");
    let path = scratch.path().join("result.json");
    let onrush = context.onrush().words("-t1 -c2 --http2 --timeout 50ms --io").word(context.backend).words(words);
    let (peak_kib, output) = watch(onrush.word("-o").word(&path).word(url(address)).spawn());
    assert!((1..MEMORY_KIB).contains(&peak_kib), "{peak_kib} KiB: {output:?}");
    assert_unanswered(&output);
    read(&path)
}

fn assert_unanswered(output: &ProgramOutput) {
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    assert!(output.took < LONGEST, "{output:?}");
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/")
}
