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

fn start_server() -> EmbeddedServer {
    start_server_with(1)
}

fn start_server_with(threads: usize) -> EmbeddedServer {
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
        poll_until_ready(|context| handshake.as_mut().poll(context)).expect("the handshake only writes");
    TestClient { requests, connection, ended: None }
}

/// Polls until the result is ready.
#[track_caller]
fn poll_until_ready<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
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
    /// Polls until the result is ready, and the connection with it.
    #[track_caller]
    fn wait_for<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        poll_until_ready(|context| {
            self.poll_connection(context);
            poll(context)
        })
    }

    fn poll_connection(&mut self, context: &mut Context<'_>) {
        if self.ended.is_none()
            && let Poll::Ready(end) = Pin::new(&mut self.connection).poll(context)
        {
            self.ended = Some(end);
        }
    }

    /// Runs the connection for this long.
    fn run_connection_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.poll_connection(&mut Context::from_waker(Waker::noop()));
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    #[track_caller]
    fn send_request(&mut self, method: &str, path: &str, end: bool) -> (ResponseFuture, SendStream<Bytes>) {
        let request = Request::builder().method(method).uri(format!("http://h{path}")).body(()).unwrap();
        let mut requests = self.requests.clone();
        self.wait_for(|context| requests.poll_ready(context)).expect("the connection takes requests");
        requests.send_request(request, end).unwrap()
    }

    fn send_get(&mut self, path: &str) -> ResponseFuture {
        self.send_request("GET", path, true).0
    }

    #[track_caller]
    fn receive_head(&mut self, mut response: ResponseFuture) -> Result<Response<RecvStream>, h2::Error> {
        self.wait_for(|context| Pin::new(&mut response).poll(context))
    }

    #[track_caller]
    fn receive_response(&mut self, response: ResponseFuture) -> Result<ReceivedResponse, h2::Error> {
        let (head, mut body) = self.receive_head(response)?.into_parts();
        let text = self.receive_body(&mut body)?;
        let trailers = self.wait_for(|context| body.poll_trailers(context))?;
        let line = |trailers: HeaderMap| {
            trailers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
        };
        Ok(ReceivedResponse { status: head.status.as_u16(), body: text, trailers: trailers.map(line) })
    }

    #[track_caller]
    fn receive_body(&mut self, body: &mut RecvStream) -> Result<String, h2::Error> {
        let mut text = String::new();
        while let Some(piece) = self.wait_for(|context| body.poll_data(context)) {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len()).unwrap();
            text += str::from_utf8(&piece).unwrap();
        }
        Ok(text)
    }

    #[track_caller]
    fn request_path(&mut self, path: &str) -> ReceivedResponse {
        let response = self.send_get(path);
        self.receive_response(response).unwrap()
    }

    /// Requests a path whose stream is reset, and returns the reason.
    #[track_caller]
    fn request_reset(&mut self, path: &str) -> Option<Reason> {
        let response = self.send_get(path);
        self.receive_response(response).unwrap_err().reason()
    }

    /// Sends a request with a body and returns the response.
    #[track_caller]
    fn upload_body(&mut self, path: &str, body: &[u8]) -> ReceivedResponse {
        let (response, mut stream) = self.send_request("POST", path, false);
        stream.send_data(Bytes::copy_from_slice(body), true).unwrap();
        self.receive_response(response).unwrap()
    }

    /// Waits for the end of the connection and returns its result.
    #[track_caller]
    fn wait_for_end(&mut self) -> &Result<(), h2::Error> {
        let until = Instant::now() + PATIENCE;
        while self.ended.is_none() && Instant::now() < until {
            self.run_connection_for(Duration::from_millis(1));
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

fn plain_response() -> ReceivedResponse {
    text_response(200, "Hello, World!")
}

fn text_response(status: u16, body: &str) -> ReceivedResponse {
    ReceivedResponse { status, body: body.to_owned(), trailers: None }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn http2_responses_match_http_1() {
    let server = start_server();
    let mut client = connect(&server);
    for path in ["/", "/?a=b", "/delay/1", "/status/102", "/early-hints", "/100", "/http10?keep-alive"] {
        assert_eq!(client.request_path(path), plain_response(), "{path}");
    }
    for path in ["/stall?every=1&ms=1", "/mixed?every=1", "/capacity?rps=1000", "/pool?workers=1&ms=1"] {
        assert_eq!(client.request_path(path), plain_response(), "{path}");
    }
    assert_eq!(client.request_path("/status/404"), text_response(404, "404\n"));
    assert_eq!(client.request_path("/status/999"), text_response(999, "999\n"));
    assert_eq!(client.request_path("/status/204"), text_response(204, ""));
    assert_eq!(client.request_path("/status/302"), text_response(302, ""));
    assert_eq!(client.request_path("/bytes/0"), text_response(200, ""));
    assert_eq!(client.request_path("/drip?bytes=4&ms=4"), text_response(200, "xxxx"));
    assert_eq!(
        client.request_path("/nowhere"),
        text_response(404, "no such path; onrush serve --help lists all paths\n")
    );
    assert_eq!(client.request_path("/status/1000"), text_response(400, "\"1000\" is not a status from 100 to 999\n"));
    for length in [3, 65_536, 65_537, 3_000_000] {
        assert_eq!(client.request_path(&format!("/bytes/{length}")), text_response(200, &"x".repeat(length)));
    }
}

#[test]
fn http2_heads_omit_framing_fields() {
    let server = start_server();
    let mut client = connect(&server);
    for (path, fields) in [
        ("/", &[("content-type", "text/plain"), ("content-length", "13")][..]),
        ("/bytes/3", &[("content-length", "3"), ("content-type", "text/plain")]),
        ("/chunked/3", &[("trailer", "X-Trail"), ("content-type", "text/plain")]),
        ("/close", &[("content-length", "13"), ("content-type", "text/plain")]),
    ] {
        let response = client.send_get(path);
        let head = client.receive_head(response).unwrap();
        let got: Vec<_> = head.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(got, fields, "{path}");
    }
}

#[test]
fn chunks_are_a_body_with_a_trailer() {
    let server = start_server();
    let mut client = connect(&server);
    for length in [0, 5, 500_000] {
        let expected =
            ReceivedResponse { trailers: Some("x-trail: t".to_owned()), ..text_response(200, &"x".repeat(length)) };
        assert_eq!(client.request_path(&format!("/chunked/{length}")), expected);
    }
}

#[test]
fn head_is_answered_without_a_body() {
    let server = start_server();
    let mut client = connect(&server);
    for (path, length) in [("/", Some("13")), ("/bytes/100000", Some("100000")), ("/chunked/9", None)] {
        let (response, _) = client.send_request("HEAD", path, true);
        let head = client.receive_head(response).unwrap();
        assert!(head.body().is_end_stream(), "{path}");
        assert_eq!(head.headers().get("content-length").map(|value| value.to_str().unwrap()), length);
    }
}

#[test]
fn requests_of_a_connection_run_side_by_side() {
    let server = start_server();
    let mut client = connect(&server);
    let long = client.send_get("/delay/3600000");
    let hanging = client.send_get("/hang");
    let start = Instant::now();
    let delayed: Vec<ResponseFuture> = (0..100).map(|_| client.send_get("/delay/50")).collect();
    for response in delayed {
        assert_eq!(client.receive_response(response).unwrap(), plain_response());
    }
    assert!((ms(50)..ms(2500)).contains(&start.elapsed()), "100 delays of 50 ms took {:?}", start.elapsed());
    assert_eq!(client.request_path("/"), plain_response());
    drop((long, hanging));
}

#[test]
fn stats_count_every_request_once() {
    let server = start_server_with(2);
    let mut clients = [connect(&server), connect(&server), connect(&server)];
    for client in &mut clients {
        let responses: Vec<ResponseFuture> = (0..200).map(|_| client.send_get("/")).collect();
        for response in responses {
            assert_eq!(client.receive_response(response).unwrap(), plain_response());
        }
        assert_eq!(client.request_reset("/reset"), Some(Reason::INTERNAL_ERROR));
    }
    for _ in 0..2 {
        assert_eq!(clients[0].request_path("/stats"), text_response(200, "{\"connections\": 3, \"requests\": 603}\n"));
    }
}

#[test]
fn bodies_are_received_and_counted() {
    let server = start_server();
    let mut client = connect(&server);
    assert_eq!(client.upload_body("/sink", &vec![b'u'; 20_000_000]), text_response(200, "20000000"));
    assert_eq!(client.upload_body("/sink", b""), text_response(200, "0"));
    assert_eq!(client.upload_body("/", b"body"), plain_response());
    let head = "POST /echo?a HTTP/2\r\nhost: h\r\n\r\n";
    assert_eq!(client.upload_body("/echo?a", b"hello"), text_response(200, &format!("{head}hello")));
    let large = "x".repeat((1 << 20) - head.len());
    assert_eq!(client.upload_body("/echo?a", large.as_bytes()), text_response(200, &format!("{head}{large}")));
    assert_eq!(client.request_path("/echo"), text_response(200, "GET /echo HTTP/2\r\nhost: h\r\n\r\n"));
    let refused = text_response(413, "/echo keeps at most 1 MiB\n");
    assert_eq!(client.upload_body("/echo", &vec![b'u'; 3_000_000]), refused);
    assert_eq!(client.request_path("/"), plain_response());
}

#[test]
fn early_413_precedes_the_request_body() {
    let server = start_server();
    let mut client = connect(&server);
    let (response, mut stream) = client.send_request("POST", "/early/413", false);
    assert_eq!(client.receive_response(response).unwrap(), text_response(413, "too large\n"));
    stream.send_data(Bytes::from(vec![b'u'; 3_000_000]), true).unwrap();
    // Otherwise the connection's window would be used up.
    for _ in 0..3 {
        assert_eq!(client.upload_body("/sink", &vec![b'u'; 3_000_000]), text_response(200, "3000000"));
    }
}

#[test]
fn expected_continue_is_sent() {
    let server = start_server();
    let mut client = connect(&server);
    let request = Request::post("http://h/sink").header("expect", "100-continue").body(()).unwrap();
    let (mut response, mut stream) = client.requests.send_request(request, false).unwrap();
    let interim = client.wait_for(|context| response.poll_informational(context)).unwrap().unwrap();
    assert_eq!(interim.status(), 100);
    stream.send_data(Bytes::from_static(b"body"), true).unwrap();
    assert_eq!(client.receive_response(response).unwrap(), text_response(200, "4"));
}

#[test]
fn echo_keeps_a_bounded_amount_for_all_streams() {
    let server = start_server();
    let mut client = connect(&server);
    let mut streams: Vec<_> = (0..17).map(|_| client.send_request("POST", "/echo", false)).collect();
    for (_, stream) in &mut streams {
        stream.send_data(Bytes::from(vec![b'u'; 1_000_000]), false).unwrap();
    }
    let refused = client.wait_for(|context| {
        let mut polls = streams.iter_mut().map(|(response, _)| Pin::new(response).poll(context));
        polls.find(Poll::is_ready).unwrap_or(Poll::Pending)
    });
    let mut body = refused.unwrap().into_body();
    assert_eq!(client.receive_body(&mut body).unwrap(), "/echo keeps at most 16 MiB for all streams of a connection\n");
    // Buffers of reset streams are free again.
    streams.clear();
    client.run_connection_for(ms(20));
    assert_eq!(client.upload_body("/echo", &vec![b'u'; 1_000_000]).body.len(), 1_000_030);
}

#[test]
fn reset_streams_are_forgotten() {
    let server = start_server();
    let mut client = connect(&server);
    // Exceeds the number of open requests.
    for path in ["/hang", "/delay/3600000", "/drip?bytes=2&ms=3600000", "/pool?workers=1&ms=3600000"] {
        for _ in 0..260 {
            let response = client.send_get(path);
            client.run_connection_for(ms(1));
            drop(response);
        }
    }
    assert_eq!(client.request_path("/"), plain_response());
}

#[test]
fn pools_serve_streams_and_connections_alike() {
    let server = start_server_with(2);
    let mut clients = [connect(&server), connect(&server)];
    let start = Instant::now();
    let mut waiting = Vec::new();
    for client in &mut clients {
        waiting.push((0..4).map(|_| client.send_get("/pool?workers=2&ms=50")).collect::<Vec<_>>());
        client.run_connection_for(ms(1));
    }
    for (client, waiting) in clients.iter_mut().zip(waiting) {
        for response in waiting {
            assert_eq!(client.receive_response(response).unwrap(), plain_response());
        }
    }
    assert!(start.elapsed() >= ms(200), "8 requests took {:?}", start.elapsed());
}

#[test]
fn reset_queued_streams_take_no_worker() {
    let server = start_server();
    let mut client = connect(&server);
    let path = "/pool?workers=1&ms=300";
    let first = client.send_get(path);
    let waiting: Vec<_> = (0..100).map(|_| client.send_get(path)).collect();
    client.run_connection_for(ms(20));
    drop(waiting);
    let last = client.send_get(path);
    assert_eq!(client.receive_response(first).unwrap(), plain_response());
    // If the dropped requests were served, this one would time out.
    assert_eq!(client.receive_response(last).unwrap(), plain_response());
}

#[test]
fn prefork_serves_only_so_many_connections() {
    let server = start_server();
    let [mut served, mut waiting] = [connect(&server), connect(&server)];
    assert_eq!(served.request_path("/prefork?serves=1"), plain_response());
    let responses: Vec<_> = (0..3).map(|_| waiting.send_get("/prefork?serves=1")).collect();
    // Unlike over HTTP/1.1, other requests of the connection are served.
    assert_eq!(waiting.request_path("/"), plain_response());
    drop(served);
    for response in responses {
        assert_eq!(waiting.receive_response(response).unwrap(), plain_response());
    }
}

#[test]
fn close_serves_earlier_requests() {
    for path in ["/close", "/eof", "/http10"] {
        let server = start_server();
        let mut client = connect(&server);
        let slow = client.send_get("/delay/50");
        assert_eq!(client.request_path(path), plain_response());
        assert_eq!(client.receive_response(slow).unwrap(), plain_response());
        assert!(client.wait_for_end().is_ok(), "{path}: {:?}", client.ended);
    }
}

#[test]
fn connections_end_silently_as_in_http_1() {
    for (path, answered) in [("/closenohdr", true), ("/garbage", false)] {
        let server = start_server();
        let mut client = connect(&server);
        let slow = client.send_get("/delay/3600000");
        let response = client.send_get(path);
        assert_eq!(client.receive_response(response).ok(), answered.then(plain_response), "{path}");
        assert!(client.receive_response(slow).is_err(), "{path}");
        client.wait_for_end();
    }
}

#[test]
fn broken_responses_concern_only_their_stream() {
    let server = start_server();
    let mut client = connect(&server);
    for path in ["/extra", "/bad-length", "/two-lengths", "/length-and-chunked", "/bad-chunk"] {
        assert_eq!(client.request_reset(path), Some(Reason::PROTOCOL_ERROR), "{path}");
    }
    assert_eq!(client.request_reset("/reset"), Some(Reason::INTERNAL_ERROR));
    assert_eq!(client.request_path("/"), plain_response());
}

#[test]
fn endless_heads_never_end() {
    let server = start_server();
    let mut client = connect(&server);
    let response = client.send_get("/endless-head");
    assert!(client.receive_head(response).is_err());
    assert!(client.wait_for_end().is_err(), "the library of the client gives up");
    assert_eq!(connect(&server).request_path("/"), plain_response());
}

#[test]
fn slow_readers_get_every_byte_without_blocking() {
    let server = start_server();
    let mut slow = connect_with(
        &server,
        client::Builder::new().initial_window_size(1 << 30).initial_connection_window_size(1 << 30),
    );
    let response = slow.send_get("/bytes/50000000");
    let (_, mut body) = slow.receive_head(response).unwrap().into_parts();
    std::thread::sleep(ms(50));
    let mut other = connect(&server);
    assert_eq!(other.request_path("/"), plain_response());
    assert_eq!(slow.receive_body(&mut body).unwrap().len(), 50_000_000);
    assert_eq!(slow.request_path("/"), plain_response());
}

#[test]
fn non_reading_clients_occupy_no_worker() {
    let server = start_server();
    let mut slow = connect_with(
        &server,
        client::Builder::new().initial_window_size(1 << 30).initial_connection_window_size(1 << 30),
    );
    let path = "/pool?workers=1&ms=5";
    let responses = ["/bytes/50000000", path, path, path].map(|path| slow.send_get(path));
    slow.run_connection_for(ms(1));
    let mut client = connect(&server);
    for _ in 0..20 {
        assert_eq!(client.request_path(path), plain_response());
    }
    for (response, length) in responses.into_iter().zip([50_000_000, 13, 13, 13]) {
        assert_eq!(slow.receive_response(response).unwrap().body.len(), length);
    }
}

#[test]
fn small_windows_are_respected() {
    let server = start_server();
    let mut client =
        connect_with(&server, client::Builder::new().initial_window_size(7).initial_connection_window_size(100_000));
    let responses = ["/bytes/1000", "/", "/drip?bytes=100&ms=5"].map(|path| client.send_get(path));
    let lengths = responses.map(|response| client.receive_response(response).unwrap().body.len());
    assert_eq!(lengths, [1000, 13, 100]);
}

#[test]
fn split_prefaces_are_recognized_at_the_beginning() {
    let server = start_server();
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
    let server = start_server();
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
fn every_listed_path_responds() {
    for route in ROUTES {
        let argument = if route.path == "/status/" { "200" } else { "1" };
        let usage = route.usage.replace(['[', ']'], "").replace("=S", "=0").replace("=K", "=1").replace("=M", "=1");
        let usage = usage.replace("=T", "=5s").replace("=N", "=1").replace("MS", argument).replace('N', argument);
        let server = start_server();
        let mut client = connect(&server);
        let response = client.send_get(&format!("{}{usage}", route.path));
        match route.path {
            "/hang" => {
                client.run_connection_for(ms(20));
                drop(response);
                assert_eq!(client.request_path("/"), plain_response());
            }
            "/early/413" => assert_eq!(client.receive_response(response).unwrap(), text_response(413, "too large\n")),
            "/reset"
            | "/garbage"
            | "/extra"
            | "/endless-head"
            | "/bad-length"
            | "/two-lengths"
            | "/length-and-chunked"
            | "/bad-chunk" => assert!(client.receive_response(response).is_err(), "{}", route.path),
            path => assert_eq!(client.receive_response(response).unwrap().status, 200, "{path}"),
        }
    }
}

#[test]
fn a_stopped_server_closes_its_connections() {
    let server = start_server();
    let mut client = connect(&server);
    let waiting = client.send_get("/delay/3600000");
    assert_eq!(client.request_path("/"), plain_response());
    server.stop();
    assert!(client.receive_response(waiting).is_err());
}
