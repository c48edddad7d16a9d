//! The steps of the loop: events on connections start requests on them, and due requests start on ready connections.
//! Only this module connects roster, dispatch and books.

use onrush_proto::Nanos;
use onrush_proto::http2::SharedContext;
use rustix::io::Errno;

use super::demand::Demand;
use super::dispatch::{At, Limit, Place};
use super::roster::{Context, OPENED_MAX, Roster, Step, opened_per_turn};
use super::timers::Timer;
use super::{Engine, HANDLED_PER_TURN};
use crate::backend::{Backend, Completion, ConnId, What};

/// Largest number of connections closed in one turn of the loop when their number is reduced.
const CLOSED_PER_TURN: u32 = 256;

impl<B: Backend> Engine<B> {
    /// The connections, and the parts in which they record.
    pub(super) fn roster_and_context(&mut self) -> (&mut Roster<B>, Context<'_>) {
        let Self { roster, dispatch, books, timers, .. } = self;
        (roster, Context { books, timers, script: &mut dispatch.script })
    }

    pub(super) fn handle(&mut self, completion: Completion) {
        self.count_all_busy(completion.at);
        match completion.what {
            // A connection that is reset had been accepted.
            What::Connected(Err(errno @ (Errno::CONNRESET | Errno::PIPE))) => {
                self.handle_completion(Completion { what: What::Connected(Ok(())), ..completion });
                self.handle_completion(Completion { what: What::Received(Err(errno)), ..completion });
            }
            What::Received(Ok(0)) => {
                let completed = self.books.tally.completed;
                self.handle_completion(completion);
                self.turn.has_seen_unknown_end |= self.books.tally.completed > completed;
            }
            _ => self.handle_completion(completion),
        }
    }

    fn handle_completion(&mut self, completion: Completion) {
        let (roster, mut cx) = self.roster_and_context();
        let step = roster.handle_completion(completion, &mut cx);
        self.take_step(step, completion.at);
        // If requests in flight are limited, one that ends makes room for a request on another connection.
        if self.roster.config.in_flight_max.is_some() {
            self.dispatch_due_requests(completion.at);
        }
    }

    #[inline(always)]
    fn take_step(&mut self, step: Step, at: Nanos) {
        match step {
            Step::None => {}
            Step::Connecting => self.turn.awaited_since = at,
            Step::Pump(conn) => self.pump_connection(conn, at),
            Step::Begin(conn) => {
                let allowed = self.http2.as_ref().and_then(SharedContext::streams_known);
                if let Some(live) = self.roster.slots[conn.index()].open_connection() {
                    self.dispatch.depth = live.depth.min(allowed.map_or(usize::MAX, |allowed| allowed.max(1) as usize));
                }
                if self.dispatch.script.wants.delay {
                    self.dispatch.note_waiting_since(self.roster.connecting.was_away_since, &mut self.books, at);
                }
                self.pump_connection(conn, at);
            }
        }
    }

    /// Starts due requests while a connection has room, and sends its output.
    #[inline(always)]
    fn pump_connection(&mut self, conn: ConnId, at: Nanos) {
        let Self { roster, dispatch, books, timers, .. } = self;
        let slot = &mut roster.slots[conn.index()];
        if dispatch.has_room(slot, &books.tally) && dispatch.pause_is_over(conn, slot, books, timers, at) {
            if dispatch.has_ready() || dispatch.is_full(&books.tally) {
                // Other connections have waited longer, or must end first.
                dispatch.queue_ready(conn, slot);
                self.dispatch_due_requests(at);
            } else {
                self.start_due(conn, at, true);
            }
        }
        self.settle_connection(conn, at);
    }

    /// Starts due requests on a connection with room; `waited`: no connection was ready until now.
    fn start_due(&mut self, conn: ConnId, now: Nanos, waited: bool) {
        let Roster { slots, backend, connecting, .. } = &mut self.roster;
        let at = At { now, waited, wanted: connecting.wanted, away_since: connecting.away_since() };
        let place = Place { conn, slot: &mut slots[conn.index()], clock: backend };
        if let Some(started_at) = self.dispatch.start_due(place, at, &mut self.books) {
            self.turn.awaited_since = started_at;
        }
    }

    fn settle_connection(&mut self, conn: ConnId, at: Nanos) {
        let (roster, mut cx) = self.roster_and_context();
        roster.send_and_wind_up(conn, &mut cx, at);
    }

    /// Starts due requests on the ready connections.
    pub(super) fn dispatch_due_requests(&mut self, now: Nanos) {
        for _ in 0..HANDLED_PER_TURN {
            let Some(conn) = self.dispatch.next_ready(&self.books.tally, now) else { break };
            let slot = &mut self.roster.slots[conn.index()];
            slot.is_queued = false;
            if self.dispatch.has_room(slot, &self.books.tally) {
                self.start_due(conn, now, false);
            }
            self.settle_connection(conn, now);
        }
    }

    /// Counts the script time since the last call.
    pub(super) fn note_script_time(&mut self) {
        self.books.note_script_time(self.dispatch.script.script_time_ns());
        for (from_ns, until_ns) in self.dispatch.script.take_long_script_times() {
            let [from, until] = [from_ns, until_ns].map(|ns| self.roster.backend.time_of(ns));
            self.books.record_script_delay(from, until);
        }
    }

