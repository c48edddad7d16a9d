//! The server over real sockets: the exact bytes of every path, and the responses to bad clients.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::*;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const PLAIN_CLOSE: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: close\r\n\r\nHello, World!";

/// Longer than any response takes; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

fn start_server() -> EmbeddedServer {
    start_server_with(1)
}

fn start_server_with(threads: usize) -> EmbeddedServer {
    EmbeddedServer::start(&ServeConfig { address: SocketAddr::from(([127, 0, 0, 1], 0)), threads, tls: false }).unwrap()
}

fn connect(server: &EmbeddedServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn write_to_server(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
}

fn get_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// Reads the expected text, and fails at the first difference.
fn expect_from_server(client: &mut TcpStream, expected: &str) {
    let mut got = vec![0; expected.len()];
    let mut filled = 0;
    while filled < got.len() {
        match client.read(&mut got[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => filled += bytes,
        }
    }
    assert_eq!(String::from_utf8_lossy(&got[..filled]), expected);
}

/// Checks that the connection stays open: the response to another request follows immediately.
fn expect_alive(client: &mut TcpStream) {
    write_to_server(client, &get_request("/"));
    expect_from_server(client, PLAIN);
}

/// Checks that the connection was closed in an orderly way and nothing more was sent.
fn expect_closed(client: &mut TcpStream) {
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert_eq!(String::from_utf8_lossy(&rest), "");
}

/// Sends a GET on a new connection, checks the response, and checks that the connection stays open.
#[track_caller]
fn expect_response_then_open(path: &str, expected: &str) {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request(path));
    expect_from_server(&mut client, expected);
    expect_alive(&mut client);
}

/// Sends a GET on a new connection, checks the response, and checks that the connection is closed.
#[track_caller]
fn expect_response_then_close(path: &str, expected: &str) {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request(path));
    expect_from_server(&mut client, expected);
    expect_closed(&mut client);
}

#[test]
fn root_answers_13_bytes() {
    expect_response_then_open("/", PLAIN);
    expect_response_then_open("/?a=b", PLAIN);
}

#[test]
fn bytes_have_the_requested_length() {
    expect_response_then_open("/bytes/3", &format!("{HEAD}Content-Length: 3\r\n\r\nxxx"));
    expect_response_then_open("/bytes/0", &format!("{HEAD}Content-Length: 0\r\n\r\n"));
    for length in [65_536, 65_537, 1_048_576, 3_000_000] {
        expect_response_then_open(
            &format!("/bytes/{length}"),
            &format!("{HEAD}Content-Length: {length}\r\n\r\n{}", "x".repeat(length)),
        );
    }
}

#[test]
fn slow_readers_get_every_byte_without_blocking() {
    let server = start_server();
    let mut slow = connect(&server);
    write_to_server(&mut slow, &get_request("/bytes/50000000"));
    let head = format!("{HEAD}Content-Length: 50000000\r\n\r\n");
    expect_from_server(&mut slow, &head);
    // The kernel's buffers hold a few megabytes, so the response has not been sent completely.
    expect_alive(&mut connect(&server));
    let mut left: usize = 50_000_000;
    let mut buffer = vec![0; 100_003];
    while left > 0 {
        let bytes = slow.read(&mut buffer).unwrap();
        assert!(bytes > 0, "closed with {left} bytes missing");
        assert!(buffer[..bytes].iter().all(|&byte| byte == b'x'));
        left -= bytes;
    }
    expect_alive(&mut slow);
}

#[test]
fn delays_last_at_least_as_requested() {
    let started = Instant::now();
    expect_response_then_open("/delay/20.5", PLAIN);
    assert!(started.elapsed() >= Duration::from_micros(20_500));
}

#[test]
fn concurrent_delays_end_in_order() {
    let server = start_server();
    let (mut long, mut short) = (connect(&server), connect(&server));
    write_to_server(&mut long, &get_request("/delay/3600000"));
    write_to_server(&mut short, &get_request("/delay/1"));
    expect_from_server(&mut short, PLAIN);
    expect_alive(&mut short);
}

