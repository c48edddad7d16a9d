//! Broken and hostile servers in virtual time: whatever a server sends, and wherever the bytes are cut, every request
//! ends in one known way, with one row in the ledger, and every byte is counted.
//!
//! Each server gets three requests, one after the other, and sends the same bytes each time. A `|` in the bytes marks
//! where the fault shows (or the response is complete) and is not sent: nothing after it is read. `docs/robustness.md`
//! lists all cases.

use std::net::SocketAddr;
use std::rc::Rc;

use onrush_stats::{Cause, FailureRow, Phase};
use rustix::io::Errno;

use super::*;
use crate::backend::sim::{Act, Action, Peer};
use onrush_proto::Error;
use onrush_proto::http1::HEAD_MAX;

/// Requests per run.
const REQUESTS: u64 = 3;
const RESET: Cause = Cause::Errno(104);
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Unreadable responses, with the place where that is noticed: before the body, so the phase is the head.
const BAD_HEADS: &[(&str, Error)] = &[
    ("n|onsense", Error::NotHttp),
    ("S|SH-2.0-OpenSSH_9.2\r\n", Error::NotHttp),
    ("\x15\x03|\x03\0\x02\x02P", Error::SpeaksTls),
    ("\x16\x03|\x03\0\x7a\x02", Error::SpeaksTls),
    ("\x15\x01|\0", Error::NotHttp),
    ("\x17|\x03\x03", Error::NotHttp),
    ("\0|\0\x12\x04\0\0\0\0\0", Error::NotHttp),
    ("HTTQ|/1.1 200 OK\r\n\r\n", Error::NotHttp),
    ("HTTP/1.1 OK\r\n|\r\n", Error::StatusLine),
    ("HTTP/1.1 2000 OK\r\n|\r\n", Error::StatusLine),
    ("HTTP/1.1 099 Low\r\n|\r\n", Error::StatusLine),
    ("HTTP/1.1 -20 OK\r\n|\r\n", Error::StatusLine),
    ("HTTP/1.1  200 OK\r\n|\r\n", Error::StatusLine),
    ("HTTP/2 200 OK\r\n|\r\n", Error::StatusLine),
    ("HTTP/1.1 200 O\0K\r\n|\r\n", Error::StatusLine),
    ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n|", Error::HeaderField),
    ("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n|hello", Error::HeaderField),
    ("HTTP/1.1 200 OK\r\n folded: nothing\r\n\r\n|", Error::HeaderField),
    ("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n|", Error::HeaderField),
    ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n|", Error::Length),
    ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n|hello", Error::Length),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n|hello", Error::Length),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n|hello", Error::Length),
    ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n|hello", Error::Length),
    ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n|", Error::Length),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n|hello", Error::LengthTwice),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n|hello", Error::LengthTwice),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n|hello", Error::LengthTwice),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n|", Error::LengthAndEncoding),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\n|hello", Error::LengthAndEncoding),
    ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n|", Error::Switched),
    ("HTTP/1.1 100 Continue\r\n\r\nn|onsense", Error::NotHttp),
];

/// Invalid chunked bodies, with the place where the fault is noticed.
const BAD_CHUNKS: &[(&str, Error)] = &[
    ("\r|\n", Error::ChunkSize),
    ("g|", Error::ChunkSize),
    ("-|1\r\n", Error::ChunkSize),
    (" |5\r\nhello", Error::ChunkSize),
    ("0x|5\r\nhello", Error::ChunkSize),
    ("5 5|\r\nhello", Error::ChunkSize),
    ("10000000000000000|\r\n", Error::ChunkSize),
    ("5\r\nhello,| world", Error::ChunkEnd),
    ("0\r\nno |colon\r\n\r\n", Error::Trailer),
    ("0\r\nA: \0|\r\n\r\n", Error::Trailer),
];

/// Odd or rude but complete responses.
const ODD_ANSWERS: &[(&str, u64)] = &[
    ("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi|", 1),
    ("HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi|", 1),
    ("HTTP/1.1 200 caf\u{e9}\r\nContent-Length: 0\r\n\r\n|", 1),
    ("\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 2\n\nhi|", 1),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n|", 1),
    ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n|", 1),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n|", 1),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n|", 1),
    ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length:\r\n\t2\r\n\r\nhi|", 1),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi|", 1),
    ("HTTP/1.1 200 OK\r\nContent-Length: 00000000000000000000000002\r\n\r\nhi|", 1),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0002;a=\"b\"\r\nhi\r\n0\r\nT: t\r\n\r\n|", 1),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n|", 1),
    ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi|", 1),
    ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi|", REQUESTS),
    ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi|bytes without a request", REQUESTS),
];

