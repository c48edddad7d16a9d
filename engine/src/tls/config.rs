//! The TLS settings shared by all connections of a run, made once from the plan.

use std::sync::Arc;

use onrush_plan::tls::{ClientCertificate, TlsVersion};
use onrush_plan::{FileContents, TlsOptions, UnreadableFile};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientConfig, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, InconsistentKeys, RootCertStore, SupportedProtocolVersion, version};
use thiserror::Error;

use super::Link;
use super::certificate::public_key;
use super::failure::failure_in_words;
use super::sessions::SlotSession;
use super::trust::{Checked, Unchecked};

/// The TLS settings shared by all connections of a run; clones share them too.
#[derive(Clone, Debug)]
pub struct Config {
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
    resume: bool,
}

/// Reasons why TLS cannot be used as planned. `Display` gives the fault, with the option or file.
#[derive(Debug, Error)]
pub enum Unusable {
    /// A file's contents were neither read nor sent along with the plan.
    #[error(transparent)]
    Missing(#[from] UnreadableFile),
    /// A file contains no certificate.
    #[error("{0}: no certificate found; expected a PEM file, which begins with -----BEGIN CERTIFICATE-----")]
    NoCertificate(String),
    /// A file contains no key.
    #[error("{0}: no private key found; expected a PEM file (--key names it if the key is not in that of --cert)")]
    NoKey(String),
    /// A key is encrypted.
    #[error("{0}: the key is encrypted; 'openssl pkey -in FILE -out PLAIN' removes the password")]
    EncryptedKey(String),
    /// Certificate and key do not match or cannot be used.
    #[error("{certificates} and {key}: {reason}")]
    Identity {
        /// The name of the certificate's file.
        certificates: String,
        /// The name of the key's file.
        key: String,
        /// The library's reason, in words.
        reason: String,
    },
    /// The system has no root certificates.
    #[error(
        "this machine has no CA certificates; install them (Debian: apt-get install ca-certificates), name a file of \
         them with --cacert, or use -k"
    )]
    NoRoots,
    /// The name, of the target or from `--sni`, cannot be a server name.
    #[error("\"{0}\" is not a valid TLS server name; --sni sets another")]
    Name(String),
    /// The versions, suites and groups leave nothing to offer.
    #[error("the chosen TLS versions, suites and groups leave nothing to offer: {0}")]
    Nothing(String),
}

impl Config {
    /// Builds the settings. Without `--cacert`, reads the system's root certificates.
    pub fn new(tls: &TlsOptions) -> Result<Self, Unusable> {
        let provider = Arc::new(provider(tls));
        let versions: Vec<&'static SupportedProtocolVersion> =
            [(TlsVersion::V12, &version::TLS12), (TlsVersion::V13, &version::TLS13)]
                .into_iter()
                .filter(|(version, _)| (tls.oldest..=tls.newest).contains(version))
                .filter(|(version, _)| {
                    tls.suites.is_empty() || tls.suites.iter().any(|suite| TlsVersion::of_suite(*suite) == *version)
                })
                .map(|(_, version)| version)
                .collect();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&versions);
        let builder = builder.map_err(|error| Unusable::Nothing(failure_in_words(&error)))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier(tls, &provider)?);
        let mut client = match &tls.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = (certificates(&identity.certificates)?, key(identity.key())?);
                let certified = certified(certificates, key, &provider).map_err(|error| unfit(identity, &error))?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
        };
        client.resumption = Resumption::disabled();
        client.alpn_protocols = tls.alpn.iter().map(|version| version.alpn().as_bytes().to_vec()).collect();
        let name = ServerName::try_from(tls.name.clone()).map_err(|_| Unusable::Name(tls.name.clone()))?;
        Ok(Self { client: Arc::new(client), name, resume: tls.resume })
    }

    /// Seeds the calling thread's random generator, so that the first handshake need not: seeding
    /// costs as much as many requests.
    pub fn warm_up(&self) {
        // If seeding fails, the first handshake fails too, with a message.
        let _ = self.client.crypto_provider().secure_random.fill(&mut [0; 32]);
    }

    /// A link for one slot. If sessions are resumed, the link keeps its own session, which no other
    /// link uses.
    pub fn link(&self) -> Link {
        let mut client = Arc::clone(&self.client);
        if self.resume {
            Arc::make_mut(&mut client).resumption = Resumption::store(Arc::new(SlotSession::default()));
        }
        Link::new(client, self.name.clone())
    }
}

