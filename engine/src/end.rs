//! The end of a worker, and its results.
//!
//! A run may continue after its end, uncounted and on schedule, until the outcome of all requests due by the end is
//! known. The load continues, because an otherwise idle target would answer these requests faster.

use std::net::SocketAddr;

use onrush_proto::Nanos;
use onrush_proto::http2::{Http2Counts, SharedContext};
use onrush_stats::silences::WorkerGaps;
use onrush_stats::{BufferSizes, Cause, ConnectionSpread, Gap, Interval, Phase, ProxyFailure, Transcript};
use serde::{Deserialize, Serialize};

use super::dispatch::Limit;
use super::measured::Measured;
use super::open_requests::OpenRequests;
use super::roster::Roster;
use super::slot::{Slot, State};
use super::tally::Tally;
use super::timers::{LOOK_NS, Timer};
use super::{Engine, HANDLED_PER_TURN, ScriptFailure, Spare, UNANSWERED_NS};
use crate::backend::{Backend, ConnId};

/// A worker's results. The interval, the transcript and the spare connections are not serialized.
#[derive(Serialize, Deserialize)]
pub struct WorkerEnd {
    /// Measurements since the last interval was handed over.
    #[serde(skip)]
    pub interval: Box<Interval>,
    /// Limit on the worker's connections, whether or not it opened that many.
    pub connections: u32,
    /// Run time without the warm-up, in nanoseconds.
    pub elapsed_ns: u64,
    /// Uncounted time after the end of the run, in nanoseconds.
    pub ran_on_ns: u64,
    /// True if the worker ended because the target stayed unreachable.
    pub stayed_away: bool,
    /// The last address that refused, and the cause, if no address ever accepted or the target answered only in another
    /// protocol.
    pub refusal: Option<(SocketAddr, Cause)>,
    /// Addresses that refused while another address worked, and the error numbers.
    pub dropped: Vec<(SocketAddr, i32)>,
    /// Addresses that accepted a connection.
    pub working: Vec<SocketAddr>,
    /// Transcript of the wire, if it was recorded.
    #[serde(skip)]
    pub transcript: Option<Box<Transcript>>,
    /// Periods without completions.
    pub silences: Vec<Gap>,
    /// The parts of the silences in which a response was awaited: all of them, unless a script or a schedule decides
    /// when requests are sent.
    pub awaited: Vec<Gap>,
    /// Periods around silences, for which the due requests had been sent ahead of time in a batch.
    pub ahead: Vec<Gap>,
    /// Periods in which the worker was stalled, because it got no processor or the process was stopped.
    pub stalls: Vec<Gap>,
    /// Periods in which the script held up the worker.
    pub in_script: Vec<Gap>,
    /// Spread of the requests over the connections open at the end, if their number per connection is unlimited.
    pub spread: ConnectionSpread,
    /// Buffer sizes that the kernel gave the worker's connections.
    pub buffers: BufferSizes,
    /// True if the script has a `delay()`.
    pub pauses: bool,
    /// True if `delay()` ever returned something that is not a time.
    pub pauses_unread: bool,
    /// Observations on the worker's HTTP/2 connections, if there can be any.
    pub http2: Option<Http2Counts>,
    /// Idle connections that another session can use; empty if the worker stays after the end.
    #[serde(skip)]
    pub spares: Vec<Spare>,
    /// The script's failure, if it failed.
    pub failure: Option<ScriptFailure>,
    /// Time at which the script ended the worker early without failing, in nanoseconds since measuring began; zero in
    /// the warm-up.
    pub stopped_ns: Option<u64>,
}

impl WorkerEnd {
    /// A copy without the interval, the transcript, the spare connections and the script's failure, which is reported
    /// once for all threads.
    pub fn without_bulk_data(&self) -> Self {
        Self {
            interval: Box::default(),
            transcript: None,
            spares: Vec::new(),
            dropped: self.dropped.clone(),
            working: self.working.clone(),
            silences: self.silences.clone(),
            awaited: self.awaited.clone(),
            ahead: self.ahead.clone(),
            stalls: self.stalls.clone(),
            in_script: self.in_script.clone(),
            http2: self.http2.clone(),
            failure: None,
            ..*self
        }
    }
}

/// The end of an engine that stayed after the end of the run.
pub struct Stayed {
    /// Measurements since the last interval was handed over.
    pub interval: Box<Interval>,
    /// Total time for which the worker was stalled, in nanoseconds.
    pub stalled_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub at: Nanos,
    /// True if the target had become unreachable.
    pub stayed_away: bool,
}

impl<B: Backend> Engine<B> {
    /// Handles the last received bytes after all requests have ended: an HTTP/2 server may want a reply.
    fn handle_last_received(&mut self) {
        if self.http2.is_some() && self.books.tally.is_done() {
            self.roster.backend.wait(Nanos::default());
            for _ in 0..HANDLED_PER_TURN {
                let Some(completion) = self.roster.backend.next_completion() else { break };
                self.handle(completion);
            }
        }
    }

