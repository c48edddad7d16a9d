//! How connections were to get to the target, and how they were to speak TLS there, as a document has it.

use serde::{Deserialize, Serialize};

use crate::plan;
use crate::plan::secrets;
use crate::plan::tls::{GROUPS, Named, SUITES};

/// The way to the target, where it is not simply the host of the URL: the parts of it that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Way {
    /// The addresses that connections come from, in turn: the first, and the last if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bind_ip: Vec<String>,
    /// The host, and the port if one was named, that connections go to in place of the URL's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_to: Option<String>,
    /// The addresses that the host is taken to have.
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
    /// The receive buffer of a connection that was asked for, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<u32>,
    /// The send buffer of a connection that was asked for, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<u32>,
    /// The congestion control of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// How TLS was to be spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Offer {
    /// The name that the server's certificate has to have; sent to the server unless it is an address.
    pub name: String,
    /// Whether the server's certificate is checked.
    pub check: bool,
    /// The file of the certificates to trust; without it those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// The file of the client's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// The file of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The oldest version that is offered: `1.2` or `1.3`.
    pub min: String,
    /// The newest version that is offered.
    pub max: String,
    /// The suites that are offered by IANA's names, if they were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
    /// The groups that are offered, if they were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The protocols that are named to the server (ALPN).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alpn: Vec<String>,
    /// Whether a connection that replaces another resumes its session.
    pub resume: bool,
}

impl Way {
    /// What of the way was asked for; `None`: nothing.
    pub fn of(way: &plan::Way, keeps_secrets: bool) -> Option<Self> {
        let plan::Way { instead, proxy, resolved, family, unix, sources, socket } = way;
        let shown_url = |url: &str| if keeps_secrets { url.to_owned() } else { secrets::url(url) };
        let ends = |sources: &plan::way::Sources| [0, sources.count() as usize - 1].map(|at| sources.of_connection(at));
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
    /// How TLS was to be spoken.
    pub fn of(tls: &plan::Tls) -> Self {
        let plan::Tls { name, check, roots, identity, oldest, newest, suites, groups, names_protocol, resume } = tls;
        let shown = |file: &plan::Material| file.name.clone();
        let names = |table, numbers: &[u16]| numbers.iter().map(|number| Named::name_of(table, *number)).collect();
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
            alpn: names_protocol.then(|| "http/1.1".to_owned()).into_iter().collect(),
            resume: *resume,
        }
    }
}
