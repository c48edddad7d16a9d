//! Request bodies, and the windows they need.

use super::*;

/// A connection that has sent the HEADERS of requests with bodies of these lengths, to a server with these settings.
fn uploading(lengths: &[usize], set: &[(u16, u32)]) -> Http2 {
    let mut client = Scene { methods: "", is_greeted: false, ..Scene::new("") }.connected();
    feed(&mut client, &settings(set));
    sent(&mut client);
    for &length in lengths {
        client.start(&upload(length), false).unwrap();
    }
    client
}

fn upload(length: usize) -> Request {
    let body = (0..length).map(|index| index as u8).collect::<Vec<u8>>();
    Request::new(RequestParts {
        method: "PUT".into(),
        target: "/".into(),
        body: body.into(),
        ..RequestParts::default()
    })
}

/// The frames sent, without the fields of HEADERS.
fn sent_data(client: &mut Http2) -> Vec<String> {
    sent(client).into_iter().map(|frame| frame.split(" :method").next().unwrap().to_owned()).collect()
}

#[test]
fn bodies_are_sent_in_16_kib_frames() {
    let mut client = uploading(&[40_000], &[]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "DATA 1 16384", "DATA 1 16384", "DATA 1 7232 END_STREAM"]);
    assert!(client.streams.get(1).unwrap().message.is_none());
}

#[test]
fn uploaded_bytes_match_the_body() {
    let mut client = uploading(&[20_000], &[]);
    let mut bytes = Vec::new();
    while let Some(transmit) = client.poll_transmit(Nanos(0)) {
        bytes.extend_from_slice(&transmit.bytes());
    }
    let length = bytes.len();
    let last = &bytes[length - 3616..];
    let first = &bytes[length - 3616 - 9 - 16384..length - 3616 - 9];
    assert_eq!([first, last].concat(), upload(20_000).body());
}

#[test]
fn bodies_take_turns_after_all_heads() {
    let mut client = uploading(&[20_000, 100, 20_000], &[]);
    assert_eq!(
        sent_data(&mut client),
        [
            "HEADERS 1",
            "HEADERS 3",
            "HEADERS 5",
            "DATA 1 16384",
            "DATA 3 100 END_STREAM",
            "DATA 5 16384",
            "DATA 1 3616 END_STREAM",
            "DATA 5 3616 END_STREAM"
        ]
    );
}

#[test]
fn the_connection_window_limits_all_bodies() {
    let mut client = uploading(&[50_000, 50_000], &[]);
    let first: Vec<String> = sent_data(&mut client);
    let sent_bytes = |frames: &[String]| {
        let data = frames.iter().filter(|frame| frame.starts_with("DATA"));
        data.map(|frame| frame.split(' ').nth(2).unwrap().parse::<usize>().unwrap()).sum::<usize>()
    };
    assert_eq!(sent_bytes(&first), 65_535);
    assert_eq!(client.overdue_server_event(Some(StreamId(1))), Some(Error::NoWindow));
    feed(&mut client, &window(0, 10_000));
    assert_eq!(sent_bytes(&sent_data(&mut client)), 10_000);
    feed(&mut client, &window(0, 1 << 20));
    assert_eq!(sent_bytes(&sent_data(&mut client)), 100_000 - 75_535);
    assert_eq!(client.overdue_server_event(Some(StreamId(1))), None);
}

#[test]
fn stream_windows_limit_their_own_body() {
    let mut client = uploading(&[5000, 5000], &[(4, 3000)]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "HEADERS 3", "DATA 1 3000", "DATA 3 3000"]);
    feed(&mut client, &window(3, 5000));
    assert_eq!(sent_data(&mut client), ["DATA 3 2000 END_STREAM"]);
    feed(&mut client, &window(1, 2000));
    assert_eq!(sent_data(&mut client), ["DATA 1 2000 END_STREAM"]);
}

