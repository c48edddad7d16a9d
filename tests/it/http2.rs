//! Real HTTP/2 servers: nginx, nghttpd, Apache and Node. Each of them counts or returns the requests it receives, in
//! its own way.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases, target};
use crate::http2_peers::{STREAMS, failures, frame, number, run, settings};
use crate::peers::server;
use crate::servers::{LoggingServer, assert_no_errors};
use crate::tls::NGINX_PAIR;
use crate::tls_peers::{self_signed, write};
use crate::tls_processes::Process;

cases! {
    nginx_connection_limits_cause_no_error needs "nginx";
    nginx_early_goaways_cause_no_error needs "nginx";
    nginx_gets_every_method needs "nginx";
    bodies_arrive_whole_at_nginx needs "nginx";
    nginx_responds_before_body_arrival needs "nginx";
    protocol_choice_of_nginx_is_reported needs "nginx";
    servers_without_http2_are_named needs "nginx", "openssl";
    http2_only_servers_are_named;
    http2_rates_are_held needs "nginx";
    connections_end_promptly_after_their_requests needs "nginx";
    script_batches_are_in_flight_together needs "nginx";
    frames_and_response_are_shown needs "nginx";
    frames_of_failed_exchanges_are_shown;
    nghttpd_allows_fewer_streams needs "nghttpd";
    nghttpd_pads_and_adds_trailers needs "nghttpd";
    nghttpd_returns_bodies_whole needs "nghttpd";
    nghttpd_responds_before_body_arrival needs "nghttpd";
    apache_log_matches_counts needs "apache2";
    node_sends_hints_and_trailers needs "node";
    node_trailers_report_failed_calls needs "node";
}

/// Length of a large body, in bytes.
const LARGE: usize = 1 << 20;
/// nginx's response at `/hello`.
const HELLO: &str = "Hello, World!";

fn nginx_connection_limits_cause_no_error(context: &Context) {
    for tls in [false, true] {
        let nginx = nginx(tls, "");
        let (output, result) = run(context
            .onrush()
            .words("-t1 -c1 -n2500 --http2 --streams 10")
            .words(if tls { "-k" } else { "" })
            .word(nginx_url(&nginx, tls, "/hello")));
        assert_complete(&output, 2500);
        assert_eq!(number(&result["connections"]["opened"]), 3, "{result}");
        let http2 = &result["http2"];
        assert_eq!(number(&http2["connections"]), 3, "{http2}");
        assert_eq!(http2["goaway_received"], json!({ "NO_ERROR": 2 }), "{http2}");
        assert_eq!((number(&http2["streams_peak"]), number(&http2["streams_allowed"])), (10, 128), "{http2}");
        assert_eq!(number(&result["status"]["200"]), 2500, "{result}");
        let log = nginx.log();
        assert_eq!(log.len(), 2500);
        assert!(log.iter().all(|line| line.contains("\"GET /hello HTTP/2.0\" 200 13 ")), "{}", log[0]);
    }
}

/// nginx accepts ten requests per connection, and announces this before it answers the first one.
fn nginx_early_goaways_cause_no_error(context: &Context) {
    let upstream = target();
    let proxied = format!("keepalive_requests 10;\nlocation /delay {{ proxy_pass http://{}; }}", upstream.address());
    let nginx = nginx(false, &proxied);
    let words = "-t1 -c2 -n300 --http2 --streams 32";
    let (output, _) = run(context.onrush().words(words).word(nginx_url(&nginx, false, "/delay/5")));
    assert_complete(&output, 300);
}

fn nginx_gets_every_method(context: &Context) {
    let nginx = nginx(false, "location /none { return 204; }");
    for (method, path, status, bytes) in [
        ("GET", "/hello", 200, 13),
        ("HEAD", "/hello", 200, 0),
        ("POST", "/hello", 200, 13),
        ("PUT", "/hello", 200, 13),
        ("DELETE", "/hello", 200, 13),
        ("GET", "/none", 204, 0),
        ("HEAD", "/file.bin", 200, 0),
        ("GET", "/file.bin", 200, 100_000),
    ] {
        let words = format!("-t2 -c2 -n20 --http2 --streams 4 -X {method}");
        let (output, result) = run(context.onrush().words(&words).word(nginx.url(path)));
        assert_complete(&output, 20);
        assert_eq!(result["status"], json!({ status.to_string(): 20 }), "{method} {path}: {result}");
        // The remaining bytes are headers.
        let received = number(&result["bytes_received"]);
        assert!((20 * bytes..20 * (bytes + 300)).contains(&received), "{method} {path}: {received}");
    }
    let log = nginx.log();
    assert_eq!(log.len(), 160);
    for method in ["PUT", "POST", "DELETE"] {
        let line = format!("\"{method} /hello HTTP/2.0\" 200 ");
        assert_eq!(log.iter().filter(|logged| logged.contains(&line)).count(), 20, "{line}");
    }
}

