//! Real servers, whose access logs count the requests.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::harness::{Context, ProgramOutput, Scratch, cases, signal};
use crate::peers::{ReservedPort, accepts};

cases! {
    nginx_log_matches_counts needs "nginx";
    nginx_log_matches_counts_in_wrk_mode needs "nginx";
    nginx_closing_connections_is_no_error needs "nginx";
    nginx_log_has_exact_request_counts needs "nginx";
    nginx_files_arrive_complete needs "nginx";
    python_log_matches_counts needs "python3";
    python_log_matches_counts_with_keep_alive needs "python3";
    python_log_has_exact_request_counts needs "python3";
}

/// A file on every server.
const FILE: &str = "file.bin";
const FILE_BYTES: usize = 100_000;

fn nginx_log_matches_counts(context: &Context) {
    let nginx = LoggingServer::nginx(1000);
    let output = context.onrush().words("-t2 -c10 -d500ms").word(nginx.url("/hello")).run();
    assert_counted(&output, &nginx.log(), 10);
}

fn nginx_log_matches_counts_in_wrk_mode(context: &Context) {
    let nginx = LoggingServer::nginx(1000);
    let output = context.called("wrk").words("-t2 -c10 -n1000").word(nginx.url("/hello")).run();
    assert_counted(&output, &nginx.log(), 10);
}

fn nginx_closing_connections_is_no_error(context: &Context) {
    for onrush in [context.onrush(), context.called("wrk")] {
        let nginx = LoggingServer::nginx(10);
        let output = onrush.words("-t2 -c10 -n1000").word(nginx.url("/hello")).run();
        assert_counted(&output, &nginx.log(), 10);
        assert_eq!(output.requests(), 1000, "connections were replaced: {output:?}");
    }
}

fn nginx_log_has_exact_request_counts(context: &Context) {
    for keepalive_requests in [1000, 10] {
        let nginx = LoggingServer::nginx(keepalive_requests);
        let output = context.onrush().words("-t2 -c7 -n500").word(nginx.url("/hello")).run();
        assert_eq!((output.code, output.requests(), nginx.log().len()), (0, 500, 500), "{output:?}");
        assert_no_errors(&output);
    }
}

fn nginx_files_arrive_complete(context: &Context) {
    let nginx = LoggingServer::nginx(1000);
    let output = context.onrush().words("-t2 -c4 -n200").word(nginx.url(&format!("/{FILE}"))).run();
    assert_eq!((output.code, output.requests()), (0, 200), "{output:?}");
    assert_no_errors(&output);
    let log = nginx.log();
    let whole = format!(" 200 {FILE_BYTES} ");
    assert_eq!(log.iter().filter(|line| line.contains(&whole)).count(), 200, "{log:?}");
    // 200 responses, each of 100,000 bytes and a head of a few hundred bytes.
    let read_mb: f64 =
        output.stdout.split("s, ").nth(1).and_then(|text| text.split("MB read").next()?.parse().ok()).unwrap();
    assert!((19.07..19.2).contains(&read_mb), "{output:?}");
}

fn python_log_matches_counts(context: &Context) {
    for (onrush, end) in [(context.onrush(), "-d500ms"), (context.called("wrk"), "-n100")] {
        let python = LoggingServer::python("HTTP/1.0");
        let output = onrush.words("-t1 -c4").words(end).word(python.url(&format!("/{FILE}"))).run();
        assert_counted(&output, &python.log(), 4);
    }
}

fn python_log_matches_counts_with_keep_alive(context: &Context) {
    let python = LoggingServer::python("HTTP/1.1");
    let output = context.onrush().words("-t2 -c8 -d500ms").word(python.url(&format!("/{FILE}"))).run();
    assert_counted(&output, &python.log(), 8);
}

fn python_log_has_exact_request_counts(context: &Context) {
    for protocol in ["HTTP/1.0", "HTTP/1.1"] {
        let python = LoggingServer::python(protocol);
        let output = context.onrush().words("-t2 -c20 -n100").word(python.url(&format!("/{FILE}"))).run();
        assert_eq!((output.code, output.requests(), python.log().len()), (0, 100, 100), "{protocol}: {output:?}");
        assert_no_errors(&output);
    }
}

/// Checks that the log contains every counted request, and at most one more per connection: the request in flight at
/// the end.
pub fn assert_counted(output: &ProgramOutput, log: &[String], connections: u64) {
    assert_eq!(output.code, 0, "{output:?}");
    output.assert_standard();
    assert_no_errors(output);
    let (counted, logged) = (output.requests(), log.len() as u64);
    assert!(counted > 0);
    assert!((counted..=counted + connections).contains(&logged), "{counted} counted, {logged} logged: {output:?}");
}

