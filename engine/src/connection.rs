//! An established connection. Records the events of its protocol; opening, closing and waiting are left to the engine.

use onrush_plan::percent_encoding;
use onrush_proto::http2::FrameReader;
use onrush_proto::{Client, Code, Error, Event, Nanos, Request, StreamId};
use onrush_stats::{Cause, Phase, Transcript};
use rustix::io::Errno;

use super::callbacks::{Caller, Response};
use super::cause::{cause_of, phase_of, phase_of_transport};
use super::kept::KeptResponsePool;
use super::open_request::{FailedCall, OpenRequest, Watched};
use super::open_requests::OpenRequests;
use super::protocol::Protocol;
use super::samples::SAMPLE_BYTES;
use super::tally::Tally;

/// Largest number of times a request is sent again: to servers that refused it, or that ended the connection in the
/// regular way after other responses.
const REFUSALS_MAX: u8 = 3;
const RETURNS_MAX: u8 = u8::MAX;
/// Number of bytes from the server kept as an example of an error: the beginning of a response, or of a failed gRPC
/// call's message.
const EXAMPLE_BYTES: usize = 120;

/// Characters before a fault in an example, and the mark for omitted characters.
const EXAMPLE_MARGIN: usize = 80;
const ELLIPSIS: &[u8] = b"...";

/// Status of a server that has waited long enough for a request.
const REQUEST_TIMEOUT: u16 = 408;

/// An established connection.
pub struct Live {
    /// The protocol.
    pub protocol: Protocol,
    /// The requests in flight.
    pub open: OpenRequests,
    /// Start of the current busy period: at least one request has been in flight ever since.
    busy_since: Nanos,
    /// End of the last request, if none is in flight.
    pub idle_since: Nanos,
    /// Number of bytes handed over that the kernel has not accepted yet.
    pub unsent: usize,
    /// The error of a failed send. Received bytes still count, and only the end of the stream shows which requests were
    /// lost.
    pub send_error: Option<Errno>,
    /// Number of further requests allowed on the connection.
    pub left: u64,
    /// Limit on requests in flight when a batch begins.
    pub depth: usize,
    /// True if the connection takes no more requests.
    pub draining: bool,
    /// True if the server ends the connection after the requests in flight: another connection may replace it.
    pub goes_away: bool,
    /// Time since which the connection has only been waiting for the server to close it.
    pub leaving_since: Option<Nanos>,
    /// Time of the last received bytes, or of the establishment.
    heard_at: Nanos,
    /// Time since which the server has not allowed any request to start.
    stuck_since: Option<Nanos>,
    /// True if the connection does not wait for the server to close: the server was not told to, or is still busy with
    /// an abandoned request.
    pub leaves_at_once: bool,
    /// True once a response is complete, or the connection has waited long enough for one.
    pub answered: bool,
    /// True if something failed since the last complete response.
    pub troubled: bool,
    /// Time of the first request turned away since the last complete response, if any.
    unanswered_since: Option<Nanos>,
    /// For each request turned away since the last look: time without any answer until then, in nanoseconds.
    pub turned_away: Vec<u64>,
    /// Next wake-up time of the protocol, if a timer is set for it.
    pub wake_at: Option<Nanos>,
    /// The memory for the response parts that the script reads, if any.
    pool: Option<KeptResponsePool>,
    /// The body so far of a response that may say that the port expects TLS, if one is arriving on this connection.
    refusal: Option<(StreamId, Vec<u8>)>,
    /// Readers of sent and of received frames, if there are frames and a transcript is wanted.
    pub frame_readers: Option<Box<[FrameReader; 2]>>,
}

impl Live {
    /// A new connection with this protocol and request limit; `depth`: in flight when another request begins; `pool`:
    /// memory for the response parts that a script reads.
    pub fn new(protocol: Protocol, requests: u64, depth: usize, now: Nanos, pool: Option<KeptResponsePool>) -> Self {
        Self {
            protocol,
            open: OpenRequests::default(),
            busy_since: Nanos::default(),
            idle_since: now,
            unsent: 0,
            send_error: None,
            left: requests,
            depth,
            draining: false,
            goes_away: false,
            heard_at: now,
            stuck_since: None,
            leaving_since: None,
            leaves_at_once: false,
            answered: false,
            troubled: false,
            unanswered_since: None,
            turned_away: Vec::new(),
            wake_at: None,
            pool,
            refusal: None,
            frame_readers: None,
        }
    }

