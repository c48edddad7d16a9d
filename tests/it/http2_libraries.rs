//! HTTP/2 with Go's net/http, Caddy and Python's h2, which raises an error for every violation.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::harness::{Context, Scratch, cases, fetch_target_counts, target};
use crate::http2::{assert_complete, body, echoing};
use crate::http2_peers::{number, rows, run};
use crate::servers::LoggingServer;
use crate::tls_peers::{self_signed, write};

cases! {
    go_log_matches_counts needs "go doc net/http.Protocols";
    go_returns_bodies_while_they_arrive needs "go doc net/http.Protocols";
    go_responds_before_body_arrival needs "go doc net/http.Protocols";
    go_sends_hints_and_trailers needs "go doc net/http.Protocols";
    go_ends_connections_without_losing_a_request needs "go doc net/http.Protocols";
    go_shuts_down_without_losing_a_response needs "go doc net/http.Protocols";
    caddy_log_matches_counts needs "caddy";
    caddy_passes_bodies_on needs "caddy";
    python_log_matches_counts needs "python3 -m h2.connection";
    python_pads_what_it_returns needs "python3 -m h2.connection";
    python_ends_connections_without_losing_a_request needs "python3 -m h2.connection";
    python_changes_its_settings_while_bodies_arrive needs "python3 -m h2.connection";
}

/// Method, path, length of the request body, and status and length of the response.
const EXCHANGES: [(&str, &str, usize, u16, u64); 7] = [
    ("GET", "/hello", 0, 200, 13),
    ("GET", "/file.bin", 0, 200, 100_000),
    ("GET", "/hello", 100, 200, 13),
    ("HEAD", "/file.bin", 0, 200, 0),
    ("GET", "/none", 0, 204, 0),
    ("POST", "/hello", 0, 200, 13),
    ("PUT", "/hello", 100_000, 200, 13),
];

fn go_log_matches_counts(context: &Context) {
    let go = go(true);
    exchange(context, &url(&go, true, ""));
    assert_logged(&go.log());
}

fn go_returns_bodies_while_they_arrive(context: &Context) {
    let scratch = Scratch::new("http2-body");
    let path = scratch.file("body", body());
    for (tls, words) in [(false, "--h2-window 30k --h2-connection-window 65535"), (true, "-k")] {
        let go = go(tls);
        let onrush = echoing(context, &path).words("-t1 -c2 -n6 --streams 3").words(words);
        let (output, _) = run(onrush.word(url(&go, tls, "/echo")));
        assert_complete(&output, 6);
        assert_eq!(go.log(), ["POST /echo HTTP/2.0 1048576"; 6]);
    }
}

/// Go either resets the stream after the response, or continues to read between head and body of the response.
fn go_responds_before_body_arrival(context: &Context) {
    let (go, scratch) = (go(false), Scratch::new("http2-body"));
    let body = format!("@{}", scratch.file("body", &body()[..200_000]).display());
    for path in ["/unread", "/early"] {
        let onrush = context.onrush().words("-t1 -c1 -n20 --http2 --streams 4 -X POST --body").word(&body);
        let (output, _) = run(onrush.word(go.url(path)));
        assert_complete(&output, 20);
    }
    let log = go.log();
    assert_eq!(log[..20], ["POST /unread HTTP/2.0 0"; 20]);
    assert_eq!(log[20..], ["POST /early HTTP/2.0 200000"; 20]);
}

fn go_sends_hints_and_trailers(context: &Context) {
    let go = go(false);
    assert_hints_and_trailers(context, &go.url("/hints"));
    assert_eq!(go.log().len(), 40);
}

fn go_ends_connections_without_losing_a_request(context: &Context) {
    let go = go(true);
    assert_ends(context, &url(&go, true, "/end"));
    assert_eq!(go.log().len(), 200);
}

