//! Runs against paths of the embedded target with a known limit, and other clients of the target.

use std::process::Command;
use std::time::Duration;

use onrush_serve::{EmbeddedServer, ServeConfig};

use crate::harness::{Context, Scratch, cases, fetch_target_counts, target, url};
use crate::results::{document, number};

cases! {
    pools_are_limited_by_their_workers;
    few_processes_leave_connections_hanging;
    closing_connections_share_few_processes;
    curl_uses_http2_during_runs needs "curl --http2-prior-knowledge --version";
    tls_targets_speak_both_protocols needs "curl --http2-prior-knowledge --version";
}

/// Four workers that take 5 ms each: at most 800 requests per second, in any order.
fn pools_are_limited_by_their_workers(context: &Context) {
    let server =
        EmbeddedServer::start(&ServeConfig { address: "127.0.0.1:0".parse().unwrap(), threads: 2, tls: false })
            .unwrap();
    let onrush = context.onrush().words("-t2 -c16 -d500ms").word(url(&server, "/pool?workers=4&ms=5"));
    let (output, document) = document(onrush, &Scratch::new("pool"));
    let requests = output.requests();
    // The measured time may slightly exceed half a second.
    let most = 4.0 * (number(&document, "/duration_s") / 0.005 + 1.0);
    assert!(requests >= 16 && requests as f64 <= most, "{requests} of {most}: {output:?}");
    assert!(number(&document, "/latency/service/min_us") >= 5_000.0, "{output:?}");
}

/// Four of 16 connections are served, 5 ms each: the other twelve never get a response.
fn few_processes_leave_connections_hanging(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-t2 -c16 -d500ms").word(url(&server, "/prefork?serves=4&ms=5"));
    let (output, document) = document(onrush, &Scratch::new("prefork"));
    let open = number(&document, "/requests/open");
    assert!(output.requests() >= 4 && (12.0..=16.0).contains(&open), "{open}: {output:?}");
}

/// Each connection is closed after one request, to give the next one its turn.
fn closing_connections_share_few_processes(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-t1 -c8 -n80 --requests-per-connection 1");
    let output = onrush.word(url(&server, "/prefork?serves=2&ms=1")).run();
    assert_eq!((output.code, output.requests()), (0, 80), "{output:?}");
    assert!(output.took >= Duration::from_millis(40), "80 requests, two at a time: {output:?}");
}

/// Both clients are counted together.
fn curl_uses_http2_during_runs(context: &Context) {
    let server = target();
    let output = context.onrush().words("-t1 -c2 -n100").word(url(&server, "/")).run();
    assert_eq!((output.code, output.requests()), (0, 100), "{output:?}");
    for (path, expected) in [
        ("/", "Hello, World! 2 200"),
        ("/bytes/3", "xxx 2 200"),
        ("/status/404", "404\n 2 404"),
        ("/chunked/5", "xxxxx 2 200"),
        ("/delay/5", "Hello, World! 2 200"),
    ] {
        // One connection each: curl 7.88 cannot use one twice (https://github.com/curl/curl/issues/10634).
        assert_eq!(curl("--http2-prior-knowledge", url(&server, path)), expected, "{path}");
    }
    assert_eq!(fetch_target_counts(server.address()).requests, 105);
}

/// ALPN decides: onrush chooses HTTP/1.1, curl chooses HTTP/2.
fn tls_targets_speak_both_protocols(context: &Context) {
    let server =
        EmbeddedServer::start(&ServeConfig { address: "127.0.0.1:0".parse().unwrap(), threads: 1, tls: true }).unwrap();
    let url = |path| format!("https://{}{path}", server.address());
    let output = context.onrush().words("-t1 -c2 -n100 -k").word(url("/bytes/100000")).run();
    assert_eq!((output.code, output.requests()), (0, 100), "{output:?}");
    assert_eq!(curl("--http2", url("/bytes/3")), "xxx 2 200");
    assert_eq!(curl("--http1.1", url("/bytes/3")), "xxx 1.1 200");
    assert_eq!(curl("--http2", url("/stats")), "{\"connections\": 5, \"requests\": 102}\n 2 200");
}

/// The version and status of a response, as printed by curl.
fn curl(version: &str, url: String) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-k", "--max-time", "20", version, "-w", " %{http_version} %{response_code}"]);
    let output = curl.arg(url).output().expect("curl runs");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
