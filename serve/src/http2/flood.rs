//! An endless head: a HEADERS frame followed by CONTINUATION frames forever. The library cannot send one.

/// Frame types of HEADERS and CONTINUATION (RFC 9113, section 6).
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// `:status: 200` in the static table of HPACK (RFC 7541, appendix A).
const STATUS_200: &[u8] = &[0x88];

/// Maximum payload that every client must accept.
const PAYLOAD_MAX: usize = 16 * 1024;

/// Appends the start of an endless head on this stream.
pub(super) fn begin_endless_head(stream: u32, out: &mut Vec<u8>) {
    append_frame(HEADERS, stream, STATUS_200, out);
}

/// Appends another part of the head: fields, after which the head does not end.
pub(super) fn append_endless_fields(stream: u32, out: &mut Vec<u8>) {
    // A literal without indexing and with a new name: one-byte lengths, no Huffman code (RFC 7541, section 6.2.2).
    let (name, value) = ("x-endless", "and so on, and so on, and so on");
    let field = [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat();
    let fields = field.repeat(PAYLOAD_MAX / field.len());
    (0..4).for_each(|_| append_frame(CONTINUATION, stream, &fields, out));
}

/// Appends a frame without flags, so neither END_HEADERS nor END_STREAM.
fn append_frame(kind: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
