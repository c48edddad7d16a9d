//! A server that records the bytes it receives.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Number of recorded requests; a run sends far more.
const KEPT: usize = 50;

/// Responds to every request with 12 bytes, or with the head alone to `HEAD`.
pub struct RecordingServer {
    shared: Arc<RecorderLog>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct RecorderLog {
    requests: Mutex<Vec<Vec<u8>>>,
    connections: AtomicU64,
    stopped: AtomicBool,
}

impl RecordingServer {
    /// Starts on a free port of an address.
    pub fn start(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::<RecorderLog>::default();
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { shared, address, acceptor: Some(acceptor) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The first requests, as received.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.shared.requests.lock().unwrap();
        requests.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }

    /// Number of accepted connections.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then ends.
        let _ = TcpStream::connect(self.address);
        let _ = self.acceptor.take().map(JoinHandle::join);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<RecorderLog>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(shared);
        thread::spawn(move || answer(stream.expect("a connection can be accepted"), &shared));
    }
}

/// Serves a connection until the client ends it.
fn answer(mut stream: TcpStream, shared: &RecorderLog) {
    // Responses to requests that arrive together must not wait for each other's acknowledgement.
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        received.extend_from_slice(&buffer[..n]);
        while let Some(length) = request_length(&received) {
            let request: Vec<u8> = received.drain(..length).collect();
            let body = if request.starts_with(b"HEAD ") { "" } else { "hello world!" };
            let mut requests = shared.requests.lock().unwrap();
            if requests.len() < KEPT {
                requests.push(request);
            }
            drop(requests);
            if write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{body}").is_err() {
                return;
            }
        }
    }
}

/// Length of the first request, head and body; `None` if incomplete.
fn request_length(received: &[u8]) -> Option<usize> {
    let head_length = received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..head_length]).to_lowercase();
    let value = head.split("\r\ncontent-length:").nth(1).and_then(|rest| rest.split("\r\n").next());
    let body_length: usize = value.map_or(0, |value| value.trim().parse().expect("a length is a number"));
    (received.len() >= head_length + body_length).then_some(head_length + body_length)
}
