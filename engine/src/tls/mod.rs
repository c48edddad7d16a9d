//! TLS between the transport and the protocol, without I/O; the only module that uses the TLS library.
//!
//! A [`Config`] is made once per run and shared by all threads. It makes a [`Link`] for every slot, which outlives the
//! slot's connections and keeps their session for the next one to resume. Received bytes are decrypted in place; only
//! the beginning of an incomplete record is kept.

mod certificate;
mod config;
mod failure;
mod sessions;
mod trust;

#[cfg(test)]
mod tests;

pub use config::{Config, Unusable};
pub use failure::LinkFailure;

use std::sync::Arc;

use onrush_plan::http::HttpVersion;
use onrush_proto::Transmit;
use rustls::client::{ClientConfig, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{HandshakeKind, client::ClientConnectionData};

use onrush_stats::Negotiated;

/// The header of a record: type, version and length.
const HEADER: usize = 5;
/// The longest record that the standards allow, without the header.
const RECORD_MAX: usize = 16 * 1024 + 2048;
/// Largest number of bytes encrypted at once, so that a large body is not in memory twice.
const SEALED_MAX: usize = 64 * 1024;
/// Upper bound on what encryption adds to [`SEALED_MAX`] bytes.
const OVERHEAD_MAX: usize = 512;

/// TLS for one slot: its successive connections, and the TLS session that each can resume.
pub struct Link {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    connection: Option<UnbufferedClientConnection>,
    /// Incomplete received records.
    incoming: Vec<u8>,
    /// Handshake bytes to send, encrypted if need be.
    outgoing: Vec<u8>,
    /// The protocol's bytes to send, and the number of those encrypted.
    plain: Option<(Transmit, usize)>,
    /// Number of encrypted bytes handed over that the transport has not accepted yet.
    unsent: usize,
    /// Number of plain bytes they contain.
    unsent_plain: usize,
    is_established: bool,
    is_closed: bool,
    /// True if close_notify or an alert has been sent.
    has_taken_leave: bool,
}

/// An established connection with nothing in flight, detached from its link; not a TLS session to resume by a
/// handshake.
pub struct Session(UnbufferedClientConnection);

impl Link {
    /// An unconnected link.
    fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        Self {
            config,
            name,
            connection: None,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            plain: None,
            unsent: 0,
            unsent_plain: 0,
            is_established: false,
            is_closed: false,
            has_taken_leave: false,
        }
    }

    /// Begins the handshake of a new connection. Its first bytes come from [`Self::seal`].
    pub fn begin(&mut self) -> Result<(), LinkFailure> {
        self.end();
        let (config, name) = (Arc::clone(&self.config), self.name.clone());
        self.connection =
            Some(UnbufferedClientConnection::new(config, name).map_err(|error| LinkFailure::from_tls_error(&error))?);
        self.process(&mut [], &mut |_| {}).map(drop)
    }

    /// Forgets the connection. The next handshake can still resume its TLS session.
    pub fn end(&mut self) {
        *self = Self::new(Arc::clone(&self.config), self.name.clone());
    }

    /// True if the connection is established and has nothing in flight.
    pub fn is_quiet(&self) -> bool {
        let has_nothing = self.incoming.is_empty() && self.outgoing.is_empty() && self.plain.is_none();
        self.is_established && !self.is_closed && has_nothing && self.unsent == 0
    }

    /// Gives away the connection, which must be [quiet](Self::is_quiet), for another link to [`resume`](Self::resume).
    /// `None`: there is no connection.
    pub fn suspend(&mut self) -> Option<Session> {
        self.connection.take().map(Session)
    }

    /// Continues a connection that another link gave away, without a handshake.
    pub fn resume(&mut self, session: Session) {
        self.end();
        (self.connection, self.is_established) = (Some(session.0), true);
    }

    /// True if the handshake has begun.
    pub fn has_begun(&self) -> bool {
        self.connection.is_some()
    }

    /// True if the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// True if the server has announced the end of its output (close_notify).
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Number of bytes kept from incomplete records.
    pub fn pending(&self) -> u64 {
        self.incoming.len() as u64
    }

    /// Takes received bytes, which it overwrites, and passes the decrypted bytes to `take`, piece by piece.
    pub fn receive(&mut self, bytes: &mut [u8], take: &mut dyn FnMut(&[u8])) -> Result<(), LinkFailure> {
        if self.connection.is_none() || self.is_closed {
            return Ok(());
        }
        if !self.is_established {
            failure::check_first_bytes(if self.incoming.is_empty() { bytes } else { &self.incoming })?;
        }
        let mut rest = bytes;
        while !self.incoming.is_empty() && !rest.is_empty() {
            // Completing one record leaves those after it in place; a handshake message may need several records.
            let missing = if self.is_established { missing(&self.incoming) } else { 0 };
            let (piece, behind) = rest.split_at_mut(if missing > 0 { missing.min(rest.len()) } else { rest.len() });
            self.incoming.extend_from_slice(piece);
            rest = behind;
            if missing <= piece.len() && has_record(&self.incoming) {
                let mut incoming = std::mem::take(&mut self.incoming);
                let used = self.process(&mut incoming, take)?;
                if used < incoming.len() {
                    incoming.drain(..used);
                    self.incoming = incoming;
                }
            }
        }
        let used = if has_record(rest) { self.process(rest, take)? } else { 0 };
        self.incoming.extend_from_slice(&rest[used..]);
        Ok(())
    }

    /// Hands over the protocol's bytes. All previous bytes must have been accepted.
    pub fn send(&mut self, plain: Transmit) {
        debug_assert!(self.plain.is_none(), "one send at a time");
        self.plain = Some((plain, 0));
    }

    /// The next bytes for the transport; `None` if there are none or some are in flight. After handing them over,
    /// report the number accepted with [`Self::accepted`].
    pub fn seal(&mut self) -> Result<Option<Transmit>, LinkFailure> {
        if self.unsent > 0 || (self.outgoing.is_empty() && (self.plain.is_none() || !self.is_established)) {
            return Ok(None);
        }
        let mut records = std::mem::take(&mut self.outgoing);
        if self.is_established
            && let Some((plain, before)) = self.plain.take()
        {
            let rest = &plain.bytes()[before..];
            let piece = &rest[..rest.len().min(SEALED_MAX)];
            self.encrypt(piece, &mut records)?;
            self.unsent_plain = piece.len();
            if piece.len() < rest.len() {
                self.plain = Some((plain, before + SEALED_MAX));
            }
        }
        self.unsent = records.len();
        Ok(Some(Transmit::Owned(records)))
    }

    /// The alert or close_notify to send before the connection is closed. Empty if it cannot follow the last bytes, or
    /// was sent before.
    pub fn last_words(&mut self) -> Vec<u8> {
        if self.unsent > 0 || std::mem::replace(&mut self.has_taken_leave, true) {
            return Vec::new();
        }
        let mut words = std::mem::take(&mut self.outgoing);
        if self.is_established && words.is_empty() {
            if let Some((plain, before)) = self.plain.take() {
                let _ = self.encrypt(&plain.bytes()[before..], &mut words);
            }
            // If it cannot be sent, the peer must do without it.
            let _ = self.write(&mut words, say_goodbye);
        }
        words
    }

    /// Records that the transport accepted `n` more bytes. Returns the corresponding number of plain bytes.
    pub fn accepted(&mut self, n: usize) -> usize {
        self.unsent = self.unsent.saturating_sub(n);
        if self.unsent == 0 { std::mem::take(&mut self.unsent_plain) } else { 0 }
    }

    /// The parameters negotiated by the handshake; the bool is true if it resumed a session.
    pub fn negotiated(&self) -> (Negotiated, bool) {
        let Some(connection) = &self.connection else { return (Negotiated::default(), false) };
        let negotiated = Negotiated {
            version: connection.protocol_version().map_or(0, u16::from),
            suite: connection.negotiated_cipher_suite().map_or(0, |suite| suite.suite().into()),
            group: connection.negotiated_key_exchange_group().map_or(0, |group| group.name().into()),
            is_http2: connection.alpn_protocol() == Some(HttpVersion::Http2.alpn().as_bytes()),
        };
        (negotiated, connection.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// The negotiated protocol (ALPN), if any.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.connection.as_ref().and_then(|connection| connection.alpn_protocol())
    }

    /// Lets the library process complete records. Returns the number of bytes used up.
    fn process(&mut self, bytes: &mut [u8], take: &mut dyn FnMut(&[u8])) -> Result<usize, LinkFailure> {
        let Some(connection) = &mut self.connection else { return Ok(bytes.len()) };
        let mut used = 0;
        loop {
            let UnbufferedStatus { mut discard, state } = connection.process_tls_records(&mut bytes[used..]);
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    // The alert for the server is next. Then the connection is dropped: the library may expect half a
                    // message's bytes again, and they are gone.
                    let next = connection.process_tls_records(&mut bytes[used + discard..]);
                    if let Ok(ConnectionState::EncodeTlsData(data)) = next.state {
                        encode(data, &mut self.outgoing);
                    }
                    self.connection = None;
                    return Err(LinkFailure::from_tls_error(&error));
                }
            };
            let is_waiting = match state {
                ConnectionState::ReadTraffic(mut records) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(|error| LinkFailure::from_tls_error(&error))?;
                        discard += record.discard;
                        take(record.payload);
                    }
                    // If nothing follows, there is no need to call the library again.
                    self.is_established && used + discard == bytes.len()
                }
                ConnectionState::EncodeTlsData(data) => {
                    encode(data, &mut self.outgoing);
                    false
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    false
                }
                ConnectionState::WriteTraffic(_) => {
                    self.is_established = true;
                    true
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    self.is_closed = true;
                    true
                }
                _ => true,
            };
            used += discard;
            if is_waiting {
                return Ok(used);
            }
        }
    }

    /// Appends `plain` to `records`, encrypted.
    fn encrypt(&mut self, plain: &[u8], records: &mut Vec<u8>) -> Result<(), LinkFailure> {
        self.write(records, |traffic, records| encrypt(traffic, plain, records))
    }

    /// Calls `act` to append bytes to `records`, after the library's own output.
    fn write(
        &mut self,
        records: &mut Vec<u8>,
        act: impl FnOnce(WriteTraffic<'_, ClientConnectionData>, &mut Vec<u8>) -> Result<(), LinkFailure>,
    ) -> Result<(), LinkFailure> {
        let Some(connection) = &mut self.connection else { return Err(LinkFailure::closed()) };
        loop {
            // The library remembers where an incomplete message begins in the records.
            match connection
                .process_tls_records(&mut self.incoming)
                .state
                .map_err(|error| LinkFailure::from_tls_error(&error))?
            {
                ConnectionState::WriteTraffic(traffic) => return act(traffic, records),
                ConnectionState::EncodeTlsData(data) => encode(data, records),
                ConnectionState::TransmitTlsData(data) => data.done(),
                _ => return Err(LinkFailure::closed()),
            }
        }
    }
}