/// Servers that react in the same way to every request.
struct Hostile {
    acts: Rc<[(u64, Act)]>,
    /// Number of bytes a send takes at once.
    window: usize,
}

/// One connection of such a server.
struct Line {
    acts: Rc<[(u64, Act)]>,
    /// End of the acts for the requests so far.
    busy_until: Nanos,
}

impl Network for Hostile {
    fn connect(&mut self, now: Nanos, _: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        (now, Ok(Box::new(Line { acts: Rc::clone(&self.acts), busy_until: now })))
    }

    fn send_window(&mut self) -> (usize, u64) {
        (self.window, SECOND)
    }
}

impl Peer for Line {
    fn receive(&mut self, now: Nanos, _: &[u8], actions: &mut Vec<Action>) {
        let from = now.max(self.busy_until);
        actions.extend(self.acts.iter().map(|&(after_ns, ref act)| Action { at: from + after_ns, act: act.clone() }));
        self.busy_until = actions.last().map_or(from, |last| last.at);
    }
}

/// Three requests with up to `slots` in flight. The acts' times in nanoseconds count from each request, or from the end
/// of the previous request's acts. A request is late after 1 s and abandoned after 9.5 s.
fn run_with(acts: Vec<(u64, Act)>, slots: usize, request: Request, window: usize) -> Totals {
    let three = Config {
        depth: slots,
        requests: Some(REQUESTS),
        duration_ns: None,
        rules: Rules {
            scale: Scale::EXACT,
            timeout_ns: Some(SECOND),
            phases: false,
            by_name: false,
            pipelines: false,
            open_loop: None,
        },
        give_up_ns: Some(9_500 * MS),
        ..config()
    };
    let network = Box::new(Hostile { acts: acts.into(), window });
    let totals = run_on(three, network, request, http1(slots)).totals;
    assert_conserved(&totals);
    assert_eq!(totals.counters.started, REQUESTS);
    totals
}

fn run(acts: Vec<(u64, Act)>) -> Totals {
    run_with(acts, 1, get(), usize::MAX)
}

/// Bytes in pieces of `size`, a microsecond apart.
fn pieces(bytes: &[u8], size: usize) -> Vec<(u64, Act)> {
    (1..).zip(bytes.chunks(size)).map(|(index, piece)| (index * 1_000, Act::Send(piece.to_vec()))).collect()
}

/// Bytes in pieces of `size`, and another act after the last piece.
fn pieces_then(bytes: &[u8], size: usize, act: Act) -> Vec<(u64, Act)> {
    let mut acts = pieces(bytes, size);
    acts.push((acts.last().map_or(1_000, |&(after_ns, _)| after_ns), act));
    acts
}

/// The bytes on the wire, and the number of bytes read.
fn unmarked(answer: &str) -> (Vec<u8>, usize) {
    let (before, after) = answer.split_once('|').expect("a mark");
    ([before, after].concat().into_bytes(), before.len())
}

/// The sizes into which bytes are cut: all of them, or some if there are many.
fn sizes(len: usize) -> Vec<usize> {
    if len <= 200 { (1..=len).collect() } else { vec![7, 1000, 4096, len] }
}

/// The rows of the ledger without their times and examples.
fn rows(totals: &Totals) -> Vec<(Phase, Cause, u64)> {
    totals.ledger.rows().iter().map(|&FailureRow { phase, cause, count, .. }| (phase, cause, count)).collect()
}

/// Checks that the server's bytes make all requests fail in the same way, however the bytes are cut. Bytes count up to
/// the end of the piece with the fault.
fn check_fails(answer: &str, phase: Phase, error: Error) {
    let (bytes, used) = unmarked(answer);
    for size in sizes(bytes.len()) {
        let totals = run(pieces(&bytes, size));
        let place = format!("{:?} in pieces of {size}", &answer[..answer.len().min(80)]);
        assert_eq!(rows(&totals), [(phase, Cause::Protocol(error), REQUESTS)], "{place}");
        assert_eq!((totals.counters.completed, totals.counters.failed), (0, REQUESTS), "{place}");
        let received = used.next_multiple_of(size).min(bytes.len());
        assert_eq!(totals.counters.bytes_received, REQUESTS * received as u64, "{place}");
    }
}

