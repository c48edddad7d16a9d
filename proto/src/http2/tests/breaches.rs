//! Violations by servers: every demand of RFC 9113 on a client, with the code sent to the server.

use super::*;

const OK: &[(&str, &str)] = &[(":status", "200")];

/// Checks that `input` ends a connection with a `GET`, with this error.
#[track_caller]
fn check_connection(input: impl AsRef<[u8]>, breach: Breach) {
    check_connection_after(b"", &[], input, breach);
}

/// [`check_connection`] after frames that cause these events.
#[track_caller]
fn check_connection_after(before: &[u8], events: &[&str], input: impl AsRef<[u8]>, breach: Breach) {
    let error = format!("{breach} ({})", breach.code());
    let is_open = !events.contains(&"1 complete") && !events.iter().any(|event| event.starts_with("1 failed"));
    let failed = if is_open {
        vec![format!("1 failed: {error}"), "draining".into()]
    } else {
        vec![format!("draining: {error}")]
    };
    let goaway = format!("> GOAWAY 0 {}", breach.code());
    let mut expected = events.to_vec();
    expected.extend(failed.iter().map(String::as_str));
    expected.push(&goaway);
    // Bytes after the violation are ignored.
    check("GET", [before, input.as_ref(), &frame(0, "", "PING", b"too late")].concat(), &expected);
}

/// Checks that `input` fails a `GET` on stream 1, after these events, and that another request continues.
#[track_caller]
fn check_stream(input: impl AsRef<[u8]>, events: &[&str], breach: Breach) {
    let error = format!("1 failed: {breach} ({})", breach.code());
    let reset = format!("> RST_STREAM 1 {}", breach.code());
    let expected = [events, &[&error, "3 head HTTP/2 200||", "3 complete", &reset]].concat();
    // The server continues the stream for a while.
    let late = [headers(1, "", &[("late", "x")]), data(1, "END_STREAM", b"late"), rst(1, Code::CANCEL)].concat();
    check("GET GET", [input.as_ref(), &late, &headers(3, "END_STREAM", OK)].concat(), &expected);
}

#[test]
fn first_frames_must_be_settings() {
    let scene = Scene { is_greeted: false, ..Scene::new("GET") };
    let failed = |breach: Breach| {
        [
            format!("1 failed: {breach} ({})", breach.code()),
            "draining".to_owned(),
            format!("> GOAWAY 0 {}", breach.code()),
        ]
    };
    let first = failed(Breach::FirstFrame);
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    for input in [
        frame(0, "ACK", "SETTINGS", b""),
        headers(1, "", OK),
        frame(0, "", "PING", b"12345678"),
        frame(0, "", "unknown", b""),
    ] {
        scene.check(input, &first);
    }
}

#[test]
fn other_protocols_are_named() {
    let scene = Scene { is_greeted: false, ..Scene::new("GET GET") };
    let answers: [(&[u8], Error); 7] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n<eof>", Error::AnsweredInHttp1),
        (b"HTTP/", Error::AnsweredInHttp1),
        (b"\x15\x03\x01\0\x02\x02\x46<eof>", Error::SpeaksTls),
        (b"\x16\x03", Error::SpeaksTls),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Error::NotHttp),
        (b"220 mail.example ESMTP\r\n<eof>", Error::NotHttp),
        (b"<html>...", Error::NotHttp),
    ];
    for (input, error) in answers {
        scene.check(input, &[&format!("1 failed: {error}"), &format!("3 failed: {error}"), "draining"]);
    }
    scene.check(
        b"HTT<eof>",
        &[
            "1 failed: closed by the server before a response began",
            "3 failed: closed by the server before a response began",
            "draining",
        ],
    );
}

