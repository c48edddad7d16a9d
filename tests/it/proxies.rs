use std::fs;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases, target};
use crate::peers::{RefusingPort, accepts, free_address, read_head, server};
use crate::results::{document, number};
use crate::servers::{LoggingServer, assert_no_errors};
use crate::tls_peers::{Authority, TlsServer};

cases! {
    real_proxies_accept_urls_and_tunnels needs "tinyproxy";
    real_proxies_require_logins (Once) needs "tinyproxy";
    real_proxies_refuse_tunnels (Once) needs "tinyproxy";
    nginx_accepts_urls_on_persistent_connections needs "nginx";
    requests_through_proxies_have_exact_bytes (Once);
    tunnel_requests_have_exact_bytes;
    http2_works_with_capable_proxies (Once) needs "nginx";
    scripts_format_requests_for_proxies (Once);
    scripts_cannot_bypass_proxies (Once);
    names_behind_tunnels_are_checked (Once);
    tunnel_refusals_are_named;
    bytes_after_tunnel_responses_are_the_targets;
    dripping_responses_open_tunnels;
    silent_proxies_are_abandoned;
    flooding_proxies_use_bounded_memory;
    recovered_proxies_are_used_again;
    missing_proxies_are_named (Once);
    options_contradicting_proxies_are_refused (Once);
    connect_options_apply_to_proxies;
    tunnels_count_as_connect_time;
    logins_are_in_no_result (Once);
}

/// Starts a proxy with these settings.
struct Tinyproxy {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
    _scratch: Scratch,
}

impl Tinyproxy {
    fn start(settings: &str) -> Self {
        let (scratch, address) = (Scratch::new("tinyproxy"), free_address());
        let log = scratch.path().join("log");
        let text = format!(
            "Port {}\nListen {}\nTimeout 10\nMaxClients 100\nLogLevel Connect\nLogFile \"{}\"\n{settings}",
            address.port(),
            address.ip(),
            log.display()
        );
        let configuration = scratch.file("tinyproxy.conf", text);
        let mut command = Command::new("tinyproxy");
        command.args(["-d", "-c"]).arg(configuration).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(Stdio::null()).spawn().expect("tinyproxy starts");
        let mut proxy = Self { process, address, log, _scratch: scratch };
        assert!(accepts(&mut proxy.process, proxy.address), "tinyproxy does not start");
        proxy
    }