#[test]
fn bad_heads_fail_requests_at_every_split() {
    for &(answer, error) in BAD_HEADS {
        check_fails(answer, Phase::Head, error);
    }
}

#[test]
fn head_examples_show_the_fault_at_every_split() {
    let before = format!("HTTP/1.1 200 OK\r\nSet-Cookie: {}\r\n", "c".repeat(200));
    let long = "x".repeat(90);
    for (fields, expected) in [
        ("no colon\r\nA: b", "...no colon\r\nA: b\r\n\r\n"),
        ("A: b\r\nC: \0", "...C: \0\r\n\r\n"),
        ("Content-Length: 1\r\nA: b\r\nContent-Length: 2", "...Content-Length: 2\r\n\r\n"),
        ("Content-Length: 1x", "...Content-Length: 1x\r\n\r\n"),
        (&format!("A: {long}\x7f"), "...A: ...xxxxxxxxxxxxxxxxxxxx\x7f\r\n\r\n"),
        ("A: b\r\n folded\r\nno colon", "...no colon\r\n\r\n"),
    ] {
        let answer = format!("{before}{fields}\r\n\r\n");
        for size in 1..=answer.len() {
            let totals = run(pieces(answer.as_bytes(), size));
            assert_eq!(totals.ledger.rows()[0].example, expected.as_bytes(), "{fields:?} in pieces of {size}");
        }
    }
    // A line near the beginning is shown together with the beginning.
    let near = "HTTP/1.1 200 OK\r\nServer: s\r\nno colon\r\n\r\n";
    for size in 1..=near.len() {
        assert_eq!(run(pieces(near.as_bytes(), size)).ledger.rows()[0].example, near.as_bytes(), "in pieces of {size}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: endless head\r\n".repeat(HEAD_MAX));
    for size in [1000, 4096, HEAD_MAX + 9000] {
        let totals = run(pieces(&endless.as_bytes()[..HEAD_MAX + 9000], size));
        assert_eq!(totals.ledger.rows()[0].example, endless.as_bytes()[..120], "in pieces of {size}");
    }
}

#[test]
fn bad_responses_fail_all_later_requests() {
    for &(answer, error) in BAD_HEADS {
        let (bytes, _) = unmarked(answer);
        for size in [1, 5, bytes.len()] {
            let totals = run_with(pieces(&bytes, size), 2, get(), usize::MAX);
            assert_eq!((totals.counters.completed, totals.counters.failed), (0, REQUESTS), "{answer:?} in {size}");
            let rows = rows(&totals);
            assert_eq!((rows[0].0, rows[0].1), (Phase::Head, Cause::Protocol(error)), "{answer:?} in {size}");
            assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), REQUESTS, "{answer:?} in {size}");
        }
    }
}

#[test]
fn bad_chunks_fail_requests_at_every_split() {
    for &(body, error) in BAD_CHUNKS {
        check_fails(&format!("{CHUNKED}{body}"), Phase::Body, error);
    }
}

#[test]
fn endless_responses_fail_at_the_limit() {
    let fields = format!("HTTP/1.1 200 OK\r\n{}", "A: endless head\r\n".repeat(HEAD_MAX));
    let empty_lines = "\r\n".repeat(HEAD_MAX);
    let status_line = format!("HTTP/1.1 200 {}", "x".repeat(2 * HEAD_MAX));
    for endless in [fields, empty_lines, status_line] {
        let (before, after) = endless[..HEAD_MAX + 9_000].split_at(HEAD_MAX + 1);
        check_fails(&format!("{before}|{after}"), Phase::Head, Error::HeadTooLong);
    }
    // The limit counts from the start of the line with the size; for trailers, from the end of the last chunk.
    for (start, repeated) in [("5;", "extension"), ("0", "0"), ("0\r\n", "A: endless trailers\r\n")] {
        let framing = format!("{start}{}", repeated.repeat(2 * HEAD_MAX));
        let limit = start.find('\n').map_or(0, |lf| lf + 1) + HEAD_MAX + 1;
        let (before, after) = framing[..HEAD_MAX + 9_000].split_at(limit);
        check_fails(&format!("{CHUNKED}{before}|{after}"), Phase::Body, Error::TrailerTooLong);
    }
}

