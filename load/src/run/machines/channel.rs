//! A connection between the coordinator and a worker: frames over TLS 1.3.
//!
//! A channel never blocks: [`Channel::pump_bytes`] moves as much as it can. The certificate is made for the run and
//! proves nothing; the first frames prove the identity of the peer ([`crate::token`]).

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error, ServerConfig, ServerConnection,
    SignatureScheme,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Label of the exported secret to which both sides bind their proofs.
const EXPORTER: &[u8] = b"EXPORTER-onrush-machines";
/// Number of bytes that give the length of a frame, in front of it.
const LENGTH: usize = 4;
/// Maximum number of bytes per read.
const READ: usize = 64 << 10;
/// Number of reads per turn of a socket. A read can return hundreds of empty records.
const READS: usize = 16;

/// The TLS certificate and key of a coordinator, for all its connections.
#[derive(Clone)]
pub struct CoordinatorCertificate(Arc<ServerConfig>);

impl CoordinatorCertificate {
    /// Creates a new certificate.
    ///
    /// # Errors
    ///
    /// Fails if no key can be created.
    pub fn new() -> io::Result<Self> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["coordinator.invalid".to_owned()]).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let mut config = ServerConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key))
            .map_err(io::Error::other)?;
        // A worker connects only once.
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }
}

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// A connection to a coordinator or a worker.
pub struct Channel {
    socket: TcpStream,
    tls: Connection,
    /// Received and decrypted bytes not yet parsed.
    received: Vec<u8>,
    /// Frames waiting for encryption, and the number of bytes of the first one already encrypted.
    outgoing: VecDeque<Arc<[u8]>>,
    encrypted: usize,
    /// Maximum frame length accepted.
    most: usize,
    /// True if the peer has closed its end of the connection.
    has_ended: bool,
    /// True if bytes were received since the last [`Channel::take_received`].
    has_received: bool,
}

