use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rcgen::{CertificateParams, date_time_ymd};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{Context, ProgramOutput, Scratch, cases, target, url, wait_until};
use crate::http2_peers::settings;
use crate::peers::{read_head, server, server_at};
use crate::servers::{LoggingServer, assert_counted, assert_no_errors};
use crate::tls_peers::{Authority, Pair, TlsServer, config, self_signed, write};
use crate::tls_processes::Process;

cases! {
    nginx_speaks_both_versions needs "nginx";
    nginx_sends_large_files_completely needs "nginx";
    nginx_receives_client_certificates needs "nginx";
    plain_requests_at_a_tls_port_of_nginx_are_named needs "nginx";
    python_requests_certificates_after_handshakes needs "python3";
    openssl_tickets_are_resumed needs "openssl";
    openssl_renegotiation_is_refused needs "openssl";
    self_signed_openssl_certificates_are_accepted (Once) needs "openssl";
    version_1_certificates_are_accepted (Once) needs "openssl";
    uncheckable_certificates_are_named_with_remedy (Once) needs "openssl";
    client_certificates_may_be_version_1 (Once) needs "openssl";
    slots_resume_their_own_sessions;
    negotiated_parameters_are_shown (Once);
    names_are_sent_unless_addresses (Once);
    bodies_arrive_complete_both_ways;
    closes_with_responses_are_no_error;
    partially_received_requests_are_not_resent;
    first_requests_leave_with_the_handshake;
    records_may_arrive_byte_by_byte;
    bad_certificates_are_refused (Once);
    servers_receive_the_alert;
    wrk_mode_accepts_any_certificate;
    broken_handshakes_are_named;
    silent_servers_are_abandoned;
    recovered_servers_are_used_again;
    plain_text_and_tls_are_distinguished;
    unusable_files_and_lists_are_named (Once);
    unsupported_tls_is_reported (Once) needs "openssl";
}

/// Options for a run of exactly 20 requests.
const N20: &str = "-t2 -c4 -n20";

fn nginx_speaks_both_versions(context: &Context) {
    let authority = Authority::new();
    let pair = authority.issue(&["127.0.0.1"], |_| {});
    let scratch = Scratch::new("tls");
    let ca = scratch.file("ca.pem", authority.certificate());
    for version in ["1.2", "1.3"] {
        let settings = format!("{NGINX_PAIR} ssl_protocols TLSv{version};");
        let nginx = LoggingServer::nginx_with(" ssl", &settings, |directory| write(&pair, directory));
        let url = format!("https://{}/hello", nginx.address());
        let output = context.onrush().words("-t2 -c10 -n200 --cacert").word(&ca).word(&url).run();
        assert_no_errors(&output);
        let compat = context.called("wrk").words("-t2 -c10 -n200").word(&url).run();
        assert_no_errors(&compat);
        let closing = context.onrush().words("-k -H Connection:close").words(N20).word(&url).run();
        assert_eq!((closing.code, closing.requests()), (0, 20), "{closing:?}");
        assert_no_errors(&closing);
        let log = nginx.log();
        let counted = output.requests() + compat.requests() + closing.requests();
        assert!((counted..=counted + 20).contains(&(log.len() as u64)), "{counted} counted, {} logged", log.len());
    }
}

fn nginx_sends_large_files_completely(context: &Context) {
    let pair = self_signed(&["localhost"]);
    let nginx = LoggingServer::nginx_with(" ssl", NGINX_PAIR, |directory| {
        write(&pair, directory);
        std::fs::write(directory.join("large"), vec![b'x'; 1 << 20]).expect("a file can be written");
    });
    let url = format!("https://{}/large", nginx.address());
    let output = context.onrush().words("-k").words(N20).word(url).run();
    assert_counted(&output, &nginx.log(), 0);
    assert!(output.stdout.contains("20.00MB read") || output.stdout.contains("20.01MB read"), "{output:?}");
}

fn nginx_receives_client_certificates(context: &Context) {
    let authority = Authority::new();
    let pair = authority.issue(&["localhost"], |_| {});
    let client = authority.issue(&["client.example"], |_| {});
    let scratch = Scratch::new("tls");
    write(&client, scratch.path());
    let ca = authority.certificate();
    for version in ["1.2", "1.3"] {
        let settings =
            format!("{NGINX_PAIR} ssl_protocols TLSv{version}; ssl_client_certificate ca.pem; ssl_verify_client on;");
        let nginx = LoggingServer::nginx_with(" ssl", &settings, |directory| {
            write(&pair, directory);
            std::fs::write(directory.join("ca.pem"), &ca).expect("a file can be written");
        });
        let url = format!("https://{}/hello", nginx.address());
        let identity = |file: &str| scratch.path().join(file);
        let onrush = context.onrush().words("-k").words(N20).words("--cert").word(identity("cert.pem"));
        let output = onrush.words("--key").word(identity("key.pem")).word(&url).run();
        assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
        assert_no_errors(&output);
        // nginx completes the handshake, and responds with a status.
        let without = context.onrush().words("-k -n10 -c2").word(&url).run();
        assert_eq!(without.line("Non-2xx"), Some("Non-2xx or 3xx responses: 10"), "{without:?}");
    }
}

