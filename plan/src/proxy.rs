//! An HTTP proxy, and the form of requests for it.

use onrush_proto::RequestParts;
use serde::{Deserialize, Serialize};

use super::target::Scheme;
use super::{Request, Target};

/// A proxy for all connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// The proxy's URL as typed.
    pub typed: String,
    /// The proxy's name, or its address without brackets.
    pub host: String,
    /// The proxy's port.
    pub port: u16,
    /// The value of `Proxy-Authorization`, made from the user in the proxy's URL; `None` if it has no user.
    pub login: Option<String>,
}

/// The name of the login header.
const LOGIN: &str = "Proxy-Authorization";

impl Proxy {
    /// Prepares a request for the proxy by adding the scheme, the authority and, unless the request has one, the login.
    /// A request through a tunnel is left unchanged.
    pub fn address_to_proxy(&self, target: &Target, request: &mut Request) {
        let Some(origin) = origin(target) else { return };
        request.target = origin + &request.target;
        if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(LOGIN)) {
            request.headers.extend(self.login());
        }
    }

    /// The `CONNECT` request that opens a tunnel to a target with TLS; `None`: the target needs no tunnel.
    pub fn tunnel_request(&self, target: &Target) -> Option<RequestParts> {
        let is_needed = target.scheme == Scheme::Https;
        let mut authority = target.authority();
        if target.port.is_none() {
            authority += ":443";
        }
        let headers = [("Host".to_owned(), authority.clone())].into_iter().chain(self.login()).collect();
        is_needed.then(|| RequestParts {
            method: "CONNECT".to_owned(),
            target: authority,
            headers,
            ..RequestParts::default()
        })
    }

    /// True if a header is the login from the proxy's URL.
    pub fn is_login(&self, (name, value): &(String, String)) -> bool {
        name == LOGIN && Some(value) == self.login.as_ref()
    }

    fn login(&self) -> Option<(String, String)> {
        self.login.clone().map(|login| (LOGIN.to_owned(), login))
    }
}

/// The scheme and authority that precede the path in a request to a proxy; `None`: the target is reached through a
/// tunnel.
pub fn origin(target: &Target) -> Option<String> {
    (target.scheme != Scheme::Https).then(|| format!("http://{}", target.authority()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn proxy() -> Proxy {
        let login = Some("Basic dTpw".to_owned());
        Proxy { typed: "u:p@proxy:3128".to_owned(), host: "proxy".to_owned(), port: 3128, login }
    }

    fn target(url: &str) -> Target {
        Target::parse(url, Dialect::Native).unwrap()
    }

    #[test]
    fn plain_proxy_requests_carry_url_and_login() {
        let addressed = |url: &str, own: &[(&str, &str)]| {
            let headers = own.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let mut request = Request { target: target(url).path, headers, ..Request::default() };
            proxy().address_to_proxy(&target(url), &mut request);
            let headers: String = request.headers.iter().map(|(name, value)| format!("; {name}: {value}")).collect();
            request.target + &headers
        };
        assert_eq!(addressed("h?q#f", &[]), "http://h/?q; Proxy-Authorization: Basic dTpw");
        assert_eq!(
            addressed("http://u:p@[::1%eth0]:080/a", &[]),
            "http://[::1]:080/a; Proxy-Authorization: Basic dTpw"
        );
        let own = ("proxy-authorization", "x");
        assert_eq!(addressed("http://h/", &[own]), "http://h/; proxy-authorization: x");
        assert_eq!(addressed("https://h/a", &[]), "/a");
    }

    #[test]
    fn tunnels_name_host_and_port() {
        let asked = |url: &str| {
            let parts = proxy().tunnel_request(&target(url))?;
            let headers: String = parts.headers.iter().map(|(name, value)| format!("; {name}: {value}")).collect();
            Some(format!("{} {}{headers}", parts.method, parts.target))
        };
        assert_eq!(asked("http://h/"), None);
        let login = "Proxy-Authorization: Basic dTpw";
        assert_eq!(asked("https://h/a"), Some(format!("CONNECT h:443; Host: h:443; {login}")));
        assert_eq!(asked("https://[::1]:8443"), Some(format!("CONNECT [::1]:8443; Host: [::1]:8443; {login}")));
    }
}