#[test]
fn requested_status_is_sent() {
    expect_response_then_open(
        "/status/404",
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n404\n",
    );
    expect_response_then_open(
        "/status/999",
        "HTTP/1.1 999 \r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n999\n",
    );
    expect_response_then_open("/status/204", "HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\n");
    expect_response_then_open("/status/304", "HTTP/1.1 304 Not Modified\r\nContent-Type: text/plain\r\n\r\n");
    expect_response_then_open(
        "/status/302",
        "HTTP/1.1 302 Found\r\nContent-Type: text/plain\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    );
    expect_response_then_open("/status/102", &format!("HTTP/1.1 102 Processing\r\n\r\n{PLAIN}"));
}

#[test]
fn chunks_have_an_extension_and_a_trailer() {
    let head = format!("{HEAD}Transfer-Encoding: chunked\r\nTrailer: X-Trail\r\n\r\n");
    expect_response_then_open("/chunked/5", &format!("{head}5;first\r\nxxxxx\r\n0\r\nX-Trail: t\r\n\r\n"));
    expect_response_then_open("/chunked/0", &format!("{head}0\r\nX-Trail: t\r\n\r\n"));
    let full = "x".repeat(4096);
    let middle = format!("1000\r\n{full}\r\n").repeat(98);
    let body = format!("1000;first\r\n{full}\r\n{middle}1\r\nx\r\n0\r\nX-Trail: t\r\n\r\n");
    expect_response_then_open(&format!("/chunked/{}", 99 * 4096 + 1), &format!("{head}{body}"));
}

#[test]
fn drips_take_the_requested_time() {
    for query in ["bytes=4&ms=40", "numbytes=4&duration=0.04", "bytes=4&ms=0&delay=0.04"] {
        let started = Instant::now();
        expect_response_then_open(&format!("/drip?{query}"), &format!("{HEAD}Content-Length: 4\r\n\r\nxxxx"));
        assert!(started.elapsed() >= Duration::from_millis(30), "{query} took {:?}", started.elapsed());
    }
}

#[test]
fn close_is_announced() {
    expect_response_then_close("/close", PLAIN_CLOSE);
}

#[test]
fn closenohdr_closes_unannounced() {
    expect_response_then_close("/closenohdr", PLAIN);
}

#[test]
fn reset_sends_rst() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request("/reset"));
    let error = client.read(&mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn garbage_is_not_http() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request("/garbage"));
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"\x00\xffthis is not HTTP\r\n\r\n");
}