    /// Number of logged requests with a method.
    fn logged(&self, method: &str) -> usize {
        let log = fs::read_to_string(&self.log).expect("it has a log");
        log.lines().filter(|line| line.contains(&format!("): {method} "))).count()
    }
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A TLS server, and the file with the authority that signed its certificate.
fn secure(scratch: &Scratch) -> (TlsServer, PathBuf) {
    let authority = Authority::new();
    let ca = scratch.file("ca.pem", authority.certificate());
    (TlsServer::new(&authority.issue(&["localhost", "127.0.0.1"], |_| {})), ca)
}

/// A run through the proxy at this address.
fn through(onrush: Onrush, proxy: SocketAddr) -> Onrush {
    onrush.word("--http-proxy").word(format!("http://{proxy}"))
}

fn real_proxies_accept_urls_and_tunnels(context: &Context) {
    let (proxy, plain, scratch) = (Tinyproxy::start(""), target(), Scratch::new("proxies"));
    let (secure, ca) = secure(&scratch);
    for onrush in context.both() {
        let url = format!("http://{}/bytes/100", plain.address());
        // The proxy closes the connection after every response, without announcing it.
        let onrush = through(onrush, proxy.address).words("-t2 -c4 -n40 --disable-keepalive");
        let output = onrush.word(url).run();
        assert_eq!((output.code, output.requests()), (0, 40), "{output:?}");
        assert_no_errors(&output);
    }
    assert_eq!(proxy.logged("GET"), 80);
    for onrush in context.both() {
        let onrush = through(onrush, proxy.address).words("-t2 -c4 -n40 --cacert").word(&ca);
        let output = onrush.word(secure.url("/1000")).run();
        assert_eq!((output.code, output.requests()), (0, 40), "{output:?}");
        assert_no_errors(&output);
    }
    // In wrk mode, there is also a probe, which requests no tunnel. A connection may be too late for any request.
    assert!((4..=8).contains(&proxy.logged("CONNECT")));
    assert_eq!(secure.heard(|heard| heard.requests), 80);
    assert!(secure.heard(|heard| heard.handshakes) <= 8);
}

fn real_proxies_require_logins(context: &Context) {
    let (proxy, plain, scratch) = (Tinyproxy::start("BasicAuth me secret\n"), target(), Scratch::new("proxies"));
    let (secure, ca) = secure(&scratch);
    let urls = [format!("http://{}/", plain.address()), secure.url("/")];
    for url in &urls {
        let onrush = context.onrush().words("-c2 -n20 --disable-keepalive --cacert").word(&ca);
        let with = onrush.word("--http-proxy").word(format!("me:secret@{}", proxy.address)).word(url).run_plain();
        assert_eq!((with.code, with.requests(), with.line("Non-2xx")), (0, 20, None), "{with:?}");
    }
    for login in ["", "me:wrong@"] {
        let onrush = |url: &str| {
            let onrush = context.onrush().words("-k -c2 -n20 --disable-keepalive --io").word(context.backend);
            onrush.word("--http-proxy").word(format!("http://{login}{}", proxy.address)).word(url).run_plain()
        };
        let status = if login.is_empty() { 407 } else { 401 };
        let output = onrush(&urls[0]);
        assert_eq!(output.line("Non-2xx"), Some("Non-2xx or 3xx responses: 20"), "{output:?}");
        output.note(&format!("all 20 responses were {status}"));
        let output = onrush(&urls[1]);
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.took < Duration::from_secs(20), "no wait for another response: {output:?}");
        let refused = format!("onrush: no tunnel through the proxy {}: the proxy ", proxy.address);
        assert!(output.note(&refused).contains(&format!("status {status}")), "{output:?}");
        assert!(!output.stderr.contains("wrong"), "{output:?}");
    }
}

fn real_proxies_refuse_tunnels(context: &Context) {
    let proxy = Tinyproxy::start("ConnectPort 443\n");
    let output = through(context.onrush(), proxy.address).words("-k -d1s https://127.0.0.1:8443/").run();
    assert_eq!(output.code, 2, "{output:?}");
    output.note("the proxy does not allow a tunnel to the target (status 403); check the proxy's settings");
    let refusing = RefusingPort::new();
    let proxy = Tinyproxy::start("");
    let output = through(context.onrush(), proxy.address).words("-k -d1s").word(https(refusing.address)).run();
    assert_eq!(output.code, 2, "{output:?}");
    output.note("the proxy could not reach the target (status 50");
}

/// nginx keeps connections, unlike tinyproxy.
fn nginx_accepts_urls_on_persistent_connections(context: &Context) {
    let recorder = RecordingProxy::start(&[]);
    let settings = format!("location /through {{ proxy_pass http://{}; }}", recorder.address);
    let nginx = LoggingServer::nginx_with("", &settings, |_| {});
    let onrush = through(context.onrush(), nginx.address()).words("-t1 -c2 -n40");
    let scratch = Scratch::new("proxies");
    let (output, document) = document(onrush.word("http://www.example.invalid/through?a=1"), &scratch);
    assert_eq!(output.requests(), 40, "{output:?}");
    assert_no_errors(&output);
    assert!(number(&document, "/connections/opened") <= 2.0, "they are kept: {document}");
    assert!(recorder.heads().iter().all(|head| head.starts_with("GET /through?a=1 HTTP/1.0\r\n")));
    assert_eq!(recorder.heads().len(), 40);
}

/// A proxy that records received heads. It starts each connection with `answers`, one per head, then responds `hi` to
/// everything.
struct RecordingProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl RecordingProxy {
    fn start(answers: &'static [&'static [u8]]) -> Self {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        let address = server(move |stream| {
            let mut stream = BufReader::new(stream);
            let usual = std::iter::repeat(&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..]);
            for answer in answers.iter().copied().chain(usual) {
                let head = read_head(&mut stream)?;
                kept.lock().map_err(|_| io::ErrorKind::Other)?.push(head);
                stream.get_mut().write_all(answer)?;
            }
            Ok(())
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no thread panics with the lock").clone()
    }
}

