//! Ends of connections, and what their slots do next.
//!
//! With `--requests-per-connection` the last request asks the server to close, and the slot waits for that before it
//! opens the next connection. The side that closes first keeps the port for a minute, and a client has few ports. The
//! wait is part of no latency.

use onrush_plan::limits::CLOSE_PATIENCE_NS;
use onrush_proto::{Client, Nanos};
use onrush_stats::{Cause, Phase};
use rustix::io::Errno;

use super::{Context, Roster};
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::cause::cause_of;
use crate::connection::Live;
use crate::retry::LONGEST_NS;
use crate::slot::{Slot, State};
use crate::tally::Tally;
use crate::timers::Timer;
use crate::tls::LinkFailure;

/// The failure of an accepted connection before its first request.
pub(super) struct NotSetUp {
    pub phase: Phase,
    pub cause: Cause,
    /// The peer's actual bytes, or the failure in words; may be empty.
    pub example: Vec<u8>,
}

impl<B: Backend> Roster<B> {
    pub(super) fn on_connect_failed(
        &mut self,
        conn: ConnId,
        errno: Errno,
        cause: Cause,
        cx: &mut Context<'_>,
        at: Nanos,
    ) {
        self.backend.close(conn);
        let route = self.slots[conn.index()].route;
        if self.connecting.drop_refusing_route(route, errno) {
            return self.queue_to_open(conn, cx.books, at);
        }
        let address = self.connecting.routes.address(route);
        cx.books.tally.record_error(Phase::Connect, cause, at, || address.to_string().into_bytes());
        self.connecting.on_attempt_failed(route, cause, at, &self.worker_link);
        self.back_off_slot(conn, false, cx, at);
    }

    /// Handles the failure of an accepted connection before its first request.
    pub(super) fn on_setup_failed(&mut self, conn: ConnId, failure: NotSetUp, cx: &mut Context<'_>, at: Nanos) {
        let NotSetUp { phase, cause, example } = failure;
        if let Cause::Tls(_) = cause {
            self.send_last_words(conn, &mut cx.books.tally, at);
        }
        self.backend.close(conn);
        cx.books.tally.record_error(phase, cause, at, || example);
        self.connecting.on_attempt_failed(self.slots[conn.index()].route, cause, at, &self.worker_link);
        self.back_off_slot(conn, true, cx, at);
    }

    /// Handles a TLS failure after the handshake.
    pub(super) fn on_link_failed(&mut self, conn: ConnId, failure: LinkFailure, cx: &mut Context<'_>, at: Nanos) {
        let LinkFailure { cause, example } = failure;
        self.send_last_words(conn, &mut cx.books.tally, at);
        if let Some(live) = self.slots[conn.index()].open_connection() {
            live.on_transport_failed(Cause::Tls(cause), &example, at, &mut cx.books.tally);
        }
        self.replace_connection(conn, cx, at);
    }

    /// Handles a transport failure on a connection that has requests, or could have.
    pub(super) fn on_transport_failed(&mut self, conn: ConnId, errno: Errno, cx: &mut Context<'_>, at: Nanos) {
        let is_idle = self.is_idle(conn, cx.books);
        if let Some(live) = self.slots[conn.index()].open_connection().filter(|_| !is_idle) {
            live.on_transport_failed(cause_of(errno), &[], at, &mut cx.books.tally);
        }
        self.replace_connection(conn, cx, at);
    }

    /// True if a connection waits for nothing, or only for its end, and is no longer needed. Its end is no error.
    pub(super) fn is_idle(&mut self, conn: ConnId, books: &Books) -> bool {
        let is_needed = books.tally.may_start() && !self.is_leaving(conn);
        self.slots[conn.index()].open_connection().is_none_or(|live| live.open.is_empty() && !is_needed)
    }

    /// Sends the proper end of a connection before it is closed, if it can leave at once: HTTP/2's GOAWAY, and TLS's
    /// close_notify or alert.
    pub fn send_last_words(&mut self, conn: ConnId, tally: &mut Tally, at: Nanos) {
        let slot = &mut self.slots[conn.index()];
        let live = slot.open_connection().filter(|live| live.unsent == 0 && live.send_error.is_none());
        let words = live.and_then(|live| {
            let words = live.protocol.poll_transmit(at)?;
            if let Some(transcript) = &mut tally.transcript {
                live.transcribe_sent(&words.bytes(), at, transcript);
            }
            Some(words)
        });
        match (&mut slot.link, words) {
            (Some(link), words) => {
                words.into_iter().for_each(|words| link.send(words));
                self.backend.send_last(conn, &link.last_words());
            }
            (None, Some(words)) => self.backend.send_last(conn, &words.bytes()),
            (None, None) => {}
        }
        if self.slots[conn.index()].open_connection().is_some_and(|live| live.protocol.is_http2()) {
            self.backend.drain_input(conn);
        }
    }

