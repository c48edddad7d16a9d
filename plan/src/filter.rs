//! A socket filter in `ss`'s language, as plain data. It sees only the given facts about a socket and looks nothing up.

use std::net::{IpAddr, SocketAddr};

use super::condition::ComparisonOperator;

/// A condition that selects sockets by state, address and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketFilter {
    /// The socket is in one of these states.
    States(States),
    /// This comparison holds between the port of an end and a number.
    Port(ConnectionEnd, ComparisonOperator, u16),
    /// The address of an end is in this range.
    Address(ConnectionEnd, AddressRange),
    /// The inner condition does not hold.
    Not(Box<Self>),
    /// All inner conditions hold.
    All(Vec<Self>),
    /// At least one inner condition holds.
    Any(Vec<Self>),
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The socket's own end.
    Local,
    /// The peer's end.
    Peer,
}

/// An address prefix and a port; `None`: any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressRange {
    /// An address and the number of its leading bits that must match; `None`: any address.
    pub prefix: Option<(IpAddr, u8)>,
    /// The port; `None`: any port.
    pub port: Option<u16>,
}

/// A set of states: one bit per kernel state number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(pub u32);

/// The parts of a socket visible to filters.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The state, as the kernel's number.
    pub state: u8,
    /// The local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub peer: SocketAddr,
}

impl States {
    /// All states.
    pub const ALL: Self = Self(0xfff);
    /// The states shown by `ss` by default: connected, connecting or closing.
    pub const USUAL: Self = Self(Self::ALL.0 & !(Self::LISTENING | Self::CLOSED | Self::BUCKET));
    const LISTENING: u32 = 1 << 10;
    const CLOSED: u32 = 1 << 7;
    const SYN_SENT: u32 = 1 << 2;
    /// States for which the kernel keeps less than a full socket: SYN-RECV and TIME-WAIT.
    const BUCKET: u32 = 1 << 3 | 1 << 6;

    /// States and sets of states under the names that `ss` accepts.
    pub const NAMED: [(&str, Self); 20] = [
        ("established", Self(1 << 1)),
        ("syn-sent", Self(Self::SYN_SENT)),
        ("syn-recv", Self(1 << 3)),
        ("syn-rcv", Self(1 << 3)),
        ("fin-wait-1", Self(1 << 4)),
        ("fin-wait-2", Self(1 << 5)),
        ("time-wait", Self(1 << 6)),
        ("unconnected", Self(Self::CLOSED)),
        ("closed", Self(Self::CLOSED)),
        ("close", Self(Self::CLOSED)),
        ("close-wait", Self(1 << 8)),
        ("last-ack", Self(1 << 9)),
        ("listening", Self(Self::LISTENING)),
        ("listen", Self(Self::LISTENING)),
        ("closing", Self(1 << 11)),
        ("all", Self::ALL),
        ("connected", Self(Self::ALL.0 & !(Self::CLOSED | Self::LISTENING))),
        ("synchronized", Self(Self::ALL.0 & !(Self::CLOSED | Self::LISTENING | Self::SYN_SENT))),
        ("bucket", Self(Self::BUCKET)),
        ("big", Self(Self::ALL.0 & !Self::BUCKET)),
    ];
}

impl SocketFilter {
    /// True if the filter matches a socket.
    pub fn holds(&self, socket: &Subject) -> bool {
        match self {
            Self::States(States(states)) => states & 1 << socket.state != 0,
            Self::Port(end, comparison, port) => comparison.holds(socket.end(*end).port().into(), (*port).into()),
            Self::Address(end, range) => range.contains(socket.end(*end)),
            Self::Not(filter) => !filter.holds(socket),
            Self::All(filters) => filters.iter().all(|filter| filter.holds(socket)),
            Self::Any(filters) => filters.iter().any(|filter| filter.holds(socket)),
        }
    }

    /// The possible states of a matching socket.
    pub fn states(&self) -> States {
        let all = |filters: &[Self]| filters.iter().fold(States::ALL.0, |states, filter| states & filter.states().0);
        let any = |filters: &[Self]| filters.iter().fold(0, |states, filter| states | filter.states().0);
        match self {
            Self::States(states) => *states,
            Self::Not(filter) => match &**filter {
                Self::States(States(states)) => States(States::ALL.0 & !states),
                _ => States::ALL,
            },
            Self::All(filters) => States(all(filters)),
            Self::Any(filters) => States(any(filters)),
            Self::Port(..) | Self::Address(..) => States::ALL,
        }
    }

    /// The local port and the peer port that every matching socket must have; 0: matching sockets may have different
    /// ports.
    pub fn ports(&self) -> [u16; 2] {
        let of = |end: ConnectionEnd, port: u16| if end == ConnectionEnd::Local { [port, 0] } else { [0, port] };
        match self {
            Self::Port(end, ComparisonOperator::Equal, port)
            | Self::Address(end, AddressRange { port: Some(port), .. }) => of(*end, *port),
            Self::All(filters) => {
                let ports: Vec<_> = filters.iter().map(Self::ports).collect();
                [0, 1].map(|end| ports.iter().map(|ports| ports[end]).find(|port| *port != 0).unwrap_or(0))
            }
            Self::States(_) | Self::Port(..) | Self::Address(..) | Self::Not(_) | Self::Any(_) => [0, 0],
        }
    }