#[test]
fn hang_stays_open_without_a_byte() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request("/hang"));
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(client.read(&mut [0; 64]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Exceeds the socket buffers: the server must keep reading to reach the end.
    client.write_all(&vec![b'u'; 20_000_000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    expect_closed(&mut client);
}

#[test]
fn stall_delays_every_kth_request() {
    let server = start_server();
    let mut client = connect(&server);
    for number in 1..=4 {
        // A request delayed by mistake would wait for an hour.
        let pause_ms = if number % 2 == 0 { 20 } else { 3_600_000 };
        let started = Instant::now();
        write_to_server(&mut client, &get_request(&format!("/stall?every=2&ms={pause_ms}")));
        expect_from_server(&mut client, PLAIN);
        assert!(number % 2 == 1 || started.elapsed() >= Duration::from_millis(20), "request {number} did not wait");
    }
}

#[test]
fn mixed_favours_every_kth_connection() {
    let server = start_server();
    for number in 1..=6 {
        // A connection delayed by mistake would wait for an hour.
        let (ms, rest) = if number % 3 == 0 { (20, 3_600_000) } else { (3_600_000, 20) };
        let mut client = connect(&server);
        let started = Instant::now();
        for _ in 0..2 {
            write_to_server(&mut client, &get_request(&format!("/mixed?every=3&ms={ms}&rest={rest}")));
            expect_from_server(&mut client, PLAIN);
        }
        assert!(started.elapsed() >= Duration::from_millis(40), "connection {number} did not wait");
    }
}

#[test]
fn freezes_stop_all_threads_and_then_end() {
    let server = start_server_with(2);
    // The kernel distributes the connections: all twelve on one thread are very unlikely.
    let mut clients: Vec<TcpStream> = (0..12).map(|_| connect(&server)).collect();
    for client in &mut clients {
        expect_alive(client);
    }
    let started = Instant::now();
    write_to_server(&mut clients[0], &get_request("/freeze?every=300ms&ms=200"));
    expect_from_server(&mut clients[0], PLAIN);
    std::thread::sleep(Duration::from_millis(320).saturating_sub(started.elapsed()));
    let mut late = connect(&server);
    for client in clients.iter_mut().chain([&mut late]) {
        write_to_server(client, &get_request("/"));
    }
    for client in clients.iter_mut().chain([&mut late]) {
        expect_from_server(client, PLAIN);
        assert!(started.elapsed() >= Duration::from_millis(500), "answered after {:?}", started.elapsed());
    }
}

#[test]
fn eof_ends_the_body_by_closing() {
    expect_response_then_close("/eof", &format!("{HEAD}Connection: close\r\n\r\nHello, World!"));
}

#[test]
fn http10_closes_unless_asked_to_keep_alive() {
    let head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n";
    expect_response_then_close("/http10", &format!("{head}\r\nHello, World!"));
    expect_response_then_open("/http10?keep-alive", &format!("{head}Connection: keep-alive\r\n\r\nHello, World!"));
}

#[test]
fn interim_responses_precede_the_response() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\r\n";
    expect_response_then_open("/early-hints", &format!("{hints}{PLAIN}"));
    expect_response_then_open("/100", &format!("HTTP/1.1 100 Continue\r\n\r\n{PLAIN}"));
}

#[test]
fn extra_sends_five_stray_bytes() {
    expect_response_then_open("/extra", &format!("{PLAIN}stray"));
}

#[test]
fn malformed_responses_match_their_paths() {
    expect_response_then_close("/bad-length", &format!("{HEAD}Content-Length: -13\r\n\r\nHello, World!"));
    expect_response_then_close(
        "/two-lengths",
        &format!("{HEAD}Content-Length: 13\r\nContent-Length: 12\r\n\r\nHello, World!"),
    );
    expect_response_then_close(
        "/length-and-chunked",
        &format!("{HEAD}Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\nd\r\nHello, World!\r\n0\r\n\r\n"),
    );
    expect_response_then_close(
        "/bad-chunk",
        &format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nd\r\nHello, World!\r\nzz\r\n"),
    );
}

#[test]
fn endless_heads_never_end() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request("/endless-head"));
    let line = "X-Endless: and so on, and so on, and so on\r\n";
    expect_from_server(&mut client, &format!("HTTP/1.1 200 OK\r\n{}", line.repeat(100_000)));
    expect_alive(&mut connect(&server));
}

#[test]
fn echo_returns_the_request_as_it_was_received() {
    for request in [
        "GET /echo?a HTTP/1.1\r\nHost: h\r\nX-Odd:  two  spaces \r\n\r\n",
        "PUT /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: t\r\n\r\n",
    ] {
        let server = start_server();
        let mut client = connect(&server);
        write_to_server(&mut client, request);
        expect_from_server(&mut client, &format!("{HEAD}Content-Length: {}\r\n\r\n{request}", request.len()));
        expect_alive(&mut client);
    }
}

#[test]
fn sink_counts_a_body_of_any_size() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, "POST /sink HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n");
    client.write_all(&vec![b'u'; 20_000_000]).unwrap();
    expect_from_server(&mut client, &format!("{HEAD}Content-Length: 8\r\n\r\n20000000"));
    write_to_server(
        &mut client,
        "POST /sink HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
    );
    expect_from_server(&mut client, &format!("{HEAD}Content-Length: 2\r\n\r\n19"));
    expect_alive(&mut client);
}

#[test]
fn early_413_precedes_the_request_body() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, "POST /early/413 HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n");
    expect_from_server(
        &mut client,
        "HTTP/1.1 413 Content Too Large\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\ntoo large\n",
    );
    client.write_all(&vec![b'u'; 3_000_000]).unwrap();
    expect_alive(&mut client);
}

#[test]
fn expected_continue_is_sent() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, "POST /sink HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    expect_from_server(&mut client, "HTTP/1.1 100 Continue\r\n\r\n");
    write_to_server(&mut client, "body");
    expect_from_server(&mut client, &format!("{HEAD}Content-Length: 1\r\n\r\n4"));
}

#[test]
fn bodies_are_dropped_by_every_other_path() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody");
    expect_from_server(&mut client, PLAIN);
    write_to_server(&mut client, "POST /delay/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n");
    expect_from_server(&mut client, PLAIN);
    expect_alive(&mut client);
}

