//! The server over real sockets, seen by the library's client.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::routes::ROUTES;
use super::super::{EmbeddedServer, ServeConfig};

/// Longer than any response takes; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A socket that the library polls repeatedly.
struct PolledSocket(TcpStream);

struct TestClient {
    requests: SendRequest<Bytes>,
    connection: client::Connection<PolledSocket, Bytes>,
    /// Result of the connection.
    ended: Option<Result<(), h2::Error>>,
}

/// A completely received response.
#[derive(Debug, PartialEq, Eq)]
struct ReceivedResponse {
    status: u16,
    body: String,
    trailers: Option<String>,
}

fn server() -> EmbeddedServer {
    server_with(1)
}

fn server_with(threads: usize) -> EmbeddedServer {
    EmbeddedServer::start(&ServeConfig { address: SocketAddr::from(([127, 0, 0, 1], 0)), threads, tls: false }).unwrap()
}

fn connect(server: &EmbeddedServer) -> TestClient {
    connect_with(server, &mut client::Builder::new())
}

fn connect_with(server: &EmbeddedServer, builder: &mut client::Builder) -> TestClient {
    let socket = TcpStream::connect(server.address()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut handshake = Box::pin(builder.handshake(PolledSocket(socket)));
    let (requests, connection) =
        patiently(|context| handshake.as_mut().poll(context)).expect("the handshake only writes");
    TestClient { requests, connection, ended: None }
}

/// Polls until ready.
#[track_caller]
fn patiently<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Poll::Ready(value) = poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    panic!("nothing happens");
}

impl TestClient {
    /// Polls until ready, together with the connection.
    #[track_caller]
    fn wait<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        patiently(|context| {
            self.turn(context);
            poll(context)
        })
    }

    fn turn(&mut self, context: &mut Context<'_>) {
        if self.ended.is_none()
            && let Poll::Ready(end) = Pin::new(&mut self.connection).poll(context)
        {
            self.ended = Some(end);
        }
    }

    /// Runs the connection for this long.
    fn linger(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.turn(&mut Context::from_waker(Waker::noop()));
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    #[track_caller]
    fn send(&mut self, method: &str, path: &str, end: bool) -> (ResponseFuture, SendStream<Bytes>) {
        let request = Request::builder().method(method).uri(format!("http://h{path}")).body(()).unwrap();
        let mut requests = self.requests.clone();
        self.wait(|context| requests.poll_ready(context)).expect("the connection takes requests");
        requests.send_request(request, end).unwrap()
    }

    fn get(&mut self, path: &str) -> ResponseFuture {
        self.send("GET", path, true).0
    }

    #[track_caller]
    fn head(&mut self, mut response: ResponseFuture) -> Result<Response<RecvStream>, h2::Error> {
        self.wait(|context| Pin::new(&mut response).poll(context))
    }

    #[track_caller]
    fn answer(&mut self, response: ResponseFuture) -> Result<ReceivedResponse, h2::Error> {
        let (head, mut body) = self.head(response)?.into_parts();
        let text = self.body(&mut body)?;
        let trailers = self.wait(|context| body.poll_trailers(context))?;
        let line = |trailers: HeaderMap| {
            trailers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
        };
        Ok(ReceivedResponse { status: head.status.as_u16(), body: text, trailers: trailers.map(line) })
    }

    #[track_caller]
    fn body(&mut self, body: &mut RecvStream) -> Result<String, h2::Error> {
        let mut text = String::new();
        while let Some(piece) = self.wait(|context| body.poll_data(context)) {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len()).unwrap();
            text += str::from_utf8(&piece).unwrap();
        }
        Ok(text)
    }

    #[track_caller]
    fn ask(&mut self, path: &str) -> ReceivedResponse {
        let response = self.get(path);
        self.answer(response).unwrap()
    }

    /// Requests a path whose stream is reset, and returns the reason.
    #[track_caller]
    fn reset(&mut self, path: &str) -> Option<Reason> {
        let response = self.get(path);
        self.answer(response).unwrap_err().reason()
    }

    /// Sends a request with a body and returns the response.
    #[track_caller]
    fn upload(&mut self, path: &str, body: &[u8]) -> ReceivedResponse {
        let (response, mut stream) = self.send("POST", path, false);
        stream.send_data(Bytes::copy_from_slice(body), true).unwrap();
        self.answer(response).unwrap()
    }

    /// Waits for the end of the connection and returns its result.
    #[track_caller]
    fn end(&mut self) -> &Result<(), h2::Error> {
        let until = Instant::now() + PATIENCE;
        while self.ended.is_none() && Instant::now() < until {
            self.linger(Duration::from_millis(1));
        }
        self.ended.as_ref().expect("the connection ends")
    }
}

