//! Starts requests: which, when, and on which connection. No other place starts any.
//!
//! A connection with room for a request joins the ready list. When a connection is ready and the pacer has a request
//! due, the source's next batch starts there. In the closed loop a request is always due: a connection that becomes
//! ready gets its next batch at once, and the list stays empty.

use std::collections::VecDeque;
use std::rc::Rc;

use onrush_plan::PerConnection;
use onrush_proto::{Client, Nanos, Request, StartError, StreamId};
use onrush_stats::silences::GAP_MIN_NS;

use super::books::Books;
use super::callbacks::Caller;
use super::config::Config;
use super::crowding::Crowding;
use super::open_request::{OpenRequest, Watched};
use super::open_requests::Rest;
use super::pacer::Pacer;
use super::script_failure::ScriptFailure;
use super::slot::Slot;
use super::tally::Tally;
use super::timers::{Timer, Timers};
use crate::backend::{Backend, ConnId};

/// The next batch, its time, and the connections ready for it.
pub(super) struct Dispatch {
    config: Rc<Config>,
    /// The source and the callbacks.
    pub script: Caller,
    /// Current limit on requests in flight per connection.
    pub depth: usize,
    /// The source's current batch.
    batch: Rc<Vec<Request>>,
    /// Number of the name that the batch's requests share.
    name: u16,
    /// Number of started requests of the batch. The others wait for a connection with room.
    started: usize,
    /// Slots whose connections have room, in order. Some may have lost their connection since.
    ready: VecDeque<ConnId>,
    /// The limit on requests in flight, if any ...
    pub limit: Option<Limit>,
    /// ... and the supervisor's values it was made from: see
    /// [`WorkerLink::in_flight_limits`](crate::WorkerLink::in_flight_limits).
    pub limits: [u32; 2],
    pub pacer: Pacer,
    pub crowding: Crowding,
    /// True if any pause before a batch is over.
    pub pause_ended: bool,
}

/// A limit on requests in flight below the capacity of the connections, spread evenly over them: shares may differ by
/// one.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    in_flight: u32,
    /// Total number of lanes, at least one.
    of: u64,
    /// Number of lanes per connection.
    lanes: u32,
}

impl Limit {
    /// Nothing may be in flight.
    pub const NONE: Self = Self { in_flight: 0, of: 1, lanes: 1 };
    /// The value before the supervisor's first limit.
    pub const UNSAID: [u32; 2] = [0; 2];

    /// A limit for these connections, from the requests in flight and the lanes per connection.
    pub fn new([in_flight, lanes]: [u32; 2], connections: u32) -> Self {
        Self { in_flight, of: u64::from(connections.max(1)) * u64::from(lanes), lanes }
    }

    /// Limit on requests in flight on the connection with this rank.
    pub fn share_of_rank(self, rank: u32) -> u32 {
        let in_flight = u64::from(self.in_flight).min(self.of);
        let before = |rank: u64| rank * u64::from(self.lanes) * in_flight / self.of;
        (before(u64::from(rank) + 1) - before(u64::from(rank))) as u32
    }
}

/// The connection on which requests may start.
pub(super) struct Place<'a, B> {
    pub conn: ConnId,
    pub slot: &'a mut Slot,
    /// The backend, for its clock.
    pub clock: &'a mut B,
}

/// The moment when requests start, and the state of the other connections.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub now: Nanos,
    /// True if no connection was ready: the last due request had to wait for one.
    pub waited: bool,
    /// Number of connections that should be open.
    pub wanted: u32,
    /// Time since which every connect has failed, if the last one did.
    pub away_since: Option<Nanos>,
}

impl Dispatch {
    /// A dispatch without ready connections; `pacer` decides when requests are due.
    pub fn new(config: Rc<Config>, script: Caller, pacer: Pacer) -> Self {
        Self {
            depth: config.depth.max(config.streams),
            config,
            script,
            batch: Rc::default(),
            name: 0,
            started: 0,
            ready: VecDeque::new(),
            limit: None,
            limits: Limit::UNSAID,
            pacer,
            crowding: Crowding::default(),
            pause_ended: false,
        }
    }

    /// Starts the run and its schedule at this moment.
    pub fn begin_schedule(&mut self, at: Nanos) {
        self.pacer.begin_schedule(at);
    }

    /// The slots in the ready list, for tests that check that none is forgotten.
    #[cfg(any(test, feature = "testing"))]
    pub fn ready_slots(&self) -> impl Iterator<Item = ConnId> {
        self.ready.iter().copied()
    }