#[test]
fn head_is_answered_without_a_body() {
    let server = start_server();
    let mut client = connect(&server);
    for (path, fields) in [
        ("/", "Content-Length: 13\r\n"),
        ("/bytes/100000", "Content-Length: 100000\r\n"),
        ("/chunked/9", "Transfer-Encoding: chunked\r\nTrailer: X-Trail\r\n"),
        ("/drip?bytes=9&ms=9", "Content-Length: 9\r\n"),
    ] {
        write_to_server(&mut client, &format!("HEAD {path} HTTP/1.1\r\n\r\n"));
        expect_from_server(&mut client, &format!("{HEAD}{fields}\r\n"));
    }
    expect_alive(&mut client);
}

#[test]
fn connection_close_of_clients_is_honoured() {
    for (request, response) in [
        ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", PLAIN_CLOSE),
        ("GET / HTTP/1.0\r\n\r\n", PLAIN_CLOSE),
        ("DELETE /delay/1 HTTP/1.1\r\nConnection: close\r\n\r\n", PLAIN_CLOSE),
    ] {
        let server = start_server();
        let mut client = connect(&server);
        write_to_server(&mut client, request);
        expect_from_server(&mut client, response);
        expect_closed(&mut client);
    }
}

#[test]
fn http10_keep_alive_is_confirmed() {
    let server = start_server();
    let mut client = connect(&server);
    for _ in 0..2 {
        write_to_server(&mut client, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let fields = "Content-Length: 13\r\nConnection: keep-alive\r\n";
        expect_from_server(&mut client, &format!("{HEAD}{fields}\r\nHello, World!"));
    }
}

#[test]
fn requests_that_arrive_byte_by_byte_are_answered() {
    let server = start_server();
    let mut client = connect(&server);
    let echoed = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n";
    for byte in format!("{}{}{echoed}", get_request("/"), get_request("/bytes/2")).chars() {
        write_to_server(&mut client, &byte.to_string());
    }
    expect_from_server(&mut client, PLAIN);
    expect_from_server(&mut client, &format!("{HEAD}Content-Length: 2\r\n\r\nxx"));
    expect_from_server(&mut client, &format!("{HEAD}Content-Length: {}\r\n\r\n{echoed}", echoed.len()));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start_server();
    let mut client = connect(&server);
    let batch = [
        get_request("/"),
        get_request("/delay/5"),
        get_request("/status/500"),
        get_request("/bytes/70000"),
        get_request("/close"),
        get_request("/"),
    ]
    .concat();
    write_to_server(&mut client, &batch);
    expect_from_server(&mut client, PLAIN);
    expect_from_server(&mut client, PLAIN);
    let failed = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n500\n";
    expect_from_server(&mut client, failed);
    expect_from_server(&mut client, &format!("{HEAD}Content-Length: 70000\r\n\r\n{}", "x".repeat(70_000)));
    expect_from_server(&mut client, PLAIN_CLOSE);
    expect_closed(&mut client);
}

#[test]
fn late_readers_get_all_pipelined_responses() {
    let server = start_server();
    let mut client = connect(&server);
    let mut writer = client.try_clone().unwrap();
    let writing = std::thread::spawn(move || write_to_server(&mut writer, &get_request("/").repeat(10_000)));
    expect_from_server(&mut client, &PLAIN.repeat(10_000));
    writing.join().unwrap();
    expect_alive(&mut client);
}

#[test]
fn half_closed_clients_get_their_responses() {
    for path in ["/", "/delay/5", "/bytes/1000000"] {
        let server = start_server();
        let mut client = connect(&server);
        write_to_server(&mut client, &get_request(path));
        client.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert!(got.starts_with(HEAD.as_bytes()), "{path}");
        assert!(got.ends_with(if path.starts_with("/bytes") { b"xxxxxxxxxxxxx" } else { b"Hello, World!" }), "{path}");
    }
}

#[test]
fn bad_requests_are_refused_with_a_reason() {
    for (request, status, body) in [
        ("nonsense\r\n\r\n", "400 Bad Request", "the first line is not METHOD TARGET HTTP/1.1\n"),
        ("GET / HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported", "the version is neither HTTP/1.1 nor HTTP/1.0\n"),
        ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400 Bad Request", "Content-Length is not a whole number\n"),
    ] {
        let server = start_server();
        let mut client = connect(&server);
        write_to_server(&mut client, request);
        let (head, length) = ("Content-Type: text/plain\r\nContent-Length:", body.len());
        expect_from_server(
            &mut client,
            &format!("HTTP/1.1 {status}\r\n{head} {length}\r\nConnection: close\r\n\r\n{body}"),
        );
        expect_closed(&mut client);
    }
}

#[test]
fn endless_heads_are_refused() {
    let server = start_server();
    let mut client = connect(&server);
    // Exceeds the limit, so that part of the request is still unread when the response is sent.
    write_to_server(&mut client, &format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(200_000)));
    let why = "the head is longer than 16 KiB\n";
    let fields = format!("Content-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n", why.len());
    expect_from_server(&mut client, &format!("HTTP/1.1 431 Request Header Fields Too Large\r\n{fields}\r\n{why}"));
    client.shutdown(Shutdown::Write).unwrap();
    expect_closed(&mut client);
}

