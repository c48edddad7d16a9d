//! What the engine does with one connection: handles its completions, starts requests on it, sweeps it.

use onrush_proto::{Client, Error, Nanos};
use onrush_stats::{Cause, Phase, ProxyFailure};
use rustix::io::Errno;

use super::Engine;
use super::cause::cause_of;
use super::connection::Live;
use super::ending::NotSetUp;
use super::protocol::Protocol;
use super::setup::Setup;
use super::slot::{Slot, State};
use super::timers::Timer;
use crate::backend::{Backend, Completion, ConnId, What};

/// How long the first connection tries one address while there are others, in nanoseconds.
const FIRST_PATIENCE_NS: u64 = 1_000_000_000;
/// If more of a body than this is left, the kernel discards it, or it is received in large pieces.
const LARGE_MIN: u64 = 16 * 1024;

impl<B: Backend> Engine<B> {
    /// Handles a completion.
    pub(super) fn handle(&mut self, Completion { conn, at, what }: Completion) {
        match what {
            What::Received(Ok(0)) => self.ended(conn, at),
            What::Received(Ok(_)) => self.received(conn, at),
            What::Discarded(n) => self.discarded(conn, n, at),
            What::Received(Err(errno)) => self.failed(conn, errno, at),
            What::Sent(Ok(n)) => self.sent(conn, n, at),
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
            // A connection that is reset was accepted before.
            What::Connected(Err(errno @ (Errno::CONNRESET | Errno::PIPE))) => {
                self.connected(conn, at);
                self.failed(conn, errno, at);
            }
            What::Connected(Err(errno)) => self.connect_failed(conn, errno, cause_of(errno), at),
        }
    }

    /// Handles an accepted connection.
    fn connected(&mut self, conn: ConnId, at: Nanos) {
        let setup = self.begin_setup(conn, at);
        self.advance(conn, setup, at);
    }

    /// Continues after a step of a connection's setup.
    fn advance(&mut self, conn: ConnId, setup: Result<Setup, NotSetUp>, at: Nanos) {
        match setup {
            Ok(Setup::Pending) => {}
            Ok(Setup::Done(early)) => self.established(conn, &early, at),
            Err(not_set_up) => self.not_set_up(conn, not_set_up, at),
        }
    }

    /// The connection is set up: requests can be sent. `early` has been received already.
    fn established(&mut self, conn: ConnId, early: &[u8], at: Nanos) {
        let protocol = match self.make_protocol(conn) {
            Ok(protocol) => protocol,
            Err(not_set_up) => return self.not_set_up(conn, not_set_up, at),
        };
        let slot = &mut self.slots[conn.index()];
        if let State::Connecting(since) = slot.state {
            self.books.tally.connected(at.since(since));
        }
        self.books.tally.interval.counters.connects += 1;
        if let Some(transcript) = &mut self.books.tally.transcript {
            transcript.connected = at;
        }
        let requests = self.config.requests_per_connection.map_or(u64::MAX, |limit| limit.most);
        self.go_live(conn, protocol, requests, false, at);
        if self.slots[conn.index()].link.is_some() || !early.is_empty() {
            self.hear_early(conn, early, at);
        }
    }

    /// The protocol of a connection that is set up as far as TLS goes.
    ///
    /// # Errors
    ///
    /// If the server chose one that the run does not speak.
    pub(super) fn make_protocol(&mut self, conn: ConnId) -> Result<Protocol, NotSetUp> {
        let alpn = self.slots[conn.index()].link.as_ref().and_then(|link| link.alpn());
        let failed = |cause| NotSetUp { phase: Phase::Tls, cause: Cause::Tls(cause), example: Vec::new() };
        (self.connecting.make_protocol)(alpn).map_err(failed)
    }

    /// Puts an established connection into use; it may have `requests` requests. `answered`: it has had responses in an
    /// earlier session.
    pub(super) fn go_live(&mut self, conn: ConnId, protocol: Protocol, requests: u64, answered: bool, at: Nanos) {
        let (slot, counters) = (&mut self.slots[conn.index()], &mut self.books.tally.interval.counters);
        counters.slots_opened += u64::from(!slot.is_counted);
        counters.occupancy.connecting_ns += std::mem::take(&mut slot.absent_ns);
        (slot.lived, slot.is_counted) = (true, true);
        if self.script.wants.delay {
            self.ask(at);
        }
        let is_first = self.connecting.established(self.slots[conn.index()].route, &self.worker_link);
        let mut live = Live::new(protocol, requests, self.script.shelf());
        live.answered = answered;
        self.enter(conn, State::Open(Box::new(live)), at);
        self.pump(conn, at);
        if is_first {
            self.open_wanted(1, at);
        }
    }

