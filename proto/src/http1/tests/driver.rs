//! Duties of the driver, and the events it gets.

use super::*;

#[test]
fn started_requests_reduce_capacity() {
    let mut client = Http1::new(2);
    assert_eq!(client.capacity(), 2);
    assert!(client.poll_transmit(NOW).is_none());
    let first = client.start(&request("GET"), false).unwrap();
    let second = client.start(&request("HEAD"), false).unwrap();
    assert_ne!(first, second);
    assert_eq!(client.capacity(), 0);
    assert_eq!(client.start(&request("GET"), false), Err(StartError::Busy));
    assert_eq!(*client.poll_transmit(NOW).unwrap().bytes(), *b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(*client.poll_transmit(NOW).unwrap().bytes(), *b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(client.poll_transmit(NOW).is_none());
    client.handle_sent(37);

    client.handle_bytes(b"HTTP/1.1 204 No Content\r\n\r\n", NOW);
    while client.poll_event().is_some() {}
    assert_eq!(client.capacity(), 1);
    client.start(&request("GET"), false).unwrap();
    assert_eq!(*client.poll_transmit(NOW).unwrap().bytes(), *b"GET / HTTP/1.1\r\n\r\n");
}

#[test]
fn requests_are_sent_without_copying() {
    let request = request("GET");
    let mut client = Http1::new(1);
    client.start(&request, false).unwrap();
    let sent = client.poll_transmit(NOW).unwrap();
    let mut another = Http1::new(1);
    another.start(&request, false).unwrap();
    assert_eq!(another.poll_transmit(NOW).unwrap().bytes().as_ptr(), sent.bytes().as_ptr(), "it was encoded once");
}

#[test]
fn last_requests_announce_the_close() {
    let said = request("GET");
    let mut sent = Vec::new();
    for _ in 0..2 {
        let mut client = Http1::new(2);
        client.start(&said, false).unwrap();
        client.start(&said, true).unwrap();
        sent.extend(std::iter::from_fn(|| client.poll_transmit(NOW)));
    }
    let [usual, last, _, last_again] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(*usual.bytes(), *b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(*last.bytes(), *b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(last.bytes().as_ptr(), last_again.bytes().as_ptr());
}

#[test]
fn responses_belong_to_the_oldest_request() {
    let mut client = connected("GET GET");
    assert_eq!(client.reading(), Some(StreamId(0)));
    client.handle_bytes(b"HTTP/1.1 204 No Content\r\n\r\n", NOW);
    while client.poll_event().is_some() {}
    assert_eq!(client.reading(), Some(StreamId(1)));
    assert_eq!(Http1::new(1).reading(), None);
}

#[test]
fn no_request_follows_an_announced_close() {
    let mut client = Http1::new(2);
    client.start(&request("GET"), false).unwrap();
    client.handle_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n", NOW);
    assert_eq!(client.capacity(), 0);
    assert_eq!(client.start(&request("GET"), false), Err(StartError::Busy));
}

#[test]
fn early_responses_complete_and_end_connections() {
    let upload = Request::new(RequestParts {
        method: "POST".into(),
        target: "/".into(),
        body: [0; 9].into(),
        ..RequestParts::default()
    });
    let mut client = Http1::new(3);
    for request in [&upload, &request("GET"), &request("GET")] {
        client.start(request, false).unwrap();
    }
    let transmit = client.poll_transmit(NOW).unwrap();
    client.handle_sent(transmit.bytes().len() - 1);
    let mut events = Vec::new();
    client.handle_bytes(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", NOW);
    take_events(&mut client, b"", &mut events);
    let failed = |stream| format!("{stream} failed, retryable: {}", Error::ConnectionEnded);
    assert_eq!(events, ["0 head 413", "0 complete, early", &failed(1), &failed(2), "draining"]);
    assert!(client.poll_transmit(NOW).is_none());
    assert_eq!(client.capacity(), 0);
}

#[test]
fn unsent_requests_may_be_retried() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (answered, error) in [(0, Error::EarlyBytes), (1, Error::ExtraBytes)] {
        let (mut client, mut events) = (Http1::new(1), Vec::new());
        for _ in 0..answered {
            client.start(&request("GET"), false).unwrap();
            let length = client.poll_transmit(NOW).unwrap().bytes().len();
            client.handle_sent(length);
            client.handle_bytes(answer, NOW);
            take_events(&mut client, answer, &mut events);
        }
        let StreamId(number) = client.start(&request("GET"), false).unwrap();
        assert_eq!(client.reading(), None);
        events.clear();
        client.handle_bytes(answer, NOW);
        take_events(&mut client, answer, &mut events);
        let failed = format!("{number} failed, retryable: {}", Error::ConnectionEnded);
        assert_eq!(events, [failed, format!("draining: {error}")]);
    }
}

#[test]
fn batched_responses_are_not_early() {
    let text = "GET / HTTP/1.1\r\n\r\n".repeat(2);
    let (bytes, mut found) = (text.as_bytes().into(), Vec::new());
    outline(text.as_bytes(), &mut found).unwrap();
    let (mut client, mut events) = (Http1::new(2), Vec::new());
    for outline in found {
        client.start(&Request::from(Wire::from_outline(&bytes, outline)), false).unwrap();
    }
    // The kernel may report only at the end that it took everything.
    let length = client.poll_transmit(NOW).unwrap().bytes().len();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    client.handle_bytes(answer, NOW);
    take_events(&mut client, answer, &mut events);
    client.handle_sent(length);
    client.handle_bytes(answer, NOW);
    take_events(&mut client, answer, &mut events);
    assert_eq!(events, ["0 head 200", "0 complete", "1 head 200", "1 complete"]);
    assert_eq!(client.capacity(), 2);
}

#[test]
fn heads_are_not_early_once_requests_are_sent() {
    let mut client = Http1::new(1);
    client.start(&request("GET"), false).unwrap();
    let size = client.poll_transmit(NOW).unwrap().bytes().len();
    let mut events = Vec::new();
    client.handle_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", NOW);
    take_events(&mut client, b"", &mut events);
    client.handle_sent(size);
    client.handle_bytes(b"a", NOW);
    take_events(&mut client, b"a", &mut events);
    assert_eq!(events, ["0 head 200", "0 data a", "0 complete"]);
    assert_eq!(client.capacity(), 1);
}

#[test]
fn cancelled_requests_end_the_connection_silently() {
    let mut client = connected("GET GET GET");
    client.cancel(StreamId(1));
    client.cancel(StreamId(2));
    let mut events = Vec::new();
    take_events(&mut client, b"", &mut events);
    assert_eq!(events, [&format!("0 failed: {}", Error::ConnectionEnded), "draining"]);
    assert_eq!(client.handle_bytes(b"HTTP/1.1 200 OK\r\n\r\n", NOW), 19);
    client.handle_eof();
    assert_eq!(client.poll_event(), None);
}

#[test]
fn cancelling_complete_requests_does_nothing() {
    let mut client = connected("GET");
    client.handle_bytes(b"HTTP/1.1 204 No Content\r\n\r\n", NOW);
    client.cancel(StreamId(0));
    client.cancel(StreamId(7));
    assert_eq!(client.poll_event(), None);
    assert_eq!(client.capacity(), 1);
}

#[test]
fn split_heads_can_be_read() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n";
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    let input = [b"\r\n", &interim[..], head, b"!"].concat();
    for size in 1..=input.len() {
        let mut client = connected("GET");
        let mut heads = Vec::new();
        for mut piece in input.chunks(size) {
            while !piece.is_empty() {
                let used = client.handle_bytes(piece, NOW);
                while let Some(event) = client.poll_event() {
                    if let Event::Interim { .. } | Event::Head { .. } = event {
                        heads.push(text(&client, piece));
                    }
                }
                piece = &piece[used..];
            }
        }
        assert_eq!(heads, [&interim[..], head], "in pieces of {size}");
    }
}

#[test]
fn head_and_trailer_fields_can_be_read() {
    let mut client = connected("GET");
    let head = b"HTTP/1.1 200 OK: fine\r\nA:b\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.handle_bytes(head, NOW);
    let fields: [(&[u8], &[u8]); 2] = [(b"A", b"b"), (b"Transfer-Encoding", b"chunked")];
    assert_eq!(client.fields(head).collect::<Vec<_>>(), fields);
    while client.poll_event().is_some() {}
    let trailers = b"0\r\nC: d\r\n\r\n";
    let used = client.handle_bytes(trailers, NOW);
    while client.poll_event().is_some() {}
    assert_eq!(used, 9, "the last chunk and the field");
    let fields: [(&[u8], &[u8]); 1] = [(b"C", b"d")];
    assert_eq!(client.fields(trailers).collect::<Vec<_>>(), fields);
}

#[test]
fn heads_are_released_with_the_next_input() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let next_inputs: [fn(&mut Http1); 3] =
        [|client| client.handle_skipped(1), Client::handle_eof, |client| assert_eq!(client.handle_bytes(b"a", NOW), 1)];
    for next_input in next_inputs {
        let mut client = connected("GET");
        client.handle_bytes(&head[..9], NOW);
        client.handle_bytes(&head[9..], NOW);
        assert_eq!(text(&client, &head[9..]), head);
        while client.poll_event().is_some() {}
        next_input(&mut client);
        assert_eq!(text(&client, b"a"), b"");
    }
}

#[test]
fn skippable_bytes_match_the_body_rest() {
    let mut client = connected("GET GET");
    let mut events = Vec::new();
    assert_eq!(client.may_skip(), 0);
    client.handle_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", NOW);
    take_events(&mut client, b"", &mut events);
    assert_eq!(client.may_skip(), 10);
    client.handle_bytes(b"abc", NOW);
    take_events(&mut client, b"abc", &mut events);
    assert_eq!(client.may_skip(), 7);
    client.handle_skipped(6);
    assert_eq!((client.poll_event(), client.may_skip()), (None, 1));
    client.handle_skipped(1);
    take_events(&mut client, b"", &mut events);
    assert_eq!(client.may_skip(), 0);
    assert_eq!(events, ["0 head 200", "0 data abc", "0 complete"]);
}

#[test]
fn chunk_data_is_skippable_but_not_framing() {
    let mut client = connected("GET");
    let mut events = Vec::new();
    for (bytes, skip) in [
        (&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], 0),
        (b"a;x\r\n", 10),
        (b"\r\n2\r\nh", 1),
        (b"\r\n0\r\n\r\n", 0),
    ] {
        client.handle_bytes(bytes, NOW);
        take_events(&mut client, bytes, &mut events);
        assert_eq!(client.may_skip(), skip);
        client.handle_skipped(skip);
    }
    assert_eq!(events, ["0 head 200", "0 data h", "0 complete"]);
}

#[test]
fn close_delimited_bodies_are_skippable_without_end() {
    let mut client = connected("GET");
    let mut events = Vec::new();
    client.handle_bytes(b"HTTP/1.1 200 OK\r\n\r\n", NOW);
    take_events(&mut client, b"", &mut events);
    assert_eq!(client.may_skip(), u64::MAX);
    client.handle_skipped(1 << 40);
    assert_eq!(client.may_skip(), u64::MAX);
    client.handle_eof();
    take_events(&mut client, b"", &mut events);
    assert_eq!(events, ["0 head 200", "0 complete", "draining"]);
}

#[test]
fn http1_has_no_timer() {
    assert_eq!(connected("GET").poll_timeout(), None);
}

#[test]
fn idle_connections_use_little_memory() {
    assert!(size_of::<Http1>() + size_of::<InFlight>() <= 320, "{} bytes", size_of::<Http1>());
}

#[test]
fn requests_are_batched_up_to_reported_progress() {
    let body = "x".repeat(9_000);
    let upload = format!("POST / HTTP/1.1\r\nContent-Length: 9000\r\n\r\n{body}");
    for (text, expected) in [("GET / HTTP/1.1\r\n\r\n".repeat(3), vec![54]), (upload.repeat(2), vec![upload.len(); 2])]
    {
        let bytes = text.as_bytes().into();
        let mut found = Vec::new();
        outline(text.as_bytes(), &mut found).unwrap();
        let mut client = Http1::new(3);
        for outline in found {
            client.start(&Request::from(Wire::from_outline(&bytes, outline)), false).unwrap();
        }
        let lengths: Vec<usize> =
            std::iter::from_fn(|| client.poll_transmit(NOW)).map(|transmit| transmit.bytes().len()).collect();
        assert_eq!(lengths, expected);
    }
}

#[test]
fn equal_requests_are_sent_as_one_slice() {
    let get = "GET / HTTP/1.1\r\n\r\n";
    let bytes = get.repeat(2_000).as_bytes().into();
    let mut found = Vec::new();
    outline(get.as_bytes(), &mut found).unwrap();
    let request = Request::from(Wire::from_outline(&bytes, found.remove(0)));
    let mut client = Http1::new(usize::MAX);
    let mut started = 0;
    while client.leaves_together(&request) {
        client.start(&request, false).unwrap();
        started += 1;
    }
    assert_eq!(started, JOINED_MAX / get.len());
    client.start(&request, false).unwrap();
    let texts: Vec<_> =
        std::iter::from_fn(|| client.poll_transmit(NOW)).map(|transmit| transmit.bytes().into_owned()).collect();
    assert_eq!(texts, [get.repeat(started).into_bytes(), get.as_bytes().to_vec()]);
}
