//! TLS failures, during the handshake or after it: the kind, and an example in words.

use rustls::pki_types::{ServerName, UnixTime};
use rustls::{CertificateError, Error, InvalidMessage, PeerIncompatible};
use time::OffsetDateTime;

use onrush_stats::TlsFailure;

/// Number of server bytes kept as an example.
const EXAMPLE_BYTES: usize = 60;
/// Largest number of certificate names listed in a message.
const NAMES_MAX: usize = 3;
/// The record types: the only possible first bytes of any TLS version.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=23;
const MAJOR: u8 = 3;

/// A failure of a connection's TLS, after which the connection is useless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFailure {
    /// The kind of failure.
    pub cause: TlsFailure,
    /// Details of this case, or bytes from the server, unescaped; may be empty.
    pub example: Vec<u8>,
}

impl LinkFailure {
    /// The failure of a connection that the server has closed.
    pub fn closed() -> Self {
        Self { cause: TlsFailure::Closed, example: Vec::new() }
    }

    /// Translates the library's error.
    pub(super) fn from_tls_error(error: &Error) -> Self {
        let (cause, example) = match error {
            Error::InvalidCertificate(error) => certificate(error),
            Error::AlertReceived(alert) => (TlsFailure::Alert((*alert).into()), String::new()),
            Error::PeerIncompatible(reason) => (TlsFailure::Incompatible, incompatibility_reason(reason).to_owned()),
            Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
                (TlsFailure::NotTls, String::new())
            }
            error => (TlsFailure::Misbehaved, failure_in_words(error)),
        };
        Self { cause, example: example.into_bytes() }
    }
}

/// Checks that the first bytes from a server can be TLS.
pub(super) fn check_first_bytes(bytes: &[u8]) -> Result<(), LinkFailure> {
    let is_tls = match bytes {
        [kind, major, ..] => RECORDS.contains(kind) && *major == MAJOR,
        [kind] => RECORDS.contains(kind),
        [] => true,
    };
    if is_tls {
        return Ok(());
    }
    let line = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let example = bytes[..line.min(EXAMPLE_BYTES)].to_vec();
    let is_text = example.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    Err(LinkFailure { cause: if is_text { TlsFailure::PlainText } else { TlsFailure::NotTls }, example })
}

fn certificate(error: &CertificateError) -> (TlsFailure, String) {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            (TlsFailure::Expired, format!("it was valid until {}", format_utc(*not_after)))
        }
        CertificateError::Expired => (TlsFailure::Expired, String::new()),
        CertificateError::NotValidYetContext { not_before, .. } => {
            (TlsFailure::NotYetValid, format!("it is valid from {}", format_utc(*not_before)))
        }
        CertificateError::NotValidYet => (TlsFailure::NotYetValid, String::new()),
        CertificateError::NotValidForNameContext { expected, presented } => {
            (TlsFailure::WrongName, wrong_name_message(expected, presented))
        }
        CertificateError::NotValidForName => (TlsFailure::WrongName, String::new()),
        CertificateError::UnknownIssuer => (TlsFailure::UnknownIssuer, String::new()),
        // `trust` returns this for an unknown issuer if the certificate is self-signed.
        CertificateError::ApplicationVerificationFailure => (TlsFailure::SelfSigned, String::new()),
        error => (TlsFailure::Certificate, certificate_flaw(error)),
    }
}

/// A certificate flaw that the library has no name for.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum Flaw {
    /// The key is an RSA key of this many bits.
    #[error("it has an RSA key of {0} bits; 2048 to 8192 are supported")]
    RsaKey(usize),
}

/// The reason why a certificate is not accepted, in words.
fn certificate_flaw(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::Other(other) => match other.0.downcast_ref::<Flaw>() {
            Some(flaw) => return flaw.to_string(),
            None if other.0.to_string().starts_with("UnsupportedCertVersion") => {
                "it is of X.509 version 1, not 3, and names no host"
            }
            None => return value_name_as_words(&other.0.to_string()),
        },
        CertificateError::BadEncoding => "it cannot be read",
        CertificateError::BadSignature => "a signature does not match its key",
        #[expect(deprecated, reason = "the library still returns it")]
        CertificateError::UnsupportedSignatureAlgorithm => UNSUPPORTED_SIGNATURE,
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => UNSUPPORTED_SIGNATURE,
        CertificateError::UnhandledCriticalExtension => "it has a critical extension that onrush does not support",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not a server \
                                                                                              certificate"
        }
        CertificateError::Revoked => "it has been revoked",
        error => return value_name_as_words(&format!("{error:?}")),
    };
    text.to_owned()
}

const UNSUPPORTED_SIGNATURE: &str =
    "it is signed with an algorithm that onrush does not support, such as Ed448 or SHA-1";

/// The failure in words: the library has only the names of its values.
pub(super) fn failure_in_words(error: &Error) -> String {
    match error {
        Error::PeerMisbehaved(reason) => value_name_as_words(&format!("{reason:?}")),
        Error::PeerIncompatible(reason) => value_name_as_words(&format!("{reason:?}")),
        Error::InvalidMessage(reason) => format!("malformed message: {}", value_name_as_words(&format!("{reason:?}"))),
        Error::InappropriateMessage { got_type, .. } => out_of_turn(&format!("{got_type:?}")),
        Error::InappropriateHandshakeMessage { got_type, .. } => out_of_turn(&format!("{got_type:?}")),
        Error::DecryptError => "its data cannot be decrypted".to_owned(),
        Error::PeerSentOversizedRecord => "it sends a record that is too long".to_owned(),
        Error::NoCertificatesPresented => "it sends no certificate".to_owned(),
        Error::General(text) => text.clone(),
        error => value_name_as_words(&format!("{error:?}")),
    }
}

