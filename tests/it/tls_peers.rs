//! Certificates, and a TLS server that records received requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use crate::harness::Scratch;
use crate::peers;

/// A certificate and its key, as PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let (mut params, key) = asked(&[], |_| {});
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("it signs itself") }
    }

    /// The authority's own certificate.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for these names and addresses, whose parameters `change` may alter.
    pub fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let (params, key) = asked(names, change);
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// A self-signed certificate.
pub fn self_signed(names: &[&str]) -> Pair {
    let (params, key) = asked(names, |_| {});
    Pair { certificate: params.self_signed(&key).expect("it signs itself").pem(), key: key.serialize_pem() }
}

fn asked(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> (CertificateParams, KeyPair) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("the names are good");
    change(&mut params);
    (params, KeyPair::generate().expect("a key can be made"))
}

/// Observations of a server about its clients.
#[derive(Default)]
pub struct HandshakeCounts {
    pub handshakes: u64,
    pub resumed: u64,
    pub requests: u64,
    /// Name in the last handshake.
    pub name: Option<String>,
    /// Protocol negotiated in the last handshake.
    pub protocol: Option<Vec<u8>>,
    /// Cause of the first failed handshake.
    pub refusal: Option<String>,
    /// Connections whose client sent close_notify.
    pub farewells: u64,
}

/// A server in this process; runs as long as the process.
pub struct TlsServer {
    pub address: SocketAddr,
    heard: Arc<Mutex<HandshakeCounts>>,
}

impl TlsServer {
    /// A server with this certificate and the library's defaults.
    pub fn new(pair: &Pair) -> Self {
        Self::start(pair, usize::MAX, |_| {})
    }

    /// A server that sends in pieces of `piece` bytes, and whose settings `change` may alter.
    pub fn start(pair: &Pair, piece: usize, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = config(pair);
        change(&mut config);
        let (config, heard) = (Arc::new(config), Arc::new(Mutex::new(HandshakeCounts::default())));
        let writes = Arc::clone(&heard);
        let address = peers::server(move |stream| serve(Arc::clone(&config), ChunkedStream { stream, piece }, &writes));
        Self { address, heard }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub fn heard<T>(&self, look: impl FnOnce(&HandshakeCounts) -> T) -> T {
        look(&self.heard.lock().expect("no thread panics with the lock"))
    }
}

/// Server settings with this certificate, and tickets for resumption.
pub fn config(pair: &Pair) -> ServerConfig {
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("there are versions").with_no_client_auth();
    let mut config = builder.with_single_cert(vec![certificate], key).expect("they fit");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new().expect("there is chance");
    config
}

/// Responds with `Hello, World!`, with the number of bytes in the path, or with the length of the body. Closes after
/// `Connection: close`, except for `/wait`, where the client has to.
fn serve(config: Arc<ServerConfig>, mut stream: ChunkedStream, heard: &Mutex<HandshakeCounts>) -> io::Result<()> {
    stream.stream.set_nodelay(true)?;
    let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).inspect_err(|error| {
            let mut heard = heard.lock().expect("no thread panics with the lock");
            heard.refusal.get_or_insert_with(|| error.to_string());
        })?;
    }
    {
        let mut heard = heard.lock().expect("no thread panics with the lock");
        heard.handshakes += 1;
        heard.resumed += u64::from(connection.handshake_kind() == Some(HandshakeKind::Resumed));
        heard.name = connection.server_name().map(str::to_owned);
        heard.protocol = connection.alpn_protocol().map(<[u8]>::to_vec);
    }
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let (mut path, mut length, mut is_last) = (String::new(), 0, false);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(io::Error::other)?;
            } else if line == "connection: close" {
                is_last = true;
            } else if line.is_empty() {
                break;
            }
        }
        if path == "/until-close" {
            stream.get_mut().write_all(b"HTTP/1.0 200 OK\r\n\r\nx")?;
            stream.get_mut().flush()?;
            std::thread::sleep(std::time::Duration::from_millis(20));
            stream.get_mut().write_all(&[b'x'; 4000])?;
            stream.get_mut().conn.send_close_notify();
            stream.get_mut().flush()?;
            // The transport stays open until the client closes it.
            return stream.read(&mut [0]).map(drop);
        }
        let read = io::copy(&mut stream.by_ref().take(length), &mut io::sink())?;
        heard.lock().expect("no thread panics with the lock").requests += 1;
        let body = match path.trim_start_matches('/').parse() {
            Ok(bytes) => vec![b'x'; bytes],
            Err(_) if length > 0 => format!("{read} bytes").into_bytes(),
            Err(_) => b"Hello, World!".to_vec(),
        };
        if path == "/joined" {
            // Both arrive in one read, together with the end of the transport or just before it.
            let connection = &mut stream.get_mut().conn;
            connection.writer().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
            connection.send_close_notify();
            let mut all = Vec::new();
            while connection.wants_write() {
                connection.write_tls(&mut all)?;
            }
            return stream.get_mut().sock.write_all(&all);
        }
        let close = if is_last { "Connection: close\r\n" } else { "" };
        let head = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all(&[head.as_bytes(), &body].concat())?;
        stream.get_mut().flush()?;
        if is_last && path == "/wait" {
            let is_over = stream.read(&mut [0])? == 0;
            heard.lock().expect("no thread panics with the lock").farewells += u64::from(is_over);
        }
        if is_last {
            stream.get_mut().conn.send_close_notify();
            return stream.get_mut().flush();
        }
    }
}

/// A stream that writes in small pieces.
struct ChunkedStream {
    stream: TcpStream,
    piece: usize,
}

impl Read for ChunkedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for ChunkedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(&bytes[..bytes.len().min(self.piece)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The server for the documents' examples, and the files that they name.
pub fn documented(scratch: &Scratch) -> TlsServer {
    let authority = Authority::new();
    let client = authority.issue(&["client.example"], |_| {});
    scratch.file("ca.pem", authority.certificate());
    scratch.file("client.pem", client.certificate);
    scratch.file("client-key.pem", client.key);
    TlsServer::new(&authority.issue(&["127.0.0.1", "localhost", "www.example.com"], |_| {}))
}

/// Writes certificate and key as files for another process.
pub fn write(pair: &Pair, directory: &Path) {
    std::fs::write(directory.join("cert.pem"), &pair.certificate).expect("a file can be written");
    std::fs::write(directory.join("key.pem"), &pair.key).expect("a file can be written");
}
