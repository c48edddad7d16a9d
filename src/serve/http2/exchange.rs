//! One exchange: a request, and its response on the same stream.
//!
//! It takes the way of a request over HTTP/1.1, but beside others of its connection. The library calls when it can go on;
//! until then it costs nothing.
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
use super::super::inbox::Call;
use super::super::places::{Limit, Place};
use super::super::reply::{Reply, Then};
use super::super::resources::Resources;
use super::super::response::{End, Message, Response};
use super::super::stream::{BLOCK, Stream};
use super::super::token::Token;
use super::message;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    respond: SendResponse<Bytes>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Receives the body of the request.
    Receiving { body: RecvStream, received: u64, then: Then },
    /// Sends nothing before a place is given.
    Queued { claim: Claim, response: Box<Response> },
    /// Sends nothing before a time, in nanoseconds of the thread's clock. Any worker is busy until then.
    Waiting { until_ns: u64, response: Box<Response>, worker: Option<Place> },
    /// Sends a body as the client's windows allow.
    Sending { stream: SendStream<Bytes>, content: Content, end: End },
    /// Sends nothing until the client resets the stream.
    Hanging,
}

/// Parts of its connection that an exchange needs.
pub(super) struct Environment<'a> {
    pub resources: &'a Resources,
    /// The connection's place among the served ones.
    pub process: &'a mut Option<Place>,
    /// Where the connection is called.
    pub token: Token,
    /// The number by which the exchange is called.
    pub index: usize,
    /// The bytes of requests that the other exchanges of the connection keep.
    pub kept: usize,
}

#[derive(Debug)]
pub(super) enum Progress {
    /// Waits for a call or for this time, in nanoseconds of the thread's clock.
    Waits(Option<u64>),
    /// The exchange is over.
    Over,
    /// The exchange is over, and the connection takes no more requests.
    GoAway,
    /// The exchange is over, and so is the connection.
    Ends(Ending),
}

/// How a connection ends, once everything has been sent that came before.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// The connection is closed.
    Closed,
    /// These bytes are sent, which are no frame.
    Garbage(&'static [u8]),
    /// Header fields are sent on this stream without end.
    EndlessHead(u32),
}

/// The longest request that `/echo` keeps, and the most bytes that all requests of a connection keep.
const ECHO_BYTES_MAX: usize = 1 << 20;
const KEPT_BYTES_MAX: usize = 16 << 20;

const TOO_LONG_TO_ECHO: &[u8] = b"/echo keeps at most 1 MiB\n";
const TOO_MUCH_TO_ECHO: &[u8] = b"/echo keeps at most 16 MiB for all streams of a connection\n";