#[test]
fn frames_on_wrong_streams_are_errors() {
    for kind in ["DATA", "HEADERS", "RST_STREAM", "CONTINUATION", "PRIORITY"] {
        check_connection(frame(0, "END_HEADERS", kind, b"1234"), Breach::StreamZero);
    }
    check_connection(frame(1, "", "SETTINGS", b""), Breach::NotStreamZero);
    check_connection(frame(1, "ACK", "SETTINGS", b""), Breach::NotStreamZero);
    check_connection(frame(1, "", "PING", b"12345678"), Breach::NotStreamZero);
    check_connection(frame(1, "", "GOAWAY", b"12345678"), Breach::NotStreamZero);
}

#[test]
fn frames_on_idle_streams_are_errors() {
    for stream in [2, 3, 4, 0x7fff_ffff] {
        for kind in ["DATA", "HEADERS", "RST_STREAM", "WINDOW_UPDATE"] {
            check_connection(frame(stream, "", kind, b"\0\0\0\x01"), Breach::IdleStream);
        }
    }
}

#[test]
fn pushes_are_errors() {
    check_connection(frame(1, "END_HEADERS", "PUSH_PROMISE", b"\0\0\0\x02\x82"), Breach::Push);
    check_connection(settings(&[(2, 1)]), Breach::Push);
    check("GET", settings(&[(2, 0)]), &["> SETTINGS ACK"]);
}

#[test]
fn interrupted_header_blocks_are_errors() {
    let begin = frame(1, "", "HEADERS", &block(OK));
    for next in [
        data(1, "", b""),
        headers(1, "", OK),
        frame(0, "", "PING", b"12345678"),
        frame(1, "", "PRIORITY", b"12345"),
        frame(0, "", "unknown", b""),
        settings(&[]),
        frame(3, "", "CONTINUATION", b""),
        frame(0, "", "CONTINUATION", b""),
    ] {
        check_connection([&begin[..], &next].concat(), Breach::Interrupted);
    }
}

#[test]
fn stray_continuations_are_errors() {
    check_connection(frame(1, "END_HEADERS", "CONTINUATION", b""), Breach::Stray);
    let ended = headers(1, "", OK);
    check_connection_after(
        &ended,
        &["1 head HTTP/2 200||"],
        frame(1, "END_HEADERS", "CONTINUATION", b""),
        Breach::Stray,
    );
}

#[test]
fn excessive_padding_is_an_error() {
    let head = headers(1, "", OK);
    let events = ["1 head HTTP/2 200||"];
    for (payload, breach) in
        [(&b""[..], Breach::FrameLength), (b"\x01", Breach::Padding), (b"\x05abcd", Breach::Padding)]
    {
        check_connection_after(&head, &events, frame(1, "PADDED", "DATA", payload), breach);
        check_connection(frame(1, "PADDED END_HEADERS", "HEADERS", payload), breach);
        check_connection(
            [frame(1, "PADDED", "HEADERS", payload), frame(1, "END_HEADERS", "CONTINUATION", b"\x88")].concat(),
            breach,
        );
    }
    check_connection(frame(1, "PADDED PRIORITY END_HEADERS", "HEADERS", b"\0abcd"), Breach::Padding);
    check_connection(frame(1, "PRIORITY END_HEADERS", "HEADERS", b"abcd"), Breach::FrameLength);
}

#[test]
fn wrong_frame_lengths_are_errors() {
    for (kind, flags, stream, lengths) in [
        ("SETTINGS", "", 0, &[1, 5, 7][..]),
        ("SETTINGS", "ACK", 0, &[1, 6]),
        ("PING", "", 0, &[0, 7, 9]),
        ("PING", "ACK", 0, &[7]),
        ("RST_STREAM", "", 1, &[0, 3, 5]),
        ("WINDOW_UPDATE", "", 1, &[0, 3, 5]),
        ("WINDOW_UPDATE", "", 0, &[3, 5]),
        ("GOAWAY", "", 0, &[0, 7]),
    ] {
        for &length in lengths {
            check_connection(frame(stream, flags, kind, &vec![0; length]), Breach::FrameLength);
        }
    }
    check_stream(frame(1, "", "PRIORITY", b"1234"), &[], Breach::FrameLength);
}