    /// Records that the transport accepted `n` more bytes of the protocol.
    pub fn on_accepted(&mut self, n: usize) {
        self.unsent -= n;
        self.protocol.handle_sent(n);
    }

    /// Once the earlier requests of a batch have left, starts those of the rest that leave together. Returns true if
    /// anything was started.
    pub fn start_rest_of_batch(&mut self, at: Nanos, tally: &mut Tally) -> bool {
        self.open.any_waits() && self.start_waiting(at, tally)
    }

    /// Starts the waiting requests of a batch. The last request keeps the time of the batch, whose latency ends with
    /// it; the others are sent now.
    #[cold]
    fn start_waiting(&mut self, at: Nanos, tally: &mut Tally) -> bool {
        let mut any = false;
        while self.protocol.capacity() > 0
            && let Some(request) = self.open.first_waiting().filter(|request| self.protocol.leaves_together(request))
            && let Ok(stream) = self.protocol.start(request, self.draining && self.open.waiting_count() == 1)
            && let Some(mut request) = self.take_waiting(stream, tally)
        {
            if !request.is_last && !request.is_gathered {
                // The script may have written the request later in this turn.
                request.sent_at = at.max(request.sent_at);
            }
            self.open.insert(request);
            any = true;
        }
        any
    }

    /// Takes out the first request of the batch's rest, which now has this stream.
    fn take_waiting(&mut self, stream: StreamId, tally: &mut Tally) -> Option<OpenRequest> {
        if self.open.any_waits() { self.open.take_waiting(stream, tally.watch_next_request()) } else { None }
    }

    /// Adds a started request to those in flight.
    pub fn add_request(&mut self, request: OpenRequest, now: Nanos) {
        if self.open.is_empty() {
            self.busy_since = now;
        }
        self.open.insert(request);
    }

    /// Stamps the gathered requests, which go to the kernel now.
    pub fn stamp_gathered(&mut self, now: Nanos, tally: &mut Tally) {
        if self.open.are_gathered() {
            self.busy_since = now;
        }
        self.open.stamp_gathered(|request| {
            if !request.was_sent_before() {
                request.sent_at = now;
            }
            tally.count_submitted(request, now);
        });
    }

    /// Allows late requests to be counted as late again.
    pub fn reset_late(&mut self) {
        self.open.iter_mut().for_each(|request| request.late = false);
    }

    /// Counts the requests still in flight at the end of the run.
    pub fn count_open_at_end(&mut self, now: Nanos, tally: &mut Tally) {
        if !self.open.are_gathered() {
            tally.count_busy_time(self.busy_since, now);
        }
        self.open.iter_mut().for_each(|request| tally.count_open_at_end(request, now));
        for index in 0..self.open.waiting_count() {
            if let Some(request) = self.open.nth_waiting(index, tally.watch_next_request()) {
                tally.count_open_at_end(&OpenRequest { sent_at: now, ..request }, now);
            }
        }
    }

    /// Handles received bytes: passes them to the protocol, records the events, and counts the bytes.
    pub fn handle_received(&mut self, bytes: &[u8], at: Nanos, tally: &mut Tally, script: &mut Caller) {
        self.heard_at = at;
        if let Some(transcript) = &mut tally.transcript {
            match &mut self.frame_readers {
                // The opening frames of an HTTP/2 server are not a response.
                Some(readers) => readers[1].read_bytes(bytes, |frame| transcript.record_frame(false, frame)),
                None => {
                    transcript.first_received.get_or_insert(at);
                    transcript.record_received(bytes);
                }
            }
        }
        self.process_input(bytes, at, tally, script);
        tally.count_received(bytes.len(), self.troubled);
    }

    /// Notes on the request with this stream.
    fn watched_request(&mut self, stream: StreamId) -> Option<&mut Watched> {
        self.open_request(stream)?.watched.as_deref_mut()
    }