fn plain_requests_at_a_tls_port_of_nginx_are_named(context: &Context) {
    let pair = self_signed(&["localhost"]);
    let nginx = LoggingServer::nginx_with(" ssl", NGINX_PAIR, |directory| write(&pair, directory));
    let url = format!("http://{}/", nginx.address());
    let output = context.onrush().words("-t1 -c2 -n4").word(&url).run();
    assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
    output.note("all 4 responses were 400: the server expects TLS at this port; write https://");
    let lab = Scratch::new("tls");
    let words = format!("vs -n20 -c2 --rounds 1 --warmup 1ms --io {}", context.backend);
    let onrush = context.onrush().words(&words).word(&url).word(&url);
    let output = onrush.with(|command| _ = command.current_dir(lab.path())).run_plain();
    let doubt = format!("{url} responds with status 400: the server expects TLS at this port; write https://");
    assert!(output.stderr.contains(&doubt), "{output:?}");
}

fn python_requests_certificates_after_handshakes(context: &Context) {
    let authority = Authority::new();
    let client = authority.issue(&["client.example"], |_| {});
    let python = Process::python(&authority.issue(&["localhost"], |_| {}), &authority.certificate());
    write(&client, python.scratch.path());
    let identity = python.scratch.path().join("both.pem");
    std::fs::write(&identity, client.certificate + &client.key).expect("a file can be written");
    let output = context.onrush().words("-k").words(N20).words("--cert").word(&identity).word(python.url()).run();
    assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
    assert_no_errors(&output);
    let stranger = Authority::new().issue(&["client.example"], |_| {});
    std::fs::write(&identity, stranger.certificate + &stranger.key).expect("a file can be written");
    let wrong = context.onrush().words("-k -c1 -d1s --cert").word(&identity).word(python.url()).run();
    let expected = "TLS alert unknown CA (48) from the server";
    assert!(wrong.note(expected).contains("the server rejects the client certificate"), "{wrong:?}");
    // In TLS 1.3, the client's handshake is complete before the server checks the certificate.
    for (version, alert) in [("1.3", "certificate required (116)"), ("1.2", "handshake failure (40)")] {
        let onrush = context.onrush().words("-k -c1 -d1s --tls-max").word(version).word(python.url());
        let output = onrush.run();
        assert!(output.stderr.contains(&format!("TLS alert {alert} from the server")), "{output:?}");
        assert_ne!(output.code, 0, "{output:?}");
    }
}

fn openssl_tickets_are_resumed(context: &Context) {
    let openssl = Process::openssl(&self_signed(&["localhost"]), &["-www"]);
    for version in ["1.2", "1.3"] {
        let onrush = context.onrush().words("-k -t1 -c1 -n20 --tls-max").word(version).word(openssl.url());
        let output = onrush.run();
        assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
        assert_no_errors(&output);
    }
    // openssl's page has counters: with one slot, every connection but the first of each run is resumed.
    let mut client = Command::new("openssl");
    client.args(["s_client", "-quiet", "-connect", &openssl.address()]);
    let mut client =
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    client.stdin.take().expect("it is piped").write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it reads");
    let page = String::from_utf8(client.wait_with_output().expect("it ends").stdout).expect("valid UTF-8");
    let hits = page.lines().find(|line| line.contains("session cache hits")).unwrap_or_else(|| panic!("{page}"));
    let hits: u64 = hits.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(hits >= 2 * 19, "{hits} of 40 were resumed: {page}");
}

fn openssl_renegotiation_is_refused(context: &Context) {
    let mut openssl = Process::openssl(&self_signed(&["localhost"]), &["-tls1_2"]);
    let (mut input, lines) = openssl.take_streams();
    let typist = thread::spawn(move || {
        let mut typed = "r\n";
        for _ in lines.iter().filter(|line| line.starts_with("GET / ")) {
            let _ = input.write_all(typed.as_bytes()).and_then(|()| input.flush());
            typed = "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi\n";
            // openssl interprets only the first letter of a read as a command.
            thread::sleep(Duration::from_millis(200));
            let _ = input.write_all(typed.as_bytes()).and_then(|()| input.flush());
        }
    });
    let output = context.onrush().words("-k -c1 -n1 --give-up 3s").word(openssl.url()).run();
    drop(openssl);
    typist.join().expect("it types");
    // The library refuses with an alert. The reason depends on openssl's version, but it is named.
    let is_named = output.requests() == 1 || output.stderr.contains("read: ") || output.stderr.contains("TLS");
    assert!(is_named && !output.stderr.contains("bug"), "{output:?}");
}