    /// Adds everything up at the end. Also returns the engine if it stays.
    pub(super) fn into_worker_end(mut self, End { at: now, stayed_away }: End) -> (WorkerEnd, Option<Self>) {
        let has_failed = self.control.is_stopped() || self.dispatch.script.has_ended || stayed_away;
        let stays = self.roster.config.stays && !has_failed && !self.books.tally.is_warming_up();
        let is_early = self.books.measured.is_none() && !self.books.tally.has_started_all();
        let is_stopped = self.dispatch.script.has_ended && self.dispatch.script.failure.is_none() && is_early;
        self.count_all_busy(now.min(self.books.end_at));
        self.handle_last_received();
        let mut spares = Vec::new();
        if !stays {
            self.roster.handle_late_connects(&mut self.books, now);
            spares = self.roster.take_spares();
            self.roster.say_rest(&mut self.books.tally, now);
            self.roster.backend.stop();
        }
        let measured = match self.books.measured.take() {
            Some(mut measured) => {
                self.add_later_outcomes(&mut measured, now);
                *measured
            }
            None => {
                self.control.report_settled();
                self.measure_until(now)
            }
        };
        let spread = self.roster.spread();
        let Self { books, roster, dispatch, .. } = &mut self;
        let Measured { interval, elapsed_ns, silences, awaited, ahead, stalls, in_script, http2 } = measured;
        let end = WorkerEnd {
            connections: roster.config.max_inflight,
            interval,
            elapsed_ns,
            ran_on_ns: now.since(books.start + elapsed_ns),
            stayed_away,
            refusal: roster.connecting.refusal(),
            dropped: roster.connecting.routes.dropped_addresses(),
            working: roster.connecting.routes.working_addresses(),
            transcript: books.tally.transcript.take(),
            silences,
            awaited,
            ahead,
            stalls,
            in_script,
            spread,
            buffers: roster.backend.buffer_sizes(),
            pauses: dispatch.script.wants.delay,
            pauses_unread: dispatch.script.pauses_unread,
            http2,
            spares,
            failure: dispatch.script.failure.take(),
            stopped_ns: is_stopped.then_some(elapsed_ns),
        };
        if stays {
            self.stay_after_end(now);
        }
        (end, stays.then_some(self))
    }

    /// Settles the run's measurements if the worker stays after the end, before it handles later events. Returns true
    /// if it stays.
    pub(super) fn settle_before_staying(&mut self) -> bool {
        if !self.roster.config.stays || self.control.is_stopped() || self.books.tally.is_warming_up() {
            return false;
        }
        if self.books.measured.is_none() {
            let end = self.books.end_at;
            self.count_all_busy(end);
            let measured = self.measure_until(end);
            self.books.measured = Some(Box::new(measured));
            self.books.tally.continue_uncounted(end);
        }
        true
    }

    /// Goes on after the counted end. Nothing more is sent until a limit is set.
    fn stay_after_end(&mut self, now: Nanos) {
        let Self { books, worker_link, .. } = self;
        books.stays = true;
        books.sample_ns = LOOK_NS;
        books.end_at = Nanos::MAX;
        books.tally.continue_uncounted(now);
        self.dispatch.limit = Some(Limit::NONE);
        worker_link.show_in_flight(books.tally.in_flight());
        self.timers.set_timer(books.next_sample_at(now), Timer::Look);
    }

    /// Hands over the interval since the last time, after the end of the run. Does not do so until a limit is set:
    /// other workers may continue the run until then, and the interval would be added to theirs.
    pub(super) fn hand_over_after_end(&mut self, now: Nanos) {
        if self.dispatch.limits != Limit::UNSAID {
            self.take_counts();
            self.books.hand_over(now, &self.worker_link.mailbox);
        }
        self.worker_link.show_in_flight(self.books.tally.in_flight());
        self.timers.set_timer(self.books.next_sample_at(now), Timer::Look);
    }

    /// Ends an engine that stayed after the end of the run.
    pub(super) fn end_staying(mut self, now: Nanos) -> Stayed {
        self.roster.say_rest(&mut self.books.tally, now);
        self.roster.backend.stop();
        let books = self.books;
        let stalled_ns = books.stalls.iter().map(|gap| gap.length_ns()).sum();
        Stayed { interval: books.tally.interval, stalled_ns }
    }
}

impl<B: Backend> Engine<B> {
    /// Ends the run at its planned end and continues uncounted if the plan says so. Returns true if it continues.
    pub(super) fn continue_uncounted(&mut self) -> bool {
        let run_on_ns = self.roster.config.run_on_ns;
        if run_on_ns == 0 || self.books.measured.is_some() || self.books.tally.is_warming_up() {
            return false;
        }
        let end = self.books.end_at;
        self.count_all_busy(end);
        self.books.tally.end_run_at(end);
        let measured = self.measure_until(end);
        self.books.measured = Some(Box::new(measured));
        // A stall may have extended past the end.
        self.books.end_at = self.roster.backend.now().max(end) + run_on_ns;
        self.note_settled();
        true
    }

    /// True if the ends of all workers' requests are known.
    pub(super) fn has_learned_all(&mut self) -> bool {
        if self.books.measured.is_none() {
            return false;
        }
        self.note_settled();
        self.books.is_settled && self.control.is_settled()
    }

