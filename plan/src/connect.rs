//! How to connect to the target beyond what its URL says: proxy, source addresses, destination addresses and socket
//! options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Proxy, SocketOptions};

/// How to connect to the target: another host, a proxy, addresses, a Unix socket, source addresses and socket options.
/// TLS and HTTP have options of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectOptions {
    /// The host and port to connect to instead of the URL's; `None` as the port: the URL's port.
    pub instead: Option<(String, Option<u16>)>,
    /// The proxy for all connections; `None`: connections are made directly to the target.
    pub proxy: Option<Proxy>,
    /// Addresses of the host, instead of the resolver's; empty: the resolver is asked.
    pub resolved: Vec<IpAddr>,
    /// The only address family to use; `None`: that of the source addresses, or both.
    pub family: Option<Family>,
    /// A Unix socket to connect to instead of an address.
    pub unix: Option<PathBuf>,
    /// The source addresses, used in turn by connections; `None`: the kernel's choice.
    pub sources: Option<SourceAddresses>,
    /// Options set on every connection's socket.
    pub socket: SocketOptions,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A range of source addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceAddresses {
    first: IpAddr,
    /// Number of addresses, at least one.
    count: u32,
}

/// Reasons why a string is not a range of source addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSources {
    /// The text does not begin with an address.
    Address,
    /// The text after the slash is not a number, or exceeds the number of bits of an address.
    Mask,
    /// The range has too many addresses.
    TooMany,
}

impl Family {
    /// The family of an address.
    pub fn from_address(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The name for people: `IPv4` or `IPv6`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl ConnectOptions {
    /// The contradiction in values read from a plan, if there is one.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        if self.sources.is_some_and(|sources| sources.count() == 0) {
            return Some("the range of source addresses is empty");
        }
        if self.unix.is_some() && self.socket.congestion.is_some() {
            return Some("a Unix socket has no congestion control");
        }
        self.socket.contradiction()
    }
}

impl SourceAddresses {
    /// Largest number of addresses in a range: as many as an address has ports.
    pub const MAX: u32 = 65_536;

    /// Reads `ADDR` or `ADDR/BITS`. As in wrk-cmm, a range begins after its first address, which names the network, and
    /// ends with its last. A range of two addresses includes both.
    pub fn parse(text: &str) -> Result<Self, BadSources> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| BadSources::Address)?;
        let width: u32 = if address.is_ipv4() { 32 } else { 128 };
        let digits = bits.unwrap_or(if address.is_ipv4() { "32" } else { "128" });
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u32 = digits.parse().ok().filter(|bits| is_number && *bits <= width).ok_or(BadSources::Mask)?;
        let host_bits = width - bits;
        if host_bits > Self::MAX.ilog2() {
            return Err(BadSources::TooMany);
        }
        let all = 1u32 << host_bits;
        let network = address_number(address) & !u128::from(all - 1);
        let skipped = u32::from(all > 2);
        let of = |number| if address.is_ipv4() { v4(number) } else { IpAddr::V6(Ipv6Addr::from_bits(number)) };
        Ok(Self { first: of(network + u128::from(skipped)), count: all - skipped })
    }

    /// Number of addresses in the range, at least one.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The family of all addresses.
    pub fn family(self) -> Family {
        Family::from_address(self.first)
    }

    /// The address for the connection with this number, counted from 0; connections take turns.
    pub fn of_connection(self, connection: usize) -> IpAddr {
        let place = (connection % self.count as usize) as u128;
        match self.first {
            IpAddr::V4(_) => v4(address_number(self.first) + place),
            IpAddr::V6(first) => IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() + place)),
        }
    }
}

fn address_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn v4(number: u128) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(number as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Result<(String, String, u32), BadSources> {
        let sources = SourceAddresses::parse(text)?;
        let last = sources.of_connection(sources.count() as usize - 1);
        Ok((sources.of_connection(0).to_string(), last.to_string(), sources.count()))
    }

    #[test]
    fn source_ranges_skip_the_network_address() {
        let good = |text, first: &str, last: &str, count| {
            assert_eq!(range(text), Ok((first.to_owned(), last.to_owned(), count)), "{text}");
        };
        good("127.0.0.1", "127.0.0.1", "127.0.0.1", 1);
        good("127.0.0.9/32", "127.0.0.9", "127.0.0.9", 1);
        good("127.0.0.9/31", "127.0.0.8", "127.0.0.9", 2);
        good("127.0.0.1/28", "127.0.0.1", "127.0.0.15", 15);
        good("10.1.2.3/16", "10.1.0.1", "10.1.255.255", 65_535);
        good("::1", "::1", "::1", 1);
        good("fd00::5/127", "fd00::4", "fd00::5", 2);
        good("fd00::/120", "fd00::1", "fd00::ff", 255);
    }

    #[test]
    fn bad_ranges_are_refused_with_their_reason() {
        let table = [
            ("1.2.3", BadSources::Address),
            ("300.0.0.1", BadSources::Address),
            ("", BadSources::Address),
            ("eth0", BadSources::Address),
            ("127.0.0.1/33", BadSources::Mask),
            ("127.0.0.1/", BadSources::Mask),
            ("127.0.0.1/+8", BadSources::Mask),
            ("::1/129", BadSources::Mask),
            ("127.0.0.1/0", BadSources::TooMany),
            ("127.0.0.1/15", BadSources::TooMany),
            ("fd00::/64", BadSources::TooMany),
        ];
        for (text, expected) in table {
            assert_eq!(range(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn connections_take_turns() {
        let sources = SourceAddresses::parse("127.0.0.1/28").unwrap();
        let turns: Vec<String> = (0..20).map(|number| sources.of_connection(number).to_string()).collect();
        assert_eq!(
            (turns[14].as_str(), turns[15].as_str(), turns[19].as_str()),
            ("127.0.0.15", "127.0.0.1", "127.0.0.5")
        );
    }
}
