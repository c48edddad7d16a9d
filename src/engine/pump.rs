//! What the engine does with one connection: opens it, feeds it, pumps it, looks after it and replaces it.

use std::net::SocketAddr;

use onrush_proto::{Client, Nanos};
use rustix::io::Errno;

use super::Engine;
use super::connection::{Live, State};
use super::retry::LONGEST_NS;
use super::tally::cause_of;
use super::timers::Timer;
use super::tls::LinkFailure;
use crate::backend::{Backend, Completion, ConnId, What};
use crate::stats::{Cause, Phase, ProxyFailure};

/// How long the first connection waits for an address while there are others to try, in nanoseconds.
const FIRST_PATIENCE_NS: u64 = 1_000_000_000;
/// A longer rest of a body is thrown away by the kernel, or received in large pieces where it cannot be.
pub(super) const LARGE_MIN: u64 = 16 * 1024;

impl<B: Backend> Engine<B> {
    /// Takes note of something that happened to a connection.
    pub(super) fn handle(&mut self, Completion { conn, at, what }: Completion) {
        match what {
            What::Received(Ok(0)) => self.ended(conn, at),
            What::Received(Ok(_)) => self.received(conn, at),
            What::Discarded(n) => self.discarded(conn, n, at),
            What::Received(Err(errno)) => self.transport_failed(conn, errno, at),
            What::Sent(Ok(n)) => {
                let n = self.accepted(conn, n);
                self.encrypted(n, false);
                self.flush(conn, at);
                self.pump(conn, at);
            }
            What::Sent(Err(errno)) => {
                if let Some(live) = self.slots[conn.index()].live() {
                    live.send_error = Some(errno);
                }
            }
            What::Connected(Ok(())) => self.connected(conn, at),
            What::Postponed => {
                self.backend.close(conn);
                self.open_soon(conn, at);
            }
            // Whoever resets a connection has accepted it before.
            What::Connected(Err(errno @ (Errno::CONNRESET | Errno::PIPE))) => {
                self.connected(conn, at);
                self.transport_failed(conn, errno, at);
            }
            What::Connected(Err(errno)) => self.connect_failed(conn, errno, cause_of(errno), at),
        }
    }

    /// Requests can be sent.
    pub(super) fn established(&mut self, conn: ConnId, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        if let State::Connecting(since) = slot.state {
            self.tally.connected(at.since(since));
        }
        let counters = &mut self.tally.interval.counters;
        counters.connects += 1;
        counters.slots_opened += u64::from(!slot.is_counted);
        counters.occupancy.connecting_ns += std::mem::take(&mut slot.absent_ns);
        (slot.lived, slot.is_counted) = (true, true);
        let is_first = !self.routes.found();
        self.routes.worked(slot.route);
        let requests = self.settings.requests_per_connection.map_or(u64::MAX, |limit| limit.most);
        let live = Live::new((self.protocols)(), requests, self.script.keeps());
        self.enter(conn, State::Open(Box::new(live)), at);
        self.away_since = None;
        if let Some(transcript) = &mut self.tally.transcript {
            transcript.connected = at;
        }
        self.pump(conn, at);
        if is_first {
            self.desk.accept();
            self.refusal = None;
            self.to_open.extend((1..self.settings.connections).map(ConnId));
        }
    }

    fn connect_failed(&mut self, conn: ConnId, errno: Errno, cause: Cause, at: Nanos) {
        self.backend.close(conn);
        let route = self.slots[conn.index()].route;
        if !is_local(errno) && self.routes.refused(route, errno) {
            return self.open_soon(conn, at);
        }
        let address = self.routes.address(route);
        self.tally.error(Phase::Connect, cause, at, || address.to_string().into_bytes());
        self.away_since.get_or_insert(at);
        if !self.routes.found() {
            self.nobody_accepts(address, cause);
        }
        self.back_off(conn, false, at);
    }

    /// Every address has refused the first connection.
    pub(super) fn nobody_accepts(&mut self, address: SocketAddr, cause: Cause) {
        self.routes.start_over();
        self.refusal = Some((address, cause));
        self.desk.refuse(address, cause);
    }

