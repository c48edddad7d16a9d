//! Name resolution with the system's resolver. It opens no connection.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use onrush_plan::connect::Family;
use onrush_plan::target::Scheme;
use onrush_plan::{ConnectOptions, Target};

/// The addresses of a target in the resolver's order, at least one and without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(pub Vec<SocketAddr>);

/// The target's name or service cannot be resolved. `Display` gives wrk's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to resolve {host}:{service} {reason}")]
pub struct Unresolvable {
    /// The host's name, without brackets.
    pub host: String,
    /// The port as typed, or the scheme.
    pub service: String,
    /// The reason, in the resolver's words or onrush's.
    pub reason: String,
}

impl Unresolvable {
    /// onrush's own message, which does not mention the service.
    pub fn native_message(&self) -> String {
        format!("cannot resolve {}: {}", self.host, self.reason)
    }
}

/// The reason given for a name that has no address at all.
pub const NO_ADDRESS: &str = "the name has no address";

/// Resolves the target's name, which may take as long as the resolver's timeouts allow. With a proxy, another host or
/// given addresses, resolves those instead. Fails if the name is unknown, if it has no address of the chosen family, or
/// if there is neither a port nor a scheme with a default port. For a Unix socket, returns one placeholder address.
pub fn resolve(target: &Target, connect: &ConnectOptions) -> Result<Addresses, Unresolvable> {
    if connect.unix.is_some() {
        return Ok(Addresses(vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))]));
    }
    let (host, port) = match (&connect.proxy, &connect.instead) {
        (Some(proxy), _) => (&proxy.host, Some(proxy.port)),
        (None, Some((host, port))) => (host, *port),
        (None, None) => (&target.host, None),
    };
    let service = port.map_or_else(|| target.service(), |port| port.to_string());
    addresses(target, connect, host, port).map_err(|reason| Unresolvable { host: host.clone(), service, reason })
}

fn addresses(target: &Target, connect: &ConnectOptions, host: &str, port: Option<u16>) -> Result<Addresses, String> {
    let usual = match target.scheme {
        Scheme::Http => Some(80),
        Scheme::Https => Some(443),
        Scheme::Other(_) => None,
    };
    let port = port.or(target.port).or(usual).ok_or("the scheme has no default port and the URL has none")?;
    let mut found: Vec<SocketAddr> = if connect.resolved.is_empty() {
        (host, port).to_socket_addrs().map_err(|error| resolver_message(&error))?.collect()
    } else {
        connect.resolved.iter().map(|address| SocketAddr::new(*address, port)).collect()
    };
    let mut seen = HashSet::new();
    found.retain(|address| seen.insert(*address));
    let family = connect.family.or(connect.sources.map(|sources| sources.family()));
    found.retain(|address| family.is_none_or(|family| Family::from_address(address.ip()) == family));
    match (found.is_empty(), family) {
        (false, _) => Ok(Addresses(found)),
        (true, None) => Err(NO_ADDRESS.to_owned()),
        (true, Some(family)) => Err(format!("the name has no {} address", family.name())),
    }
}

/// The resolver's message, without the standard library's prefix.
fn resolver_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use onrush_plan::{Dialect, Proxy};

    use super::*;

    fn addresses_without_resolver(url: &str) -> Result<Addresses, String> {
        resolved_by(url, &ConnectOptions::default())
    }

    fn resolved_by(url: &str, connect: &ConnectOptions) -> Result<Addresses, String> {
        resolve(&Target::parse(url, Dialect::Wrk).unwrap(), connect).map_err(|error| error.to_string())
    }

    #[test]
    fn alternative_addresses_replace_the_resolver() {
        let found = |connect: ConnectOptions| resolved_by("http://nosuch.invalid:81/", &connect);
        let expected = |text: &str| Ok(Addresses(vec![text.parse().unwrap()]));
        let proxy = Proxy { typed: String::new(), host: "127.0.0.1".to_owned(), port: 3128, login: None };
        assert_eq!(
            found(ConnectOptions { proxy: Some(proxy), ..ConnectOptions::default() }),
            expected("127.0.0.1:3128")
        );
        let instead =
            |host: &str, port| ConnectOptions { instead: Some((host.to_owned(), port)), ..ConnectOptions::default() };
        assert_eq!(found(instead("127.0.0.1", Some(9))), expected("127.0.0.1:9"));
        assert_eq!(found(instead("127.0.0.1", None)), expected("127.0.0.1:81"));
        let addresses: Vec<std::net::IpAddr> = vec!["127.0.0.2".parse().unwrap(), "::1".parse().unwrap()];
        let of = |family| ConnectOptions { resolved: addresses.clone(), family, ..ConnectOptions::default() };
        assert_eq!(found(of(Some(Family::V4))), expected("127.0.0.2:81"));
        assert_eq!(found(of(Some(Family::V6))), expected("[::1]:81"));
        assert_eq!(found(of(None)).unwrap().0.len(), 2);
        let only_v4 =
            ConnectOptions { resolved: addresses[..1].to_vec(), family: Some(Family::V6), ..ConnectOptions::default() };
        assert_eq!(found(only_v4).unwrap_err(), "unable to resolve nosuch.invalid:81 the name has no IPv6 address");
        assert!(found(ConnectOptions { unix: Some("/s".into()), ..ConnectOptions::default() }).is_ok());
    }

    #[test]
    fn addresses_resolve_to_themselves_once() {
        let expected = |text: &str| Ok(Addresses(vec![text.parse().unwrap()]));
        assert_eq!(addresses_without_resolver("http://127.0.0.1/"), expected("127.0.0.1:80"));
        assert_eq!(addresses_without_resolver("https://127.0.0.1/"), expected("127.0.0.1:443"));
        assert_eq!(addresses_without_resolver("http://127.0.0.1:0081/"), expected("127.0.0.1:81"));
        assert_eq!(addresses_without_resolver("http://[::1]:8080/"), expected("[::1]:8080"));
        assert_eq!(addresses_without_resolver("xyz://127.0.0.1:8080/"), expected("127.0.0.1:8080"));
    }

    #[test]
    fn unknown_names_get_wrks_message() {
        let message = addresses_without_resolver("http://nosuch.invalid/").unwrap_err();
        assert!(message.starts_with("unable to resolve nosuch.invalid:http "), "{message}");
        assert!(!message.contains("failed to lookup"), "{message}");
    }

    #[test]
    fn unknown_default_ports_get_wrks_message() {
        let message = addresses_without_resolver("xyz://127.0.0.1/").unwrap_err();
        assert_eq!(message, "unable to resolve 127.0.0.1:xyz the scheme has no default port and the URL has none");
        let unresolvable =
            Unresolvable { host: "h".to_owned(), service: "http".to_owned(), reason: NO_ADDRESS.to_owned() };
        assert_eq!(unresolvable.native_message(), "cannot resolve h: the name has no address");
    }
}
