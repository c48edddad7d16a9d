//! Which requests start, when, and on which connection: the only place that starts requests.
//!
//! A connection with room for a request enters the list of ready ones. When one is ready and the pacer says that a
//! request is due, the source's next batch starts there. In the closed loop a request is always due: a connection that
//! becomes ready gets its next batch at once, and the list stays empty.

use std::collections::VecDeque;

use onrush_plan::PerConnection;
use onrush_proto::{Client, Nanos, Request, StartError};
use onrush_stats::silences::GAP_MIN_NS;

use super::crowding::Crowding;
use super::open_request::OpenRequest;
use super::pacer::Pacer;
use super::script_failure::ScriptFailure;
use super::slot::Pause;
use super::tally::Tally;
use super::timers::Timer;
use super::{Engine, HANDLED_PER_TURN};
use crate::backend::{Backend, ConnId};

/// What is sent next, when, and which connections are ready for it.
pub(super) struct Dispatch {
    /// The source's current batch.
    batch: Vec<Request>,
    /// How many of its requests have been started; the others wait for a connection with room.
    started: usize,
    /// Slots whose connections have room, in order; some may have lost their connection since.
    ready: VecDeque<ConnId>,
    /// Which connections may begin a request; `None`: all.
    pub active: Option<Active>,
    pub pacer: Pacer,
    pub crowding: Crowding,
}

/// The connections that may begin a request, where only some of them may: in turn, because they may not be alike.
#[derive(Clone, Copy)]
pub(super) struct Active {
    first: u32,
    count: u32,
    /// The number of all connections, at least one.
    of: u32,
}

impl Active {
    /// The first `count` of all connections.
    pub fn new(count: u32, of: u32) -> Self {
        Self { first: 0, count, of }
    }

    /// The next `count` of them: if some are left out, others than before.
    fn next(self, count: u32) -> Self {
        let after = u64::from(self.first) + u64::from(self.count.min(self.of));
        Self { first: (after % u64::from(self.of)) as u32, count, ..self }
    }

    /// Whether a connection is among them.
    pub fn has(self, conn: ConnId) -> bool {
        (conn.0 + self.of - self.first) % self.of < self.count
    }
}

impl Dispatch {
    /// Nothing is ready yet; `pacer` decides when requests are due.
    pub fn new(pacer: Pacer) -> Self {
        Self {
            batch: Vec::new(),
            started: 0,
            ready: VecDeque::new(),
            active: None,
            pacer,
            crowding: Crowding::default(),
        }
    }

    /// The run, and with it the schedule, begins at this moment.
    pub fn begin(&mut self, at: Nanos) {
        self.pacer.begin(at);
    }

    /// The slots in the list, for tests which check that none is forgotten.
    #[cfg(any(test, feature = "testing"))]
    pub fn ready(&self) -> impl Iterator<Item = ConnId> {
        self.ready.iter().copied()
    }

    /// Whether the rest of a batch waits for a connection with room for it.
    fn is_begun(&self) -> bool {
        self.started < self.batch.len()
    }
}

impl<B: Backend> Engine<B> {
    /// Starts what is due on the ready connections, and hands it over.
    pub(super) fn dispatch(&mut self, now: Nanos) {
        for _ in 0..HANDLED_PER_TURN {
            if self.next_start_at() > now {
                break;
            }
            let Some(conn) = self.dispatch.ready.pop_front() else { break };
            self.slots[conn.index()].is_queued = false;
            if self.has_room(conn) {
                self.start_due(conn, now, false);
            }
            self.settle(conn, now);
        }
    }

    /// Makes a connection ready if it has room and need not pause first. Starts what is due: here, unless other
    /// connections have waited longer.
    pub(super) fn make_ready(&mut self, conn: ConnId, at: Nanos) {
        if !self.has_room(conn) || !self.pause_is_over(conn, at) {
            return;
        }
        if self.dispatch.ready.is_empty() {
            return self.start_due(conn, at, true);
        }
        self.queue(conn);
        self.dispatch(at);
    }

