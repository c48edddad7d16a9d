//! One thread's network, in which every address is the server of a [`Scenario`].

use std::net::SocketAddr;
use std::rc::Rc;

use onrush_plan::Random;
use onrush_proto::Nanos;
use rustix::io::Errno;

use super::capacity::Workers;
use super::http_peer::{HttpPeer, Shared};
use super::scenario::{ConnectionFault, Scenario, after};
use super::{Network, Peer, nanos};

impl Scenario {
    /// One thread's network with this server. Seeds differ between threads.
    pub fn network(self, seed: u64) -> Box<dyn Network> {
        let mut random = Random::new(seed);
        let capacity = self.capacity_or_pool();
        let workers = capacity.as_ref().map(|capacity| Workers::new(capacity, Random::new(random.next())));
        let shared = Shared::new(Self { capacity, ..self }, workers);
        Box::new(HttpNetwork { shared: Rc::new(shared), accepted: 0, random })
    }
}

struct HttpNetwork {
    shared: Rc<Shared>,
    accepted: u64,
    random: Random,
}

impl Network for HttpNetwork {
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        let scenario = &self.shared.scenario;
        if scenario.ports > 0 && self.shared.open.get() >= scenario.ports {
            return (now, Err(Errno::ADDRNOTAVAIL));
        }
        let at = now + nanos(scenario.connect_us);
        if let Err(errno) = scenario.check_accepts(address, at) {
            return (at, Err(errno));
        }
        self.accepted += 1;
        let is_hit = |fault: &&ConnectionFault| fault.every > 0 && self.accepted.is_multiple_of(fault.every);
        let fault = scenario.connection_fault.iter().find(is_hit).cloned();
        let peer = HttpPeer::new(Rc::clone(&self.shared), Random::new(self.random.next()), fault);
        (after(&scenario.backlog, at), Ok(Box::new(peer)))
    }

    fn adopt(&mut self) -> Option<Box<dyn Peer>> {
        Some(Box::new(HttpPeer::new(Rc::clone(&self.shared), Random::new(self.random.next()), None)))
    }

    fn awakes(&self, at: Nanos) -> Nanos {
        after(&self.shared.scenario.generator_stall, at)
    }

    fn has_room(&self) -> bool {
        self.shared.has_room()
    }

    fn send_window(&mut self) -> (usize, u64) {
        let scenario = &self.shared.scenario;
        let window = match scenario.window {
            0 => usize::MAX,
            most if scenario.uneven => self.random.below(most as u64 + 1) as usize,
            most => most,
        };
        (window, nanos(scenario.window_pause_us).max(1))
    }
}