fn requests_through_proxies_have_exact_bytes(context: &Context) {
    let sent = |words: &str, url: &str| {
        let proxy = RecordingProxy::start(&[]);
        let login = if words.contains("login") { "me:pa%3Ass@" } else { "" };
        let onrush = context.onrush().word("--http-proxy").word(format!("http://{login}{}/", proxy.address));
        let output = onrush.words(&words.replace("login", "")).words("-c1 -n1").word(url).run();
        assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
        proxy.heads().concat()
    };
    assert_eq!(
        sent("", "http://www.example.invalid:0080/a?b#c"),
        "GET http://www.example.invalid:0080/a?b HTTP/1.1\r\nHost: www.example.invalid:0080\r\n\r\n"
    );
    assert_eq!(
        sent("login -H A:b -H Host:other.invalid", "[::1]?q"),
        "GET http://[::1]/?q HTTP/1.1\r\nHost: other.invalid\r\nA: b\r\nProxy-Authorization: Basic bWU6cGE6c3M=\r\n\r\n"
    );
    assert_eq!(
        sent("login -H proxy-authorization:own", "h.invalid"),
        "GET http://h.invalid/ HTTP/1.1\r\nHost: h.invalid\r\nproxy-authorization: own\r\n\r\n"
    );
    assert_eq!(
        sent("--basic-auth u:p", "h.invalid"),
        "GET http://h.invalid/ HTTP/1.1\r\nHost: h.invalid\r\nAuthorization: Basic dTpw\r\n\r\n"
    );
}

fn tunnel_requests_have_exact_bytes(context: &Context) {
    let sent = |login: &str, url: &str| {
        let proxy = RecordingProxy::start(&[b"HTTP/1.1 403 No\r\n\r\n"]);
        let onrush = context.onrush().word("--http-proxy").word(format!("{login}{}", proxy.address));
        let output = onrush.words("-k -c1 -d1s -H A:b -H Host:x").word(url).run();
        assert_eq!(output.code, 2, "{output:?}");
        proxy.heads().swap_remove(0)
    };
    let host = |host: &str| format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
    assert_eq!(sent("", "https://h.invalid/a?b"), host("h.invalid:443") + "\r\n");
    let login = "Proxy-Authorization: Basic dTpw\r\n\r\n";
    assert_eq!(sent("u:p@", "https://[::1]:8443/"), host("[::1]:8443") + login);
}

fn http2_works_with_capable_proxies(context: &Context) {
    // Like a proxy, this server accepts requests for any host.
    let nginx = LoggingServer::nginx_with(" http2", "", |_| {});
    let output = through(context.onrush(), nginx.address()).words("--once --http2 http://h.invalid/hello").run();
    assert!(output.code == 0 && output.stdout.contains("\n> :authority: h.invalid\n"), "{output:?}");
    assert_eq!(nginx.log().iter().filter(|line| line.contains("\"GET /hello HTTP/2.0\" 200 ")).count(), 1);
    let proxy = answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let output = through(context.onrush(), proxy).words("-c2 -n4 --http2 http://h.invalid/").run();
    assert!(output.note("answered in HTTP/1.1").contains("; the proxy does not speak HTTP/2: "), "{output:?}");
}

