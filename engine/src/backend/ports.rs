//! Local ports, which onrush chooses if the kernel allows it.
//!
//! The kernel searches for a free port on every connect, and tries thousands once half of the ports are in use. So each
//! socket gets a range of exactly one port (`IP_LOCAL_PORT_RANGE`, Linux 6.3), and the kernel only checks that port.
//!
//! The ports of a run form a ring that starts at a random place, so that two processes do not collide. Each worker
//! steps through its own part, then through the other parts. Workers share only the list of ports: the kernel decides
//! who gets a port. The port released longest ago, the first to leave TIME_WAIT, comes next.

use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use thiserror::Error;

use super::socket::set_socket_option;

/// `IP_LOCAL_PORT_RANGE` of `linux/in.h`; used with `SOL_IP` even for IPv6 sockets. The lower half of the value holds
/// the lowest port, the upper half the highest.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;
/// Largest number of taken ports to step over in one turn of the loop, so that responses need not wait.
const STEPS_PER_TURN: u32 = 64;

/// The local ports for connections from this machine. All workers share the constant list.
#[derive(Clone, Debug)]
pub struct PortRing {
    usable: Arc<[u16]>,
    /// Start of the run's ring in the list.
    begin: usize,
}

/// Reasons why onrush cannot choose local ports and must leave it to the kernel.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unchosen {
    /// The kernel does not support `IP_LOCAL_PORT_RANGE` (before Linux 6.3).
    #[error("the kernel chooses the local ports, because onrush can do so only from Linux 6.3 on")]
    Kernel,
    /// The range of local ports in `/proc` cannot be read, or leaves no port.
    #[error("the kernel chooses the local ports, because /proc/sys/net/ipv4/ip_local_port_range cannot be read")]
    Range,
}

impl PortRing {
    /// A ring of the ports that the kernel would choose from, without those reserved by the administrator, from a
    /// random start.
    ///
    /// # Errors
    ///
    /// If the kernel must choose the ports.
    pub fn from_system_settings() -> Result<Self, Unchosen> {
        let usable = usable_ports().filter(|ports| !ports.is_empty()).ok_or(Unchosen::Range)?;
        let fd = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP));
        let is_possible = fd.is_ok_and(|fd| restrict_to_port(&fd, usable[0]));
        // Independent of the run's seed: two processes with the same seed would collide at every port.
        let begin = RandomState::new().hash_one(()) as usize % usable.len();
        if is_possible { Ok(Self { usable: usable.into(), begin }) } else { Err(Unchosen::Kernel) }
    }
}

/// The ports that the kernel would choose from, in ascending order and without reserved ones. `None`: the range is
/// unknown.
pub fn usable_ports() -> Option<Vec<u16>> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    // Kernels before 2.6.35 reserve none.
    let reserved = fs::read_to_string("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    parse(&range, &reserved)
}

/// The ports of a range such as `32768 60999` without a list such as `8080,9000-9010`.
fn parse(range: &str, reserved: &str) -> Option<Vec<u16>> {
    let mut bounds = range.split_whitespace().map(str::parse::<u16>);
    let (first, last) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    let reserved: Vec<_> = reserved
        .trim()
        .split(',')
        .filter_map(|entry| {
            let (from, to) = entry.split_once('-').unwrap_or((entry, entry));
            Some(from.parse::<u16>().ok()?..=to.parse::<u16>().ok()?)
        })
        .collect();
    Some((first..=last).filter(|port| !reserved.iter().any(|range| range.contains(port))).collect())
}

/// Restricts a socket to this port. Returns true if the kernel supports it.
fn restrict_to_port(fd: &OwnedFd, port: u16) -> bool {
    let range = u32::from(port) << 16 | u32::from(port);
    set_socket_option(fd, libc::SOL_IP, IP_LOCAL_PORT_RANGE, range as libc::c_int)
}

/// One worker's position in the ring.
#[derive(Clone, Debug)]
pub struct Chooser {
    ports: PortRing,
    /// The position for each address pair: several pairs can use one port.
    pairs: Vec<Pair>,
    numbers: HashMap<(Option<IpAddr>, SocketAddr), PairId>,
    /// Number of taken ports that may still be stepped over in this turn.
    steps_left: u32,
}

/// Identifies a pair of source address and target within one [`Chooser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairId(u32);

#[derive(Clone, Copy, Debug)]
struct Pair {
    target: SocketAddr,
    next: usize,
    /// Number of consecutive taken ports.
    taken: usize,
}

/// The next step after a taken port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Try the next port.
    StepOn,
    /// Try the next port in a later turn of the loop.
    Later,
    /// Give up: all ports were taken.
    Exhausted,
}

impl Chooser {
    /// A worker's chooser. `share_before` (0 to less than 1), the share of all connections that belong to earlier
    /// workers, determines its start in the ring.
    pub fn new(ports: &PortRing, share_before: f64) -> Self {
        let PortRing { usable, begin } = ports;
        let begin = (begin + (usable.len() as f64 * share_before) as usize) % usable.len();
        let ports = PortRing { begin, ..ports.clone() };
        Self { ports, pairs: Vec::new(), numbers: HashMap::new(), steps_left: STEPS_PER_TURN }
    }

    /// Begins a turn of the loop, in which up to 64 taken ports may be stepped over.
    pub fn begin_turn(&mut self) {
        self.steps_left = STEPS_PER_TURN;
    }

