//! Chunked bodies.

use super::*;

#[test]
fn last_chunks_keep_the_connection() {
    check_chunks("2\r\nhi\r\n0\r\n\r\n");
    check_chunks("1\r\nh\r\n1\r\ni\r\n0\r\n\r\n");
    check_chunks("0000000000000000000002\r\nhi\r\n000\r\n\r\n");
    check_chunks("2;name=value;\"q\"\r\nhi\r\n0;last\r\n\r\n");
    check_chunks("2 \t ;name\r\nhi\r\n0  \r\n\r\n");
    check_chunks("2\nhi\n0\n\n");
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\nb\r\nabcdefghijk\r\n0\r\n\r\n",
        &["0 head 200", "0 data 0123456789abcdefghijk", "0 complete"],
    );
}

#[test]
fn bad_chunk_sizes_are_refused() {
    for size in [
        "",
        " 2",
        "\t2",
        "0x2",
        "-2",
        "+2",
        "g",
        "2 2",
        "2g",
        "\0",
        "2\0",
        "2\r",
        ";a",
        "10000000000000000",
        "fffffffffffffffff",
    ] {
        check_chunks_fail(&format!("\r\n{size}\r\nhi\r\n0\r\n\r\n"), Error::ChunkSize);
    }
}

#[test]
fn largest_chunks_are_read_completely() {
    let closed = "0 failed: closed by the server inside a response body";
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFffffffff\r\nhi<eof>",
        &["0 head 200", "0 data hi", closed, "draining"],
    );
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhi<eof>",
        &["0 head 200", "0 data hi", closed, "draining"],
    );
}

#[test]
fn data_beyond_its_chunks_size_is_refused() {
    for rest in ["!", "!\r\n0\r\n\r\n", "\r!", "\0\r\n", "0\r\n\r\n"] {
        check_chunks_fail(rest, Error::ChunkEnd);
    }
}

#[test]
fn trailers_are_reported_as_received() {
    for trailers in
        ["A: b\r\n", "Expires: never\r\nX-Empty:\r\n", "A: b\nC:\td \n", "A: b\r\n folded\r\n\t \r\nC: d\r\n"]
    {
        check_trailers(&format!("2\r\nhi\r\n0\r\n{trailers}\r\n"), trailers);
    }
    check(
        "GET GET",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
        &["0 head 200", "0 trailer A: b\r\n", "0 complete", "1 head 204", "1 complete"],
    );
}

#[test]
fn malformed_trailers_are_refused_at_the_byte() {
    for (before, wrong) in [
        ("No", " colon"),
        ("", ": value"),
        ("", " Name: value"),
        ("Name", " : v"),
        ("N", "\0: v"),
        ("Name: ", "\0"),
        ("Name: a\r", "b"),
        ("", "\rx"),
        ("A: b\r\n fol", "\0ded"),
    ] {
        check_trailers_fail(before, &format!("{wrong}\r\n\r\n"), Error::Trailer);
    }
}

#[test]
fn endless_extensions_and_trailers_are_refused() {
    let endless = |text: &str| text.repeat(HEAD_MAX + 1);
    check_chunks_fail(&format!("\r\n2;{}", endless("x")), Error::TrailerTooLong);
    check_chunks_fail(&format!("\r\n2{}", endless(" ")), Error::TrailerTooLong);
    check_chunks_fail(&format!("\r\n{}", endless("0")), Error::TrailerTooLong);
    let fields = endless("A: b\r\n");
    let value = format!("Name: {}", endless("x"));
    for trailers in [fields, value] {
        let (before, wrong) = trailers.split_at(HEAD_MAX);
        check_trailers_fail(before, wrong, Error::TrailerTooLong);
    }
}

#[test]
fn bad_bytes_win_over_the_trailer_limit() {
    let longest = format!("A: {}", "x".repeat(HEAD_MAX - 4));
    check_trailers_fail(&longest, "\0", Error::Trailer);
}

#[test]
fn chunk_lines_and_trailers_reach_their_limits() {
    let line = |start: &str| format!("{start}{}\r\n", "x".repeat(HEAD_MAX - start.len() - 2));
    let trailers = |over| format!("A: {}\r\n", "x".repeat(HEAD_MAX - 7 + over));
    let chunks = format!("{}h\r\n{}i\r\n{}", line("1;"), line("1;"), line("0;"));
    check_trailers(&format!("{chunks}{}\r\n", trailers(0)), &trailers(0));
    check_trailers_fail(&trailers(1), "\r\n", Error::TrailerTooLong);
    check_chunks_fail(&format!("\r\n{}", line("0;x").replace('\r', "x\r")), Error::TrailerTooLong);
}

/// Checks that a body with the data `hi` and these trailers fails with `error` at the first byte of `wrong`.
#[track_caller]
fn check_trailers_fail(before: &str, wrong: &str, error: Error) {
    let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{before}{wrong}");
    let (told, failed) = (format!("0 trailer {before}"), format!("0 failed: {error}"));
    let mut events = vec!["0 head 200", "0 data hi", &told, &failed, "draining"];
    events.retain(|event| *event != "0 trailer ");
    check("GET", input, &events);
}

/// Checks that a chunked body is `hi` with these trailers, and that the connection stays open.
#[track_caller]
fn check_trailers(chunks: &str, trailers: &str) {
    let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
    check("GET", input, &["0 head 200", "0 data hi", &format!("0 trailer {trailers}"), "0 complete"]);
}

/// Checks that a chunked body fails with `error` after the data `hi`.
#[track_caller]
fn check_chunks_fail(rest: &str, error: Error) {
    let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi{rest}");
    check("GET", input, &["0 head 200", "0 data hi", &format!("0 failed: {error}"), "draining"]);
}

/// Checks that a chunked body that ends in `rest` is `hi`, and that the connection stays open.
#[track_caller]
fn check_chunks(chunks: &str) {
    let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
    check("GET", input, &["0 head 200", "0 data hi", "0 complete"]);
}