    fn note_settled(&mut self) {
        let is_settled = self.books.tally.run_on.as_ref().is_some_and(|run_on| run_on.unsettled == 0);
        if is_settled && !std::mem::replace(&mut self.books.is_settled, true) {
            self.control.report_settled();
        }
    }

    /// Counts everything up to now, the end of the run.
    pub(super) fn measure_until(&mut self, now: Nanos) -> Measured {
        self.take_counts();
        self.settle_spin();
        self.roster.count_slot_times_at_end(&mut self.books, now);
        self.roster.end_slots(&mut self.books.tally, now);
        self.books.tally.count_returned_as_in_flight(now);
        self.dispatch.count_unsent(self.roster.connecting.away_since(), &mut self.books, now);
        self.books.tally.count_ended();
        if self.books.tally.is_warming_up() {
            // The worker ended before measuring began.
            self.roster
                .slots
                .iter_mut()
                .filter_map(Slot::open_connection)
                .for_each(|live| live.open = OpenRequests::default());
            self.books.tally.forget_open();
            self.count_from(now);
        }
        // A worker with nothing to send has no rate.
        if self.roster.config.requests != Some(0) {
            self.books.sample_rate_at_end(now);
        }
        self.books.tally.hand_over_log();
        self.note_script_time();
        self.books.settle_account();
        let asks_at_once = !self.dispatch.script.wants.delay && self.roster.config.rules.open_loop.is_none();
        let elapsed_ns = now.since(self.books.start);
        let tally = &mut self.books.tally;
        tally.interval.until_ns = elapsed_ns;
        let WorkerGaps { gaps: silences, awaited, ahead } =
            std::mem::take(&mut tally.silences).into_worker_gaps(elapsed_ns);
        Measured {
            interval: tally.take_measured(),
            elapsed_ns,
            silences,
            awaited: if asks_at_once { vec![Gap::ALL] } else { awaited },
            ahead,
            stalls: std::mem::take(&mut self.books.stalls),
            in_script: std::mem::take(&mut self.books.in_script),
            http2: self.http2.as_ref().map(SharedContext::observations),
        }
    }

    /// Adds outcomes learned after the end of the run to the measurements up to the end.
    pub(super) fn add_later_outcomes(&mut self, measured: &mut Measured, now: Nanos) {
        let tally = &mut self.books.tally;
        let Some(ended_at) = tally.run_on.as_ref().map(|run_on| run_on.begun_at) else { return };
        for live in self.roster.slots.iter_mut().filter_map(Slot::open_connection) {
            live.open.iter().for_each(|request| tally.count_unsettled(request, now));
        }
        tally.count_returned_at_end(now);
        self.dispatch.record_unsent_ages(ended_at, &mut self.books, now);
        if let Some(run_on) = self.books.tally.run_on.take() {
            debug_assert!(run_on.unsettled == 0, "each was open, was sent again, or was not sent");
            *measured.interval.open_loop.get_or_insert_default().as_mut() += &run_on.found;
        }
        if !self.books.is_settled {
            self.control.report_settled();
        }
    }
}

impl<B: Backend> Roster<B> {
    /// Sends the last frames of HTTP/2 connections without a request in flight, such as the reason for a reset.
    fn say_rest(&mut self, tally: &mut Tally, now: Nanos) {
        for number in 0..self.slots.len() as u32 {
            let live = self.slots[number as usize].open_connection();
            if live.is_some_and(|live| live.protocol.is_http2() && live.open.is_empty()) {
                self.send_last_words(ConnId(number), tally, now);
            }
        }
    }

    /// Spread of requests over the connections, if their number per connection is unlimited.
    fn spread(&mut self) -> ConnectionSpread {
        let mut spread = ConnectionSpread::default();
        let lives = self.slots.iter_mut().filter_map(Slot::open_connection).filter(|live| live.left > u64::MAX / 2);
        lives.for_each(|live| spread.record(u64::MAX - live.left));
        spread
    }

    /// Counts the slots' unfinished work.
    pub(super) fn end_slots(&mut self, tally: &mut Tally, now: Nanos) {
        for slot in &mut self.slots {
            let is_shaking_hands = slot.is_shaking_hands();
            match &mut slot.state {
                State::Open(live) => {
                    live.count_open_at_end(now, tally);
                    live.protocol.count_so_far(now);
                }
                State::Connecting(since) if now.since(*since) >= UNANSWERED_NS => {
                    let address = self.connecting.routes.address(slot.route);
                    let phase = if is_shaking_hands { Phase::Tls } else { Phase::Connect };
                    tally.record_error(phase, Cause::Unanswered, now, || address.to_string().into_bytes());
                }
                State::Tunnelling(tunnel) if now.since(tunnel.since) >= UNANSWERED_NS => {
                    tally.record_error(Phase::Connect, Cause::Proxy(ProxyFailure::Silent), now, Vec::new);
                }
                State::Connecting(_) | State::Tunnelling(_) | State::Parked | State::Queued | State::Waiting => {}
            }
        }
    }
}
