//! Servers that cause endless work.

use super::*;

const OK: &[(&str, &str)] = &[(":status", "200")];

/// Sends `input` until the connection fails, at most `times` times. Returns the number of inputs taken, and the events.
fn flood(client: &mut Http2, input: &[u8], times: usize, sends: bool) -> (usize, Vec<String>) {
    for time in 0..times {
        let events = heard(client, input);
        if sends {
            sent(client);
        }
        if client.life == Life::Over {
            return (time, events);
        }
    }
    (times, Vec::new())
}

#[test]
fn frames_without_progress_end_the_connection() {
    let failed = ["1 failed: 10,000 frames without progress (ENHANCE_YOUR_CALM)", "draining"];
    for input in [
        frame(0, "", "PING", b"12345678"),
        frame(0, "ACK", "PING", b"12345678"),
        settings(&[]),
        settings(&[(4, 1)]),
        window(0, 1),
        window(1, 1),
        frame(0, "", "unknown", b""),
        frame(1, "", "PRIORITY", b"12345"),
        headers(1, "", &[(":status", "100")]),
    ] {
        let mut client = Scene::new("GET").connected();
        let (times, events) = flood(&mut client, &input, 20_000, true);
        assert_eq!((times, &events[..]), (9999, &failed.map(String::from)[..]), "{:?}", described(&input));
    }
    for input in [data(1, "", b""), padded_data(1, "", 9, b"")] {
        let mut client = Scene::new("GET").connected();
        heard(&mut client, &headers(1, "", OK));
        assert_eq!(flood(&mut client, &input, 20_000, true), (10_000, failed.map(String::from).to_vec()));
    }
}

#[test]
fn progress_allows_any_number_of_frames() {
    let mut client = Scene::new("GET").connected();
    heard(&mut client, &headers(1, "", OK));
    let tiny = data(1, "", b"x");
    assert_eq!(flood(&mut client, &[&tiny[..], &window(0, 1)].concat(), 30_000, true).0, 10_000);

    let mut client = Scene::new("GET").connected();
    heard(&mut client, &headers(1, "", OK));
    assert_eq!(flood(&mut client, &data(1, "", b"xx"), 30_000, true).0, 30_000);
    let ping = frame(0, "", "PING", b"12345678");
    for number in (3..23).step_by(2) {
        assert_eq!(flood(&mut client, &ping, 4000, true).0, 4000);
        client.start(&request("GET"), false).unwrap();
        sent(&mut client);
        heard(&mut client, &headers(number, "END_STREAM", OK));
    }
}

#[test]
fn only_small_leftover_frames_are_floods() {
    for (length, times) in [(1024, 20_000), (1023, 10_000)] {
        let mut client = Scene::new("GET GET").connected();
        heard(&mut client, &headers(1, "", OK));
        client.cancel(StreamId(1));
        assert_eq!(flood(&mut client, &data(1, "", &vec![b'x'; length]), 20_000, true).0, times);
    }
}

#[test]
fn unread_replies_end_the_connection() {
    let failed = ["1 failed: replies requested but not read (ENHANCE_YOUR_CALM)", "draining"].map(String::from);
    for input in [frame(0, "", "PING", b"12345678"), settings(&[])] {
        let mut client = Scene::new("GET").connected();
        let (times, events) = flood(&mut client, &input, 10_000, false);
        assert_eq!((times, events), (251, failed.to_vec()));
        assert_eq!(sent(&mut client).last().unwrap(), "GOAWAY 0 ENHANCE_YOUR_CALM");
    }
}

#[test]
fn mass_cancellations_are_no_flood() {
    let mut scene = Scene::new("");
    scene.options.streams = 5000;
    let mut client = scene.connected();
    for _ in 0..5000 {
        client.start(&request("GET"), false).unwrap();
    }
    sent(&mut client);
    (1..10_000).step_by(2).for_each(|number| client.cancel(StreamId(number)));
    feed(&mut client, &frame(0, "", "PING", b"12345678"));
    assert_eq!(sent(&mut client).len(), 5001);
}

#[test]
fn endless_header_blocks_end_the_connection() {
    let begin = frame(1, "", "HEADERS", b"\x88");
    let failed = |breach: Breach| [format!("1 failed: {breach} (ENHANCE_YOUR_CALM)"), "draining".to_owned()];
    for (input, times_expected, breach) in [
        (frame(1, "", "CONTINUATION", b""), 127, Breach::BlockFrames),
        (frame(1, "", "CONTINUATION", b"\x88"), 127, Breach::BlockFrames),
        (frame(1, "", "CONTINUATION", &[0x88; 16_384]), 4, Breach::BlockTooLong),
    ] {
        let mut client = Scene::new("GET").connected();
        feed(&mut client, &begin);
        let (times, events) = flood(&mut client, &input, 1000, true);
        assert_eq!((times, events), (times_expected, failed(breach).to_vec()));
    }
    // A hundred thousand fields in few bytes.
    let many = [begin, frame(1, "END_HEADERS", "CONTINUATION", &[0x90; 16_384])].concat();
    check(
        "GET",
        many,
        &["1 failed: header block longer than 80 KiB (ENHANCE_YOUR_CALM)", "draining", "> GOAWAY 0 ENHANCE_YOUR_CALM"],
    );
}

#[test]
fn unfinished_header_blocks_share_a_budget() {
    let shared = SharedContext::new(Http2Options { blocks_max: 50_000, ..Http2Options::default() });
    let mut clients: Vec<Http2> = (0..10).map(|_| Http2::new(&shared)).collect();
    let mut failed = 0;
    for client in &mut clients {
        client.start(&request("GET"), false).unwrap();
        sent(client);
        feed(client, &settings(&[]));
        let events = heard(client, &frame(1, "", "HEADERS", &[0x88; 16_000]));
        failed += usize::from(!events.is_empty());
        assert!(events.is_empty() || events[0] == "1 failed: too many unfinished header blocks (ENHANCE_YOUR_CALM)");
    }
    assert_eq!((failed, shared.pool.borrow().blocks), (7, 48_000));
    // A small block is let through.
    let mut small = Http2::new(&shared);
    small.start(&request("GET"), false).unwrap();
    sent(&mut small);
    feed(&mut small, &settings(&[]));
    feed(&mut small, &frame(1, "", "HEADERS", &[0x88; 4000]));
    assert_eq!(shared.pool.borrow().blocks, 52_000);
    drop(small);
    let mut first = clients.remove(0);
    first.handle_eof();
    drop(clients);
    assert_eq!(shared.pool.borrow().blocks, 0);
}

#[test]
fn mass_resets_fail_only_requests() {
    let mut client = Scene::new("").connected();
    for _ in 0..PATIENCE + 1 {
        let StreamId(number) = client.start(&request("GET"), false).unwrap();
        sent(&mut client);
        assert_eq!(heard(&mut client, &rst(number, Code::CANCEL)).len(), 1);
    }
    assert_eq!(client.life, Life::Open);
}

#[test]
fn unread_window_updates_end_the_connection() {
    let mut scene = Scene::new("GET");
    scene.options.window = 1;
    scene.options.wants_body = false;
    let mut client = scene.connected();
    heard(&mut client, &headers(1, "", &[(":status", "200")]));
    let (times, events) = flood(&mut client, &data(1, "", b"x"), 10_000, false);
    assert!((250..500).contains(&times), "{times}");
    assert_eq!(events, ["1 failed: replies requested but not read (ENHANCE_YOUR_CALM)", "draining"]);
}
