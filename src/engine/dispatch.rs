//! Which requests start, when, and on which connection: the one place that starts any.
//!
//! A connection that has room for a request is put into the list of those that are ready. Whenever one is and the pacer says
//! that a request is due, the next batch of the source starts there. In the closed loop a request is always due: a connection
//! that becomes ready has its next batch at once, and the list stays empty.

use std::collections::VecDeque;

use onrush_proto::{Client, Nanos, Request, StartError};

use super::crowding::Crowding;
use super::open_request::OpenRequest;
use super::pacer::Pacer;
use super::script_failure::ScriptFailure;
use super::slot::Pause;
use super::tally::Tally;
use super::timers::Timer;
use super::{Engine, HANDLED_PER_TURN};
use crate::backend::{Backend, ConnId};
use crate::plan::PerConnection;

/// What is to be sent next, when, and who is ready for it.
pub(super) struct Dispatch {
    /// The requests that the source gave last.
    batch: Vec<Request>,
    /// How many of them have been started; the others wait for a connection that has room.
    started: usize,
    /// Slots whose connections have room, in turn, unless they were lost since.
    ready: VecDeque<ConnId>,
    pub pacer: Pacer,
    pub crowding: Crowding,
}

impl Dispatch {
    /// Nothing is ready; requests are due when `pacer` says so.
    pub fn new(pacer: Pacer) -> Self {
        Self { batch: Vec::new(), started: 0, ready: VecDeque::new(), pacer, crowding: Crowding::default() }
    }

    /// The run, and with it the schedule, begins at this moment.
    pub fn begin(&mut self, at: Nanos) {
        self.pacer.begin(at);
    }

    /// The slots in the list, for tests that look whether nobody is forgotten.
    #[cfg(test)]
    pub fn ready(&self) -> impl Iterator<Item = ConnId> {
        self.ready.iter().copied()
    }

    /// Whether part of a batch waits for a connection that has room for it.
    fn is_begun(&self) -> bool {
        self.started < self.batch.len()
    }
}

impl<B: Backend> Engine<B> {
    /// Starts what is due on the connections that are ready, and hands it over.
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

    /// A connection may be ready for a request: it is, if it has room and need not pause first. Starts what is due, here
    /// unless others have been waiting for longer.
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