/// Appends the handshake's output.
fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, out: &mut Vec<u8>) {
    let start = out.len();
    if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) {
        out.resize(start + size.required_size, 0);
        let encoded = data.encode(&mut out[start..]);
        debug_assert!(encoded.is_ok(), "it has the size that was asked for");
    }
}

/// Appends a close_notify.
fn say_goodbye(mut traffic: WriteTraffic<'_, ClientConnectionData>, out: &mut Vec<u8>) -> Result<(), LinkFailure> {
    let start = out.len();
    out.resize(start + OVERHEAD_MAX, 0);
    let length = traffic.queue_close_notify(&mut out[start..]).unwrap_or(0);
    out.truncate(start + length);
    Ok(())
}

fn encrypt(
    mut traffic: WriteTraffic<'_, ClientConnectionData>,
    plain: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), LinkFailure> {
    let start = out.len();
    out.resize(start + plain.len() + OVERHEAD_MAX, 0);
    match traffic.encrypt(plain, &mut out[start..]) {
        Ok(length) => {
            out.truncate(start + length);
            Ok(())
        }
        Err(EncryptError::InsufficientSize(_) | EncryptError::EncryptExhausted) => Err(LinkFailure::closed()),
    }
}

/// Number of bytes missing from the first record, or from its header if that is incomplete. Zero if the record is too
/// long to be valid.
fn missing(bytes: &[u8]) -> usize {
    let whole = bytes
        .first_chunk()
        .map_or(HEADER, |[_, _, _, high, low]: &[u8; HEADER]| HEADER + usize::from(u16::from_be_bytes([*high, *low])));
    if whole > HEADER + RECORD_MAX { 0 } else { whole.saturating_sub(bytes.len()) }
}

fn has_record(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER && missing(bytes) == 0
}