fn scripts_format_requests_for_proxies(context: &Context) {
    let sent = |script: &str, count: u32| {
        let proxy = RecordingProxy::start(&[]);
        let onrush = context.onrush().word("--http-proxy").word(format!("u:p@{}", proxy.address)).lua(script);
        let output = onrush.words(&format!("-t1 -c1 -n{count}")).word("http://h.invalid:81/a?b").run();
        assert_eq!((output.code, output.requests()), (0, u64::from(count)), "{script}: {output:?}");
        let has = |head: &String, line: &str| head.contains(&format!("\r\n{line}\r\n"));
        let heads = proxy.heads();
        let is_whole = |head| has(head, "Host: h.invalid:81") && has(head, "Proxy-Authorization: Basic dTpw");
        let lines = heads.iter().map(|head| head.lines().next().unwrap_or_default().to_owned());
        (lines.collect::<Vec<_>>().join("; "), heads.iter().all(is_whole))
    };
    let line = |path: &str| format!("GET http://h.invalid:81{path} HTTP/1.1");
    assert_eq!(sent("wrk.headers.A = 'b'", 1), (line("/a?b"), true));
    assert_eq!(sent("wrk.path = '/other'", 1), (line("/other"), true));
    let formats = "function request() return wrk.format(nil, wrk.path .. '&c', {A = 'b'}) .. wrk.format() end";
    assert_eq!(sent(formats, 2), (format!("{}; {}", line("/a?b&c"), line("/a?b")), true));
    let whole = "function request() return wrk.format('GET', 'http://other.invalid/x') end";
    assert_eq!(sent(whole, 1), ("GET http://other.invalid/x HTTP/1.1".to_owned(), true));
    let bytes = "function request() return 'GET /x HTTP/1.1\\r\\nHost: y\\r\\n\\r\\n' end";
    assert_eq!(sent(bytes, 1), ("GET /x HTTP/1.1".to_owned(), false));
    let sees = "assert(wrk.path == '/a?b' and wrk.host == 'h.invalid' and wrk.port == '81')\n\
                assert(next(wrk.headers) == nil)";
    assert_eq!(sent(sees, 1), (line("/a?b"), true));
}

fn scripts_cannot_bypass_proxies(context: &Context) {
    let proxy = RecordingProxy::start(&[]);
    let address = proxy.address.to_string();
    let reads = format!("function setup(thread) assert(tostring(thread.addr) == '{address}') end");
    let output = through(context.onrush(), proxy.address).lua(&reads).words("-c1 -n1 http://h.invalid/").run();
    assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
    for sets in ["thread.addr = wrk.addrs[1]", "thread.addr = wrk.lookup('127.0.0.1', 80)[1]"] {
        let script = format!("function setup(thread) {sets} end");
        let output = through(context.onrush(), proxy.address).lua(&script).words("-c1 -n1 http://h.invalid/").run();
        assert_eq!(output.code, 1, "{output:?}");
        output.note("cannot set 'addr' on thread: with --http-proxy all connections go to the proxy");
    }
    let other = "function wrk.resolve(host, service) wrk.addrs = wrk.lookup('127.0.0.1', 80) end";
    let output = through(context.onrush(), proxy.address).lua(other).words("-c1 -n1 http://h.invalid/").run();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("with --http-proxy all connections go to the proxy");
}

