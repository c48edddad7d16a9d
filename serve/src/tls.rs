//! The server side of TLS: a certificate generated at the start, and the state of a connection.
//!
//! Both protocols are offered (ALPN). Whatever is negotiated, the client's first bytes decide, as without TLS.

use std::io::{self, BufRead, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::sent::SendResult;

/// TLS settings of all connections, with the certificate.
#[derive(Debug)]
pub(super) struct TlsSettings(Arc<ServerConfig>);

#[derive(Debug)]
pub(super) struct TlsSession(Box<ServerConnection>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveResult {
    /// The room is full; there may be more input.
    Full,
    /// All available input was received.
    All,
    /// The client sends nothing more.
    End,
    /// The connection is unusable, and must be closed.
    Broken,
}

impl TlsSettings {
    /// Settings with a new certificate for this address.
    ///
    /// # Errors
    /// Fails if no key can be generated.
    pub(super) fn new(address: SocketAddr) -> io::Result<Self> {
        let names = vec!["localhost".to_owned(), address.ip().to_string()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

impl TlsSession {
    /// The state of a new connection; `None` on failure.
    pub(super) fn new(settings: &TlsSettings) -> Option<Self> {
        let mut connection = ServerConnection::new(Arc::clone(&settings.0)).ok()?;
        // No limit is needed: callers write a bounded amount, and wait until the kernel has taken it.
        connection.set_buffer_limit(None);
        Some(Self(Box::new(connection)))
    }

    /// Receives and decrypts bytes, and appends at most `room` of them. Also sends what the handshake needs.
    pub(super) fn receive_decrypted(
        &mut self,
        socket: &OwnedFd,
        input: &mut Vec<u8>,
        mut room: usize,
    ) -> ReceiveResult {
        loop {
            match self.0.reader().fill_buf() {
                Ok([]) => return ReceiveResult::End,
                Ok(_) if room == 0 => return ReceiveResult::Full,
                Ok(bytes) => {
                    let here = bytes.len().min(room);
                    input.extend_from_slice(&bytes[..here]);
                    self.0.reader().consume(here);
                    room -= here;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client closed its socket without announcing it.
                Err(_) => return ReceiveResult::End,
            }
            match self.0.read_tls(&mut Bare(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReceiveResult::All,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return ReceiveResult::Broken,
            }
            let is_good = self.0.process_new_packets().is_ok();
            // The handshake, or an alert that names the error. Bytes that the kernel does not take are sent later.
            if self.flush_encrypted(socket) == SendResult::Gone || !is_good {
                return ReceiveResult::Broken;
            }
        }
    }

    /// Encrypts bytes for the next flush.
    pub(super) fn encrypt_bytes(&mut self, bytes: &[u8]) {
        // The buffer is unlimited, so this cannot fail.
        let _ = self.0.writer().write_all(bytes);
    }

    /// Hands encrypted bytes to the kernel; those that it does not take stay for the next call.
    pub(super) fn flush_encrypted(&mut self, socket: &OwnedFd) -> SendResult {
        while self.0.wants_write() {
            match self.0.write_tls(&mut Bare(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return SendResult::Full,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return SendResult::Gone,
            }
        }
        SendResult::All
    }

    /// Announces that nothing more will be sent (`close_notify`).
    pub(super) fn announce_end(&mut self, socket: &OwnedFd) {
        self.0.send_close_notify();
        // If the client has gone, the next receive detects it.
        let _ = self.flush_encrypted(socket);
    }
}

/// The raw bytes of a socket.
struct Bare<'a>(&'a OwnedFd);

impl Read for Bare<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (bytes, _) = recv(self.0, buffer, RecvFlags::empty())?;
        Ok(bytes)
    }
}

impl Write for Bare<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

    use super::super::{EmbeddedServer, ServeConfig};
    use super::*;

    #[derive(Debug)]
    struct AcceptAnyCertificate(CryptoProvider);

    impl ServerCertVerifier for AcceptAnyCertificate {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }

    fn start_tls_server() -> EmbeddedServer {
        EmbeddedServer::start(&ServeConfig { address: SocketAddr::from(([127, 0, 0, 1], 0)), threads: 1, tls: true })
            .unwrap()
    }

    fn connect_socket(server: &EmbeddedServer) -> TcpStream {
        let socket = TcpStream::connect(server.address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    /// A client that offers these protocols.
    fn connect_client(server: &EmbeddedServer, protocols: &[&str]) -> StreamOwned<ClientConnection, TcpStream> {
        let provider = aws_lc_rs::default_provider();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        StreamOwned::new(connection, connect_socket(server))
    }

    /// Reads everything up to an orderly end.
    fn read_to_close(client: &mut impl Read) -> String {
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn bodies_of_any_size_are_sent_and_received() {
        let server = start_tls_server();
        let mut client = connect_client(&server, &["http/1.1"]);
        client.write_all(b"POST /sink HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n").unwrap();
        client.write_all(&vec![b'u'; 3_000_000]).unwrap();
        client.write_all(b"GET /bytes/3000000 HTTP/1.1\r\n\r\nGET /close HTTP/1.1\r\n\r\n").unwrap();
        let text = read_to_close(&mut client);
        assert!(text.contains("\r\n\r\n3000000HTTP/1.1 200 OK\r\n") && text.len() > 3_000_000, "{}", text.len());
        assert!(text.ends_with("xxHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: close\r\n\r\nHello, World!"));
        assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }

    #[test]
    fn a_client_may_choose_http2() {
        let server = start_tls_server();
        let mut client = connect_client(&server, &["http/1.1", "h2"]);
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
        let mut start = [0; 9];
        client.read_exact(&mut start).unwrap();
        assert_eq!(client.conn.alpn_protocol(), Some(&b"h2"[..]));
        // A SETTINGS frame: three length bytes, then type 4.
        assert_eq!(start[3..], [4, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn plain_text_gets_a_tls_alert() {
        let server = start_tls_server();
        let mut client = connect_socket(&server);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut alert = [0; 7];
        client.read_exact(&mut alert).unwrap();
        assert_eq!((alert[0], alert[5]), (21, 2), "a fatal alert");
    }
}
