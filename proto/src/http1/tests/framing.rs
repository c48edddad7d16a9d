//! Ends of responses.

use super::*;

#[test]
fn content_length_keeps_the_connection() {
    check(
        "GET GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n",
        &["0 head 200", "0 data hi", "0 complete", "1 head 404", "1 complete"],
    );
}

#[test]
fn chunked_is_recognized_as_last_coding() {
    for fields in [
        "Transfer-Encoding: CHUNKED",
        "transfer-encoding: gzip, chunked",
        "TRANSFER-ENCODING:gzip ,\tChunked ,",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: ,",
    ] {
        let input = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
        check("GET", input, &["0 head 200", "0 data hi", "0 complete"]);
    }
}

#[test]
fn bodies_without_length_end_with_the_stream() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
    ] {
        check("GET", format!("{head}hi<eof>"), &["0 head 200", "0 data hi", "0 complete", "draining"]);
        check("GET", format!("{head}<eof>"), &["0 head 200", "0 complete", "draining"]);
    }
}

#[test]
fn identity_coding_changes_nothing() {
    for (fields, body) in [
        ("Transfer-Encoding: identity\r\nContent-Length: 2", "hi"),
        ("Content-Length: 2\r\nTransfer-Encoding: Identity", "hi"),
        ("Transfer-Encoding: identity, ,identity\r\nTransfer-Encoding: identity\r\nContent-Length: 2", "hi"),
        ("Transfer-Encoding:\r\nContent-Length: 2", "hi"),
        ("Transfer-Encoding: ,\r\nContent-Length: 2", "hi"),
        ("Transfer-Encoding: identity, chunked", "2\r\nhi\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "2\r\nhi\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked, identity", "2\r\nhi\r\n0\r\n\r\n"),
    ] {
        check("GET", format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}"), &["0 head 200", "0 data hi", "0 complete"]);
    }
    let until_eof = "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhi<eof>";
    check("GET", until_eof, &["0 head 200", "0 data hi", "0 complete", "draining"]);
}

/// Framing fields that compressors and caches leave in heads without a body.
#[test]
fn bodyless_responses_ignore_framing_fields() {
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: -1",
        "Content-Length:",
    ] {
        let head = |status: &str| format!("HTTP/1.1 {status}\r\n{fields}\r\nDate: today\r\n\r\n");
        let two =
            |status| [format!("0 head {status}"), "0 complete".into(), format!("1 head {status}"), "1 complete".into()];
        for (methods, status) in [("GET GET", "204"), ("GET POST", "304"), ("HEAD HEAD", "200"), ("HEAD HEAD", "404")] {
            check(methods, head(status).repeat(2), &two(status).each_ref().map(String::as_str));
        }
        check("GET", head("103") + &head("204"), &["0 interim 103", "0 head 204", "0 complete"]);
        check("CONNECT", head("200") + "\x16\x03\x01", &["0 head 200", "0 complete", "draining"]);
        // The connection may still announce its end.
        let closing = head("304").replace("Date: today", "Connection: close");
        check("GET", closing, &["0 head 304", "0 complete", "draining"]);
    }
}

#[test]
fn bodyless_responses_complete_with_their_head() {
    for head in
        ["204 No Content\r\n", "304 Not Modified\r\nContent-Length: 5\r\n", "204 Odd\r\nTransfer-Encoding: chunked\r\n"]
    {
        let status = &head[..3];
        check("GET", format!("HTTP/1.1 {head}\r\n"), &[&format!("0 head {status}"), "0 complete"]);
    }
    check("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &["0 head 200", "0 complete"]);
    check("HEAD", "HTTP/1.1 200 OK\r\n\r\n", &["0 head 200", "0 complete"]);
    check("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &["0 head 200", "0 complete"]);
}

#[test]
fn responses_are_framed_by_their_requests_method() {
    check(
        "GET HEAD GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na\
         HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc",
        &["0 head 200", "0 data a", "0 complete", "1 head 200", "1 complete", "2 head 200", "2 data c", "2 complete"],
    );
}

#[test]
fn interim_responses_are_reported_and_skipped() {
    check(
        "GET",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        &["0 interim 100", "0 interim 103", "0 head 204", "0 complete"],
    );
    check("GET", "HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n", &["0 interim 100"]);
}

#[test]
fn protocol_switches_are_errors() {
    check_fails("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\nPRI", Error::Switched);
}

#[test]
fn accepted_tunnels_drain_the_connection() {
    check(
        "CONNECT GET",
        "HTTP/1.1 200 Go\r\nContent-Length: 5\r\n\r\n\x16\x03\x01",
        &[
            "0 head 200",
            "0 complete",
            "1 failed, retryable: the connection was closed before the request was answered",
            "draining",
        ],
    );
    check("CONNECT", "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", &["0 head 403", "0 data no", "0 complete"]);
}
