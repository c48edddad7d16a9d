//! An exchange: a request and its response on the same stream.
//!
//! An exchange takes the same steps as an HTTP/1.1 request, but in parallel with the others on its connection. The
//! library wakes it when it can continue; until then it costs nothing.
//!
//! ```text
//!   Receiving ──► Queued ───► Waiting ──► Sending ──► over
//!   (a body)      (a place)   (a time)    (a body)
//! ```

use std::borrow::Cow;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};

use super::super::claim::Claim;
use super::super::inbox::WakeCall;
use super::super::places::{Admission, AdmissionLimit};
use super::super::reply::{AfterBody, Reply};
use super::super::resources::Resources;
use super::super::response::{AfterResponse, Response, ResponseStart};
use super::super::stream::{BLOCK, BodyStream};
use super::super::token::PollToken;
use super::message;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    respond: SendResponse<Bytes>,
    stage: ExchangeStage,
}

#[derive(Debug)]
enum ExchangeStage {
    /// Receives the request body.
    Receiving { body: RecvStream, received: u64, then: AfterBody },
    /// Sends nothing until given a place.
    Queued { claim: Claim, response: Box<Response> },
    /// Sends nothing until a time, in nanoseconds of the thread's clock. A worker, if any, is busy until then.
    Waiting { until_ns: u64, response: Box<Response>, worker: Option<Admission> },
    /// Sends a body within the client's windows.
    Sending { stream: SendStream<Bytes>, content: Content, end: AfterResponse },
    /// Sends nothing until the client resets the stream.
    Hanging,
}

/// Parts of the connection that an exchange needs.
pub(super) struct Environment<'a> {
    pub resources: &'a Resources,
    /// The connection's place for `/prefork`, once a request has asked for it.
    pub process: &'a mut Option<Admission>,
    /// Token by which wakeups name the connection.
    pub token: PollToken,
    /// Number by which wakeups name the exchange.
    pub index: usize,
    /// Number of request bytes kept by the other exchanges of the connection.
    pub kept: usize,
}

#[derive(Debug)]
pub(super) enum ExchangeProgress {
    /// Waits for a wakeup or until this time, in nanoseconds of the thread's clock; without a time, only for a wakeup.
    Waits(Option<u64>),
    /// The exchange is over.
    Over,
    /// The exchange is over, and the connection accepts no more requests.
    GoAway,
    /// The exchange and the connection are over.
    Ends(ConnectionEnding),
}

/// How a connection ends after all earlier output has been sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConnectionEnding {
    /// The connection is closed.
    Closed,
    /// These bytes, which are not a frame, are sent.
    Garbage(&'static [u8]),
    /// An endless head is sent on this stream.
    EndlessHead(u32),
}

/// Maximum size of a request that `/echo` keeps, and of all requests that a connection keeps.
const ECHO_BYTES_MAX: usize = 1 << 20;
const KEPT_BYTES_MAX: usize = 16 << 20;

const TOO_LONG_TO_ECHO: &[u8] = b"/echo keeps at most 1 MiB\n";
const TOO_MUCH_TO_ECHO: &[u8] = b"/echo keeps at most 16 MiB for all streams of a connection\n";

impl Exchange {
    /// Creates the exchange for a request whose head was received, and sends what is due before the request body: an
    /// early response or `100 Continue`.
    pub(super) fn new(
        mut respond: SendResponse<Bytes>,
        body: RecvStream,
        reply: Reply,
        expects_continue: bool,
    ) -> Self {
        match &reply.early {
            Some(response) => send_early(&mut respond, response),
            None if expects_continue && !body.is_end_stream() => send_interim(&mut respond, 100, ""),
            None => {}
        }
        Self { respond, stage: ExchangeStage::Receiving { body, received: 0, then: reply.then } }
    }

