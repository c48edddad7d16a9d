//! One worker's requests: which may still be started, and how started ones ended.

mod due;
mod log;
mod other_protocol;
mod watched;

use std::collections::VecDeque;

use onrush_proto::{Error, Nanos};
use onrush_stats::{Cause, Fate, Interval, Phase, Silences, Transcript};

use super::checks::Checks;
use super::open_request::{OpenRequest, Watched};
use super::request_log::RequestLog;
use super::round::Round;
use super::rules::{Rules, Scale};
use super::samples::Samples;
use super::unsettled::Unsettled;
use other_protocol::OtherProtocol;

/// A worker's counts, and its requests that are to be sent again.
pub struct Tally {
    rules: Rules,
    /// Checks of responses, if any.
    pub checks: Option<Box<Checks>>,
    /// Samples of responses, if requested.
    pub samples: Option<Box<Samples>>,
    start: Nanos,
    /// The interval being recorded.
    pub interval: Box<Interval>,
    /// Number of requests that may still be started for the first time; `None`: unlimited.
    left: Option<u64>,
    /// True during the warm-up: nothing counts yet.
    warms_up: bool,
    /// Number of requests in flight on all connections.
    open: u64,
    /// Number of started requests that leave with the next wait, and number of encrypted bytes that do.
    gathered: u64,
    gathered_bytes: u64,
    /// Number of complete responses since the start, including the warm-up.
    pub completed: u64,
    /// Measurements that decide how long to wait for several completions.
    pub round: Round,
    /// Transcript of the wire, if recorded.
    pub transcript: Option<Box<Transcript>>,
    /// The request log, if any.
    pub log: Option<RequestLog>,
    /// True if a log, samples or checks need to know more about requests than the counts do.
    watches: bool,
    /// True if anything about each response is recorded in addition to the sums.
    notes_each: bool,
    /// True to record the arrival of each response's first byte.
    notes_first_bytes: bool,
    /// Memory for notes, from ended requests; boxed, as in open requests.
    #[expect(clippy::vec_box, reason = "a request takes a box without moving its contents")]
    unwatched: Vec<Box<Watched>>,
    /// Periods without completions.
    pub silences: Silences,
    /// True if a `Location` has been kept.
    located: bool,
    /// True once a response with status 400 has arrived.
    has_seen_400: bool,
    /// Answers in another protocol.
    other_protocol: OtherProtocol,
    /// The requests to be sent again.
    returned: VecDeque<OpenRequest>,
    /// True if there is nothing more to send, including requests to be sent again.
    is_exhausted: bool,
    /// Planned start of measuring, even if it began later: requests due from then on count.
    due_from: Nanos,
    /// Outcomes after the end of the run, if it continues in order to learn them.
    pub run_on: Option<Box<Unsettled>>,
}

impl Tally {
    /// An empty tally for a worker that may start this many requests; `None`: any number.
    pub fn new(
        rules: Rules,
        checks: Option<Box<Checks>>,
        requests: Option<u64>,
        transcript: Option<Box<Transcript>>,
    ) -> Self {
        Self {
            rules,
            checks,
            samples: None,
            start: Nanos::default(),
            interval: Box::default(),
            left: requests,
            warms_up: false,
            open: 0,
            gathered: 0,
            gathered_bytes: 0,
            completed: 0,
            round: Round::default(),
            transcript,
            log: None,
            watches: false,
            notes_each: false,
            notes_first_bytes: false,
            unwatched: Vec::new(),
            silences: Silences::new(),
            located: false,
            has_seen_400: false,
            other_protocol: OtherProtocol::default(),
            returned: VecDeque::new(),
            is_exhausted: false,
            due_from: Nanos::default(),
            run_on: None,
        }
    }

    /// Starts the run, from which times count, and determines what is to be recorded.
    pub fn start(&mut self, now: Nanos) {
        (self.start, self.due_from) = (now, now);
        self.decide_to_watch();
    }

    /// Starts the warm-up: nothing counts from now on.
    pub fn start_warm_up(&mut self) {
        self.warms_up = true;
    }

