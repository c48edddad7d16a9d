//! What a connection sends, for people to read: a line for each frame, the fields of requests, bodies as they are.

use super::frame::{HEADER, Header, flag, kind};
use super::hpack::{Decoder, Effects, SIZE_USUAL};
use super::options::PREFACE;
use super::settings;
use crate::Code;

/// Frames as text. `sent`: whole frames, as [`crate::Client::poll_transmit`] returned them.
pub fn readable(sent: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut block = Vec::new();
    let mut rest = sent.strip_prefix(PREFACE).unwrap_or(sent);
    while let Some((header, behind)) = rest.split_first_chunk::<HEADER>() {
        let header = Header::parse(*header);
        let (payload, behind) = behind.split_at(behind.len().min(header.length as usize));
        rest = behind;
        match header.kind {
            kind::HEADERS | kind::CONTINUATION => {
                block.extend_from_slice(payload);
                if header.kind == kind::HEADERS {
                    let end = if header.has(flag::END_STREAM) { ", END_STREAM" } else { "" };
                    text.extend_from_slice(format!("HEADERS of stream {}{end}\r\n", header.stream).as_bytes());
                }
                if header.has(flag::END_HEADERS) {
                    write_fields(&std::mem::take(&mut block), &mut text);
                }
            }
            kind::DATA => {
                text.extend_from_slice(payload);
                text.extend_from_slice(b"\r\n");
            }
            _ => text.extend_from_slice((line(header, payload) + "\r\n").as_bytes()),
        }
    }
    text
}

/// A small frame as one line.
fn line(header: Header, payload: &[u8]) -> String {
    let number = |at: usize| {
        let bytes = payload.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    let stream = if header.stream == 0 { "the connection".to_owned() } else { format!("stream {}", header.stream) };
    match header.kind {
        kind::SETTINGS if header.has(flag::ACK) => "SETTINGS, ACK".to_owned(),
        kind::SETTINGS => {
            let settings: Vec<String> = payload.as_chunks::<6>().0.iter().map(setting).collect();
            format!("SETTINGS {}", settings.join(", "))
        }
        kind::PING => "PING, ACK".to_owned(),
        kind::WINDOW_UPDATE => format!("WINDOW_UPDATE of {stream} by {}", number(0)),
        kind::RST_STREAM => format!("RST_STREAM of {stream}: {}", Code::new(number(0))),
        kind::GOAWAY => format!("GOAWAY: {}", Code::new(number(4))),
        other => format!("frame of kind {other}"),
    }
}

fn setting(&[a, b, s, t, u, v]: &[u8; 6]) -> String {
    let name = match u16::from_be_bytes([a, b]) {
        settings::TABLE => "HEADER_TABLE_SIZE",
        settings::PUSH => "ENABLE_PUSH",
        settings::WINDOW => "INITIAL_WINDOW_SIZE",
        settings::FRAME => "MAX_FRAME_SIZE",
        settings::HEADERS => "MAX_HEADER_LIST_SIZE",
        _ => "unknown",
    };
    format!("{name} {}", u32::from_be_bytes([s, t, u, v]))
}

/// The fields of a header block, a line each, and an empty line.
fn write_fields(block: &[u8], text: &mut Vec<u8>) {
    let put = |name: &[u8], value: &[u8]| text.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
    // Our own block refers to nothing but the static table.
    let decoded = Decoder::new(SIZE_USUAL).unlimited().decode(block, &mut Effects::default(), put);
    debug_assert!(decoded.is_ok(), "we wrote it");
    text.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::super::{Http2, Options, Shared};
    use super::*;
    use crate::{Client, Nanos, Parts, Request};

    #[test]
    fn what_is_sent_is_shown_in_lines() {
        let mut client = Http2::new(&Shared::new(Options::default()));
        let request = Request::new(Parts {
            method: "POST".to_owned(),
            target: "/path".to_owned(),
            headers: vec![("Host".to_owned(), "h".to_owned()), ("X-A".to_owned(), "b".to_owned())],
            body: b"body"[..].into(),
        });
        client.start(&request, true).unwrap();
        let mut text = Vec::new();
        while let Some(transmit) = client.poll_transmit(Nanos(0)) {
            text.extend(readable(&transmit.bytes()));
            client.handle_sent(transmit.bytes().len());
        }
        let expected = "\
SETTINGS ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 1073741823, MAX_HEADER_LIST_SIZE 81920\r
WINDOW_UPDATE of the connection by 1073676288\r
HEADERS of stream 1\r
:method: POST\r
:scheme: http\r
:authority: h\r
:path: /path\r
x-a: b\r
content-length: 4\r
\r
body\r
";
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn a_long_head_is_shown_whole() {
        let mut client = Http2::new(&Shared::new(Options::default()));
        let headers = vec![("a".to_owned(), "b".repeat(100_000)), ("c".to_owned(), "d".to_owned())];
        let parts = Parts { method: "GET".to_owned(), target: "/".to_owned(), headers, ..Parts::default() };
        client.start(&Request::new(parts), true).unwrap();
        let text = readable(&client.poll_transmit(Nanos(0)).unwrap().bytes());
        assert!(text.len() > 100_000 && text.ends_with(b"b\r\nc: d\r\n\r\n"));
    }
}
