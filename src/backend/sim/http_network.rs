//! The network of one thread in which every address leads to the server of a [`Scenario`].

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_proto::Nanos;
use rustix::io::Errno;

use super::http_peer::{HttpPeer, Shared};
use super::scenario::{Scenario, nanos};
use super::{Network, Peer};
use crate::random::Random;

impl Scenario {
    /// The network of one thread, in which this server is reached. Seeds differ between threads.
    pub fn network(self, seed: u64) -> Box<dyn Network> {
        Box::new(HttpNetwork {
            shared: Rc::new(Shared { scenario: self, requests: Cell::new(0), open: Cell::new(0) }),
            random: Random::new(seed),
        })
    }
}

struct HttpNetwork {
    shared: Rc<Shared>,
    random: Random,
}

impl Network for HttpNetwork {
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        let scenario = &self.shared.scenario;
        if scenario.ports > 0 && self.shared.open.get() >= scenario.ports {
            return (now, Err(Errno::ADDRNOTAVAIL));
        }
        let at = now + nanos(scenario.connect_us);
        if scenario.refuse.iter().any(|span| span.contains(at)) || !scenario.listens_on(address) {
            return (at, Err(Errno::CONNREFUSED));
        }
        (at, Ok(Box::new(HttpPeer::new(Rc::clone(&self.shared), Random::new(self.random.next())))))
    }

    fn awakes(&self, at: Nanos) -> Nanos {
        let spans = &self.shared.scenario.standstill;
        spans.iter().filter(|span| span.contains(at)).map(|span| span.end()).fold(at, Nanos::max)
    }

    fn send_window(&self) -> (usize, u64) {
        let scenario = &self.shared.scenario;
        let window = if scenario.window == 0 { usize::MAX } else { scenario.window };
        (window, nanos(scenario.window_pause_us).max(1))
    }
}