    /// True if the body of the response being read is needed.
    pub fn wants_body(&mut self, tally: &Tally) -> bool {
        let is_sample = |live: &mut Self| {
            let stream = live.protocol.reading();
            stream.and_then(|stream| live.watched_request(stream)).is_some_and(|watched| watched.sample.is_some())
        };
        tally.wants_body() || tally.watches() && is_sample(self)
    }

    /// Records that the kernel discarded `n` bytes of a body unread.
    pub fn handle_skipped(&mut self, n: u64, at: Nanos, tally: &mut Tally, script: &mut Caller) {
        if tally.watches()
            && let Some(stream) = self.protocol.reading()
            && let Some(watched) = self.watched_request(stream)
        {
            watched.body_bytes += n;
        }
        self.protocol.handle_skipped(n);
        self.process_input(&[], at, tally, script);
    }

    /// Passes bytes, if any, to the protocol and records its events; called from few places, because it is inlined.
    pub fn process_input(&mut self, mut bytes: &[u8], at: Nanos, tally: &mut Tally, script: &mut Caller) {
        loop {
            let mut taken = 0;
            if !bytes.is_empty() {
                if tally.wants_first_bytes()
                    && let Some(stream) = self.protocol.reading()
                    && let Some(request) = self.open_request(stream)
                {
                    request.first_at.get_or_insert(at);
                }
                taken = self.protocol.handle_bytes(bytes, at);
                debug_assert!(taken > 0, "a protocol takes at least one byte");
            }
            self.record_events(bytes, at, tally, script);
            if taken >= bytes.len() {
                return;
            }
            bytes = &bytes[taken.max(1)..];
        }
    }

    /// Records the protocol's events; `input`: the bytes that caused them.
    fn record_events(&mut self, input: &[u8], at: Nanos, tally: &mut Tally, script: &mut Caller) {
        let mut counted = None;
        while let Some(event) = self.protocol.poll_event() {
            match event {
                Event::Complete { stream, grpc_status, is_early } => {
                    if grpc_status != 0 || is_early {
                        self.note_outcome(stream, grpc_status, is_early, input, tally);
                    }
                    self.on_complete(stream, at, tally, script);
                }
                Event::Head { stream, status } => {
                    if status != REQUEST_TIMEOUT || !self.return_after_timeout_status(stream, at, tally) {
                        self.on_head(stream, status, input, at, tally);
                    }
                }
                Event::Data { stream, range } => self.on_data(stream, &input[range], tally, script),
                Event::Message { .. } => {}
                rare => self.record_rare_event(rare, &mut counted, input, at, tally),
            }
        }
        if counted == Some(Error::AnsweredInHttp1) {
            tally.search_tls_hint(&mut Vec::new(), input);
        }
    }

    /// Records an event that ordinary responses do not have. `counted`: the last error counted for this input.
    #[cold]
    fn record_rare_event(
        &mut self,
        event: Event,
        counted: &mut Option<Error>,
        input: &[u8],
        at: Nanos,
        tally: &mut Tally,
    ) {
        self.fail_rest_of_batch(counted, at, tally);
        match event {
            Event::Complete { .. } | Event::Head { .. } | Event::Data { .. } | Event::Message { .. } => {}
            Event::Trailer { stream } => {
                if let Some(request) = self.open.get_mut(stream) {
                    let sample = request.watched.as_mut().and_then(|watched| watched.sample.as_mut());
                    for kept in request.kept.iter_mut().chain(sample) {
                        let start = kept.trailers.bytes().len();
                        kept.trailers.add_lines(|text| self.protocol.write_text(input, text));
                        kept.trailers.unfold(start);
                    }
                }
                if let Some(transcript) = &mut tally.transcript {
                    transcript.record_trailers(&self.last_head_text(input));
                }
            }
            Event::Lives { stream } => {
                if let Some(request) = self.open_request(stream) {
                    request.lives = true;
                }
            }
            Event::Interim { stream, .. } => {
                tally.interval.counters.interim += 1;
                // Only the final response has a time to first byte.
                if let Some(request) = self.open_request(stream) {
                    request.first_at = None;
                }
                if let Some(transcript) = &mut tally.transcript {
                    transcript.first_received = None;
                }
                self.transcribe_head(input, tally);
            }
            Event::Failed { stream, error, retryable } => {
                if self.on_failed(stream, error, retryable, input, at, tally) {
                    *counted = Some(error);
                }
            }
            // The end of the stream is reported without input.
            Event::Draining { error: Some(Error::ClosedBeforeResponse) } if !input.is_empty() => {
                self.draining = true;
                self.troubled |= tally.count_idle_close(at);
            }
            Event::Draining { error } => {
                self.draining = true;
                self.goes_away = error.is_none();
                self.troubled |= error.is_some();
                // An error that failed requests has been counted already. A GOAWAY that fails no request is not an
                // error: it is counted with the ended connections.
                let is_said = error == *counted || matches!(error, Some(Error::GoAway(_)));
                if let Some(error) = error.filter(|_| !is_said) {
                    let example = || example(error, input, &self.protocol);
                    tally.record_error(phase_of(error.failed_part()), Cause::Protocol(error), at, example);
                    *counted = Some(error);
                }
            }
        }
    }