fn bodies_arrive_whole_at_nginx(context: &Context) {
    for tls in [false, true] {
        let nginx = nginx(tls, "location /dav/ { dav_methods PUT DELETE; }\nclient_max_body_size 2m;");
        fs::create_dir(nginx.directory().join("dav")).expect("a directory can be made");
        let (scratch, body) = (Scratch::new("http2-body"), body());
        let at_file = format!("@{}", scratch.file("body", &body).display());
        let onrush = |words: &str| context.onrush().words(if tls { "-k" } else { "" }).words(words);
        let url = nginx_url(&nginx, tls, "/dav/body");
        let put = onrush("-t1 -c2 -n12 --http2 --streams 3 -X PUT --body").word(&at_file).word(&url);
        let (output, result) = run(put);
        assert_complete(&output, 12);
        assert!(number(&result["bytes_sent"]) > 12 * LARGE as u64, "{result}");
        let statuses = number(&result["status"]["204"]) + result["status"]["201"].as_u64().unwrap_or(0);
        assert_eq!(statuses, 12, "{result}");
        assert!(fs::read(nginx.directory().join("dav/body")).is_ok_and(|arrived| arrived == body));
        let (output, _) = run(onrush("-t1 -c1 -n1 --http2 -X DELETE").word(&url));
        assert_complete(&output, 1);
        assert_eq!(nginx.log().len(), 13);
    }
}

/// nginx discards the body, and may reset the stream during the upload.
fn nginx_responds_before_body_arrival(context: &Context) {
    let (nginx, scratch) = (nginx(false, "client_max_body_size 2m;"), Scratch::new("http2-body"));
    let body = format!("@{}", scratch.file("body", body()).display());
    let onrush = context.onrush().words("-t1 -c1 -n20 --http2 --streams 4 -X POST --body").word(body);
    let (output, _) = run(onrush.word(nginx.url("/hello")));
    assert_complete(&output, 20);
    assert_eq!(nginx.log().len(), 20);
}

fn protocol_choice_of_nginx_is_reported(context: &Context) {
    for (http2, protocol, chosen) in [(" http2", "h2", "HTTP/2"), ("", "http/1.1", "HTTP/1.1")] {
        let nginx = LoggingServer::nginx_with(&format!(" ssl{http2}"), NGINX_PAIR, |directory| {
            write(&self_signed(&["localhost"]), directory);
        });
        let words = "-k -t1 -c2 -n40 --alpn-list h2,http/1.1 --streams 4";
        let (output, result) = run(context.onrush().words(words).word(nginx_url(&nginx, true, "/hello")));
        assert_complete(&output, 40);
        output.note(&format!("of h2 and http/1.1, {chosen} was used on "));
        let agreed = &result["tls"]["negotiated"][0];
        assert_eq!(agreed["protocol"].as_str().unwrap_or("http/1.1"), protocol, "{agreed}");
        let log = nginx.log();
        let version = format!(" {}\" 200 ", if protocol == "h2" { "HTTP/2.0" } else { "HTTP/1.1" });
        assert_eq!(log.iter().filter(|line| line.contains(&version)).count(), 40, "{log:?}");
    }
}