impl Exchange {
    /// An exchange whose head was received; sends the part before the body of the request.
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
        Self { respond, stage: Stage::Receiving { body, received: 0, then: reply.then } }
    }

    /// The bytes of the request that it keeps.
    pub(super) fn kept(&self) -> usize {
        match &self.stage {
            Stage::Receiving { then: Then::Echo(request, _), .. } => request.len(),
            Stage::Sending { content: Content::Bytes(bytes), .. } => bytes.len(),
            _ => 0,
        }
    }

    /// Goes on as far as possible.
    pub(super) fn advance(&mut self, context: &mut Context<'_>, environment: &mut Environment<'_>) -> Progress {
        loop {
            let progress = match &mut self.stage {
                Stage::Receiving { .. } => self.receive(context, environment),
                Stage::Queued { .. } => self.await_place(context, environment),
                Stage::Waiting { .. } => self.await_time(context, environment.resources.now_ns()),
                Stage::Sending { .. } => self.send(context, environment.resources.now_ns()),
                Stage::Hanging => Some(self.wait(context, None)),
            };
            if let Some(progress) = progress {
                return progress;
            }
        }
    }

    /// Receives a piece of the body, and responds when it is complete.
    fn receive(&mut self, context: &mut Context<'_>, environment: &Environment<'_>) -> Option<Progress> {
        let Stage::Receiving { body, received, then } = &mut self.stage else { return None };
        let piece = match body.poll_data(context) {
            Poll::Pending => return Some(Progress::Waits(None)),
            Poll::Ready(Some(Ok(piece))) => piece,
            Poll::Ready(Some(Err(_))) => return Some(Progress::Over),
            Poll::Ready(None) => {
                let Stage::Receiving { received, then, .. } = std::mem::replace(&mut self.stage, Stage::Hanging) else {
                    return None;
                };
                return self.begin(then.response(received), environment.resources);
            }
        };
        *received += piece.len() as u64;
        // This fails if the client has reset the stream, which the next piece tells.
        let _ = body.flow_control().release_capacity(piece.len());
        if let Then::Echo(request, manner) = then {
            let bytes = request.len() + piece.len();
            let too_much = match () {
                () if bytes > ECHO_BYTES_MAX => TOO_LONG_TO_ECHO,
                () if bytes + environment.kept > KEPT_BYTES_MAX => TOO_MUCH_TO_ECHO,
                () => {
                    request.extend_from_slice(&piece);
                    return None;
                }
            };
            // The rest of the body is discarded: a client may read the response only afterwards.
            let refusal = Response::text(413, too_much, *manner);
            *then = Then::Response(Box::new(Response::nothing(End::Next)));
            send_early(&mut self.respond, &refusal);
        }
        None
    }

    fn begin(&mut self, mut response: Box<Response>, resources: &Resources) -> Option<Progress> {
        if let Some(limit) = response.limit.take() {
            self.stage = Stage::Queued { claim: Claim::new(limit), response };
            return None;
        }
        if !response.wait.is_zero() {
            let until_ns = resources.now_ns() + std::mem::take(&mut response.wait).as_nanos() as u64;
            self.stage = Stage::Waiting { until_ns, response, worker: None };
            return None;
        }
        self.respond(*response)
    }

    fn await_place(&mut self, context: &mut Context<'_>, environment: &mut Environment<'_>) -> Option<Progress> {
        let Stage::Queued { claim, .. } = &mut self.stage else { return None };
        let Environment { resources, process, token, index, .. } = environment;
        let call =
            |limit| Call { token: *token, exchange: Some(*index).filter(|_| matches!(limit, Limit::Pool { .. })) };
        let Some(begins_at) = claim.begins_at(process, resources, call) else {
            return Some(self.wait(context, None));
        };
        if let Stage::Queued { claim, mut response } = std::mem::replace(&mut self.stage, Stage::Hanging) {
            let until = begins_at + std::mem::take(&mut response.wait);
            let worker = claim.worker_until(until);
            self.stage = Stage::Waiting { until_ns: resources.ns_of(until), response, worker };
        }
        None
    }

    fn await_time(&mut self, context: &mut Context<'_>, now_ns: u64) -> Option<Progress> {
        let Stage::Waiting { until_ns, .. } = &self.stage else { return None };
        let until_ns = *until_ns;
        if now_ns < until_ns {
            return Some(self.wait(context, Some(until_ns)));
        }
        let Stage::Waiting { response, worker, .. } = std::mem::replace(&mut self.stage, Stage::Hanging) else {
            return None;
        };
        // It begins with the next request.
        drop(worker);
        self.respond(*response)
    }

    /// Waits, unless the client has reset the stream.
    fn wait(&mut self, context: &mut Context<'_>, until_ns: Option<u64>) -> Progress {
        let reset = match &mut self.stage {
            Stage::Sending { stream, .. } => stream.poll_reset(context),
            _ => self.respond.poll_reset(context),
        };
        if reset.is_ready() { Progress::Over } else { Progress::Waits(until_ns) }
    }

    /// Sends the head of a response, or its replacement.
    fn respond(&mut self, response: Response) -> Option<Progress> {
        let Response { message, stream, end, .. } = response;
        let (head, body) = match message {
            Message::Http(head, body) => (head, body),
            Message::BrokenChunks(_) => return Some(self.reset(Reason::PROTOCOL_ERROR)),
            Message::EndlessHead => {
                return Some(Progress::Ends(Ending::EndlessHead(self.respond.stream_id().as_u32())));
            }
            Message::Garbage(bytes) => return Some(Progress::Ends(Ending::Garbage(bytes))),
            Message::Nothing if end == End::Hang => {
                self.stage = Stage::Hanging;
                return None;
            }
            Message::Nothing if end == End::Reset => return Some(self.reset(Reason::INTERNAL_ERROR)),
            Message::Nothing => return Some(Progress::after(end)),
        };
        if let Some((status, fields)) = head.interim {
            send_interim(&mut self.respond, status, fields);
        }
        let content = stream.map_or_else(|| Content::Bytes(to_bytes(body)), Content::Stream);
        let Some(head) = message::head(&head) else { return Some(self.reset(Reason::INTERNAL_ERROR)) };
        let is_all = content.is_finished() && content.trailer().is_none();
        match self.respond.send_response(head, is_all) {
            Ok(_) if is_all => Some(Progress::after(end)),
            Ok(stream) => {
                self.stage = Stage::Sending { stream, content, end };
                None
            }
            Err(_) => Some(Progress::Over),
        }
    }

    fn reset(&mut self, reason: Reason) -> Progress {
        self.respond.send_reset(reason);
        Progress::Over
    }

    /// Sends a piece of the body.
    fn send(&mut self, context: &mut Context<'_>, now_ns: u64) -> Option<Progress> {
        let Stage::Sending { stream, content, end } = &mut self.stage else { return None };
        let end = *end;
        if content.is_finished() {
            if let Some(trailer) = content.trailer() {
                // This fails if the client has reset the stream.
                let _ = stream.send_trailers(message::trailers(trailer));
            }
            return Some(Progress::after(end));
        }
        let ready = content.ready(now_ns);
        if ready == 0 {
            let until_ns = content.next_ns(now_ns);
            return Some(self.wait(context, until_ns));
        }
        stream.reserve_capacity(ready.min(BLOCK.len()));
        match capacity(stream, context) {
            Poll::Pending => Some(Progress::Waits(None)),
            Poll::Ready(None) => Some(Progress::Over),
            Poll::Ready(Some(0)) => None,
            Poll::Ready(Some(room)) => {
                let piece = content.take(ready.min(room));
                let is_last = content.is_finished() && content.trailer().is_none();
                match stream.send_data(piece, is_last) {
                    Ok(()) if is_last => Some(Progress::after(end)),
                    Ok(()) => None,
                    Err(_) => Some(Progress::Over),
                }
            }
        }
    }
}