#[test]
fn echo_refuses_oversized_requests() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, "POST /echo HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n");
    client.write_all(&vec![b'u'; 2_000_000]).unwrap();
    let why = "/echo keeps at most 1 MiB\n";
    let fields = format!("Content-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n", why.len());
    expect_from_server(&mut client, &format!("HTTP/1.1 413 Content Too Large\r\n{fields}\r\n{why}"));
}

#[test]
fn path_errors_name_the_fault() {
    let response = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    expect_response_then_open(
        "/nowhere",
        &response("404 Not Found", "no such path; onrush serve --help lists all paths\n"),
    );
    for (path, body) in [
        ("/bytes/-1", "\"-1\" is not a number of bytes from 0 to 10737418240\n"),
        ("/bytes/10737418241", "\"10737418241\" is not a number of bytes from 0 to 10737418240\n"),
        ("/delay/soon", "\"soon\" is not a time of at most an hour, in ms\n"),
        ("/delay/-1", "\"-1\" is not a time of at most an hour, in ms\n"),
        ("/delay/NaN", "\"NaN\" is not a time of at most an hour, in ms\n"),
        ("/drip?duration=3601", "\"3601\" is not a time of at most an hour, in s\n"),
        ("/status/1000", "\"1000\" is not a status from 100 to 999\n"),
        ("/stall?every=0", "\"0\" is not a whole number from 1\n"),
        ("/mixed?every=x", "\"x\" is not a whole number from 1\n"),
        ("/freeze?every=5", "\"5\" is not a time with a unit, such as 5s or 500ms\n"),
        ("/freeze?every=xs", "\"x\" is not a time of at most an hour, in s\n"),
        ("/freeze?every=1s&ms=1000", "a freeze of 1000 ms every 1s would never end\n"),
        ("/capacity", "rps (requests per second) is missing or below 0.01; try /capacity?rps=500\n"),
        ("/capacity?rps=x", "rps: \"x\" is not a number up to 1000000000\n"),
        ("/capacity?rps=5&sd=-1", "sd: \"-1\" is not a number up to 10\n"),
        ("/delay/5?id=7", "/delay/5 has no parameter \"id\"; it takes sd, dist, slow\n"),
        ("/delay/5?sd=x", "sd: \"x\" is not a time of at most an hour, in ms\n"),
        ("/delay/5?sd=51", "sd is more than 10 times the mean\n"),
        ("/delay/0?sd=1", "sd is more than 10 times the mean\n"),
        ("/delay/5?dist=normal", "dist: \"normal\" is neither exp nor two; leave it out for log-normal times\n"),
        ("/delay/5?dist=exp&sd=1", "sd is for log-normal times; leave out dist\n"),
        ("/delay/5?dist=two", "dist=two needs slow (the time of the slow half); try dist=two&slow=50\n"),
        ("/delay/5?slow=9", "slow needs dist=two\n"),
        ("/pool?ms=5", "workers is missing; try /pool?workers=4&ms=5\n"),
        ("/pool?workers=4", "ms (time per request) is missing; try /pool?workers=4&ms=5\n"),
        ("/pool?workers=0&ms=5", "workers: \"0\" is not a whole number from 1 to 4096\n"),
        ("/pool?workers=4097&ms=5", "workers: \"4097\" is not a whole number from 1 to 4096\n"),
        ("/pool?workers=4&ms=soon", "\"soon\" is not a time of at most an hour, in ms\n"),
        ("/prefork", "serves is missing; try /prefork?serves=4\n"),
        ("/prefork?serves=-1", "serves: \"-1\" is not a whole number from 1 to 4096\n"),
        ("/mixed?rest=-1", "\"-1\" is not a time of at most an hour, in ms\n"),
    ] {
        expect_response_then_open(path, &response("400 Bad Request", body));
    }
}

