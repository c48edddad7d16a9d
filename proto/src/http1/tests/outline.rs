//! Requests from another source: their ranges, and the messages for bytes that are not requests.

use proptest::prelude::*;

use crate::http1::{Outline, ResponseKind, outline, outline_unread};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 16\r\n\r\nfoo=bar&baz=quux";
const CHUNKS: &str = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n";

/// Checks that `bytes` are these requests: their bytes, the lengths of their bodies and the kinds of their responses.
#[track_caller]
fn check(bytes: impl AsRef<[u8]>, requests: &[(&str, usize, ResponseKind)]) {
    let bytes = bytes.as_ref();
    let mut found = Vec::new();
    outline(bytes, &mut found).unwrap_or_else(|malformed| panic!("{malformed}"));
    let texts = found.iter().map(|found| str::from_utf8(&bytes[found.range.clone()]).unwrap());
    let found: Vec<_> = texts.zip(&found).map(|(text, found)| (text, found.body_length, found.response)).collect();
    assert_eq!(found, requests);
}

/// Checks that `bytes` are one request with a usual response and no body.
#[track_caller]
fn check_plain(bytes: &str) {
    check(bytes, &[(bytes, 0, ResponseKind::Usual)]);
}

/// Checks the fault in `bytes` and its place.
#[track_caller]
fn check_malformed(bytes: impl AsRef<[u8]>, malformed: &str) {
    let refused = outline(bytes.as_ref(), &mut Vec::new()).unwrap_err();
    assert_eq!(refused.to_string(), malformed);
}

#[test]
fn single_requests_are_found() {
    check_plain(GET);
    check_plain("GET /?a=b HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nX-Empty:\r\nX-Tab:\ta\tb \r\n\r\n");
    check(POST, &[(POST, 16, ResponseKind::Usual)]);
    check(CHUNKS, &[(CHUNKS, 25, ResponseKind::Usual)]);
}

#[test]
fn sixteen_consecutive_requests_are_found() {
    let batch = [GET, POST, CHUNKS, GET].concat().repeat(4);
    let four = [(GET, 0), (POST, 16), (CHUNKS, 25), (GET, 0)].map(|(text, length)| (text, length, ResponseKind::Usual));
    check(batch, &four.repeat(4));
}

#[test]
fn methods_determine_the_response_kind() {
    let head = "HEAD / HTTP/1.1\r\n\r\n";
    check(head, &[(head, 0, ResponseKind::Bodiless)]);
    for target in ["example.com:443", "/", "/a?b", "?a"] {
        let connect = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
        check(&connect, &[(&connect, 0, ResponseKind::Tunnel)]);
    }
}

#[test]
fn only_wrks_methods_are_accepted() {
    let methods = "DELETE GET HEAD POST PUT CONNECT OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK \
        BIND REBIND UNBIND ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PATCH PURGE \
        MKCALENDAR LINK UNLINK";
    for method in methods.split_whitespace() {
        let text =
            format!("{method} h:1 HTTP/1.1\r\n\r\n").replace("h:1", if method == "CONNECT" { "h:1" } else { "*" });
        check(&text, &[(&text, 0, ResponseKind::of_method(method))]);
        check_malformed(text.to_lowercase(), "invalid HTTP method at 1:1");
        check_malformed(
            format!("{method}X / HTTP/1.1\r\n\r\n"),
            &format!("invalid HTTP method at 1:{}", method.len() + 1),
        );
    }
    for (text, column) in
        [("FETCH", 1), ("QUERY", 1), ("GOT", 2), ("GET\r", 4), ("PROPS", 5), ("M-GET", 3), (" GET", 1)]
    {
        check_malformed(format!("{text} / HTTP/1.1\r\n\r\n"), &format!("invalid HTTP method at 1:{column}"));
    }
}

#[test]
fn targets_come_in_four_forms() {
    for target in ["/", "/a?b#c?d", "/\"<>^`{|}\\", "*", "http://h", "HTTP://u:p@[::1]:80/a?b", "http://h?a"] {
        check_plain(&format!("OPTIONS {target} HTTP/1.1\r\n\r\n"));
    }
    for (target, column) in [
        ("?a", 5),
        ("\r", 5),
        ("/\t", 6),
        ("/\u{e4}", 6),
        ("/\x7f", 6),
        ("h", 6),
        ("http:/h", 11),
        ("http:// ", 12),
        ("http://h\"", 13),
        ("h1://h", 6),
    ] {
        check_malformed(format!("GET {target} HTTP/1.1\r\n\r\n"), &format!("invalid URL at 1:{column}"));
    }
    check_malformed("CONNECT \" HTTP/1.1\r\n\r\n", "invalid URL at 1:9");
    check_malformed("CONNECT  HTTP/1.1\r\n\r\n", "invalid HTTP version at 1:18");
}