    pub fn is_warming_up(&self) -> bool {
        self.warms_up
    }

    /// Starts measuring: nothing before counts, except the requests in flight. `planned`: planned start, from which due
    /// requests count; `slots_open`: number of slots with a connection.
    pub fn count_from(&mut self, now: Nanos, planned: Nanos, slots_open: u64) {
        self.warms_up = false;
        (self.start, self.due_from) = (now, planned);
        (self.located, self.has_seen_400) = (false, false);
        self.silences.clear();
        self.clear_but_calm();
        self.interval.counters.slots_opened = slots_open;
        self.interval.counters.carried = self.open - self.gathered + self.returned.len() as u64;
        // Requests waiting to be sent again can be counted as late again in the measured window, like those in flight.
        self.returned.iter_mut().for_each(|request| request.late = false);
        if self.rules.open_loop.is_some() {
            let waiting: Vec<Nanos> = self.returned.iter().map(|request| request.due).collect();
            waiting.into_iter().for_each(|due| self.record_carried_age(due));
        }
    }

    /// Continues after the counted end of the run, with no limit on the number of requests, and without transcript, log
    /// and samples.
    pub fn continue_uncounted(&mut self, now: Nanos) {
        (self.left, self.is_exhausted) = (None, false);
        (self.transcript, self.log, self.samples) = (None, None, None);
        self.interval.from_ns = now.since(self.start);
    }

    /// Records that the source has no more requests. Requests to be sent again are not sent either.
    pub fn end_requests(&mut self) {
        (self.left, self.is_exhausted) = (Some(0), true);
    }

    /// Number of requests that may still be started for the first time, if the next is due at `due`; [`u64::MAX`]:
    /// unlimited. During the warm-up, and for requests due in it, there is no limit, because they do not count.
    pub fn remaining_requests(&self, due: Nanos) -> u64 {
        let counts = |left: &u64| *left == 0 || !self.warms_up && !self.is_carried(due);
        self.left.filter(counts).unwrap_or(u64::MAX)
    }

    /// True if another request may be started, or one sent again.
    pub fn may_start(&self) -> bool {
        !self.is_exhausted && (self.left != Some(0) || self.has_returned())
    }

    /// True if the requested number of requests has been started; false if the source ran out earlier.
    pub fn has_started_all(&self) -> bool {
        self.left == Some(0) && !self.is_exhausted
    }

    /// True if no more requests can be started and all have ended.
    pub fn is_done(&self) -> bool {
        !self.may_start() && self.open == 0
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.open
    }

    /// Counts a started request when it is handed to the kernel, now or with the next wait; once, however often it is
    /// sent.
    pub fn count_started(&mut self, request: &OpenRequest, now: Nanos) {
        if !self.warms_up && !request.was_sent_before() && !self.is_carried(request.due) {
            self.left = self.left.map(|left| left - 1);
        }
        if self.open == 0 {
            self.note_awaiting_response(now);
        }
        self.open += 1;
        if request.was_sent_before() {
            // The request has been counted.
        } else if request.is_gathered {
            self.gathered += 1;
        } else {
            self.interval.counters.started += 1;
            // In a closed loop, a request that leaves at once is sent as soon as it is due.
            if self.rules.open_loop.is_some() {
                self.count_submitted(request, request.sent_at);
            }
        }
    }

    /// Records that a response is awaited from `since` on, unless one was awaited already.
    pub fn note_awaiting_response(&mut self, since: Nanos) {
        self.silences.note_request_sent(since.since(self.start));
    }

    /// Records that a batch was sent at `at`, and that the first request after it is due only at `next_due`.
    pub fn note_sent_ahead(&mut self, at: Nanos, next_due: Nanos) {
        self.silences.note_sent_ahead(at.since(self.start), next_due.since(self.start));
    }

    /// Counts a request that is handed to the kernel at `at`; does nothing if it was sent before.
    pub fn count_submitted(&mut self, request: &OpenRequest, at: Nanos) {
        if request.was_sent_before() {
            return;
        }
        self.interval.activity.count_submission(at.since(request.due));
        self.record_sent(request.due, at);
    }