#[test]
fn capacity_queues_are_shared_by_all() {
    let server = start_server_with(2);
    let mut clients: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    let start = Instant::now();
    clients.iter_mut().for_each(|client| write_to_server(client, &get_request("/capacity?rps=20")));
    clients.iter_mut().for_each(|client| expect_from_server(client, PLAIN));
    assert!(start.elapsed() >= Duration::from_millis(200), "four requests at 20 a second took {:?}", start.elapsed());
}

/// Checks that nothing arrives for a moment.
#[track_caller]
fn expect_silence(client: &mut TcpStream) {
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(client.read(&mut [0; 64]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    client.set_read_timeout(Some(PATIENCE)).unwrap();
}

#[test]
fn pool_workers_serve_all_connections() {
    let server = start_server_with(2);
    let mut clients: Vec<TcpStream> = (0..8).map(|_| connect(&server)).collect();
    let start = Instant::now();
    clients.iter_mut().for_each(|client| write_to_server(client, &get_request("/pool?workers=2&ms=50").repeat(2)));
    clients.iter_mut().for_each(|client| expect_from_server(client, &PLAIN.repeat(2)));
    assert!(start.elapsed() >= Duration::from_millis(400), "16 requests took {:?}", start.elapsed());
    clients.iter_mut().for_each(expect_alive);
}

#[test]
fn departed_queued_clients_take_no_worker() {
    let server = start_server_with(2);
    let path = get_request("/pool?workers=1&ms=300");
    let [mut first, mut last] = [connect(&server), connect(&server)];
    write_to_server(&mut first, &path);
    // If the dropped connections were served, the last one would time out.
    let mut waiting: Vec<TcpStream> = (0..100).map(|_| connect(&server)).collect();
    waiting.iter_mut().for_each(|client| write_to_server(client, &path));
    drop(waiting);
    write_to_server(&mut last, &path);
    expect_from_server(&mut first, PLAIN);
    expect_from_server(&mut last, PLAIN);
    expect_alive(&mut last);
}

#[test]
fn non_reading_clients_occupy_no_worker() {
    let server = start_server();
    let [mut slow, mut client] = [connect(&server), connect(&server)];
    let path = get_request("/pool?workers=1&ms=0");
    // The kernel's buffers hold a few megabytes, which fill long before the other client is done.
    write_to_server(&mut slow, &(get_request("/bytes/60000") + &path).repeat(400));
    for _ in 0..400 {
        write_to_server(&mut client, &path);
        expect_from_server(&mut client, PLAIN);
    }
}

#[test]
fn half_closed_clients_are_served_by_pools() {
    let server = start_server();
    let mut client = connect(&server);
    write_to_server(&mut client, &get_request("/pool?workers=1&ms=5"));
    client.shutdown(Shutdown::Write).unwrap();
    expect_from_server(&mut client, PLAIN);
    expect_closed(&mut client);
}

#[test]
fn prefork_limits_served_connections() {
    for threads in [1, 2] {
        let server = start_server_with(threads);
        let path = get_request("/prefork?serves=2");
        let mut clients: Vec<TcpStream> = (0..6).map(|_| connect(&server)).collect();
        for client in &mut clients[..2] {
            write_to_server(client, &path);
            expect_from_server(client, PLAIN);
        }
        for client in &mut clients[2..] {
            write_to_server(client, &path.repeat(2));
            expect_silence(client);
        }
        // Served connections keep their places. A place that is released goes to the next connection in order of
        // arrival.
        write_to_server(&mut clients[1], &path);
        expect_from_server(&mut clients[1], PLAIN);
        expect_alive(&mut clients[1]);
        drop(clients.remove(3));
        expect_silence(&mut clients[2]);
        drop(clients.remove(0));
        expect_from_server(&mut clients[1], &PLAIN.repeat(2));
        expect_silence(&mut clients[2]);
        write_to_server(&mut clients[0], &get_request("/close"));
        expect_from_server(&mut clients[0], PLAIN_CLOSE);
        expect_closed(&mut clients[0]);
        expect_from_server(&mut clients[2], &PLAIN.repeat(2));
        expect_silence(&mut clients[3]);
        // Other paths are unaffected.
        expect_alive(&mut connect(&server));
    }
}

#[test]
fn prefork_connections_may_use_pools() {
    let server = start_server();
    let [mut served, mut waiting] = [connect(&server), connect(&server)];
    let batch =
        [get_request("/prefork?serves=1&ms=5"), get_request("/pool?workers=1&ms=5"), get_request("/prefork?serves=1")]
            .concat();
    write_to_server(&mut served, &batch);
    expect_from_server(&mut served, &PLAIN.repeat(3));
    write_to_server(&mut waiting, &get_request("/prefork?serves=1"));
    expect_silence(&mut waiting);
    drop(served);
    expect_from_server(&mut waiting, PLAIN);
}

#[test]
fn stats_exclude_their_own_requests() {
    for threads in [1, 3] {
        let server = start_server_with(threads);
        let mut clients: Vec<TcpStream> = (0..8).map(|_| connect(&server)).collect();
        for client in &mut clients {
            write_to_server(client, &(get_request("/").repeat(5) + &get_request("/status/204")));
            expect_from_server(
                client,
                &(PLAIN.repeat(5) + "HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\n"),
            );
        }
        for _ in 0..2 {
            let body = "{\"connections\": 8, \"requests\": 48}\n";
            write_to_server(&mut clients[0], &get_request("/stats"));
            expect_from_server(&mut clients[0], &format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len()));
        }
    }
}

#[test]
fn every_listed_path_responds() {
    for route in routes::ROUTES {
        let argument = if route.path == "/status/" { "200" } else { "1" };
        let usage = route
            .usage
            .replace(['[', ']'], "")
            .replace("=S", "=0")
            .replace("=K", "=1")
            .replace("=M", "=1")
            .replace("=T", "=5s");
        let usage = usage.replace("=N", "=1").replace("MS", argument).replace('N', argument);
        let server = start_server();
        let mut client = connect(&server);
        write_to_server(&mut client, &get_request(&format!("{}{usage}", route.path)));
        client.set_read_timeout(Some(Duration::from_millis(if route.path == "/hang" { 50 } else { 20_000 }))).unwrap();
        let mut start = [0; 12];
        let read = client.read(&mut start).map_err(|error| error.kind());
        match route.path {
            "/hang" => assert_eq!(read, Err(io::ErrorKind::WouldBlock)),
            "/reset" => assert_eq!(read, Err(io::ErrorKind::ConnectionReset)),
            "/garbage" => assert_eq!(start[0], 0),
            "/http10" => assert_eq!(&start, b"HTTP/1.0 200"),
            "/early-hints" => assert_eq!(&start, b"HTTP/1.1 103"),
            "/100" => assert_eq!(&start, b"HTTP/1.1 100"),
            "/early/413" => assert_eq!(&start, b"HTTP/1.1 413"),
            path => assert_eq!(&start, b"HTTP/1.1 200", "{path}"),
        }
    }
}

#[test]
fn stopped_servers_free_their_port() {
    // An address that no other test uses, so that no other test takes the port in between.
    let server =
        EmbeddedServer::start(&ServeConfig { address: SocketAddr::from(([127, 9, 8, 7], 0)), threads: 1, tls: false })
            .unwrap();
    let address = server.address();
    let (mut idle, mut waiting) = (connect(&server), connect(&server));
    expect_alive(&mut idle);
    expect_alive(&mut waiting);
    write_to_server(&mut waiting, &get_request("/delay/3600000"));
    server.stop();
    expect_closed(&mut idle);
    assert!(TcpStream::connect(address).is_err());
    let again = EmbeddedServer::start(&ServeConfig { address, threads: 1, tls: false }).unwrap();
    assert_eq!(again.address(), address);
}
