//! A worker's state of connecting: the queue of slots, the addresses, the bytes before the first request, the failures.

use std::collections::VecDeque;
use std::net::SocketAddr;

use onrush_plan::Random;
use onrush_proto::http1::Wire;
use onrush_proto::{Nanos, RequestParts};
use onrush_stats::Cause;
use rustix::io::Errno;

use super::spare::Spare;
use crate::backend::ConnId;
use crate::cause::is_local;
use crate::control::WorkerLink;
use crate::protocol::MakeProtocol;
use crate::retry::{Failures, rest_ns};
use crate::routes::{RouteId, Routes};

/// A worker's state of connecting.
pub struct Connecting {
    /// The addresses.
    pub routes: Routes,
    /// Slots to be opened, in order.
    pub queue: VecDeque<ConnId>,
    /// How many slots should have a connection: the first ones.
    pub wanted: u32,
    /// Wanted slots without a connection that takes requests: it is being opened, or the server has still to close the
    /// last one.
    pub missing: u32,
    /// How many connects are under way.
    pub under_way: u64,
    /// The request to a proxy for a tunnel.
    pub tunnel: Option<Wire>,
    /// Makes the protocol of a new connection.
    pub make_protocol: MakeProtocol,
    /// Connections left by an earlier session and not used yet; `None` where sessions do not share connections.
    pub spares: Option<Vec<Spare>>,
    random: Random,
    /// When the first connect failed since the last one that succeeded.
    away_since: Option<Nanos>,
    /// When the first connection was given up on which no request could start, and the number of responses by then.
    stuck: Option<(Nanos, u64)>,
    /// The beginning of failing connects before the last success, if there was one.
    pub was_away_since: Option<Nanos>,
    /// The last refusal before any address accepted, or since all that came was in another protocol.
    refusal: Option<(SocketAddr, Cause)>,
}

impl Connecting {
    /// The state before the first connect.
    pub fn new(routes: Routes, tunnel: Option<&RequestParts>, make_protocol: MakeProtocol, seed: u64) -> Self {
        Self {
            routes,
            queue: VecDeque::new(),
            wanted: 0,
            missing: 0,
            under_way: 0,
            tunnel: tunnel.map(Wire::from_parts),
            make_protocol,
            spares: None,
            random: Random::new(seed),
            away_since: None,
            stuck: None,
            was_away_since: None,
            refusal: None,
        }
    }

    /// Takes a connection to this address that an earlier session left.
    pub fn take_spare(&mut self, address: SocketAddr) -> Option<Spare> {
        let spares = self.spares.as_mut()?;
        let index = spares.iter().rposition(|spare| spare.leads_to(address))?;
        Some(spares.swap_remove(index))
    }

    /// Notes that a connection is ready for its first request; returns whether it is the first of all.
    pub fn established(&mut self, route: RouteId, worker_link: &WorkerLink) -> bool {
        let is_first = !self.routes.found();
        self.routes.worked(route);
        self.was_away_since = self.away_since.take();
        if is_first {
            self.refusal = None;
            worker_link.accept();
        }
        is_first
    }

    /// Notes that there are connections, so that the target is reachable.
    pub fn is_connected(&mut self) {
        self.away_since = None;
    }

    /// Records that an address did not accept a connection. Returns whether another one can be tried at once.
    pub fn has_other(&mut self, route: RouteId, errno: Errno) -> bool {
        !is_local(errno) && self.routes.refused(route, errno)
    }

    /// Notes that an attempt failed, with no other address to try at once.
    pub fn failed(&mut self, route: RouteId, cause: Cause, at: Nanos, worker_link: &WorkerLink) {
        self.away_since.get_or_insert(at);
        if !self.routes.found() {
            let address = self.routes.address(route);
            self.routes.start_over();
            self.refusal = Some((address, cause));
            worker_link.refuse(address, cause);
        }
    }

    /// Notes that all that came from the target is in another protocol.
    pub fn speaks_otherwise(&mut self, route: RouteId, cause: Cause, worker_link: &WorkerLink) {
        let address = self.routes.address(route);
        self.refusal = Some((address, cause));
        worker_link.refuse(address, cause);
    }

    /// Notes that the target speaks HTTP, or may.
    pub fn speaks_http(&mut self, worker_link: &WorkerLink) {
        if self.routes.found() && self.refusal.take().is_some() {
            worker_link.accept();
        }
    }

    /// How long a slot that failed waits before it connects again, in nanoseconds.
    pub fn wait_ns(&mut self, failures: &mut Failures, longest_ns: u64) -> u64 {
        failures.wait_ns(longest_ns, &mut self.random)
    }

    /// How long no request takes the place of one that was turned away after none had been answered for so long.
    pub fn rest_ns(&mut self, unanswered_ns: u64, longest_ns: u64) -> u64 {
        rest_ns(unanswered_ns, longest_ns, &mut self.random)
    }

    /// When the first connect failed since the last one that succeeded.
    pub fn away_since(&self) -> Option<Nanos> {
        self.away_since
    }

    /// True if every connect has failed for `patience_ns`.
    pub fn has_stayed_away(&self, now: Nanos, patience_ns: u64) -> bool {
        self.away_since.is_some_and(|since| now.since(since) >= patience_ns)
    }

    /// Records that a connection was given up on which no request could start.
    pub fn was_stuck(&mut self, now: Nanos, completed: u64) {
        let is_old = self.stuck.is_some_and(|(_, before)| before == completed);
        if !is_old {
            self.stuck = Some((now, completed));
        }
    }

    /// True if no request could start for `patience_ns`, and none before them ended with a response.
    pub fn has_been_stuck(&self, now: Nanos, patience_ns: u64, completed: u64) -> bool {
        self.stuck.is_some_and(|(since, before)| before == completed && now.since(since) >= patience_ns)
    }

    /// The last refusal, if no address has accepted or all that came was in another protocol.
    pub fn refusal(&self) -> Option<(SocketAddr, Cause)> {
        self.refusal
    }
}
