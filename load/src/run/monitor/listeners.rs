//! Finds the listening sockets that receive the load.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::unseen::Unobserved;
use crate::resolve::Addresses;
use crate::run::diag::{self, SocketInfo};
use crate::run::spin;

/// A local destination of the load.
#[derive(Clone, Debug)]
pub enum LocalTarget {
    /// TCP at these addresses.
    Tcp(Vec<SocketAddr>),
    /// A Unix socket, by its names.
    Unix(Vec<PathBuf>),
}

/// A listening socket that receives the load, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Inode of the socket.
    pub inode: u64,
    /// Length and limit of the accept queue; `None` for a Unix socket, which has no such counters.
    pub queue: Option<(u32, u32)>,
    /// True if accepted connections are IPv6 sockets.
    pub v6: bool,
}

impl LocalTarget {
    /// The local destination of connections to these addresses, or to a Unix socket if there is one; `None` if any
    /// address belongs to another machine. With a proxy, the addresses must be the proxy's.
    pub fn for_addresses(unix: Option<PathBuf>, Addresses(addresses): Addresses) -> Option<Self> {
        let Some(path) = unix else {
            let are_here = addresses.iter().all(|&address| spin::is_local_address(address));
            return are_here.then(|| Self::Tcp(addresses.into_iter().map(effective_address).collect()));
        };
        // The socket may have been bound under another of its names.
        let other = fs::canonicalize(&path);
        Some(Self::Unix(std::iter::once(path).chain(other).collect()))
    }

    /// The sockets of these families (true for IPv6) that currently listen at the destination.
    pub fn find_listeners(&self, families: &[bool]) -> Result<Vec<Listener>, Unobserved> {
        match self {
            Self::Tcp(addresses) => {
                // All addresses of a target have the same port.
                let (mut sockets, port) = (Vec::new(), addresses.first().map_or(0, SocketAddr::port));
                for &v6 in families {
                    let keep = |socket| {
                        sockets.push(socket);
                        ControlFlow::Continue(())
                    };
                    diag::dump_sockets(v6, diag::LISTEN, [port, 0], keep).map_err(Unobserved::Sockets)?;
                }
                Ok(serving_listeners(&sockets, addresses))
            }
            Self::Unix(names) => {
                let table =
                    fs::read_to_string("/proc/net/unix").map_err(|error| Unobserved::from_socket_error(&error))?;
                Ok(find_unix_listeners(&table, names))
            }
        }
    }
}

/// The actual destination of a connection to this address, in the kernel's notation.
fn effective_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The listening sockets that receive connections to one of the addresses.
fn serving_listeners(sockets: &[SocketInfo], addresses: &[SocketAddr]) -> Vec<Listener> {
    let mut serving = Vec::new();
    for address in addresses {
        // The kernel prefers a socket bound to the exact address over a wildcard socket, and an IPv4 socket over a
        // dual-stack one.
        let rank = |socket: &SocketInfo| match socket.local {
            local if local.port() != address.port() => None,
            local if local.ip() == address.ip() => Some(2),
            local if !local.ip().is_unspecified() => None,
            _ if socket.v6 == address.is_ipv6() => Some(1),
            _ => (socket.v6 && !socket.v6_only).then_some(0),
        };
        let best = sockets.iter().filter_map(rank).max();
        for socket in sockets.iter().filter(|socket| best.is_some() && rank(socket) == best) {
            let SocketInfo { v6, waiting, limit, .. } = *socket;
            let listener = Listener { inode: socket.inode.into(), queue: Some((waiting, limit)), v6 };
            if !serving.contains(&listener) {
                serving.push(listener);
            }
        }
    }
    serving
}

