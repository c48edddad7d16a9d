//! Events of a connection: its completions, its timeouts, and the wake-ups of its protocol.

use onrush_proto::{Client, Nanos};
use onrush_stats::{Cause, Phase, ProxyFailure};
use rustix::io::Errno;

use super::ending::NotSetUp;
use super::setup::Setup;
use super::{Context, Roster, Step};
use crate::backend::{Backend, Completion, ConnId, What};
use crate::books::Books;
use crate::cause::cause_of;
use crate::connection::Live;
use crate::slot::{Slot, State};
use crate::timers::Timer;

/// Time for which the first connection tries one of several addresses, in nanoseconds.
const FIRST_PATIENCE_NS: u64 = 1_000_000_000;
/// A longer rest of a body is discarded by the kernel, or received in large pieces. No HTTP/2 frame is longer unless
/// `--h2-max-frame` allows it.
const LARGE_MIN: u64 = 16 * 1024;

impl<B: Backend> Roster<B> {
    /// Handles a completion.
    pub fn handle_completion(&mut self, Completion { conn, at, what }: Completion, cx: &mut Context<'_>) -> Step {
        match what {
            What::Received(Ok(0)) => self.on_stream_end(conn, cx, at),
            What::Received(Ok(_)) => self.on_received(conn, cx, at),
            What::Discarded(n) => self.on_discarded(conn, n, cx, at),
            What::Received(Err(errno)) => self.on_failed(conn, errno, cx, at),
            What::Sent(Ok(n)) => self.on_sent(conn, n, cx, at),
            What::Sent(Err(errno)) => {
                if let Some(live) = self.slots[conn.index()].open_connection() {
                    live.send_error = Some(errno);
                }
                Step::None
            }
            What::Connected(Ok(())) => self.on_connected(conn, cx, at),
            What::Postponed => {
                self.backend.close(conn);
                self.queue_to_open(conn, cx.books, at);
                Step::None
            }
            What::Connected(Err(errno)) => {
                self.on_connect_failed(conn, errno, cause_of(errno), cx, at);
                Step::None
            }
        }
    }

    fn on_connected(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) -> Step {
        let setup = self.begin_setup(conn, cx.books, at);
        self.continue_after_setup_step(conn, setup, cx, at)
    }

    /// Continues after a step of a connection's setup.
    fn continue_after_setup_step(
        &mut self,
        conn: ConnId,
        setup: Result<Setup, NotSetUp>,
        cx: &mut Context<'_>,
        at: Nanos,
    ) -> Step {
        let established = match setup {
            Ok(Setup::Pending) => return Step::None,
            Ok(Setup::Done(early)) => self.on_established(conn, &early, cx, at),
            Err(not_set_up) => Err(not_set_up),
        };
        established.unwrap_or_else(|not_set_up| {
            self.on_setup_failed(conn, not_set_up, cx, at);
            Step::None
        })
    }

    /// Completes the setup of a connection: requests can be sent. `early` has already been received.
    fn on_established(
        &mut self,
        conn: ConnId,
        early: &[u8],
        cx: &mut Context<'_>,
        at: Nanos,
    ) -> Result<Step, NotSetUp> {
        let protocol = self.make_protocol(conn)?;
        if let State::Connecting(since) = self.slots[conn.index()].state {
            cx.books.tally.count_connect(at.since(since));
        }
        cx.books.tally.interval.counters.connects += 1;
        if let Some(transcript) = &mut cx.books.tally.transcript {
            transcript.connected = at;
        }
        let requests = self.config.requests_per_connection.map_or(u64::MAX, |limit| limit.most);
        let step = self.start_using(conn, protocol, requests, false, cx, at);
        let slot = &mut self.slots[conn.index()];
        if let Some(live) = slot.open_connection().filter(|_| !early.is_empty()) {
            live.handle_received(early, at, &mut cx.books.tally, cx.script);
        }
        // The last message of a handshake may have arrived together with the end of the stream.
        if self.slots[conn.index()].link.is_some() && self.continue_after_records(conn, cx, at) == Step::None {
            return Ok(Step::None);
        }
        Ok(step)
    }

