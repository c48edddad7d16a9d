//! Links against a server of the same library, with full control over the bytes.

#![cfg(test)]

use std::io::{Read, Write};

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use onrush_plan::TlsOptions;
use onrush_plan::file_contents::FileContents;
use onrush_plan::tls::TlsVersion;
use onrush_stats::TlsFailure;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ConnectionTrafficSecrets, ServerConfig, ServerConnection};

use super::*;

fn tls(newest: TlsVersion) -> TlsOptions {
    TlsOptions {
        name: "localhost".into(),
        check: false,
        roots: None,
        identity: None,
        oldest: TlsVersion::V12,
        newest,
        suites: Vec::new(),
        groups: Vec::new(),
        alpn: vec![HttpVersion::Http11],
        resume: true,
    }
}

fn server() -> Arc<ServerConfig> {
    server_with(&rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap())
}

fn server_with(certified: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(certified.cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(certified.signing_key.serialize_pem().as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

/// Passes the link's output to the server. Returns the number of plain bytes the server accepted.
fn up(link: &mut Link, server: &mut ServerConnection) -> usize {
    let mut plain = 0;
    while let Some(encrypted) = link.seal().unwrap() {
        let bytes = encrypted.bytes();
        let mut bytes = &*bytes;
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            server.process_new_packets().unwrap();
        }
        plain += link.accepted(encrypted.bytes().len());
    }
    plain
}

/// Passes the server's output to the link, in pieces of `size`. Returns the plain bytes.
fn down(server: &mut ServerConnection, link: &mut Link, size: usize) -> Result<Vec<u8>, LinkFailure> {
    let (mut encrypted, mut plain) = (Vec::new(), Vec::new());
    while server.wants_write() {
        server.write_tls(&mut encrypted).unwrap();
    }
    for piece in encrypted.chunks_mut(size) {
        link.receive(piece, &mut |bytes| plain.extend_from_slice(bytes))?;
    }
    Ok(plain)
}

fn shake_hands(link: &mut Link, server: &mut ServerConnection, size: usize) {
    link.begin().unwrap();
    while !link.is_established() || server.is_handshaking() {
        up(link, server);
        assert_eq!(down(server, link, size), Ok(Vec::new()));
    }
}

#[test]
fn decryption_does_not_depend_on_splits() {
    let config = server();
    let sent: Vec<u8> = (0..40_000u32).map(|number| (number % 251) as u8).collect();
    for version in [TlsVersion::V12, TlsVersion::V13] {
        for size in [1, 4, 5, 6, 1000, 4096, 16_384, 16_406, 65_536] {
            let mut link = Config::new(&tls(version)).unwrap().link();
            let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
            shake_hands(&mut link, &mut server, size);
            assert_eq!(link.negotiated().0.version, version.number());
            server.writer().write_all(&sent).unwrap();
            assert_eq!(down(&mut server, &mut link, size), Ok(sent.clone()), "{size}");
            assert!(link.incoming.is_empty() && link.incoming.capacity() == 0, "nothing is kept after a whole record");
            server.send_close_notify();
            assert_eq!(down(&mut server, &mut link, size), Ok(Vec::new()));
            assert!(link.is_closed());
        }
    }
}

#[test]
fn only_named_certificates_are_trusted() {
    let [own, other] = [(); 2].map(|()| rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap());
    for version in [TlsVersion::V12, TlsVersion::V13] {
        let checked = |certified: &rcgen::CertifiedKey<rcgen::KeyPair>| {
            let roots = Some(FileContents::from_bytes("roots.pem", certified.cert.pem().into_bytes()));
            Config::new(&TlsOptions { check: true, roots, ..tls(version) }).unwrap().link()
        };
        let mut server = ServerConnection::new(server_with(&own)).unwrap();
        shake_hands(&mut checked(&own), &mut server, usize::MAX);
        let (mut link, mut server) = (checked(&other), ServerConnection::new(server_with(&own)).unwrap());
        link.begin().unwrap();
        up(&mut link, &mut server);
        down(&mut server, &mut link, usize::MAX).unwrap_err();
    }
}

#[test]
fn negotiated_protocols_are_reported() {
    for (offered, expected) in [(&[][..], None), (&[b"http/1.1".to_vec()], Some(&b"http/1.1"[..]))] {
        let mut config = Arc::unwrap_or_clone(server());
        config.alpn_protocols = offered.to_vec();
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        let mut link = Config::new(&tls(TlsVersion::V13)).unwrap().link();
        assert_eq!(link.alpn(), None);
        shake_hands(&mut link, &mut server, usize::MAX);
        assert_eq!(link.alpn(), expected);
    }
}

#[test]
fn requests_may_leave_during_server_messages() {
    let mut config = Arc::unwrap_or_clone(server());
    // A ticket does not fit into such a record.
    config.max_fragment_size = Some(32);
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    let mut link = Config::new(&tls(TlsVersion::V13)).unwrap().link();
    link.begin().unwrap();
    up(&mut link, &mut server);
    down(&mut server, &mut link, usize::MAX).unwrap();
    up(&mut link, &mut server);
    assert!(link.is_established() && !server.is_handshaking());
    let mut encrypted = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut encrypted).unwrap();
    }
    assert!(encrypted.len() > 100, "a ticket of several records");
    for byte in encrypted {
        link.receive(&mut [byte], &mut |_| panic!("a ticket is no data")).unwrap();
        link.send(Transmit::Owned(b"GET".to_vec()));
        assert_eq!(up(&mut link, &mut server), 3);
    }
    assert!(link.incoming.is_empty());
}