    /// Handles what was received before the first request could be sent.
    fn hear_early(&mut self, conn: ConnId, early: &[u8], at: Nanos) {
        if let Some(live) = self.slots[conn.index()].live().filter(|_| !early.is_empty()) {
            live.receive(early, at, &mut self.books.tally, &mut self.script);
        }
        self.after_records(conn, at);
    }

    fn received(&mut self, conn: ConnId, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let (tally, script) = (&mut self.books.tally, &mut self.script);
        let completed = tally.completed;
        match (&mut slot.state, &mut slot.link) {
            (State::Open(live), None) => {
                live.receive(self.backend.received(), at, tally, script);
                let rest = live.protocol.may_skip();
                if rest < LARGE_MIN {
                    // A short rest is read along with what follows it.
                } else if tally.transcript.is_none() && !script.wants.body {
                    self.backend.discard(conn, rest);
                } else {
                    self.backend.expect(conn, rest);
                }
                self.forget_failures(conn, completed);
                self.pump(conn, at);
            }
            (State::Open(live), Some(link)) => {
                let take = &mut |plain: &[u8]| live.receive(plain, at, tally, script);
                match link.receive(self.backend.received(), take) {
                    Ok(()) => {
                        self.forget_failures(conn, completed);
                        self.after_records(conn, at);
                    }
                    Err(failure) => self.link_failed(conn, failure, at),
                }
            }
            _ => {
                let setup = self.continue_setup(conn, at);
                self.advance(conn, setup, at);
            }
        }
    }

    /// Continues after handling TLS records.
    fn after_records(&mut self, conn: ConnId, at: Nanos) {
        let Slot { state: State::Open(live), link: Some(link), .. } = &mut self.slots[conn.index()] else {
            return self.pump(conn, at);
        };
        // The encrypted rest is a little longer, but the backend must not wait for more than will arrive. Without a
        // known length, the end may be a few bytes that nothing follows.
        let rest = live.protocol.may_skip();
        if rest < u64::MAX && rest.saturating_sub(link.pending()) >= LARGE_MIN {
            self.backend.expect(conn, rest - link.pending());
        }
        if link.is_closed() {
            // A connection that is leaving waits for the end of the transport, because that decides who keeps the port.
            // The server may wait for our close_notify first.
            if !self.is_leaving(conn) {
                return self.ended(conn, at);
            }
            self.take_leave(conn);
        }
        self.pump(conn, at);
        self.flush(conn, at);
    }

    fn discarded(&mut self, conn: ConnId, n: usize, at: Nanos) {
        let Some(live) = self.slots[conn.index()].live() else { return };
        let completed = self.books.tally.completed;
        self.books.tally.interval.counters.bytes_received += n as u64;
        live.protocol.handle_skipped(n as u64);
        live.take_events(&[], at, &mut self.books.tally, &mut self.script);
        self.forget_failures(conn, completed);
        self.pump(conn, at);
    }

    fn sent(&mut self, conn: ConnId, n: usize, at: Nanos) {
        let n = self.accepted(conn, n);
        self.encrypted(n, false);
        if self.slots[conn.index()].live().is_some() {
            self.flush(conn, at);
            self.pump(conn, at);
        } else {
            let setup = self.flush_setup(conn);
            self.advance(conn, setup, at);
        }
    }

    /// Resets the slot's back-off after a complete response.
    fn forget_failures(&mut self, conn: ConnId, completed_before: u64) {
        if self.books.tally.completed > completed_before {
            self.slots[conn.index()].failures.forget();
        }
    }

    /// Handles the end of the stream; what it means is up to the protocol.
    fn ended(&mut self, conn: ConnId, at: Nanos) {
        if let Some(not_set_up) = self.broken_off(conn, None) {
            return self.not_set_up(conn, not_set_up, at);
        }
        let is_idle = self.is_idle(conn) || self.closed_idle(conn, at);
        let Some(live) = self.slots[conn.index()].live() else { return };
        if let Some(errno) = live.send_error {
            return self.transport_failed(conn, errno, at);
        }
        if !is_idle {
            let completed = self.books.tally.completed;
            live.protocol.handle_eof();
            live.take_events(&[], at, &mut self.books.tally, &mut self.script);
            self.turn.has_seen_unknown_end |= self.books.tally.completed > completed;
            debug_assert!(live.open.is_empty(), "no request outlives the stream");
        }
        self.replace(conn, at);
    }

