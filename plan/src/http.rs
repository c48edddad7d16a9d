//! HTTP versions of connections, and HTTP/2 SETTINGS.

use serde::{Deserialize, Serialize};

/// The HTTP versions that connections may use, and the HTTP/2 settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http {
    /// The allowed versions, the preferred first; the TLS handshake decides between them. Without TLS there is only
    /// one.
    pub versions: Vec<HttpVersion>,
    /// Limit on requests in flight per HTTP/2 connection; `None`: one request, or one batch of a script.
    pub streams: Option<u32>,
    /// SETTINGS of HTTP/2 connections.
    pub settings: Http2Settings,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

/// SETTINGS sent on HTTP/2 connections; `None`: onrush's usual value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Settings {
    /// Initial stream window in bytes: the part of a response's body that the server may send before it must wait.
    pub window: Option<u32>,
    /// Window for all responses of a connection together, in bytes.
    pub connection_window: Option<u32>,
    /// Largest payload of a frame, in bytes.
    pub frame_max: Option<u32>,
    /// Size of the server's header table, in bytes.
    pub table: Option<u32>,
}

impl Default for Http {
    fn default() -> Self {
        Self { versions: vec![HttpVersion::Http11], streams: None, settings: Http2Settings::default() }
    }
}

impl Http {
    /// The contradiction in values read from a plan, if there is one.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let is_void = self.versions.is_empty() || self.streams == Some(0);
        is_void.then_some("no version of HTTP, or no request, is allowed on a connection")
    }

    /// True if all connections use HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.versions == [HttpVersion::Http2]
    }

    /// True if connections may use HTTP/2.
    pub fn may_be_http2(&self) -> bool {
        self.versions.contains(&HttpVersion::Http2)
    }
}

impl HttpVersion {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::Http11, Self::Http2];

    /// The version's name in a TLS handshake (ALPN, RFC 7301).
    pub fn alpn(self) -> &'static str {
        match self {
            Self::Http11 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}