fn self_signed_openssl_certificates_are_accepted(context: &Context) {
    let scratch = Scratch::new("tls");
    let command = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=client";
    let server = TlsServer::new(&made_by_openssl(&scratch, command));
    let output = context.onrush().words("-k").words(N20).word(server.url("/")).run();
    assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
    let named = context.onrush().words("--cacert").word(scratch.path().join("cert.pem")).words(N20);
    let output = named.word(server.url("/")).run();
    assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
    let refused = context.onrush().words("-d1s").word(server.url("/")).run();
    assert_refused(
        &refused,
        "the server's certificate is self-signed; trust the certificate with --cacert FILE, or use -k",
    );
}

/// `cert.pem` and `key.pem` from a script with one openssl command per line.
fn made_by_openssl(scratch: &Scratch, script: &str) -> Pair {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let made = Command::new("openssl").args(line.split(' ')).current_dir(scratch.path()).output();
        let made = made.expect("openssl runs");
        assert!(made.status.success(), "{line}: {}", String::from_utf8_lossy(&made.stderr));
    }
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).expect("openssl wrote it");
    Pair { certificate: read("cert.pem"), key: read("key.pem") }
}

/// Commands for a self-signed certificate of version 1 with such a key.
fn version_1(key: &str) -> String {
    format!(
        "genpkey -algorithm {key} -out key.pem
        req -new -key key.pem -out request.pem -subj /CN=localhost
        x509 -req -in request.pem -signkey key.pem -out cert.pem -days 2"
    )
}

/// Commands for a certificate signed by `ca.pem`.
const SIGNED_BY_ANOTHER: &str =
    "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
    req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=localhost
    x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2";

/// The most common recipe for a certificate produces one of version 1.
fn version_1_certificates_are_accepted(context: &Context) {
    for key in ["RSA -pkeyopt rsa_keygen_bits:2048", "EC -pkeyopt ec_paramgen_curve:P-256", "ED25519"] {
        let scratch = Scratch::new("tls-made");
        let pair = made_by_openssl(&scratch, &version_1(key));
        let openssl = Process::openssl(&pair, &["-www"]);
        let another = scratch.file("another.pem", self_signed(&["localhost"]).certificate);
        for version in ["1.2", "1.3"] {
            let onrush = context.onrush().words("-t1 -c2 -n4 --tls-max").word(version).word("--cacert");
            let output = onrush.word(scratch.path().join("cert.pem")).word(openssl.url()).run();
            assert_eq!((output.code, output.requests()), (0, 4), "{key}: {output:?}");
            let onrush = context.onrush().words("-t1 -c2 -n4 --tls-max").word(version).word("--cacert");
            let refused = onrush.word(&another).word(openssl.url()).run();
            assert_refused(
                &refused,
                "the server's certificate is self-signed; trust the certificate with --cacert FILE, or use -k",
            );
        }
    }
    // A holder of the certificate with another key is not the server.
    let scratch = Scratch::new("tls-made");
    let stolen = made_by_openssl(&scratch, &version_1("EC -pkeyopt ec_paramgen_curve:P-256"));
    let thief = Pair { certificate: stolen.certificate, key: self_signed(&["localhost"]).key };
    let key = PrivateKeyDer::from_pem_slice(thief.key.as_bytes()).expect("a key");
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key).expect("it is read");
    let chain = vec![CertificateDer::from_pem_slice(thief.certificate.as_bytes()).expect("a certificate")];
    let resolver = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    let server = TlsServer::start(&self_signed(&["localhost"]), usize::MAX, move |config| {
        config.cert_resolver = Arc::new(resolver);
    });
    for version in ["1.2", "1.3"] {
        let onrush = context.onrush().words("-t1 -c1 -n2 --tls-max").word(version).word("--cacert");
        let output = onrush.word(scratch.path().join("cert.pem")).word(server.url("/")).run();
        let flaw = "the server's certificate is not acceptable: a signature does not match its key; use -k to accept \
                    the certificate";
        assert_refused(&output, flaw);
    }
}

