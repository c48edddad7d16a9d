//! Options about versions of HTTP.

use onrush_plan::http::{Settings, Version};

use super::{Plan, printed, run};

#[test]
fn http_1_1_is_spoken_unless_something_else_is_asked_for() {
    let versions = |line: &str| run(line).http.versions;
    for (line, expected) in [
        ("onrush h", vec![Version::Http11]),
        ("onrush --http1.1 https://h", vec![Version::Http11]),
        ("onrush --http2 h", vec![Version::Http2]),
        ("onrush --http2 --http2-prior-knowledge https://h", vec![Version::Http2]),
        ("onrush --alpn-list h2,http/1.1 https://h", vec![Version::Http2, Version::Http11]),
        ("onrush --alpn-list h2 http://h", vec![Version::Http2]),
    ] {
        assert_eq!(versions(line), expected, "{line}");
    }
    let alpn = |line: &str| run(line).tls.unwrap().alpn;
    assert_eq!(alpn("onrush --http2 https://h"), [Version::Http2]);
    assert_eq!(alpn("onrush https://h"), [Version::Http11]);
}

#[test]
fn connections_of_http2_are_told_what_was_asked_for() {
    let line =
        "onrush --http2 --streams 100 --h2-window 64k --h2-connection-window 1MiB --h2-max-frame 16KiB --h2-table 0 h";
    let Plan { http, .. } = run(line);
    let settings =
        Settings { window: Some(64_000), connection_window: Some(1 << 20), frame_max: Some(1 << 14), table: Some(0) };
    assert_eq!((http.streams, http.settings), (Some(100), settings));
    assert_eq!(run("onrush --http2 --streams 4 --requests-per-connection 4 h").http.streams, Some(4));
}

#[test]
fn what_cannot_be_is_refused_with_a_way_out() {
    for (line, expected) in [
        ("--streams 8 h", "--streams is for HTTP/2; add --http2, or leave out --streams"),
        (
            "--http1.1 --h2-table 0 h",
            "--h2-table is for HTTP/2; write --http2 instead of --http1.1, or leave out --h2-table",
        ),
        (
            "--alpn-list http/1.1 --streams 2 https://h",
            "--streams is for HTTP/2; add h2 to --alpn-list, or leave out --streams",
        ),
        (
            "--alpn-list http/1.1 --streams 2 h",
            "--streams is for HTTP/2; write --http2 instead of --alpn-list, or leave out --streams",
        ),
        (
            "--http1.1 --alpn-list http/1.1 --streams 2 h",
            "--streams is for HTTP/2; write --http2 instead of --http1.1 and --alpn-list, or leave out --streams",
        ),
        ("--http2 --streams 0 h", "--streams \"0\": must be at least 1"),
        ("--http2 --http1.1 h", "--http2 and --http1.1 ask for different versions; leave one of the two out"),
        (
            "--alpn-list h2,http/1.1 h",
            "--alpn-list: without TLS the server cannot choose; write --http2 or --http1.1, or https://",
        ),
        ("--alpn-list h3 https://h", "--alpn-list \"h3\": unknown; write h2,http/1.1"),
        ("--alpn-list h2,h2 https://h", "--alpn-list \"h2,h2\": h2 is there twice"),
        ("--alpn-list , https://h", "--alpn-list \",\": an empty list; write h2,http/1.1"),
        (
            "--http2 --h2-max-frame 16k h",
            "--h2-max-frame \"16k\": write 16384 to 16777215 bytes; 16k is 16000, and 16KiB is 16384",
        ),
        (
            "--http2 --h2-max-frame 16K h",
            "--h2-max-frame \"16K\": write 16384 to 16777215 bytes; 16k is 16000, and 16KiB is 16384",
        ),
        (
            "--http2 --h2-max-frame 16KB h",
            "--h2-max-frame \"16KB\": write 16384 to 16777215 bytes; 16k is 16000, and 16KiB is 16384",
        ),
        (
            "--http2 --h2-window 1.5mb h",
            "--h2-window \"1.5mb\": write 1 to 2147483647 bytes; 1.5M is 1500000, and 1.5MiB is 1572864",
        ),
        ("--http2 --h2-window -1k h", "--h2-window \"-1k\": write 1 to 2147483647 bytes; k, M, KiB and MiB are units"),
        (
            "--http2 --h2-window 2GiB h",
            "--h2-window \"2GiB\": write 1 to 2147483647 bytes; k, M, KiB and MiB are units",
        ),
        (
            "--http2 --streams 16 --disable-keepalive h",
            "--streams 16: a connection ends after 1 request (--disable-keepalive), so that no more are ever in flight on \
             it; leave one of the two out",
        ),
        (
            "--alpn-list h2,http/1.1 --streams 5 --requests-per-connection 4 https://h",
            "--streams 5: a connection ends after 4 requests (--requests-per-connection), so that no more are ever in \
             flight on it; leave one of the two out",
        ),
        ("--http2 -m32 h", "-m: onrush spells this --streams, for instance --http2 --streams 32"),
        ("--compat wrk --http2 http://h", "--http2: wrk speaks HTTP/1.1 only; leave it out"),
        ("--compat wrk2 -R9 --streams 2 http://h", "--streams: wrk2 speaks HTTP/1.1 only; leave it out"),
    ] {
        let (_, stderr, exit) = printed(&format!("onrush {line}"));
        assert!(stderr.contains(expected) && exit == 1, "{line}: {stderr}");
    }
}
