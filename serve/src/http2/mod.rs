//! An HTTP/2 connection: the library (`h2`) provides frames, header compression and windows; everything else is as over
//! HTTP/1.1.
//!
//! There is no runtime: the library reads and writes bytes in memory (`wire`), and gets a turn with its connection. In
//! a turn it advances the connection's `exchanges`, each an `exchange`. `message` converts heads, `flood` is an endless
//! head.
//!
//! While the kernel takes no more output, nothing is received: a client that does not read cannot make the target keep
//! more than the responses to its open requests. The other limits are the library's, set in [`Http2Connection::new`].

mod exchange;
mod exchanges;
mod flood;
mod message;
#[cfg(test)]
mod tests;
mod wire;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, server};
use http::header::EXPECT;
use http::{HeaderMap, Method, Request, Response, request};
use rustix::net::SendFlags;

use super::ask::RequestNumbers;
use super::linger::Linger;
use super::places::Admission;
use super::request::{HEAD_BYTES_MAX, Persistence};
use super::resources::Resources;
use super::response::{HELLO, ResponseForm};
use super::routes;
use super::sent::SendResult;
use super::socket::ClientSocket;
use super::token::PollToken;
use super::turn::{AfterTurn, STEPS_PER_TURN};
use exchange::{ConnectionEnding, Environment, Exchange, ExchangeProgress};
use exchanges::Exchanges;
use wire::SharedBytes;

/// An HTTP/2 connection and its state.
#[derive(Debug)]
pub(super) struct Http2Connection {
    /// The client's socket.
    pub socket: ClientSocket,
    wire: SharedBytes,
    h2: server::Connection<SharedBytes, Bytes>,
    exchanges: Exchanges,
    stage: Http2Stage,
    /// Numbers of the connection and of its last request.
    numbers: RequestNumbers,
    /// Token by which wakeups name the connection.
    token: PollToken,
    /// The connection's place for `/prefork`, once a request has asked for it.
    process: Option<Admission>,
    /// The prepared response head of `GET /`.
    plain: Response<()>,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug)]
enum Http2Stage {
    /// Serves requests.
    Serving,
    /// Serves requests until all output before the end has been handed over.
    Ending(ConnectionEnding),
    /// Sends an endless head on this stream.
    Flooding(u32),
    /// All output has been handed over.
    Closing,
    /// Sends nothing and discards input.
    Lingering(Linger),
}

/// Maximum number of open requests per client. Further ones are refused (`REFUSED_STREAM`).
const STREAMS_MAX: u32 = 256;

/// Windows for uploads: large, because received bytes are consumed at once.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Maximum number of response bytes buffered by the library.
const SEND_BUFFER: usize = 128 * 1024;

/// Number of unread requests that a client may reset, and of streams that may break the protocol, before the connection
/// is closed (`ENHANCE_YOUR_CALM`).
const RESETS_MAX: usize = 256;

impl Http2Connection {
    /// A connection that starts with this input, the preface. `number`: its number on the thread, from 1. `token`:
    /// identifies it to the thread. `None` if the library rejects the preface.
    pub(super) fn new(socket: ClientSocket, input: Vec<u8>, number: u64, token: PollToken) -> Option<Self> {
        let wire = SharedBytes::default();
        wire.lock().input = input;
        let handshake = Builder::new()
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(SEND_BUFFER)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_local_error_reset_streams(Some(RESETS_MAX))
            .handshake(wire.clone());
        // The preface is complete, and the settings fit into the output.
        let Poll::Ready(Ok(h2)) = pin!(handshake).poll(&mut Context::from_waker(Waker::noop())) else {
            return None;
        };
        let plain = message::head_with_fields(200, "Content-Type: text/plain\r\nContent-Length: 13\r\n")?;
        Some(Self {
            socket,
            wire,
            h2,
            exchanges: Exchanges::default(),
            stage: Http2Stage::Serving,
            numbers: RequestNumbers { connection: number, request: 0 },
            token,
            process: None,
            plain,
        })
    }

    /// Lets one exchange, or all of them, continue in the next turn.
    pub(super) fn wake_exchange(&mut self, exchange: Option<usize>) {
        self.exchanges.wake_exchange(exchange);
    }

    /// Makes as much progress as possible without blocking. Returns what the thread should do next.
    pub(super) fn take_turn(&mut self, resources: &mut Resources) -> AfterTurn {
        match self.socket.send_rest() {
            SendResult::All => {}
            SendResult::Full => {
                // A client that does not read occupies no worker.
                self.advance_exchanges(resources);
                return self.wait_for_event();
            }
            SendResult::Gone => return AfterTurn::Close,
        }
        for _ in 0..STEPS_PER_TURN {
            resources.output.clear();
            let stop = self.take_step(resources);
            if !resources.output.is_empty() {
                match self.socket.send_bytes(&resources.output, SendFlags::empty()) {
                    SendResult::All => {}
                    SendResult::Full => return self.wait_for_event(),
                    SendResult::Gone => return AfterTurn::Close,
                }
            }
            if let Some(turn) = stop {
                return turn;
            }
        }
        AfterTurn::Again
    }

    /// Waits for an event, a call or the next timer.
    fn wait_for_event(&self) -> AfterTurn {
        self.exchanges.next_timer_ns().map_or(AfterTurn::Wait, AfterTurn::Sleep)
    }