#[test]
fn last_words_are_alert_or_close_notify() {
    let config = server();
    let mut link = Config::new(&tls(TlsVersion::V13)).unwrap().link();
    let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
    shake_hands(&mut link, &mut server, usize::MAX);
    server.read_tls(&mut &link.last_words()[..]).unwrap();
    assert!(server.process_new_packets().unwrap().peer_has_closed());
    assert_eq!(link.last_words(), b"", "sent only once");

    for broken in [&b"\x17\x03\x03\x00\x14aaaaaaaaaaaaaaaaaaaa"[..], b"\x16\x03\x03\xff\xff"] {
        let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
        shake_hands(&mut link, &mut server, usize::MAX);
        link.receive(&mut broken.to_vec(), &mut |_| {}).unwrap_err();
        server.read_tls(&mut &link.last_words()[..]).unwrap();
        assert!(matches!(server.process_new_packets(), Err(rustls::Error::AlertReceived(_))));
    }
}

/// Seals records with the server's key, valid or not.
struct Forger {
    version: TlsVersion,
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl Forger {
    /// An established link, and a forger that can send it any record.
    fn with_link(version: TlsVersion) -> (Self, Link) {
        let mut config = Arc::unwrap_or_clone(server());
        config.enable_secret_extraction = true;
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        // ChaCha20, under its two names.
        let mut link = Config::new(&TlsOptions { suites: vec![0x1303, 0xcca9], ..tls(version) }).unwrap().link();
        shake_hands(&mut link, &mut server, usize::MAX);
        down(&mut server, &mut link, usize::MAX).unwrap();
        let (sequence, secrets) = server.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else { panic!("another suite") };
        let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key.as_ref()).unwrap());
        (Self { version, key, iv: iv.as_ref().try_into().unwrap(), sequence }, link)
    }

    fn record(&mut self, kind: u8, plain: &[u8]) -> Vec<u8> {
        let (is_new, mut encrypted) = (self.version == TlsVersion::V13, plain.to_vec());
        encrypted.extend(is_new.then_some(kind));
        let header = |length: usize| [if is_new { 23 } else { kind }, 3, 3, (length >> 8) as u8, length as u8];
        let wire = header(encrypted.len() + CHACHA20_POLY1305.tag_len());
        let sequence = self.sequence.to_be_bytes();
        let known = if is_new { wire.to_vec() } else { [&sequence[..], &header(plain.len())].concat() };
        let mut nonce = self.iv;
        nonce[4..].iter_mut().zip(sequence).for_each(|(byte, more)| *byte ^= more);
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(known), &mut encrypted).unwrap();
        self.sequence += 1;
        [&wire[..], &encrypted].concat()
    }
}

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