    /// Number of request bytes that the exchange keeps, to echo them.
    pub(super) fn kept_bytes(&self) -> usize {
        match &self.stage {
            ExchangeStage::Receiving { then: AfterBody::Echo(request, _), .. } => request.len(),
            ExchangeStage::Sending { content: Content::Bytes(bytes), .. } => bytes.len(),
            _ => 0,
        }
    }

    /// Makes as much progress as possible without blocking. Returns what the exchange waits for.
    pub(super) fn advance(&mut self, context: &mut Context<'_>, environment: &mut Environment<'_>) -> ExchangeProgress {
        loop {
            let progress = match &mut self.stage {
                ExchangeStage::Receiving { .. } => self.receive_body(context, environment),
                ExchangeStage::Queued { .. } => self.await_place(context, environment),
                ExchangeStage::Waiting { .. } => self.await_time(context, environment.resources.now_ns()),
                ExchangeStage::Sending { .. } => self.send_body(context, environment.resources.now_ns()),
                ExchangeStage::Hanging => Some(self.wait_for_wakeup(context, None)),
            };
            if let Some(progress) = progress {
                return progress;
            }
        }
    }

    /// Receives a piece of the body, and responds at its end.
    fn receive_body(&mut self, context: &mut Context<'_>, environment: &Environment<'_>) -> Option<ExchangeProgress> {
        let ExchangeStage::Receiving { body, received, then } = &mut self.stage else { return None };
        let piece = match body.poll_data(context) {
            Poll::Pending => return Some(ExchangeProgress::Waits(None)),
            Poll::Ready(Some(Ok(piece))) => piece,
            Poll::Ready(Some(Err(_))) => return Some(ExchangeProgress::Over),
            Poll::Ready(None) => {
                let ExchangeStage::Receiving { received, then, .. } =
                    std::mem::replace(&mut self.stage, ExchangeStage::Hanging)
                else {
                    return None;
                };
                return self.begin_response(then.into_response(received), environment.resources);
            }
        };
        *received += piece.len() as u64;
        // This fails if the client has reset the stream, which the next piece reports.
        let _ = body.flow_control().release_capacity(piece.len());
        if let AfterBody::Echo(request, manner) = then {
            let bytes = request.len() + piece.len();
            let too_much = match () {
                () if bytes > ECHO_BYTES_MAX => TOO_LONG_TO_ECHO,
                () if bytes + environment.kept > KEPT_BYTES_MAX => TOO_MUCH_TO_ECHO,
                () => {
                    request.extend_from_slice(&piece);
                    return None;
                }
            };
            // The rest of the body is discarded: a client may read the response only after sending it.
            let refusal = Response::text_response(413, too_much, *manner);
            *then = AfterBody::Response(Box::new(Response::empty_response(AfterResponse::Next)));
            send_early(&mut self.respond, &refusal);
        }
        None
    }

    fn begin_response(&mut self, mut response: Box<Response>, resources: &Resources) -> Option<ExchangeProgress> {
        if let Some(limit) = response.limit.take() {
            self.stage = ExchangeStage::Queued { claim: Claim::new(limit), response };
            return None;
        }
        if !response.wait.is_zero() {
            let until_ns = resources.now_ns() + std::mem::take(&mut response.wait).as_nanos() as u64;
            self.stage = ExchangeStage::Waiting { until_ns, response, worker: None };
            return None;
        }
        self.send_head(*response)
    }

    fn await_place(
        &mut self,
        context: &mut Context<'_>,
        environment: &mut Environment<'_>,
    ) -> Option<ExchangeProgress> {
        let ExchangeStage::Queued { claim, .. } = &mut self.stage else { return None };
        let Environment { resources, process, token, index, .. } = environment;
        let call = |limit| WakeCall {
            token: *token,
            exchange: Some(*index).filter(|_| matches!(limit, AdmissionLimit::Pool { .. })),
        };
        let Some(begins_at) = claim.service_start(process, resources, call) else {
            return Some(self.wait_for_wakeup(context, None));
        };
        if let ExchangeStage::Queued { claim, mut response } =
            std::mem::replace(&mut self.stage, ExchangeStage::Hanging)
        {
            let until = begins_at + std::mem::take(&mut response.wait);
            let worker = claim.worker_until(until);
            self.stage = ExchangeStage::Waiting { until_ns: resources.ns_of(until), response, worker };
        }
        None
    }