    /// Fails the rest of a batch if the connection takes no more requests.
    fn fail_rest_of_batch(&mut self, counted: &mut Option<Error>, at: Nanos, tally: &mut Tally) {
        let Some((error, retryable)) = self.protocol.rest_of_batch_error() else { return };
        while let Some(request) = self.take_waiting(StreamId(0), tally) {
            self.on_request_ended(&request, at, tally);
            if self.record_unanswered(request, error, retryable, &[], at, tally) {
                *counted = Some(error);
            }
        }
    }

    /// Fails all requests in flight with the transport, or only the connection if none was in flight.
    pub fn on_transport_failed(&mut self, cause: Cause, example: &[u8], at: Nanos, tally: &mut Tally) {
        let known = self.protocol.take_settled_requests();
        let has_known = !known.is_empty();
        for (stream, error, retryable) in known {
            self.on_failed(stream, error, retryable, &[], at, tally);
        }
        self.troubled = true;
        let (cause, is_send) = self.send_error.map_or((cause, false), |errno| (cause_of(errno), true));
        if self.open.is_empty() && !has_known {
            tally.record_error(if is_send { Phase::Send } else { Phase::Head }, cause, at, || example.to_vec());
        }
        if !self.open.are_gathered() {
            tally.count_busy_time(self.busy_since, at);
        }
        let fail = |request: &OpenRequest, tally: &mut Tally| {
            let phase = if is_send { Phase::Send } else { phase_of_transport(request) };
            tally.record_failed(request, phase, cause, at, || example.to_vec());
        };
        self.open.drain().for_each(|request| fail(&request, tally));
        while let Some(request) = self.take_waiting(StreamId(0), tally) {
            fail(&request, tally);
        }
    }

    /// Abandons the requests older than `limit_ns` and counts late ones.
    pub fn abandon_overdue(&mut self, limit_ns: Option<u64>, now: Nanos, tally: &mut Tally) {
        if let Some(limit_ns) = limit_ns {
            for stream in self.open.older_than(limit_ns, now) {
                self.abandon_with_followers(stream, limit_ns, now, tally);
            }
        }
        for request in self.open.iter_mut().filter(|request| !request.lives && !request.is_gathered) {
            if tally.becomes_late(request, now.since(request.sent_at)) {
                request.late = true;
                tally.count_late_with_cause(self.protocol.late_cause(request.stream), now);
            }
        }
    }

    /// Abandons a request and all requests whose responses must follow its response.
    fn abandon_with_followers(&mut self, stream: StreamId, limit_ns: u64, now: Nanos, tally: &mut Tally) {
        if self.open.get_mut(stream).is_none() {
            // The request ended with an earlier one.
            return;
        }
        // A request may be older than its connection.
        let want = self.protocol.overdue_server_event(Some(stream)).filter(|_| now.since(self.busy_since) >= limit_ns);
        self.protocol.cancel(stream);
        match want.and_then(|error| Some((error, self.end_request(stream, now, tally)?))) {
            Some((error, request)) => {
                tally.record_failed(&request, phase_of(error.failed_part()), Cause::Protocol(error), now, Vec::new);
                // The next connection may do better.
                (self.draining, self.troubled) = (true, true);
            }
            None => self.abandon(stream, now, tally),
        }
        // Other requests on the connection may continue, unless nothing arrives at all.
        if self.protocol.is_http2() && now.since(self.heard_at) >= limit_ns {
            (self.draining, self.goes_away) = (true, true);
        }
        while let Some(event) = self.protocol.poll_event() {
            match event {
                Event::Failed { stream, retryable: false, .. } => self.abandon(stream, now, tally),
                Event::Failed { stream, error, .. } => {
                    self.on_failed(stream, error, true, &[], now, tally);
                }
                Event::Draining { .. } => self.draining = true,
                _ => debug_assert!(false, "nothing else follows from giving up: {event:?}"),
            }
        }
        while self.protocol.rest_of_batch_error().is_some()
            && let Some(request) = self.take_waiting(StreamId(0), tally)
        {
            self.on_request_ended(&request, now, tally);
            tally.count_abandoned(&request, now);
        }
        if self.draining && want.is_none() {
            // The connection has waited long enough: the next one need not back off in addition.
            self.answered = true;
            self.troubled = false;
            self.leaves_at_once = true;
        }
    }