    /// Starts what is due on a connection that has room; `is_first`: up to now no other has been ready. If it has room left,
    /// it stays ready.
    fn start_due(&mut self, conn: ConnId, now: Nanos, is_first: bool) {
        let is_closed = matches!(self.dispatch.pacer, Pacer::Closed);
        if is_first {
            self.count_all_busy(now);
        }
        if !is_closed && self.slots[conn.index()].live().is_some_and(|live| !live.answered) {
            self.ask(now);
        }
        // Whether a request is too late is judged by when it leaves.
        let now = if is_closed { now } else { self.backend.now() };
        let is_warm = self.books.tally.is_warming_up() && now > self.books.start;
        if (is_warm || now > self.books.end_at) && !is_closed {
            // The worker has stood still over the end, or over that of the warm-up, which is for the loop to find out.
            return self.queue(conn);
        }
        // To drop very many takes time, which makes nobody else too late.
        let sent_at = if self.drop_late(now) { self.backend.now() } else { now };
        while self.next_start_at() <= now && !self.is_too_late(now) && self.books.tally.may_start() {
            if !self.start_batch(conn, sent_at) || !self.has_room(conn) {
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

    /// A request of a schedule that found no connection has asked for an answer since it might have started. One that a script
    /// has wait does not.
    fn ask(&mut self, now: Nanos) {
        let since = self.dispatch.pacer.next_at();
        if since < now && self.books.tally.left_of(self.dispatch.pacer.due_at()) > 0 && !self.script.wants.delay {
            self.books.tally.asked(since);
        }
    }

    /// How many connections, `most` at most, it takes to send the requests that are due and wait.
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

    /// Puts a connection into the list of those that are ready, once.
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
        let max_late_ns = self.settings.rules.open_loop.and_then(|rules| rules.max_late_ns).unwrap_or(u64::MAX);
        let moment = Nanos(now.0.saturating_sub(max_late_ns));
        // As far as the next request is held back, those after it are: without that the last ones would not be too late.
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

    /// Goes past the requests that are due before a moment and are not sent, first those that were due before anything counted.
    fn pass(&mut self, moment: Nanos, mut say: impl FnMut(&mut Tally, Nanos, u64)) {
        let tally = &mut self.books.tally;
        for until in [moment.min(tally.due_from()), moment] {
            let most = tally.left_of(self.dispatch.pacer.due_at());
            self.dispatch.pacer.pass(until, most, |due, requests| say(tally, due, requests));
        }
    }

    /// Whether the next request would start too late.
    fn is_too_late(&self, now: Nanos) -> bool {
        let max_late_ns = self.settings.rules.open_loop.and_then(|rules| rules.max_late_ns);
        let is_too_late = |max_late_ns| now.since(self.dispatch.pacer.due_at()) > max_late_ns;
        max_late_ns.is_some_and(is_too_late) && self.books.tally.left_of(self.dispatch.pacer.due_at()) > 0
    }

    /// The run is over: counts the requests that were due and have not been sent.
    pub(super) fn count_unsent(&mut self, now: Nanos) {
        let end = now.min(self.books.end_at);
        self.count_all_busy(end);
        if self.settings.rules.open_loop.is_some() {
            self.ask(end);
        }
        // As far as the next request is behind its schedule, those after it are.
        let held_until = end.min(self.dispatch.pacer.next_at());
        self.pass(end, |tally, due, requests| {
            tally.unsent(due, now, requests);
            if due < held_until {
                tally.held_back(requests);
            }
        });
    }

    /// Whether a connection can begin a batch.
    fn has_room(&mut self, conn: ConnId) -> bool {
        let depth = self.settings.depth;
        self.books.tally.may_start()
            && !self.script.has_ended
            && self.slots[conn.index()]
                .live()
                .is_some_and(|live| !live.draining && live.open.len() < depth && live.protocol.capacity() > 0)
    }

    /// Whether the script lets a connection begin a batch now. If it wants a pause first, a timer is set for its end.
    fn pause_is_over(&mut self, conn: ConnId, at: Nanos) -> bool {
        // Before a batch that another connection had no room for there has been one.
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

    /// Starts the next batch, or what is left of one, as far as the connection has room. Returns whether anything was started.
    fn start_batch(&mut self, conn: ConnId, now: Nanos) -> bool {
        if !self.has_batch() {
            return false;
        }
        // What is handed over at once is sent now. With a script time has passed, which is not the server's.
        let has_passed = !B::GATHERS && self.script.wants.any();
        let sent_at = if has_passed { self.backend.now() } else { now };
        let is_calm = self.is_calm();
        let Dispatch { batch, started, pacer, .. } = &mut self.dispatch;
        let rest = &batch[*started..];
        let slot = &mut self.slots[conn.index()];
        slot.pause = Pause::Unasked;
        let Some(live) = slot.live() else { return false };
        if live.left < rest.len() as u64 {
            // It waits for a connection that may have as many.
            (live.draining, live.leaves_at_once) = (true, true);
            let length = rest.len() as u64;
            self.refuse_if_too_long(length);
            return false;
        }
        let further = usize::try_from(self.books.tally.left_of(pacer.due_at())).unwrap_or(usize::MAX);
        let allowed = rest.len().min(further.saturating_add(self.books.tally.returned_left()));
        // Before anything is due only what has come back may leave.
        let ready = if pacer.next_at() <= now { usize::MAX } else { self.books.tally.returned_left() };
        let count = allowed.min(live.protocol.capacity()).min(ready);
        // What comes back is sent again before anything else, and was due when it was.
        let again = self.books.tally.take_returned(count);
        let due = if again.len() < count { pacer.take((count - again.len()) as u64, now) } else { now };
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

    /// Whether less than half of the connections have a batch in flight, where requests have a schedule.
    fn is_calm(&self) -> bool {
        if self.settings.rules.open_loop.is_none() {
            return false;
        }
        let batches = self.books.tally.open() / self.dispatch.batch.len().max(1) as u64;
        2 * batches < u64::from(self.connecting.wanted)
    }

    /// Sees to it that there are requests to start, be it what was left of a batch; returns whether there are.
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
        if let Some(limit) = self.settings.requests_per_connection.filter(|limit| limit.most < length) {
            self.script.fail(ScriptFailure::Raised(too_long("request()", length, limit)));
        }
    }
}

/// What to say of a script that sends more requests at once than a connection may have.
pub fn too_long(function: &str, length: u64, PerConnection { most, option }: PerConnection) -> String {
    let option = option.name();
    let (limit, way_out) = match most {
        1 => ("1 request".to_owned(), "leave that out"),
        _ => (format!("{most} requests"), "raise that"),
    };
    format!(
        "{function} of the script returned a batch of {length} requests, which go out together on one connection, but \
         with {option} a connection has at most {limit}: {way_out}, or return fewer"
    )
}