    /// Takes the connection that has been ready longest, if a request may start now.
    pub fn next_ready(&mut self, tally: &Tally, now: Nanos) -> Option<ConnId> {
        if self.next_start_at(tally) > now || self.is_full(tally) {
            return None;
        }
        self.ready.pop_front()
    }

    /// True if the rest of a batch waits for a connection with room.
    fn is_begun(&self) -> bool {
        self.started < self.batch.len()
    }

    /// Starts due requests on a connection with room. If room is left, the connection stays ready. Returns the start of
    /// the last request, if any.
    pub fn start_due<B: Backend>(
        &mut self,
        Place { conn, slot, clock }: Place<'_, B>,
        at: At,
        books: &mut Books,
    ) -> Option<Nanos> {
        let is_closed = matches!(self.pacer, Pacer::Closed);
        if !is_closed && slot.open_connection().is_some_and(|live| !live.answered) {
            self.note_waiting_since(at.away_since, books, at.now);
        }
        // A request counts as too late if it would leave too late. A prepared request leaves at its due time, in the
        // future.
        let now = if is_closed { at.now } else { clock.now().max(at.now) };
        let is_warm = books.tally.is_warming_up() && now > books.start;
        // If the run continues uncounted, requests due exactly at its end do not count and start only after it.
        let is_over = now > books.end_at || now == books.end_at && self.config.run_on_ns > 0;
        if (is_warm || is_over) && !is_closed {
            // The worker was stalled past the end of the run or of the warm-up; the loop handles that.
            self.queue_ready(conn, slot);
            return None;
        }
        // Dropping very many requests takes time, which must not make other requests too late.
        let sent_at = if !is_closed && self.drop_late(books, now) { clock.now().max(now) } else { now };
        let mut started = None;
        while self.next_start_at(&books.tally) <= now
            && !self.is_too_late(books, now)
            && books.tally.may_start()
            && !self.is_full(&books.tally)
        {
            // A send that leaves at once is stamped now. Time spent in a script is not server time.
            let sent_at = if books.tally.has_returned() {
                sent_at
            } else if !self.ensure_batch(books) {
                return started;
            } else if !B::GATHERS && self.script.wants.has_callbacks() {
                clock.now()
            } else {
                sent_at
            };
            if !self.start_batch(slot, sent_at, &at, B::GATHERS, books) {
                return started;
            }
            started = Some(sent_at);
            if !self.has_room(slot, &books.tally) || !self.may_begin(slot) {
                return started;
            }
        }
        if self.pacer.due_at() > now {
            self.crowding.end_catch_up();
        }
        if books.tally.may_start() {
            self.queue_ready(conn, slot);
        }
        started
    }

    /// Notes the time from which a scheduled request has waited for a connection; a silence counts from then. A request
    /// delayed by a script waits only for the script, unless no connect has succeeded for a long time.
    pub fn note_waiting_since(&self, away_since: Option<Nanos>, books: &mut Books, now: Nanos) {
        let mut since = self.pacer.next_at();
        if self.script.wants.delay {
            let away_since = away_since.filter(|away_since| now.since(*away_since) >= GAP_MIN_NS);
            since = away_since.map_or(Nanos::MAX, |away_since| away_since.max(since));
        }
        if since < now && books.tally.remaining_requests(self.pacer.due_at()) > 0 {
            books.tally.note_awaiting_response(since);
        }
    }

    /// Number of connections needed to send the due requests, from one to `most`.
    pub fn connections_due(&self, now: Nanos, most: u32) -> u32 {
        let batch = self.batch.len().max(1) as u64;
        let of_connection = batch * u64::from(self.batches_per_connection());
        let waiting = self.pacer.count_before(now + 1, u64::from(most) * of_connection);
        (waiting.div_ceil(of_connection) as u32).clamp(1, most)
    }

    /// Earliest start of the next request; [`Nanos::MAX`]: never.
    pub fn next_start_at(&self, tally: &Tally) -> Nanos {
        if tally.has_returned() { Nanos::default() } else { self.pacer.next_at() }
    }

    /// True if a connection waits for a request.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// True if a request may start as soon as it is due.
    pub fn can_start(&self, tally: &Tally) -> bool {
        self.has_ready() && !self.is_full(tally)
    }

    /// Adds a connection to the ready list, unless it is in it.
    pub fn queue_ready(&mut self, conn: ConnId, slot: &mut Slot) {
        if !slot.is_queued {
            slot.is_queued = true;
            self.ready.push_back(conn);
        }
    }