impl AsyncRead for PolledSocket {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.0.read(buffer.initialize_unfilled()) {
            Ok(bytes) => {
                buffer.advance(bytes);
                Poll::Ready(Ok(()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for PolledSocket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            done => Poll::Ready(done),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn plain() -> ReceivedResponse {
    answer(200, "Hello, World!")
}

fn answer(status: u16, body: &str) -> ReceivedResponse {
    ReceivedResponse { status, body: body.to_owned(), trailers: None }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn responses_are_those_of_http_1() {
    let server = server();
    let mut client = connect(&server);
    for path in ["/", "/?a=b", "/delay/1", "/status/102", "/early-hints", "/100", "/http10?keep-alive"] {
        assert_eq!(client.ask(path), plain(), "{path}");
    }
    for path in ["/stall?every=1&ms=1", "/mixed?every=1", "/capacity?rps=1000", "/pool?workers=1&ms=1"] {
        assert_eq!(client.ask(path), plain(), "{path}");
    }
    assert_eq!(client.ask("/status/404"), answer(404, "404\n"));
    assert_eq!(client.ask("/status/999"), answer(999, "999\n"));
    assert_eq!(client.ask("/status/204"), answer(204, ""));
    assert_eq!(client.ask("/status/302"), answer(302, ""));
    assert_eq!(client.ask("/bytes/0"), answer(200, ""));
    assert_eq!(client.ask("/drip?bytes=4&ms=4"), answer(200, "xxxx"));
    assert_eq!(client.ask("/nowhere"), answer(404, "no such path; onrush serve --help lists them\n"));
    assert_eq!(client.ask("/status/1000"), answer(400, "\"1000\" is not a status from 100 to 999\n"));
    for length in [3, 65_536, 65_537, 3_000_000] {
        assert_eq!(client.ask(&format!("/bytes/{length}")), answer(200, &"x".repeat(length)));
    }
}

#[test]
fn http2_heads_omit_framing_fields() {
    let server = server();
    let mut client = connect(&server);
    for (path, fields) in [
        ("/", &[("content-type", "text/plain"), ("content-length", "13")][..]),
        ("/bytes/3", &[("content-length", "3"), ("content-type", "text/plain")]),
        ("/chunked/3", &[("trailer", "X-Trail"), ("content-type", "text/plain")]),
        ("/close", &[("content-length", "13"), ("content-type", "text/plain")]),
    ] {
        let response = client.get(path);
        let head = client.head(response).unwrap();
        let got: Vec<_> = head.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(got, fields, "{path}");
    }
}

#[test]
fn chunks_are_a_body_with_a_trailer() {
    let server = server();
    let mut client = connect(&server);
    for length in [0, 5, 500_000] {
        let expected = ReceivedResponse { trailers: Some("x-trail: t".to_owned()), ..answer(200, &"x".repeat(length)) };
        assert_eq!(client.ask(&format!("/chunked/{length}")), expected);
    }
}

#[test]
fn head_is_answered_without_a_body() {
    let server = server();
    let mut client = connect(&server);
    for (path, length) in [("/", Some("13")), ("/bytes/100000", Some("100000")), ("/chunked/9", None)] {
        let (response, _) = client.send("HEAD", path, true);
        let head = client.head(response).unwrap();
        assert!(head.body().is_end_stream(), "{path}");
        assert_eq!(head.headers().get("content-length").map(|value| value.to_str().unwrap()), length);
    }
}

#[test]
fn requests_of_a_connection_run_side_by_side() {
    let server = server();
    let mut client = connect(&server);
    let long = client.get("/delay/3600000");
    let hanging = client.get("/hang");
    let start = Instant::now();
    let delayed: Vec<ResponseFuture> = (0..100).map(|_| client.get("/delay/50")).collect();
    for response in delayed {
        assert_eq!(client.answer(response).unwrap(), plain());
    }
    assert!((ms(50)..ms(2500)).contains(&start.elapsed()), "100 delays of 50 ms took {:?}", start.elapsed());
    assert_eq!(client.ask("/"), plain());
    drop((long, hanging));
}

#[test]
fn stats_count_every_request_once() {
    let server = server_with(2);
    let mut clients = [connect(&server), connect(&server), connect(&server)];
    for client in &mut clients {
        let responses: Vec<ResponseFuture> = (0..200).map(|_| client.get("/")).collect();
        for response in responses {
            assert_eq!(client.answer(response).unwrap(), plain());
        }
        assert_eq!(client.reset("/reset"), Some(Reason::INTERNAL_ERROR));
    }
    for _ in 0..2 {
        assert_eq!(clients[0].ask("/stats"), answer(200, "{\"connections\": 3, \"requests\": 603}\n"));
    }
}

#[test]
fn bodies_are_received_and_counted() {
    let server = server();
    let mut client = connect(&server);
    assert_eq!(client.upload("/sink", &vec![b'u'; 20_000_000]), answer(200, "20000000"));
    assert_eq!(client.upload("/sink", b""), answer(200, "0"));
    assert_eq!(client.upload("/", b"body"), plain());
    let head = "POST /echo?a HTTP/2\r\nhost: h\r\n\r\n";
    assert_eq!(client.upload("/echo?a", b"hello"), answer(200, &format!("{head}hello")));
    let large = "x".repeat((1 << 20) - head.len());
    assert_eq!(client.upload("/echo?a", large.as_bytes()), answer(200, &format!("{head}{large}")));
    assert_eq!(client.ask("/echo"), answer(200, "GET /echo HTTP/2\r\nhost: h\r\n\r\n"));
    let refused = answer(413, "/echo keeps at most 1 MiB\n");
    assert_eq!(client.upload("/echo", &vec![b'u'; 3_000_000]), refused);
    assert_eq!(client.ask("/"), plain());
}

#[test]
fn an_early_413_comes_before_the_body_which_is_then_read() {
    let server = server();
    let mut client = connect(&server);
    let (response, mut stream) = client.send("POST", "/early/413", false);
    assert_eq!(client.answer(response).unwrap(), answer(413, "too large\n"));
    stream.send_data(Bytes::from(vec![b'u'; 3_000_000]), true).unwrap();
    // Otherwise the connection's window would be used up.
    for _ in 0..3 {
        assert_eq!(client.upload("/sink", &vec![b'u'; 3_000_000]), answer(200, "3000000"));
    }
}

#[test]
fn a_client_that_expects_continue_gets_it() {
    let server = server();
    let mut client = connect(&server);
    let request = Request::post("http://h/sink").header("expect", "100-continue").body(()).unwrap();
    let (mut response, mut stream) = client.requests.send_request(request, false).unwrap();
    let interim = client.wait(|context| response.poll_informational(context)).unwrap().unwrap();
    assert_eq!(interim.status(), 100);
    stream.send_data(Bytes::from_static(b"body"), true).unwrap();
    assert_eq!(client.answer(response).unwrap(), answer(200, "4"));
}

#[test]
fn echo_keeps_a_bounded_amount_for_all_streams() {
    let server = server();
    let mut client = connect(&server);
    let mut streams: Vec<_> = (0..17).map(|_| client.send("POST", "/echo", false)).collect();
    for (_, stream) in &mut streams {
        stream.send_data(Bytes::from(vec![b'u'; 1_000_000]), false).unwrap();
    }
    let refused = client.wait(|context| {
        let mut polls = streams.iter_mut().map(|(response, _)| Pin::new(response).poll(context));
        polls.find(Poll::is_ready).unwrap_or(Poll::Pending)
    });
    let mut body = refused.unwrap().into_body();
    assert_eq!(client.body(&mut body).unwrap(), "/echo keeps at most 16 MiB for all streams of a connection\n");
    // Buffers of reset streams are free again.
    streams.clear();
    client.linger(ms(20));
    assert_eq!(client.upload("/echo", &vec![b'u'; 1_000_000]).body.len(), 1_000_030);
}

#[test]
fn streams_that_a_client_resets_are_forgotten() {
    let server = server();
    let mut client = connect(&server);
    // Exceeds the number of open requests.
    for path in ["/hang", "/delay/3600000", "/drip?bytes=2&ms=3600000", "/pool?workers=1&ms=3600000"] {
        for _ in 0..260 {
            let response = client.get(path);
            client.linger(ms(1));
            drop(response);
        }
    }
    assert_eq!(client.ask("/"), plain());
}

#[test]
fn pools_serve_streams_and_connections_alike() {
    let server = server_with(2);
    let mut clients = [connect(&server), connect(&server)];
    let start = Instant::now();
    let mut waiting = Vec::new();
    for client in &mut clients {
        waiting.push((0..4).map(|_| client.get("/pool?workers=2&ms=50")).collect::<Vec<_>>());
        client.linger(ms(1));
    }
    for (client, waiting) in clients.iter_mut().zip(waiting) {
        for response in waiting {
            assert_eq!(client.answer(response).unwrap(), plain());
        }
    }
    assert!(start.elapsed() >= ms(200), "8 requests took {:?}", start.elapsed());
}

#[test]
fn reset_queued_streams_take_no_worker() {
    let server = server();
    let mut client = connect(&server);
    let path = "/pool?workers=1&ms=300";
    let first = client.get(path);
    let waiting: Vec<_> = (0..100).map(|_| client.get(path)).collect();
    client.linger(ms(20));
    drop(waiting);
    let last = client.get(path);
    assert_eq!(client.answer(first).unwrap(), plain());
    // If the dropped requests were served, this one would time out.
    assert_eq!(client.answer(last).unwrap(), plain());
}

#[test]
fn prefork_serves_only_so_many_connections() {
    let server = server();
    let [mut served, mut waiting] = [connect(&server), connect(&server)];
    assert_eq!(served.ask("/prefork?serves=1"), plain());
    let responses: Vec<_> = (0..3).map(|_| waiting.get("/prefork?serves=1")).collect();
    // Unlike over HTTP/1.1, other requests of the connection are served.
    assert_eq!(waiting.ask("/"), plain());
    drop(served);
    for response in responses {
        assert_eq!(waiting.answer(response).unwrap(), plain());
    }
}

#[test]
fn close_serves_earlier_requests() {
    for path in ["/close", "/eof", "/http10"] {
        let server = server();
        let mut client = connect(&server);
        let slow = client.get("/delay/50");
        assert_eq!(client.ask(path), plain());
        assert_eq!(client.answer(slow).unwrap(), plain());
        assert!(client.end().is_ok(), "{path}: {:?}", client.ended);
    }
}

#[test]
fn connections_end_without_notice_where_http_1_does() {
    for (path, answered) in [("/closenohdr", true), ("/garbage", false)] {
        let server = server();
        let mut client = connect(&server);
        let slow = client.get("/delay/3600000");
        let response = client.get(path);
        assert_eq!(client.answer(response).ok(), answered.then(plain), "{path}");
        assert!(client.answer(slow).is_err(), "{path}");
        client.end();
    }
}

#[test]
fn broken_responses_concern_only_their_stream() {
    let server = server();
    let mut client = connect(&server);
    for path in ["/extra", "/bad-length", "/two-lengths", "/length-and-chunked", "/bad-chunk"] {
        assert_eq!(client.reset(path), Some(Reason::PROTOCOL_ERROR), "{path}");
    }
    assert_eq!(client.reset("/reset"), Some(Reason::INTERNAL_ERROR));
    assert_eq!(client.ask("/"), plain());
}

#[test]
fn an_endless_head_does_not_end() {
    let server = server();
    let mut client = connect(&server);
    let response = client.get("/endless-head");
    assert!(client.head(response).is_err());
    assert!(client.end().is_err(), "the library of the client gives up");
    assert_eq!(connect(&server).ask("/"), plain());
}

#[test]
fn a_slow_reader_gets_every_byte_and_holds_up_nobody() {
    let server = server();
    let mut slow = connect_with(
        &server,
        client::Builder::new().initial_window_size(1 << 30).initial_connection_window_size(1 << 30),
    );
    let response = slow.get("/bytes/50000000");
    let (_, mut body) = slow.head(response).unwrap().into_parts();
    std::thread::sleep(ms(50));
    let mut other = connect(&server);
    assert_eq!(other.ask("/"), plain());
    assert_eq!(slow.body(&mut body).unwrap().len(), 50_000_000);
    assert_eq!(slow.ask("/"), plain());
}

#[test]
fn a_client_that_does_not_read_occupies_no_worker() {
    let server = server();
    let mut slow = connect_with(
        &server,
        client::Builder::new().initial_window_size(1 << 30).initial_connection_window_size(1 << 30),
    );
    let path = "/pool?workers=1&ms=5";
    let responses = ["/bytes/50000000", path, path, path].map(|path| slow.get(path));
    slow.linger(ms(1));
    let mut client = connect(&server);
    for _ in 0..20 {
        assert_eq!(client.ask(path), plain());
    }
    for (response, length) in responses.into_iter().zip([50_000_000, 13, 13, 13]) {
        assert_eq!(slow.answer(response).unwrap().body.len(), length);
    }
}

#[test]
fn small_windows_are_respected() {
    let server = server();
    let mut client =
        connect_with(&server, client::Builder::new().initial_window_size(7).initial_connection_window_size(100_000));
    let responses = ["/bytes/1000", "/", "/drip?bytes=100&ms=5"].map(|path| client.get(path));
    let lengths = responses.map(|response| client.answer(response).unwrap().body.len());
    assert_eq!(lengths, [1000, 13, 100]);
}

#[test]
fn split_prefaces_are_recognized_at_the_beginning() {
    let server = server();
    let raw = |pieces: &[&[u8]]| {
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.set_nodelay(true).unwrap();
        for piece in pieces {
            client.write_all(piece).unwrap();
            std::thread::sleep(ms(1));
        }
        let mut start = [0; 12];
        client.read_exact(&mut start).unwrap();
        start
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    // A SETTINGS frame: three length bytes, then type 4.
    for length in [1, 5, preface.len()] {
        let pieces: Vec<&[u8]> = preface.chunks(length).collect();
        assert_eq!(&raw(&pieces)[3..9], b"\x04\0\0\0\0\0", "{length} bytes at a time");
    }
    assert_eq!(&raw(&[b"PRI * HTTP/2.0\r\n\r\nXX"]), b"HTTP/1.1 505");
    assert_eq!(&raw(&[b"PRI * HTTP/2.1\r\n"]), b"HTTP/1.1 505");
    let mut after = TcpStream::connect(server.address()).unwrap();
    after.write_all(b"GET /status/204 HTTP/1.1\r\n\r\n").unwrap();
    after.write_all(preface).unwrap();
    let mut text = String::new();
    after.read_to_string(&mut text).unwrap();
    assert!(text.contains("\r\n\r\nHTTP/1.1 505"), "{text}");
}

#[test]
fn too_many_resets_end_the_connection() {
    let server = server();
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in (1u32..4000).step_by(2) {
        // GET http://h/ and RST_STREAM (CANCEL).
        let head = b"\x82\x86\x84\x41\x01h";
        input.extend_from_slice(&[0, 0, head.len() as u8, 1, 5]);
        input.extend_from_slice(&stream.to_be_bytes());
        input.extend_from_slice(head);
        input.extend_from_slice(&[0, 0, 4, 3, 0]);
        input.extend_from_slice(&stream.to_be_bytes());
        input.extend_from_slice(&8u32.to_be_bytes());
    }
    // The server closes while it still receives, so that a reset may follow its last bytes.
    let _ = client.write_all(&input);
    let mut output = Vec::new();
    let _ = client.read_to_end(&mut output);
    // The last frame is a GOAWAY with ENHANCE_YOUR_CALM (11).
    let goaway = output.windows(9).rposition(|window| window[3..] == [7, 0, 0, 0, 0, 0]).expect("a GOAWAY");
    assert_eq!(output[goaway + 13..goaway + 17], [0, 0, 0, 11]);
}

#[test]
fn every_path_of_the_table_answers() {
    for route in ROUTES {
        let argument = if route.path == "/status/" { "200" } else { "1" };
        let usage = route.usage.replace(['[', ']'], "").replace("=S", "=0").replace("=K", "=1").replace("=M", "=1");
        let usage = usage.replace("=T", "=5s").replace("=N", "=1").replace("MS", argument).replace('N', argument);
        let server = server();
        let mut client = connect(&server);
        let response = client.get(&format!("{}{usage}", route.path));
        match route.path {
            "/hang" => {
                client.linger(ms(20));
                drop(response);
                assert_eq!(client.ask("/"), plain());
            }
            "/early/413" => assert_eq!(client.answer(response).unwrap(), answer(413, "too large\n")),
            "/reset"
            | "/garbage"
            | "/extra"
            | "/endless-head"
            | "/bad-length"
            | "/two-lengths"
            | "/length-and-chunked"
            | "/bad-chunk" => assert!(client.answer(response).is_err(), "{}", route.path),
            path => assert_eq!(client.answer(response).unwrap().status, 200, "{path}"),
        }
    }
}

#[test]
fn a_stopped_server_closes_its_connections() {
    let server = server();
    let mut client = connect(&server);
    let waiting = client.get("/delay/3600000");
    assert_eq!(client.ask("/"), plain());
    server.stop();
    assert!(client.answer(waiting).is_err());
}