/// A proxy of a few lines. Once `opens` has responded, it tunnels to this address, whatever was requested.
fn tunnels_to(
    there: SocketAddr,
    opens: impl Fn(&mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    server(move |mut client| {
        client.set_nodelay(true)?;
        read_head(&mut BufReader::with_capacity(1, client.try_clone()?))?;
        let mut target = TcpStream::connect(there)?;
        target.set_nodelay(true)?;
        opens(&mut client)?;
        let (mut from, mut to) = (client.try_clone()?, target.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
        io::copy(&mut target, &mut client)?;
        client.shutdown(Shutdown::Both)
    })
}

fn ok(client: &mut TcpStream) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
}

fn names_behind_tunnels_are_checked(context: &Context) {
    let scratch = Scratch::new("proxies");
    let (secure, ca) = secure(&scratch);
    let proxy = tunnels_to(secure.address, ok);
    for (host, code) in [("localhost", 0), ("www.example.invalid", 2)] {
        let onrush = through(context.onrush(), proxy).words("-c2 -n10 --cacert").word(&ca);
        let output = onrush.word(format!("https://{host}/")).run();
        assert_eq!(output.code, code, "{output:?}");
    }
    assert_eq!(secure.heard(|heard| heard.name.clone()).as_deref(), Some("localhost"));
    let onrush = through(context.onrush(), proxy).words("-c2 -n10 --cacert").word(&ca);
    let refused = onrush.words("https://other.invalid/").run();
    refused.note("onrush: TLS handshake with other.invalid failed: the server's certificate is for another name");
}

/// A proxy that responds to every tunnel request with these bytes, ends its side, and keeps reading, because a close
/// could overtake the response.
fn answering(answer: &'static [u8]) -> SocketAddr {
    server(move |stream| {
        let mut stream = BufReader::new(stream);
        read_head(&mut stream)?;
        stream.get_mut().write_all(answer)?;
        stream.get_mut().shutdown(Shutdown::Write)?;
        io::copy(&mut stream, &mut io::sink()).map(drop)
    })
}

fn tunnel_refusals_are_named(context: &Context) {
    let table: [(&'static [u8], &str); 12] = [
        (
            b"HTTP/1.1 407 Login\r\n\r\n",
            "the proxy requires a user and a password (status 407); put both in the proxy URL",
        ),
        (b"HTTP/1.0 403 No\r\nContent-Length: 999\r\n\r\nbody", "does not allow a tunnel to the target (status 403)"),
        (
            b"HTTP/1.1 502 Bad\r\n\r\n",
            "the proxy could not reach the target (status 502); the proxy must be able to reach",
        ),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "responded to CONNECT with status 302"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "cannot be read: the server switched to another protocol"),
        (b"", "the proxy closed the connection after CONNECT; the proxy's log may say why"),
        (b"HTTP/1.1 200 OK\r\nA: b", "the proxy closed the connection after CONNECT"),
        (b"SSH-2.0-OpenSSH\r\n", "cannot be read: not an HTTP response; is it the port of an HTTP proxy"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "cannot be read: the server speaks TLS; use the proxy's plain-text port"),
        (b"HTTP/1.1 \x1b]0;x\x07\r\n\r\n", "cannot be read: malformed status line"),
        (b"HTTP/1.1 200 OK\r\n\x1b]0;x\x07\r\n\r\n", "cannot be read: malformed header field"),
        (b"HTTP/1.1 099 OK\r\n\r\n", "cannot be read: malformed status line"),
    ];
    for (number, (answer, expected)) in table.into_iter().enumerate() {
        let proxy = answering(answer);
        let output = through(context.onrush(), proxy).words("-k -c2 -d1s https://h.invalid/").run();
        assert_eq!(output.code, 2, "{expected}: {output:?}");
        assert!(
            output.note(expected).starts_with(&format!("onrush: no tunnel through the proxy {proxy}: ")),
            "{output:?}"
        );
        assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
        // In wrk mode, the run continues for its second, and counts failures. Two cases suffice: a status, and an
        // unreadable response.
        if ![0, 7].contains(&number) {
            continue;
        }
        let output = through(context.called("wrk"), proxy).words("-c2 -t2 -d1 --notes https://h.invalid/").run();
        assert_eq!((output.code, output.requests()), (0, 0), "{output:?}");
        let errors = output.socket_errors("connect");
        assert!((2..=300).contains(&errors), "neither hidden nor hammered: {output:?}");
        assert!(output.note(" × the proxy").contains(expected.split(':').next().unwrap_or_default()), "{output:?}");
        assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    }
}

fn bytes_after_tunnel_responses_are_the_targets(context: &Context) {
    for (answer, expected) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
            "does not speak TLS but responds in plain text: hello",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03\x00\x05early", "violates the TLS protocol"),
        (b"HTTP/1.1 200 OK\r\n\r\n\x00\x01\x02", "the server sends something other than TLS"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "closed by the server during the TLS handshake"),
    ] {
        let proxy = answering(answer);
        let output = through(context.onrush(), proxy).words("-k -c2 -d1s https://h.invalid/").run();
        assert_eq!(output.code, 2, "{output:?}");
        assert!(
            output.note("onrush: TLS handshake with h.invalid failed: ").contains(expected),
            "{expected}: {output:?}"
        );
    }
}

fn dripping_responses_open_tunnels(context: &Context) {
    let scratch = Scratch::new("proxies");
    let (secure, ca) = secure(&scratch);
    let proxy = tunnels_to(secure.address, |client| {
        for byte in b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 200 Connection established\r\nA: b\r\n\r\n" {
            client.write_all(&[*byte])?;
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    });
    let output = through(context.onrush(), proxy).words("-c3 -n30 --cacert").word(ca).word(secure.url("/")).run();
    assert_eq!((output.code, output.requests()), (0, 30), "{output:?}");
    assert_no_errors(&output);
    assert!((1..=3).contains(&secure.heard(|heard| heard.handshakes)));
}