    /// True if the connection has waited longer than the limit for something that every request needs, such as
    /// SETTINGS. Counts the failure.
    pub fn is_stuck(&mut self, limit_ns: Option<u64>, now: Nanos, tally: &mut Tally) -> bool {
        let Some(error) = self.protocol.overdue_server_event(None).filter(|_| self.open.is_empty()) else {
            self.stuck_since = None;
            return false;
        };
        let since = *self.stuck_since.get_or_insert(now);
        if limit_ns.is_none_or(|limit_ns| now.since(since) < limit_ns) {
            return false;
        }
        self.troubled = true;
        tally.record_error(phase_of(error.failed_part()), Cause::Protocol(error), now, Vec::new);
        true
    }

    fn abandon(&mut self, stream: StreamId, now: Nanos, tally: &mut Tally) {
        if let Some(request) = self.end_request(stream, now, tally) {
            tally.count_abandoned(&request, now);
        }
    }

    /// Records an early response or a failed gRPC call. Call before the trailers are dropped: `input` still contains
    /// the message.
    #[cold]
    fn note_outcome(&mut self, stream: StreamId, grpc_status: u8, is_early: bool, input: &[u8], tally: &mut Tally) {
        let Some(request) = self.open.get_mut(stream) else { return };
        tally.interval.counters.early += u64::from(is_early);
        if grpc_status != 0 {
            let message = self.protocol.fields(input).value(b"grpc-message").unwrap_or_default();
            let mut message = percent_encoding::percent_decoded(&message[..message.len().min(3 * EXAMPLE_BYTES)]);
            message.truncate(EXAMPLE_BYTES);
            request.watched.get_or_insert_default().failed_call = Some(FailedCall { status: grpc_status, message });
        }
    }

    fn on_complete(&mut self, stream: StreamId, at: Nanos, tally: &mut Tally, script: &mut Caller) {
        let Some(mut request) = self.end_request(stream, at, tally) else { return };
        self.answered = true;
        self.troubled = false;
        self.unanswered_since = None;
        let latency_ns = tally.record_complete(&mut request, at);
        if let Some(transcript) = &mut tally.transcript {
            transcript.completed = Some(at);
        }
        if script.wants.response {
            self.pass_to_script(request, latency_ns, tally, script);
        }
    }

    /// Passes a complete response to the script.
    fn pass_to_script(&mut self, request: OpenRequest, latency_ns: u64, tally: &mut Tally, script: &mut Caller) {
        let (head, trailers, body) = request
            .kept
            .as_ref()
            .map_or_else(Default::default, |kept| (kept.head.bytes(), kept.trailers.bytes(), kept.body.bytes()));
        let remark = request.content.as_ref().and_then(Request::remark);
        script.pass_response_to_script(&Response {
            status: request.status.unwrap_or(0),
            head,
            trailers,
            body,
            latency_ns,
            remark,
        });
        if let (Some(pool), Some(kept)) = (&mut self.pool, request.kept) {
            tally.interval.counters.cut_responses += u64::from(kept.was_truncated());
            pool.recycle_memory(kept);
        }
    }

