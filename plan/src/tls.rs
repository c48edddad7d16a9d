//! The TLS settings of a run, and the supported versions, cipher suites and groups.

use serde::{Deserialize, Serialize};

use super::FileContents;

/// The TLS settings for a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// The name sent to the server (SNI), for which the server's certificate must be valid.
    pub name: String,
    /// True to verify the server's certificate; false accepts any.
    pub check: bool,
    /// A PEM file with the certificates to trust instead of the system's; `None`: the system's.
    pub roots: Option<FileContents>,
    /// The client's own certificate; `None`: none is sent.
    pub identity: Option<ClientCertificate>,
    /// The oldest offered version.
    pub oldest: TlsVersion,
    /// The newest offered version.
    pub newest: TlsVersion,
    /// The offered suites, the preferred first; empty: all of [`SUITES`].
    pub suites: Vec<u16>,
    /// The offered key exchange groups, the preferred first; empty: all of [`GROUPS`].
    pub groups: Vec<u16>,
    /// The offered HTTP versions (ALPN), the preferred first; empty: none is offered.
    pub alpn: Vec<super::http::HttpVersion>,
    /// True if a replacement connection tries to resume the TLS session of its predecessor.
    pub resume: bool,
}

/// A certificate and its key, for a server that requests one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// A PEM file with the certificate and the intermediate certificates.
    pub certificates: FileContents,
    /// A PEM file with the key; `None`: the key is in the certificates' file.
    pub key: Option<FileContents>,
}

/// A supported version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

/// A suite or a group: its protocol number and its names; reports use the first name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsName {
    /// The number that stands for the suite or group in handshakes.
    pub number: u16,
    /// The accepted names, at least one; reports use the first.
    pub names: &'static [&'static str],
}

/// The supported suites: IANA's name, then OpenSSL's.
pub const SUITES: &[TlsName] = &[
    TlsName { number: 0x1301, names: &["TLS_AES_128_GCM_SHA256"] },
    TlsName { number: 0x1302, names: &["TLS_AES_256_GCM_SHA384"] },
    TlsName { number: 0x1303, names: &["TLS_CHACHA20_POLY1305_SHA256"] },
    TlsName { number: 0xc02b, names: &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"] },
    TlsName { number: 0xc02c, names: &["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"] },
    TlsName {
        number: 0xcca9,
        names: &["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    },
    TlsName { number: 0xc02f, names: &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"] },
    TlsName { number: 0xc030, names: &["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"] },
    TlsName { number: 0xcca8, names: &["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"] },
];

/// The supported groups, in order of preference.
pub const GROUPS: &[TlsName] = &[
    TlsName { number: 0x001d, names: &["X25519"] },
    TlsName { number: 0x0017, names: &["P-256", "secp256r1", "prime256v1"] },
    TlsName { number: 0x0018, names: &["P-384", "secp384r1"] },
    TlsName { number: 0x11ec, names: &["X25519MLKEM768"] },
];

impl TlsOptions {
    /// The files needed by the settings.
    pub fn files(&self) -> impl Iterator<Item = &FileContents> {
        let identity = self.identity.iter().flat_map(|identity| identity.key.iter().chain([&identity.certificates]));
        self.roots.iter().chain(identity)
    }

    /// The files needed by the settings, for attaching contents.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut FileContents> {
        let identity = self.identity.iter_mut();
        let identity = identity.flat_map(|identity| identity.key.iter_mut().chain([&mut identity.certificates]));
        self.roots.iter_mut().chain(identity)
    }
}

impl ClientCertificate {
    /// The file that contains the key.
    pub fn key(&self) -> &FileContents {
        self.key.as_ref().unwrap_or(&self.certificates)
    }
}

impl TlsName {
    /// The entry of a table with this name, case-insensitive.
    pub fn find(table: &'static [Self], name: &str) -> Option<&'static Self> {
        table.iter().find(|named| named.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The first name of the entry with this number; the number itself if it is not in the table.
    pub fn name_of(table: &'static [Self], number: u16) -> String {
        let named = table.iter().find(|named| named.number == number);
        named.map_or_else(|| format!("0x{number:04x}"), |named| named.names[0].to_owned())
    }
}

impl TlsVersion {
    /// The protocol number of the version.
    pub fn number(self) -> u16 {
        match self {
            Self::V12 => 0x0303,
            Self::V13 => 0x0304,
        }
    }

    /// The usual name of the version.
    pub fn name(self) -> &'static str {
        match self {
            Self::V12 => "1.2",
            Self::V13 => "1.3",
        }
    }

    /// The usual name of the version with this protocol number; any number other than that of TLS 1.3 gives TLS 1.2.
    pub fn name_of(number: u16) -> &'static str {
        if number == Self::V13.number() { Self::V13.name() } else { Self::V12.name() }
    }

    /// The version that a suite belongs to. No suite belongs to both.
    pub fn of_suite(suite: u16) -> Self {
        if suite >> 8 == 0x13 { Self::V13 } else { Self::V12 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_iana_and_openssl_names() {
        let number = |name| TlsName::find(SUITES, name).map(|suite| suite.number);
        assert_eq!(number("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), Some(0xc02f));
        assert_eq!(number("ecdhe-rsa-aes128-gcm-sha256"), Some(0xc02f));
        assert_eq!(number("AES128-SHA"), None);
        assert_eq!(TlsName::name_of(SUITES, 0x1301), "TLS_AES_128_GCM_SHA256");
        assert_eq!(TlsName::name_of(GROUPS, 0x6399), "0x6399");
    }

    #[test]
    fn suites_belong_to_one_version() {
        let new = SUITES.iter().filter(|suite| TlsVersion::of_suite(suite.number) == TlsVersion::V13).count();
        assert_eq!(new, 3);
        assert!(SUITES[..new].iter().all(|suite| suite.names.len() == 1));
    }
}
