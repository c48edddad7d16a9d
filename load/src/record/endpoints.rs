//! How connections reach the target, and the TLS options, as a document has them.

use onrush_plan::secrets;
use onrush_plan::tls::{GROUPS, SUITES, TlsName};
use serde::{Deserialize, Serialize};

/// The way to the target, where it is not simply the host of the URL; only what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema), schemars(rename = "Way"))]
pub struct Endpoints {
    /// The source addresses that connections use in turn: the first, and the last if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bind_ip: Vec<String>,
    /// The host, and the port if one was given, that connections go to instead of the URL's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_to: Option<String>,
    /// The addresses that override those of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<String>,
    /// The only family of addresses: `IPv4` or `IPv6`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The Unix socket that connections go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<String>,
    /// The proxy that connections go through; its user is redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// The requested receive buffer of a connection, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<u32>,
    /// The requested send buffer of a connection, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<u32>,
    /// The congestion control algorithm of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// The TLS options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Offer {
    /// The name that the server's certificate must have; sent to the server unless it is an address.
    pub name: String,
    /// Whether the server's certificate is checked.
    pub check: bool,
    /// The file with trusted certificates; left out: the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// The file of the client's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// The file of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The oldest version offered: `1.2` or `1.3`.
    pub min: String,
    /// The newest version offered.
    pub max: String,
    /// The IANA names of the suites offered, if they were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
    /// The groups offered, if they were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The protocols offered to the server (ALPN).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alpn: Vec<String>,
    /// Whether a connection that replaces another resumes its session.
    pub resume: bool,
}

impl Endpoints {
    /// The parts of the way that were asked for; `None`: none.
    pub fn of(way: &onrush_plan::ConnectOptions, keeps_secrets: bool) -> Option<Self> {
        let onrush_plan::ConnectOptions { instead, proxy, resolved, family, unix, sources, socket } = way;
        let shown_url = |url: &str| if keeps_secrets { url.to_owned() } else { secrets::redact_url(url) };
        let ends = |sources: &onrush_plan::connect::SourceAddresses| {
            [0, sources.count() as usize - 1].map(|at| sources.of_connection(at))
        };
        let mut bind_ip: Vec<String> = sources.iter().flat_map(ends).map(|address| address.to_string()).collect();
        bind_ip.dedup();
        let host_and_port = |(host, port): &(String, Option<u16>)| match port {
            Some(port) if host.contains(':') => format!("[{host}]:{port}"),
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        let shown = Self {
            bind_ip,
            connect_to: instead.as_ref().map(host_and_port),
            resolve: resolved.iter().map(ToString::to_string).collect(),
            family: family.map(|family| family.name().to_owned()),
            unix: unix.as_ref().map(|path| path.display().to_string()),
            http_proxy: proxy.as_ref().map(|proxy| shown_url(&proxy.typed)),
            rcvbuf: socket.rcvbuf,
            sndbuf: socket.sndbuf,
            congestion: socket.congestion.clone(),
        };
        (shown != Self::default()).then_some(shown)
    }
}

impl Offer {
    /// The TLS options.
    pub fn of(tls: &onrush_plan::TlsOptions) -> Self {
        let onrush_plan::TlsOptions { name, check, roots, identity, oldest, newest, suites, groups, alpn, resume } =
            tls;
        let shown = |file: &onrush_plan::FileContents| file.name.clone();
        let names = |table, numbers: &[u16]| numbers.iter().map(|number| TlsName::name_of(table, *number)).collect();
        Self {
            name: name.clone(),
            check: *check,
            cacert: roots.as_ref().map(shown),
            cert: identity.as_ref().map(|identity| shown(&identity.certificates)),
            key: identity.as_ref().map(|identity| shown(identity.key())),
            min: oldest.name().to_owned(),
            max: newest.name().to_owned(),
            ciphers: names(SUITES, suites),
            groups: names(GROUPS, groups),
            alpn: alpn.iter().map(|version| version.alpn().to_owned()).collect(),
            resume: *resume,
        }
    }
}
