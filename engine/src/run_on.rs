//! The time after the end of a run, in which nothing counts any more: the schedule goes on until it is known how the
//! requests that were due by the end have ended. The load stays on meanwhile, so that a target that becomes idle does not
//! make them faster.

use onrush_proto::Nanos;
use onrush_proto::http2::{Seen, Shared};
use onrush_stats::silences::Kept;
use onrush_stats::{Gap, Interval, OpenLoop};

use super::Engine;
use super::slot::Slot;
use crate::backend::Backend;

/// How the requests that were due by the end of a run have ended since.
#[derive(Debug, Default)]
pub(super) struct RunOn {
    /// When the run ended.
    pub begun_at: Nanos,
    /// Whether what happens does not count any more: everything up to the end has been counted.
    pub has_begun: bool,
    /// Requests of which that is not known yet.
    pub unsettled: u64,
    /// Only the latencies and ages that the run lacked.
    pub found: OpenLoop<u32>,
}

impl RunOn {
    /// So many requests have ended; returns where to record how.
    pub fn learned(&mut self, requests: u64) -> Option<&mut OpenLoop<u32>> {
        debug_assert!(self.unsettled >= requests, "they were counted");
        self.unsettled = self.unsettled.saturating_sub(requests);
        Some(&mut self.found)
    }
}

/// What a worker measured up to the end of the run.
pub(super) struct Measured {
    pub interval: Box<Interval>,
    pub elapsed_ns: u64,
    pub silences: Vec<Gap>,
    pub awaited: Vec<Gap>,
    pub ahead: Vec<Gap>,
    pub stalls: Vec<Gap>,
    pub in_script: Vec<Gap>,
    pub http2: Option<Seen>,
}

impl<B: Backend> Engine<B> {
    /// Ends the run at its planned end and goes on, if it is to; returns whether it does.
    pub(super) fn goes_on(&mut self) -> bool {
        let run_on_ns = self.roster.config.run_on_ns;
        if run_on_ns == 0 || self.books.measured.is_some() || self.books.tally.is_warming_up() {
            return false;
        }
        let end = self.books.end_at;
        self.count_all_busy(end);
        self.books.tally.end_at(end);
        let measured = self.measured(end);
        self.books.measured = Some(Box::new(measured));
        // A stall may have lasted past the end.
        self.books.end_at = self.roster.backend.now().max(end) + run_on_ns;
        self.note_settled();
        true
    }

    /// Whether it is known of all workers' requests how they have ended.
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
            self.control.settle();
        }
    }

    /// Counts everything up to now, the end of the run.
    pub(super) fn measured(&mut self, now: Nanos) -> Measured {
        self.take_counts();
        self.settle_spin();
        self.roster.occupy_to_the_end(&mut self.books, now);
        self.roster.end_slots(&mut self.books.tally, now);
        self.books.tally.end_returned(now);
        self.dispatch.count_unsent(self.roster.connecting.away_since(), &mut self.books, now);
        self.books.tally.count_ended();
        if self.books.tally.is_warming_up() {
            // It ended before measuring began.
            self.roster.slots.iter_mut().filter_map(Slot::live).for_each(|live| _ = live.open.drain().count());
            self.books.tally.forget_open();
            self.count_from(now);
        }
        // A worker that had nothing to send has no rate.
        if self.roster.config.requests != Some(0) {
            self.books.sample_rest(now);
        }
        self.books.tally.hand_over_log();
        self.note_script_time();
        self.books.settle_account();
        let asks_at_once = !self.dispatch.script.wants.delay && self.roster.config.rules.open_loop.is_none();
        let elapsed_ns = now.since(self.books.start);
        let tally = &mut self.books.tally;
        tally.interval.until_ns = elapsed_ns;
        let Kept { gaps: silences, awaited, ahead } = std::mem::take(&mut tally.silences).end(elapsed_ns);
        Measured {
            interval: tally.take_measured(),
            elapsed_ns,
            silences,
            awaited: if asks_at_once { vec![Gap::ALL] } else { awaited },
            ahead,
            stalls: std::mem::take(&mut self.books.stalls),
            in_script: std::mem::take(&mut self.books.in_script),
            http2: self.http2.as_ref().map(Shared::seen),
        }
    }

    /// Adds what was learned since the end of the run to what was measured up to it.
    pub(super) fn learn_rest(&mut self, measured: &mut Measured, now: Nanos) {
        let tally = &mut self.books.tally;
        let Some(ended_at) = tally.run_on.as_ref().map(|run_on| run_on.begun_at) else { return };
        for live in self.roster.slots.iter_mut().filter_map(Slot::live) {
            live.open.iter().for_each(|request| tally.left_unsettled(request, now));
        }
        tally.left_returned(now);
        self.dispatch.leave_unsent(ended_at, &mut self.books, now);
        if let Some(run_on) = self.books.tally.run_on.take() {
            debug_assert!(run_on.unsettled == 0, "each was open, was sent again, or was not sent");
            *measured.interval.open_loop.get_or_insert_default().as_mut() += &run_on.found;
        }
        if !self.books.is_settled {
            self.control.settle();
        }
    }
}