#[test]
fn initial_windows_may_become_negative() {
    let mut client = uploading(&[5000], &[(4, 3000)]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "DATA 1 3000"]);
    feed(&mut client, &settings(&[(4, 1000)]));
    assert_eq!(client.streams.get(1).unwrap().window, -2000);
    assert_eq!(sent_data(&mut client), ["SETTINGS ACK"]);
    feed(&mut client, &window(1, 2500));
    assert_eq!(sent_data(&mut client), ["DATA 1 500"]);
    feed(&mut client, &settings(&[(4, 10_000)]));
    assert_eq!(sent_data(&mut client), ["SETTINGS ACK", "DATA 1 1500 END_STREAM"]);
}

#[test]
fn small_windows_wait_for_growth_or_time() {
    let mut client = uploading(&[5000], &[(4, 3000)]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "DATA 1 3000"]);
    feed(&mut client, &window(1, 100));
    assert_eq!((sent_at(&mut client, Nanos(7)), client.poll_timeout()), (vec![], Some(Nanos(10_000_007))));
    feed(&mut client, &window(1, 1000));
    assert_eq!((sent_data(&mut client), client.poll_timeout()), (vec!["DATA 1 1100".to_owned()], None));
    feed(&mut client, &window(1, 1));
    assert_eq!((sent_at(&mut client, Nanos(9)), client.poll_timeout()), (vec![], Some(Nanos(10_000_009))));
    client.handle_timeout(Nanos(10_000_008));
    assert_eq!(sent_at(&mut client, Nanos(10_000_008)), [""; 0]);
    client.handle_timeout(Nanos(10_000_009));
    assert_eq!(sent_at(&mut client, Nanos(10_000_009)), ["DATA 1 1"]);
    assert_eq!(client.poll_timeout(), None);
    feed(&mut client, &window(1, 900));
    assert_eq!(sent_data(&mut client), ["DATA 1 899 END_STREAM"]);
}

#[test]
fn tiny_windows_do_not_stall() {
    let mut client = uploading(&[100], &[(4, 20)]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "DATA 1 20"]);
    feed(&mut client, &window(1, 9));
    assert_eq!(sent_data(&mut client), [""; 0]);
    feed(&mut client, &window(1, 1));
    assert_eq!(sent_data(&mut client), ["DATA 1 10"]);
    let mut client = uploading(&[3], &[(4, 1)]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "DATA 1 1"]);
    feed(&mut client, &window(1, 1));
    assert_eq!(sent_data(&mut client), ["DATA 1 1"]);
}

#[test]
fn waiting_for_windows_is_counted() {
    let shared = SharedContext::new(Http2Options { streams: 5, ..Http2Options::default() });
    let mut client = Http2::new(&shared);
    client.start(&upload(70_000), false).unwrap();
    sent_at(&mut client, Nanos(100));
    assert_eq!(client.overdue_server_event(None), Some(Error::NoSettings));
    feed(&mut client, &settings(&[]));
    sent_at(&mut client, Nanos(150));
    assert_eq!(shared.observations().window_blocked_ns, 0);
    feed(&mut client, &[window(0, 4000), window(1, 4000)].concat());
    sent_at(&mut client, Nanos(300));
    assert_eq!(shared.observations().window_blocked_ns, 200);
    sent_at(&mut client, Nanos(400));
    client.count_so_far(Nanos(450));
    assert_eq!(shared.observations().window_blocked_ns, 350);
    client.count_so_far(Nanos(500));
    assert_eq!(shared.observations().window_blocked_ns, 400, "it goes on");
}