    /// Drops requests that would start too late. Returns true if there were any.
    fn drop_late(&mut self, books: &mut Books, now: Nanos) -> bool {
        if !self.is_too_late(books, now) {
            return false;
        }
        let max_late_ns = self.config.rules.open_loop.and_then(|rules| rules.max_late_ns).unwrap_or(u64::MAX);
        let moment = Nanos(now.0.saturating_sub(max_late_ns));
        // The requests after the next one are held back for the same time. Otherwise the last of them would not be too
        // late.
        let held_ns = self.pacer.next_at().since(self.pacer.due_at());
        let held_from = Nanos(moment.0.saturating_sub(held_ns));
        pass(&mut self.pacer, moment, books, |tally, due, requests| {
            tally.count_dropped(due, requests, max_late_ns);
            if due >= held_from {
                tally.count_held_back(requests);
            }
        });
        true
    }

    /// True if the next request would start too late (`max_late_ns`).
    fn is_too_late(&self, books: &Books, now: Nanos) -> bool {
        let max_late_ns = self.config.rules.open_loop.and_then(|rules| rules.max_late_ns);
        let is_too_late = |max_late_ns| now.since(self.pacer.due_at()) > max_late_ns;
        max_late_ns.is_some_and(is_too_late) && books.tally.remaining_requests(self.pacer.due_at()) > 0
    }

    /// At the end of the run, counts the requests that were due but not sent. They may still be sent afterwards.
    pub fn count_unsent(&self, away_since: Option<Nanos>, books: &mut Books, now: Nanos) {
        let end = now.min(books.end_at);
        if self.config.rules.open_loop.is_some() {
            self.note_waiting_since(away_since, books, end);
        }
        // The requests after the next one are as far behind the schedule as that one.
        let held_until = end.min(self.pacer.next_at());
        let mut pacer = self.pacer.clone();
        pass(&mut pacer, end, books, |tally, due, requests| {
            tally.count_unsent(due, now, requests);
            if due < held_until {
                tally.count_held_back(requests);
            }
        });
        // The remaining requests are beyond `-n`.
        let beyond = pacer.count_about_before(end);
        if beyond > 0 {
            books.tally.count_due_beyond_total(beyond);
        }
    }

    /// Records the ages of requests that were due before a moment and never sent.
    pub fn record_unsent_ages(&mut self, moment: Nanos, books: &mut Books, now: Nanos) {
        pass(&mut self.pacer, moment, books, |tally, due, requests| tally.count_never_sent(due, now, requests));
    }

    /// True if the limit on requests in flight allows no batch to begin or continue.
    pub fn is_full(&self, tally: &Tally) -> bool {
        self.config.in_flight_max.is_some_and(|most| {
            let next = if self.is_begun() { self.batch.len() - self.started } else { self.batch.len().max(1) };
            tally.in_flight() > 0 && tally.in_flight() + next as u64 > most
        })
    }

    /// True if a connection can begin or continue a batch, apart from pauses.
    pub fn has_room(&self, slot: &mut Slot, tally: &Tally) -> bool {
        tally.may_start()
            && !self.script.has_ended
            && self.allows_another_request(slot)
            && slot.connection_inherited_and_resting().is_some_and(|(live, inherited, resting)| {
                !live.draining
                    && live.unsent == 0
                    && live.open.len() + inherited + resting < live.depth
                    && live.protocol.capacity() > inherited + resting
            })
    }

    /// True if the limit allows another request in flight on a connection.
    fn allows_another_request(&self, slot: &mut Slot) -> bool {
        let Some(limit) = self.limit else { return true };
        let most = limit.share_of_rank(slot.rank) as usize;
        slot.connection_inherited_and_resting()
            .is_some_and(|(live, inherited, resting)| live.open.len() + inherited + resting < most)
    }

    /// Number of batches that may be in flight on one connection.
    fn batches_per_connection(&self) -> u32 {
        (self.depth / self.batch.len().max(1)).clamp(1, u32::MAX as usize) as u32
    }

    /// True if the connection need not pause before a batch, or has paused. Otherwise asks the script for the pauses
    /// and sets timers for their ends.
    pub fn pause_is_over(
        &mut self,
        conn: ConnId,
        slot: &mut Slot,
        books: &mut Books,
        timers: &mut Timers,
        at: Nanos,
    ) -> bool {
        self.may_begin(slot) || self.start_pauses(conn, slot, books, timers, at)
    }