    /// Sends and stamps the requests that leave with the next wait.
    pub(super) fn send_and_stamp_gathered(&mut self, now: Nanos) {
        let (roster, mut cx) = self.roster_and_context();
        roster.send_and_stamp_gathered(&mut cx, now);
    }

    /// Opens some of the queued slots.
    pub(super) fn open_some(&mut self, now: Nanos) {
        if self.roster.connecting.queue.is_empty() {
            return;
        }
        self.count_all_busy(now);
        for _ in 0..opened_per_turn(self.turn.handled) {
            let (roster, mut cx) = self.roster_and_context();
            let Some(step) = roster.open_next(&mut cx, now) else { break };
            self.take_step(step, now);
        }
    }

    /// Opens more connections while due requests wait for one: at a time, no more than there are waiting requests and
    /// no more than there are connections, so that the number at most doubles per connect time. Requests that wait
    /// because the worker was stalled do not indicate a lack of connections.
    pub(super) fn open_more(&mut self, now: Nanos) {
        let may_open = self.may_open_more() && !self.dispatch.crowding.is_still_catching_up(now);
        if !may_open
            || self.dispatch.can_start(&self.books.tally)
            || self.dispatch.next_start_at(&self.books.tally) > now
        {
            return;
        }
        let (wanted, missing) = (self.roster.connecting.wanted, self.roster.connecting.missing);
        let most = (wanted - missing).min(OPENED_MAX as u32);
        if missing < most {
            let more = self.dispatch.connections_due(now, most).saturating_sub(missing);
            self.set_wanted_connections(wanted + more.min(self.roster.config.max_inflight - wanted), now);
        }
    }

    /// Gives exactly the first `wanted` slots a connection.
    pub(super) fn set_wanted_connections(&mut self, wanted: u32, now: Nanos) {
        self.count_all_busy(now);
        let (roster, mut cx) = self.roster_and_context();
        roster.set_wanted_connections(wanted, &mut cx, now);
    }

    /// Adjusts the number of connections to the plan's current level, closing only some in every turn.
    pub(super) fn follow_levels(&mut self, now: Nanos) {
        let Demand::Staged(levels) = &self.roster.config.demand else { return };
        let planned = self.books.tally.due_from();
        let (level, change_ns) = levels.connections_at(now.since(planned));
        let level = level.min(self.roster.config.max_inflight);
        let wanted = level.max(self.roster.connecting.wanted.saturating_sub(CLOSED_PER_TURN));
        let next_at = match change_ns {
            _ if wanted > level => now + 1,
            u64::MAX => Nanos::MAX,
            change_ns => planned + change_ns,
        };
        self.set_wanted_connections(wanted, now);
        if next_at < Nanos::MAX {
            self.timers.set_timer(next_at, Timer::Level);
        }
    }

    /// Applies the limit on requests in flight. A connection whose share shrinks finishes its requests first.
    pub(super) fn follow_limit(&mut self, limits: [u32; 2], now: Nanos) {
        let connections = self.roster.config.max_inflight;
        self.dispatch.limits = limits;
        let limit = Limit::new(limits, connections);
        let before = self.dispatch.limit.replace(limit);
        let was = |rank| before.map_or(u32::MAX, |before| before.share_of_rank(rank));
        for rank in (0..connections).filter(|&rank| limit.share_of_rank(rank) > was(rank)) {
            let conn = self.roster.order[rank as usize];
            if self.roster.slots.get_mut(conn.index()).is_some_and(|slot| slot.open_connection().is_some()) {
                self.pump_connection(conn, now);
            }
        }
    }

    /// Starts requests on connections that may have more in flight because their predecessors have fewer.
    pub(super) fn pump_relieved(&mut self, now: Nanos) {
        while let Some(conn) = self.roster.relieved.pop() {
            if self.roster.slots[conn.index()].open_connection().is_some() {
                self.pump_connection(conn, now);
            }
        }
    }

    /// Reopens a slot after its back-off.
    pub(super) fn reopen_slot(&mut self, conn: ConnId, now: Nanos) {
        self.roster.queue_to_open(conn, &mut self.books, now);
    }

    /// Continues after the pause before a batch.
    pub(super) fn resume_after_pause(&mut self, conn: ConnId, now: Nanos) {
        let slot = &mut self.roster.slots[conn.index()];
        slot.end_pause();
        self.dispatch.pause_ended = true;
        if slot.open_connection().is_some() {
            self.pump_connection(conn, now);
        }
    }

    /// Allows a request again in the place of one that was turned away.
    pub(super) fn end_stream_back_off(&mut self, conn: ConnId, now: Nanos) {
        let slot = &mut self.roster.slots[conn.index()];
        slot.resting -= 1;
        self.roster.resting -= 1;
        if slot.open_connection().is_some() {
            self.pump_connection(conn, now);
        }
    }

    /// Wakes a protocol at the requested time.
    pub(super) fn wake_protocol(&mut self, conn: ConnId, due: Nanos, now: Nanos) {
        let (roster, mut cx) = self.roster_and_context();
        let step = roster.wake_protocol(conn, due, &mut cx, now);
        self.take_step(step, now);
    }

    /// Checks one connection for timeouts.
    pub(super) fn sweep_connection(&mut self, conn: ConnId, now: Nanos) {
        let (roster, mut cx) = self.roster_and_context();
        let step = roster.check_timeouts(conn, &mut cx, now);
        self.take_step(step, now);
    }
}