    fn await_time(&mut self, context: &mut Context<'_>, now_ns: u64) -> Option<ExchangeProgress> {
        let ExchangeStage::Waiting { until_ns, .. } = &self.stage else { return None };
        let until_ns = *until_ns;
        if now_ns < until_ns {
            return Some(self.wait_for_wakeup(context, Some(until_ns)));
        }
        let ExchangeStage::Waiting { response, worker, .. } =
            std::mem::replace(&mut self.stage, ExchangeStage::Hanging)
        else {
            return None;
        };
        // The worker proceeds to the next request.
        drop(worker);
        self.send_head(*response)
    }

    /// Waits, unless the client has reset the stream.
    fn wait_for_wakeup(&mut self, context: &mut Context<'_>, until_ns: Option<u64>) -> ExchangeProgress {
        let reset = match &mut self.stage {
            ExchangeStage::Sending { stream, .. } => stream.poll_reset(context),
            _ => self.respond.poll_reset(context),
        };
        if reset.is_ready() { ExchangeProgress::Over } else { ExchangeProgress::Waits(until_ns) }
    }

    /// Sends the head of a response, or the HTTP/2 substitute.
    fn send_head(&mut self, response: Response) -> Option<ExchangeProgress> {
        let Response { message, stream, end, .. } = response;
        let (head, body) = match message {
            ResponseStart::Http(head, body) => (head, body),
            ResponseStart::BrokenChunks(_) => return Some(self.reset_stream(Reason::PROTOCOL_ERROR)),
            ResponseStart::EndlessHead => {
                return Some(ExchangeProgress::Ends(ConnectionEnding::EndlessHead(self.respond.stream_id().as_u32())));
            }
            ResponseStart::Garbage(bytes) => return Some(ExchangeProgress::Ends(ConnectionEnding::Garbage(bytes))),
            ResponseStart::Nothing if end == AfterResponse::Hang => {
                self.stage = ExchangeStage::Hanging;
                return None;
            }
            ResponseStart::Nothing if end == AfterResponse::Reset => {
                return Some(self.reset_stream(Reason::INTERNAL_ERROR));
            }
            ResponseStart::Nothing => return Some(ExchangeProgress::after_response(end)),
        };
        if let Some((status, fields)) = head.interim {
            send_interim(&mut self.respond, status, fields);
        }
        let content = stream.map_or_else(|| Content::Bytes(to_bytes(body)), Content::Stream);
        let Some(head) = message::to_http2_head(&head) else { return Some(self.reset_stream(Reason::INTERNAL_ERROR)) };
        let is_all = content.is_finished() && content.trailer().is_none();
        match self.respond.send_response(head, is_all) {
            Ok(_) if is_all => Some(ExchangeProgress::after_response(end)),
            Ok(stream) => {
                self.stage = ExchangeStage::Sending { stream, content, end };
                None
            }
            Err(_) => Some(ExchangeProgress::Over),
        }
    }

    fn reset_stream(&mut self, reason: Reason) -> ExchangeProgress {
        self.respond.send_reset(reason);
        ExchangeProgress::Over
    }

