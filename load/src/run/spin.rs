//! Decides whether the workers of a run busy-poll before they block.
//!
//! With one connection, waking a blocked thread can cost more than the whole request. But a busy-polling thread
//! occupies a processor and slows down a target that needs it. So workers busy-poll only if every thread has a
//! processor and a local target keeps one.

use std::net::{SocketAddr, UdpSocket};
use std::thread;

use onrush_plan::{Io, Plan, Spin};

use crate::proc;

/// Busy-polling of the workers and its reason, for `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if workers busy-poll.
    pub spins: bool,
    /// Reason for the decision.
    pub reason: &'static str,
}

/// Decides whether the workers of this plan busy-poll on this machine. `addresses` are the target's.
pub fn decide_busy_poll(plan: &Plan, addresses: &[SocketAddr]) -> Decision {
    if let Io::Sim(_) = plan.io {
        return Decision { spins: false, reason: "the run is simulated" };
    }
    let allowed = thread::available_parallelism().map_or(1, |processors| processors.get());
    let online = proc::online_processors().and_then(|list| proc::parse_list(&list)).map(|all| all.len());
    let is_local = plan.connect.unix.is_some() || addresses.iter().any(|&address| is_local_address(address));
    judge_busy_poll(plan.spin, plan.load.threads as usize, allowed, online.unwrap_or(allowed), is_local)
}

fn judge_busy_poll(asked: Spin, threads: usize, allowed: usize, online: usize, is_local: bool) -> Decision {
    let because = |spins, reason| Decision { spins, reason };
    match asked {
        Spin::On => because(true, "asked for with --spin"),
        Spin::Off => because(false, "turned off with --spin"),
        Spin::Auto if threads > allowed => because(false, "there are more threads than processors"),
        Spin::Auto if is_local && threads >= online => {
            because(false, "the target on this machine needs the processors")
        }
        Spin::Auto => because(true, "there are processors to spare"),
    }
}

/// True if this machine has the address, because a socket can be bound only to a local address. Nothing is sent.
pub(super) fn is_local_address(mut address: SocketAddr) -> bool {
    address.set_port(0);
    UdpSocket::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_spin_only_with_spare_processors() {
        let spins =
            |threads, allowed, online, is_local| judge_busy_poll(Spin::Auto, threads, allowed, online, is_local).spins;
        assert!(spins(1, 2, 2, true));
        assert!(!spins(2, 2, 2, true), "the target has no processor left");
        assert!(spins(2, 2, 2, false));
        assert!(!spins(3, 2, 2, false));
        assert!(spins(1, 1, 2, true), "pinned to one processor, the target has the other");
        assert!(!spins(1, 1, 1, true));
        assert!(judge_busy_poll(Spin::On, 64, 1, 1, true).spins);
        assert!(!judge_busy_poll(Spin::Off, 1, 8, 8, false).spins);
    }

    #[test]
    fn every_address_of_this_machine_is_local() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(is_local_address(address("127.0.0.1:80")) && is_local_address(address("127.1.2.3:80")));
        // No machine has the first address (RFC 5737). The second is the source address of a packet to the first.
        let elsewhere = address("203.0.113.1:80");
        assert!(!is_local_address(elsewhere));
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect(elsewhere).is_ok() {
            let own = socket.local_addr().unwrap();
            assert!(!own.ip().is_loopback() && is_local_address(own), "{own}");
        }
    }
}
