//! What `--once` prints: one request and its response as they went over the wire, and the timing of each part.

use std::fmt::Write;

use onrush_plan::Plan;
use onrush_proto::Nanos;
use onrush_stats::Transcript;
use onrush_stats::transcript::{BODY_MAX, HEAD_MAX, SENT_MAX};
use onrush_text::misleads;
use onrush_text::units;

use crate::failure::{agreed, failed_check};
use crate::run::Outcome;

/// The request after `> `, the response's heads after `< `, the beginning of the body, a line of timings, and with TLS
/// what was negotiated; then whether the checks hold, if there are any.
pub fn once(plan: &Plan, outcome: &Outcome) -> String {
    let text = outcome.transcript.as_deref().map_or_else(String::new, transcript);
    let completed = outcome.transcript.as_deref().filter(|transcript| transcript.completed.is_some());
    let checks = completed.map_or_else(String::new, |transcript| checks(plan, transcript, outcome));
    text + &agreed(&outcome.totals.handshakes) + &checks
}

/// `checks: all 3 hold`, or those that failed.
fn checks(plan: &Plan, transcript: &Transcript, outcome: &Outcome) -> String {
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
            let failed = crate::record::shown(plan, outcome, failed.join("; "));
            format!("checks: {bad} of {count} failed: {failed}\n")
        }
    }
}

fn transcript(transcript: &Transcript) -> String {
    let mut text = String::new();
    marked('>', &transcript.sent, &mut text);
    rest("> …", "", transcript.sent_bytes, SENT_MAX, &mut text);
    marked('<', &transcript.head, &mut text);
    rest("< …", "", transcript.head_bytes, HEAD_MAX, &mut text);
    if !transcript.body.is_empty() {
        text.push_str(&printable(&transcript.body));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    rest("…", " of body", transcript.body_bytes, BODY_MAX, &mut text);
    marked('<', &transcript.trailers, &mut text);
    text.push('\n');
    text.push_str(&timings(transcript));
    text
}

/// A line with the total size, where not everything was kept.
fn rest(mark: &str, of: &str, bytes: u64, kept: usize, text: &mut String) {
    if bytes > kept as u64 {
        let _ = writeln!(text, "{mark} {} bytes{of} in all", units::thousands(bytes));
    }
}

fn timings(transcript: &Transcript) -> String {
    let time = |from: Nanos, to: Nanos| units::time_us(to.since(from) as f64 / 1e3);
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
        let _ = write!(text, ", complete after {latency}, {} bytes of body", units::thousands(transcript.body_bytes));
    } else if transcript.first_received.is_some() {
        text.push_str(", the response is incomplete");
    }
    text.push('\n');
    text
}

/// Each line of a head or request after a mark.
fn marked(mark: char, bytes: &[u8], text: &mut String) {
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = printable(line.strip_suffix(b"\r").unwrap_or(line));
        let _ = writeln!(text, "{}", format!("{mark} {line}").trim_end());
    }
}

/// Text with plain line ends; characters that would mislead a reader of the terminal, and invalid UTF-8, become `\xNN`.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().replace("\r\n", "\n").chars() {
            if misleads(character) && !matches!(character, '\n' | '\t') {
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
    use super::*;

    #[test]
    fn characters_that_would_mislead_a_reader_are_escaped() {
        let shown = printable("a\u{202e}b\u{200b}c\u{feff}\x1b[m\u{9b}1m ü\ttab\r\nnext".as_bytes());
        let escaped = "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8bc\\xef\\xbb\\xbf\\x1b[m\\xc2\\x9b1m ü\ttab\nnext";
        assert_eq!(shown, escaped);
    }

    #[test]
    fn the_request_the_answer_and_the_timings_are_shown() {
        let shown = transcript(&Transcript {
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
    fn what_is_missing_is_said() {
        let unanswered = Transcript { sent: b"x".to_vec(), sent_bytes: 1, ..Transcript::default() };
        assert!(transcript(&unanswered).ends_with("connect 0.00us, but no response\n"));
        let unsent = Transcript::default();
        assert_eq!(transcript(&unsent), "\nconnect: no connection was established, and nothing was sent\n");
    }
}