    fn received(&mut self, conn: ConnId, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        if slot.link.is_some() {
            return self.received_sealed(conn, 0, at);
        }
        let Some(live) = slot.live() else { return };
        let completed = self.tally.completed;
        live.receive(self.backend.received(), at, &mut self.tally, &mut self.script);
        let rest = live.protocol.may_skip();
        if rest < LARGE_MIN {
            // It is read with what follows it.
        } else if self.tally.transcript.is_none() && !self.script.wants.body {
            self.backend.discard(conn, rest);
        } else {
            self.backend.expect(conn, rest);
        }
        self.forget_failures(conn, completed);
        self.pump(conn, at);
    }

    fn discarded(&mut self, conn: ConnId, n: usize, at: Nanos) {
        let Some(live) = self.slots[conn.index()].live() else { return };
        let completed = self.tally.completed;
        self.tally.interval.counters.bytes_received += n as u64;
        live.protocol.handle_skipped(n as u64);
        live.take_events(&[], at, &mut self.tally, &mut self.script);
        self.forget_failures(conn, completed);
        self.pump(conn, at);
    }

    /// A response that was complete makes the next wait short again.
    pub(super) fn forget_failures(&mut self, conn: ConnId, completed_before: u64) {
        if self.tally.completed > completed_before {
            self.slots[conn.index()].failures.forget();
        }
    }

    /// The peer will send nothing more: the protocol says what that means.
    pub(super) fn ended(&mut self, conn: ConnId, at: Nanos) {
        if self.is_shaking_hands(conn) {
            return self.link_failed(conn, LinkFailure::closed(), at);
        }
        if self.is_tunnelling(conn) {
            return self.tunnel_failed(conn, Cause::Proxy(ProxyFailure::Closed), at);
        }
        let is_idle = self.is_idle(conn);
        let Some(live) = self.slots[conn.index()].live() else { return };
        if let Some(errno) = live.send_error {
            return self.transport_failed(conn, errno, at);
        }
        if !is_idle {
            live.protocol.handle_eof();
            live.take_events(&[], at, &mut self.tally, &mut self.script);
            debug_assert!(live.open.is_empty(), "no request outlives the stream");
        }
        self.replace(conn, at);
    }

    fn transport_failed(&mut self, conn: ConnId, errno: Errno, at: Nanos) {
        if self.is_shaking_hands(conn) {
            return self.handshake_failed(conn, cause_of(errno), Vec::new(), at);
        }
        if self.is_tunnelling(conn) {
            return self.tunnel_failed(conn, cause_of(errno), at);
        }
        let is_idle = self.is_idle(conn);
        if let Some(live) = self.slots[conn.index()].live().filter(|_| !is_idle) {
            live.transport_failed(cause_of(errno), &[], at, &mut self.tally);
        }
        self.replace(conn, at);
    }

    /// Whether a connection waits for nothing, or for its end, and is not needed any more: its end is no error.
    fn is_idle(&mut self, conn: ConnId) -> bool {
        let is_needed = self.tally.may_start() && !self.is_leaving(conn);
        self.slots[conn.index()].live().is_none_or(|live| live.open.is_empty() && !is_needed)
    }

    /// Starts requests while there is room, hands over what is to be sent, replaces a connection that has ended.
    pub(super) fn pump(&mut self, conn: ConnId, at: Nanos) {
        while self.has_room(conn) && self.pause_is_over(conn, at) && self.start_batch(conn, at) {}
        self.transmit(conn, at);
        let Some(live) = self.slots[conn.index()].live() else { return };
        if live.draining && live.open.is_empty() {
            return self.leave(conn, at);
        }
        // A timer that is due too early finds nothing to do and is set anew; one too late would be a mistake.
        if let Some(wake_at) = live.protocol.poll_timeout()
            && live.wake_at.is_none_or(|set| wake_at < set)
        {
            live.wake_at = Some(wake_at);
            self.timers.set(wake_at, Timer::Wake(conn));
        }
    }

    /// Hands over what the protocol has to send, as far as the transport takes it.
    fn transmit(&mut self, conn: ConnId, at: Nanos) {
        while let Some(live) = self.slots[conn.index()].live()
            && live.unsent == 0
            && live.send_error.is_none()
            && let Some(transmit) = live.protocol.poll_transmit()
        {
            live.unsent = transmit.bytes().len();
            if let Some(transcript) = &mut self.tally.transcript {
                transcript.send(transmit.bytes(), at);
            }
            if let Some(link) = &mut self.slots[conn.index()].link {
                link.send(transmit);
                self.flush(conn, at);
            } else {
                let n = self.backend.send(conn, transmit);
                self.accepted(conn, n);
            }
        }
    }

