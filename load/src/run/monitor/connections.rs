//! Reads the `TCP_INFO` of some connections at the target's end.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use onrush_stats::{SocketStats, TcpInfo};
use rustix::io::Errno;

use crate::run::diag::{self, SocketInfo};

const WATCHED: usize = 8;
/// Maximum number of candidates for the choice.
const CANDIDATES: usize = 256;
/// Minimum time between two choices while connections are watched. The kernel goes through all possible connections
/// each time, so the interval doubles with each choice that finds none, up to a limit.
const CHOICE_US: u64 = 1_000_000;
const DOUBLINGS: u32 = 2;

/// The watched connections of the target. A connection is watched as long as it exists.
#[derive(Debug, Default)]
pub struct Connections {
    watched: Vec<WatchedConnection>,
    sums: SocketStats,
    /// Time of the last choice, and the number of choices without a result since the last success or the last lost
    /// connection.
    chosen_us: Option<u64>,
    in_vain: u32,
    /// True if a connection was ever seen at the target's end.
    was_any: bool,
    /// True if connections were seen at the generator's end but never at the target's.
    passed_by: bool,
}

#[derive(Clone, Copy, Debug)]
struct WatchedConnection {
    socket: SocketInfo,
    /// Last reading and its time.
    last: Option<(TcpInfo, u64)>,
}

impl Connections {
    /// Counts readings from now on; the same connections are watched.
    pub fn reset_sums(&mut self) {
        self.sums = SocketStats::default();
        self.in_vain = 0;
        self.watched.iter_mut().for_each(|watched| watched.last = None);
    }