fn go_shuts_down_without_losing_a_response(context: &Context) {
    let go = go(false);
    let words = "-t1 -c2 -d500ms --http2 --streams 8";
    let (output, result) = run(context.onrush().words(words).word(go.url("/stop")));
    // A replacement connection may still wait to be accepted when the listener closes, which resets it. Nothing proves
    // that its request was not served.
    let served = number(&result["http2"]["connections"]);
    let unserved = number(&result["connections"]["opened"]) - served;
    assert!(number(&result["errors"]["read"]) <= 8 * unserved, "{result}");
    let is_known = |row: &Value| row["phase"] == "connect" || row["cause"].as_str().unwrap().contains("ECONNRESET");
    assert!(rows(&result).all(is_known), "{result}");
    assert_eq!(result["http2"]["goaway_received"], json!({ "NO_ERROR": served }), "{result}");
    let logged = go.log().len() as u64;
    assert!(logged >= 300 && output.requests() == logged, "{logged}: {output:?}");
}

fn caddy_log_matches_counts(context: &Context) {
    let caddy = caddy(false, "respond /hello \"Hello, World!\"\nrespond /none 204");
    exchange(context, &caddy.url(""));
    let log = caddy.log();
    assert_eq!(log.len(), 20 * EXCHANGES.len());
    for (at, line) in log.iter().enumerate() {
        let (method, path, _, status, _) = EXCHANGES[at / 20];
        for part in [
            format!("\"proto\": \"HTTP/2.0\", \"method\": \"{method}\""),
            format!("\"uri\": \"{path}\""),
            format!("\"status\": {status}"),
        ] {
            assert!(line.contains(&part), "{part}: {line}");
        }
    }
}

fn caddy_passes_bodies_on(context: &Context) {
    let (behind, scratch) = (target(), Scratch::new("http2-body"));
    let caddy = caddy(true, &format!("reverse_proxy /sink {}", behind.address()));
    let body = format!("@{}", scratch.file("body", body()).display());
    let script = "function response(status, headers, body) if body ~= '1048576' then error(body) end end";
    let onrush = context.onrush().words("-k -t1 -c2 -n6 --http2 --streams 3 -X POST --body").word(body).lua(script);
    let (output, _) = run(onrush.word(url(&caddy, true, "/sink")));
    assert_complete(&output, 6);
    assert_eq!((caddy.log().len(), fetch_target_counts(behind.address()).requests), (6, 6));
}

fn python_log_matches_counts(context: &Context) {
    let python = LoggingServer::python_script(PYTHON);
    exchange(context, &python.url(""));
    assert_hints_and_trailers(context, &python.url("/hints"));
    let mut log = python.log();
    assert_eq!(log.split_off(log.len() - 40), ["GET /hints HTTP/2.0 0"; 40]);
    assert_logged(&log);
}

fn python_pads_what_it_returns(context: &Context) {
    let (python, scratch) = (LoggingServer::python_script(PYTHON), Scratch::new("http2-body"));
    let onrush = echoing(context, &scratch.file("body", body()));
    // Python may take seconds on a busy machine.
    let onrush = onrush.words("-t1 -c2 -n6 --timeout 20s --streams 3 --h2-window 30k --h2-connection-window 65535");
    let (output, _) = run(onrush.word(python.url("/echo")));
    assert_complete(&output, 6);
    assert_eq!(python.log(), ["POST /echo HTTP/2.0 1048576"; 6]);
}

fn python_ends_connections_without_losing_a_request(context: &Context) {
    let python = LoggingServer::python_script(PYTHON);
    assert_ends(context, &python.url("/end"));
    assert_eq!(python.log(), ["GET /end HTTP/2.0 0"; 200]);
}

/// Windows smaller than the used part of bodies in transit, no table, and larger frames.
fn python_changes_its_settings_while_bodies_arrive(context: &Context) {
    let (python, scratch) = (LoggingServer::python_script(PYTHON), Scratch::new("http2-body"));
    let path = scratch.file("body", &body()[..100_000]);
    let onrush = echoing(context, &path).words("-t1 -c2 -n60 --streams 5");
    let (output, _) = run(onrush.word(python.url("/settings")));
    assert_complete(&output, 60);
    assert_eq!(python.log(), ["POST /settings HTTP/2.0 100000"; 60]);
}

