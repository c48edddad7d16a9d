//! Heads: untidy, wrong, endless.

use super::*;

#[test]
fn untidy_heads_are_accepted() {
    for head in [
        "HTTP/1.1 200 OK\nContent-Length: 2\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\n",
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 Tr\u{e8}s\tbien\r\nContent-Length:2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \t 2 \t\r\n\r\n",
        "\r\n\n\r\rHTTP/1.1 200 OK\r\nContent-Length: 0002\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Empty:\r\nX!#$%&'*+-.^_`|~9: \u{e8}\r\nContent-Length: 2\r\n\r\n",
    ] {
        check("GET", format!("{head}hi"), &["0 head 200", "0 data hi", "0 complete"]);
    }
    check("GET", "HTTP/1.1 999 \r\nContent-Length: 0\r\n\r\n", &["0 head 999", "0 complete"]);
}

#[test]
fn bad_first_bytes_are_refused_at_once() {
    for input in
        ["X", "h", "HTTP1", "HTTPS", "\r\n\r\n ", "<html>", "SSH-2.0-OpenSSH\r\n", "\0", "\x15TTP/1.1 200 OK\r\n"]
    {
        check_fails(input, Error::NotHttp);
        check_fails(format!("{input}<eof>"), Error::NotHttp);
    }
}

#[test]
fn tls_is_recognised_at_the_second_byte() {
    check_fails("\x15\x03\x01", Error::SpeaksTls);
    check_fails("\x16\x03<eof>", Error::SpeaksTls);
    check_fails("\x15\x02", Error::NotHttp);
}

#[test]
fn bad_status_lines_are_refused() {
    for line in [
        "HTTP/",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 1000",
        "HTTP/1.1 099 Low",
        "HTTP/1.1 000 Zero",
        "HTTP/1.1 -20 OK",
        "HTTP/1.1 2x0 OK",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1  200 OK",
        "HTTP/11 200 OK",
        "HTTP/1.10 200 OK",
        "HTTP/a.1 200 OK",
        "HTTP/ 1.1 200 OK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 O\x7fK",
        "HTTP/1.1 200 O\rK",
    ] {
        check_fails(format!("{line}\r\n"), Error::StatusLine);
        check_fails(format!("{line}\nContent-Length: 2\r\n\r\nhi<eof>"), Error::StatusLine);
    }
}

