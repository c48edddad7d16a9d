//! The address to listen on: as typed, and as resolved by the system.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use anyhow::{anyhow, bail};
use onrush_text::error_reason;

use super::ServeConfig;

/// The address to listen on, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and port.
    Numeric(SocketAddr),
    /// A host name and port.
    Named(String, u16),
}

impl Address {
    /// The address itself, or the first one to which the system resolves the name.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be resolved.
    pub fn resolve(&self) -> anyhow::Result<SocketAddr> {
        let (host, port) = match self {
            Self::Numeric(address) => return Ok(*address),
            Self::Named(host, port) => (host, *port),
        };
        let found = (host.as_str(), port).to_socket_addrs();
        let mut found =
            found.map_err(|error| anyhow!("--addr: {host:?} cannot be resolved: {}", error_reason(&error)))?;
        let Some(address) = found.next() else { bail!("--addr: {host:?} has no address") };
        Ok(address)
    }
}

/// Parses `PORT`, `:PORT`, `HOST:PORT`, `[IPv6]:PORT` or an IP address alone; defaults supply the missing part.
///
/// # Errors
///
/// Fails if the text is none of these; the message names the fault and the valid forms.
pub fn parse_address(text: &str) -> Result<Address, String> {
    let default = ServeConfig::default().address;
    let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = unbracketed.parse::<IpAddr>() {
        return Ok(Address::Numeric(SocketAddr::new(ip, default.port())));
    }
    let (host, port) = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        ("", text)
    } else {
        text.rsplit_once(':').ok_or_else(|| unusable_address("there is no port"))?
    };
    let port = port.parse().map_err(|_| unusable_address("the port is not a number from 0 to 65535"))?;
    if host.is_empty() {
        return Ok(Address::Numeric(SocketAddr::new(default.ip(), port)));
    }
    Ok(text.parse().map_or_else(|_| Address::Named(host.to_owned(), port), Address::Numeric))
}

fn unusable_address(why: &str) -> String {
    let any = Ipv4Addr::UNSPECIFIED;
    format!("{why}; give PORT, HOST:PORT or [IPv6]:PORT, such as 8080, {any}:80 or [::1]:8080")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_omit_host_or_port() {
        for (text, expected) in [
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("192.0.2.7", "192.0.2.7:8080"),
            ("[::1]:9000", "[::1]:9000"),
            ("[::1]", "[::1]:8080"),
            ("::1", "[::1]:8080"),
        ] {
            assert_eq!(parse_address(text), Ok(Address::Numeric(expected.parse().unwrap())), "{text}");
        }
    }

    #[test]
    fn host_names_are_resolved() {
        let typed = parse_address("localhost:9000").unwrap();
        assert_eq!(typed, Address::Named("localhost".to_owned(), 9000));
        let found = typed.resolve().unwrap();
        assert!(found.ip().is_loopback());
        assert_eq!(found.port(), 9000);
        let unknown = parse_address("no.such.invalid:80").unwrap().resolve().unwrap_err().to_string();
        assert!(unknown.starts_with("--addr: \"no.such.invalid\" cannot be resolved: "), "{unknown}");
    }

    #[test]
    fn address_errors_name_valid_forms() {
        let right = "give PORT, HOST:PORT or [IPv6]:PORT, such as 8080, 0.0.0.0:80 or [::1]:8080";
        for (text, why) in [
            ("70000", "the port is not a number from 0 to 65535"),
            ("127.0.0.1:x", "the port is not a number from 0 to 65535"),
            ("", "the port is not a number from 0 to 65535"),
            ("example", "there is no port"),
        ] {
            assert_eq!(parse_address(text), Err(format!("{why}; {right}")), "{text}");
        }
    }
}