    /// Counts `n` request bytes accepted by TLS: now, or, if `is_gathered`, once they are handed to the kernel.
    pub fn count_encrypted(&mut self, n: usize, is_gathered: bool) {
        *(if is_gathered { &mut self.gathered_bytes } else { &mut self.interval.counters.bytes_sent }) += n as u64;
    }

    /// Counts the gathered requests as handed to the kernel now.
    pub fn count_gathered_as_sent(&mut self) {
        self.interval.counters.started += std::mem::take(&mut self.gathered);
        self.interval.counters.bytes_sent += std::mem::take(&mut self.gathered_bytes);
    }

    /// Queues a request that the peer reports as unprocessed. It will be sent again, but counts as started once.
    pub fn queue_returned(&mut self, request: OpenRequest, at: Nanos) {
        self.take_out_of_flight(&request, at);
        self.interval.counters.returned += 1;
        self.send_again(request, at);
    }

    /// Counts the server's close of an idle connection. Returns true if it counts as an error.
    pub fn count_idle_close(&mut self, at: Nanos) -> bool {
        self.interval.counters.idle_closed += 1;
        if self.counts_idle_closes() {
            self.record_error(Phase::Head, Cause::Protocol(Error::ClosedBeforeResponse), at, Vec::new);
        }
        self.counts_idle_closes()
    }

    /// True if the server's close of an idle connection is an error.
    pub fn counts_idle_closes(&self) -> bool {
        self.rules.scale.counts_idle_closes
    }

    fn send_again(&mut self, request: OpenRequest, at: Nanos) {
        // A request that had not left leaves now, at the latest.
        let sent_at = if request.is_gathered && !request.was_sent_before() { at } else { request.sent_at };
        self.returned.push_back(OpenRequest { sent_at, returns: request.returns.saturating_add(1), ..request });
    }

    /// True if a request waits to be sent again.
    pub fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Takes the request that has waited longest to be sent again, if any.
    pub fn take_returned(&mut self) -> Option<OpenRequest> {
        self.returned.pop_front()
    }

    /// Counts the requests to be sent again as in flight at the end of the run.
    pub fn count_returned_as_in_flight(&mut self, at: Nanos) {
        let returned = std::mem::take(&mut self.returned);
        for request in &returned {
            self.count_time_in_flight(request, at);
            self.count_unanswered_at_end(request, at);
        }
        self.returned = returned;
    }

    /// True if the bodies of all responses are needed.
    pub fn wants_body(&self) -> bool {
        self.transcript.is_some() || self.checks.as_ref().is_some_and(|checks| checks.want_body())
    }

    /// True if the `Location` of a response with this status is wanted: only the first redirect's is kept.
    pub fn wants_location(&self, status: u16) -> bool {
        (300..400).contains(&status) && !self.located
    }

    /// Keeps the `Location` of a head, if it has one.
    pub fn keep_location(&mut self, location: Option<&[u8]>) {
        self.interval.location = location.map(|value| String::from_utf8_lossy(value).into_owned());
        self.located = true;
    }

    /// True if the body of a response with status 400 should be searched for a hint that the port expects TLS: the
    /// first one, and while all responses have had the hint.
    pub fn wants_tls_hint(&mut self) -> bool {
        !std::mem::replace(&mut self.has_seen_400, true) || self.other_protocol.all_say_tls(self.completed)
    }

    /// Searches a response for the hint: `before` has arrived earlier, `piece` now. Adds the piece. True if the hint
    /// was found.
    pub fn search_tls_hint(&mut self, before: &mut Vec<u8>, piece: &[u8]) -> bool {
        let room = REFUSAL_BYTES.saturating_sub(before.len());
        before.extend_from_slice(&piece[..piece.len().min(room)]);
        let has_hint = room > 0 && expects_tls(before);
        self.interval.expects_tls |= has_hint;
        has_hint
    }

