//! Counts of scheduled requests: the part of the tally that a closed loop does not need.

use onrush_proto::Nanos;
use onrush_stats::silences::GAP_MIN_NS;
use onrush_stats::{Interval, OpenLoopStats};

use super::{OpenRequest, Tally};
use crate::unsettled::Unsettled;

impl Tally {
    /// Ends the run at this moment, after which it continues uncounted.
    pub fn end_run_at(&mut self, at: Nanos) {
        self.run_on = Some(Box::new(Unsettled { begun_at: at, ..Unsettled::default() }));
    }

    /// Takes the recorded interval. If the run continues uncounted, nothing counts from now on.
    pub fn take_measured(&mut self) -> Box<Interval> {
        if let Some(run_on) = &mut self.run_on {
            run_on.has_begun = true;
        }
        std::mem::take(&mut self.interval)
    }

    /// True if a request due at `due` is due after the end of the run.
    pub fn is_after(&self, due: Nanos) -> bool {
        self.run_on.as_ref().is_some_and(|run_on| due >= run_on.begun_at)
    }

    /// True if the run has ended and continues uncounted.
    pub fn runs_on(&self) -> bool {
        self.run_on.as_ref().is_some_and(|run_on| run_on.has_begun)
    }

    /// The record for the outcome of a request that was due by the end of the run and ended after it; `None` for any
    /// other request.
    pub(super) fn later_outcome(&mut self, request: &OpenRequest) -> Option<&mut OpenLoopStats<u32>> {
        let run_on = self.run_on.as_deref_mut()?;
        if request.is_after { None } else { run_on.take_outcome_place(1) }
    }

    /// Records how old a request, due at `due` before measuring started, was at that start.
    pub fn record_carried_age(&mut self, due: Nanos) {
        let age_ns = self.start.since(due);
        self.interval.open_loop.get_or_insert_default().entered.get_or_insert_default().record(age_ns);
    }

    /// Actual or planned start of measuring: requests due from then on count.
    pub fn due_from(&self) -> Nanos {
        self.due_from
    }

    /// True if a request was due before measuring began.
    pub(super) fn is_carried(&self, due: Nanos) -> bool {
        self.rules.open_loop.is_some() && due < self.due_from
    }

    /// Counts a request that was due at `due` and is handed to the kernel.
    pub(super) fn record_sent(&mut self, due: Nanos, at: Nanos) {
        if let Some(rules) = self.rules.open_loop {
            let late_ns = at.since(due);
            let open_loop = self.count_due(due, 1);
            open_loop.lateness.record(late_ns);
            open_loop.late += u64::from(late_ns > rules.late_ns);
        }
    }

    /// Records a complete response for the detection of silences. With a schedule, also records its service latency
    /// separately if a silence may have held it up.
    pub(super) fn record_service_latency(&mut self, request: &OpenRequest, latency_ns: u64, at: Nanos) {
        let (at_ns, is_last) = (at.since(self.start), self.open == 0);
        if self.rules.open_loop.is_some() && self.silences.may_be_held_up(at_ns) {
            let open_loop = self.interval.open_loop.get_or_insert_default();
            open_loop.held.get_or_insert_default().record(latency_ns);
        }
        self.silences.record_completion(at_ns, is_last);
        // If this request was sent late, the ones after it are late as well.
        if is_last && request.sent_at.since(request.due) < GAP_MIN_NS {
            self.silences.note_caught_up();
        }
    }

    /// Records the complete response to a scheduled request.
    pub(super) fn record_scheduled_response(&mut self, request: &OpenRequest, at: Nanos) {
        let Some(rules) = self.rules.open_loop else { return };
        let latency_ns = at.since(request.sent_at);
        if let Some(found) = self.later_outcome(request) {
            found.later.get_or_insert_default().record(at.since(request.due));
        }
        let open_loop = self.interval.open_loop.get_or_insert_default();
        let as_wrk2 = rules.as_wrk2 && (request.is_last || !rules.per_batch);
        open_loop.record_response(at.since(request.due), latency_ns, as_wrk2);
        open_loop.calm += u64::from(request.calm > 0);
        open_loop.calm_in_flight += u64::from(request.calm);
        open_loop.calm_ns += if request.calm > 0 { latency_ns } else { 0 };
    }

    /// Counts requests that were due at `due` and have no response at the end of the run. If the run goes on, their
    /// ages are not final.
    pub(super) fn count_waiting_at_end(&mut self, due: Nanos, at: Nanos, requests: u64) {
        match &mut self.run_on {
            _ if self.rules.open_loop.is_none() => {}
            Some(run_on) => run_on.unsettled += requests,
            None => leave(self.interval.open_loop.get_or_insert_default(), at.since(due), requests),
        }
    }