/// Sends each of [`EXCHANGES`] twenty times.
fn exchange(context: &Context, base: &str) {
    for (method, path, sent, status, bytes) in EXCHANGES {
        let words = format!("-k -t2 -c2 -n20 --http2 --streams 4 -X {method}");
        let mut onrush = context.onrush().words(&words);
        if sent > 0 {
            onrush = onrush.word("--body").word("x".repeat(sent));
        }
        let (output, result) = run(onrush.word(format!("{base}{path}")));
        assert_complete(&output, 20);
        assert_eq!(result["status"], json!({ status.to_string(): 20 }), "{method} {path}: {result}");
        // The remaining bytes are headers and padding.
        let received = number(&result["bytes_received"]);
        assert!((20 * bytes..20 * (bytes + bytes / 50 + 600)).contains(&received), "{method} {path}: {received}");
    }
}

/// Checks that each of [`EXCHANGES`] was logged twenty times, in turn.
fn assert_logged(log: &[String]) {
    assert_eq!(log.len(), 20 * EXCHANGES.len(), "{log:?}");
    for (at, line) in log.iter().enumerate() {
        let (method, path, sent, ..) = EXCHANGES[at / 20];
        assert_eq!(*line, format!("{method} {path} HTTP/2.0 {sent}"));
    }
}

/// Checks that 40 requests get hints before the response and a trailer after it, whether a script reads them or not.
fn assert_hints_and_trailers(context: &Context, url: &str) {
    let script = r#"
        function response(status, headers, body)
          if status ~= 200 or headers["x-tail"] ~= "end" or body ~= "hello" then error("wrong: " .. status .. body) end
        end
    "#;
    for onrush in [context.onrush(), context.onrush().lua(script)] {
        let (output, result) = run(onrush.words("-t1 -c2 -n20 --http2 --streams 4").word(url));
        assert_complete(&output, 20);
        assert_eq!(number(&result["requests"]["interim"]), 20, "{result}");
    }
}

/// Checks that 200 requests complete at a server that sends GOAWAY after every tenth.
fn assert_ends(context: &Context, url: &str) {
    let (output, result) = run(context.onrush().words("-k -t1 -c2 -n200 --http2 --streams 7").word(url));
    assert_complete(&output, 200);
    assert!(number(&result["connections"]["opened"]) >= 10, "{result}");
    assert!(number(&result["http2"]["goaway_received"]["NO_ERROR"]) >= 10, "{result}");
}

fn url(server: &LoggingServer, tls: bool, path: &str) -> String {
    format!("http{}://{}{path}", if tls { "s" } else { "" }, server.address())
}

fn caddy(tls: bool, settings: &str) -> LoggingServer {
    LoggingServer::caddy(tls, settings, |directory| write(&self_signed(&["127.0.0.1"]), directory))
}

/// A server in Go, which is compiled once.
fn go(tls: bool) -> LoggingServer {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("http2_libraries");
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        std::fs::write(directory.join("server.go"), GO).expect("a file can be written");
        let mut command = Command::new("go");
        command.args(["build", "-o", "server", "server.go"]).current_dir(&directory).env("GOFLAGS", "-mod=mod");
        assert!(command.status().is_ok_and(|status| status.success()), "Go does not compile its server");
        directory.join("server")
    });
    let mut command = Command::new(program);
    LoggingServer::program(command.args(tls.then_some("tls")), |directory| {
        write(&self_signed(&["127.0.0.1"]), directory)
    })
}

/// A line is logged before its response ends.
const GO: &str = r#"package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