    /// Counts a response with status 400, about to complete, saying that the port expects TLS.
    pub fn count_tls_hint(&mut self) {
        if self.is_failure(400) {
            self.other_protocol.count_tls_hint();
        }
    }

    /// The other protocol that the server seems to use, as the cause of its last such answer. `None`: there are too few
    /// such answers, a response arrived in our protocol, or another tool is imitated.
    pub fn other_protocol(&self) -> Option<Cause> {
        self.other_protocol.cause(self.completed).filter(|_| self.rules.scale == Scale::EXACT)
    }

    /// Counts the end of a request that was in flight until now.
    fn count_end(&mut self, request: &OpenRequest, at: Nanos) {
        self.take_out_of_flight(request, at);
        self.count_time_in_flight(request, at);
    }

    /// Counts the time since a request was first sent.
    fn count_time_in_flight(&mut self, request: &OpenRequest, at: Nanos) {
        self.interval.counters.occupancy.in_flight_ns += at.since(request.sent_at.max(self.start));
    }

    /// Takes a request out of flight, possibly to be sent again: then it counts as in flight all the time, see
    /// [`Self::count_time_in_flight`].
    fn take_out_of_flight(&mut self, request: &OpenRequest, at: Nanos) {
        self.open -= 1;
        if request.is_gathered {
            // Whatever its outcome, the request had left by then or would have left at once.
            self.count_submitted(request, at);
        }
    }

    /// Counts a period in which a connection had at least one request in flight; the part before measuring began is
    /// left out.
    pub fn count_busy_time(&mut self, since: Nanos, until: Nanos) {
        self.interval.counters.occupancy.busy_ns += until.since(since.max(self.start));
    }

    /// Records the time that a successful connect took, if phases are recorded.
    pub fn count_connect(&mut self, connect_ns: u64) {
        if self.rules.phases && self.is_measurable(connect_ns) {
            let connect_ns = self.round_to_scale(connect_ns);
            self.interval.phases.get_or_insert_default().connect.record(connect_ns);
        }
    }

    /// Records the time that a complete TLS handshake took, if phases are recorded.
    pub fn count_handshake(&mut self, handshake_ns: u64) {
        if self.rules.phases && self.is_measurable(handshake_ns) {
            let handshake_ns = self.round_to_scale(handshake_ns);
            let phases = self.interval.phases.get_or_insert_default();
            phases.tls.get_or_insert_default().record(handshake_ns);
        }
    }

    /// Records the arrivals of a response's first and last byte, before its latency is recorded. Records nothing until
    /// some response has arrived in more than one piece; earlier ones are then added.
    fn record_request_phases(&mut self, request: &OpenRequest, at: Nanos) {
        let first_at = request.first_at.unwrap_or(at);
        let is_left_out = self.interval.phases.as_ref().is_some_and(|phases| phases.is_left_out);
        if first_at != at || !is_left_out || self.rules.scale.omits_late {
            self.record_phases(request, first_at, at);
        }
    }

    #[inline(never)]
    fn record_phases(&mut self, request: &OpenRequest, first_at: Nanos, at: Nanos) {
        let (phases, latency) = (self.interval.phases.get_or_insert_default(), &self.interval.latency);
        if first_at == at && !self.rules.scale.omits_late && latency.count() == 0 {
            phases.is_left_out = true;
            return;
        }
        phases.record_omitted(latency);
        let (ttfb_ns, ttlb_ns) = (first_at.since(request.sent_at), at.since(first_at));
        if self.is_measurable(ttfb_ns) && self.is_measurable(ttlb_ns) {
            let (ttfb_ns, ttlb_ns) = (self.round_to_scale(ttfb_ns), self.round_to_scale(ttlb_ns));
            let phases = self.interval.phases.get_or_insert_default();
            phases.ttfb.record(ttfb_ns);
            phases.ttlb.record(ttlb_ns);
        }
    }

    fn is_measurable(&self, ns: u64) -> bool {
        !(self.rules.scale.omits_late && self.is_late(ns))
    }