fn uncheckable_certificates_are_named_with_remedy(context: &Context) {
    let new = "; use -k to accept the certificate; this makes another: openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem \
               -subj /CN=HOST -addext subjectAltName=DNS:HOST";
    let small = version_1("RSA -pkeyopt rsa_keygen_bits:1024");
    let small = format!("{small}\nx509 -in cert.pem -out ca.pem");
    for (script, flaw) in [
        (SIGNED_BY_ANOTHER, "it is of X.509 version 1, not 3, and names no host"),
        (&small, "it has an RSA key of 1024 bits; 2048 to 8192 are supported"),
    ] {
        let scratch = Scratch::new("tls-made");
        let pair = made_by_openssl(&scratch, script);
        let openssl = Process::openssl(&pair, &["-www", "-cipher", "DEFAULT@SECLEVEL=0"]);
        let onrush = context.onrush().words("-t1 -c2 -n4 --cacert").word(scratch.path().join("ca.pem"));
        let output = onrush.word(openssl.url()).run();
        assert_refused(&output, &format!("the server's certificate is not acceptable: {flaw}{new}"));
        let output = context.onrush().words("-t1 -c2 -n4 -k").word(openssl.url()).run();
        assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
    }
    let openssl = Process::openssl(&made_by_openssl(&Scratch::new("tls-made"), &version_1("ED448")), &["-www"]);
    let output = context.onrush().words("-t1 -c2 -d1s -k").word(openssl.url()).run();
    assert!(output.stderr.contains("handshake failure (40)") && output.stderr.contains("Ed448"), "{output:?}");
}

fn client_certificates_may_be_version_1(context: &Context) {
    let client = Scratch::new("tls-client");
    made_by_openssl(&client, SIGNED_BY_ANOTHER);
    let trusted = client.path().join("ca.pem");
    let options = ["-www", "-Verify", "1", "-verify_return_error", "-CAfile", trusted.to_str().expect("a plain path")];
    let openssl = Process::openssl(&self_signed(&["localhost"]), &options);
    let onrush = |words: &str| {
        let onrush = context.onrush().with(|command| {
            command.current_dir(client.path());
        });
        onrush.words(words)
    };
    let output = onrush("-t1 -c2 -n4 -k --cert cert.pem --key key.pem").word(openssl.url()).run();
    assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
    // It must still be a certificate for this key.
    client.file("other.pem", self_signed(&["localhost"]).key);
    client.file("noise.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for (options, expected) in [
        ("--cert cert.pem --key other.pem", "cert.pem and other.pem: the key does not match the certificate"),
        ("--cert noise.pem --key key.pem", "noise.pem and key.pem: the certificate cannot be read"),
    ] {
        let output = onrush("-n4 -k").words(options).word(openssl.url()).run_plain();
        assert_eq!((output.code, output.stderr.trim_end()), (1, &*format!("onrush: {expected}")), "{output:?}");
    }
}

fn slots_resume_their_own_sessions(context: &Context) {
    let pair = self_signed(&["localhost"]);
    for version in ["1.2", "1.3"] {
        for (resume, new) in [("on", Some(4)), ("off", None)] {
            let server = TlsServer::new(&pair);
            let onrush = context.onrush().words("-k -t2 -c4 -n80 -H Connection:close --tls-resume").word(resume);
            let output = onrush.words("--tls-max").word(version).word(server.url("/")).run();
            assert_eq!((output.code, output.requests()), (0, 80), "{output:?}");
            assert_no_errors(&output);
            let (handshakes, resumed) = server.heard(|heard| (heard.handshakes, heard.resumed));
            // At the end, a connection may be opened for a request that another one then takes.
            assert!((80..84).contains(&handshakes), "{handshakes}");
            assert_eq!(handshakes - resumed, new.unwrap_or(handshakes), "TLS {version}, {resume}");
        }
    }
}

fn negotiated_parameters_are_shown(context: &Context) {
    let server = TlsServer::new(&self_signed(&["localhost"]));
    for (options, expected) in [
        ("", "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519"),
        ("--tls-max 1.2", "TLS 1.2, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, X25519"),
        ("--tls-ciphers TLS_AES_128_GCM_SHA256 --tls-groups P-256", "TLS 1.3, TLS_AES_128_GCM_SHA256, P-256"),
        (
            "--tls-ciphers ECDHE-ECDSA-CHACHA20-POLY1305 --tls-groups prime256v1,X25519",
            "TLS 1.2, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, P-256",
        ),
        ("--tls-groups X25519MLKEM768", "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519MLKEM768"),
        ("--tls-min 1.3 --tls-groups P-384", "TLS 1.3, TLS_AES_256_GCM_SHA384, P-384"),
    ] {
        let output = context.onrush().words("-k --once").words(options).word(server.url("/")).run();
        assert_eq!(output.stdout.lines().last(), Some(expected), "{options}: {output:?}");
    }
}