    /// Handles a response with status 408 that only says that the server had ended an idle connection before the
    /// request arrived: sends the request again, once. Returns true in that case.
    #[cold]
    fn return_after_timeout_status(&mut self, stream: StreamId, at: Nanos, tally: &mut Tally) -> bool {
        let is_again = self.open_request(stream).is_none_or(|request| request.was_sent_before());
        if is_again || tally.counts_idle_closes() || !self.protocol.decline_timeout(stream) {
            return false;
        }
        if let Some(request) = self.end_request(stream, at, tally) {
            tally.queue_returned(OpenRequest { first_at: None, ..request }, at);
        }
        tally.count_idle_close(at);
        true
    }

    #[inline(always)]
    fn on_head(&mut self, stream: StreamId, status: u16, input: &[u8], at: Nanos, tally: &mut Tally) {
        if let Some(transcript) = &mut tally.transcript {
            transcript.first_received.get_or_insert(at);
        }
        if let Some(request) = self.open.get_mut(stream) {
            request.status = Some(status);
            if tally.wants_first_bytes() {
                request.first_at.get_or_insert(at);
            }
            if let Some(watched) = &mut request.watched {
                if let Some(checks) = &mut tally.checks {
                    checks.check_head(&mut watched.checked, &self.protocol.fields(input));
                }
                let fields = self.protocol.fields(input);
                if let Some(samples) = tally.samples.as_mut().filter(|samples| samples.may_sample(status, &fields)) {
                    let sample = watched.sample.get_or_insert_with(|| samples.pool().take_memory());
                    sample.head.add_lines(|text| self.protocol.write_text(input, text));
                }
            }
            if let Some(pool) = &mut self.pool {
                let kept = request.kept.get_or_insert_with(|| pool.take_memory());
                kept.head.add_lines(|text| self.protocol.write_text(input, text));
            }
        }
        if status >= 300 {
            if tally.wants_location(status) {
                tally.keep_location(self.protocol.fields(input).value(b"location"));
            } else if status == 400 && tally.wants_tls_hint() {
                self.refusal = Some((stream, Vec::new()));
            }
        }
        if tally.transcript.is_some() {
            self.transcribe_head(input, tally);
        }
    }

    fn on_data(&mut self, stream: StreamId, data: &[u8], tally: &mut Tally, script: &Caller) {
        if let Some(transcript) = &mut tally.transcript {
            transcript.record_data(data);
        }
        if let Some((of, refusal)) = &mut self.refusal
            && *of == stream
            && tally.search_tls_hint(refusal, data)
        {
            tally.count_tls_hint();
            self.refusal = None;
        }
        if tally.watches()
            && let Some(watched) = self.watched_request(stream)
        {
            watched.body_bytes += data.len() as u64;
            if let Some(checks) = &mut tally.checks {
                checks.search_body(&mut watched.checked, data);
            }
            if let Some(sample) = &mut watched.sample {
                let room = SAMPLE_BYTES.saturating_sub(sample.body.bytes().len());
                sample.body.add(&data[..data.len().min(room)]);
            }
        }
        if script.wants.body
            && let Some(kept) = self.open_request(stream).and_then(|request| request.kept.as_mut())
        {
            kept.body.add(data);
        }
    }

    fn open_request(&mut self, stream: StreamId) -> Option<&mut OpenRequest> {
        self.open.get_mut(stream)
    }

    /// Handles a request that got no response or must be sent again. Returns true if it counts as failed.
    fn on_failed(
        &mut self,
        stream: StreamId,
        error: Error,
        retryable: bool,
        input: &[u8],
        at: Nanos,
        tally: &mut Tally,
    ) -> bool {
        let Some(request) = self.end_request(stream, at, tally) else { return false };
        self.record_unanswered(request, error, retryable, input, at, tally)
    }

