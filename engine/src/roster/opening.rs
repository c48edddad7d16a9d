//! Number and opening of connections: a few in every turn of the loop, so that responses are handled while thousands
//! connect.

use onrush_proto::Nanos;
use onrush_stats::{Cause, Phase};

use super::ending::NotSetUp;
use super::{Context, Roster, Step};
use crate::UNANSWERED_NS;
use crate::backend::{Backend, Completion, ConnId, What};
use crate::books::Books;
use crate::connection::Live;
use crate::protocol::Protocol;
use crate::slot::{Slot, State};

/// Number of connections opened in a turn of the loop without completions.
const OPENED_PER_TURN: usize = 8;
/// Completions per opened connection. A connection with one request has at least two completions: however short
/// connections are, each is replaced in the turn in which it ends.
const HANDLED_FOR_ONE: usize = 2;
/// Largest number of connections opened in a turn. A connect takes about 30 µs, so responses that arrive in the
/// meantime wait up to 2 ms.
pub const OPENED_MAX: usize = 64;

/// Number of connections that may be opened in a turn after this many completions.
pub const fn opened_per_turn(handled: usize) -> usize {
    let opened = OPENED_PER_TURN + handled / HANDLED_FOR_ONE;
    if opened < OPENED_MAX { opened } else { OPENED_MAX }
}

impl<B: Backend> Roster<B> {
    /// Gives exactly the first `wanted` slots a connection.
    pub fn set_wanted_connections(&mut self, wanted: u32, cx: &mut Context<'_>, now: Nanos) {
        let before = self.connecting.wanted;
        self.create_slots(wanted);
        // These slots change between needed and not needed: count their time so far.
        (before.min(wanted)..before.max(wanted))
            .for_each(|rank| self.count_slot_time(self.order[rank as usize], cx.books, now));
        self.connecting.wanted = wanted;
        if wanted > 0 {
            self.worker_link.show_idle(false);
        }
        self.open_wanted(before, cx.books, now);
        (wanted..before).for_each(|rank| self.retire_slot(self.order[rank as usize], cx, now));
    }

    /// Makes the first `wanted` slots. Slots never needed do not exist yet.
    fn create_slots(&mut self, wanted: u32) {
        let stand_ins = self.config.stand_ins;
        for rank in self.slots.len() as u32 - stand_ins..wanted {
            debug_assert_eq!(self.order[rank as usize].index(), self.slots.len());
            self.slots.push(Slot::new(rank, self.config.tls.as_ref()));
        }
    }

    /// Opens the idle slots from `first` on that should have a connection. The first connection of all finds the
    /// address; the others follow once it is established.
    fn open_wanted(&mut self, first: u32, books: &mut Books, now: Nanos) {
        let wanted = if self.connecting.routes.has_working_address() {
            self.connecting.wanted
        } else {
            self.connecting.wanted.min(1)
        };
        for rank in first..wanted {
            let conn = self.order[rank as usize];
            if let State::Parked = self.slots[conn.index()].state {
                self.queue_to_open(conn, books, now);
            }
        }
    }

    /// Makes a slot give up its connection, after the responses to its requests in flight.
    fn retire_slot(&mut self, conn: ConnId, cx: &mut Context<'_>, now: Nanos) {
        match &mut self.slots[conn.index()].state {
            State::Open(live) => {
                (live.draining, live.leaves_at_once) = (true, true);
                self.send_and_wind_up(conn, cx, now);
            }
            State::Connecting(_) | State::Tunnelling(_) => {
                self.backend.close(conn);
                self.set_slot_state(conn, State::Parked, cx.books, now);
            }
            // These slots notice when it is their turn to be opened.
            State::Parked | State::Queued | State::Waiting => {}
        }
    }

    /// Opens the next queued slot, if any.
    pub fn open_next(&mut self, cx: &mut Context<'_>, now: Nanos) -> Option<Step> {
        let conn = self.connecting.queue.pop_front()?;
        if cx.books.tally.may_start() && self.wants_connection(conn) {
            return Some(self.open_slot(conn, cx, now));
        }
        self.set_slot_state(conn, State::Parked, cx.books, now);
        Some(Step::None)
    }