#[test]
fn blanks_end_targets() {
    check_malformed("GET /a b HTTP/1.1\r\n\r\n", "invalid constant string at 1:8");
}

#[test]
fn methods_and_targets_are_lenient_like_wrk() {
    let heads = [
        ("GET /a b HTTP/1.1", ResponseKind::Usual),
        ("HEAD /\u{fc} HTTP/1.1 HTTP/1.0", ResponseKind::Bodiless),
        ("get a HTTP/1.1", ResponseKind::Usual),
        ("G\u{e9}T  HTTP/1.1", ResponseKind::Usual),
    ];
    let texts = heads.map(|(line, response)| (format!("{line}\r\nContent-Length: 2\r\n\r\nhi"), response));
    for (text, response) in &texts {
        let mut found = Vec::new();
        outline_unread(text.as_bytes(), &mut found).unwrap();
        assert_eq!(found, [Outline { range: 0..text.len(), body_length: 2, response: *response }], "{text}");
        assert!(outline(text.as_bytes(), &mut found).is_err(), "{text}");
    }
    let mut found = Vec::new();
    outline_unread([POST, GET].concat().as_bytes(), &mut found).unwrap();
    assert_eq!(found.len(), 2);
    for (text, malformed) in [
        ("", "incomplete request at 1:1"),
        ("GET / HTTP/1.1", "incomplete request at 1:15"),
        ("GET\r\n\r\n", "invalid HTTP method at 1:1"),
        ("GET /a b\r\n\r\n", "invalid constant string at 1:1"),
        ("GET HTTP/1.1\r\n\r\n", "invalid constant string at 1:1"),
        ("GET / HTTP/1.1\r\nA b\r\n\r\n", "invalid character in header at 2:2"),
        ("GET / HTTP/1.1\r\nA: b\r\n", "incomplete request at 3:1"),
    ] {
        assert_eq!(outline_unread(text.as_bytes(), &mut Vec::new()).unwrap_err().to_string(), malformed, "{text:?}");
    }
}

#[test]
fn several_blanks_may_separate_words() {
    check_plain("GET   /   HTTP/1.1\r\n\r\n");
}

#[test]
fn requests_require_a_version() {
    check_malformed("GET /\r\n\r\n", "invalid HTTP version at 1:6");
    check_malformed("GET / http/1.1\r\n\r\n", "invalid constant string at 1:7");
    check_malformed("GET / HTTQ/1.1\r\n\r\n", "invalid constant string at 1:10");
    for (version, column) in [("0.9", 12), ("x", 12), ("1,1", 13), ("1.x", 14), ("1.1x", 15), ("1.10", 15)] {
        check_malformed(format!("GET / HTTP/{version}\r\n\r\n"), &format!("invalid HTTP version at 1:{column}"));
    }
}

#[test]
fn truncated_requests_are_incomplete_at_the_end() {
    check_malformed("", "incomplete request at 1:1");
    check_malformed("\r\n\r\n", "incomplete request at 3:1");
    check_malformed("GE", "incomplete request at 1:3");
    check_malformed("GET / HTTP/1.1\r\nHost: h\r\n", "incomplete request at 3:1");
    check_malformed("GET / HTTP/1.1\r\nHost: h\r\n\r", "incomplete request at 3:2");
    check_malformed(POST.replace("16", "17"), "incomplete request at 5:17");
    check_malformed(POST.replace("16", "18446744073709551615"), "incomplete request at 5:17");
    check_malformed(format!("{GET}{}", &GET[..20]), "incomplete request at 5:5");
    for end in 1..CHUNKS.len() {
        let refused = outline(&CHUNKS.as_bytes()[..end], &mut Vec::new()).unwrap_err();
        assert_eq!(refused.reason, "incomplete request", "after {end} bytes");
    }
}

#[test]
fn lines_end_with_crlf_or_lf() {
    check_plain("GET / HTTP/1.1\nHost: h\n\n");
    check_malformed("GET / HTTP/1.1\rHost: h\r\n\r\n", "LF character expected at 1:16");
    check_malformed("GET / HTTP/1.1\r\nHost: h\rA: b\r\n\r\n", "LF character expected at 2:9");
    check_malformed("GET / HTTP/1.1\r\nHost: h\r\n\rA", "LF character expected at 3:2");
}

#[test]
fn line_ends_belong_to_the_next_request() {
    let (first, second) = (format!("\r\n{GET}"), format!("\r\n\n{POST}"));
    check(format!("{first}{second}\r\n\r\n"), &[(&first, 0, ResponseKind::Usual), (&second, 16, ResponseKind::Usual)]);
}