    /// Makes one step. Returns what ends the turn; `None` if there is more to do.
    fn take_step(&mut self, resources: &mut Resources) -> Option<AfterTurn> {
        match self.stage {
            Http2Stage::Serving | Http2Stage::Ending(_) => self.exchange_bytes(resources),
            Http2Stage::Flooding(stream) => {
                flood::append_endless_fields(stream, &mut resources.output);
                None
            }
            Http2Stage::Closing => match Linger::after_last_byte(&mut self.socket, resources) {
                Some(linger) => {
                    self.stage = Http2Stage::Lingering(linger);
                    None
                }
                None => Some(AfterTurn::Close),
            },
            Http2Stage::Lingering(linger) => linger.discard_input(&mut self.socket, resources),
        }
    }

    /// Passes received bytes to the library, serves requests, and takes the library's output.
    fn exchange_bytes(&mut self, resources: &mut Resources) -> Option<AfterTurn> {
        let receives = !self.wire.lock().has_input() && self.socket.readable;
        if receives {
            resources.input.clear();
            if !self.socket.receive_input(&mut resources.input) {
                return Some(AfterTurn::Close);
            }
        }
        // The buffers of the thread are lent, so that idle connections have none.
        let mut bytes = self.wire.lock();
        if receives {
            std::mem::swap(&mut bytes.input, &mut resources.input);
            bytes.taken = 0;
            bytes.ended = self.socket.ended;
        }
        std::mem::swap(&mut bytes.output, &mut resources.output);
        // The settings were written before a buffer was lent.
        bytes.output.append(&mut resources.output);
        bytes.blocked = false;
        drop(bytes);

        let is_open = self.serve_requests(resources);

        let mut bytes = self.wire.lock();
        std::mem::swap(&mut bytes.output, &mut resources.output);
        let rest = bytes.input[bytes.taken..].to_vec();
        let used = std::mem::replace(&mut bytes.input, rest);
        if receives {
            resources.input = used;
        }
        bytes.taken = 0;
        let has_more = bytes.blocked || bytes.has_input() || self.socket.readable;
        let is_blocked = bytes.blocked;
        drop(bytes);
        match self.stage {
            _ if !is_open => self.leave_library(Http2Stage::Closing),
            Http2Stage::Ending(ending) if !is_blocked => self.end_connection(ending, resources),
            _ if has_more => {}
            _ => return Some(self.wait_for_event()),
        }
        None
    }

    /// Accepts requests from the library and advances exchanges until nothing more can be done now. Returns true if the
    /// connection is still open.
    fn serve_requests(&mut self, resources: &Resources) -> bool {
        loop {
            // Polls again after everything that could have woken it.
            match self.h2.poll_accept(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok((request, respond)))) => self.accept_request(request, respond, resources),
                Poll::Ready(Some(Err(_)) | None) => return false,
                Poll::Pending if self.advance_exchanges(resources) => {}
                Poll::Pending => return true,
            }
        }
    }

    /// Responds to a request, or starts an exchange.
    fn accept_request(
        &mut self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        resources: &Resources,
    ) {
        self.numbers.request += 1;
        let (head, body) = request.into_parts();
        if is_plain_request(&head, &body) {
            // Nearly every request of a benchmark takes this path.
            resources.counters().add_request();
            if let Ok(mut stream) = respond.send_response(self.plain.clone(), false) {
                // Either call fails if the client has reset the stream.
                let _ = stream.send_data(Bytes::from_static(HELLO), true);
            }
            return;
        }
        let manner = ResponseForm { head_only: head.method == Method::HEAD, persistence: Persistence::KeepAlive };
        let target = message::request_target(&head);
        let reply = routes::reply_to_request(target.as_bytes(), manner, self.numbers, resources, || {
            message::to_echo_text(&head)
        });
        if reply.counts {
            resources.counters().add_request();
        }
        self.exchanges.add_exchange(Exchange::new(respond, body, reply, expects_continue(&head.headers)));
    }

    /// Advances all exchanges that can continue. Returns true if there were any.
    fn advance_exchanges(&mut self, resources: &Resources) -> bool {
        let mut any = false;
        while let Some((index, mut exchange, waker)) = self.exchanges.take_ready(resources.now_ns()) {
            any = true;
            let kept = self.exchanges.kept_bytes();
            let (process, token) = (&mut self.process, self.token);
            let mut environment = Environment { resources, process, token, index, kept };
            match exchange.advance(&mut Context::from_waker(&waker), &mut environment) {
                ExchangeProgress::Waits(until_ns) => {
                    self.exchanges.put_back(index, exchange, until_ns);
                    continue;
                }
                ExchangeProgress::Over => {}
                ExchangeProgress::GoAway => self.h2.graceful_shutdown(),
                ExchangeProgress::Ends(ending) => self.stage = Http2Stage::Ending(ending),
            }
            self.exchanges.remove_exchange(index);
        }
        any
    }

    /// Ends the connection, with all earlier output already written.
    fn end_connection(&mut self, ending: ConnectionEnding, resources: &mut Resources) {
        let stage = match ending {
            ConnectionEnding::Closed => Http2Stage::Closing,
            ConnectionEnding::Garbage(bytes) => {
                resources.output.extend_from_slice(bytes);
                Http2Stage::Closing
            }
            ConnectionEnding::EndlessHead(stream) => {
                flood::begin_endless_head(stream, &mut resources.output);
                Http2Stage::Flooding(stream)
            }
        };
        self.leave_library(stage);
    }

    /// Continues without the library, and so without the open exchanges.
    fn leave_library(&mut self, stage: Http2Stage) {
        self.stage = stage;
        self.exchanges = Exchanges::default();
    }
}

/// True if the prepared response applies.
fn is_plain_request(head: &request::Parts, body: &RecvStream) -> bool {
    body.is_end_stream() && head.uri.path_and_query().is_some_and(|it| it == "/") && head.method != Method::HEAD
}

/// True if the client waits for `100 Continue` before it sends the body.
fn expects_continue(fields: &HeaderMap) -> bool {
    fields.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