    fn on_received(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) -> Step {
        let slot = &mut self.slots[conn.index()];
        let (tally, script) = (&mut cx.books.tally, &mut *cx.script);
        let completed = tally.completed;
        match (&mut slot.state, &mut slot.link) {
            (State::Open(live), None) => {
                live.handle_received(self.backend.received_bytes(), at, tally, script);
                let turns_away = !live.turned_away.is_empty();
                let rest = live.protocol.may_skip();
                let is_long = rest > LARGE_MIN;
                if is_long && !live.wants_body(tally) && !script.wants.body {
                    self.backend.discard(conn, rest);
                } else if is_long {
                    self.backend.expect_large_body(conn, rest);
                } else if live.protocol.body_bytes_to_come() >= LARGE_MIN {
                    // A short rest of a body is read along with the next bytes.
                    self.backend.receive_in_large_pieces(conn);
                }
                if is_long || live.protocol.is_uploading() {
                    tally.round.forbid_lingering();
                }
                slot.forget_failures(completed, tally);
                if turns_away {
                    self.hold_back(conn, cx, at);
                }
                Step::Pump(conn)
            }
            (State::Open(live), Some(link)) => {
                let take = &mut |plain: &[u8]| live.handle_received(plain, at, tally, script);
                match link.receive(self.backend.received_bytes(), take) {
                    Ok(()) => {
                        self.apply_back_off(conn, completed, cx, at);
                        self.continue_after_records(conn, cx, at)
                    }
                    Err(failure) => {
                        self.on_link_failed(conn, failure, cx, at);
                        Step::None
                    }
                }
            }
            _ => {
                let setup = self.continue_setup(conn, cx.books, at);
                self.continue_after_setup_step(conn, setup, cx, at)
            }
        }
    }

    /// Continues after handling TLS records.
    fn continue_after_records(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) -> Step {
        let Slot { state: State::Open(live), link: Some(link), .. } = &mut self.slots[conn.index()] else {
            return Step::Pump(conn);
        };
        // The encrypted rest is a little longer, but the backend must not wait for more than will arrive. If the length
        // is unknown, the end may be a few bytes that nothing follows.
        let rest = live.protocol.may_skip();
        let is_long = rest < u64::MAX && rest.saturating_sub(link.pending()) > LARGE_MIN;
        if is_long {
            self.backend.expect_large_body(conn, rest - link.pending());
        } else if live.protocol.body_bytes_to_come() >= LARGE_MIN {
            self.backend.receive_in_large_pieces(conn);
        }
        if is_long || live.protocol.is_uploading() {
            cx.books.tally.round.forbid_lingering();
        }
        if link.is_closed() {
            // A connection that is leaving waits for the end of the transport, which decides who keeps the port. The
            // server may wait for our close_notify first.
            if !self.is_leaving(conn) {
                return self.on_stream_end(conn, cx, at);
            }
            self.send_last_words(conn, &mut cx.books.tally, at);
        }
        Step::Pump(conn)
    }

    fn on_discarded(&mut self, conn: ConnId, n: usize, cx: &mut Context<'_>, at: Nanos) -> Step {
        let slot = &mut self.slots[conn.index()];
        let Some(live) = slot.open_connection() else { return Step::None };
        let tally = &mut cx.books.tally;
        let completed = tally.completed;
        tally.interval.counters.bytes_received += n as u64;
        tally.round.count_received(n);
        live.handle_skipped(n as u64, at, tally, cx.script);
        self.apply_back_off(conn, completed, cx, at);
        Step::Pump(conn)
    }

    /// Applies the outcomes since there had been `completed` complete responses: after a response the slot's back-off
    /// is reset; in the place of a request turned away, none starts for a while.
    fn apply_back_off(&mut self, conn: ConnId, completed: u64, cx: &mut Context<'_>, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        slot.forget_failures(completed, &cx.books.tally);
        if slot.open_connection().is_some_and(|live| !live.turned_away.is_empty()) {
            self.hold_back(conn, cx, at);
        }
    }

    #[cold]
    fn hold_back(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let Some(live) = slot.open_connection() else { return };
        let turned_away = std::mem::take(&mut live.turned_away);
        if live.draining {
            return;
        }
        slot.resting += turned_away.len() as u32;
        self.resting += turned_away.len() as u32;
        for unanswered_ns in turned_away {
            let rest_ns = self.connecting.stream_back_off_ns(unanswered_ns, self.config.rules.scale.retry_max_ns);
            cx.timers.set_timer(at + rest_ns, Timer::Rested(conn));
        }
    }

    fn on_sent(&mut self, conn: ConnId, n: usize, cx: &mut Context<'_>, at: Nanos) -> Step {
        let slot = &mut self.slots[conn.index()];
        let plain = slot.on_accepted(n);
        if slot.link.is_some() {
            cx.books.tally.count_encrypted(plain, false);
        }
        if slot.open_connection().is_some() {
            return Step::Pump(conn);
        }
        let setup = self.flush_setup(conn, cx.books);
        self.continue_after_setup_step(conn, setup, cx, at)
    }

