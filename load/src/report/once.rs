//! Output of `--once`: a request and its response as sent over the wire, and the timing of each part.

use std::fmt::Write;

use onrush_plan::Plan;
use onrush_proto::Nanos;
use onrush_proto::http2::ReadableFrame;
use onrush_stats::Transcript;
use onrush_stats::transcript::{BODY_MAX, HEAD_MAX, SENT_MAX};
use onrush_text::is_misleading;
use onrush_text::units;

use crate::failure::{failed_check, handshake_lines};
use crate::run::Outcome;

/// The request with `> ` before each line and the heads of the response with `< `, or the HTTP/2 frames in both
/// directions. Then the start of the body, a line of timings, what TLS negotiated, and the outcome of the checks.
pub fn once(plan: &Plan, outcome: &Outcome) -> String {
    let text = outcome.transcript.as_deref().map_or_else(String::new, format_transcript);
    let completed = outcome.transcript.as_deref().filter(|transcript| transcript.completed.is_some());
    let checks = completed.map_or_else(String::new, |transcript| format_checks(plan, transcript, outcome));
    text + &handshake_lines(&outcome.totals.handshakes) + &checks
}

/// `checks: all 3 hold`, or the failed ones.
fn format_checks(plan: &Plan, transcript: &Transcript, outcome: &Outcome) -> String {
    let count = plan.checks.count() + usize::from(plan.checks.status.is_some());
    let status =
        outcome.totals.statuses.iter().map(|(status, _)| status).find(|status| plan.checks.is_failure(*status));
    let status = status.filter(|_| plan.checks.status.is_some()).map(|status| format!("the status is {status}"));
    let has_failed = |number: &usize| transcript.failed_checks >> number & 1 != 0;
    let others = (0..plan.checks.count()).filter(has_failed).map(|number| failed_check(&plan.checks, number));
    let failed: Vec<String> = status.into_iter().chain(others).collect();
    match (count, failed.len()) {
        (0, _) => String::new(),
        (1, 0) => "checks: the only one holds\n".to_owned(),
        (_, 0) => format!("checks: all {count} hold\n"),
        (_, bad) => {
            let failed = outcome.known.redact_in(&failed.join("; "));
            format!("checks: {bad} of {count} failed: {failed}\n")
        }
    }
}

fn format_transcript(transcript: &Transcript) -> String {
    let mut text = String::new();
    let is_framed = !transcript.first_frames.is_empty();
    if is_framed {
        push_frames(transcript, &mut text);
        text.push_str(if transcript.body.is_empty() { "" } else { "\n" });
    } else {
        let head = memchr::memmem::find(&transcript.sent, b"\r\n\r\n").map_or(transcript.sent.len(), |end| end + 4);
        let (head, body) = transcript.sent.split_at(head);
        let length = transcript.sent_bytes.saturating_sub(head.len() as u64);
        push_marked_lines('>', head, &mut text);
        match binary_placeholder(body, length, head) {
            Some(summary) => _ = writeln!(text, "> {summary}"),
            None => push_marked_lines('>', body, &mut text),
        }
        push_total_size("> …", "", transcript.sent_bytes, SENT_MAX, &mut text);
        push_marked_lines('<', &transcript.head, &mut text);
        push_total_size("< …", "", transcript.head_bytes, HEAD_MAX, &mut text);
        if transcript.completed.is_none() && transcript.body.is_empty() {
            push_marked_lines('<', &transcript.unread, &mut text);
        }
    }
    if let Some(summary) = binary_placeholder(&transcript.body, transcript.body_bytes, &transcript.head) {
        let _ = writeln!(text, "{summary}; --sample-responses 1 DIR keeps them in a file");
    } else {
        text.push_str(&printable(&transcript.body));
        if !transcript.body.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        push_total_size("…", " of body", transcript.body_bytes, BODY_MAX, &mut text);
    }
    if !is_framed {
        push_marked_lines('<', &transcript.trailers, &mut text);
    }
    text.push('\n');
    text.push_str(&format_timings(transcript));
    text
}

/// The HTTP/2 frames in both directions, in the order of sending and receiving.
fn push_frames(transcript: &Transcript, text: &mut String) {
    let left_out = transcript.frames_left_out;
    for (number, (is_sent, frame)) in transcript.first_frames.iter().chain(&transcript.last_frames).enumerate() {
        if number == transcript.first_frames.len() && left_out > 0 {
            let _ = writeln!(text, "… {}", units::format_count(left_out, "more frame"));
        }
        let mark = if *is_sent { '>' } else { '<' };
        match frame {
            ReadableFrame::Lines(lines) => push_marked_lines(mark, lines, text),
            ReadableFrame::Data(data) => {
                let frames = if data.frames > 1 { format!(" in {} frames", data.frames) } else { String::new() };
                let end = if data.ends { ", END_STREAM" } else { "" };
                let bytes = units::format_count(data.bytes, "byte");
                let _ = writeln!(text, "{mark} DATA of stream {}, {bytes}{frames}{end}", data.stream);
                if binary_placeholder(&data.body, data.bytes, b"").is_some() {
                    let _ = writeln!(text, "{mark} (binary)");
                    continue;
                }
                push_marked_lines(mark, &data.body, text);
                if !data.body.is_empty() && data.bytes > data.body.len() as u64 {
                    let _ = writeln!(text, "{mark} …");
                }
            }
        }
    }
}