#[test]
fn oversized_frames_are_rejected() {
    for kind in ["DATA", "HEADERS", "unknown", "SETTINGS", "PING"] {
        let stream = u32::from(kind == "DATA" || kind == "HEADERS");
        check_connection(&frame(stream, "", kind, &[0; 16_385])[..9], Breach::FrameTooLong);
    }
    let mut scene = Scene::new("GET");
    scene.options.frame_max = 20_000;
    scene.check(frame(0, "", "unknown", &[0; 20_000]), &[]);
}

#[test]
fn undecodable_header_blocks_are_errors() {
    for (block, breach) in [
        (&b"\x80"[..], Breach::Index),
        (b"\x88\xbe", Breach::Index),
        (b"\xff\x80\x80\x80\x80\x80\x00", Breach::Integer),
        (b"\x88\x40\x01a", Breach::Truncated),
        (b"\x88\x00\x81\xff\x00", Breach::Huffman),
        (b"\x88\x20", Breach::TableSize),
        (b"\x3f\xe2\x1f", Breach::TableSize),
    ] {
        check_connection(frame(1, "END_HEADERS", "HEADERS", block), breach);
    }
}

#[test]
fn orphan_header_blocks_are_decoded() {
    let late = frame(1, "END_HEADERS", "HEADERS", b"\x40\x01a\x01b");
    let refer = frame(3, "END_HEADERS END_STREAM", "HEADERS", b"\x88\xbe");
    let input = [data(1, "", b"early"), late, refer, frame(1, "END_HEADERS", "HEADERS", b"\xbf")].concat();
    check(
        "GET GET",
        input,
        &[
            "1 failed: DATA before HEADERS (PROTOCOL_ERROR)",
            "3 head HTTP/2 200|a: b||",
            "3 complete",
            "draining: HPACK index out of range (COMPRESSION_ERROR)",
            "> RST_STREAM 1 PROTOCOL_ERROR",
            "> GOAWAY 0 COMPRESSION_ERROR",
        ],
    );
}

#[test]
fn acknowledged_table_sizes_are_binding() {
    let mut scene = Scene::new("GET");
    scene.options.table = 0;
    let ack = || frame(0, "ACK", "SETTINGS", b"");
    let ends = |block: &[u8]| frame(1, "END_HEADERS END_STREAM", "HEADERS", block);
    let done = ["1 head HTTP/2 200||", "1 complete"];
    scene.check(ends(b"\x88"), &done);
    scene.check([ack(), ends(b"\x20\x88"), ack()].concat(), &done);
    scene.check(
        [ack(), ends(b"\x88")].concat(),
        &["1 failed: bad HPACK table size update (COMPRESSION_ERROR)", "draining", "> GOAWAY 0 COMPRESSION_ERROR"],
    );
}

#[test]
fn settings_out_of_range_are_errors() {
    check_connection(settings(&[(4, 0x8000_0000)]), Breach::InitialWindow);
    check("GET", settings(&[(4, 0x7fff_ffff)]), &["> SETTINGS ACK"]);
    for size in [0, 16_383, 16_777_216, u32::MAX] {
        check_connection(settings(&[(3, 100), (5, size)]), Breach::MaxFrameSize);
    }
    check("GET", settings(&[(5, 16_384), (5, 16_777_215)]), &["> SETTINGS ACK"]);
}

#[test]
fn window_overflows_are_errors() {
    check_connection(window(0, 0), Breach::ZeroIncrement);
    check_connection(window(0, 0x7fff_ffff), Breach::WindowOverflow);
    check("GET", window(0, 0x7fff_ffff - 65_535), &[]);
    check_connection([window(1, 1), settings(&[(4, 0x7fff_ffff)])].concat(), Breach::WindowOverflow);
    check_stream(window(1, 0), &[], Breach::ZeroIncrement);
    check_stream(window(1, 0x8000_0000), &[], Breach::ZeroIncrement);
    check_stream(window(1, 0x7fff_ffff), &[], Breach::WindowOverflow);
}

