//! A worker's connecting state: the queue of slots, the addresses, the bytes before the first request, the failures.

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
use crate::retry::{Failures, stream_back_off_ns};
use crate::routes::{RouteId, Routes};

/// A worker's connecting state.
pub struct Connecting {
    /// Routing of connections to the target's addresses.
    pub routes: Routes,
    /// Slots to be opened, in order.
    pub queue: VecDeque<ConnId>,
    /// Number of slots that should have a connection: the first ones.
    pub wanted: u32,
    /// Wanted slots without a connection that takes requests: it is being opened, or the server must still close the
    /// last one.
    pub missing: u32,
    /// Number of connections being established, including those that wait for a proxy's tunnel.
    pub under_way: u64,
    /// The tunnel request to a proxy.
    pub tunnel: Option<Wire>,
    /// Makes the protocol of a new connection.
    pub make_protocol: MakeProtocol,
    /// Unused connections of an earlier session; `None`: sessions do not share connections.
    pub spares: Option<Vec<Spare>>,
    random: Random,
    /// Time of the first failed connect since the last successful one.
    away_since: Option<Nanos>,
    /// Time at which the first connection was given up because no request could start, and the number of responses by
    /// then.
    stuck: Option<(Nanos, u64)>,
    /// Start of the failing connects before the last success, if any.
    pub was_away_since: Option<Nanos>,
    /// The last refusal before any address accepted, or since only another protocol was received.
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

    /// Takes an earlier session's connection to this address, if there is one.
    pub fn take_spare(&mut self, address: SocketAddr) -> Option<Spare> {
        let spares = self.spares.as_mut()?;
        let index = spares.iter().rposition(|spare| spare.leads_to(address))?;
        Some(spares.swap_remove(index))
    }

    /// Records that a connection is ready for its first request. Returns true if no address had accepted a connection
    /// before.
    pub fn on_established(&mut self, route: RouteId, worker_link: &WorkerLink) -> bool {
        let is_first = !self.routes.has_working_address();
        self.routes.note_accepted(route);
        self.was_away_since = self.away_since.take();
        if is_first {
            self.refusal = None;
            worker_link.note_accepted();
        }
        is_first
    }

    /// Records that there are connections, so that the target is reachable.
    pub fn note_connected(&mut self) {
        self.away_since = None;
    }

    /// Records that an address did not accept a connection. Returns true if another address can be tried at once.
    pub fn drop_refusing_route(&mut self, route: RouteId, errno: Errno) -> bool {
        !is_local(errno) && self.routes.drop_after_refusal(route, errno)
    }

    /// Records a failed attempt, with no other address to try at once.
    pub fn on_attempt_failed(&mut self, route: RouteId, cause: Cause, at: Nanos, worker_link: &WorkerLink) {
        self.away_since.get_or_insert(at);
        if !self.routes.has_working_address() {
            let address = self.routes.address(route);
            self.routes.retry_all();
            self.refusal = Some((address, cause));
            worker_link.note_refused(address, cause);
        }
    }

    /// Records that only another protocol was received from the target.
    pub fn note_other_protocol(&mut self, route: RouteId, cause: Cause, worker_link: &WorkerLink) {
        let address = self.routes.address(route);
        self.refusal = Some((address, cause));
        worker_link.note_refused(address, cause);
    }

    /// Records that the target uses HTTP, or may.
    pub fn note_http(&mut self, worker_link: &WorkerLink) {
        if self.routes.has_working_address() && self.refusal.take().is_some() {
            worker_link.note_accepted();
        }
    }

    /// Counts a slot's failure. Returns the wait before it reconnects, in nanoseconds, at most `longest_ns` plus a
    /// quarter.
    pub fn slot_back_off_ns(&mut self, failures: &mut Failures, longest_ns: u64) -> u64 {
        failures.back_off_ns(longest_ns, &mut self.random)
    }

    /// Time for which no request takes the place of one turned away after `unanswered_ns` without an answer, in
    /// nanoseconds.
    pub fn stream_back_off_ns(&mut self, unanswered_ns: u64, longest_ns: u64) -> u64 {
        stream_back_off_ns(unanswered_ns, longest_ns, &mut self.random)
    }

    /// Time of the first failed connect since the last successful one.
    pub fn away_since(&self) -> Option<Nanos> {
        self.away_since
    }

    /// True if every connect has failed for at least `patience_ns`.
    pub fn is_unreachable_too_long(&self, now: Nanos, patience_ns: u64) -> bool {
        self.away_since.is_some_and(|since| now.since(since) >= patience_ns)
    }

    /// Records that a connection was given up because no request could start.
    pub fn note_stuck(&mut self, now: Nanos, completed: u64) {
        let is_old = self.stuck.is_some_and(|(_, before)| before == completed);
        if !is_old {
            self.stuck = Some((now, completed));
        }
    }

    /// True if connections have been given up for `patience_ns` because no request could start, and no response has
    /// been completed since.
    pub fn is_stuck_too_long(&self, now: Nanos, patience_ns: u64, completed: u64) -> bool {
        self.stuck.is_some_and(|(since, before)| before == completed && now.since(since) >= patience_ns)
    }

    /// The last refusal, if no address has accepted or only another protocol was received.
    pub fn refusal(&self) -> Option<(SocketAddr, Cause)> {
        self.refusal
    }
}