fn out_of_turn(message: &str) -> String {
    format!("unexpected message: {}", value_name_as_words(message))
}

/// The name of a library value as words, without its contents: `MissingKeyShare` is `missing key share`.
fn value_name_as_words(name: &str) -> String {
    let mut text = String::with_capacity(2 * name.len());
    let mut last_is_capital = true;
    for character in name.chars().take_while(char::is_ascii_alphanumeric) {
        let is_capital = !character.is_ascii_lowercase();
        if is_capital && !last_is_capital {
            text.push(' ');
        }
        text.push(character.to_ascii_lowercase());
        last_is_capital = is_capital;
    }
    text
}

/// The names that the certificate is valid for. The library writes a name as `DnsName("a.example")`.
fn wrong_name_message(expected: &ServerName<'_>, presented: &[String]) -> String {
    let plain = |name: &String| {
        let inside = name.split_once('(').map_or(name.as_str(), |(_, inside)| inside);
        inside.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().take(NAMES_MAX).map(plain).collect();
    let more = if presented.len() > NAMES_MAX { ", …" } else { "" };
    let (names, expected) = (names.join(", "), expected.to_str());
    if names.is_empty() {
        return format!("it names no host, so it is not valid for {expected}");
    }
    format!("it is for {names}{more}, not for {expected}")
}

/// The reason why there is no TLS with this server; empty if it is of no use to a user.
fn incompatibility_reason(reason: &PeerIncompatible) -> &'static str {
    match reason {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::Tls12NotOfferedOrEnabled => "the server chose a TLS version that was not offered",
        PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => {
            "the server asks for a client certificate, but allows no signature that onrush can make"
        }
        _ => "",
    }
}

/// A moment as a date in UTC: `2024-02-29 12:00:00 UTC`.
fn format_utc(time: UnixTime) -> String {
    let moment =
        i64::try_from(time.as_secs()).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let Some(moment) = moment else { return "a year after 9999".to_owned() };
    let (hour, minute, second) = moment.to_hms();
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", moment.date())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::{HandshakeType, OtherError, PeerMisbehaved};

    use super::*;

    #[test]
    fn certificate_dates_are_formatted_in_utc() {
        let at = |seconds| format_utc(UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_709_251_199), "2024-02-29 23:59:59 UTC");
        assert_eq!(at(4_102_444_800), "2100-01-01 00:00:00 UTC");
        assert_eq!(at(u64::MAX / 2), "a year after 9999");
    }

    #[test]
    fn library_errors_are_put_into_words() {
        for (error, expected) in [
            (Error::PeerMisbehaved(PeerMisbehaved::TooManyKeyUpdateRequests), "too many key update requests"),
            (Error::PeerMisbehaved(PeerMisbehaved::KeyEpochWithPendingFragment), "key epoch with pending fragment"),
            (Error::InvalidMessage(InvalidMessage::MissingData("Extension")), "malformed message: missing data"),
            (
                Error::InappropriateHandshakeMessage {
                    expect_types: vec![HandshakeType::ServerHello],
                    got_type: HandshakeType::KeyUpdate,
                },
                "unexpected message: key update",
            ),
            (Error::DecryptError, "its data cannot be decrypted"),
            (Error::HandshakeNotComplete, "handshake not complete"),
        ] {
            assert_eq!(failure_in_words(&error), expected);
        }
        let other = |error: Flaw| CertificateError::Other(OtherError(Arc::new(error)));
        assert_eq!(
            certificate_flaw(&other(Flaw::RsaKey(512))),
            "it has an RSA key of 512 bits; 2048 to 8192 are supported"
        );
        assert_eq!(certificate_flaw(&CertificateError::ExpiredRevocationList), "expired revocation list");
        assert_eq!(certificate_flaw(&CertificateError::BadEncoding), "it cannot be read");
    }

    #[test]
    fn first_bytes_distinguish_text_from_tls() {
        let cause = |bytes: &[u8]| check_first_bytes(bytes).map_err(|failure| failure.cause);
        assert_eq!(cause(b"\x16\x03\x03\x00\x7a"), Ok(()));
        assert_eq!(cause(b"\x15"), Ok(()));
        assert_eq!(cause(b"HTTP/1.1 400 Bad Request\r\n"), Err(TlsFailure::PlainText));
        assert_eq!(cause(b"\x16\x02\x00"), Err(TlsFailure::NotTls));
        assert_eq!(cause(b"\x00\xff"), Err(TlsFailure::NotTls));
    }

    #[test]
    fn certificate_names_are_shown_plainly() {
        let expected = ServerName::try_from("www.example").unwrap();
        let presented = ["DnsName(\"a.example\")", "DnsName(\"b.example\")"].map(str::to_owned);
        assert_eq!(wrong_name_message(&expected, &presented), "it is for a.example, b.example, not for www.example");
        assert_eq!(wrong_name_message(&expected, &[]), "it names no host, so it is not valid for www.example");
    }
}
