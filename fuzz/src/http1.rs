//! HTTP/1.x: any bytes, any split.

use onrush_proto::{Event, StreamId};

use crate::conversation::{Conversation, InputSplit, ObservedEvent};

/// Responses of a server that sends anything. The first two bytes are settings, the rest is sent. In the first byte,
/// bits 0 and 1 are the depth minus one, bit 2 makes every second request a `HEAD`, and bit 3 keeps the last byte of
/// each request unsent. In the second byte, bit 5 starts a request for each finished one, and the lower bits choose the
/// split. (Digits and letters are suitable first bytes of a seed.)
pub fn http1_response(data: &[u8]) {
    let [scene, split, bytes @ ..] = data else { return };
    let conversation = Conversation {
        depth: usize::from(scene & 3) + 1,
        methods: if scene & 4 == 0 { vec!["GET"] } else { vec!["GET", "HEAD"] },
        refills: split & 32 != 0,
        sends_all: scene & 8 == 0,
    };
    check_splits(&conversation, bytes, *split);
}

/// Fields after a chunked body.
const TRAILERS: &[u8] = b"Digest: none\r\nExpires:never\r\n";

/// Reads any bytes as a chunked body, and then the same bytes correctly encoded in chunks. The first byte chooses the
/// split and the chunks.
pub fn chunked(data: &[u8]) {
    let [split, bytes @ ..] = data else { return };
    let conversation = Conversation { depth: 1, methods: vec!["GET"], refills: false, sends_all: true };
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_splits(&conversation, &[head, bytes].concat(), *split);

    let encoded = [head, &in_chunks(bytes, *split)[..]].concat();
    let heard = check_splits(&conversation, &encoded, *split);
    let decoded: Vec<u8> = heard.iter().filter(|heard| is_data(heard)).flat_map(|heard| heard.bytes.clone()).collect();
    assert_eq!(decoded, bytes);
    let stream = StreamId(0);
    let trailers = heard.iter().find(|heard| heard.event == Event::Trailer { stream });
    assert_eq!(trailers.map(|trailers| &trailers.bytes[..]), Some(TRAILERS));
    assert!(heard.iter().any(|heard| heard.event == Event::Complete { stream, grpc_status: 0, is_early: false }));
}

/// Checks that bytes give equal events in one piece, one by one, and in pieces of many sizes. Skipping may only omit
/// data. Returns the events.
fn check_splits(conversation: &Conversation, bytes: &[u8], split: u8) -> Vec<ObservedEvent> {
    let whole = [bytes.len().max(1)];
    let pieces = sizes(split);
    let (heard, _) = conversation.play(bytes, &whole, InputSplit::Looks);
    for sizes in [&[1][..], &pieces] {
        assert_eq!(conversation.play(bytes, sizes, InputSplit::Looks).0, heard, "in pieces of {sizes:?}");
    }
    assert!(data_len(&heard) <= bytes.len() as u64);
    for sizes in [&whole[..], &pieces] {
        let (heard_besides, skipped) = conversation.play(bytes, sizes, InputSplit::Skips);
        assert_eq!(without_data(&heard_besides), without_data(&heard), "skipping, in pieces of {sizes:?}");
        assert_eq!(data_len(&heard_besides) + skipped, data_len(&heard));
    }
    heard
}

fn without_data(heard: &[ObservedEvent]) -> Vec<&ObservedEvent> {
    heard.iter().filter(|heard| !is_data(heard)).collect()
}

fn data_len(heard: &[ObservedEvent]) -> u64 {
    heard.iter().filter(|heard| is_data(heard)).map(|heard| heard.bytes.len() as u64).sum()
}

fn is_data(heard: &ObservedEvent) -> bool {
    matches!(heard.event, Event::Data { .. })
}

/// Piece sizes from 1 to 23 bytes, derived from a seed.
fn sizes(seed: u8) -> Vec<usize> {
    (1..=16).map(|index| (usize::from(seed & 31) + 1) * index * index % 23 + 1).collect()
}

/// Encodes bytes in chunks of many sizes, with extensions and a trailer.
fn in_chunks(mut bytes: &[u8], seed: u8) -> Vec<u8> {
    let mut chunks = Vec::new();
    for &size in sizes(seed).iter().cycle() {
        let (chunk, rest) = bytes.split_at(size.min(bytes.len()));
        if chunk.is_empty() {
            break;
        }
        let extension = if size % 2 == 0 { "" } else { ";odd=\"yes\"" };
        chunks.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        chunks.extend_from_slice(chunk);
        chunks.extend_from_slice(b"\r\n");
        bytes = rest;
    }
    [&chunks, &b"0\r\n"[..], TRAILERS, b"\r\n"].concat()
}