fn silent_proxies_are_abandoned(context: &Context) {
    let proxy = server(|stream| {
        read_head(&mut BufReader::new(stream.try_clone()?))?;
        io::copy(&mut &stream, &mut io::sink()).map(drop)
    });
    // Without the time limit, this run would be too long.
    let onrush = through(context.onrush(), proxy).words("-k -c2 -d30s --timeout 50ms --give-up 200ms");
    let output = onrush.words("https://h.invalid/").run();
    assert_eq!(output.code, 2, "{output:?}");
    output.note("the proxy did not respond to CONNECT; the proxy's log may say why");
    assert!(output.took < Duration::from_secs(20), "{output:?}");
    // Even if nothing is abandoned, the run ends. Late requests are counted, after at least a second.
    let output = through(context.called("wrk"), proxy).words("-c2 -t2 -d1500ms --notes https://h.invalid/").run_plain();
    assert!(output.code == 1 && output.stderr.contains("1500ms"), "wrk knows no fractions: {output:?}");
    let output =
        through(context.called("wrk"), proxy).words("-c2 -t2 -d2 --timeout 1 --notes https://h.invalid/").run();
    assert_eq!(output.socket_errors("connect"), 2, "{output:?}");
    output.note("connect: 2 × the proxy did not respond to CONNECT");
}

fn flooding_proxies_use_bounded_memory(context: &Context) {
    for (beginning, repeated) in [
        ("HTTP/1.1 200 OK\r\n", "A: endless head\r\n"),
        ("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        ("HTTP/1.1 407 Login\r\n\r\n", "endless body "),
        ("HTTP/1.1 200 OK\r\n\r\n", "endless noise "),
    ] {
        // Up to 200 MB during the one second of the run, on both connections together.
        let piece = repeated.repeat((1 << 19) / repeated.len());
        let proxy = server(move |stream| {
            let mut stream = BufReader::new(stream);
            read_head(&mut stream)?;
            stream.get_mut().write_all(beginning.as_bytes())?;
            loop {
                stream.get_mut().write_all(piece.as_bytes())?;
                thread::sleep(Duration::from_millis(5));
            }
        });
        let onrush = through(context.called("wrk"), proxy).words("-t1 -c2 -d1 --io").word(context.backend);
        let (peak_kib, output) = crate::hostile::watch(onrush.words("https://h.invalid/").spawn());
        assert!((1..60_000).contains(&peak_kib), "{peak_kib} KiB: {beginning:?}");
        assert_eq!((output.code, output.requests()), (0, 0), "{output:?}");
        assert!(output.took < Duration::from_secs(20), "{output:?}");
    }
}

fn recovered_proxies_are_used_again(context: &Context) {
    let scratch = Scratch::new("proxies");
    let (secure, ca) = secure(&scratch);
    let asked = AtomicU32::new(0);
    let proxy = tunnels_to(secure.address, move |client| {
        if asked.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
            client.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")?;
            return Err(io::ErrorKind::Other.into());
        }
        ok(client)
    });
    let onrush = through(context.onrush(), proxy).words("-c2 -n60 --requests-per-connection 5 --cacert").word(ca);
    let output = onrush.word(secure.url("/")).run();
    assert_eq!((output.code, output.requests()), (0, 60), "{output:?}");
    assert!(output.socket_errors("connect") >= 3, "{output:?}");
    output.note(" × the proxy could not reach the target (status 503)");
}

fn missing_proxies_are_named(context: &Context) {
    let refusing = RefusingPort::new();
    for url in ["http://h.invalid/", "https://h.invalid/"] {
        let output = through(context.onrush(), refusing.address).words("-d1s").word(url).run();
        assert_eq!(output.code, 2, "{output:?}");
        output.note(&format!("onrush: unable to connect to the proxy {}: connection refused", refusing.address));
        let output = through(context.called("wrk"), refusing.address).words("-d1").word(url).run();
        assert_eq!(output.code, 1, "{output:?}");
        output.note(&format!("unable to connect to {} Connection refused", refusing.address));
    }
    let output = context.onrush().words("--http-proxy http://nosuch.invalid:3128 -d1s http://127.0.0.1/").run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("cannot resolve nosuch.invalid: ");
}