fn names_are_sent_unless_addresses(context: &Context) {
    let server = TlsServer::new(&self_signed(&["localhost"]));
    let port = server.address.port();
    for (options, host, name) in [
        ("", "127.0.0.1", None),
        ("", "localhost", Some("localhost")),
        ("--sni www.example.com", "127.0.0.1", Some("www.example.com")),
    ] {
        let url = format!("https://{host}:{port}/");
        let output = context.onrush().words("-k -n1 -c1").words(options).word(url).run();
        assert_eq!(output.requests(), 1, "{output:?}");
        assert_eq!(server.heard(|heard| heard.name.clone()).as_deref(), name, "{host} {options}");
        assert_eq!(server.heard(|heard| heard.protocol.clone()).as_deref(), Some(&b"http/1.1"[..]));
    }
}

fn bodies_arrive_complete_both_ways(context: &Context) {
    let pair = self_signed(&["localhost"]);
    for piece in [1_000, 20_000, 100_000] {
        let server = TlsServer::start(&pair, piece, |_| {});
        let down = context.onrush().words("-k -t1 -c3 -n6").word(server.url("/1000000")).run();
        assert_eq!((down.code, down.requests()), (0, 6), "{down:?}");
        assert!(down.stdout.contains("5.72MB read"), "{down:?}");
    }
    let server = TlsServer::new(&pair);
    let until_close = context.onrush().words("-k -t1 -c1 -n5").word(server.url("/until-close")).run();
    assert_eq!((until_close.code, until_close.requests()), (0, 5), "{until_close:?}");
    let scratch = Scratch::new("tls");
    let body = scratch.file("body", vec![b'y'; 3_000_000]);
    let up =
        context.onrush().words("-k --once --body").word(format!("@{}", body.display())).word(server.url("/")).run();
    assert!(up.stdout.contains("\n3000000 bytes\n"), "{up:?}");
    let many = context.onrush().words("-k -t1 -c3 -n6 --body").word(format!("@{}", body.display()));
    let many = many.word(server.url("/")).run();
    assert_eq!((many.code, many.requests()), (0, 6), "{many:?}");
    assert_no_errors(&many);
}

fn closes_with_responses_are_no_error(context: &Context) {
    let server = TlsServer::new(&self_signed(&["localhost"]));
    for options in ["-n20", "-n20 -R200"] {
        let output = context.onrush().words("-k -t1 -c2").words(options).word(server.url("/joined")).run();
        assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
        assert_no_errors(&output);
    }
    // For wrk, such a close is an error, as without TLS. The run may end before the last two.
    let output = context.called("wrk").words("-t1 -c2 -n20").word(server.url("/joined")).run();
    let errors = output.line("Socket errors").expect("there are errors");
    let is_read = |count| errors.contains(&format!("connect 0, read {count}, write 0, timeout 0"));
    assert!((18..=20).any(is_read), "{output:?}");
}

fn partially_received_requests_are_not_resent(context: &Context) {
    let mut config = config(&self_signed(&["localhost"]));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (config, connections) = (Arc::new(config), Arc::new(AtomicU32::new(0)));
    let scratch = Scratch::new("tls-part");
    let body = scratch.file("body", vec![b'x'; 60_000]);
    let counted = Arc::clone(&connections);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
    // The buffers are so small that most of the request has not left when the server closes.
    set_socket_recv_buffer_size(&listener, 4_096).expect("a buffer can be small");
    let address = server_at(listener, move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        stream.write_all(&settings(&[]))?;
        stream.read_exact(&mut [0; 16_384])?;
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let onrush = context.onrush().words("-k --http2 -t1 -c1 -n1 --sndbuf 4096 -X POST --body");
    let output = onrush.word(format!("@{}", body.display())).word(format!("https://{address}/")).run();
    assert_eq!(output.requests(), 0, "{output:?}");
    assert_eq!(connections.load(Ordering::Relaxed), 1, "{output:?}");
}

/// A stream that counts the reads that start with a long record of a request.
struct CountingStream(TcpStream, Arc<AtomicU32>);

impl Read for CountingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        let is_alone = matches!(buffer[..n], [0x17, 3, 3, 4..=64, _, ..]);
        self.1.fetch_add(u32::from(is_alone), Ordering::Relaxed);
        Ok(n)
    }
}

impl Write for CountingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn first_requests_leave_with_the_handshake(context: &Context) {
    let config = Arc::new(config(&self_signed(&["localhost"])));
    let alone = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&alone);
    let address = server(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, CountingStream(stream, Arc::clone(&counter)));
        stream.read_exact(&mut [0; 1024])?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    });
    for _ in 0..4 {
        let long = format!("long: {}", "x".repeat(1024));
        let onrush = context.onrush().words("-k -t1 -c1 -n1 -H").word(long);
        let output = onrush.word(format!("https://{address}/")).run();
        assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
    }
    assert_eq!(alone.load(Ordering::Relaxed), 0);
}

