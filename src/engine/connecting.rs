//! What a worker knows about connecting: who is next, where to, what comes before the first request, and how it went.

use std::collections::VecDeque;
use std::net::SocketAddr;

use onrush_proto::http1::Wire;
use onrush_proto::{Nanos, Parts};
use rustix::io::Errno;

use super::cause::is_local;
use super::control::Desk;
use super::protocol::MakeProtocol;
use super::retry::Failures;
use super::routes::{RouteId, Routes};
use super::spare::Spare;
use crate::backend::ConnId;
use crate::random::Random;
use crate::stats::Cause;

/// What a worker knows about connecting.
pub(super) struct Connecting {
    pub routes: Routes,
    /// Slots that are to be opened, in turn.
    pub queue: VecDeque<ConnId>,
    /// How many slots are to have a connection: the first ones.
    pub wanted: u32,
    /// How many of them have none that takes requests: it is being made, or will be when the server has closed the last one.
    pub missing: u32,
    /// How many connections are being made.
    pub under_way: u64,
    /// What asks a proxy for a tunnel.
    pub tunnel: Option<Wire>,
    /// Makes the protocol of a new connection.
    pub make_protocol: MakeProtocol,
    /// Connections of an earlier session that nobody has needed yet; none where sessions have nothing to do with each other.
    pub spares: Option<Vec<Spare>>,
    random: Random,
    /// When the first connect failed since somebody was last connected.
    away_since: Option<Nanos>,
    /// The last refusal before anybody accepted.
    refusal: Option<(SocketAddr, Cause)>,
}

impl Connecting {
    /// Nobody has been connected to.
    pub fn new(routes: Routes, tunnel: Option<&Parts>, make_protocol: MakeProtocol, seed: u64) -> Self {
        Self {
            routes,
            queue: VecDeque::new(),
            wanted: 0,
            missing: 0,
            under_way: 0,
            tunnel: tunnel.map(Wire::of),
            make_protocol,
            spares: None,
            random: Random::new(seed),
            away_since: None,
            refusal: None,
        }
    }

    /// Whether a slot is to have a connection.
    pub fn wants(&self, conn: ConnId) -> bool {
        conn.0 < self.wanted
    }

    /// A connection of an earlier session to this address.
    pub fn take_spare(&mut self, address: SocketAddr) -> Option<Spare> {
        let spares = self.spares.as_mut()?;
        let index = spares.iter().rposition(|spare| spare.leads_to(address))?;
        Some(spares.swap_remove(index))
    }

    /// A connection is ready for its first request; returns whether it is the first of all.
    pub fn established(&mut self, route: RouteId, desk: &Desk) -> bool {
        let is_first = !self.routes.found();
        self.routes.worked(route);
        self.away_since = None;
        if is_first {
            self.refusal = None;
            desk.accept();
        }
        is_first
    }

    /// There are connections, so that nobody stays away.
    pub fn is_connected(&mut self) {
        self.away_since = None;
    }

    /// An address did not accept a connection. Returns whether another can be tried at once.
    pub fn has_other(&mut self, route: RouteId, errno: Errno) -> bool {
        !is_local(errno) && self.routes.refused(route, errno)
    }

    /// No connection came of an attempt, and there is no other address to be tried at once.
    pub fn failed(&mut self, route: RouteId, cause: Cause, at: Nanos, desk: &Desk) {
        self.away_since.get_or_insert(at);
        if !self.routes.found() {
            let address = self.routes.address(route);
            self.routes.start_over();
            self.refusal = Some((address, cause));
            desk.refuse(address, cause);
        }
    }

    /// How long a slot that failed waits before it is opened again, in nanoseconds.
    pub fn wait_ns(&mut self, failures: &mut Failures, longest_ns: u64) -> u64 {
        failures.wait_ns(longest_ns, &mut self.random)
    }

    /// Whether nobody could be connected to for `patience_ns`.
    pub fn has_stayed_away(&self, now: Nanos, patience_ns: u64) -> bool {
        self.away_since.is_some_and(|since| now.since(since) >= patience_ns)
    }

    /// The last refusal before anybody accepted, if nobody ever did.
    pub fn refusal(&self) -> Option<(SocketAddr, Cause)> {
        self.refusal
    }
}