    /// Rounds a time to the precision of the records.
    fn round_to_scale(&self, ns: u64) -> u64 {
        let quantum_ns = self.rules.scale.quantum_ns;
        if quantum_ns == 1 { ns } else { ns / quantum_ns * quantum_ns }
    }

    /// Counts received bytes; `was_mistaken`: the server made a mistake in this read, which may have to be left out.
    pub fn count_received(&mut self, length: usize, was_mistaken: bool) {
        if !(self.rules.scale.omits_mistakes && was_mistaken) {
            self.interval.counters.bytes_received += length as u64;
        }
        self.round.count_received(length);
    }

    /// Records a complete response. Returns its service latency, from sending to the end of the response, in nanoseconds.
    pub fn record_complete(&mut self, request: &mut OpenRequest, at: Nanos) -> u64 {
        let latency_ns = at.since(request.sent_at);
        self.count_end(request, at);
        self.completed += 1;
        self.round.count_response(latency_ns);
        self.record_service_latency(request, latency_ns, at);
        self.status(request, latency_ns, at);
        let counters = &mut self.interval.counters;
        counters.completed += 1;
        counters.batches += u64::from(request.is_last);
        if self.rules.phases {
            self.record_request_phases(request, at);
        }
        if self.rules.scale.omits_late {
            self.record_unless_late(request, self.round_to_scale(latency_ns), at);
            return latency_ns;
        }
        self.interval.latency.record(latency_ns);
        self.record_scheduled_response(request, at);
        if self.rules.pipelines && request.is_last {
            self.interval.batch_latency().record(latency_ns);
        }
        if self.is_late_request(request, latency_ns) {
            self.count_late_response(request, at);
        }
        if self.notes_each {
            self.record_details(request, latency_ns, at);
        }
        latency_ns
    }

    /// Records all details of a single response apart from the sums.
    #[inline(never)]
    fn record_details(&mut self, request: &mut OpenRequest, latency_ns: u64, at: Nanos) {
        self.log_request(request, at, Fate::Completed);
        if self.rules.by_name {
            let is_unsuccessful = self.is_unsuccessful(request) || self.is_late_request(request, latency_ns);
            let shown_ns = self.reported_latency_ns(request, latency_ns, at);
            let by_name = self.interval.by_name.get_or_insert_default();
            by_name.record_response(request.name, request.status, shown_ns, is_unsuccessful);
        }
        if let Some(transcript) = &mut self.transcript {
            transcript.failed_checks = request.failed_checks();
        }
        self.unwatch(request);
    }

    /// True if the response has a failing status, or failed a check or a gRPC call.
    fn is_unsuccessful(&self, request: &OpenRequest) -> bool {
        request.status.is_some_and(|status| self.is_failure(status)) || request.failed_check().is_some()
    }

    /// A response's latency as shown in the report: with a schedule, it counts from the due time.
    fn reported_latency_ns(&self, request: &OpenRequest, latency_ns: u64, at: Nanos) -> u64 {
        if self.rules.open_loop.is_some() { at.since(request.due) } else { latency_ns }
    }

    /// Counts a request without a complete response under its name.
    fn count_failed_by_name(&mut self, request: &OpenRequest) {
        if self.rules.by_name {
            self.interval.by_name.get_or_insert_default().record_failure(request.name);
        }
    }

    /// Counts a late response. It makes the request unsuccessful unless its status or a check already did.
    fn count_late_response(&mut self, request: &OpenRequest, at: Nanos) {
        self.interval.counters.unsuccessful += u64::from(!self.is_unsuccessful(request));
        let becomes_late = !request.late && (request.is_last || !self.rules.scale.late_once_a_batch);
        if becomes_late {
            self.count_late(at);
        }
        self.interval.counters.late_ended += u64::from(request.late || becomes_late);
    }

    /// Records a latency unless it is late; a batch counts as late once.
    fn record_unless_late(&mut self, request: &OpenRequest, latency_ns: u64, at: Nanos) {
        let is_late = self.is_late(latency_ns);
        if is_late {
            return self.count_late_response(request, at);
        }
        self.interval.latency.record(latency_ns);
        if request.is_last && self.rules.pipelines {
            self.interval.batch_latency().record(latency_ns);
        }
    }