/// The listening sockets in `/proc/net/unix` that were bound under one of these names.
fn find_unix_listeners(table: &str, names: &[PathBuf]) -> Vec<Listener> {
    const ACCEPTS: u32 = 1 << 16;
    let listener = |line: &str| {
        // Address, references, protocol, flags, type, state, inode, name. The name may contain blanks.
        let mut words = line.splitn(7, ' ');
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let (inode, name) = words.nth(2)?.trim_start().split_once(' ')?;
        let is_it = flags & ACCEPTS != 0 && names.iter().any(|known| known == Path::new(name));
        is_it.then_some(Listener { inode: inode.parse().ok()?, queue: None, v6: false })
    };
    table.lines().filter_map(listener).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_preferred_listener_is_found() {
        let socket = |inode, local: &str, v6_only| {
            let local: SocketAddr = local.parse().unwrap();
            let v6 = local.is_ipv6();
            let local = SocketAddr::new(local.ip().to_canonical(), local.port());
            SocketInfo { v6, id: [0; 48], local, peer: local, waiting: 1, limit: 2, inode, v6_only, info: None }
        };
        let all = [
            socket(1, "127.0.0.1:80", false),
            socket(2, "127.0.0.1:80", false),
            socket(3, "0.0.0.0:80", false),
            socket(4, "[::]:80", false),
            socket(5, "[::]:80", true),
            socket(6, "127.0.0.1:81", false),
            socket(7, "[::ffff:127.0.0.3]:80", false),
            socket(8, "[::1]:80", false),
        ];
        let table: [(&[u32], &str, &[u64]); 10] = [
            (&[1, 2, 3, 4, 5, 6, 7, 8], "127.0.0.1:80", &[1, 2]),
            (&[1, 2, 3, 4, 5, 6, 7, 8], "127.0.0.2:80", &[3]),
            (&[1, 2, 3, 4, 5, 6, 7, 8], "127.0.0.3:80", &[7]),
            (&[1, 2, 3, 4, 5, 6, 7, 8], "[::1]:80", &[8]),
            (&[1, 2, 3, 4, 5, 6, 7, 8], "[::2]:80", &[4, 5]),
            (&[4, 5, 6], "127.0.0.1:80", &[4]),
            (&[5, 6], "127.0.0.1:80", &[]),
            (&[1, 3], "[::1]:80", &[]),
            (&[1, 6], "127.0.0.1:81", &[6]),
            (&[], "127.0.0.1:80", &[]),
        ];
        for (there, address, expected) in table {
            let sockets: Vec<_> = all.iter().filter(|socket| there.contains(&socket.inode)).copied().collect();
            let found = serving_listeners(&sockets, &[address.parse().unwrap()]);
            assert_eq!(
                found.iter().map(|listener| listener.inode).collect::<Vec<_>>(),
                expected,
                "{there:?} {address}"
            );
            assert!(found.iter().all(|listener| listener.queue == Some((1, 2))));
        }
        let both = serving_listeners(&all, &["127.0.0.2:80", "127.0.0.4:80"].map(|address| address.parse().unwrap()));
        assert_eq!(both.len(), 1, "one socket counts once, no matter how many of its addresses are in use");
    }

    #[test]
    fn address_aliases_are_resolved() {
        let table = [
            ("127.0.0.2:80", "127.0.0.2:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
            ("[fe80::1%2]:80", "[fe80::1]:80"),
        ];
        for (typed, expected) in table {
            assert_eq!(effective_address(typed.parse().unwrap()), expected.parse().unwrap(), "{typed}");
        }
    }

    #[test]
    fn unix_sockets_are_found_by_name() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            00000000a: 00000002 00000000 00010000 0001 01   123 /run/a b.sock\n\
            00000000b: 00000003 00000000 00000000 0001 03   124 /run/a b.sock\n\
            00000000c: 00000002 00000000 00010000 0001 01 9999999 /run/other.sock\n\
            00000000d: 00000003 00000000 00000000 0001 03   125\n";
        let inodes = |names: &[&str]| -> Vec<u64> {
            let names: Vec<_> = names.iter().map(PathBuf::from).collect();
            find_unix_listeners(table, &names).iter().map(|listener| listener.inode).collect()
        };
        assert_eq!(inodes(&["/run/a b.sock"]), [123]);
        assert_eq!(inodes(&["../other.sock", "/run/other.sock"]), [9_999_999]);
        assert!(inodes(&["/run/a"]).is_empty());
    }
}
