//! TLS servers in separate processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::harness::Scratch;
use crate::tls_peers::{Pair, write};

/// A server process, which is killed when this is dropped.
pub struct Process {
    child: Child,
    port: u16,
    /// Directory of its files.
    pub scratch: Scratch,
    /// The lines of output after the one with the port.
    lines: Option<Receiver<String>>,
}

impl Process {
    /// Python's `http.server` over TLS; it requests a client certificate signed by `ca`.
    pub fn python(pair: &Pair, ca: &str) -> Self {
        let scratch = Scratch::new("tls");
        write(pair, scratch.path());
        scratch.file("ca.pem", ca);
        let script = scratch.file("server.py", PYTHON);
        let mut command = Command::new("python3");
        let mut process = Self::start(command.arg(script), scratch);
        process.listens(|line| line.trim().parse().ok());
        process
    }

    /// OpenSSL's own test server.
    pub fn openssl(pair: &Pair, options: &[&str]) -> Self {
        let scratch = Scratch::new("tls");
        write(pair, scratch.path());
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"]).args(options);
        let mut process = Self::start(&mut command, scratch);
        process.listens(|line| line.strip_prefix("ACCEPT")?.trim().rsplit(':').next()?.parse().ok());
        process
    }

    fn start(command: &mut Command, scratch: Scratch) -> Self {
        let command = command.current_dir(scratch.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self { child: command.stderr(Stdio::null()).spawn().expect("it starts"), port: 0, scratch, lines: None }
    }

    /// Waits for the line with the port. The other lines are read, too, because the process would otherwise block.
    fn listens(&mut self, port: fn(&str) -> Option<u16>) {
        let output = BufReader::new(self.child.stdout.take().expect("it is piped"));
        let mut lines =
            output.split(b'\n').map_while(Result::ok).map(|line| String::from_utf8_lossy(&line).into_owned());
        self.port = lines.find_map(|line| port(&line)).expect("it says its port");
        let (said, heard) = mpsc::channel();
        self.lines = Some(heard);
        thread::spawn(move || lines.for_each(|line| drop(said.send(line))));
    }

    /// Takes standard input, and the lines of output after the one with the port. Panics the second time.
    pub fn take_streams(&mut self) -> (ChildStdin, Receiver<String>) {
        (self.child.stdin.take().expect("it is piped"), self.lines.take().expect("it is heard"))
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.address())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PYTHON: &str = r#"import http.server, ssl

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def finish(self):
        super().finish()
        # Says that nothing more will come, and closes when the client has said so too, as asyncio does.
        self.request.unwrap()

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
context.load_verify_locations("ca.pem")
context.verify_mode = ssl.CERT_REQUIRED

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64

    def finish_request(self, request, address):
        super().finish_request(context.wrap_socket(request, server_side=True), address)

    def handle_error(self, request, address):
        pass

server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;
