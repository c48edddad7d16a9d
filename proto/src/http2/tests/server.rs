//! The server's side: frames to send, and the client's frames as text.

use super::super::frame::{FrameHeader, HEADER, flag, kind};
use super::super::hpack::{self, Decoder, Effects, SIZE_USUAL, Secrecy};
use crate::Code;

/// Frame kinds, by number.
const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

/// A frame with these named flags and this payload.
pub fn frame(stream: u32, flags: &str, kind: &str, payload: &[u8]) -> Vec<u8> {
    let kind = KINDS.iter().position(|name| *name == kind).map_or(0xbe, |kind| kind as u8);
    let flags = flags.split_whitespace().map(|name| match name {
        "ACK" => flag::ACK,
        "END_STREAM" => flag::END_STREAM,
        "END_HEADERS" => flag::END_HEADERS,
        "PADDED" => flag::PADDED,
        "PRIORITY" => flag::PRIORITY,
        other => unreachable!("{other} is no flag"),
    });
    let header = FrameHeader { length: payload.len() as u32, kind, flags: flags.sum(), stream };
    [&header.bytes(), payload].concat()
}

/// A SETTINGS frame with these settings.
pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload = settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    frame(0, "", "SETTINGS", &payload.collect::<Vec<u8>>())
}

/// A whole header block.
pub fn headers(stream: u32, flags: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(stream, &format!("END_HEADERS {flags}"), "HEADERS", &block(fields))
}

/// Fields, encoded without a table.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        hpack::encode(name.as_bytes(), value.as_bytes(), Secrecy::Open, &mut block);
    }
    block
}

/// A DATA frame.
pub fn data(stream: u32, flags: &str, data: &[u8]) -> Vec<u8> {
    frame(stream, flags, "DATA", data)
}

/// DATA with this much padding.
pub fn padded_data(stream: u32, flags: &str, padding: u8, data: &[u8]) -> Vec<u8> {
    let payload = [&[padding], data, &vec![0; padding.into()]].concat();
    frame(stream, &format!("PADDED {flags}"), "DATA", &payload)
}

/// RST_STREAM.
pub fn rst(stream: u32, code: Code) -> Vec<u8> {
    frame(stream, "", "RST_STREAM", &code.0.to_be_bytes())
}

/// WINDOW_UPDATE.
pub fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(stream, "", "WINDOW_UPDATE", &increment.to_be_bytes())
}

/// GOAWAY: streams above `last` will not be processed. The debug data is `because`.
pub fn goaway(last: u32, code: Code) -> Vec<u8> {
    frame(0, "", "GOAWAY", &[&last.to_be_bytes()[..], &code.0.to_be_bytes(), b"because"].concat())
}

/// The client's frames, one line each, without the preface.
pub fn described(mut bytes: &[u8]) -> Vec<String> {
    bytes = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    let mut lines = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let header = FrameHeader::parse(*header);
        let (payload, rest) = rest.split_at(header.length as usize);
        lines.push(line(header, payload));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a frame is incomplete: {bytes:?}");
    lines
}

fn line(header: FrameHeader, payload: &[u8]) -> String {
    let number = |from: usize| u32::from_be_bytes(payload[from..from + 4].try_into().unwrap());
    let code = |from| Code(number(from));
    let end = if header.has(flag::END_STREAM) { " END_STREAM" } else { "" };
    let stream = header.stream;
    match header.kind {
        kind::DATA => format!("DATA {stream} {}{end}", payload.len()),
        kind::HEADERS if !header.has(flag::END_HEADERS) => format!("HEADERS {stream} {}{end}", payload.len()),
        kind::HEADERS => {
            let fields = fields(payload);
            format!("HEADERS {stream} {}{end}", fields.join("|"))
        }
        kind::CONTINUATION => {
            let end = if header.has(flag::END_HEADERS) { " END_HEADERS" } else { "" };
            format!("CONTINUATION {stream} {}{end}", payload.len())
        }
        kind::RST_STREAM => format!("RST_STREAM {stream} {}", code(0)),
        kind::SETTINGS if header.has(flag::ACK) => "SETTINGS ACK".to_owned(),
        kind::SETTINGS => {
            let settings = payload.chunks(6).map(|setting| {
                let [a, b, c, d, e, f] = setting else { unreachable!("six bytes each") };
                format!(" {}={}", u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f]))
            });
            format!("SETTINGS{}", settings.collect::<String>())
        }
        kind::PING => {
            let ack = if header.has(flag::ACK) { " ACK" } else { "" };
            format!("PING{ack} {}", String::from_utf8_lossy(payload))
        }
        kind::GOAWAY => format!("GOAWAY {} {}", number(0), code(4)),
        kind::WINDOW_UPDATE => format!("WINDOW_UPDATE {stream} {}", number(0)),
        other => unreachable!("a client does not send frames of kind {other}"),
    }
}

/// The fields of a request, which must not need a table.
fn fields(block: &[u8]) -> Vec<String> {
    let mut fields = Vec::new();
    let mut effects = Effects::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Decoder::new(SIZE_USUAL)
        .decode(block, &mut effects, |name, value| fields.push(format!("{}: {}", text(name), text(value))))
        .unwrap();
    if effects.depends {
        fields.insert(0, "(table update)".to_owned());
    }
    fields
}