#[test]
fn broken_messages_end_only_their_connection() {
    let half = (HANDSHAKE, &[4, 0, 0, 9, 1, 2][..]);
    let tables: [&[(u8, &[u8])]; 5] = [
        &[half, (DATA, b"HTTP/1.1 200 OK\r\n\r\n")],
        &[half, (ALERT, &[1, 0])],
        &[(HANDSHAKE, &[4, 1, 0, 0])],
        &[(HANDSHAKE, &[4]), (DATA, b"")],
        &[half, (99, b"?")],
    ];
    for version in [TlsVersion::V12, TlsVersion::V13] {
        for records in tables {
            for is_whole in [false, true] {
                let (mut forger, mut link) = Forger::with_link(version);
                let mut pieces: Vec<Vec<u8>> =
                    records.iter().map(|(kind, plain)| forger.record(*kind, plain)).collect();
                if is_whole {
                    pieces = vec![pieces.concat()];
                }
                let mut take = |_: &[u8]| panic!("none of it is data");
                let outcome = pieces.iter_mut().try_for_each(|piece| link.receive(piece, &mut take));
                assert!(outcome.is_err(), "{records:?}");
                link.last_words();
            }
        }
    }
}

#[test]
fn close_notify_follows_pending_replies() {
    for is_whole in [false, true] {
        let (mut forger, mut link) = Forger::with_link(TlsVersion::V12);
        // A request to renegotiate is refused.
        let mut pieces = vec![forger.record(HANDSHAKE, &[0, 0, 0, 0]), forger.record(ALERT, &[1, 0])];
        if is_whole {
            pieces = vec![pieces.concat()];
        }
        for piece in &mut pieces {
            link.receive(piece, &mut |_| panic!("nothing was sent")).unwrap();
        }
        assert!(link.is_closed());
        assert!(link.seal().unwrap().is_some(), "the refusal");
    }
}

#[test]
fn large_requests_are_encrypted_in_parts() {
    let mut server = ServerConnection::new(server()).unwrap();
    let mut link = Config::new(&tls(TlsVersion::V13)).unwrap().link();
    shake_hands(&mut link, &mut server, usize::MAX);
    let sent = vec![7; 2 * SEALED_MAX + 1];
    link.send(Transmit::Owned(sent.clone()));
    let first = link.seal().unwrap().unwrap();
    assert!(first.bytes().len() < SEALED_MAX + OVERHEAD_MAX);
    assert!(link.seal().unwrap().is_none(), "one send at a time");
    assert_eq!(link.accepted(10), 0);
    assert_eq!(link.accepted(first.bytes().len() - 10), SEALED_MAX);
    let mut received = Vec::new();
    let mut take = |mut bytes: &[u8]| {
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            server.process_new_packets().unwrap();
            let mut plain = [0; SEALED_MAX];
            while let Ok(n @ 1..) = server.reader().read(&mut plain) {
                received.extend_from_slice(&plain[..n]);
            }
        }
    };
    take(&first.bytes());
    while let Some(encrypted) = link.seal().unwrap() {
        take(&encrypted.bytes());
        link.accepted(encrypted.bytes().len());
    }
    assert_eq!(received, sent);
}

#[test]
fn slots_resume_only_their_own_sessions() {
    let config = server();
    for version in [TlsVersion::V12, TlsVersion::V13] {
        let client = Config::new(&tls(version)).unwrap();
        let mut links = [client.link(), client.link()];
        for (slot, expected) in [(0, false), (0, true), (1, false), (0, true)] {
            let link = &mut links[slot];
            let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
            shake_hands(link, &mut server, usize::MAX);
            assert_eq!(link.negotiated().1, expected);
        }
    }
}

#[test]
fn non_tls_bytes_are_classified() {
    let mut link = Config::new(&tls(TlsVersion::V13)).unwrap().link();
    for (bytes, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\nServer: s\r\n\r\n"[..], TlsFailure::PlainText),
        (b"\x00\x00\x12\x04", TlsFailure::NotTls),
        (b"\x16\x03\x03\xff\xff", TlsFailure::Misbehaved),
        (b"\x16\x03\x03\x00\x04\x02\x00\x00\x00", TlsFailure::Misbehaved),
        (b"\x15\x03\x03\x00\x02\x02\x46", TlsFailure::Alert(70)),
    ] {
        link.begin().unwrap();
        let failure = link.receive(&mut bytes.to_vec(), &mut |_| panic!("nothing was sent")).unwrap_err();
        assert_eq!(failure.cause, expected, "{bytes:?}: {failure:?}");
    }
}
