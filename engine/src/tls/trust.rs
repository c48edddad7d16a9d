//! Acceptance of certificates.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, PeerMisbehaved, SignatureScheme};

use super::certificate::{is_self_signed, key_parts, public_key, rsa_bits};
use super::failure::Flaw;

/// RSA key sizes, in bits, with which the library verifies signatures.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Accepts certificates that lead to a root, and the certificates of `--cacert` themselves.
#[derive(Debug)]
pub struct Checked {
    /// Verifies chains up to a root.
    pub roots: Arc<WebPkiServerVerifier>,
    /// Certificates that a server may present itself. They are compared byte by byte: a certificate that is its own
    /// root would be refused otherwise.
    pub named: Vec<CertificateDer<'static>>,
    /// The signatures that are verified.
    pub algorithms: WebPkiSupportedAlgorithms,
}

impl Checked {
    /// Verifies a signature with the key of a named certificate. The library has not verified it, because it reads only
    /// certificates of version 3.
    fn verify_named(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
        certificate: &CertificateDer<'_>,
        verify: impl FnOnce(&[u8]) -> Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match verified {
            Err(Error::InvalidCertificate(CertificateError::Other(other))) if self.named.contains(certificate) => {
                let unread = Err(Error::InvalidCertificate(CertificateError::Other(other)));
                public_key(certificate).map_or(unread, verify)
            }
            verified => verified,
        }
    }

    /// Verifies a signature of TLS 1.2. The library tries all algorithms that suit the signature's scheme.
    fn verify_old(
        &self,
        key: &[u8],
        message: &[u8],
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let offered = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signature.scheme);
        let (_, algorithms) = offered.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let (algorithm, key) = key_parts(key).ok_or(CertificateError::BadEncoding)?;
        let fit = algorithms.iter().filter(|it| it.public_key_alg_id().as_ref() == algorithm);
        let mut verified = fit.map(|it| it.verify_signature(key, message, signature.signature()));
        let is_good = verified.any(|verified| verified.is_ok());
        if is_good { Ok(HandshakeSignatureValid::assertion()) } else { Err(CertificateError::BadSignature.into()) }
    }
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
        if let Some(bits) = rsa_bits(end_entity).filter(|bits| !RSA_BITS.contains(bits)) {
            return Err(CertificateError::Other(OtherError(Arc::new(Flaw::RsaKey(bits)))).into());
        }
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
        let verified = self.roots.verify_tls12_signature(message, certificate, signature);
        self.verify_named(verified, certificate, |key| self.verify_old(key, message, signature))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self.roots.verify_tls13_signature(message, certificate, signature);
        self.verify_named(verified, certificate, |key| {
            let key = SubjectPublicKeyInfoDer::from(key);
            verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
        })
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