    /// Pauses a connection for each batch it might begin. Returns true if a batch may begin now.
    #[cold]
    fn start_pauses(
        &mut self,
        conn: ConnId,
        slot: &mut Slot,
        books: &mut Books,
        timers: &mut Timers,
        at: Nanos,
    ) -> bool {
        let in_flight =
            slot.open_connection().map_or(0, |live| live.open.len().div_ceil(self.batch.len().max(1))) as u32;
        while slot.pauses.lasting + slot.pauses.over + in_flight < self.batches_per_connection() {
            match self.script.pause_before_batch_ns() {
                0 => {
                    slot.pauses.over += 1;
                    self.pause_ended = true;
                }
                pause_ns => {
                    books.tally.record_pause(pause_ns);
                    timers.set_timer(at + pause_ns, Timer::Begin(conn));
                    slot.pauses.lasting += 1;
                }
            }
        }
        slot.pauses.over > 0
    }

    /// True if the pause before a first batch has ended on any connection, or the script sets none. Until then no
    /// connection can send, however many there are.
    pub fn has_first_pause_ended(&self) -> bool {
        !self.script.wants.delay || self.pause_ended
    }

    /// True if a connection has had the pause before its next batch, or needs none. The rest of a batch for which
    /// another connection had no room needs none.
    fn may_begin(&self, slot: &Slot) -> bool {
        !self.script.wants.delay || slot.pauses.over > 0 || self.is_begun()
    }

    /// Starts the batch, or its rest, while the connection has room; `gathers`: it leaves with the next wait. Returns
    /// true if anything was started.
    fn start_batch(&mut self, slot: &mut Slot, sent_at: Nanos, at: &At, gathers: bool, books: &mut Books) -> bool {
        if books.tally.has_returned() {
            return self.start_returned(slot, sent_at, gathers, books);
        }
        let calm = if self.is_calm(at.wanted, &books.tally) { books.tally.in_flight() as u32 + 1 } else { 0 };
        // Each wrk2 connection counts the requests it may send, at twice the rate, from the first late request since it
        // was on pace. If the target made it late, that request met the stall: after S seconds at rate R, 2·S·R
        // requests may leave at once, and the backlog is only S·R. After a stall of our own, the limit stays.
        let is_excused = at.waited && self.config.rules.open_loop.is_some_and(|rules| rules.as_wrk2);
        let Self { batch, name, started, pacer, .. } = self;
        let rest = &batch[*started..];
        slot.pauses.over = slot.pauses.over.saturating_sub(u32::from(*started == 0));
        let Some(live) = slot.open_connection() else { return false };
        if live.left < rest.len() as u64 {
            // The batch waits for a connection with room for that many requests.
            (live.draining, live.leaves_at_once) = (true, true);
            let length = rest.len() as u64;
            self.refuse_if_too_long(length);
            return false;
        }
        let further = usize::try_from(books.tally.remaining_requests(pacer.due_at())).unwrap_or(usize::MAX);
        let allowed = rest.len().min(further);
        let count = allowed.min(live.protocol.capacity());
        let due = pacer.take_due(count as u64, sent_at, is_excused);
        if count > 1 && pacer.due_at() > sent_at {
            books.tally.note_sent_ahead(sent_at, pacer.due_at());
        }
        let is_new = self.script.wants.request;
        live.left -= count as u64;
        let next = if count < rest.len() { rest.len() - count } else { batch.len() };
        live.draining = live.left < next as u64;
        let like = OpenRequest {
            stream: StreamId(0),
            due,
            sent_at,
            first_at: None,
            returns: 0,
            content: None,
            number: *started as u32,
            name: *name,
            is_gathered: gathers,
            calm,
            late: false,
            status: None,
            is_last: false,
            is_after: books.tally.is_after(due),
            lives: false,
            watched: None,
            kept: None,
        };
        for (number, request) in (1..).zip(&rest[..count]) {
            match live.protocol.start(request, number == count && live.draining) {
                Ok(stream) => {
                    let request = OpenRequest {
                        stream,
                        content: is_new.then(|| request.clone()),
                        number: (*started + number - 1) as u32,
                        is_last: number == allowed,
                        watched: books.tally.watch_next_request(),
                        kept: None,
                        ..like
                    };
                    books.tally.count_started(&request, sent_at);
                    live.add_request(request, sent_at);
                    // The others start once these have left, so that a large batch takes little memory.
                    if number < count && !live.protocol.leaves_together(&rest[number]) && !live.open.any_waits() {
                        (number..count).for_each(|_| books.tally.count_started(&like, sent_at));
                        let (first, end) = ((*started + number) as u32, *started + count);
                        let first = OpenRequest { number: first, ..like };
                        live.open.add_rest_of_batch(Rest {
                            first,
                            batch: Rc::clone(batch),
                            is_new,
                            end,
                            is_last: count == allowed,
                        });
                        break;
                    }
                }
                Err(error) => {
                    debug_assert_eq!(error, StartError::OnlyHttp1, "there is capacity");
                    self.script.end_with_failure(ScriptFailure::Raised(error.to_string()));
                    return false;
                }
            }
        }
        *started += count;
        true
    }