#[test]
fn malformed_fields_are_refused_at_head_end() {
    for field in [
        "No colon",
        "Name : value",
        "Na me: value",
        ": value",
        "Name",
        "Name: va\0lue",
        "Na\0me: value",
        "Name: va\rlue",
        "Name: value\r\n fol\0ded",
        "Na\r\n me: value",
        "Name\r\n : value",
        "N\u{e4}me: value",
        "Name: va\x7flue",
    ] {
        check_fails(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{field}\r\n\r\nhi"), Error::HeaderField);
        let closed = Error::ClosedInHead;
        check_fails(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{field}\r\n<eof>"), closed);
    }
}

/// RFC 9112, 5.2: a client replaces line folding with blanks.
#[test]
fn folded_lines_are_read_as_one() {
    for fields in [
        "Name: value\r\n folded\r\nContent-Length: 2",
        "Content-Length: 2\r\nName: value\r\n\tfolded",
        "Content-Length: 2\nName: value\n  folded\n\tagain",
        "Name:\r\n value: with a colon\r\nContent-Length:\r\n 2",
        "Name: value\r\n \t\r\nContent-Length: 2\r\n ",
    ] {
        check("GET", format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nhi"), &["0 head 200", "0 data hi", "0 complete"]);
    }
    // All bytes count.
    check(
        "GET",
        "HTTP/1.1 200 OK\r\nConnection: x,\r\n close\r\nTransfer-Encoding: gzip,\r\n\tchunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        &["0 head 200", "0 data hi", "0 complete", "draining"],
    );
    check_fails("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n 2\r\n\r\nhi", Error::Length);
    check_fails("HTTP/1.1 200 OK\r\n Folds: nothing\r\n\r\n", Error::HeaderField);
}

#[test]
fn folded_lines_are_unfolded() {
    let head = b"HTTP/1.1 204 No\r\nA: b\r\n\tc: d\r\nE: f\r\n\r\n";
    for size in [head.len(), 1, 20] {
        let mut client = connected("GET GET");
        for _ in 0..2 {
            head.chunks(size).for_each(|piece| assert_eq!(client.handle_bytes(piece, NOW), piece.len()));
            let last = head.chunks(size).last().unwrap();
            assert_eq!(text(&client, last), b"HTTP/1.1 204 No\r\nA: b  \tc: d\r\nE: f\r\n\r\n");
            let fields: Vec<(&[u8], &[u8])> = client.fields(last).collect();
            assert_eq!(fields, [(&b"A"[..], &b"b  \tc: d"[..]), (b"E", b"f")]);
            while client.poll_event().is_some() {}
        }
    }
}

#[test]
fn odd_content_lengths_are_refused() {
    for length in
        ["", "-1", "+2", "2.0", "0x2", "2 2", "two", "18446744073709551616", "99999999999999999999999", "2\u{b2}"]
    {
        check_fails(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhi"), Error::Length);
    }
}

#[test]
fn contradictory_lengths_are_refused() {
    for fields in [
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 2\r\nA: b\r\ncontent-length: 3",
        "Content-Length: 2, 2",
    ] {
        check_fails(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nhi"), Error::LengthTwice);
    }
    for fields in [
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Transfer-Encoding: gzip\r\nContent-Length: 2",
    ] {
        check_fails(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nhi"), Error::LengthAndEncoding);
    }
}

#[test]
fn errors_fail_later_requests_too() {
    check(
        "GET GET GET",
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 garbage\r\nHTTP/1.1 204 No Content\r\n\r\n<eof>",
        &[
            "0 head 204",
            "0 complete",
            "1 failed: malformed status line",
            "2 failed: the connection was closed before the request was answered",
            "draining",
        ],
    );
}

#[test]
fn heads_may_have_many_fields() {
    let fields = "a:\r\n".repeat(20_000);
    let input = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nhi");
    assert!(input.len() < HEAD_MAX);
    check("GET", input, &["0 head 200", "0 data hi", "0 complete"]);
    let input = format!("HTTP/1.1 200 OK\r\n{fields}bad field\r\n\r\n");
    check_fails(input, Error::HeaderField);
}

#[test]
fn heads_are_limited_to_the_byte() {
    for (start, filler, end) in [
        ("HTTP/1.1 204 ", "x", "\r\n\r\n"),
        ("HTTP/1.1 204 No Content\r\nA:", "x", "\r\n\r\n"),
        ("", "\n", "HTTP/1.1 204 No Content\r\n\r\n"),
    ] {
        let room = HEAD_MAX - start.len() - end.len();
        check("GET", format!("{start}{}{end}", filler.repeat(room)), &["0 head 204", "0 complete"]);
        check_fails(format!("{start}{}{end}", filler.repeat(room + 1)), Error::HeadTooLong);
    }
}

#[test]
fn leading_empty_lines_are_not_carried_over() {
    let response = format!("{}HTTP/1.1 204 No Content\r\n\r\n", "\n".repeat(HEAD_MAX - 1000));
    check("GET GET", response.repeat(2), &["0 head 204", "0 complete", "1 head 204", "1 complete"]);
}

#[test]
fn endless_heads_are_refused() {
    for (start, endless) in [
        ("HTTP/1.1 200 ", "x"),
        ("HTTP/1.1 200 OK\r\nName: ", "x"),
        ("HTTP/1.1 200 OK\r\n", "x"),
        ("HTTP/1.1 200 OK\r\n", "Name: value\r\n"),
        ("HTTP/1.1 200 OK\r\n", "\r"),
        ("", "\r\n"),
    ] {
        check_fails(format!("{start}{}", endless.repeat(HEAD_MAX)), Error::HeadTooLong);
    }
}

#[test]
fn endless_heads_share_one_budget() {
    let heads = HeadBuffer::new(100_000);
    let begun = |fields: usize| {
        let mut client = Http1::sharing(1, &heads);
        client.start(&request("GET"), false).unwrap();
        let length = client.poll_transmit(NOW).unwrap().bytes().len();
        client.handle_sent(length);
        let text = ["HTTP/1.1 204 No Content\r\n", &"A: b\r\n".repeat(fields)].concat();
        let mut events = Vec::new();
        for piece in text.as_bytes().chunks(1000) {
            assert_eq!(client.handle_bytes(piece, NOW), piece.len());
            take_events(&mut client, piece, &mut events);
        }
        (client, events)
    };
    let ends = |mut client: Http1| {
        client.handle_bytes(b"\r\n", NOW);
        let mut events = Vec::new();
        take_events(&mut client, b"\r\n", &mut events);
        assert_eq!(events, ["0 head 204", "0 complete"]);
        client
    };
    let refused = [format!("0 failed: {}", Error::HeadMemory), "draining".to_owned()];
    let (first, _) = begun(10_000);
    let (second, events) = begun(10_000);
    assert_eq!(events, refused);
    let (small, events) = begun(500);
    assert_eq!(events, [""; 0], "a small one is always read");
    ends(small);
    let mut first = ends(first);
    first.handle_bytes(b"", NOW);
    drop(second);
    assert_eq!(begun(10_000).1, [""; 0], "the next input forgets the head");
    assert_eq!(begun(10_000).1, [""; 0], "and so does the end of the connection");
}