    /// The ID of an address pair, new or known. Without a source address, the kernel chooses it.
    pub fn pair_id(&mut self, source: Option<IpAddr>, target: SocketAddr) -> PairId {
        *self.numbers.entry((source, target)).or_insert_with(|| {
            self.pairs.push(Pair { target, next: self.ports.begin, taken: 0 });
            PairId(self.pairs.len() as u32 - 1)
        })
    }

    /// The target of a pair.
    pub fn target(&self, pair: PairId) -> SocketAddr {
        self.pairs[pair.0 as usize].target
    }

    /// Restricts an unconnected socket to the pair's next port, which may be taken.
    pub fn assign_next(&mut self, fd: &OwnedFd, pair: PairId) {
        let port = self.next(pair);
        // The option worked when the run began.
        restrict_to_port(fd, port);
    }

    fn next(&mut self, pair: PairId) -> u16 {
        let Pair { target, next, .. } = &mut self.pairs[pair.0 as usize];
        let usable = &self.ports.usable;
        let mut step = || {
            let port = usable[*next];
            *next = (*next + 1) % usable.len();
            port
        };
        // On the target's own port, a connection within this machine could reach itself if nothing listens there.
        let port = step();
        if port == target.port() { step() } else { port }
    }

    /// Records that the last port given to the pair was free, so that taken ports are counted from zero again.
    pub fn record_free_port(&mut self, pair: PairId) {
        self.pairs[pair.0 as usize].taken = 0;
    }

    /// Records that the last port given to the pair was taken. Returns what to do next.
    pub fn record_taken_port(&mut self, pair: PairId) -> Advice {
        let count = self.ports.usable.len();
        let Pair { taken, .. } = &mut self.pairs[pair.0 as usize];
        *taken += 1;
        if *taken >= count {
            // A later attempt checks a few more ports, so that a freed port is found without a whole round.
            *taken = count.saturating_sub(STEPS_PER_TURN as usize);
            return Advice::Exhausted;
        }
        if self.steps_left == 0 {
            return Advice::Later;
        }
        self.steps_left -= 1;
        Advice::StepOn
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A chooser limited to these ports, if the kernel allows choosing.
    pub fn only(ports: &[u16]) -> Option<Chooser> {
        let possible = PortRing::from_system_settings().is_ok();
        possible.then(|| Chooser::new(&PortRing { usable: ports.into(), begin: 0 }, 0.0))
    }

    fn ring(begin: usize) -> PortRing {
        PortRing { usable: (1..=100).collect(), begin }
    }

    fn target(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn reserved_ports_are_skipped() {
        assert_eq!(parse("32768\t60999\n", "\n").map(|ports| ports.len()), Some(28_232));
        assert_eq!(parse("10 20", "8,11,13-18,20-30\n"), Some(vec![10, 12, 19]));
        assert_eq!(parse("65535 65535", ""), Some(vec![65_535]));
        assert_eq!(parse("", ""), None);
    }

    #[test]
    fn workers_start_apart_and_visit_every_port() {
        let workers = [0.0, 0.5].map(|share| Chooser::new(&ring(70), share));
        let ways = workers.map(|mut worker| {
            let pair = worker.pair_id(None, target("10.0.0.1:8080"));
            (0..100).map(|_| worker.next(pair)).collect::<Vec<_>>()
        });
        assert_eq!((ways[0][0], ways[0][29], ways[0][30]), (71, 100, 1));
        assert_eq!(ways[1][0], 21);
        assert!(ways[0][..50].iter().all(|port| !ways[1][..50].contains(port)), "each has its own half first");
        for mut way in ways {
            way.sort_unstable();
            way.dedup();
            assert_eq!(way.len(), 100);
        }
    }

    #[test]
    fn address_pairs_have_independent_ports() {
        let mut worker = Chooser::new(&ring(0), 0.0);
        let targets =
            [(None, "10.0.0.1:80"), (None, "10.0.0.2:80"), (Some("10.0.0.9".parse().unwrap()), "10.0.0.1:80")];
        for (source, text) in targets {
            let pair = worker.pair_id(source, target(text));
            assert_eq!(worker.pair_id(source, target(text)), pair);
            assert_eq!([worker.next(pair), worker.next(pair)], [1, 2]);
        }
    }

    #[test]
    fn targets_own_port_is_skipped() {
        let mut worker = Chooser::new(&ring(78), 0.0);
        let pair = worker.pair_id(None, target("10.0.0.1:80"));
        assert_eq!([worker.next(pair), worker.next(pair)], [79, 81]);
    }

    #[test]
    fn port_search_is_bounded_and_reports_exhaustion() {
        let mut worker = Chooser::new(&ring(0), 0.0);
        let pair = worker.pair_id(None, target("10.0.0.1:80"));
        let advice =
            |worker: &mut Chooser, n: usize| (0..n).map(|_| worker.record_taken_port(pair)).collect::<Vec<_>>();
        assert_eq!(advice(&mut worker, 64), [Advice::StepOn; 64]);
        assert_eq!(advice(&mut worker, 1), [Advice::Later]);
        worker.begin_turn();
        assert_eq!(advice(&mut worker, 34), [Advice::StepOn; 34]);
        assert_eq!(advice(&mut worker, 1), [Advice::Exhausted]);
        worker.begin_turn();
        assert_eq!(advice(&mut worker, 63), [Advice::StepOn; 63], "the next attempt tries a few more");
        assert_eq!(advice(&mut worker, 1), [Advice::Exhausted]);
        worker.record_free_port(pair);
        worker.begin_turn();
        assert_eq!(advice(&mut worker, 64), [Advice::StepOn; 64]);
    }
}