#[test]
fn long_heads_use_continuation_frames() {
    let mut client = uploading(&[], &[]);
    // No letter of the text has a short code.
    let long = "\u{7}".repeat(100_000);
    let parts = RequestParts {
        method: "PUT".into(),
        target: "/".into(),
        headers: vec![("a".into(), long)],
        body: [0; 10].into(),
    };
    client.start(&request("GET"), false).unwrap();
    client.start(&Request::new(parts), false).unwrap();
    let first = client.poll_transmit(Nanos(0)).unwrap();
    client.handle_sent(first.bytes().len());
    assert_eq!(described(&first.bytes()).len(), 1);
    let second = client.poll_transmit(Nanos(0)).unwrap();
    let mut frames = described(&second.bytes());
    client.handle_sent(second.bytes().len());
    frames.extend(sent(&mut client));
    assert_eq!(frames[..2], ["HEADERS 3 16384", "CONTINUATION 3 16384"]);
    let is_end = |frame: &&String| frame.ends_with(" END_HEADERS");
    assert_eq!(frames.iter().filter(is_end).collect::<Vec<_>>(), [&frames[6]], "{frames:?}");
    assert_eq!(frames.last().unwrap(), "DATA 3 10 END_STREAM");
    assert_eq!(frames.len(), 8);
    assert_eq!(sent(&mut client), [""; 0]);
}

#[test]
fn reset_uploads_are_forgotten() {
    let mut client = uploading(&[70_000, 70_000], &[]);
    sent(&mut client);
    assert_eq!(heard(&mut client, &rst(1, Code::CANCEL)), ["1 failed: reset by the server (CANCEL)"]);
    feed(&mut client, &window(0, 100_000));
    assert!(sent(&mut client).iter().all(|frame| frame.starts_with("DATA 3 ")));
    client.cancel(StreamId(3));
    assert_eq!(sent(&mut client), ["RST_STREAM 3 CANCEL"]);
}

#[test]
fn small_windows_are_used_eventually() {
    let mut client = uploading(&[5000, 50_000], &[(4, 3000)]);
    assert_eq!(sent_data(&mut client), ["HEADERS 1", "HEADERS 3", "DATA 1 3000", "DATA 3 3000"]);
    feed(&mut client, &[window(1, 100), window(3, 4000)].concat());
    assert_eq!(sent_at(&mut client, Nanos(7)), ["DATA 3 4000"]);
    feed(&mut client, &window(3, 4000));
    assert_eq!(sent_at(&mut client, Nanos(9)), ["DATA 3 4000"]);
    assert_eq!(client.poll_timeout(), Some(Nanos(10_000_007)));
    client.handle_timeout(Nanos(10_000_007));
    assert_eq!((sent_data(&mut client), client.poll_timeout()), (vec!["DATA 1 100".to_owned()], None));
    // The window is forgotten with its stream.
    feed(&mut client, &[window(1, 100), window(3, 4000)].concat());
    assert_eq!(sent_at(&mut client, Nanos(10_000_010)), ["DATA 3 4000"]);
    client.cancel(StreamId(1));
    assert_eq!((sent_data(&mut client), client.poll_timeout()), (vec!["RST_STREAM 1 CANCEL".to_owned()], None));
}

#[test]
fn settings_change_the_window_once() {
    let mut client = uploading(&[5000], &[]);
    sent(&mut client);
    feed(&mut client, &window(1, 100_000));
    let left = 165_535 - 5000;
    client.start(&upload(70_000), false).unwrap();
    sent(&mut client);
    let before = client.streams.get(3).unwrap().window;
    let set = settings(&[(4, i32::MAX as u32), (4, 1000)]);
    feed(&mut client, &set[..15]);
    // A stream opened in between has the window that it would have had before.
    client.start(&upload(5000), false).unwrap();
    feed(&mut client, &set[15..]);
    assert!(client.streams.get(1).is_some_and(|stream| stream.window == left - 64_535));
    assert_eq!(client.streams.get(3).unwrap().window, before - 64_535);
    assert_eq!(client.streams.get(5).unwrap().window, 1000);
}