    fn status(&mut self, request: &OpenRequest, latency_ns: u64, at: Nanos) {
        let Some(status) = request.status else { return };
        self.interval.statuses.record(status);
        if status >= 300 || request.watched.is_some() {
            self.count_unsuccessful(status, request, latency_ns, at);
        }
    }

    fn is_failure(&self, status: u16) -> bool {
        self.checks.as_ref().map_or(onrush_plan::checks::is_failure(None, status), |checks| checks.is_failure(status))
    }

    /// Counts a response with a failing status, or with a failed check or gRPC call.
    #[inline(never)]
    fn count_unsuccessful(&mut self, status: u16, request: &OpenRequest, latency_ns: u64, at: Nanos) {
        // If another tool is imitated, these failures are shown nowhere.
        if status >= 300 && self.rules.scale == Scale::EXACT {
            let shown_ns = self.reported_latency_ns(request, latency_ns, at);
            self.interval.by_class.get_or_insert_default().record(status, shown_ns);
        }
        let (is_failure, tenth) = (self.is_failure(status), self.tenth_of_run(at));
        if is_failure {
            self.interval.ledger.record(Phase::Status, Cause::Status(status), tenth, Vec::new);
        }
        let failed_check = request.failed_check();
        if let Some(cause) = failed_check {
            let example = || match (request.watched.as_deref(), &self.checks) {
                (Some(Watched { failed_call: Some(call), .. }), _) => call.message.clone(),
                (Some(watched), Some(checks)) => checks.failed_value(&watched.checked),
                _ => Vec::new(),
            };
            self.interval.ledger.record(Phase::Check, cause, tenth, example);
        }
        self.interval.counters.unsuccessful += u64::from(is_failure || failed_check.is_some());
    }

    /// True if a request of this age must be counted as late now, and has not been so far.
    pub fn becomes_late(&self, request: &OpenRequest, age_ns: u64) -> bool {
        !request.late
            && self.is_late_request(request, age_ns)
            && (request.is_last || !self.rules.scale.late_once_a_batch)
    }

    /// True if a request of that age is late; a stream that stays open never is.
    fn is_late_request(&self, request: &OpenRequest, age_ns: u64) -> bool {
        !request.lives && self.is_late(age_ns)
    }

    pub fn is_late(&self, age_ns: u64) -> bool {
        self.rules.timeout_ns.is_some_and(|timeout_ns| age_ns > timeout_ns)
    }

    /// Counts a request that has exceeded `--timeout`. It may still get a response.
    pub fn count_late(&mut self, at: Nanos) {
        self.count_late_with_cause(Cause::Late, at);
    }

    /// Counts a request that has exceeded `--timeout`, with a more specific cause.
    pub fn count_late_with_cause(&mut self, cause: Cause, at: Nanos) {
        self.interval.counters.late += 1;
        self.record_error(Phase::Timeout, cause, at, Vec::new);
    }

    /// Counts a request that will get no complete response.
    pub fn record_failed(
        &mut self,
        request: &OpenRequest,
        phase: Phase,
        cause: Cause,
        at: Nanos,
        example: impl FnOnce() -> Vec<u8>,
    ) {
        self.count_end(request, at);
        self.log_request(request, at, Fate::Failed(phase, cause));
        self.interval.counters.failed += 1;
        self.interval.counters.late_ended += u64::from(request.late);
        self.count_failed_by_name(request);
        self.record_error(phase, cause, at, example);
        if let Some(found) = self.later_outcome(request) {
            found.later_failed += 1;
        }
    }

    /// Records a failure in the ledger without counting a failed request.
    pub fn record_error(&mut self, phase: Phase, cause: Cause, at: Nanos, example: impl FnOnce() -> Vec<u8>) {
        self.other_protocol.record_failure(cause);
        let tenth = self.tenth_of_run(at);
        self.interval.ledger.record(phase, cause, tenth, example);
    }