/// Maximum number of bytes of a binary body that are shown: a few lines.
const BINARY_MAX: usize = 128;

/// Placeholder for a longer binary body that starts with these bytes: `(binary: 1,234 bytes of image/png)`. `head`: the
/// head of the same message.
fn binary_placeholder(beginning: &[u8], bytes: u64, head: &[u8]) -> Option<String> {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let invalid: usize = beginning
        .utf8_chunks()
        .map(|chunk| chunk.invalid().len() + chunk.valid().bytes().filter(is_control).count())
        .sum();
    let is_binary = beginning.contains(&0) || 10 * invalid > 3 * beginning.len();
    if !is_binary || beginning.len() <= BINARY_MAX {
        return None;
    }
    let field = |wanted: &str| {
        let lines = head.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok()?.split_once(':'));
        let mut values = lines.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim());
        values.next_back().map(|value| printable(value.as_bytes()))
    };
    let of = field("Content-Type").map_or(String::new(), |kind| format!(" of {kind}"));
    let coding = field("Content-Encoding").map_or(String::new(), |coding| format!(", {coding}"));
    Some(format!("(binary: {}{of}{coding})", units::format_count(bytes, "byte")))
}

/// A line with the total size, for truncated content.
fn push_total_size(mark: &str, of: &str, bytes: u64, kept: usize, text: &mut String) {
    if bytes > kept as u64 {
        let _ = writeln!(text, "{mark} {} bytes{of} in all", units::format_thousands(bytes));
    }
}

fn format_timings(transcript: &Transcript) -> String {
    let time = |from: Nanos, to: Nanos| units::format_us(to.since(from) as f64 / 1e3);
    if transcript.sent_bytes == 0 {
        return "connect: no connection was established, and nothing was sent\n".into();
    }
    let mut text = format!("connect {}", time(transcript.connecting, transcript.connected));
    match transcript.first_received {
        Some(first) => {
            let _ = write!(text, ", first byte {} after the request", time(transcript.first_sent, first));
        }
        None => text.push_str(", but no response"),
    }
    if let Some(completed) = transcript.completed {
        let latency = time(transcript.first_sent, completed);
        let _ = write!(
            text,
            ", complete after {latency}, {} bytes of body",
            units::format_thousands(transcript.body_bytes)
        );
    } else if transcript.first_received.is_some() {
        text.push_str(", the response is incomplete");
    }
    text.push('\n');
    text
}

/// Adds a mark to each line of a head or request.
fn push_marked_lines(mark: char, bytes: &[u8], text: &mut String) {
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = printable(line.strip_suffix(b"\r").unwrap_or(line));
        let _ = writeln!(text, "{}", format!("{mark} {line}").trim_end());
    }
}

/// Text with plain line endings. Invalid UTF-8 and characters that would mislead a reader of the terminal become
/// `\xNN`.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().replace("\r\n", "\n").chars() {
            if is_misleading(character) && !matches!(character, '\n' | '\t') {
                character.to_string().bytes().for_each(|byte| push_escaped(byte, &mut text));
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_escaped(byte, &mut text));
    }
    text
}