pub fn assert_no_errors(output: &ProgramOutput) {
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
    assert_eq!(output.line("Non-2xx"), None, "{output:?}");
    assert!(!output.stderr.contains("got no complete response") && !output.stderr.contains('×'), "{output:?}");
}

/// A server that runs until its log is read, or this is dropped.
pub struct LoggingServer {
    process: Child,
    address: SocketAddr,
    scratch: Scratch,
    _reserved: Option<ReservedPort>,
    log: PathBuf,
    /// The signal that ends the server.
    end: Signal,
}

impl LoggingServer {
    /// nginx in the foreground, with a separate configuration.
    pub fn nginx(keepalive_requests: u32) -> Self {
        Self::nginx_with("", &format!("keepalive_requests {keepalive_requests};"), |_| {})
    }

    /// nginx with this many worker processes.
    pub fn nginx_workers(workers: u32) -> Self {
        Self::nginx_as(&format!("master_process on;\nworker_processes {workers};"), "", "", |_| {})
    }

    /// nginx with additions to `listen` and to the server settings, and further files.
    pub fn nginx_with(listen: &str, settings: &str, prepare: impl Fn(&Path)) -> Self {
        Self::nginx_as("master_process off;", listen, settings, prepare)
    }

    fn nginx_as(processes: &str, listen: &str, settings: &str, prepare: impl Fn(&Path)) -> Self {
        let (scratch, reserved) = (scratch(), ReservedPort::new());
        prepare(scratch.path());
        let configuration = nginx_conf(scratch.path(), reserved.address, processes, listen, settings);
        let configuration = scratch.file("nginx.conf", configuration);
        let mut command = Command::new(program("nginx"));
        command.arg("-p").arg(scratch.path()).arg("-c").arg(configuration).args(["-e", "error.log"]);
        Self::listening(command.stderr(Stdio::null()), scratch, reserved, Signal::QUIT)
    }

    /// Apache, with HTTP/2 in plain text only.
    pub fn apache(settings: &str) -> Self {
        let (scratch, reserved) = (scratch(), ReservedPort::new());
        let (root, address) = (scratch.path().display(), reserved.address);
        let modules: String = ["mpm_event", "authz_core", "http2"]
            .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
            .concat();
        let configuration = format!(
            "ServerRoot {root}\nServerName localhost\nListen {address}\nPidFile {root}/pid\nErrorLog {root}/error.log\n\
             {modules}User daemon\nGroup nogroup\nProtocols h2c\nDocumentRoot {root}\n{settings}\n\
             LogFormat \"\\\"%r\\\" %>s %O\" short\nCustomLog {root}/access.log short\n\
             <Directory {root}>\nRequire all granted\n</Directory>\n"
        );
        let configuration = scratch.file("httpd.conf", configuration);
        let mut command = Command::new(program("apache2"));
        command.args(["-D", "FOREGROUND", "-f"]).arg(configuration);
        Self::listening(command.stderr(Stdio::null()), scratch, reserved, Signal::WINCH)
    }

    /// nghttp2's server over plain HTTP, without a log.
    pub fn nghttpd(options: &[&str]) -> Self {
        let (scratch, reserved) = (scratch(), ReservedPort::new());
        let mut command = Command::new("nghttpd");
        command.args(["--no-tls", "-a", "127.0.0.1", "-d"]).arg(scratch.path()).args(options);
        command.arg(reserved.address.port().to_string());
        Self::listening(command.stdout(Stdio::null()).stderr(Stdio::null()), scratch, reserved, Signal::KILL)
    }

    /// Caddy, over plain HTTP, or over TLS with the certificate and key in its directory. It logs a line of words and
    /// JSON per request.
    pub fn caddy(tls: bool, settings: &str, prepare: impl Fn(&Path)) -> Self {
        let (scratch, reserved) = (scratch(), ReservedPort::new());
        prepare(scratch.path());
        let (scheme, pair) = if tls { ("https", "tls cert.pem key.pem") } else { ("http", "") };
        let configuration = format!(
            "{{\nadmin off\nauto_https off\nservers {{\nprotocols h1 h2 h2c\n}}\n}}\n{scheme}://{} {{\n{pair}\n\
             log {{\noutput file access.log\nformat console\n}}\n{settings}\nroot * .\nfile_server\n}}\n",
            reserved.address
        );
        let configuration = scratch.file("Caddyfile", configuration);
        let mut command = Command::new("caddy");
        command.args(["run", "--config"]).arg(configuration).current_dir(scratch.path());
        // Caddy saves its configuration there.
        command.envs(["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"].map(|name| (name, scratch.path())));
        Self::listening(command.stderr(Stdio::null()), scratch, reserved, Signal::TERM)
    }