    /// Counts an abandoned request in flight.
    pub fn count_abandoned(&mut self, request: &OpenRequest, at: Nanos) {
        self.count_end(request, at);
        self.record_abandoned(request, at);
    }

    /// Among the requests to be sent again, abandons those older than `limit_ns` and counts late ones.
    pub fn sweep_returned(&mut self, limit_ns: Option<u64>, now: Nanos) {
        let mut returned = std::mem::take(&mut self.returned);
        returned.retain_mut(|request| {
            let age_ns = now.since(request.sent_at);
            if limit_ns.is_some_and(|limit_ns| age_ns >= limit_ns) {
                self.count_time_in_flight(request, now);
                self.record_abandoned(request, now);
                return false;
            }
            if self.becomes_late(request, age_ns) {
                request.late = true;
                self.count_late(now);
            }
            true
        });
        self.returned = returned;
    }

    fn record_abandoned(&mut self, request: &OpenRequest, at: Nanos) {
        self.log_request(request, at, Fate::Abandoned);
        self.interval.counters.abandoned += 1;
        self.count_failed_by_name(request);
        let age_ns = at.since(request.sent_at);
        let becomes_late = self.becomes_late(request, age_ns);
        if becomes_late {
            self.count_late(at);
        }
        self.interval.counters.late_ended += u64::from(request.late || becomes_late);
        self.record_error(Phase::Abandoned, Cause::GivenUp, at, Vec::new);
        self.interval.censored.get_or_insert_default().record(age_ns);
        if self.rules.open_loop.is_some() {
            self.count_abandoned_scheduled(request, at);
        }
    }

    /// Forgets the requests in flight and those to be sent again, without counting them.
    pub fn forget_open(&mut self) {
        (self.open, self.gathered) = (0, 0);
        self.returned.clear();
    }

    /// Ends the counting with the worker. A request that ended before it was handed to the kernel counts as started.
    pub fn count_ended(&mut self) {
        self.interval.counters.started += std::mem::take(&mut self.gathered);
    }

    /// Counts a request in flight at the end of the run. If it was never handed to the kernel, it was never started.
    pub fn count_open_at_end(&mut self, request: &OpenRequest, at: Nanos) {
        if request.is_gathered && !request.was_sent_before() {
            self.gathered -= 1;
            if self.rules.open_loop.is_some() {
                self.count_unsent(request.due, at, 1);
            }
            return;
        }
        self.count_time_in_flight(request, at);
        self.count_unanswered_at_end(request, at);
    }

    /// Counts a sent request without a response at the end of the worker.
    fn count_unanswered_at_end(&mut self, request: &OpenRequest, at: Nanos) {
        self.log_request(request, at, Fate::Open);
        let age_ns = at.since(request.sent_at);
        let late = request.late || self.is_late_request(request, age_ns);
        if self.becomes_late(request, age_ns) {
            self.count_late(at);
        }
        self.interval.counters.open_at_end += 1;
        self.interval.counters.open_late_at_end += u64::from(late);
        if late {
            self.count_failed_by_name(request);
        }
        self.interval.censored.get_or_insert_default().record(age_ns);
        self.count_waiting_at_end(request.due, at, 1);
    }

    /// The tenth of a second of the run that contains this moment.
    fn tenth_of_run(&self, at: Nanos) -> u32 {
        (at.since(self.start) / 100_000_000) as u32
    }
}

/// Number of bytes searched in such a response: servers' pages are shorter.
const REFUSAL_BYTES: usize = 2048;

/// Phrases with which servers answer a request without TLS at a TLS port: nginx, Go, Apache, Tomcat.
const EXPECTS_TLS: [&[u8]; 4] = [
    b"plain HTTP request was sent to HTTPS port",
    b"HTTP request to an HTTPS server",
    b"plain HTTP to an SSL-enabled server port",
    b"combination of host and port requires TLS",
];

fn expects_tls(response: &[u8]) -> bool {
    EXPECTS_TLS.iter().any(|words| response.windows(words.len()).any(|part| part == *words))
}
