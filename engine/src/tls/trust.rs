//! Which certificates are accepted.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Accepts certificates that lead to a root, and those that `--cacert` names.
#[derive(Debug)]
pub struct Checked {
    /// Verifies chains up to a root.
    pub roots: Arc<WebPkiServerVerifier>,
    /// Certificates that a server may present itself. They are compared byte by byte, because a certificate that is its
    /// own root would be refused otherwise.
    pub named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Checked {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.named.contains(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        let checked = self.roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        checked.map_err(|error| match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))
                if is_self_signed(end_entity) =>
            {
                Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.roots.supported_verify_schemes()
    }
}

/// Accepts any certificate: the server's identity does not matter, and no time is spent on checking it.
#[derive(Debug)]
pub struct Unchecked(pub Vec<SignatureScheme>);

impl ServerCertVerifier for Unchecked {
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
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}

/// Whether a certificate names itself as its issuer.
pub fn is_self_signed(certificate: &[u8]) -> bool {
    names(certificate).is_some_and(|(issuer, subject)| issuer == subject)
}

/// Issuer and subject of a certificate, as bytes.
fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(certificate)?;
    let (_, signed, _) = element(certificate)?;
    let (tag, _, behind_version) = element(signed)?;
    let serial = if tag == VERSION { behind_version } else { signed };
    let (_, _, algorithm) = element(serial)?;
    let (_, _, issuer) = element(algorithm)?;
    let (_, issuer, validity) = element(issuer)?;
    let (_, _, subject) = element(validity)?;
    let (_, subject, _) = element(subject)?;
    Some((issuer, subject))
}

/// The tag and the content of the first DER element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let (digits, behind) = rest.split_at_checked(usize::from(first & 0x7f).min(4))?;
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = behind;
    }
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}