    /// Leaves a connection that takes no more requests and has none in flight. If the number of its requests is
    /// limited, the server may close first.
    pub(super) fn leave_connection(&mut self, conn: ConnId, cx: &mut Context<'_>, at: Nanos) {
        if !self.may_server_close(conn) {
            self.send_last_words(conn, &mut cx.books.tally, at);
            return self.replace_connection(conn, cx, at);
        }
        let Some(live) = self.slots[conn.index()].open_connection() else { return };
        let begins = live.leaving_since.is_none();
        let since = *live.leaving_since.get_or_insert(at);
        let is_over = live.leaves_at_once || at.since(since) >= CLOSE_PATIENCE_NS;
        if begins {
            // Until it is replaced, a connection is missing, as if it were being opened.
            self.connecting.missing += 1;
        }
        if is_over {
            cx.books.tally.interval.counters.closed_first += 1;
            self.send_last_words(conn, &mut cx.books.tally, at);
            self.replace_connection(conn, cx, at);
        }
    }

    /// True if a connection only waits for the server to close it.
    pub(super) fn is_leaving(&mut self, conn: ConnId) -> bool {
        let is_over = |live: &mut Live| live.draining && live.open.is_empty();
        self.may_server_close(conn) && self.slots[conn.index()].open_connection().is_some_and(is_over)
    }

    /// True if the server is to close a connection first, because it was asked to. Over HTTP/2 the client closes.
    pub(super) fn may_server_close(&mut self, conn: ConnId) -> bool {
        let is_limited = self.config.requests_per_connection.is_some();
        let live = self.slots[conn.index()].open_connection().filter(|_| is_limited);
        live.is_some_and(|live| !live.troubled && !live.protocol.is_http2())
    }

    /// Closes a connection whose requests have all ended, and opens the next: at once after a regular end, after a
    /// back-off if anything failed.
    pub(super) fn replace_connection(&mut self, conn: ConnId, cx: &mut Context<'_>, now: Nanos) {
        self.backend.close(conn);
        let slot = &mut self.slots[conn.index()];
        slot.has_ended = true;
        let is_troubled = slot.open_connection().is_none_or(|live| live.troubled || !live.answered);
        if !cx.books.tally.may_start() || !self.wants_connection(conn) {
            self.set_slot_state(conn, State::Parked, cx.books, now);
        } else if is_troubled {
            self.back_off_slot(conn, true, cx, now);
        } else {
            self.queue_to_open(conn, cx.books, now);
        }
    }

    /// Records the server's actual protocol if no connection has received anything else so far. Otherwise records that
    /// the server uses ours.
    pub fn note_other_protocol(&mut self, tally: &Tally) {
        let Some(cause) = tally.other_protocol().filter(|_| !self.slots.iter_mut().any(Slot::is_unanswered)) else {
            return self.connecting.note_http(&self.worker_link);
        };
        if let Some(route) = self.slots.iter_mut().find_map(|slot| slot.is_answered().then_some(slot.route)) {
            self.connecting.note_other_protocol(route, cause, &self.worker_link);
        }
    }

    /// Queues a slot to be opened.
    pub fn queue_to_open(&mut self, conn: ConnId, books: &mut Books, now: Nanos) {
        self.set_slot_state(conn, State::Queued, books, now);
        self.connecting.queue.push_back(conn);
    }

    /// Makes a slot wait before its next connection, longer after each failure. The wait is capped at `retry_max_ns` if
    /// the last connection `was_accepted`, otherwise at [`LONGEST_NS`].
    pub(super) fn back_off_slot(&mut self, conn: ConnId, was_accepted: bool, cx: &mut Context<'_>, now: Nanos) {
        self.set_slot_state(conn, State::Waiting, cx.books, now);
        let longest_ns = if was_accepted { self.config.rules.scale.retry_max_ns } else { LONGEST_NS };
        let wait_ns = self.connecting.slot_back_off_ns(&mut self.slots[conn.index()].failures, longest_ns);
        cx.timers.set_timer(now + wait_ns, Timer::Reopen(conn));
    }
}

impl From<LinkFailure> for NotSetUp {
    fn from(LinkFailure { cause, example }: LinkFailure) -> Self {
        Self { phase: Phase::Tls, cause: Cause::Tls(cause), example }
    }
}
