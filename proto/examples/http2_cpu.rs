//! Processor time of the HTTP/2 client per request, without any I/O: requests are started, their bytes dropped, and
//! responses like nginx's handed in, 32 at a time on each of four connections.
//!
//! `cargo run --release -p onrush-proto --example http2_cpu`

use std::time::Instant;

use onrush_proto::http1;
use onrush_proto::http2::{Http2, Http2Options, SharedContext};
use onrush_proto::{Client, Event, Nanos, Request, RequestParts};

const CONNECTIONS: usize = 4;
const STREAMS: u32 = 32;
const ROUNDS: u32 = 40_000;

fn main() {
    // `:status: 200`, and three fields that are inserted into the table: server, date and content-type; then
    // content-length, which is not.
    let mut block = b"\x88\x76\x0cnginx/1.22.1\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x5f\x0atext/plain".to_vec();
    block.extend(b"\x0f\x0d\x0213");
    let headers = vec![("Host".to_owned(), "127.0.0.1:8080".to_owned())];
    let get =
        Request::new(RequestParts { method: "GET".into(), target: "/".into(), headers, ..RequestParts::default() });
    measure("the same block every time", &get, |_| block.clone());
    measure("the same, requests from a script", &scripted(), |_| block.clone());
    measure("a block of two references", &get, |number| {
        if number == 0 { b"\x88\x76\x0cnginx/1.22.1\x5f\x0atext/plain".to_vec() } else { b"\x88\xbf\xbe".to_vec() }
    });
    measure("another block every time", &get, |number| {
        let mut block = block.clone();
        block.extend(format!("\x00\x02id\x0c{number:012}").bytes());
        block
    });
    measure_uploads();
}

/// A request as a script writes it, which is read once.
fn scripted() -> Request {
    let text = b"GET /path?query HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: a script\r\nX-Counter: 1234\r\n\r\n";
    let mut found = Vec::new();
    http1::outline(text, &mut found).expect("it is a request");
    Request::from(http1::Wire::from_outline(&text[..].into(), found.remove(0)))
}

/// Prints the time that an upload of 1 MiB needs, in frames of 16 KiB.
fn measure_uploads() {
    let shared = SharedContext::new(Http2Options { streams: 1, ..Http2Options::default() });
    let parts = RequestParts {
        method: "POST".into(),
        target: "/".into(),
        body: vec![7; 1 << 20].into(),
        ..RequestParts::default()
    };
    let request = Request::new(parts);
    let mut client = Http2::new(&shared);
    client.handle_bytes(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff", Nanos(0));
    let uploads = 2000_u32;
    let start = Instant::now();
    for upload in 0..uploads {
        // The connection needs a new window of 1 MiB for each; the response is `204`.
        let stream = (2 * upload + 1).to_be_bytes();
        let input = [&b"\0\0\x04\x08\0\0\0\0\0\0\x10\0\0\0\0\x01\x01\x05"[..], &stream, b"\x89"].concat();
        client.handle_bytes(&input[..13], Nanos(0));
        assert_eq!(turn(&mut client, &request, &input[13..]), 1);
    }
    println!("uploads of 1 MiB: {:.1} µs each", start.elapsed().as_secs_f64() * 1e6 / f64::from(uploads));
}

/// Prints the time that a request needs, with the header block of each response by its number.
fn measure(name: &str, request: &Request, block: impl Fn(u32) -> Vec<u8>) {
    let shared = SharedContext::new(Http2Options { streams: STREAMS, ..Http2Options::default() });
    let mut clients: Vec<Http2> = (0..CONNECTIONS).map(|_| Http2::new(&shared)).collect();
    for client in &mut clients {
        assert_eq!(client.handle_bytes(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80", Nanos(0)), 15);
    }
    let mut input = Vec::new();
    let mut completed = 0;
    let mut elapsed = 0;
    for round in 0..ROUNDS {
        input.clear();
        for number in round * STREAMS..(round + 1) * STREAMS {
            let block = block(number);
            let stream = (number * 2 + 1).to_be_bytes();
            input.extend([0, 0, block.len() as u8, 1, 4]);
            input.extend(stream);
            input.extend(&block);
            input.extend([0, 0, 13, 0, 1]);
            input.extend(stream);
            input.extend(b"Hello, world!");
        }
        let start = Instant::now();
        for client in &mut clients {
            completed += turn(client, request, &input);
        }
        elapsed += start.elapsed().as_nanos();
    }
    assert_eq!(completed, u64::from(ROUNDS * STREAMS) * CONNECTIONS as u64);
    println!("{name}: {:.0} ns a request", elapsed as f64 / completed as f64);
}

/// Starts requests and takes their responses; returns how many were complete.
fn turn(client: &mut Http2, request: &Request, input: &[u8]) -> u64 {
    while client.capacity() > 0 {
        client.start(request, false).expect("there is capacity");
    }
    while let Some(transmit) = client.poll_transmit(Nanos(0)) {
        client.handle_sent(transmit.bytes().len());
    }
    let mut completed = 0;
    let mut left = input;
    while !left.is_empty() {
        let used = client.handle_bytes(left, Nanos(0));
        while let Some(event) = client.poll_event() {
            match event {
                Event::Complete { .. } => completed += 1,
                Event::Head { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        left = &left[used..];
    }
    completed
}