fn records_may_arrive_byte_by_byte(context: &Context) {
    let pair = self_signed(&["localhost"]);
    for version in ["1.2", "1.3"] {
        let server = TlsServer::start(&pair, 1, |_| {});
        let onrush = context.onrush().words("-k -c1 -n2 --tls-max").word(version).word(server.url("/4096"));
        let output = onrush.run();
        assert_eq!((output.code, output.requests()), (0, 2), "{output:?}");
        assert_no_errors(&output);
    }
}

fn bad_certificates_are_refused(context: &Context) {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let scratch = Scratch::new("tls");
    let ca = scratch.file("ca.pem", authority.certificate());
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 29);
    };
    let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(2099, 12, 31);
    let table = [
        (authority.issue(&["127.0.0.1"], |_| {}), ""),
        (
            authority.issue(&["127.0.0.1"], expired),
            "the server's certificate has expired: it was valid until 2020-02-29 00:00:00 UTC; renew the certificate, check this \
             machine's clock, or use -k",
        ),
        (
            authority.issue(&["127.0.0.1"], early),
            "the server's certificate is not valid yet: it is valid from 2099-12-31 00:00:00 UTC; check \
             this machine's clock and the certificate's dates, or use -k",
        ),
        (
            authority.issue(&["www.example", "10.0.0.1"], |_| {}),
            "the server's certificate is for another name: it is for www.example, 10.0.0.1, not for 127.0.0.1; use \
             --sni with a name in the certificate, or -k",
        ),
        (
            stranger.issue(&["127.0.0.1"], |_| {}),
            "the server's certificate is not signed by a trusted CA; \
             trust the issuer with --cacert FILE, or use -k; does the server send the whole chain? See docs/troubleshooting.md#the-certificate-is-not-accepted",
        ),
        (
            self_signed(&["127.0.0.1"]),
            "the server's certificate is self-signed; trust the certificate with --cacert FILE, or use -k",
        ),
    ];
    for (pair, expected) in table {
        let server = TlsServer::new(&pair);
        let output = context.onrush().words(N20).words("--cacert").word(&ca).word(server.url("/")).run();
        if expected.is_empty() {
            assert_no_errors(&output);
        } else {
            assert_refused(&output, expected);
        }
        let unchecked = context.onrush().words("-k").words(N20).word(server.url("/")).run();
        assert_eq!((unchecked.code, unchecked.requests()), (0, 20), "{unchecked:?}");
        assert_no_errors(&unchecked);
    }
}

fn servers_receive_the_alert(context: &Context) {
    let server = TlsServer::new(&self_signed(&["127.0.0.1"]));
    let output = context.onrush().words("-t1 -c1 -d1s").word(server.url("/")).run();
    assert_eq!(output.code, 2, "{output:?}");
    wait_until(|| server.heard(|heard| heard.refusal.is_some()));
    let refusal = server.heard(|heard| heard.refusal.clone());
    assert!(refusal.as_ref().is_some_and(|refusal| refusal.contains("alert")), "{refusal:?}");

    let output = context.onrush().words("-k -t1 -c4 -n40 -H Connection:close").word(server.url("/wait")).run();
    assert_eq!((output.code, output.requests()), (0, 40), "{output:?}");
    assert_no_errors(&output);
    // The last requests may still be in flight at the end, and are not sent.
    wait_until(|| server.heard(|heard| heard.farewells) >= 36);
}

fn wrk_mode_accepts_any_certificate(context: &Context) {
    let server = TlsServer::new(&self_signed(&["elsewhere"]));
    let output = context.called("wrk").words("-t1 -c2 -n20").word(server.url("/")).run();
    output.assert_standard();
    assert_eq!(output.code, 0, "{output:?}");
    assert_no_errors(&output);
    assert_eq!(server.heard(|heard| heard.protocol.clone()), None);
    let named = format!("https://localhost:{}/", server.address.port());
    assert_no_errors(&context.called("wrk").words("-t1 -c2 -n4").word(named).run());
    assert_eq!(server.heard(|heard| heard.name.clone()).as_deref(), Some("localhost"));
    // A user who names certificates wants them checked.
    let scratch = Scratch::new("tls");
    let ca = scratch.file("ca.pem", Authority::new().certificate());
    let checked = context.called("wrk").words("-t1 -c2 -d1 --cacert").word(ca).word(server.url("/")).run();
    assert!(checked.requests() == 0 && checked.socket_errors("connect") > 2, "{checked:?}");
}

