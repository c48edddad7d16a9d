//! nginx as the target of the rows with TLS and HTTP/2: a single process with its own certificate, and a single
//! version, suite and group, so that all generators do equal work.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::work::BenchTarget;

/// Programs that must be installed.
pub const PROGRAMS: [&str; 2] = ["nginx", "openssl"];

/// Time limit for nginx to accept connections.
const PATIENCE: Duration = Duration::from_secs(5);
/// Length of the body at `/bytes/1048576`.
const BODY_BYTES: usize = 1 << 20;

/// nginx's configuration. It serves the same paths as `onrush serve`.
const CONFIGURATION: &str = r#"
daemon off;
master_process off;
worker_rlimit_nofile 20000;
error_log stderr crit;
pid nginx.pid;
events { worker_connections 16384; multi_accept on; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    default_type text/plain;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    http2_max_concurrent_streams 256;
    client_max_body_size 8m;
    client_body_buffer_size 2m;
    server {
        listen 127.0.0.1:PORT backlog=4096;
        ssl_certificate certificate.pem;
        ssl_certificate_key key.pem;
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_ecdh_curve X25519;
        location = / { return 200 "Hello, World!"; }
        location = /close { keepalive_timeout 0; return 200 "Hello, World!"; }
        location = /bytes/1048576 { alias large; }
    }
}
"#;

/// Adds arguments to `command` that start nginx in a separate directory below `directory`. Returns its origin.
///
/// # Errors
///
/// If a file cannot be written, or no port is free.
pub fn prepare(command: &mut Command, directory: &Path, target: BenchTarget) -> io::Result<String> {
    let directory = directory.join("nginx");
    fs::create_dir_all(&directory)?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (scheme, options) = match target {
        BenchTarget::Http1 => ("http", ""),
        BenchTarget::Http2 => ("http", " http2"),
        BenchTarget::TlsHttp2 => ("https", " ssl http2"),
        _ => ("https", " ssl"),
    };
    let configuration = CONFIGURATION.replace("PORT", &format!("{}{options}", address.port()));
    fs::write(directory.join("nginx.conf"), configuration)?;
    fs::write(directory.join("large"), vec![b'x'; BODY_BYTES])?;
    create_certificate(&directory)?;
    command.arg("nginx").arg("-p").arg(&directory).args(["-c", "nginx.conf"]);
    Ok(format!("{scheme}://{address}"))
}

/// Waits until a server accepts connections at `origin`.
///
/// # Errors
///
/// If no server accepts connections in time.
pub fn wait(origin: &str) -> io::Result<()> {
    let address = origin.rsplit('/').next().unwrap_or(origin);
    let began = Instant::now();
    while let Err(error) = TcpStream::connect(address) {
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("nginx does not accept connections at {address}: {error}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Creates a certificate and its key.
fn create_certificate(directory: &Path) -> io::Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(directory).stderr(Stdio::null());
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "certificate.pem"]);
    if openssl.status()?.success() { Ok(()) } else { Err(io::Error::other("openssl could not make the certificate")) }
}