    /// Gives a slot an earlier session's connection, or starts a connect.
    fn open_slot(&mut self, conn: ConnId, cx: &mut Context<'_>, now: Nanos) -> Step {
        if let Some(address) = cx.script.choose_address() {
            self.connecting.routes.direct_to(address);
        }
        let (route, address) = self.connecting.routes.choose_route();
        let slot = &mut self.slots[conn.index()];
        if let Some(link) = &mut slot.link {
            link.end();
        }
        slot.route = route;
        if let Some(requests) = self.adopt_spare(conn, address, cx.books) {
            if let Ok(protocol) = self.make_protocol(conn) {
                return self.start_using(conn, protocol, requests, true, cx, now);
            }
            self.backend.close(conn);
        }
        self.set_slot_state(conn, State::Connecting(now), cx.books, now);
        if B::GATHERS {
            self.gathered.push(conn);
        }
        if let Some(transcript) = &mut cx.books.tally.transcript {
            transcript.connecting = now;
        }
        self.backend.connect(conn, address);
        Step::Connecting
    }

    /// The protocol of a connection whose TLS setup is complete.
    ///
    /// # Errors
    ///
    /// If the server chose one that the run does not support.
    pub(super) fn make_protocol(&mut self, conn: ConnId) -> Result<Protocol, NotSetUp> {
        let alpn = self.slots[conn.index()].link.as_ref().and_then(|link| link.alpn());
        let failed = |cause| NotSetUp { phase: Phase::Tls, cause: Cause::Tls(cause), example: Vec::new() };
        (self.connecting.make_protocol)(alpn).map_err(failed)
    }

    /// Puts an established connection into use, with a limit of `requests` requests. `answered`: it has had responses
    /// in an earlier session.
    pub(super) fn start_using(
        &mut self,
        conn: ConnId,
        protocol: Protocol,
        requests: u64,
        answered: bool,
        cx: &mut Context<'_>,
        at: Nanos,
    ) -> Step {
        let (slot, counters) = (&mut self.slots[conn.index()], &mut cx.books.tally.interval.counters);
        counters.slots_opened += u64::from(!slot.is_counted);
        counters.occupancy.connecting_ns += std::mem::take(&mut slot.absent_ns);
        (slot.lived, slot.is_counted) = (true, true);
        let is_first = self.connecting.on_established(slot.route, &self.worker_link);
        let depth = if protocol.is_http2() { self.config.streams } else { self.config.depth };
        let mut live = Live::new(protocol, requests, depth, at, cx.script.new_response_pool());
        live.answered = answered;
        if let Some(transcript) = &mut cx.books.tally.transcript {
            live.frame_readers = live.protocol.frame_readers();
            transcript.begin_connection(live.frame_readers.is_some());
        }
        self.set_slot_state(conn, State::Open(Box::new(live)), cx.books, at);
        if is_first {
            self.open_wanted(1, cx.books, at);
        }
        Step::Begin(conn)
    }

    /// Handles connects that have succeeded or failed but were not handled in time: they are not errors of the target.
    pub fn handle_late_connects(&mut self, books: &mut Books, now: Nanos) {
        let is_overdue =
            |slot: &Slot| matches!(slot.state, State::Connecting(since) if now.since(since) >= UNANSWERED_NS);
        if !self.slots.iter().any(is_overdue) {
            return;
        }
        // Bounded, because other completions keep arriving after the end of the run.
        for _ in 0..2 * self.slots.len() {
            match self.backend.next_completion() {
                Some(Completion { what: What::Sent(_), .. }) => {}
                Some(Completion { conn, .. }) => {
                    if matches!(self.slots[conn.index()].state, State::Connecting(_)) {
                        self.set_slot_state(conn, State::Parked, books, now);
                    }
                }
                None if self.backend.reap() => {}
                None => break,
            }
        }
    }
}