#[test]
fn data_beyond_windows_is_an_error() {
    let head = headers(1, "", OK);
    let mut scene = Scene::new("GET");
    scene.options.window = 10;
    let failed = [
        "1 head HTTP/2 200||",
        "1 failed: DATA beyond the flow-control window (FLOW_CONTROL_ERROR)",
        "draining",
        "> GOAWAY 0 FLOW_CONTROL_ERROR",
    ];
    scene.check([head.clone(), data(1, "", &[b'x'; 11])].concat(), &failed);
    scene.check([head.clone(), data(1, "END_STREAM", &[b'x'; 11])].concat(), &failed);
    scene.check([head.clone(), padded_data(1, "", 10, b"")].concat(), &failed);
    scene.check(
        [head, data(1, "", b"12345"), data(1, "", b"6"), data(1, "END_STREAM", b"789012345")].concat(),
        &["1 head HTTP/2 200||", "1 data 123456789012345", "1 complete", "> WINDOW_UPDATE 1 5"],
    );
}

#[test]
fn goaway_must_not_raise_its_stream() {
    let before = goaway(1, Code::NO_ERROR);
    check(
        "GET",
        [before, goaway(3, Code::NO_ERROR)].concat(),
        &[
            "draining",
            "1 failed: GOAWAY with a higher last stream than before (PROTOCOL_ERROR)",
            "> GOAWAY 0 PROTOCOL_ERROR",
        ],
    );
}

#[test]
fn frames_after_stream_ends_are_errors() {
    let ends = headers(1, "END_STREAM", OK);
    let events = ["1 head HTTP/2 200||", "1 complete"];
    for input in [data(1, "", b"x"), headers(1, "", OK), headers(1, "END_STREAM", &[])] {
        check_connection_after(&ends, &events, &input, Breach::ClosedStream);
        check_connection_after(
            &rst(1, Code::CANCEL),
            &["1 failed: reset by the server (CANCEL)"],
            &input,
            Breach::ClosedStream,
        );
    }
    let harmless = [window(1, 1), rst(1, Code::NO_ERROR), frame(1, "", "PRIORITY", b"12345")].concat();
    check("GET", [ends, harmless].concat(), &events);
}

#[test]
fn malformed_heads_are_errors() {
    for (fields, breach) in [
        (&[("a", "b")][..], Breach::Status),
        (&[], Breach::Status),
        (&[(":status", "200"), (":status", "200")], Breach::Status),
        (&[(":status", "20")], Breach::Status),
        (&[(":status", "2000")], Breach::Status),
        (&[(":status", "099")], Breach::Status),
        (&[(":status", "2x0")], Breach::Status),
        (&[(":status", "")], Breach::Status),
        (&[(":status", "101")], Breach::Switching),
        (&[(":status", "200"), (":path", "/")], Breach::PseudoField),
        (&[(":status", "200"), (":unknown", "")], Breach::PseudoField),
        (&[("a", "b"), (":status", "200")], Breach::PseudoField),
        (&[(":status", "200"), ("Server", "x")], Breach::FieldName),
        (&[(":status", "200"), ("", "x")], Breach::FieldName),
        (&[(":status", "200"), ("a b", "x")], Breach::FieldName),
        (&[(":status", "200"), ("a:", "x")], Breach::FieldName),
        (&[(":status", "200"), ("\u{e9}", "x")], Breach::FieldName),
        (&[(":status", "200"), ("a", "x\0")], Breach::FieldValue),
        (&[(":status", "200"), ("a", "x\ry")], Breach::FieldValue),
        (&[(":status", "200"), ("a", "x\ny")], Breach::FieldValue),
        (&[(":status", "200"), ("a", " x")], Breach::FieldValue),
        (&[(":status", "200"), ("a", "x\t")], Breach::FieldValue),
        (&[(":status", "200"), ("connection", "close")], Breach::ConnectionField),
        (&[(":status", "200"), ("keep-alive", "1")], Breach::ConnectionField),
        (&[(":status", "200"), ("proxy-connection", "close")], Breach::ConnectionField),
        (&[(":status", "200"), ("transfer-encoding", "chunked")], Breach::ConnectionField),
        (&[(":status", "200"), ("upgrade", "h3")], Breach::ConnectionField),
        (&[(":status", "200"), ("te", "gzip")], Breach::ConnectionField),
        (&[(":status", "200"), ("content-length", "x")], Breach::ContentLength),
        (&[(":status", "200"), ("content-length", "")], Breach::ContentLength),
        (&[(":status", "200"), ("content-length", "18446744073709551616")], Breach::ContentLength),
        (&[(":status", "200"), ("content-length", "1"), ("content-length", "2")], Breach::ContentLength),
    ] {
        check_stream(headers(1, "", fields), &[], breach);
    }
    check_stream(headers(1, "END_STREAM", &[(":status", "100")]), &[], Breach::InterimEnds);
    check(
        "GET",
        headers(
            1,
            "END_STREAM",
            &[(":status", "200"), ("content-length", "0"), ("content-length", "0"), ("te", "trailers")],
        ),
        &["1 head HTTP/2 200|content-length: 0|content-length: 0|te: trailers||", "1 complete"],
    );
}

