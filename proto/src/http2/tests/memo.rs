//! Remembered header blocks have the same meaning as decoded ones.

use super::*;

const INSERT_AB: &[u8] = b"\x88\x40\x01a\x01b";
const INSERT_CD: &[u8] = b"\x88\x40\x01c\x01d";
const REFER: &[u8] = b"\x88\xbe";

/// A new connection that shares state with others.
fn connected(shared: &SharedContext) -> Http2 {
    let mut client = Http2::new(shared);
    sent(&mut client);
    feed(&mut client, &settings(&[]));
    client
}

/// The fields of the response with this block.
fn fields(client: &mut Http2, block: &[u8]) -> String {
    let StreamId(number) = client.start(&request("GET"), false).unwrap();
    sent(client);
    let events = heard(client, &frame(number, "END_HEADERS END_STREAM", "HEADERS", block));
    events[0].split_once(' ').unwrap().1.to_owned()
}

fn shared() -> SharedContext {
    SharedContext::new(Http2Options { wants_fields: true, ..Http2Options::default() })
}

#[test]
fn remembered_blocks_update_each_table() {
    let shared = shared();
    let mut one = connected(&shared);
    let mut other = connected(&shared);
    for client in [&mut one, &mut other] {
        for _ in 0..3 {
            assert_eq!(fields(client, INSERT_AB), "head HTTP/2 200|a: b||");
        }
        assert_eq!(fields(client, INSERT_CD), "head HTTP/2 200|c: d||");
        assert_eq!(fields(client, b"\x88\xbe\xbf\xc1"), "head HTTP/2 200|c: d|a: b|a: b||");
        assert_eq!(fields(client, b"\x88\xc2"), "failed: HPACK index out of range (COMPRESSION_ERROR)");
    }
}

#[test]
fn table_references_use_current_entries() {
    let shared = shared();
    let mut one = connected(&shared);
    fields(&mut one, INSERT_AB);
    for _ in 0..3 {
        assert_eq!(fields(&mut one, REFER), "head HTTP/2 200|a: b||");
    }
    let mut other = connected(&shared);
    fields(&mut other, INSERT_CD);
    assert_eq!(fields(&mut other, REFER), "head HTTP/2 200|c: d||");
    fields(&mut one, INSERT_CD);
    assert_eq!(fields(&mut one, REFER), "head HTTP/2 200|c: d||");
    // The block may also insert an entry.
    let both = b"\x88\xbe\x7e\x01e";
    assert_eq!(fields(&mut one, both), "head HTTP/2 200|c: d|c: e||");
    assert_eq!(fields(&mut one, both), "head HTTP/2 200|c: e|c: e||");
}

#[test]
fn blocks_may_refer_to_names_alone() {
    let shared = shared();
    let name_only = b"\x88\x7e\x01e";
    for (insert, expected) in [(INSERT_AB, "head HTTP/2 200|a: e||"), (INSERT_CD, "head HTTP/2 200|c: e||")] {
        let mut client = connected(&shared);
        fields(&mut client, insert);
        assert_eq!(fields(&mut client, name_only), expected);
    }
}

#[test]
fn remembered_blocks_still_require_table_updates() {
    let shared = SharedContext::new(Http2Options { table: 0, ..Http2Options::default() });
    let mut client = connected(&shared);
    assert_eq!(fields(&mut client, b"\x88"), "head HTTP/2 200||");
    feed(&mut client, &frame(0, "ACK", "SETTINGS", b""));
    assert_eq!(fields(&mut client, b"\x88"), "failed: bad HPACK table size update (COMPRESSION_ERROR)");
}

#[test]
fn malformed_blocks_are_never_remembered() {
    let shared = shared();
    let mut client = connected(&shared);
    for _ in 0..3 {
        assert_eq!(fields(&mut client, b"\x88\0\x01A\0"), "failed: malformed header field name (PROTOCOL_ERROR)");
    }
}