#[test]
fn odd_responses_are_complete_at_every_split() {
    for &(answer, connects) in ODD_ANSWERS {
        let (bytes, used) = unmarked(answer);
        for size in sizes(bytes.len()) {
            let totals = run(pieces(&bytes, size));
            assert_eq!(rows(&totals), [], "{answer:?} in pieces of {size}");
            assert_eq!(totals.counters.completed, REQUESTS, "{answer:?} in pieces of {size}");
            assert_eq!(totals.counters.connects, connects, "{answer:?} in pieces of {size}");
            let received = used.next_multiple_of(size).min(bytes.len());
            assert_eq!(totals.counters.bytes_received, REQUESTS * received as u64, "{answer:?} in pieces of {size}");
        }
    }
}

#[test]
fn empty_lines_after_responses_are_no_error() {
    let bytes = format!("{OK}\r\n\r\n").into_bytes();
    for size in 1..=bytes.len() {
        let totals = run(pieces(&bytes, size));
        let counters = &totals.counters;
        assert_eq!(
            (rows(&totals), counters.completed, counters.connects),
            (Vec::new(), REQUESTS, 1),
            "in pieces of {size}"
        );
    }
}

#[test]
fn closes_are_named_by_the_cut_part() {
    let until_eof = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nHello, World!";
    let chunked = format!("{CHUNKED}6\r\nHello,\r\n7;x=y\r\n World!\r\n0\r\nT: t\r\n\r\n");
    for answer in [OK, &chunked, until_eof, "HTTP/1.1 200\r\nContent-Length: 9\r\n\r\nno reason"] {
        let head = answer.find("\r\n\r\n").expect("a head") + 4;
        for cut in 0..answer.len() {
            let expected = match cut {
                0 => Some((Phase::Head, Error::ClosedBeforeResponse)),
                _ if cut < head => Some((Phase::Head, Error::ClosedInHead)),
                _ if answer == until_eof => None,
                _ => Some((Phase::Body, Error::ClosedInBody)),
            };
            let expected = expected.map(|(phase, error)| (phase, Cause::Protocol(error), REQUESTS));
            check_cut(&answer.as_bytes()[..cut], Act::Close, expected);
        }
    }
}

#[test]
fn resets_are_named_by_the_cut_part() {
    let until_eof = "HTTP/1.1 200 OK\r\n\r\nHello, World!";
    let chunked = format!("{CHUNKED}5\r\nhello\r\n0\r\n\r\n");
    for answer in [OK, &chunked, until_eof] {
        let head = answer.find("\r\n\r\n").expect("a head") + 4;
        for cut in 0..answer.len() {
            let phase = if cut < head { Phase::Head } else { Phase::Body };
            check_cut(&answer.as_bytes()[..cut], Act::Reset, Some((phase, RESET, REQUESTS)));
        }
    }
}

/// All requests get `bytes`, whole and byte by byte, followed by the end of the connection.
fn check_cut(bytes: &[u8], end: Act, expected: Option<(Phase, Cause, u64)>) {
    for size in [1, bytes.len().max(1)] {
        let totals = run(pieces_then(bytes, size, end.clone()));
        let place = format!("{end:?} after {:?} in pieces of {size}", String::from_utf8_lossy(bytes));
        assert_eq!(rows(&totals), Vec::from_iter(expected), "{place}");
        let completed = if expected.is_none() { REQUESTS } else { 0 };
        assert_eq!(totals.counters.completed, completed, "{place}");
        assert_eq!(totals.counters.connects, REQUESTS, "{place}");
        assert_eq!(totals.counters.bytes_received, REQUESTS * bytes.len() as u64, "{place}");
    }
}

#[test]
fn missing_body_bytes_are_abandoned() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhello";
    check_given_up(pieces(answer, 7), Cause::Late, answer.len() as u64, 0);
    check_cut(answer, Act::Close, Some((Phase::Body, Cause::Protocol(Error::ClosedInBody), REQUESTS)));
}

#[test]
fn endless_responses_are_late_by_missing_part() {
    for (answer, late) in [
        ("HTTP/1.1 200 OK\r\nServer: s\r\n\r\nhello", Cause::LateToClose),
        ("HTTP/1.0 200 OK\r\n\r\n", Cause::LateToClose),
        ("HTTP/1.1 200 OK\r\nServer: s\r\n<html>hello</html>", Cause::LateInHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", Cause::LateInHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", Cause::Late),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", Cause::Late),
    ] {
        check_given_up(pieces(answer.as_bytes(), answer.len()), late, answer.len() as u64, 0);
        check_given_up(pieces(answer.as_bytes(), 1), late, answer.len() as u64, 0);
    }
}

