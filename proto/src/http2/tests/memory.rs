//! Memory that a connection needs, however its server behaves.

use super::*;

impl Http2 {
    /// Number of heap bytes that belong to this connection alone.
    fn heap(&self) -> usize {
        self.streams.heap()
            + self.resets.heap()
            + self.block.heap()
            + self.decoder.heap()
            + self.sender.heap()
            + self.own_memo.as_ref().map_or(0, |(memo, _)| memo.heap())
            + self.heard.heap()
    }
}

/// The header block of a response of nginx 1.22: it inserts three fields into the table.
const NGINX: &[u8] = b"\x88\x76\x0cnginx/1.22.1\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x5f\x0atext/plain\x0f\x0d\x013";

#[test]
fn idle_connections_use_little_memory() {
    let mut client = Http2::new(&SharedContext::new(Http2Options { streams: 1, ..Http2Options::default() }));
    client.start(&request("GET"), false).unwrap();
    sent(&mut client);
    feed(&mut client, &settings(&[(3, 128), (4, 65_536), (5, 16_777_215)]));
    let response = [frame(1, "END_HEADERS", "HEADERS", NGINX), data(1, "END_STREAM", b"abc")].concat();
    assert_eq!(heard(&mut client, &response), ["1 head HTTP/2 200||", "1 complete"]);
    sent(&mut client);
    assert!(client.heap() <= 512, "{} bytes", client.heap());
    assert!(size_of::<Http2>() <= 640, "{} bytes", size_of::<Http2>());
}

#[test]
fn long_decoded_fields_are_not_kept() {
    // A field of 4,000 bytes in the table, then a block that refers to it nineteen times, with a status whose fields
    // are read.
    let mut client = Scene::new("").connected();
    let long = [b"\x8d\x40\x01a\x7f\xa1\x1e", &[b'x'; 4_000][..]].concat();
    for block in [long, [&[0x8d][..], &[0xbe; 19]].concat()] {
        let StreamId(number) = client.start(&request("GET"), false).unwrap();
        sent(&mut client);
        let events = heard(&mut client, &frame(number, "END_HEADERS END_STREAM", "HEADERS", &block));
        assert!(events[0].starts_with(&format!("{number} head HTTP/2 404|a: xxx")), "{:.80}", events[0]);
    }
    assert!(client.heap() < 6_000, "{} bytes", client.heap());
}

#[test]
fn hostile_connections_use_bounded_memory() {
    const BOUND: usize = 192 * 1024;
    let mut client = Scene::new("").connected();
    // Small fields fill the table, and large blocks arrive in pieces; replies are requested and not read; streams are
    // reset, and one stays open forever.
    let fields: Vec<u8> =
        (0..2000_u32).flat_map(|field| [&b"\x40\x02"[..], &field.to_be_bytes()[2..], b"\0"].concat()).collect();
    let mut largest = 0;
    client.start(&request("GET"), false).unwrap();
    sent(&mut client);
    let mut number = 1;
    for response in 0..2000 {
        client.start(&request("GET"), false).unwrap();
        sent(&mut client);
        number += 2;
        let fields = if response % 100 == 0 { &fields[..10_000] } else { b"" };
        heard(&mut client, &frame(number, "END_HEADERS", "HEADERS", &[b"\x88", fields].concat()));
        heard(&mut client, &data(number, "END_STREAM", b""));
        largest = largest.max(client.heap());
        assert_eq!(client.life, Life::Open);
    }
    for _ in 0..200 {
        heard(&mut client, &frame(0, "", "PING", b"12345678"));
    }
    // A head of 79 KiB is ready to be read.
    let long = [b"\x88\0\x01a\x7f\x81\xf0\x04", &[b'x'; 80_000][..]].concat();
    let (first, rest) = long.split_at(16_384);
    assert_eq!(heard(&mut client, &frame(1, "", "HEADERS", first)), [""; 0]);
    let mut pieces = rest.chunks(16_384).peekable();
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() { "END_HEADERS" } else { "" };
        client.handle_bytes(&frame(1, flags, "CONTINUATION", piece), Nanos(0));
        largest = largest.max(client.heap());
    }
    assert!(client.heard.heap() > 80_000, "{}", client.heard.heap());
    while client.poll_event().is_some() {}
    assert_eq!(client.heard.heap(), 0, "it has been read");
    heard(&mut client, &frame(1, "", "HEADERS", &[0x88; 16_384]));
    for _ in 0..4 {
        heard(&mut client, &frame(1, "", "CONTINUATION", &[0x88; 16_384])[..16_000]);
        heard(&mut client, &[0x88; 393]);
        largest = largest.max(client.heap());
    }
    assert_eq!(client.life, Life::Open);
    assert!((100_000..BOUND).contains(&largest), "{largest} bytes");
    heard(&mut client, &frame(1, "", "CONTINUATION", &[0x88; 16_384]));
    assert_eq!(client.life, Life::Over);
}

#[test]
fn repeated_responses_allocate_nothing() {
    let shared = SharedContext::new(Http2Options { streams: 4, ..Http2Options::default() });
    let mut client = Http2::new(&shared);
    feed(&mut client, &settings(&[]));
    let get = request("GET");
    let mut heaps = Vec::new();
    for number in (1..2001).step_by(2) {
        client.start(&get, false).unwrap();
        sent(&mut client);
        heard(&mut client, &frame(number, "END_HEADERS END_STREAM", "HEADERS", &NGINX[..NGINX.len() - 4]));
        heaps.push(client.heap());
    }
    // The table is full after some responses, and its entries are shared with the remembered block.
    assert_eq!(heaps[100], heaps[999]);
    assert!(heaps[999] < 2048, "{} bytes", heaps[999]);
}