fn broken_handshakes_are_named(context: &Context) {
    let table: [(&[u8], &str); 5] = [
        (b"", "closed by the server during the TLS handshake"),
        (b"\x16\x03\x03\x00\x7a\x02", "closed by the server during the TLS handshake"),
        (b"\x00\x01\x02\xff\xfe", "the server sends something other than TLS: \\x00\\x01\\x02\\xff\\xfe"),
        (b"\x16\x03\x03\x00\x05nonsense", "the server violates the TLS protocol"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "TLS alert internal error (80) from the server"),
    ];
    for (number, (answer, expected)) in table.into_iter().enumerate() {
        let address = server(move |stream| after_hello(stream, answer));
        let output = context.onrush().words("-k -c2 -d1s").word(format!("https://{address}/")).run();
        assert_eq!(output.code, 2, "{output:?}");
        assert!(
            output.stderr.contains(&format!("onrush: TLS handshake with {address} failed: {expected}")),
            "{output:?}"
        );
        // In wrk mode, the run continues for its second, and counts failures. Two cases suffice: a connection that
        // ended, and a faulty one.
        if ![0, 2].contains(&number) {
            continue;
        }
        let compat = context.called("wrk").words("--notes -c2 -t1 -d1s").word(format!("https://{address}/")).run();
        compat.assert_standard();
        assert!(compat.requests() == 0 && compat.socket_errors("connect") > 2, "{compat:?}");
        let expected = expected.split(": ").next().unwrap_or_default();
        assert!(compat.stderr.contains(expected), "{compat:?}");
    }
}

/// Reads a client's first bytes, responds and closes.
fn after_hello(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    // Reads a record: its header, then its payload.
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    stream.read_exact(&mut vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))])?;
    stream.write_all(answer)?;
    // A reset would discard the response.
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

fn silent_servers_are_abandoned(context: &Context) {
    let address = server(|mut stream| stream.read_to_end(&mut Vec::new()).map(drop));
    // Without the time limit, this run would be too long.
    let onrush = context.onrush().words("-k -c1 -d30s --give-up 200ms").word(format!("https://{address}/"));
    let output = onrush.run();
    assert!(output.took < Duration::from_secs(20), "{output:?}");
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains(" failed: no response; does that port speak TLS?"), "{output:?}");
    let onrush = context.called("wrk").words("--notes -t1 -c1 -d1s --timeout 1").word(format!("https://{address}/"));
    let output = onrush.run();
    assert_eq!(output.requests(), 0, "{output:?}");
}

fn recovered_servers_are_used_again(context: &Context) {
    let healthy = TlsServer::new(&self_signed(&["localhost"])).address;
    let connections = AtomicU32::new(0);
    let address = server(move |stream| {
        // Every third connection ends during the handshake.
        if connections.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
            return after_hello(stream, b"\x15\x03\x03\x00\x02\x02\x28");
        }
        pass_on(stream, TcpStream::connect(healthy)?)
    });
    let onrush = context.onrush().words("-k -t1 -c2 -n30 -H Connection:close").word(format!("https://{address}/"));
    let output = onrush.run();
    assert_eq!((output.code, output.requests()), (0, 30), "{output:?}");
    // The 30th uninterrupted connection is the 44th. Neighbouring ones may be pending at the end.
    let failed = output.socket_errors("connect");
    assert!((13..=15).contains(&failed), "{output:?}");
    assert!(output.note("TLS alert handshake failure (40)").contains("no suites with CBC"), "{output:?}");
}

fn pass_on(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let up = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let copied = io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
    let _ = up.join();
    copied.map(drop)
}

fn plain_text_and_tls_are_distinguished(context: &Context) {
    let plain = target();
    let address = plain.address();
    let output = context.onrush().words("-k -c2 -d1s").word(format!("https://{address}/")).run();
    assert_eq!(output.code, 2, "{output:?}");
    let expected = format!(
        "onrush: TLS handshake with {address} failed: the server does not speak TLS but responds in plain text: \
         HTTP/1.1 400"
    );
    assert!(output.stderr.starts_with(&expected) && output.stderr.ends_with("; write http://\n"), "{output:?}");
    let compat = context.called("wrk").words("-t1 -c2 -d1").word(url(&plain, "/").replace("http", "https")).run();
    assert!(compat.requests() == 0 && compat.socket_errors("connect") > 2, "{compat:?}");
    // The opposite case: like most servers, this one responds with an alert.
    let tls = server(|mut stream| {
        let mut reader = BufReader::new(stream.try_clone()?);
        read_head(&mut reader)?;
        stream.write_all(b"\x15\x03\x03\x00\x02\x02\x0a")
    });
    let output = context.onrush().words("-c2 -n4").word(format!("http://{tls}/")).run();
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.note("the server speaks TLS").ends_with("; write https://"), "{output:?}");
}