    /// Sends a piece of the body.
    fn send_body(&mut self, context: &mut Context<'_>, now_ns: u64) -> Option<ExchangeProgress> {
        let ExchangeStage::Sending { stream, content, end } = &mut self.stage else { return None };
        let end = *end;
        if content.is_finished() {
            if let Some(trailer) = content.trailer() {
                // This fails if the client has reset the stream.
                let _ = stream.send_trailers(message::to_trailers(trailer));
            }
            return Some(ExchangeProgress::after_response(end));
        }
        let ready = content.ready_bytes(now_ns);
        if ready == 0 {
            let until_ns = content.next_ready_ns(now_ns);
            return Some(self.wait_for_wakeup(context, until_ns));
        }
        stream.reserve_capacity(ready.min(BLOCK.len()));
        match window_capacity(stream, context) {
            Poll::Pending => Some(ExchangeProgress::Waits(None)),
            Poll::Ready(None) => Some(ExchangeProgress::Over),
            Poll::Ready(Some(0)) => None,
            Poll::Ready(Some(room)) => {
                let piece = content.take_bytes(ready.min(room));
                let is_last = content.is_finished() && content.trailer().is_none();
                match stream.send_data(piece, is_last) {
                    Ok(()) if is_last => Some(ExchangeProgress::after_response(end)),
                    Ok(()) => None,
                    Err(_) => Some(ExchangeProgress::Over),
                }
            }
        }
    }
}

impl ExchangeProgress {
    /// The stage after the last byte of a response.
    fn after_response(end: AfterResponse) -> Self {
        match end {
            AfterResponse::Next | AfterResponse::CloseUnframed | AfterResponse::Reset | AfterResponse::Hang => {
                Self::Over
            }
            AfterResponse::Close => Self::GoAway,
            AfterResponse::CloseUntold => Self::Ends(ConnectionEnding::Closed),
        }
    }
}

/// Content of a response being sent.
#[derive(Debug)]
enum Content {
    /// Fixed bytes.
    Bytes(Bytes),
    /// Bytes generated during sending.
    Stream(BodyStream),
}

impl Content {
    /// Number of bytes that are due and may be sent now.
    fn ready_bytes(&mut self, now_ns: u64) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Stream(stream) => stream.ready_bytes(now_ns).min(BLOCK.len() as u64) as usize,
        }
    }

    /// Takes the next `bytes` bytes, which are ready.
    fn take_bytes(&mut self, bytes: usize) -> Bytes {
        match self {
            Self::Bytes(rest) => rest.split_to(bytes.min(rest.len())),
            Self::Stream(stream) => {
                stream.advance(bytes as u64);
                Bytes::from_static(&BLOCK[..bytes])
            }
        }
    }

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Bytes(_) => None,
            Self::Stream(stream) => stream.next_due_ns(now_ns),
        }
    }

    fn is_finished(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Stream(stream) => stream.is_finished(),
        }
    }

    fn trailer(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Bytes(_) => None,
            Self::Stream(stream) => stream.trailer(),
        }
    }
}

/// Number of bytes allowed by the client's windows; `None` if the client has reset the stream.
fn window_capacity(stream: &mut SendStream<Bytes>, context: &mut Context<'_>) -> Poll<Option<usize>> {
    match stream.capacity() {
        0 => Poll::Ready(ready!(stream.poll_capacity(context)).and_then(Result::ok)),
        bytes => Poll::Ready(Some(bytes)),
    }
}

/// Sends a short response before the request is complete.
fn send_early(respond: &mut SendResponse<Bytes>, response: &Response) {
    let ResponseStart::Http(head, body) = &response.message else { return };
    let Some(head) = message::to_http2_head(head) else { return };
    // Either call fails if the client has reset the stream, which the next step detects.
    if let Ok(mut stream) = respond.send_response(head, body.is_empty())
        && !body.is_empty()
    {
        let _ = stream.send_data(to_bytes(body.clone()), true);
    }
}

fn send_interim(respond: &mut SendResponse<Bytes>, status: u16, fields: &str) {
    if let Some(head) = message::head_with_fields(status, fields) {
        // This fails if the client has reset the stream, which the next step detects.
        let _ = respond.send_informational(head);
    }
}

fn to_bytes(body: Cow<'static, [u8]>) -> Bytes {
    match body {
        Cow::Borrowed(body) => Bytes::from_static(body),
        Cow::Owned(body) => Bytes::from(body),
    }
}