    /// Handles a transport failure in any state.
    fn failed(&mut self, conn: ConnId, errno: Errno, at: Nanos) {
        match self.broken_off(conn, Some(errno)) {
            Some(not_set_up) => self.not_set_up(conn, not_set_up, at),
            None if self.closed_idle(conn, at) => self.replace(conn, at),
            None => self.transport_failed(conn, errno, at),
        }
    }

    /// Whether the server closed a connection with nothing in flight while it waited for a due request: it may, and
    /// that is counted.
    fn closed_idle(&mut self, conn: ConnId, at: Nanos) -> bool {
        let slot = &mut self.slots[conn.index()];
        let is_idle = |live: &mut Live| live.open.is_empty() && !live.draining;
        if !slot.is_queued || !slot.live().is_some_and(is_idle) {
            return false;
        }
        let tally = &mut self.books.tally;
        tally.interval.counters.idle_closed += 1;
        if self.config.rules.open_loop.is_some_and(|rules| rules.as_wrk2) {
            tally.error(Phase::Head, Cause::Protocol(Error::ClosedBeforeResponse), at, Vec::new);
        }
        true
    }

    /// Starts requests that are due while there is room, and settles the connection.
    pub(super) fn pump(&mut self, conn: ConnId, at: Nanos) {
        self.make_ready(conn, at);
        self.settle(conn, at);
    }

    /// Sends what a connection has to send, leaves it if it has ended, and sets its protocol's timer.
    pub(super) fn settle(&mut self, conn: ConnId, at: Nanos) {
        self.transmit(conn, at);
        let Some(live) = self.slots[conn.index()].live() else { return };
        if live.draining && live.open.is_empty() {
            return self.leave(conn, at);
        }
        // A timer that fires too early finds nothing to do and is set again; one that fires too late would be a bug.
        if let Some(wake_at) = live.protocol.poll_timeout()
            && live.wake_at.is_none_or(|set| wake_at < set)
        {
            live.wake_at = Some(wake_at);
            self.timers.set(wake_at, Timer::Wake(conn));
        }
    }

    /// Continues after the pause before a batch.
    pub(super) fn resume(&mut self, conn: ConnId, due: Nanos, now: Nanos) {
        let slot = &mut self.slots[conn.index()];
        slot.end_pause(due);
        if slot.live().is_some() {
            self.pump(conn, now);
        }
    }

    /// Wakes a protocol at the time it asked for. A timer of an earlier connection, or one replaced by an earlier time,
    /// finds nothing to do.
    pub(super) fn wake(&mut self, conn: ConnId, due: Nanos, now: Nanos) {
        let Some(live) = self.slots[conn.index()].live().filter(|live| live.wake_at == Some(due)) else { return };
        live.wake_at = None;
        if live.protocol.poll_timeout().is_some_and(|wake_at| wake_at <= now) {
            live.protocol.handle_timeout(now);
            live.take_events(&[], now, &mut self.books.tally, &mut self.script);
        }
        self.pump(conn, now);
    }

    /// Checks one connection for what takes too long.
    pub(super) fn sweep(&mut self, conn: ConnId, now: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let is_shaking_hands = slot.is_shaking_hands();
        let is_over =
            |since: Nanos, limit_ns: Option<u64>| limit_ns.is_some_and(|limit_ns| now.since(since) >= limit_ns);
        let unanswered = |phase, cause| NotSetUp { phase, cause, example: Vec::new() };
        match &mut slot.state {
            State::Parked | State::Queued | State::Waiting => {}
            State::Connecting(since) if is_shaking_hands => {
                if is_over(*since, self.config.give_up_ns) {
                    self.not_set_up(conn, unanswered(Phase::Tls, Cause::Unanswered), now);
                }
            }
            State::Connecting(since) => {
                let routes = &self.connecting.routes;
                let has_choice = !routes.found() && routes.has_choice();
                if is_over(*since, if has_choice { Some(FIRST_PATIENCE_NS) } else { self.config.give_up_ns }) {
                    self.connect_failed(conn, Errno::TIMEDOUT, Cause::Unanswered, now);
                }
            }
            State::Tunnelling(tunnel) => {
                if is_over(tunnel.since, self.config.give_up_ns) {
                    self.not_set_up(conn, unanswered(Phase::Connect, Cause::Proxy(ProxyFailure::Silent)), now);
                }
            }
            State::Open(live) => {
                self.connecting.is_connected();
                live.sweep(self.config.give_up_ns, now, &mut self.books.tally);
                if live.send_error.is_some() {
                    // What arrived before the send failed has been read by now.
                    self.transport_failed(conn, Errno::PIPE, now);
                } else if live.draining || live.open.is_empty() {
                    // A request was abandoned, or was returned by another connection.
                    self.pump(conn, now);
                }
            }
        }
    }
}