    pub fn are_watched(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Reads the watched connections, forgets those that are gone, and from time to time chooses others. `addresses`
    /// are the target's, `families` the address families of its sockets (true for IPv6). Fails with the kernel's error.
    pub fn refresh_connections(
        &mut self,
        addresses: &[SocketAddr],
        families: &[bool],
        now_us: u64,
    ) -> Result<(), Errno> {
        let is_due =
            self.chosen_us.is_none_or(|chosen_us| now_us >= chosen_us + (CHOICE_US << self.in_vain.min(DOUBLINGS)));
        if self.watched.is_empty() || (self.watched.len() < WATCHED && is_due) {
            self.chosen_us = Some(now_us);
            self.choose_connections(addresses, families)?;
        }
        let mut there = Vec::with_capacity(self.watched.len());
        let sockets = self.watched.iter().map(|watched| (watched.socket.v6, watched.socket.id));
        diag::read_sockets(sockets, |socket| {
            let last =
                self.watched.iter().find(|watched| watched.socket.id == socket.id).and_then(|watched| watched.last);
            let Some(info) = socket.info else { return };
            let before = last.map(|(before, since_us)| (before, now_us.saturating_sub(since_us)));
            self.sums.record_reading(before, &info);
            there.push(WatchedConnection { socket, last: Some((info, now_us)) });
        })?;
        if there.len() < self.watched.len() {
            self.in_vain = 0;
        }
        self.watched = there;
        Ok(())
    }

    /// Sums of the readings since the last reset.
    pub fn sums(&self) -> &SocketStats {
        &self.sums
    }

    /// True if connections to the target's address were seen at the generator's end but never at the target's: they
    /// lead elsewhere, for instance into a container.
    pub fn are_forwarded(&self) -> bool {
        self.passed_by && !self.was_any
    }

    fn choose_connections(&mut self, addresses: &[SocketAddr], families: &[bool]) -> Result<(), Errno> {
        let port = addresses.first().map_or(0, SocketAddr::port);
        let mut found = Vec::new();
        for &v6 in families {
            diag::dump_sockets(v6, diag::ESTABLISHED, [port, 0], |socket| {
                let is_known = self.watched.iter().any(|watched| watched.socket.id == socket.id);
                if addresses.contains(&socket.local) && !is_known {
                    found.push(socket);
                }
                if found.len() < CANDIDATES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        let chosen = spread_positions(found.len(), WATCHED - self.watched.len())
            .map(|at| WatchedConnection { socket: found[at], last: None });
        self.in_vain = if found.is_empty() { self.in_vain + 1 } else { 0 };
        self.watched.extend(chosen);
        self.was_any |= !self.watched.is_empty();
        if !self.was_any {
            self.was_any = has_connection(addresses, diag::ANY, [port, 0], |socket| socket.local)?;
            self.passed_by |=
                !self.was_any && has_connection(addresses, diag::ESTABLISHED, [0, port], |socket| socket.peer)?;
        }
        Ok(())
    }
}

/// True if a connection in these states has one of the addresses at this end.
fn has_connection(
    addresses: &[SocketAddr],
    states: u32,
    ports: [u16; 2],
    end: fn(&SocketInfo) -> SocketAddr,
) -> Result<bool, Errno> {
    let mut is_any = false;
    for v6 in [false, true] {
        diag::dump_sockets(v6, states, ports, |socket| {
            is_any |= addresses.contains(&end(&socket));
            if is_any { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    Ok(is_any)
}

/// Up to `most` evenly spread positions of a list.
fn spread_positions(length: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = length.min(most);
    (0..count).map(move |at| at * length / count)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn chosen_connections_are_spread_and_distinct() {
        let places = |length, most| spread_positions(length, most).collect::<Vec<_>>();
        assert_eq!(places(256, 8), [0, 32, 64, 96, 128, 160, 192, 224]);
        assert_eq!(places(10, 4), [0, 2, 5, 7]);
        assert_eq!(places(3, 8), [0, 1, 2]);
        assert_eq!((places(0, 8), places(9, 0)), (vec![], vec![]));
    }

    #[test]
    fn existing_connections_stay_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
        let mut pairs: Vec<_> = (0..12).map(|_| connect()).collect();
        let mut connections = Connections::default();
        let look = |connections: &mut Connections, now_us| -> Vec<diag::SocketId> {
            connections.refresh_connections(&[address], &[false], now_us).unwrap();
            connections.watched.iter().map(|watched| watched.socket.id).collect()
        };
        let first = look(&mut connections, 0);
        assert_eq!(first.len(), WATCHED);
        assert_eq!(look(&mut connections, 250_000), first);
        assert_eq!(connections.sums().readings, 16);
        // The end that closes first stays listed for a while, so the target must not close first.
        pairs.drain(4..).for_each(|(peer, (own, _))| {
            drop(peer);
            drop(own);
        });
        let left = look(&mut connections, 500_000);
        assert!(left.len() <= 4 && left.iter().all(|id| first.contains(id)));
        pairs.extend((0..8).map(|_| connect()));
        if !left.is_empty() {
            assert_eq!(look(&mut connections, 900_000), left, "the last choice was less than a second ago");
        }
        let others = look(&mut connections, 1_000_000);
        assert!(others.len() == WATCHED && others.starts_with(&left));
        connections.reset_sums();
        assert_eq!(*connections.sums(), SocketStats::default());
        assert_eq!(look(&mut connections, 1_250_000), others);
        // Earlier readings are not counted.
        assert_eq!((connections.sums().readings, connections.sums().segments_received), (8, 0));
        assert!(!connections.are_forwarded());
    }

    #[test]
    fn searches_for_connections_back_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
        let mut pairs = vec![connect()];
        let mut connections = Connections::default();
        let mut look = |second: u64| {
            connections.refresh_connections(&[address], &[false], second * CHOICE_US).unwrap();
            connections.watched.len()
        };
        assert_eq!([0, 1].map(&mut look), [1, 1]);
        pairs.push(connect());
        assert_eq!([2, 3, 4, 6].map(&mut look), [1, 2, 2, 2]);
        pairs.push(connect());
        // One connection is gone: the next choice must not wait until the tenth second.
        drop(pairs.swap_remove(0));
        assert_eq!([7, 8].map(&mut look), [1, 2]);
        assert_eq!([9, 11, 15].map(&mut look), [2; 3]);
        pairs.push(connect());
        assert_eq!([18, 19].map(&mut look), [2, 3]);
    }

    #[test]
    fn connections_are_looked_for_at_either_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ends = || {
            let local =
                has_connection(&[address], diag::ESTABLISHED, [address.port(), 0], |socket| socket.local).unwrap();
            (local, has_connection(&[address], diag::ESTABLISHED, [0, address.port()], |socket| socket.peer).unwrap())
        };
        assert_eq!(ends(), (false, false));
        let _pair = (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
        assert_eq!(ends(), (true, true));
    }
}