func main() {
	server := &http.Server{Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	var requests atomic.Int64
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, read := requests.Add(1), int64(0)
		switch r.URL.Path {
		case "/file.bin":
			w.Write(bytes.Repeat([]byte("x"), 100_000))
		case "/none":
			w.WriteHeader(204)
		case "/echo":
			read, _ = io.Copy(w, r.Body)
		case "/unread":
		case "/early":
			w.(http.Flusher).Flush()
			read, _ = io.Copy(io.Discard, r.Body)
		case "/hints":
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(103)
			w.Header().Set("Trailer", "X-Tail")
			io.WriteString(w, "hello")
			w.Header().Set("X-Tail", "end")
		case "/end":
			if number%10 == 0 {
				w.Header().Set("Connection", "close")
			}
		case "/stop":
			if number == 300 {
				go server.Shutdown(context.Background())
			}
		default:
			read, _ = io.Copy(io.Discard, r.Body)
			io.WriteString(w, "Hello, World!")
		}
		fmt.Fprintln(os.Stderr, r.Method, r.URL.Path, r.Proto, read)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[len(os.Args)-1])
	if err != nil {
		panic(err)
	}
	if os.Args[1] == "tls" {
		server.ServeTLS(listener, "cert.pem", "key.pem")
	} else {
		server.Serve(listener)
	}
	select {} // What has begun before a shutdown completes.
}
"#;

/// Every frame with data is padded.
const PYTHON: &str = r#"import asyncio, sys
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, SettingsAcknowledged, StreamEnded
from h2.settings import SettingCodes

class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.responses, self.is_set, self.is_ended = transport, 0, False, False
        self.heads, self.received, self.unsent = {}, {}, {}
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data):
        try:
            for event in [] if self.is_ended else self.h2.receive_data(data):
                if isinstance(event, RequestReceived):
                    self.heads[event.stream_id], self.received[event.stream_id] = dict(event.headers), b""
                elif isinstance(event, DataReceived):
                    self.received[event.stream_id] += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    self.change_settings(event.stream_id)
                elif isinstance(event, SettingsAcknowledged):
                    # h2 opens windows only when told of data, and none comes where the new settings leave no window.
                    for stream in self.received:
                        self.h2.acknowledge_received_data(0, stream)
                elif isinstance(event, StreamEnded) and not self.is_ended:
                    self.respond(event.stream_id, self.heads.pop(event.stream_id), self.received.pop(event.stream_id))
            for stream in list(self.unsent):
                self.send(stream)
        except Exception as error:
            print("this is not HTTP/2:", repr(error), file=sys.stderr)
            self.transport.write(self.h2.data_to_send())
            self.transport.close()
        self.transport.write(self.h2.data_to_send())

    # Once, when a body has used more than the new window and h2 has not yet given it any back.
    def change_settings(self, stream):
        is_time = self.responses >= 3 and 10_000 < len(self.received[stream]) < 32_000
        if self.heads[stream][":path"] == "/settings" and is_time and not self.is_set:
            self.is_set = True
            self.h2.ping(b"settings")
            self.h2.update_settings({
                SettingCodes.INITIAL_WINDOW_SIZE: 10_000,
                SettingCodes.HEADER_TABLE_SIZE: 0,
                SettingCodes.MAX_FRAME_SIZE: 50_000,
            })

    def respond(self, stream, head, received):
        method, path = head[":method"], head[":path"]
        print(method, path, "HTTP/2.0", len(received), file=sys.stderr)
        self.responses += 1
        if path == "/hints":
            self.h2.send_headers(stream, [(":status", "103"), ("link", "</style.css>; rel=preload")])
        bodies = {"/hello": b"Hello, World!", "/file.bin": b"x" * 100_000, "/hints": b"hello", "/none": b""}
        status = "204" if path == "/none" else "200"
        self.h2.send_headers(stream, [(":status", status)], end_stream=method == "HEAD")
        if method != "HEAD":
            self.unsent[stream] = bodies.get(path, received)
            self.send(stream)
        if path == "/end" and self.responses == 10:
            self.h2.close_connection(last_stream_id=stream)
            self.is_ended = True

    def send(self, stream):
        unsent = self.unsent.pop(stream)
        while unsent:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size) - 256
            if room <= 0:
                self.unsent[stream] = unsent
                return
            self.h2.send_data(stream, unsent[:room], pad_length=255)
            unsent = unsent[room:]
        self.h2.send_headers(stream, [("x-tail", "end")], end_stream=True)

async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"#;