impl Progress {
    /// The step after the last byte of a response.
    fn after(end: End) -> Self {
        match end {
            End::Next | End::CloseUnframed | End::Reset | End::Hang => Self::Over,
            End::Close => Self::GoAway,
            End::CloseUntold => Self::Ends(Ending::Closed),
        }
    }
}

/// The content of a response that is being sent.
#[derive(Debug)]
enum Content {
    /// These bytes.
    Bytes(Bytes),
    /// Bytes that are generated meanwhile.
    Stream(Stream),
}

impl Content {
    /// The number of bytes that may be sent now.
    fn ready(&mut self, now_ns: u64) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Stream(stream) => stream.ready(now_ns).min(BLOCK.len() as u64) as usize,
        }
    }

    /// The next bytes, of which so many are ready.
    fn take(&mut self, bytes: usize) -> Bytes {
        match self {
            Self::Bytes(rest) => rest.split_to(bytes.min(rest.len())),
            Self::Stream(stream) => {
                stream.advance(bytes as u64);
                Bytes::from_static(&BLOCK[..bytes])
            }
        }
    }

    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Bytes(_) => None,
            Self::Stream(stream) => stream.next_ns(now_ns),
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

/// The number of bytes that the client's windows allow; `None` if it has reset the stream.
fn capacity(stream: &mut SendStream<Bytes>, context: &mut Context<'_>) -> Poll<Option<usize>> {
    match stream.capacity() {
        0 => Poll::Ready(ready!(stream.poll_capacity(context)).and_then(Result::ok)),
        bytes => Poll::Ready(Some(bytes)),
    }
}

/// Sends a short response before the request is complete.
fn send_early(respond: &mut SendResponse<Bytes>, response: &Response) {
    let Message::Http(head, body) = &response.message else { return };
    let Some(head) = message::head(head) else { return };
    // Either fails if the client has reset the stream, which the next step notices.
    if let Ok(mut stream) = respond.send_response(head, body.is_empty())
        && !body.is_empty()
    {
        let _ = stream.send_data(to_bytes(body.clone()), true);
    }
}

fn send_interim(respond: &mut SendResponse<Bytes>, status: u16, fields: &str) {
    if let Some(head) = message::with_fields(status, fields) {
        // This fails if the client has reset the stream, which the next step notices.
        let _ = respond.send_informational(head);
    }
}

fn to_bytes(body: Cow<'static, [u8]>) -> Bytes {
    match body {
        Cow::Borrowed(body) => Bytes::from_static(body),
        Cow::Owned(body) => Bytes::from(body),
    }
}
