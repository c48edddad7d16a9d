//! From a name to addresses, through the system's resolver and nothing else. It connects to nothing.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use super::Target;
use super::target::Scheme;

/// The addresses of a target in the resolver's order, none twice and at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(pub Vec<SocketAddr>);

/// The target's name or service is not known. In wrk's words, in every dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to resolve {host}:{service} {reason}")]
pub struct Unresolvable {
    /// The host as it stands in the URL, without brackets.
    pub host: String,
    /// The port as typed, or the scheme.
    pub service: String,
    /// What the resolver says.
    pub reason: String,
}

/// Asks the system's resolver, which may take as long as its own time limits allow. Fails if the name is not known,
/// or if there is neither a port nor a scheme with a usual one.
pub fn resolve(target: &Target) -> Result<Addresses, Unresolvable> {
    addresses(target).map_err(|reason| Unresolvable { host: target.host.clone(), service: target.service(), reason })
}

fn addresses(target: &Target) -> Result<Addresses, String> {
    let usual = match target.scheme {
        Scheme::Http => Some(80),
        Scheme::Https => Some(443),
        Scheme::Other(_) => None,
    };
    let port = target.port.or(usual).ok_or("the scheme has no usual port and the URL names none")?;
    let found = (target.host.as_str(), port).to_socket_addrs().map_err(|error| reason(&error))?;
    let mut seen = HashSet::new();
    let found: Vec<SocketAddr> = found.filter(|address| seen.insert(*address)).collect();
    if found.is_empty() { Err("the name has no address".to_owned()) } else { Ok(Addresses(found)) }
}

/// What the resolver says, without the standard library's words in front of it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Dialect;

    fn resolved(url: &str) -> Result<Addresses, String> {
        resolve(&Target::parse(url, Dialect::Wrk).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_resolves_to_itself_once() {
        let expected = |text: &str| Ok(Addresses(vec![text.parse().unwrap()]));
        assert_eq!(resolved("http://127.0.0.1/"), expected("127.0.0.1:80"));
        assert_eq!(resolved("https://127.0.0.1/"), expected("127.0.0.1:443"));
        assert_eq!(resolved("http://127.0.0.1:0081/"), expected("127.0.0.1:81"));
        assert_eq!(resolved("http://[::1]:8080/"), expected("[::1]:8080"));
        assert_eq!(resolved("xyz://127.0.0.1:8080/"), expected("127.0.0.1:8080"));
    }

    #[test]
    fn an_unknown_name_is_said_in_wrks_words() {
        let message = resolved("http://nosuch.invalid/").unwrap_err();
        assert!(message.starts_with("unable to resolve nosuch.invalid:http "), "{message}");
        assert!(!message.contains("failed to lookup"), "{message}");
    }

    #[test]
    fn a_scheme_without_a_usual_port_is_said_in_wrks_words() {
        let message = resolved("xyz://127.0.0.1/").unwrap_err();
        assert_eq!(message, "unable to resolve 127.0.0.1:xyz the scheme has no usual port and the URL names none");
    }
}