/// The suites and groups to offer, in order of preference.
fn provider(tls: &TlsOptions) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if !tls.suites.is_empty() {
        provider.cipher_suites = pick(&tls.suites, aws_lc_rs::ALL_CIPHER_SUITES, |suite| suite.suite().into());
    }
    if !tls.groups.is_empty() {
        provider.kx_groups = pick(&tls.groups, aws_lc_rs::ALL_KX_GROUPS, |group| group.name().into());
    }
    provider
}

/// The elements of `all` with these numbers, in the order of the numbers.
fn pick<T: Copy>(numbers: &[u16], all: &[T], number: impl Fn(T) -> u16) -> Vec<T> {
    numbers.iter().filter_map(|wanted| all.iter().copied().find(|one| number(*one) == *wanted)).collect()
}

fn verifier(tls: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Unusable> {
    if !tls.check {
        return Ok(Arc::new(Unchecked(provider.signature_verification_algorithms.supported_schemes())));
    }
    let (named, trusted) = match &tls.roots {
        Some(file) => {
            let named = certificates(file)?;
            (named.clone(), named)
        }
        None => (Vec::new(), rustls_native_certs::load_native_certs().certs),
    };
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be a root may still be the one that a server presents.
    roots.add_parsable_certificates(trusted);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let roots = verifier.map_err(|_| match &tls.roots {
        Some(file) => Unusable::NoCertificate(file.name.clone()),
        None => Unusable::NoRoots,
    })?;
    Ok(Arc::new(Checked { roots, named, algorithms: provider.signature_verification_algorithms }))
}

fn certificates(file: &FileContents) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(file.contents()?).collect();
    certificates.ok().filter(|found| !found.is_empty()).ok_or_else(|| Unusable::NoCertificate(file.name.clone()))
}

fn key(file: &FileContents) -> Result<PrivateKeyDer<'static>, Unusable> {
    let text = file.contents()?;
    PrivateKeyDer::from_pem_slice(text).map_err(|_| match memchr::memmem::find(text, b"ENCRYPTED") {
        Some(_) => Unusable::EncryptedKey(file.name.clone()),
        None => Unusable::NoKey(file.name.clone()),
    })
}

/// A certificate of any version with its key. The library itself reads only version 3.
fn certified(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, rustls::Error> {
    let key = provider.key_provider.load_private_key(key)?;
    let theirs = certificates.first().and_then(|certificate| public_key(certificate));
    let theirs = theirs.ok_or(CertificateError::BadEncoding)?;
    match key.public_key() {
        Some(ours) if ours.as_ref() != theirs => Err(InconsistentKeys::KeyMismatch.into()),
        _ => Ok(CertifiedKey::new(certificates, key)),
    }
}

fn unfit(identity: &ClientCertificate, error: &rustls::Error) -> Unusable {
    let reason = match error {
        rustls::Error::InconsistentKeys(_) => "the key does not match the certificate".to_owned(),
        rustls::Error::General(_) => {
            "the key is damaged or of an unsupported type; use RSA (2048 to 8192 bits), ECDSA or Ed25519".to_owned()
        }
        rustls::Error::InvalidCertificate(_) => "the certificate cannot be read".to_owned(),
        error => failure_in_words(error),
    };
    Unusable::Identity { certificates: identity.certificates.name.clone(), key: identity.key().name.clone(), reason }
}
