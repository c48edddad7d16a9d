//! Operations of `proto` and `stats` whose instructions are counted: `instructions NAME TIMES` repeats one of them
//! TIMES times, and `instructions` alone lists their names.
//!
//! `make bench ROWS=instructions` runs each under valgrind with two values of TIMES; the difference is what the
//! operation costs, without the start of the process. Nothing here measures anything by itself.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use onrush::stats::{Interval, Totals};
use onrush_proto::http1::outline;
use onrush_proto::{Client, Http1, Parts, Request};

/// An operation, repeated this many times.
type Operation = fn(u32);

const OPERATIONS: &[(&str, Operation)] = &[
    ("exchange-small", |times| exchange(times, SMALL)),
    ("exchange-nginx", |times| exchange(times, NGINX)),
    ("exchange-chunked", |times| exchange(times, CHUNKED)),
    ("exchange-split", exchange_split),
    ("outline-request", outline_request),
    ("record-latency", record_latency),
    ("record-status", record_status),
    ("merge-interval", merge_interval),
];

/// The response of the embedded target to `/`.
const SMALL: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
/// A head as nginx sends it for a small file.
const NGINX: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
    Content-Type: text/html\r\nContent-Length: 13\r\nLast-Modified: Fri, 20 Nov 2026 12:00:00 GMT\r\n\
    Connection: keep-alive\r\nETag: \"655b4c80-d\"\r\nAccept-Ranges: bytes\r\n\r\nHello, World!";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n8\r\n, World!\r\n0\r\n\r\n";
/// A request of 150 bytes, as a script writes it.
const WRITTEN: &[u8] =
    b"GET /search?query=onrush&page=12345 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nX-Counter: 1234567\r\n\
    Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456\r\n\r\n";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match &words[..] {
        [] => {
            OPERATIONS.iter().for_each(|(name, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        [name, times] => {
            let operation = OPERATIONS.iter().find(|(known, _)| known == name);
            let (Some((_, operation)), Ok(times)) = (operation, times.parse()) else { return usage() };
            operation(times);
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: instructions [NAME TIMES]");
    ExitCode::FAILURE
}

/// A request is started and sent, and its response arrives in one piece.
fn exchange(times: u32, answer: &[u8]) {
    let request = request();
    let mut client = Http1::new(1);
    for _ in 0..times {
        ask(&mut client, &request);
        take(&mut client, black_box(answer));
    }
}

/// The same, but the response arrives in two pieces, cut inside its head.
fn exchange_split(times: u32) {
    let request = request();
    let mut client = Http1::new(1);
    let (first, second) = NGINX.split_at(100);
    for _ in 0..times {
        ask(&mut client, &request);
        take(&mut client, black_box(first));
        take(&mut client, black_box(second));
    }
}

fn request() -> Request {
    let headers = vec![("Host".into(), "127.0.0.1:8080".into())];
    Request::new(Parts { method: "GET".into(), target: "/".into(), headers, ..Parts::default() })
}

fn ask(client: &mut Http1, request: &Request) {
    client.start(request, false).expect("the last request was answered");
    while let Some(transmit) = client.poll_transmit() {
        client.handle_sent(black_box(transmit.bytes()).len());
    }
}

fn take(client: &mut Http1, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        bytes = &bytes[client.handle_bytes(bytes)..];
        while let Some(event) = client.poll_event() {
            black_box(event);
        }
    }
}

/// Finds the requests in the bytes of a script: one.
fn outline_request(times: u32) {
    let mut found = Vec::new();
    for _ in 0..times {
        found.clear();
        outline(black_box(WRITTEN), &mut found).expect("it is a request");
        black_box(&found);
    }
}

/// Records latencies between 1 µs and 1 ms, spread over the bins.
fn record_latency(times: u32) {
    let mut interval = Interval::default();
    for number in 0..u64::from(times) {
        interval.latency.record(black_box(1_000 + number * 7_919 % 1_000_000));
    }
    black_box(&interval);
}

fn record_status(times: u32) {
    let mut interval = Interval::default();
    for _ in 0..times {
        interval.statuses.record(black_box(200));
    }
    black_box(&interval);
}

/// Adds an interval of 1,000 latencies to the totals and clears it.
fn merge_interval(times: u32) {
    let (mut totals, mut interval) = (Totals::default(), Interval::default());
    for _ in 0..times {
        for number in 0..1_000 {
            interval.latency.record(1_000 + number * 7_919 % 1_000_000);
        }
        totals += black_box(&interval);
        interval.clear();
    }
    black_box(&totals);
}