    /// Starts what is due on a connection with room; `is_first`: until now no other was ready. If room is left, it
    /// stays ready.
    fn start_due(&mut self, conn: ConnId, now: Nanos, is_first: bool) {
        let is_closed = matches!(self.dispatch.pacer, Pacer::Closed);
        if is_first {
            self.count_all_busy(now);
        }
        if !is_closed && self.slots[conn.index()].live().is_some_and(|live| !live.answered) {
            self.ask(now);
        }
        // A request is too late if it would leave too late.
        let now = if is_closed { now } else { self.backend.now() };
        let is_warm = self.books.tally.is_warming_up() && now > self.books.start;
        if (is_warm || now > self.books.end_at) && !is_closed {
            // The worker was stalled past the end of the run or of the warm-up; the loop deals with that.
            return self.queue(conn);
        }
        // Dropping very many takes time, which must not make other requests too late.
        let sent_at = if self.drop_late(now) { self.backend.now() } else { now };
        while self.next_start_at() <= now && !self.is_too_late(now) && self.books.tally.may_start() {
            if !self.start_batch(conn, sent_at, is_first) || !self.has_room(conn) {
                return;
            }
        }
        if self.dispatch.pacer.due_at() > now {
            self.dispatch.crowding.has_caught_up();
        }
        if self.books.tally.may_start() {
            self.queue(conn);
        }
    }

    /// Notes that a scheduled request has waited for a connection since it might have started: a silence counts from
    /// then. If a script delays requests, one waits only for that, unless no connect has succeeded for a long time.
    pub(super) fn ask(&mut self, now: Nanos) {
        let mut since = self.dispatch.pacer.next_at();
        if self.script.wants.delay {
            let away_since = self.connecting.away_since().filter(|away_since| now.since(*away_since) >= GAP_MIN_NS);
            since = away_since.map_or(Nanos::MAX, |away_since| away_since.max(since));
        }
        if since < now && self.books.tally.left_of(self.dispatch.pacer.due_at()) > 0 {
            self.books.tally.asked(since);
        }
    }

    /// How many connections, at most `most`, are needed to send the requests that are due.
    pub(super) fn connections_due(&self, now: Nanos, most: u32) -> u32 {
        let batch = self.dispatch.batch.len().max(1) as u64;
        let waiting = self.dispatch.pacer.count_before(now + 1, u64::from(most) * batch);
        (waiting.div_ceil(batch) as u32).clamp(1, most)
    }

    /// When the next request may start; [`Nanos::MAX`]: never.
    pub(super) fn next_start_at(&self) -> Nanos {
        if self.books.tally.has_returned() { Nanos::default() } else { self.dispatch.pacer.next_at() }
    }

    /// Whether a connection is ready for a request.
    pub(super) fn has_ready(&self) -> bool {
        !self.dispatch.ready.is_empty()
    }

    /// Adds a connection to the list of ready ones, once.
    fn queue(&mut self, conn: ConnId) {
        let slot = &mut self.slots[conn.index()];
        if !slot.is_queued {
            slot.is_queued = true;
            self.dispatch.ready.push_back(conn);
        }
    }

    /// Drops requests that would start too late. Returns whether there were any.
    fn drop_late(&mut self, now: Nanos) -> bool {
        if !self.is_too_late(now) {
            return false;
        }
        let max_late_ns = self.config.rules.open_loop.and_then(|rules| rules.max_late_ns).unwrap_or(u64::MAX);
        let moment = Nanos(now.0.saturating_sub(max_late_ns));
        // The requests after the next one are held back as far as it is; otherwise the last ones would not be too late.
        let held_ns = self.dispatch.pacer.next_at().since(self.dispatch.pacer.due_at());
        let held_from = Nanos(moment.0.saturating_sub(held_ns));
        self.pass(moment, |tally, due, requests| {
            tally.dropped(due, requests);
            if due >= held_from {
                tally.held_back(requests);
            }
        });
        true
    }

    /// Skips the requests due before a moment, which are not sent: first those due before measuring began.
    fn pass(&mut self, moment: Nanos, mut say: impl FnMut(&mut Tally, Nanos, u64)) {
        let tally = &mut self.books.tally;
        for until in [moment.min(tally.due_from()), moment] {
            let most = tally.left_of(self.dispatch.pacer.due_at());
            self.dispatch.pacer.pass(until, most, |due, requests| say(tally, due, requests));
        }
    }