#[test]
fn fields_need_names_and_values() {
    for (field, column) in
        [("Ho st: h", 3), (": h", 1), ("H\u{f6}st: h", 2), ("Host", 5), (" folded: a", 1), ("A: \0", 4)]
    {
        check_malformed(
            format!("GET / HTTP/1.1\r\nA: b\r\n{field}\r\n\r\n"),
            &format!("invalid character in header at 3:{column}"),
        );
    }
    let latin = b"GET / HTTP/1.1\r\nA: \xfc\xff\r\n\r\n";
    assert_eq!(outline(latin, &mut Vec::new()), Ok(()));
}

#[test]
fn lengths_are_plain_and_unique() {
    let reason = "invalid character in content-length header at";
    for (length, column) in [("-5", 17), ("+5", 17), ("", 17), ("5 5", 18), ("5x", 18), ("0x5", 18)] {
        let text = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\nhello");
        check_malformed(text, &format!("{reason} 2:{column}"));
    }
    check_malformed(POST.replace("16", "18446744073709551616"), &format!("{reason} 3:17"));
    let reason = "unexpected content-length header at";
    for (fields, at) in [
        ("Content-Length: 5\r\nContent-Length: 5", "3:17"),
        ("Content-Length: 5, 5", "2:17"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", "4:2"),
        ("Transfer-Encoding: Chunked\r\nContent-Length: 5", "4:2"),
    ] {
        check_malformed(format!("POST / HTTP/1.1\r\n{fields}\r\n\r\nhello"), &format!("{reason} {at}"));
    }
}

#[test]
fn unframed_bodies_are_not_part_of_requests() {
    check_malformed("POST / HTTP/1.1\r\nHost: h\r\n\r\nfoo=bar", "invalid HTTP method at 4:1");
}

#[test]
fn only_exact_chunked_changes_framing() {
    for coding in ["gzip", "identity", "gzip, chunked", "chunked, gzip", "chunked,", "", "chunkedx"] {
        let head = format!("POST / HTTP/1.1\r\nTransfer-Encoding: {coding}\r\n");
        let (whole, bodiless) = (format!("{head}Content-Length: 5\r\n\r\nhello"), format!("{head}\r\n"));
        check(format!("{whole}{GET}"), &[(&whole, 5, ResponseKind::Usual), (GET, 0, ResponseKind::Usual)]);
        check(format!("{bodiless}{GET}"), &[(&bodiless, 0, ResponseKind::Usual), (GET, 0, ResponseKind::Usual)]);
    }
    let twice = "PUT / HTTP/1.1\r\nTransfer-Encoding: CHUNKED \r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n";
    check(twice, &[(twice, 5, ResponseKind::Usual)]);
}

#[test]
fn badly_framed_chunks_are_malformed() {
    let head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_malformed(format!("{head}x\r\n"), "invalid character in chunk size header at 4:1");
    check_malformed(format!("{head}11111111111111111\r\n"), "invalid character in chunk size header at 4:17");
    check_malformed(format!("{head}5\r\nhello!\r\n"), "line ending expected after chunk at 5:6");
    check_malformed(format!("{head}0\r\nA b\r\n\r\n"), "invalid character in header at 5:2");
    let long = format!("{head}5;{}", "a".repeat(100_000));
    check_malformed(long, "too many header bytes seen; overflow detected at 4:81921");
}

#[test]
fn closing_requests_must_be_last() {
    let closing = "GET / HTTP/1.1\r\nConnection: a, CLOSE\r\n\r\n";
    check_plain(closing);
    let reason = "data received after completed connection: close message at";
    check_malformed(format!("{closing}{GET}"), &format!("{reason} 4:1"));
    check_malformed(format!("{closing}\r\n{GET}"), &format!("{reason} 5:1"));
    check_malformed(["GET / HTTP/1.0\r\n\r\n"; 2].concat(), &format!("{reason} 3:1"));
    let kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    check(kept.repeat(2), &[(kept, 0, ResponseKind::Usual); 2]);
}

#[test]
fn earlier_requests_stay_found_after_faults() {
    let mut found = Vec::new();
    outline(GET.as_bytes(), &mut found).unwrap();
    assert_eq!(outline(format!("{GET}?").as_bytes(), &mut found).unwrap_err().line, 4);
    let range = 0..GET.len();
    assert_eq!(found, vec![Outline { range, body_length: 0, response: ResponseKind::Usual }; 2]);
}

proptest! {
    #[test]
    fn requests_are_contiguous_and_complete(
        requests in proptest::collection::vec(0..3_usize, 1..20),
    ) {
        let batch: String = requests.iter().map(|&request| [GET, POST, CHUNKS][request]).collect();
        let mut found = Vec::new();
        outline(batch.as_bytes(), &mut found).unwrap();
        prop_assert_eq!(found.len(), requests.len());
        let mut end = 0;
        for found in found {
            prop_assert_eq!(found.range.start, end);
            end = found.range.end;
        }
        prop_assert_eq!(end, batch.len());
    }
}