    /// Handles the end of the stream, whose meaning depends on the protocol.
    fn on_stream_end(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) -> Step {
        if let Some(not_set_up) = self.setup_error(conn, None) {
            self.on_setup_failed(conn, not_set_up, cx, at);
            return Step::None;
        }
        let is_idle = self.is_idle(conn, cx.books) || self.count_idle_close(conn, cx.books, at);
        let Some(live) = self.slots[conn.index()].open_connection() else { return Step::None };
        // Bytes that an idle connection failed to send were not a request.
        if let Some(errno) = live.send_error.filter(|_| !is_idle) {
            self.on_transport_failed(conn, errno, cx, at);
            return Step::None;
        }
        if !is_idle {
            live.protocol.handle_eof();
            live.process_input(&[], at, &mut cx.books.tally, cx.script);
            debug_assert!(live.open.is_empty(), "no request outlives the stream");
        }
        self.replace_connection(conn, cx, at);
        Step::None
    }

    /// Handles a transport failure in any state.
    fn on_failed(&mut self, conn: ConnId, errno: Errno, cx: &mut Context<'_>, at: Nanos) -> Step {
        match self.setup_error(conn, Some(errno)) {
            Some(not_set_up) => self.on_setup_failed(conn, not_set_up, cx, at),
            None if self.count_idle_close(conn, cx.books, at) => self.replace_connection(conn, cx, at),
            None => self.on_transport_failed(conn, errno, cx, at),
        }
        Step::None
    }

    /// Counts an idle close: the server closed a connection with nothing in flight that waited for a due request or had
    /// had its response (in a pause, or with that response, as TLS may announce). Returns false if the close was not of
    /// that kind.
    fn count_idle_close(&mut self, conn: ConnId, books: &mut Books, at: Nanos) -> bool {
        let slot = &mut self.slots[conn.index()];
        let is_queued = slot.is_queued;
        let is_idle = |live: &mut Live| {
            live.open.is_empty() && !live.draining && !live.protocol.is_unasked() && (is_queued || live.answered)
        };
        if !slot.open_connection().is_some_and(is_idle) {
            return false;
        }
        books.tally.count_idle_close(at);
        true
    }

    /// Wakes a protocol at the requested time. A timer of an earlier connection, or one replaced by an earlier time,
    /// has no effect.
    pub fn wake_protocol(&mut self, conn: ConnId, due: Nanos, cx: &mut Context<'_>, now: Nanos) -> Step {
        let live = self.slots[conn.index()].open_connection().filter(|live| live.wake_at == Some(due));
        let Some(live) = live else { return Step::None };
        live.wake_at = None;
        if live.protocol.poll_timeout().is_some_and(|wake_at| wake_at <= now) {
            live.protocol.handle_timeout(now);
            live.process_input(&[], now, &mut cx.books.tally, cx.script);
        }
        Step::Pump(conn)
    }

    /// Checks one connection for timeouts.
    pub fn check_timeouts(&mut self, conn: ConnId, cx: &mut Context<'_>, now: Nanos) -> Step {
        let slot = &mut self.slots[conn.index()];
        let is_shaking_hands = slot.is_shaking_hands();
        let is_over =
            |since: Nanos, limit_ns: Option<u64>| limit_ns.is_some_and(|limit_ns| now.since(since) >= limit_ns);
        let unanswered = |phase, cause| NotSetUp { phase, cause, example: Vec::new() };
        match &mut slot.state {
            State::Parked | State::Queued | State::Waiting => {}
            State::Connecting(since) if is_shaking_hands => {
                if is_over(*since, self.config.give_up_ns) {
                    self.on_setup_failed(conn, unanswered(Phase::Tls, Cause::Unanswered), cx, now);
                }
            }
            State::Connecting(since) => {
                let routes = &self.connecting.routes;
                let has_choice = !routes.has_working_address() && routes.has_choice();
                if is_over(*since, if has_choice { Some(FIRST_PATIENCE_NS) } else { self.config.give_up_ns }) {
                    self.on_connect_failed(conn, Errno::TIMEDOUT, Cause::Unanswered, cx, now);
                }
            }
            State::Tunnelling(tunnel) => {
                if is_over(tunnel.since, self.config.give_up_ns) {
                    self.on_setup_failed(conn, unanswered(Phase::Connect, Cause::Proxy(ProxyFailure::Silent)), cx, now);
                }
            }
            State::Open(live) => {
                self.connecting.note_connected();
                live.abandon_overdue(self.config.give_up_ns, now, &mut cx.books.tally);
                if live.send_error.is_some() {
                    // All bytes that arrived before the send failed have been read by now.
                    self.on_transport_failed(conn, Errno::PIPE, cx, now);
                } else if live.is_stuck(self.config.give_up_ns, now, &mut cx.books.tally) {
                    self.connecting.note_stuck(now, cx.books.tally.completed);
                    self.send_last_words(conn, &mut cx.books.tally, now);
                    self.replace_connection(conn, cx, now);
                } else if live.draining || live.open.is_empty() {
                    // A request was abandoned, or returned by another connection.
                    return Step::Pump(conn);
                }
            }
        }
        Step::None
    }
}