    /// [`Self::on_failed`] for a request that has been taken out.
    fn record_unanswered(
        &mut self,
        request: OpenRequest,
        error: Error,
        retryable: bool,
        input: &[u8],
        at: Nanos,
        tally: &mut Tally,
    ) -> bool {
        // A server that processes nothing is not asked again and again. One that has not answered yet may just have got
        // more requests than it allows, before it could say so.
        let returns_max = match error {
            Error::GoAway(Code::NO_ERROR) if self.answered || self.protocol.processes_some() => RETURNS_MAX,
            _ if !self.answered => 1,
            _ => REFUSALS_MAX,
        };
        let retryable = retryable && request.returns < returns_max;
        self.troubled |= !retryable;
        let since = *self.unanswered_since.get_or_insert(at);
        self.turned_away.push(at.since(since));
        if retryable {
            tally.queue_returned(request, at);
        } else {
            let phase = if request.status.is_some() { Phase::Body } else { phase_of(error.failed_part()) };
            if let (Protocol::Http1(client), None) = (&self.protocol, request.status)
                && error.is_unreadable()
            {
                // The beginning of the input may be in the middle of the head, with the flaw far behind.
                let (text, line, place) = client.flaw(input);
                if let Some(transcript) = &mut tally.transcript {
                    transcript.record_head(text);
                    transcript.unread.clear();
                }
                tally.record_failed(&request, phase, Cause::Protocol(error), at, || around(text, line, place));
            } else {
                tally.record_failed(&request, phase, Cause::Protocol(error), at, || {
                    example(error, input, &self.protocol)
                });
            }
        }
        !retryable
    }

    fn end_request(&mut self, stream: StreamId, at: Nanos, tally: &mut Tally) -> Option<OpenRequest> {
        let request = self.open.remove(stream)?;
        self.on_request_ended(&request, at, tally);
        Some(request)
    }

    /// Updates the connection's state after a request has been taken out.
    fn on_request_ended(&mut self, request: &OpenRequest, at: Nanos, tally: &mut Tally) {
        // Gathered requests leave with the next wait. The connection is busy again only from then on.
        if self.open.are_gathered() {
            if !request.is_gathered {
                tally.count_busy_time(self.busy_since, at);
            }
            self.idle_since = at;
        }
    }

    /// Records sent bytes in the transcript.
    #[cold]
    pub fn transcribe_sent(&mut self, bytes: &[u8], at: Nanos, transcript: &mut Transcript) {
        transcript.record_sent(bytes, !self.open.is_empty(), at);
        if let Some(readers) = &mut self.frame_readers {
            readers[0].read_bytes(bytes, |frame| transcript.record_frame(true, frame));
        }
    }

    #[cold]
    fn transcribe_head(&self, input: &[u8], tally: &mut Tally) {
        if let Some(transcript) = &mut tally.transcript {
            transcript.record_head(&self.last_head_text(input));
        }
    }

    /// The head or trailers that the last event refers to.
    fn last_head_text(&self, input: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        self.protocol.write_text(input, &mut text);
        text
    }
}

/// The beginning of the erroneous bytes, or the server's explanation. Empty if the server only closed the connection,
/// or if the bytes would mean nothing to a reader.
fn example(error: Error, input: &[u8], protocol: &Protocol) -> Vec<u8> {
    match error {
        Error::ClosedBeforeResponse | Error::ClosedInHead | Error::ClosedInBody | Error::ConnectionEnded => Vec::new(),
        Error::GoAway(_) => protocol.goaway_text().to_vec(),
        // Frames are meaningless to a reader.
        Error::Reset(_) | Error::Breach(_) => Vec::new(),
        _ => input[..input.len().min(EXAMPLE_BYTES)].to_vec(),
    }
}

/// The text around a place in the line that begins at `line`; starts at the beginning of the text or of the line if
/// that is near.
fn around(text: &[u8], line: usize, place: usize) -> Vec<u8> {
    // An unprintable byte is shown as four characters.
    let width = |byte: &u8| if matches!(byte, b' '..=b'~') { 1 } else { 4 };
    let is_near = |start: &usize| text[*start..place].iter().map(width).sum::<usize>() <= EXAMPLE_MARGIN;
    let start = [0, line].into_iter().find(is_near).unwrap_or(place.saturating_sub(EXAMPLE_MARGIN / 4));
    let mut example = Vec::with_capacity(EXAMPLE_BYTES);
    if start > 0 {
        example.extend_from_slice(ELLIPSIS);
    }
    if start > line && line > 0 {
        // A field's name shows whether its value is a secret.
        let name = text[line..place].iter().take(EXAMPLE_MARGIN / 4).take_while(|byte| **byte != b':');
        example.extend(name.chain(b": ").chain(ELLIPSIS));
    }
    let end = text.len().min(start + EXAMPLE_BYTES - example.len());
    example.extend_from_slice(&text[start..end]);
    example
}