impl Channel {
    /// The worker's end of a connection. `most`: longest frame accepted from the coordinator, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be used.
    pub fn to_coordinator(socket: TcpStream, most: usize) -> io::Result<Self> {
        let algorithms = crypto_provider().signature_verification_algorithms;
        let mut config = ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(algorithms)))
            .with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        let name = ServerName::try_from("coordinator.invalid").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Self::new(socket, tls.into(), most)
    }

    /// The coordinator's end of a connection. `most`: longest frame accepted from the worker, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be used.
    pub fn to_worker(socket: TcpStream, identity: &CoordinatorCertificate, most: usize) -> io::Result<Self> {
        let tls = ServerConnection::new(Arc::clone(&identity.0)).map_err(io::Error::other)?;
        Self::new(socket, tls.into(), most)
    }

    fn new(socket: TcpStream, mut tls: Connection, most: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        tls.set_buffer_limit(Some(READ));
        Ok(Self {
            socket,
            tls,
            received: Vec::new(),
            outgoing: VecDeque::new(),
            encrypted: 0,
            most,
            has_ended: false,
            has_received: false,
        })
    }

    /// A secret shared by the two ends of this connection; `None` before the end of the handshake.
    pub fn export_secret(&self) -> Option<[u8; 32]> {
        if self.tls.is_handshaking() {
            return None;
        }
        self.tls.export_keying_material([0; 32], EXPORTER, None).ok()
    }

    /// Accepts frames of up to `most` bytes from now on.
    pub fn set_max_frame(&mut self, most: usize) {
        self.most = most;
    }

    /// Queues a message, which [`Channel::pump_bytes`] sends.
    pub fn send_message(&mut self, message: &impl Serialize) {
        self.send_frame(encode_frame(message));
    }

    /// Queues an encoded message, which may be shared with other channels.
    pub fn send_frame(&mut self, frame: Arc<[u8]>) {
        self.outgoing.push_back(frame);
    }

    /// True if there are bytes that could be sent now; messages have to wait for the end of the handshake.
    pub fn wants_write(&self) -> bool {
        self.tls.wants_write() || (!self.outgoing.is_empty() && !self.tls.is_handshaking())
    }

    /// True if there is room for more bytes and the peer has not closed its end.
    pub fn wants_read(&self) -> bool {
        !self.has_ended && self.received.len() < LENGTH + self.most + READ
    }

    /// True if the peer has closed its end of the connection. Messages received earlier may still be waiting.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Discards all received bytes. Returns true if the peer has closed its end and everything queued has been sent.
    pub fn is_over(&mut self) -> bool {
        self.received.clear();
        self.has_ended && !self.wants_write()
    }

    /// True if a complete message is waiting, or the start of one that is too long and will be refused.
    pub fn has_message(&self) -> bool {
        let length = self.received.first_chunk::<LENGTH>().map(|length| u32::from_le_bytes(*length) as usize);
        length.is_some_and(|length| length > self.most || self.received.len() >= LENGTH + length)
    }

    /// Writes as much as possible without blocking, and reads a bounded amount, so that no channel delays the others.
    ///
    /// # Errors
    ///
    /// Fails if the connection is broken or the peer does not use TLS.
    pub fn pump_bytes(&mut self) -> io::Result<()> {
        self.write_pending()?;
        for _ in 0..READS {
            if !self.wants_read() {
                break;
            }
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => self.has_ended = true,
                Ok(_) => self.has_received = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let state = self.tls.process_new_packets().map_err(|error| {
                // TLS has an alert for the peer, which names the error; the peer may be gone.
                let _ = self.tls.write_tls(&mut self.socket);
                io::Error::new(ErrorKind::InvalidData, error)
            })?;
            let length = self.received.len();
            self.received.resize(length + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut self.received[length..])?;
            self.has_ended |= state.peer_has_closed();
        }
        // The handshake may have output now.
        self.write_pending()
    }

    fn write_pending(&mut self) -> io::Result<()> {
        loop {
            while let Some(frame) = self.outgoing.front().filter(|_| !self.tls.is_handshaking()) {
                let written = self.tls.writer().write(&frame[self.encrypted..])?;
                if written == 0 {
                    break;
                }
                self.encrypted += written;
                if self.encrypted == frame.len() {
                    self.outgoing.pop_front();
                    self.encrypted = 0;
                }
            }
            if !self.tls.wants_write() {
                return Ok(());
            }
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// True if bytes were received since the last call, even if they completed no message.
    pub fn take_received(&mut self) -> bool {
        std::mem::take(&mut self.has_received)
    }

    /// Takes the next message; `Ok(None)` if it has not arrived completely.
    ///
    /// # Errors
    ///
    /// Fails if the message is too long or invalid, or if the peer has closed and no complete message is left.
    pub fn receive_message<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let invalid = |words: &str| io::Error::new(ErrorKind::InvalidData, words.to_owned());
        let Some(length) = self.received.first_chunk::<LENGTH>() else { return self.nothing_received() };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.most {
            return Err(invalid("protocol error: message too long"));
        }
        let Some(bytes) = self.received.get(LENGTH..LENGTH + length) else { return self.nothing_received() };
        let message = postcard::from_bytes(bytes).map_err(|_| invalid("protocol error: malformed message"))?;
        self.received.drain(..LENGTH + length);
        Ok(Some(message))
    }

    fn nothing_received<T>(&self) -> io::Result<Option<T>> {
        if self.has_ended { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(None) }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Encodes a message as a frame, for [`Channel::send_frame`].
pub fn encode_frame(message: &impl Serialize) -> Arc<[u8]> {
    let bytes = postcard::to_extend(message, vec![0; LENGTH]).expect("messages have no maps and no unknown lengths");
    let mut bytes = bytes;
    let length = (bytes.len() - LENGTH) as u32;
    bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
    bytes.into()
}

/// Accepts any certificate if the peer has its key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn channel_pair(most: usize) -> (Channel, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let worker = Channel::to_coordinator(socket, most).unwrap();
        let accepted = listener.accept().unwrap().0;
        (worker, Channel::to_worker(accepted, &CoordinatorCertificate::new().unwrap(), most).unwrap())
    }

    fn pump_both(worker: &mut Channel, coordinator: &mut Channel) {
        for _ in 0..20 {
            worker.pump_bytes().unwrap();
            coordinator.pump_bytes().unwrap();
        }
    }

    #[test]
    fn messages_arrive_in_order_under_one_secret() {
        let (mut worker, mut coordinator) = channel_pair(1 << 20);
        assert_eq!(worker.export_secret(), None);
        let long = "x".repeat(700_000);
        coordinator.send_message(&"short");
        coordinator.send_message(&long);
        worker.send_message(&7_u64);
        let mut heard = Vec::new();
        while heard.len() < 2 {
            pump_both(&mut worker, &mut coordinator);
            heard.extend(worker.receive_message::<String>().unwrap());
        }
        assert!(heard == ["short", &long] && worker.receive_message::<String>().unwrap().is_none());
        assert_eq!(coordinator.receive_message::<u64>().unwrap(), Some(7));
        assert!(worker.export_secret().is_some() && worker.export_secret() == coordinator.export_secret());
        assert!(!worker.wants_write() && !coordinator.wants_write());
    }

    #[test]
    fn busy_peers_are_read_in_turns() {
        let (mut worker, mut coordinator) = channel_pair(1 << 20);
        worker.send_message(&"x".repeat(1 << 20));
        while coordinator.received.is_empty() {
            worker.pump_bytes().unwrap();
            coordinator.pump_bytes().unwrap();
        }
        assert!(coordinator.received.len() < 1 << 19, "{}", coordinator.received.len());
    }

    #[test]
    fn bad_messages_are_refused_within_bounded_memory() {
        let (mut worker, mut coordinator) = channel_pair(100);
        worker.send_message(&"x".repeat(200));
        pump_both(&mut worker, &mut coordinator);
        assert!(coordinator.receive_message::<String>().unwrap_err().to_string().contains("too long"));
        let (mut worker, mut coordinator) = channel_pair(100);
        worker.send_message(&[0xff_u8; 9]);
        pump_both(&mut worker, &mut coordinator);
        assert!(coordinator.receive_message::<String>().unwrap_err().to_string().contains("malformed"));
        let (mut worker, mut coordinator) = channel_pair(1000);
        (0..100_000).for_each(|_| worker.send_message(&"x".repeat(100)));
        pump_both(&mut worker, &mut coordinator);
        assert!(coordinator.received.len() < 1000 + 3 * READ, "{}", coordinator.received.len());
        drop(worker);
        let (mut worker, mut coordinator) = channel_pair(100);
        let mut garbage = worker.socket.try_clone().unwrap();
        garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(coordinator.pump_bytes().unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(worker.pump_bytes().is_err());
        let (worker, mut coordinator) = channel_pair(100);
        drop(worker);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _ = coordinator.pump_bytes();
        assert_eq!(coordinator.receive_message::<u64>().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