    fn listening(command: &mut Command, scratch: Scratch, reserved: ReservedPort, end: Signal) -> Self {
        let process = command.stdin(Stdio::null()).spawn().expect("the server starts");
        let (address, log) = (reserved.address, scratch.path().join("access.log"));
        let mut server = Self { process, address, scratch, _reserved: Some(reserved), log, end };
        assert!(accepts(&mut server.process, address), "the server does not start");
        server
    }

    /// Python's server with a connection per request (`HTTP/1.0`) or with keep-alive (`HTTP/1.1`).
    pub fn python(protocol: &str) -> Self {
        let scratch = scratch();
        let script = scratch.file("server.py", PYTHON);
        Self::saying(Command::new("python3").arg(script).arg(protocol), scratch)
    }

    /// Node with a script that first prints its server's port.
    pub fn node(script: &str) -> Self {
        let scratch = scratch();
        let script = scratch.file("server.js", script);
        Self::saying(Command::new("node").arg(script), scratch)
    }

    /// Python with a script that first prints its server's port.
    pub fn python_script(script: &str) -> Self {
        let scratch = scratch();
        let script = scratch.file("server.py", script);
        Self::saying(Command::new("python3").arg(script), scratch)
    }

    /// A program that listens on the port in its last argument, and logs on standard error.
    pub fn program(command: &mut Command, prepare: impl Fn(&Path)) -> Self {
        let (scratch, reserved) = (scratch(), ReservedPort::new());
        prepare(scratch.path());
        let log = File::create(scratch.path().join("access.log")).expect("a log");
        command.current_dir(scratch.path()).arg(reserved.address.port().to_string()).stderr(log);
        Self::listening(command, scratch, reserved, Signal::KILL)
    }

    /// A server that prints its port in the first line of output.
    fn saying(command: &mut Command, scratch: Scratch) -> Self {
        let log = scratch.path().join("access.log");
        command.current_dir(scratch.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.stderr(File::create(&log).expect("a log")).spawn().expect("the server starts");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("the script says its port");
        let port: u16 = line.trim().parse().expect("the script says its port");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Self { process, address, scratch, _reserved: None, log, end: Signal::KILL }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Directory of the server's files.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Ends the server and reads its log, one line per request.
    pub fn log(mut self) -> Vec<String> {
        // nginx, Apache and Caddy finish their work and write their last lines. The others write each line at once, and
        // may have been started with a gentler signal ignored.
        signal(&self.process, self.end);
        let _ = self.process.wait();
        let log = fs::read_to_string(&self.log).expect("the log can be read");
        log.lines().filter(|line| line.contains("HTTP/")).map(str::to_owned).collect()
    }
}

impl Drop for LoggingServer {
    fn drop(&mut self) {
        // If killed, nginx and Apache would leave their workers running.
        signal(&self.process, if self.end == Signal::KILL { Signal::KILL } else { Signal::TERM });
        let _ = self.process.wait();
    }
}

/// A directory with [`FILE`], which nginx can read whatever user it runs as.
fn scratch() -> Scratch {
    let scratch = Scratch::new("server");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    scratch.file(FILE, vec![b'x'; FILE_BYTES]);
    scratch
}

/// nginx's configuration: it stays in the foreground, and all of its paths are in `directory`.
fn nginx_conf(directory: &Path, address: SocketAddr, processes: &str, listen: &str, settings: &str) -> String {
    let directory = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {directory}/{name};\n"))
        .concat();
    format!(
        "daemon off;
{processes}
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 10240; }}
http {{
{temporary}    access_log {directory}/access.log;
    gzip off;
    server {{
        listen {address}{listen};
        {settings}
        root {directory};
        location /hello {{ return 200 \"Hello, World!\"; }}
    }}
}}
"
    )
}

const PYTHON: &str = r#"import http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = sys.argv[1]

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64

server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Debian keeps servers outside a user's `PATH`.
fn program(name: &str) -> PathBuf {
    let there = Path::new("/usr/sbin").join(name);
    if there.is_file() { there } else { PathBuf::from(name) }
}
