//! What became of scheduled requests: the part of the tally that a closed loop does not need.

use onrush_proto::Nanos;
use onrush_stats::OpenLoop;
use onrush_stats::silences::GAP_MIN_NS;

use super::{OpenRequest, Tally};

impl Tally {
    /// What is due from then on counts: since measuring began, or was to begin.
    pub fn due_from(&self) -> Nanos {
        self.due_from
    }

    /// Whether a request was due before measuring began.
    pub(super) fn is_carried(&self, due: Nanos) -> bool {
        self.rules.open_loop.is_some() && due < self.due_from
    }

    /// A request that was due at `due` was handed to the kernel.
    #[inline]
    pub(super) fn sent(&mut self, due: Nanos, at: Nanos) {
        if let Some(rules) = self.rules.open_loop {
            let late_ns = at.since(due);
            let open_loop = self.was_due(due, 1);
            open_loop.lateness.record(late_ns);
            open_loop.late += u64::from(late_ns > rules.late_ns);
        }
    }

    /// A request gets its complete response; with a schedule, a time without responses may have held it up.
    #[inline]
    pub(super) fn heard(&mut self, request: &OpenRequest, latency_ns: u64, at: Nanos) {
        let (at_ns, is_last) = (at.since(self.start), self.open == 0);
        if self.rules.open_loop.is_some() && self.silences.is_held(at_ns) {
            let open_loop = self.interval.open_loop.get_or_insert_default();
            open_loop.held.get_or_insert_default().record(latency_ns);
        }
        self.silences.completed(at_ns, is_last);
        // One that was late when it was sent leaves others behind it that are.
        if is_last && request.sent_at.since(request.due) < GAP_MIN_NS {
            self.silences.caught_up();
        }
    }

    /// A scheduled request got its complete response.
    #[inline]
    pub(super) fn answered(&mut self, request: &OpenRequest, at: Nanos) {
        let Some(rules) = self.rules.open_loop else { return };
        let latency_ns = at.since(request.sent_at);
        let open_loop = self.interval.open_loop.get_or_insert_default();
        let as_wrk2 = rules.as_wrk2 && (request.is_last || !rules.per_batch);
        open_loop.complete(at.since(request.due), latency_ns, as_wrk2);
        open_loop.calm += u64::from(request.is_calm);
        open_loop.calm_ns += if request.is_calm { latency_ns } else { 0 };
    }

    /// A request that was due at `due` is in flight at the end of the run.
    pub(super) fn unanswered(&mut self, due: Nanos, at: Nanos) {
        if self.rules.open_loop.is_some() {
            let open_loop = self.interval.open_loop.get_or_insert_default();
            open_loop.censored.record(at.since(due));
            open_loop.in_flight.get_or_insert_default().record(at.since(due));
        }
    }

    /// Requests are dropped because it is too late; the last of them was due at `due`.
    pub fn dropped(&mut self, due: Nanos, requests: u64) {
        if !self.warms_up && !self.is_carried(due) {
            self.left = self.left.map(|left| left.saturating_sub(requests));
        }
        self.was_due(due, requests).dropped += requests;
        self.gone.note(due, requests);
    }

    /// Requests had not been sent when the worker ended; the last of them was due at `due`.
    pub fn unsent(&mut self, due: Nanos, at: Nanos, requests: u64) {
        let open_loop = self.was_due(due, requests);
        open_loop.unsent += requests;
        open_loop.censored.record_many(at.since(due), requests);
    }

    /// This many of the requests not sent were held back by the schedule's catch-up limit.
    pub fn held_back(&mut self, requests: u64) {
        self.interval.open_loop.get_or_insert_default().held_back += requests;
    }

    /// This many further requests would have been due without a limit on their number.
    pub fn beyond(&mut self, requests: u64) {
        self.interval.open_loop.get_or_insert_default().beyond += requests;
    }

    /// A script makes a connection pause this long before a batch.
    pub fn paused(&mut self, pause_ns: u64) {
        if self.rules.open_loop.is_some() {
            self.interval.open_loop.get_or_insert_default().paused_ns += pause_ns;
        }
    }

    /// Requests were due between these moments, one of them since `from`, and waited for nothing but a connection.
    pub fn was_all_busy(&mut self, from: Nanos, since: Nanos, until: Nanos) {
        let open_loop = self.interval.open_loop.get_or_insert_default();
        open_loop.all_busy_ns += until.since(since.max(self.start));
        open_loop.all_busy_max_ns = open_loop.all_busy_max_ns.max(until.since(from));
    }

    /// The worker has ended: requests dropped or abandoned would have lasted at least until now.
    pub fn end_gone(&mut self, at: Nanos) {
        for (due, requests) in self.gone.take() {
            let open_loop = self.interval.open_loop.get_or_insert_default();
            open_loop.censored.record_many(at.since(due), requests);
        }
    }

    /// Forgets what was measured, except how fast the target is when it has little to do: that is no figure of the run,
    /// and may not occur again.
    pub(super) fn clear_but_calm(&mut self) {
        let calm = self.interval.open_loop.as_deref().map_or((0, 0), |open_loop| (open_loop.calm, open_loop.calm_ns));
        self.interval.clear();
        if let Some(open_loop) = &mut self.interval.open_loop {
            (open_loop.calm, open_loop.calm_ns) = calm;
        }
    }

    fn was_due(&mut self, due: Nanos, requests: u64) -> &mut OpenLoop<u32> {
        let open_loop = self.interval.open_loop.get_or_insert_default();
        *(if due < self.due_from { &mut open_loop.carried } else { &mut open_loop.due }) += requests;
        open_loop
    }
}