fn unusable_files_and_lists_are_named(context: &Context) {
    let scratch = Scratch::new("tls");
    let (pair, other) = (self_signed(&["localhost"]), self_signed(&["localhost"]));
    write(&pair, scratch.path());
    scratch.file("other.pem", &other.key);
    scratch.file("nothing.pem", "nothing\n");
    scratch.file("broken.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    scratch.file("secret.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let table = [
        ("--cacert missing.pem", "--cacert \"missing.pem\": No such file or directory"),
        ("--cacert nothing.pem", "nothing.pem: no certificate found"),
        ("--cacert key.pem", "key.pem: no certificate found"),
        ("-k --cert cert.pem", "cert.pem: no private key found"),
        ("-k --cert cert.pem --key nothing.pem", "nothing.pem: no private key found"),
        ("-k --cert cert.pem --key secret.pem", "secret.pem: the key is encrypted; 'openssl pkey"),
        ("-k --cert cert.pem --key other.pem", "cert.pem and other.pem: the key does not match the certificate"),
        (
            "-k --cert cert.pem --key broken.pem",
            "cert.pem and broken.pem: the key is damaged or of an unsupported type; use RSA",
        ),
        ("-k --cert .", "--cert \".\": Is a directory"),
        ("--cacert /dev/zero", "\"/dev/zero\": it is longer than 16 MiB"),
        ("-k --key key.pem", "--key needs a certificate"),
        ("-k --cacert cert.pem", "--insecure and --cacert: the first checks no certificate"),
        ("-k --sni a..b", "\"a..b\" is not a valid TLS server name"),
        ("-k --tls-min 1.1", "--tls-min \"1.1\": versions before 1.2 are not offered"),
        ("-k --tls-min 1.3 --tls-max 1.2", "--tls-min 1.3 and --tls-max 1.2 leave no version"),
        ("-k --tls-ciphers AES128-SHA", "--tls-ciphers \"AES128-SHA\": RSA key exchange is not offered; write some of"),
        ("-k --tls-ciphers ECDHE-RSA-AES128-SHA256", "suites with CBC are not offered"),
        ("-k --tls-ciphers DHE-RSA-AES128-GCM-SHA256", "DHE is not offered"),
        (
            "-k --tls-max 1.2 --tls-ciphers TLS_AES_128_GCM_SHA256",
            "--tls-ciphers names no suite that --tls-min and --tls-max allow; name another",
        ),
        ("-k --tls-groups P-521", "--tls-groups \"P-521\": write some of X25519:"),
        ("-k --tls-resume maybe", "--tls-resume \"maybe\": unknown; write on or off"),
    ];
    for (options, expected) in table {
        let onrush = context.onrush().with(|command| {
            command.current_dir(scratch.path());
        });
        let output = onrush.words("-d1s").words(options).word("https://127.0.0.1:1/").run_plain();
        assert_eq!(output.code, 1, "{options}: {output:?}");
        assert!(output.stderr.contains(expected), "{options}: {output:?}");
        assert_eq!((output.stdout.as_str(), output.stderr.lines().count()), ("", 1), "{options}: {output:?}");
    }
    let plain = target();
    let output = context.onrush().words("-n1 -c1 --sni a.example").word(url(&plain, "/")).run_plain();
    assert!(output.stderr.starts_with("onrush: --sni does nothing: the URL is not https://"), "{output:?}");
}

fn unsupported_tls_is_reported(context: &Context) {
    let pair = self_signed(&["localhost"]);
    for server in [&["-tls1_1"][..], &["-tls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0"], &["-groups", "secp521r1"]] {
        let openssl = Process::openssl(&pair, server);
        let output = context.onrush().words("-k -c1 -d1s").word(openssl.url()).run();
        assert_eq!(output.code, 2, "{server:?}: {output:?}");
        let offers = "onrush offers TLS 1.2 and 1.3, but no suites with CBC, RSA key exchange or DHE";
        assert!(output.stderr.contains(offers), "{server:?}: {output:?}");
    }
    let new = TlsServer::start(&pair, usize::MAX, |_: &mut ServerConfig| {});
    let only = context.onrush().words("-k -n1 -c1 --tls-min 1.3").word(new.url("/")).run();
    assert_eq!(only.requests(), 1, "{only:?}");
}

/// Checks that there was only one line, and that nothing ran.
fn assert_refused(output: &ProgramOutput, expected: &str) {
    assert_eq!(output.code, 2, "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert!(output.stderr.starts_with("onrush: TLS handshake with 127.0.0.1:"), "{output:?}");
    assert!(output.stderr.ends_with(&format!(": {expected}\n")), "{output:?}");
}

/// nginx's settings for the files written by `write`.
pub const NGINX_PAIR: &str = "ssl_certificate cert.pem; ssl_certificate_key key.pem;";