#[test]
fn malformed_trailers_are_errors() {
    let head = headers(1, "", OK);
    let events = ["1 head HTTP/2 200||"];
    for (flags, fields, breach) in [
        ("", &[("a", "b")][..], Breach::TrailersDoNotEnd),
        ("END_STREAM", &[(":status", "200")], Breach::PseudoField),
        ("END_STREAM", &[(":path", "/")], Breach::PseudoField),
        ("END_STREAM", &[("A", "b")], Breach::FieldName),
    ] {
        check_stream([&head[..], &headers(1, flags, fields)].concat(), &events, breach);
    }
}

#[test]
fn wrong_body_lengths_are_errors() {
    let head = |length| headers(1, "", &[(":status", "200"), ("content-length", length)]);
    let event = |length| format!("1 head HTTP/2 200|content-length: {length}||");
    for (length, body, data_event) in [
        ("3", data(1, "END_STREAM", b"12"), Some("1 data 12")),
        ("3", data(1, "", b"1234"), None),
        ("3", data(1, "END_STREAM", b"1234"), None),
        ("3", [data(1, "", b"12"), data(1, "", b""), data(1, "", b"34")].concat(), Some("1 data 12")),
        ("3", padded_data(1, "END_STREAM", 1, b"12"), Some("1 data 12")),
        ("3", headers(1, "END_STREAM", &[]), None),
        ("0", data(1, "", b"1"), None),
        ("18446744073709551615", data(1, "END_STREAM", b"12"), Some("1 data 12")),
    ] {
        let event = event(length);
        let events: Vec<&str> = [&event[..]].into_iter().chain(data_event).collect();
        check_stream([head(length), body].concat(), &events, Breach::BodyLength);
    }
    check_stream(
        headers(1, "END_STREAM", &[(":status", "200"), ("content-length", "1")]),
        &["1 head HTTP/2 200|content-length: 1||"],
        Breach::BodyLength,
    );
    check_stream(
        [headers(1, "", &[(":status", "204")]), data(1, "", b"1")].concat(),
        &["1 head HTTP/2 204||"],
        Breach::NoBody,
    );
    check(
        "HEAD",
        [headers(1, "", OK), data(1, "END_STREAM", b"1")].concat(),
        &[
            "1 head HTTP/2 200||",
            "1 failed: body in a response that has none (status 204 or 304, or to HEAD) (PROTOCOL_ERROR)",
            "> RST_STREAM 1 PROTOCOL_ERROR",
        ],
    );
}

#[test]
fn data_before_heads_is_an_error() {
    check_stream(data(1, "", b"x"), &[], Breach::DataFirst);
    check_stream(data(1, "END_STREAM", b""), &[], Breach::DataFirst);
    check_stream(
        [headers(1, "", &[(":status", "100")]), padded_data(1, "", 1, b"x")].concat(),
        &["1 interim HTTP/2 100||"],
        Breach::DataFirst,
    );
}