#[test]
fn silent_servers_are_late_then_abandoned() {
    check_given_up(Vec::new(), Cause::Late, 0, 0);
}

#[test]
fn trickling_responses_are_late_then_abandoned() {
    let drip = (1..).zip(OK.bytes()).map(|(second, byte)| (second * SECOND, Act::Send(vec![byte])));
    check_given_up(drip.collect(), Cause::LateInHead, 9, 0);
}

#[test]
fn endless_interim_responses_are_counted_and_abandoned() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let ten_a_second = (1..1_000).map(|tenth| (tenth * SECOND / 10, Act::Send(interim.to_vec())));
    // The last byte that counts arrives when the request is abandoned, at 9.5 s.
    check_given_up(ten_a_second.collect(), Cause::Late, 95 * interim.len() as u64, 95);
    let at_once = [interim.repeat(10_000), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()].concat();
    for size in [1000, 4096, at_once.len()] {
        let totals = run(pieces(&at_once, size));
        assert_eq!((totals.counters.completed, totals.counters.interim), (REQUESTS, REQUESTS * 10_000));
        assert_eq!(totals.counters.bytes_received, REQUESTS * at_once.len() as u64);
    }
}

/// Checks that every request is late and abandoned, after this many bytes and interim responses each.
fn check_given_up(acts: Vec<(u64, Act)>, late: Cause, bytes: u64, interim: u64) {
    let totals = run(acts);
    assert_eq!(rows(&totals), [(Phase::Timeout, late, REQUESTS), (Phase::Abandoned, Cause::GivenUp, REQUESTS)]);
    assert_eq!(totals.errors(), REQUESTS, "each once");
    let counters = &totals.counters;
    assert_eq!((counters.completed, counters.failed, counters.abandoned), (0, 0, REQUESTS));
    assert_eq!((counters.late, counters.connects), (REQUESTS, REQUESTS));
    assert_eq!((counters.bytes_received, counters.interim), (REQUESTS * bytes, REQUESTS * interim));
    assert_eq!(totals.censored.map(|censored| censored.count()), Some(REQUESTS));
}

#[test]
fn extra_bytes_are_errors_at_every_split() {
    let extra = "bytes without a request";
    let bytes = format!("{OK}{extra}").into_bytes();
    for size in 1..=bytes.len() {
        let totals = run(pieces(&bytes, size));
        if OK.len().is_multiple_of(size) {
            // The bytes arrive when the next request has been sent, and can only be a response to that.
            assert_eq!(rows(&totals), [(Phase::Head, Cause::Protocol(Error::NotHttp), 1)], "in pieces of {size}");
            assert_eq!((totals.counters.completed, totals.counters.failed), (2, 1), "in pieces of {size}");
        } else {
            let expected = (Phase::Body, Cause::Protocol(Error::ExtraBytes), REQUESTS);
            assert_eq!(rows(&totals), [expected], "in pieces of {size}");
            assert_eq!((totals.counters.completed, totals.counters.failed), (REQUESTS, 0), "in pieces of {size}");
        }
    }
}

#[test]
fn unannounced_closes_fail_the_next_request() {
    for size in 1..=OK.len() {
        let totals = run(pieces_then(OK.as_bytes(), size, Act::Close));
        let expected = (Phase::Head, Cause::Protocol(Error::ClosedBeforeResponse), 1);
        assert_eq!(rows(&totals), [expected], "in pieces of {size}");
        assert_eq!((totals.counters.completed, totals.counters.failed), (2, 1), "in pieces of {size}");
    }
}

#[test]
fn early_responses_end_uploads_at_every_split() {
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
    for size in 1..=answer.len() {
        let totals = run_with(pieces(answer, size), 1, request("POST", vec![b'x'; 5_000]), 100);
        assert_eq!(rows(&totals), [(Phase::Status, Cause::Status(413), REQUESTS)], "in pieces of {size}");
        assert_eq!((totals.counters.completed, totals.counters.connects), (REQUESTS, REQUESTS));
        assert_eq!(totals.counters.bytes_sent, REQUESTS * 100, "the rest was not sent");
        assert_eq!(totals.counters.bytes_received, REQUESTS * answer.len() as u64);
    }
}