    /// Whether the next request would start too late.
    fn is_too_late(&self, now: Nanos) -> bool {
        let max_late_ns = self.config.rules.open_loop.and_then(|rules| rules.max_late_ns);
        let is_too_late = |max_late_ns| now.since(self.dispatch.pacer.due_at()) > max_late_ns;
        max_late_ns.is_some_and(is_too_late) && self.books.tally.left_of(self.dispatch.pacer.due_at()) > 0
    }

    /// Counts, at the end of the run, the requests that were due and have not been sent.
    pub(super) fn count_unsent(&mut self, now: Nanos) {
        let end = now.min(self.books.end_at);
        self.count_all_busy(end);
        if self.config.rules.open_loop.is_some() {
            self.ask(end);
        }
        // The requests after the next one are as far behind the schedule as it is.
        let held_until = end.min(self.dispatch.pacer.next_at());
        self.pass(end, |tally, due, requests| {
            tally.unsent(due, now, requests);
            if due < held_until {
                tally.held_back(requests);
            }
        });
        // Those that are left are beyond `-n`.
        let beyond = self.dispatch.pacer.count_about_before(end);
        if beyond > 0 {
            self.books.tally.beyond(beyond);
        }
    }

    /// Whether a connection can begin a batch.
    fn has_room(&mut self, conn: ConnId) -> bool {
        let depth = self.config.depth;
        self.books.tally.may_start()
            && !self.script.has_ended
            && self.dispatch.active.is_none_or(|active| active.has(conn))
            && self.slots[conn.index()]
                .live()
                .is_some_and(|live| !live.draining && live.open.len() < depth && live.protocol.capacity() > 0)
    }

    /// Moves to the connections that may have a request in flight by now. One that no longer may has its response first.
    pub(super) fn follow_slots(&mut self, now: Nanos) {
        let (Some(slots), Some(before)) = (&self.config.active, self.dispatch.active) else { return };
        let planned = self.books.tally.due_from();
        let (level, change_ns) = slots.at(now.since(planned));
        let active = before.next(level);
        self.dispatch.active = Some(active);
        if change_ns < u64::MAX {
            self.timers.set(planned + change_ns, Timer::Slot);
        }
        for conn in (0..self.config.max_inflight).map(ConnId).filter(|&conn| active.has(conn) && !before.has(conn)) {
            if self.slots[conn.index()].live().is_some() {
                self.pump(conn, now);
            }
        }
    }

    /// Whether the script lets a connection begin a batch now. If it wants a pause first, sets a timer for its end.
    fn pause_is_over(&mut self, conn: ConnId, at: Nanos) -> bool {
        // The rest of a batch that another connection had no room for has had its pause.
        if !self.script.wants.delay || self.dispatch.is_begun() {
            return true;
        }
        let slot = &mut self.slots[conn.index()];
        if slot.pause == Pause::Unasked {
            slot.pause = match self.script.think_ns() {
                0 => Pause::Over,
                pause_ns => {
                    self.books.tally.paused(pause_ns);
                    let until = at + pause_ns;
                    self.timers.set(until, Timer::Begin(conn));
                    Pause::Until(until)
                }
            };
        }
        slot.pause == Pause::Over
    }