fn push_escaped(byte: u8, text: &mut String) {
    let _ = write!(text, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use onrush_proto::http2::ReadableData;

    use super::*;

    #[test]
    fn misleading_characters_are_escaped() {
        let shown = printable("a\u{202e}b\u{200b}c\u{feff}\x1b[m\u{9b}1m ü\ttab\r\nnext".as_bytes());
        let escaped = "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8bc\\xef\\xbb\\xbf\\x1b[m\\xc2\\x9b1m ü\ttab\nnext";
        assert_eq!(shown, escaped);
    }

    #[test]
    fn once_shows_request_response_and_timings() {
        let shown = format_transcript(&Transcript {
            sent: b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
            has_request: true,
            sent_bytes: 27,
            head: b"HTTP/1.1 200 OK\r\nX-Evil: \x1b[31m\r\n\r\n".to_vec(),
            head_bytes: 36,
            body: b"caf\xc3\xa9\tok\x07\xff\r\n".to_vec(),
            body_bytes: 12,
            trailers: b"X-Sum: \x1b1\r\n".to_vec(),
            connecting: Nanos(0),
            connected: Nanos(50_000),
            first_sent: Nanos(60_000),
            first_received: Some(Nanos(260_000)),
            completed: Some(Nanos(1_060_000)),
            failed_checks: 0,
            ..Transcript::default()
        });
        let expected = "\
> GET / HTTP/1.1
> Host: h
>
< HTTP/1.1 200 OK
< X-Evil: \\x1b[31m
<
café\tok\\x07\\xff
< X-Sum: \\x1b1

connect 50.00us, first byte 200.00us after the request, complete after 1.00ms, 12 bytes of body
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn truncated_heads_show_their_beginning() {
        let mut cut = Transcript { sent_bytes: 1, first_received: Some(Nanos(0)), ..Transcript::default() };
        cut.record_received(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX-Evil: \x1b[31");
        cut.record_head(b"HTTP/1.1 103 Early Hints\r\n\r\n");
        let shown = format_transcript(&cut);
        assert!(shown.contains("< HTTP/1.1 103 Early Hints\n<\n< HTTP/1.1 200 OK\n< X-Evil: \\x1b[31\n"), "{shown}");

        cut.record_received(b"body");
        cut.record_data(b"body");
        assert!(cut.unread.is_empty());
    }

    #[test]
    fn binary_bodies_are_not_shown() {
        let random: Vec<u8> = (0..1024_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 1).collect();
        let with = |content: &str, body: &[u8], body_bytes| {
            let head = format!("HTTP/1.1 200 OK\r\n{content}\r\n").into_bytes();
            let shown =
                format_transcript(&Transcript { head, body: body.to_vec(), body_bytes, ..Transcript::default() });
            shown.split_once("<\n").expect("the head ends").1.split_once("\n\n").expect("a line follows").0.to_owned()
        };
        let hint = "; --sample-responses 1 DIR keeps them in a file";
        let image = "content-type: image/png\r\n";
        assert_eq!(with(image, &random, 12_345), format!("(binary: 12,345 bytes of image/png){hint}"));
        let zipped = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
        assert_eq!(with(zipped, &random, 1_024), format!("(binary: 1,024 bytes of text/html, gzip){hint}"));
        assert_eq!(with("", &[b"ab", &[0; 1022][..]].concat(), 1_024), format!("(binary: 1,024 bytes){hint}"));
        assert_eq!(with("", b"\0\0\0\0\x02ok", 7), "\\x00\\x00\\x00\\x00\\x02ok", "a few bytes are shown");
        let text = "größe\t".repeat(200);
        assert_eq!(with("", &text.as_bytes()[..1024], 9_000).lines().count(), 2, "cut off in a character");
        let sent = [b"POST / HTTP/1.1\r\nContent-Type: image/png\r\n\r\n", &random[..]].concat();
        let shown = format_transcript(&Transcript { sent_bytes: sent.len() as u64, sent, ..Transcript::default() });
        assert!(shown.contains("\n>\n> (binary: 1,024 bytes of image/png)\n\n"), "{shown}");
        let data = ReadableData { stream: 1, frames: 1, bytes: 1_024, ends: true, body: random };
        let first_frames = vec![(true, ReadableFrame::Data(data))];
        let shown = format_transcript(&Transcript { first_frames, ..Transcript::default() });
        assert!(shown.starts_with("> DATA of stream 1, 1,024 bytes, END_STREAM\n> (binary)\n"), "{shown}");
    }

    #[test]
    fn frames_are_shown_in_order_then_counted() {
        let data = |stream, frames, bytes, ends, body: &[u8]| {
            ReadableFrame::Data(ReadableData { stream, frames, bytes, ends, body: body.to_vec() })
        };
        let lines = |lines: &str| ReadableFrame::Lines(lines.as_bytes().to_vec());
        let shown = format_transcript(&Transcript {
            sent: b"PRI".to_vec(),
            sent_bytes: 3,
            first_frames: vec![
                (true, lines("HEADERS of stream 1\r\n:method: POST\r\n\r\n")),
                (true, data(1, 2, 20_000, false, &[b'x'; 3])),
                (true, data(3, 1, 0, true, b"")),
                (false, data(1, 1, 1, true, b"")),
            ],
            last_frames: [(false, lines("GOAWAY: NO_ERROR, the last stream is 1, \"\x1b[31mred\u{202e}\"\r\n"))].into(),
            frames_left_out: 1_234,
            head: b"HTTP/2 200\r\n\r\n".to_vec(),
            body: b"y".to_vec(),
            body_bytes: 1,
            trailers: b"a: b\r\n".to_vec(),
            ..Transcript::default()
        });
        let expected = "\
> HEADERS of stream 1
> :method: POST
>
> DATA of stream 1, 20,000 bytes in 2 frames
> xxx
> …
> DATA of stream 3, 0 bytes, END_STREAM
< DATA of stream 1, 1 byte, END_STREAM
… 1,234 more frames
< GOAWAY: NO_ERROR, the last stream is 1, \"\\x1b[31mred\\xe2\\x80\\xae\"

y

connect 0.00us, but no response
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn missing_responses_are_reported() {
        let unanswered = Transcript { sent: b"x".to_vec(), sent_bytes: 1, ..Transcript::default() };
        assert!(format_transcript(&unanswered).ends_with("connect 0.00us, but no response\n"));
        let unsent = Transcript::default();
        assert_eq!(format_transcript(&unsent), "\nconnect: no connection was established, and nothing was sent\n");
    }
}