fn options_contradicting_proxies_are_refused(context: &Context) {
    for (words, expected) in [
        ("--connect-to h:1", "--http-proxy and --connect-to: both set where connections go; leave one of the two out"),
        ("--unix /run/app.sock", "--http-proxy and --unix: both set where connections go; leave one of the two out"),
        ("--io sim:/nowhere", "the simulated servers are reached directly"),
        ("--http-proxy socks5://p:1080", "onrush does not support socks5 proxies"),
        ("--http-proxy http://u:pw@p", "--http-proxy \"http://REDACTED@p\": no port"),
    ] {
        let onrush = context.onrush().words("--http-proxy http://127.0.0.1:3128").words(words);
        let output = onrush.words("http://h.invalid/").run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        assert!(output.stderr.contains(expected), "{output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
}

fn connect_options_apply_to_proxies(context: &Context) {
    let proxy = RecordingProxy::start(&[]);
    let port = proxy.address.port();
    let words = format!("-c2 -n4 -4 -b 127.0.0.9 --http-proxy proxy.invalid:{port} --resolve proxy.invalid:127.0.0.1");
    let output = context.onrush().words(&words).words("http://h.invalid/").run();
    assert_eq!((output.code, output.requests(), output.stderr.as_str()), (0, 4, ""), "{output:?}");
    let output = context.onrush().words(&words).words("--resolve h.invalid:127.0.0.1 http://h.invalid/").run_plain();
    output.note(&format!("--resolve h.invalid:127.0.0.1 is ignored: the proxy is for proxy.invalid:{port}"));
    // The environment has no effect.
    let plain = target();
    let onrush = context.onrush().with(|command| {
        command
            .env("http_proxy", format!("http://{}", RefusingPort::new().address))
            .env("ALL_PROXY", "http://127.0.0.1:1");
    });
    let output = onrush.words("-c1 -n1").word(format!("http://{}/", plain.address())).run();
    assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
}

fn tunnels_count_as_connect_time(context: &Context) {
    let scratch = Scratch::new("proxies");
    let (secure, ca) = secure(&scratch);
    let proxy = tunnels_to(secure.address, |client| {
        thread::sleep(Duration::from_millis(200));
        ok(client)
    });
    let onrush = through(context.onrush(), proxy).words("-c1 -n20 --cacert").word(ca).word(secure.url("/"));
    let (output, document) = document(onrush, &scratch);
    assert_eq!(output.requests(), 20, "{output:?}");
    let mean_ms = |view: &str| number(&document, &format!("{view}/mean_us")) / 1e3;
    let (connect, tls) = (mean_ms("/phases/connect"), mean_ms("/phases/tls"));
    assert!(connect - tls >= 200.0, "{connect} {tls}");
    // The tunnel is not part of a latency either: on a single connection, everything together takes no longer than the
    // run.
    let together = connect + 20.0 * mean_ms("/latency/service");
    assert!(together <= 1e3 * number(&document, "/duration_s"), "{document}");
}

fn logins_are_in_no_result(context: &Context) {
    let (proxy, scratch) = (RecordingProxy::start(&[]), Scratch::new("proxies"));
    let path = |name: &str| scratch.path().join(name);
    let run = |words: &str, name: &str| -> (ProgramOutput, String) {
        let url = format!("http://meonly:hunter2@{}", proxy.address);
        let onrush = context.onrush().words(words).words("-c1 -n3 --http-proxy").word(url).words("-o").word(path(name));
        let output = onrush.words("http://h.invalid/").run();
        let text = fs::read_to_string(path(name)).expect("it is there");
        (output, text)
    };
    let (output, text) = run("", "hidden.json");
    assert_eq!((output.code, output.requests()), (0, 3), "{output:?}");
    for secret in ["meonly", "hunter2", "bWVvbmx5"] {
        assert!(!text.contains(secret) && !output.stderr.contains(secret), "{secret}: {text}");
    }
    let redacted = format!("\"http_proxy\": \"http://REDACTED@{}\"", proxy.address);
    assert!(text.contains(&redacted) && text.contains(&format!("--http-proxy http://REDACTED@{}", proxy.address)));
    let (_, kept) = run("--keep-secrets", "kept.json");
    assert!(kept.contains("meonly:hunter2@") && kept.contains("bWVvbmx5Omh1bnRlcjI="), "{kept}");
}

fn https(address: SocketAddr) -> String {
    format!("https://{address}/")
}
