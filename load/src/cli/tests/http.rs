//! Options on HTTP versions.

use std::ffi::OsString;

use onrush_plan::http::{Http2Settings, HttpVersion};

use super::{Invocation, Plan, parsed, printed, run, words};

#[test]
fn http11_is_the_default() {
    let versions = |line: &str| run(line).http.versions;
    for (line, expected) in [
        ("onrush h", vec![HttpVersion::Http11]),
        ("onrush --http1.1 https://h", vec![HttpVersion::Http11]),
        ("onrush --http2 h", vec![HttpVersion::Http2]),
        ("onrush --http2 --http2-prior-knowledge https://h", vec![HttpVersion::Http2]),
        ("onrush --alpn-list h2,http/1.1 https://h", vec![HttpVersion::Http2, HttpVersion::Http11]),
        ("onrush --alpn-list h2 http://h", vec![HttpVersion::Http2]),
        ("onrush --alpn-list http2 http://h", vec![HttpVersion::Http2]),
        ("onrush --alpn-list http1.1,http2 https://h", vec![HttpVersion::Http11, HttpVersion::Http2]),
    ] {
        assert_eq!(versions(line), expected, "{line}");
    }
    let alpn = |line: &str| run(line).tls.unwrap().alpn;
    assert_eq!(alpn("onrush --http2 https://h"), [HttpVersion::Http2]);
    assert_eq!(alpn("onrush https://h"), [HttpVersion::Http11]);
}

#[test]
fn http2_settings_follow_the_options() {
    let line =
        "onrush --http2 --streams 100 --h2-window 64k --h2-connection-window 1MiB --h2-max-frame 16KiB --h2-table 0 h";
    let Plan { http, .. } = run(line);
    let settings = Http2Settings {
        window: Some(64_000),
        connection_window: Some(1 << 20),
        frame_max: Some(1 << 14),
        table: Some(0),
    };
    assert_eq!((http.streams, http.settings), (Some(100), settings));
    assert_eq!(run("onrush --http2 --streams 4 --requests-per-connection 4 h").http.streams, Some(4));
}

#[test]
fn impossible_http_options_are_refused_with_remedies() {
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
        ("--alpn-list h2,http2 https://h", "--alpn-list \"h2,http2\": h2 is there twice"),
        (
            "--http2 --h2-connection-window 20 h",
            "--h2-connection-window \"20\": write 65535 to 2147483647 bytes; h2load's 20 is 1MiB",
        ),
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
        ("--http2 -m32 h", "for h2load --streams, for instance --http2 --streams 32"),
        ("--compat wrk --http2 http://h", "--http2: wrk speaks HTTP/1.1 only; leave it out"),
        ("--compat wrk2 -R9 --streams 2 http://h", "--streams: wrk2 speaks HTTP/1.1 only; leave it out"),
    ] {
        let (_, stderr, exit) = printed(&format!("onrush {line}"));
        assert!(stderr.contains(expected) && exit == 1, "{line}: {stderr}");
    }
}

#[test]
fn h2load_style_values_get_a_note() {
    let warned = |line: &str| match parsed(&words(line), false) {
        Invocation::Run { warnings, .. } => warnings,
        other => panic!("{line}: {other:?}"),
    };
    let exponent = |bits: &str, bytes: &str, meant: &str| {
        format!("onrush: --h2-window {bits} is {bytes}; if you mean 2^{bits} bytes, as with h2load, write {meant}")
    };
    let duration = "onrush: -D 1s is the warm-up, as in wrk-cmm; if you mean h2load's -D, write -d 1s";
    for (line, expected) in [
        ("--http2 --h2-window 16 h", Some(exponent("16", "16 bytes", "64KiB"))),
        ("--http2 --h2-window 1 h", Some(exponent("1", "1 byte", "2"))),
        ("--http2 --h2-window 30 h", Some(exponent("30", "30 bytes", "1024MiB"))),
        ("--http2 --h2-window 31 h", None),
        ("--http2 -D 1s h", Some(duration.to_owned())),
        ("--alpn-list h2,http/1.1 -D1 https://h", Some(duration.to_owned())),
        ("--http2 -D 1s -d 5s h", None),
        ("--http2 --warmup 1s h", None),
        ("-D 1s h", None),
    ] {
        assert_eq!(warned(&format!("onrush {line}")), Vec::from_iter(expected), "{line}");
    }
    let Invocation::Run { plan, .. } = parsed(&words("onrush --http2 -D 1s --h2-window 16 h"), false) else {
        panic!("it is a run")
    };
    assert_eq!((plan.warmup.as_secs(), plan.http.settings.window), (1, Some(16)));
}

#[test]
fn changed_http2_hosts_get_a_note() {
    let warned = |line: &[&str]| {
        let line: Vec<_> = ["onrush"].iter().chain(line).map(OsString::from).collect();
        match parsed(&line, false) {
            Invocation::Run { warnings, .. } => warnings.concat(),
            other => panic!("{line:?}: {other:?}"),
        }
    };
    let empty = "onrush: 'Host:' is left out with HTTP/2, and :authority with it, which servers may refuse with 400 or \
                 PROTOCOL_ERROR";
    assert_eq!(warned(&["--http2", "-H", "Host:", "h"]), empty);
    let second = "onrush: 'host: b' is left out with HTTP/2, which has one host; 'Host: a' is sent as :authority";
    assert_eq!(warned(&["--http2", "-H", "Host: a", "-H", "host: b", "h"]), second);
    let te = "onrush: 'TE: gzip' is left out with HTTP/2, which has no such header";
    assert_eq!(warned(&["--http2", "-H", "TE: gzip", "-H", "Host: a", "h"]), te);
    for line in [
        &["-H", "Host:", "h"][..],
        &["--http2", "-H", "te: trailers", "h"],
        &["--http2", "-X", "CONNECT", "-H", "Host:", "h"],
    ] {
        assert_eq!(warned(line), "", "{line:?}");
    }
}