    /// Counts a request that was due by the end of the run and still has no response at the end of the worker.
    pub fn count_unsettled(&mut self, request: &OpenRequest, at: Nanos) {
        if let Some(found) = self.later_outcome(request) {
            leave(found, at.since(request.due), 1);
        }
    }

    /// Counts requests waiting to be sent again that still have no response at the end of the worker.
    pub fn count_returned_at_end(&mut self, at: Nanos) {
        let returned = std::mem::take(&mut self.returned);
        returned.iter().for_each(|request| self.count_unsettled(request, at));
    }

    /// Counts requests that were due by the end of the run and never sent; the last one was due at `due`.
    pub fn count_never_sent(&mut self, due: Nanos, at: Nanos, requests: u64) {
        if let Some(found) = self.run_on.as_deref_mut().and_then(|run_on| run_on.take_outcome_place(requests)) {
            leave(found, at.since(due), requests);
        }
    }

    /// Counts requests dropped because they are later than `max_late_ns`; the last one was due at `due`.
    pub fn count_dropped(&mut self, due: Nanos, requests: u64, max_late_ns: u64) {
        if !self.warms_up && !self.is_carried(due) {
            self.left = self.left.map(|left| left.saturating_sub(requests));
        }
        self.count_due(due, requests).dropped += requests;
        let found = match self.run_on.as_deref_mut() {
            Some(run_on) if run_on.begun_at <= due => None,
            Some(run_on) => {
                run_on.found.later_dropped += requests;
                run_on.take_outcome_place(requests)
            }
            None => self.interval.open_loop.as_deref_mut(),
        };
        if let Some(found) = found {
            found.censored.record_many(max_late_ns, requests);
        }
    }

    pub(super) fn count_abandoned_scheduled(&mut self, request: &OpenRequest, at: Nanos) {
        let age_ns = at.since(request.due);
        match self.later_outcome(request) {
            Some(found) => found.censored.record(age_ns),
            None => self.interval.open_loop.get_or_insert_default().censored.record(age_ns),
        }
    }

    /// Counts requests unsent at the end of the run; the last one was due at `due`.
    pub fn count_unsent(&mut self, due: Nanos, at: Nanos, requests: u64) {
        self.count_due(due, requests).unsent += requests;
        self.count_waiting_at_end(due, at, requests);
    }

    /// Counts unsent requests that the schedule's catch-up limit held back.
    pub fn count_held_back(&mut self, requests: u64) {
        self.interval.open_loop.get_or_insert_default().held_back += requests;
    }

    /// Counts further requests that would have been due without a limit on their number.
    pub fn count_due_beyond_total(&mut self, requests: u64) {
        self.interval.open_loop.get_or_insert_default().beyond += requests;
    }

    /// Records a connection's pause before a batch, as set by a script.
    pub fn record_pause(&mut self, pause_ns: u64) {
        if self.rules.open_loop.is_some() {
            self.interval.open_loop.get_or_insert_default().paused_ns += pause_ns;
        }
    }

    /// Counts a time in which due requests, one of them since `from`, waited only for a connection.
    pub fn count_all_busy(&mut self, from: Nanos, since: Nanos, until: Nanos) {
        let open_loop = self.interval.open_loop.get_or_insert_default();
        open_loop.all_busy_ns += until.since(since.max(self.start));
        open_loop.all_busy_max_ns = open_loop.all_busy_max_ns.max(until.since(from));
    }

    /// Forgets all measurements except the latency of the target under little load: it is no result of the run, and may
    /// not occur again.
    pub(super) fn clear_but_calm(&mut self) {
        let of = |open_loop: &OpenLoopStats<u32>| (open_loop.calm, open_loop.calm_in_flight, open_loop.calm_ns);
        let calm = self.interval.open_loop.as_deref().map(of).unwrap_or_default();
        self.interval.clear();
        if let Some(open_loop) = &mut self.interval.open_loop {
            (open_loop.calm, open_loop.calm_in_flight, open_loop.calm_ns) = calm;
        }
    }

    fn count_due(&mut self, due: Nanos, requests: u64) -> &mut OpenLoopStats<u32> {
        let open_loop = self.interval.open_loop.get_or_insert_default();
        if due < self.due_from {
            open_loop.carried += requests;
            open_loop.entered.get_or_insert_default().record_many(self.start.since(due), requests);
        } else {
            open_loop.due += requests;
        }
        open_loop
    }
}

/// Records requests of this age without a response when the worker stops.
fn leave(open_loop: &mut OpenLoopStats<u32>, age_ns: u64, requests: u64) {
    open_loop.censored.record_many(age_ns, requests);
    open_loop.open.get_or_insert_default().record_many(age_ns, requests);
}
