//! How connections stay open and how they end.

use super::*;

#[test]
fn an_announced_close_drains_and_what_is_behind_may_be_retried() {
    for fields in [
        "Connection: close",
        "connection: CLOSE",
        "Connection: keep-alive, Close",
        "Connection: upgrade ,\tclose,",
        "Connection: close, upgrade",
        "Connection: keep-alive\r\nConnection: close",
        "Proxy-Connection: close",
    ] {
        check(
            "GET GET",
            format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\n\r\nhi<eof>"),
            &[
                "0 head 200",
                "0 data hi",
                "0 complete",
                "1 failed, retryable: the connection was closed before the request was answered",
                "draining",
            ],
        );
    }
}

#[test]
fn the_version_decides_where_the_fields_do_not() {
    for (start, lives) in [
        ("HTTP/1.1 200 OK\r\n", true),
        ("HTTP/1.2 200 OK\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: closed\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive, upgrade\r\n", true),
        ("HTTP/1.0 200 OK\r\nProxy-Connection: keep-alive\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\n", false),
        ("HTTP/1.0 200 OK\r\n", false),
        ("HTTP/2.0 200 OK\r\n", false),
        ("HTTP/2.0 200 OK\r\nConnection: keep-alive\r\n", true),
        ("HTTP/0.9 200 OK\r\n", false),
    ] {
        let mut events = vec!["0 head 200", "0 data hi", "0 complete"];
        events.extend((!lives).then_some("draining"));
        check("GET", format!("{start}Content-Length: 2\r\n\r\nhi"), &events);
    }
}

#[test]
fn what_comes_after_the_drain_is_ignored() {
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\n<eof>",
        &["0 head 200", "0 data hi", "0 complete", "draining"],
    );
}

#[test]
fn bytes_that_answer_no_request_are_an_error_of_the_connection() {
    check(
        "GET",
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n<eof>",
        &["0 head 204", "0 complete", "draining: bytes after a complete response"],
    );
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!",
        &["0 head 200", "0 data hi", "0 complete", "draining: bytes after a complete response"],
    );
    check("", "HTTP/1.1 408 Too Late\r\n\r\n", &["draining: bytes before any request"]);
}

#[test]
fn the_end_of_an_idle_connection_is_an_error_of_the_connection() {
    let events = ["0 head 204", "0 complete", "draining: closed by the server before a response began"];
    check("GET", "HTTP/1.1 204 No Content\r\n\r\n<eof>", &events);
}

#[test]
fn the_end_before_any_answer_fails_all_requests_alike() {
    let failed = |stream: u32| format!("{stream} failed: closed by the server before a response began");
    check("GET GET", "<eof>", &[&failed(0), &failed(1), "draining"]);
    check("GET GET", "\r\n<eof>", &[&failed(0), &failed(1), "draining"]);
    check(
        "GET GET GET",
        "HTTP/1.1 204 No\r\n\r\n<eof>",
        &["0 head 204", "0 complete", &failed(1), &failed(2), "draining"],
    );
    check("GET", "HTTP/1.1 100 Continue\r\n\r\n<eof>", &["0 interim 100", &failed(0), "draining"]);
}

#[test]
fn the_end_inside_a_response_fails_it_and_those_behind() {
    let behind = "1 failed: the connection was closed before the request was answered";
    let failed = "0 failed: closed by the server inside a response body";
    for head in ["H", "HTTP/1.1 200 OK\r\n", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r"] {
        let events = ["0 failed: closed by the server inside a response head", behind, "draining"];
        check("GET GET", format!("{head}<eof>"), &events);
    }
    for body in [
        "Content-Length: 3\r\n\r\nhi",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
    ] {
        let events = ["0 head 200", "0 data hi", failed, behind, "draining"];
        check("GET GET", format!("HTTP/1.1 200 OK\r\n{body}<eof>"), &events);
    }
    let trailers = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nExpires: ne<eof>";
    check("GET GET", trailers, &["0 head 200", "0 trailer Expires: ne", failed, behind, "draining"]);
    check("GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n<eof>", &["0 head 200", failed, "draining"]);
}