    /// Starts the next batch, or the rest of one, as far as the connection has room; `waited`: if it was due before, it
    /// waited for a connection. Returns whether anything was started.
    fn start_batch(&mut self, conn: ConnId, now: Nanos, waited: bool) -> bool {
        if !self.has_batch() {
            return false;
        }
        // What is handed over at once is sent now. The time spent in a script is not the server's.
        let has_passed = !B::GATHERS && self.script.wants.any();
        let sent_at = if has_passed { self.backend.now() } else { now };
        let is_calm = self.is_calm();
        // Each connection of wrk2 counts what it may send, at twice the rate, from the first request that left late since
        // it was on pace. If the target made it late, that is the request which met the stall: after S seconds at a rate
        // R, 2·S·R requests may leave at once, and the backlog is only S·R. A limit is left where we were stalled.
        let is_excused = waited && self.config.rules.open_loop.is_some_and(|rules| rules.as_wrk2);
        let Dispatch { batch, started, pacer, .. } = &mut self.dispatch;
        let rest = &batch[*started..];
        let slot = &mut self.slots[conn.index()];
        slot.pause = Pause::Unasked;
        let Some(live) = slot.live() else { return false };
        if live.left < rest.len() as u64 {
            // The batch waits for a connection that may have that many requests.
            (live.draining, live.leaves_at_once) = (true, true);
            let length = rest.len() as u64;
            self.refuse_if_too_long(length);
            return false;
        }
        let further = usize::try_from(self.books.tally.left_of(pacer.due_at())).unwrap_or(usize::MAX);
        let allowed = rest.len().min(further.saturating_add(self.books.tally.returned_left()));
        // Before anything is due, only returned requests may leave.
        let ready = if pacer.next_at() <= now { usize::MAX } else { self.books.tally.returned_left() };
        let count = allowed.min(live.protocol.capacity()).min(ready);
        // Returned requests are sent first, and keep the time at which they were due.
        let again = self.books.tally.take_returned(count);
        let due = if again.len() < count { pacer.take((count - again.len()) as u64, now, is_excused) } else { now };
        if B::GATHERS && live.open.back().is_none_or(|request| !request.is_gathered) {
            self.turn.gathered.push(conn);
        }
        self.turn.awaited_since = now;
        live.left -= count as u64;
        let next = if count < rest.len() { rest.len() - count } else { batch.len() };
        live.draining = live.left < next as u64;
        for (number, request) in (1..).zip(&rest[..count]) {
            match live.protocol.start(request, number == count && live.draining) {
                Ok(stream) => {
                    let returned = again.get(number - 1);
                    let request = OpenRequest {
                        stream,
                        due: returned.copied().unwrap_or(due),
                        sent_at,
                        first_at: None,
                        is_again: returned.is_some(),
                        is_gathered: B::GATHERS,
                        is_calm,
                        late: false,
                        status: None,
                        is_last: number == allowed,
                        lives: false,
                        kept: None,
                    };
                    self.books.tally.started(&request);
                    live.begin(request);
                }
                Err(error) => {
                    debug_assert_eq!(error, StartError::OnlyHttp1, "there is capacity");
                    self.script.fail(ScriptFailure::Raised(error.to_string()));
                    return false;
                }
            }
        }
        *started += count;
        true
    }

    /// Whether, with a schedule, less than half of the connections have a batch in flight.
    fn is_calm(&self) -> bool {
        if self.config.rules.open_loop.is_none() {
            return false;
        }
        let batches = self.books.tally.open() / self.dispatch.batch.len().max(1) as u64;
        2 * batches < u64::from(self.connecting.wanted)
    }

    /// Makes sure that there are requests to start, perhaps the rest of a batch; returns whether there are any.
    fn has_batch(&mut self) -> bool {
        let dispatch = &mut self.dispatch;
        if dispatch.is_begun() {
            return true;
        }
        dispatch.started = 0;
        let repeats = !self.script.wants.request && !dispatch.batch.is_empty();
        if !repeats {
            match self.script.next(&mut dispatch.batch) {
                Some(true) => {}
                Some(false) => self.books.tally.start_no_more(),
                None => dispatch.batch.clear(),
            }
        }
        self.dispatch.is_begun()
    }

    /// Ends the run if a batch of this length fits on no connection.
    fn refuse_if_too_long(&mut self, length: u64) {
        if let Some(limit) = self.config.requests_per_connection.filter(|limit| limit.most < length) {
            self.script.fail(ScriptFailure::Raised(too_long("request()", length, limit)));
        }
    }
}

/// The message for a script that sends more requests at once than a connection may have.
pub fn too_long(function: &str, length: u64, PerConnection { most, option }: PerConnection) -> String {
    let option = option.name();
    let remedy = if most == 1 { "leave that out" } else { "raise that" };
    format!(
        "{function} of the script returned a batch of {length} requests for one connection, but {option} allows at \
         most {most}: {remedy}, or return fewer"
    )
}