#[test]
fn abandoning_many_uploads_is_fast() {
    const MANY: usize = 100_000;
    for is_reset in [false, true] {
        let mut scene = Scene::new("");
        scene.options.streams = 2 * MANY as u32;
        let mut client = scene.connected();
        feed(&mut client, &settings(&[(4, 0)]));
        let post = request("POST");
        for _ in 0..MANY {
            client.start(&post, false).unwrap();
        }
        sent(&mut client);
        let last = 2 * MANY as u32 - 1;
        for number in (1..last).step_by(2) {
            match is_reset {
                true => assert_eq!(heard(&mut client, &rst(number, Code::CANCEL)).len(), 1),
                false => client.cancel(StreamId(number)),
            }
        }
        sent(&mut client);
        assert_eq!(client.overdue_server_event(Some(StreamId(last))), Some(Error::NoWindow));
        feed(&mut client, &window(last, 10_000));
        assert_eq!(sent(&mut client), [format!("DATA {last} 10000")]);
        client.cancel(StreamId(last));
        sent(&mut client);
        assert!(!client.sender.is_blocked());
    }
}

#[test]
fn cancelled_uploads_do_not_wait() {
    let mut client = uploading(&[70_000, 70_000, 70_000], &[]);
    sent(&mut client);
    client.cancel(StreamId(1));
    feed(&mut client, &[window(0, 1 << 20), window(3, 1 << 20), window(5, 1 << 20)].concat());
    let frames = sent_data(&mut client);
    assert_eq!(frames[0], "RST_STREAM 1 CANCEL");
    assert_eq!(frames.iter().filter(|frame| frame.ends_with("END_STREAM")).count(), 2, "{frames:?}");
    assert!(!client.sender.is_blocked() && client.poll_transmit(Nanos(0)).is_none());
}

#[test]
fn abandoned_uploads_do_not_accumulate() {
    let mut client = uploading(&[70_000], &[(4, 0)]);
    for number in (3..20_003).step_by(2) {
        client.start(&upload(10), false).unwrap();
        sent(&mut client);
        client.cancel(StreamId(number));
    }
    sent(&mut client);
    assert!(client.sender.heap() < 1024, "{}", client.sender.heap());
}

#[test]
fn replies_cost_the_same_however_many_uploads_wait() {
    let mut scene = Scene::new("");
    scene.options.streams = 100_000;
    let mut client = scene.connected();
    feed(&mut client, &settings(&[(4, 0)]));
    let post = request("POST");
    for _ in 0..100_000 {
        client.start(&post, false).unwrap();
    }
    sent(&mut client);
    for _ in 0..4000 {
        feed(&mut client, &frame(0, "", "PING", b"12345678"));
        assert_eq!(sent(&mut client), ["PING ACK 12345678"]);
        feed(&mut client, &settings(&[(4, 0)]));
        assert_eq!(sent(&mut client), ["SETTINGS ACK"]);
    }
    assert!(client.sender.is_blocked());
    feed(&mut client, &window(9, 70_000));
    assert_eq!(sent_data(&mut client).len(), 4);
}

#[test]
fn waiting_bodies_resume_when_windows_grow() {
    let mut client = uploading(&[65_000], &[]);
    sent(&mut client);
    client.start(&upload(5000), false).unwrap();
    assert_eq!((sent_data(&mut client), client.sender.is_blocked()), (vec!["HEADERS 3".to_owned()], true));
    feed(&mut client, &window(0, 10_000));
    assert_eq!(sent_data(&mut client), ["DATA 3 5000 END_STREAM"]);

    let mut client = uploading(&[5000], &[(4, 3000)]);
    sent(&mut client);
    client.start(&upload(100), false).unwrap();
    assert_eq!(sent_data(&mut client), ["HEADERS 3", "DATA 3 100 END_STREAM"]);
    assert!(client.sender.is_blocked());
    feed(&mut client, &window(1, 2000));
    assert_eq!(sent_data(&mut client), ["DATA 1 2000 END_STREAM"]);
}