    /// Starts the requests to be sent again while the connection has room. Returns true if any was started.
    fn start_returned(&mut self, slot: &mut Slot, now: Nanos, gathers: bool, books: &mut Books) -> bool {
        let mut any = false;
        while self.has_room(slot, &books.tally)
            && let Some(live) = slot.open_connection().filter(|live| live.left > 0)
            && let Some(returned) = books.tally.take_returned()
        {
            let request = returned.content.as_ref().or_else(|| self.batch.get(returned.number as usize));
            live.left -= 1;
            live.draining = live.left == 0;
            let Some(Ok(stream)) = request.map(|request| live.protocol.start(request, live.draining)) else {
                debug_assert!(false, "it was started before, and there is capacity");
                return false;
            };
            // Of the last attempt, only the request itself and the times at which it was due and sent are kept.
            let request = OpenRequest {
                stream,
                first_at: None,
                is_gathered: gathers,
                calm: 0,
                status: None,
                lives: false,
                watched: returned.watched.map(Watched::for_resending),
                kept: None,
                ..returned
            };
            books.tally.count_started(&request, now);
            live.add_request(request, now);
            any = true;
        }
        any
    }

    /// True if, with a schedule, less than half of the allowed requests are in flight. Requests sent together do not
    /// all find the same number in flight.
    fn is_calm(&self, wanted: u32, tally: &Tally) -> bool {
        let is_single = self.config.rules.open_loop.is_some() && self.batch.len() == 1;
        is_single && 2 * tally.in_flight() < u64::from(wanted) * u64::from(self.batches_per_connection())
    }

    /// Ensures that there are requests to start, possibly the rest of a batch. Returns true if there are.
    fn ensure_batch(&mut self, books: &mut Books) -> bool {
        if self.is_begun() {
            return true;
        }
        self.started = 0;
        let repeats = !self.script.wants.request && !self.batch.is_empty();
        if !repeats {
            self.take_batch(books);
        }
        self.is_begun()
    }

    #[inline(never)]
    fn take_batch(&mut self, books: &mut Books) {
        // The rest of the last batch may still be waiting on a connection.
        if Rc::strong_count(&self.batch) > 1 {
            self.batch = Rc::default();
        }
        match self.script.next_batch(Rc::make_mut(&mut self.batch)) {
            Some(true) => self.name = self.script.batch_name(),
            Some(false) => books.tally.end_requests(),
            None => self.batch = Rc::default(),
        }
    }

    /// Ends the run if a batch of this length fits on no connection.
    fn refuse_if_too_long(&mut self, length: u64) {
        if let Some(limit) = self.config.requests_per_connection.filter(|limit| limit.most < length) {
            self.script.end_with_failure(ScriptFailure::Raised(batch_too_long_message("request()", length, limit)));
        }
    }
}

/// Skips the requests due before a moment without sending them; those due before measuring began come first.
fn pass(pacer: &mut Pacer, moment: Nanos, books: &mut Books, mut say: impl FnMut(&mut Tally, Nanos, u64)) {
    let tally = &mut books.tally;
    for until in [moment.min(tally.due_from()), moment] {
        let most = tally.remaining_requests(pacer.due_at());
        pacer.skip_due_before(until, most, |due, requests| say(tally, due, requests));
    }
}

/// The message for a script whose `function` returned `length` requests at once, more than a connection may have.
pub fn batch_too_long_message(function: &str, length: u64, PerConnection { most, option }: PerConnection) -> String {
    let option = option.name();
    let remedy = if most == 1 { "leave it out" } else { "raise it" };
    format!(
        "{function} of the script returned a batch of {length} requests for one connection, but {option} allows at \
         most {most}; {remedy}, or return fewer"
    )
}