    /// True if the filter mentions states, which then replace the default ones.
    pub fn names_states(&self) -> bool {
        match self {
            Self::States(_) => true,
            Self::Not(filter) => filter.names_states(),
            Self::All(filters) | Self::Any(filters) => filters.iter().any(Self::names_states),
            Self::Port(..) | Self::Address(..) => false,
        }
    }
}

impl AddressRange {
    /// True if the range contains the address of an end. As in `ss`, an IPv4-mapped IPv6 address matches an IPv4 range,
    /// but an IPv4 address does not match an IPv6 range.
    fn contains(&self, end: SocketAddr) -> bool {
        let is_there = |(prefix, bits): (IpAddr, u8)| match (prefix, end.ip()) {
            (IpAddr::V4(prefix), IpAddr::V4(ip)) => {
                have_equal_prefix(prefix.to_bits().into(), ip.to_bits().into(), 32, bits)
            }
            (IpAddr::V6(prefix), IpAddr::V6(ip)) => have_equal_prefix(prefix.to_bits(), ip.to_bits(), 128, bits),
            (IpAddr::V4(prefix), IpAddr::V6(ip)) => ip
                .to_ipv4_mapped()
                .is_some_and(|ip| have_equal_prefix(prefix.to_bits().into(), ip.to_bits().into(), 32, bits)),
            (IpAddr::V6(_), IpAddr::V4(_)) => false,
        };
        self.port.is_none_or(|port| port == end.port()) && self.prefix.is_none_or(is_there)
    }
}

/// True if the leading bits of two numbers of this width are equal.
fn have_equal_prefix(one: u128, other: u128, width: u32, bits: u8) -> bool {
    (one ^ other).checked_shr(width - u32::from(bits)).unwrap_or(0) == 0
}

impl Subject {
    fn end(&self, end: ConnectionEnd) -> SocketAddr {
        match end {
            ConnectionEnd::Local => self.local,
            ConnectionEnd::Peer => self.peer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(state: u8, local: &str, peer: &str) -> Subject {
        Subject { state, local: local.parse().unwrap(), peer: peer.parse().unwrap() }
    }

    fn range(ip: &str, bits: u8, port: Option<u16>) -> AddressRange {
        AddressRange { prefix: Some((ip.parse().unwrap(), bits)), port }
    }

    #[test]
    fn prefixes_match_their_family_and_mapped_ipv4() {
        let cases = [
            (range("10.1.0.0", 16, None), "10.1.2.3:80", true),
            (range("10.1.0.0", 16, None), "10.2.2.3:80", false),
            (range("10.1.0.0", 16, None), "[::ffff:10.1.2.3]:80", true),
            (range("::ffff:10.1.2.3", 128, None), "10.1.2.3:80", false),
            (range("0.0.0.0", 0, None), "10.1.2.3:80", true),
            (range("0.0.0.0", 0, None), "[::1]:80", false),
            (range("::", 0, None), "[::1]:80", true),
            (range("fe80::", 10, None), "[fe90::1]:80", true),
            (range("fe80::", 10, None), "[ff02::1]:80", false),
            (range("::1", 128, Some(80)), "[::1]:80", true),
            (range("::1", 128, Some(80)), "[::1]:81", false),
            (AddressRange { prefix: None, port: Some(80) }, "[::1]:80", true),
            (AddressRange::default(), "1.2.3.4:5", true),
        ];
        for (range, end, expected) in cases {
            assert_eq!(range.contains(end.parse().unwrap()), expected, "{range:?} {end}");
        }
    }

    #[test]
    fn kernel_filters_miss_no_matching_socket() {
        let port = |end, port| SocketFilter::Port(end, ComparisonOperator::Equal, port);
        let not = |filter| SocketFilter::Not(Box::new(filter));
        let open = SocketFilter::States(States(1 << 1));
        let cases = [
            (open.clone(), 1 << 1, [0, 0]),
            (not(open.clone()), 0xfff & !(1 << 1), [0, 0]),
            (not(not(open.clone())), 0xfff, [0, 0]),
            (SocketFilter::All(vec![open.clone(), port(ConnectionEnd::Local, 80)]), 1 << 1, [80, 0]),
            (SocketFilter::All(vec![port(ConnectionEnd::Peer, 81), port(ConnectionEnd::Local, 80)]), 0xfff, [80, 81]),
            (SocketFilter::Any(vec![open.clone(), port(ConnectionEnd::Local, 80)]), 0xfff, [0, 0]),
            (not(port(ConnectionEnd::Local, 80)), 0xfff, [0, 0]),
            (SocketFilter::Port(ConnectionEnd::Local, ComparisonOperator::AtLeast, 80), 0xfff, [0, 0]),
            (SocketFilter::Address(ConnectionEnd::Peer, range("::1", 128, Some(80))), 0xfff, [0, 80]),
        ];
        let ends = ["[::1]:80", "[::1]:81", "[::1]:82"];
        for (filter, states, ports) in cases {
            assert_eq!((filter.states().0, filter.ports()), (states, ports), "{filter:?}");
            for (state, local, peer) in (0..12).flat_map(|state| ends.map(|local| (state, local, ends[1]))) {
                let socket = socket(state, local, peer);
                let is_asked_for = states & 1 << state != 0
                    && [0, socket.local.port()].contains(&ports[0])
                    && [0, socket.peer.port()].contains(&ports[1]);
                assert!(is_asked_for || !filter.holds(&socket), "{filter:?} {socket:?}");
            }
        }
    }
}