    /// The transport accepted so many more bytes. Returns how many of them are the protocol's.
    pub(super) fn accepted(&mut self, conn: ConnId, n: usize) -> usize {
        let slot = &mut self.slots[conn.index()];
        let plain = slot.link.as_mut().map_or(n, |link| link.accepted(n));
        let Some(live) = slot.live() else {
            slot.accepted_by_proxy(n);
            return 0;
        };
        live.unsent -= plain;
        live.protocol.handle_sent(plain);
        plain
    }

    /// Closes a connection, all of whose requests have ended, and opens the next: at once if the connection ended as
    /// the protocol foresees, after a wait if anything failed.
    pub(super) fn replace(&mut self, conn: ConnId, now: Nanos) {
        self.backend.close(conn);
        let slot = &mut self.slots[conn.index()];
        let is_troubled = slot.live().is_none_or(|live| live.troubled || !live.answered);
        if !self.tally.may_start() {
            self.enter(conn, State::Parked, now);
        } else if is_troubled {
            self.back_off(conn, true, now);
        } else {
            self.open_soon(conn, now);
        }
    }

    /// Lets a slot wait before its next connection.
    pub(super) fn back_off(&mut self, conn: ConnId, was_accepted: bool, now: Nanos) {
        self.enter(conn, State::Waiting, now);
        let longest_ns = if was_accepted { self.settings.rules.scale.retry_max_ns } else { LONGEST_NS };
        let wait_ns = self.slots[conn.index()].failures.wait_ns(longest_ns, &mut self.random);
        self.timers.set(now + wait_ns, Timer::Reopen(conn));
    }

    /// Wakes a protocol that asked for it; a timer of an earlier connection, or one that has been overtaken, finds
    /// nothing to do.
    pub(super) fn wake(&mut self, conn: ConnId, due: Nanos, now: Nanos) {
        let Some(live) = self.slots[conn.index()].live().filter(|live| live.wake_at == Some(due)) else { return };
        live.wake_at = None;
        if live.protocol.poll_timeout().is_some_and(|wake_at| wake_at <= now) {
            live.protocol.handle_timeout(now);
            live.take_events(&[], now, &mut self.tally, &mut self.script);
        }
        self.pump(conn, now);
    }

    /// Looks after what takes too long on one connection.
    pub(super) fn sweep(&mut self, conn: ConnId, now: Nanos) {
        let is_shaking_hands = self.is_shaking_hands(conn);
        match &mut self.slots[conn.index()].state {
            State::Parked | State::Waiting => {}
            State::Connecting(since) => {
                let has_choice = !is_shaking_hands && !self.routes.found() && self.routes.has_choice();
                let limit_ns = if has_choice { Some(FIRST_PATIENCE_NS) } else { self.settings.give_up_ns };
                if limit_ns.is_none_or(|limit_ns| now.since(*since) < limit_ns) {
                    // There is time left.
                } else if is_shaking_hands {
                    self.handshake_failed(conn, Cause::Unanswered, Vec::new(), now);
                } else {
                    self.connect_failed(conn, Errno::TIMEDOUT, Cause::Unanswered, now);
                }
            }
            State::Tunnelling(tunnel) => {
                if self.settings.give_up_ns.is_some_and(|limit_ns| now.since(tunnel.since) >= limit_ns) {
                    self.tunnel_failed(conn, Cause::Proxy(ProxyFailure::Unanswered), now);
                }
            }
            State::Open(live) => {
                self.away_since = None;
                live.sweep(self.settings.give_up_ns, now, &mut self.tally);
                if live.send_error.is_some() {
                    // What had arrived before the send failed has been read by now.
                    self.transport_failed(conn, Errno::PIPE, now);
                } else if live.draining || live.open.is_empty() {
                    // Something was given up, or a request came back from another connection.
                    self.pump(conn, now);
                }
            }
        }
    }
}

/// Whether an error lies on this machine and says nothing about the address.
fn is_local(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL)
}