fn servers_without_http2_are_named(context: &Context) {
    let pair = self_signed(&["localhost"]);
    let nginx = LoggingServer::nginx_with(" ssl", NGINX_PAIR, |directory| write(&pair, directory));
    let openssl = Process::openssl(&pair, &["-www"]);
    for (url, expected) in [
        (
            nginx_url(&nginx, true, "/hello"),
            "TLS alert no application protocol (120) from the server; the server does not speak HTTP/2: leave out --http2 and \
             options such as --streams, or write --alpn-list h2,http/1.1",
        ),
        (
            openssl.url(),
            "the server chose none of the offered protocols (ALPN); the server does not speak HTTP/2: leave out --http2 \
             and options such as --streams, or write --alpn-list h2,http/1.1",
        ),
    ] {
        let output = context.onrush().words("-k -c2 -n10 --http2").word(&url).run();
        assert!(output.code == 2 && output.stderr.contains(expected), "{url}: {output:?}");
    }
    // In plain text, nothing is negotiated.
    let plain = LoggingServer::nginx(1000);
    let (output, result) = run(context.onrush().words("-t1 -c2 -n4 --http2").word(plain.url("/hello")));
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    // A connection may be reopened before the run ends.
    assert!(failures(&result, "answered in HTTP/1.1") >= 4, "{result}");
    let said = "; leave out --http2, or write https:// if the port speaks TLS";
    assert!(output.note("answered in HTTP/1.1").ends_with(said), "{output:?}");
    // Some servers claim HTTP/2 support.
    let address = server(|mut stream| {
        stream.read_exact(&mut [0; 24])?;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent to HTTPS port")?;
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let output = context.onrush().words("-t1 -c2 -n4 --http2").word(format!("http://{address}/")).run();
    let said = "; the server expects TLS at this port; write https://";
    assert!(output.note("answered in HTTP/1.1").ends_with(said), "{output:?}");
    // Others do not speak HTTP at all.
    let address = server(|mut stream| {
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n")?;
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let output = context.onrush().words("-t1 -c2 -n4 --http2").word(format!("http://{address}/")).run();
    assert!(output.note("not an HTTP response").ends_with("; does the port speak HTTP?"), "{output:?}");
    let output = context.onrush().words("--once --http2").word(format!("https://{address}/")).run();
    let said = "responds in plain text: SSH-2.0-OpenSSH_9.2; does the port speak HTTPS?";
    assert!(output.code == 2 && output.note(said).starts_with("onrush: TLS handshake with "), "{output:?}");
}

fn http2_only_servers_are_named(context: &Context) {
    let address = server(|stream| {
        // The client speaks HTTP/1.1 and sends no preface, but this server does not check.
        (&stream).write_all(&settings(&[(STREAMS, 100)]))?;
        io::copy(&mut &stream, &mut io::sink()).map(drop)
    });
    let (output, result) = run(context.onrush().words("-t1 -c2 -n4").word(format!("http://{address}/")));
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    assert_eq!(failures(&result, "not an HTTP response"), 4, "{result}");
    assert!(output.note("not an HTTP response").ends_with("the server speaks HTTP/2: add --http2"), "{output:?}");
    for (words, said) in
        [("", "; the server speaks HTTP/2 without TLS: write http://, and add --http2"), ("--http2", ": write http://")]
    {
        let output = context.onrush().words("--once -k").words(words).word(format!("https://{address}/")).run();
        assert!(output.code == 2 && output.note("TLS handshake with ").ends_with(said), "{output:?}");
    }
}

fn http2_rates_are_held(context: &Context) {
    let nginx = nginx(false, "");
    let words = "-t1 -c2 -R500 -d1s --http2 --streams 8";
    let (output, result) = run(context.onrush().words(words).word(nginx.url("/hello")));
    assert_eq!(output.code, 0, "{output:?}");
    assert_no_errors(&output);
    let requests = &result["requests"];
    assert_eq!(number(&requests["due"]), 500, "{requests}");
    assert!((450..=500).contains(&number(&requests["completed"])), "{requests}");
    let logged = nginx.log().len() as u64;
    assert!((number(&requests["completed"])..=number(&requests["started"])).contains(&logged), "{requests}, {logged}");
}

fn connections_end_promptly_after_their_requests(context: &Context) {
    for (words, requests, each) in [
        ("-t1 -c2 -n200 --requests-per-connection 10 --streams 4", 200, 10),
        ("-t1 -c2 -n40 --disable-keepalive", 40, 1),
    ] {
        for tls in [false, true] {
            let nginx = nginx(tls, "");
            let url = nginx_url(&nginx, tls, "/hello");
            let onrush = context.onrush().words("--http2").words(words).words(if tls { "-k" } else { "" });
            let (output, result) = run(onrush.word(url));
            assert_complete(&output, requests);
            let opened = number(&result["connections"]["opened"]);
            assert!((requests / each..=requests / each + 2).contains(&opened), "{result}");
            assert!(result["http2"]["goaway_sent"]["NO_ERROR"].as_u64() >= Some(requests / each - 2), "{result}");
            // A second per connection would be at least 10 s.
            assert!(output.took < Duration::from_secs(8), "{output:?}");
            assert_eq!(nginx.log().len() as u64, requests);
        }
    }
}

fn script_batches_are_in_flight_together(context: &Context) {
    let nginx = nginx(false, "location /none { return 204; }");
    let script = r#"
        local batch
        function init()
          batch = wrk.format("GET", "/hello") .. wrk.format("POST", "/hello", nil, "one=1") .. wrk.format("GET", "/none")
        end
        function request() return batch end
        function response(status, headers, body)
          local is_hello = status == 200 and body == "Hello, World!" and headers["content-type"] == "text/plain"
          local is_none = status == 204 and body == ""
          if not (is_hello or is_none) or headers["server"] == nil then
            error("wrong: " .. status .. ", " .. body)
          end
        end
    "#;
    let (output, result) = run(context.onrush().words("-t1 -c2 -n60 --http2").lua(script).word(nginx.url("/")));
    assert_complete(&output, 60);
    assert_eq!(number(&result["http2"]["streams_peak"]), 3, "{result}");
    assert_eq!(result["status"], json!({ "200": 40, "204": 20 }));
    let log = nginx.log();
    assert_eq!(log.iter().filter(|line| line.contains("\"POST /hello HTTP/2.0\" 200 ")).count(), 20, "{log:?}");
}

fn frames_and_response_are_shown(context: &Context) {
    let nginx = nginx(false, "");
    let onrush = context.onrush().words("--once --http2 --body abc -H A:b -H X-Api-Key:c").word(nginx.url("/hello"));
    let output = onrush.run();
    assert_eq!(output.code, 0, "{output:?}");
    let mut rest = &output.stdout[..];
    for line in [
        "> SETTINGS ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 1073741823, MAX_HEADER_LIST_SIZE 81920\n",
        "> WINDOW_UPDATE of the connection by 1073676288\n",
        "> HEADERS of stream 1\n> :method: POST\n",
        &format!("> :authority: {}\n", nginx.address()),
        "> a: b\n",
        "> x-api-key: REDACTED\n",
        ">\n> DATA of stream 1, 3 bytes, END_STREAM\n> abc\n",
        "< SETTINGS MAX_CONCURRENT_STREAMS 128, INITIAL_WINDOW_SIZE ",
        "< HEADERS of stream 1\n< :status: 200\n",
        "< content-type: text/plain\n",
        "< content-length: 13\n",
        "\n< DATA of stream 1, 13 bytes, END_STREAM\n",
        &format!("\n\n{HELLO}\n"),
        "connect ",
    ] {
        let at = rest.find(line).unwrap_or_else(|| panic!("no {line:?} in its place in\n{}", output.stdout));
        rest = &rest[at..];
    }
    assert_eq!(output.stdout.matches("\n< SETTINGS, ACK\n").count(), 1, "{output:?}");
    assert_eq!(nginx.log().len(), 1);
    // However many frames a body consists of, they are shown as one line, unless something is sent in between. Frames
    // are shown over TLS, too.
    let nginx = self::nginx(true, "");
    let output = context.onrush().words("--once -k --http2").word(nginx_url(&nginx, true, "/file.bin")).run();
    let lines: Vec<_> = output.stdout.lines().collect();
    let bytes_of = |line: &&str| -> Option<u64> {
        let (bytes, _) = line.strip_prefix("< DATA of stream 1, ")?.split_once(" bytes in ")?;
        Some(bytes.replace(',', "").parse().expect("a number"))
    };
    assert_eq!(lines.iter().filter_map(bytes_of).sum::<u64>(), 100_000, "{output:?}");
    let follow = |pair: &[&str]| pair.iter().all(|line| bytes_of(line).is_some());
    assert!(!lines.windows(2).any(follow), "{output:?}");
}

fn frames_of_failed_exchanges_are_shown(context: &Context) {
    let address = server(|mut stream| {
        stream.read_exact(&mut [0; 24])?;
        let reason = b"too much\n> \x1b[31mred\xff";
        let goaway = [&[0, 0, 0, 1, 0, 0, 0, 11][..], reason].concat();
        let pings = frame(6, 0, 0, &[0; 8]).repeat(150);
        stream.write_all(&[settings(&[(STREAMS, 100)]), frame(7, 0, 0, &goaway), pings].concat())?;
        stream.shutdown(std::net::Shutdown::Write)?;
        io::copy(&mut stream, &mut io::sink()).map(drop)
    });
    let output = context.onrush().words("--once --http2").word(format!("http://{address}/")).run();
    assert_eq!(output.code, 5, "{output:?}");
    let reason = r#""too much\x0a> \x1b[31mred\xff""#;
    let received = format!(
        "< SETTINGS MAX_CONCURRENT_STREAMS 100\n< GOAWAY: ENHANCE_YOUR_CALM, the last stream is 1, {reason}\n< PING\n"
    );
    assert!(output.stdout.contains(&received), "{output:?}");
    // Of the received frames and the replies, the first 80 and the last 20 are shown.
    let pings = output.stdout.lines().filter(|line| line.contains(" PING")).count();
    assert!((90..=95).contains(&pings), "{pings} {output:?}");
    assert!(output.stdout.contains("\n… ") && output.stdout.contains(" more frames\n"), "{output:?}");
    output.note("ended by the server (ENHANCE_YOUR_CALM)");
}

fn nghttpd_allows_fewer_streams(context: &Context) {
    let nghttpd = LoggingServer::nghttpd(&["-m", "10"]);
    let words = "-t1 -c2 -n500 --http2 --streams 50";
    let (output, result) = run(context.onrush().words(words).word(nghttpd.url("/file.bin")));
    assert_complete(&output, 500);
    let http2 = &result["http2"];
    assert_eq!(number(&http2["streams_allowed"]), 10, "{http2}");
    // Until the server has announced its limit, a client may open more streams. nghttpd refuses them, and they are sent
    // again.
    assert!((10..=50).contains(&number(&http2["streams_peak"])), "{http2}");
    assert!(number(&http2["streams_blocked_us"]) > 0, "{http2}");
    // More connections are advised unless onrush or the target was the limit.
    output.note("--streams 50: the server allows only 10 on a connection");
}

fn nghttpd_pads_and_adds_trailers(context: &Context) {
    let nghttpd = LoggingServer::nghttpd(&["--padding", "255", "--trailer", "x-tail: end", "--no-content-length"]);
    let script = r#"
        local body = string.rep("x", 100000)
        function response(status, headers, bytes)
          if status ~= 200 or headers["x-tail"] ~= "end" or bytes ~= body then error("wrong: " .. #bytes) end
        end
    "#;
    for onrush in [context.onrush(), context.onrush().lua(script)] {
        let onrush = onrush.words("-t1 -c2 -n40 --http2 --streams 4 --h2-window 30k --h2-connection-window 65535");
        let (output, result) = run(onrush.word(nghttpd.url("/file.bin")));
        assert_complete(&output, 40);
        assert!(number(&result["bytes_received"]) > 40 * 100_000, "{result}");
    }
}

fn nghttpd_returns_bodies_whole(context: &Context) {
    let (nghttpd, scratch) = (LoggingServer::nghttpd(&["--echo-upload"]), Scratch::new("http2-body"));
    let onrush = echoing(context, &scratch.file("body", body()));
    let (output, result) = run(onrush.words("-t1 -c2 -n12 --streams 3").word(nghttpd.url("/")));
    assert_complete(&output, 12);
    assert!(number(&result["bytes_received"]) > 12 * LARGE as u64, "{result}");
}

fn nghttpd_responds_before_body_arrival(context: &Context) {
    let (nghttpd, scratch) = (LoggingServer::nghttpd(&["--early-response"]), Scratch::new("http2-body"));
    let body = format!("@{}", scratch.file("body", body()).display());
    let onrush = context.onrush().words("-t1 -c2 -n20 --http2 --streams 4 -X POST --body").word(body);
    let (output, _) = run(onrush.word(nghttpd.url("/file.bin")));
    assert_complete(&output, 20);
}

fn apache_log_matches_counts(context: &Context) {
    let apache = LoggingServer::apache("");
    let words = "-t2 -c4 -n400 --http2 --streams 10";
    let (output, result) = run(context.onrush().words(words).word(apache.url("/file.bin")));
    assert_complete(&output, 400);
    assert!(number(&result["bytes_received"]) > 400 * 100_000, "{result}");
    let log = apache.log();
    assert_eq!(
        log.iter().filter(|line| line.contains("\"GET /file.bin HTTP/2.0\" 200 ")).count(),
        400,
        "{}",
        log.len()
    );
}

fn node_sends_hints_and_trailers(context: &Context) {
    let node = LoggingServer::node(NODE);
    let script = r#"
        function response(status, headers, body)
          if status ~= 200 or headers["x-head"] ~= "a" or headers["x-tail"] ~= "b" or body ~= "hello" then
            error("wrong: " .. status .. ", " .. body)
          end
        end
    "#;
    for onrush in [context.onrush(), context.onrush().lua(script)] {
        let onrush = onrush.words("-t1 -c2 -n40 --http2 --streams 4");
        let (output, result) = run(onrush.word(node.url("/")));
        assert_complete(&output, 40);
        assert_eq!(number(&result["requests"]["interim"]), 80, "{result}");
        assert_eq!(result["http2"]["streams_allowed"].as_u64(), None, "{result}");
    }
    let once = context.onrush().words("--once --http2").word(node.url("/")).run();
    for line in [
        "< HEADERS of stream 1\n< :status: 103\n",
        "< link: </style.css>; rel=preload\n",
        "< HEADERS of stream 1\n< :status: 200\n",
        "< DATA of stream 1, 5 bytes\n",
        "< HEADERS of stream 1, END_STREAM\n< x-tail: b\n",
        "\n\nhello\n",
    ] {
        assert!(once.stdout.contains(line), "no {line:?} in {}", once.stdout);
    }
}

fn node_trailers_report_failed_calls(context: &Context) {
    let node = LoggingServer::node(NODE);
    let (output, result) = run(context.onrush().words("-t1 -c2 -n20 --http2 --streams 4").word(node.url("/grpc/14")));
    assert_eq!(failures(&result, "grpc-status 14 (UNAVAILABLE)"), 20, "{result}");
    let figures = [&result["requests"]["completed"], &result["requests"]["unsuccessful"], &result["errors"]["check"]];
    assert_eq!((figures.map(number), number(&result["errors"]["read"])), ([20; 3], 0), "{result}");
    assert_eq!(output.requests(), 20, "{output:?}");
    output.note("grpc-status 14 (UNAVAILABLE)");
    assert!(output.stderr.contains("received: \"no luck%3\"\n"), "{output:?}");
    let (output, _) = run(context.onrush().words("-t1 -c2 -n20 --http2 --streams 4").word(node.url("/grpc/0")));
    assert_complete(&output, 20);
}

/// Checks that all requests got a response, without any failure.
#[track_caller]
pub fn assert_complete(output: &ProgramOutput, requests: u64) {
    assert_eq!((output.code, output.requests()), (0, requests), "{output:?}");
    output.assert_standard();
    assert_no_errors(output);
}

/// nginx with HTTP/2, in plain text or with TLS.
fn nginx(tls: bool, settings: &str) -> LoggingServer {
    let (listen, pair) = if tls { (" ssl http2", NGINX_PAIR) } else { (" http2", "") };
    let prepare = |directory: &Path| {
        if tls {
            write(&self_signed(&["localhost"]), directory);
        }
    };
    LoggingServer::nginx_with(listen, &format!("{pair}\n{settings}"), prepare)
}

fn nginx_url(nginx: &LoggingServer, tls: bool, path: &str) -> String {
    let url = nginx.url(path);
    if tls { url.replacen("http", "https", 1) } else { url }
}

/// POST with the body in a file, which every response must return.
pub fn echoing(context: &Context, path: &Path) -> Onrush {
    let path = path.display();
    let script = format!(
        r#"
        local sent = assert(io.open("{path}", "rb")):read("*a")
        function response(status, headers, body)
          if status ~= 200 or body ~= sent then error("wrong: " .. #body) end
        end
    "#
    );
    context.onrush().words("--http2 -X POST --body").word(format!("@{path}")).lua(&script)
}

/// A large body without repetitions.
pub fn body() -> Vec<u8> {
    (0..LARGE / 8).flat_map(|number| format!("{number:08}").into_bytes()).collect()
}

/// Hints and trailers with every response, and calls that end with a `grpc-status`.
const NODE: &str = r#"const http2 = require("node:http2");
const server = http2.createServer();
server.on("stream", (stream, headers) => {
  const trailers = headers[":path"].startsWith("/grpc/")
    ? { "grpc-status": headers[":path"].slice(6), "grpc-message": "no%20luck%3" }
    : { "x-tail": "b" };
  stream.additionalHeaders({ ":status": 103, link: "</style.css>; rel=preload" });
  stream.additionalHeaders({ ":status": 103 });
  stream.respond({ ":status": 200, "x-head": "a" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end("hello");
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"#;
