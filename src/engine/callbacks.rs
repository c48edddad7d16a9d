//! What a worker asks and tells others while requests are under way.
//!
//! Each callback is independent of the others and may be absent; none is asked where there is no script.

use std::net::SocketAddr;
use std::sync::Arc;

use onrush_proto::Request;

use super::control::{Callback, Desk};
use super::kept::{Budget, Shelf};
use super::script_failure::ScriptFailure;
use super::source::Source;

/// What a worker asks and tells others, and what it asks for each.
#[derive(Default)]
pub struct Callbacks {
    /// Told of every complete response.
    pub response: Option<OnResponse>,
    /// Asked before each batch how long the connection pauses.
    pub think_ns: Option<Think>,
    /// Asked after each callback, and after each batch of a source, whether this worker is to end.
    pub is_stopped: Option<Box<dyn Fn() -> bool>>,
    /// Asked where a new connection goes; `None`: where the plan says.
    pub address: Option<Box<dyn Fn() -> Option<SocketAddr>>>,
    /// How long the worker has been inside a script, in nanoseconds; may be an estimate.
    pub spent_ns: Option<Box<dyn Fn() -> u64>>,
}

/// Makes the callbacks of a worker in its thread, and its source, unless the plan says what is sent.
pub type MakeCallbacks = Box<dyn FnOnce() -> (Option<Box<dyn Source>>, Callbacks) + Send>;

/// How long a connection pauses, in nanoseconds; `None`: whoever was asked did not know.
pub type Think = Box<dyn FnMut() -> Result<Option<u64>, ScriptFailure>>;

/// Somebody who is told of every complete response.
pub struct OnResponse {
    /// Whether the header fields are looked at.
    pub headers: bool,
    /// Whether the body is.
    pub body: bool,
    /// Told of a response; the run ends when it fails, with what was measured until then.
    pub call: Hear,
}

/// Told of a complete response.
pub type Hear = Box<dyn FnMut(&Answer<'_>) -> Result<(), ScriptFailure>>;

/// A complete response, as far as anybody wants to see it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// The status line and the header fields, as they came; empty unless wanted.
    pub head: &'a [u8],
    /// The trailer fields, as they came; empty unless headers are wanted.
    pub trailers: &'a [u8],
    /// The body, free of its framing; empty unless wanted.
    pub body: &'a [u8],
    /// Its service latency in nanoseconds.
    pub latency_ns: u64,
}

/// Which callbacks there are. Decided once, before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The source is asked for every batch.
    pub request: bool,
    /// Connections pause before a batch.
    pub delay: bool,
    /// Somebody is told of every complete response.
    pub response: bool,
    /// The header fields of responses are looked at.
    pub headers: bool,
    /// Their bodies are.
    pub body: bool,
}

impl Wants {
    /// Whether anybody is called at all while requests are under way.
    pub fn any(&self) -> bool {
        self.request || self.delay || self.response
    }
}

/// Calls a worker's source and callbacks, and says meanwhile where it is: a script may never come back.
pub(super) struct Caller {
    source: Box<dyn Source>,
    callbacks: Callbacks,
    /// Which of them there are.
    pub wants: Wants,
    /// What went wrong in one of them first.
    pub failure: Option<ScriptFailure>,
    /// Whether somebody did not know how long a connection pauses.
    pub pauses_unread: bool,
    /// Whether one has failed or wants this worker to end.
    pub has_ended: bool,
    desk: Arc<Desk>,
    /// The memory for bodies that somebody wants to see.
    bodies: Arc<Budget>,
}

impl Caller {
    /// Calls these.
    pub fn new(source: Box<dyn Source>, callbacks: Callbacks, desk: Arc<Desk>, bodies: Arc<Budget>) -> Self {
        let response = callbacks.response.as_ref();
        let wants = Wants {
            request: !source.repeats(),
            delay: callbacks.think_ns.is_some(),
            response: response.is_some(),
            headers: response.is_some_and(|response| response.headers),
            body: response.is_some_and(|response| response.body),
        };
        Self { source, callbacks, wants, failure: None, pauses_unread: false, has_ended: false, desk, bodies }
    }

    /// Where a new connection keeps what is wanted of responses, if that is more than their statuses.
    pub fn shelf(&self) -> Option<Shelf> {
        (self.wants.headers || self.wants.body).then(|| Shelf::new(&self.bodies))
    }

    /// The run cannot go on.
    pub fn fail(&mut self, failure: ScriptFailure) {
        self.failure.get_or_insert(failure);
        self.has_ended = true;
    }

    /// How long a connection is to pause before its next batch; not at all if nobody knows.
    pub fn think_ns(&mut self) -> u64 {
        let asked =
            self.enter(Callback::Delay, |caller| caller.callbacks.think_ns.as_mut().map_or(Ok(Some(0)), |ask| ask()));
        self.pauses_unread |= asked == Some(None);
        asked.flatten().unwrap_or(0)
    }

    /// Asks for the next batch; returns whether there is one, if that could be found out.
    pub fn next(&mut self, batch: &mut Vec<Request>) -> Option<bool> {
        batch.clear();
        let is_there = self.enter(Callback::Request, |caller| caller.source.next(batch));
        debug_assert!(is_there.is_none_or(|is_there| is_there != batch.is_empty()), "a batch has at least one request");
        is_there
    }

    /// Tells of a complete response.
    pub fn answered(&mut self, answer: &Answer<'_>) {
        self.enter(Callback::Response, |caller| match &mut caller.callbacks.response {
            Some(response) => (response.call)(answer),
            None => Ok(()),
        });
    }

    /// Where new connections are to go.
    pub fn address(&self) -> Option<SocketAddr> {
        self.callbacks.address.as_ref().and_then(|ask| ask())
    }

    /// How long the worker has been inside a script, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.callbacks.spent_ns.as_ref().map_or(0, |ask| ask())
    }

    /// Whoever has ended is not called again: the worker is about to end too.
    fn enter<T>(&mut self, callback: Callback, call: impl FnOnce(&mut Self) -> Result<T, ScriptFailure>) -> Option<T> {
        if self.has_ended {
            return None;
        }
        self.desk.enter(callback);
        let outcome = call(self);
        self.desk.enter(Callback::None);
        self.has_ended = outcome.is_err() || self.callbacks.is_stopped.as_ref().is_some_and(|is_stopped| is_stopped());
        outcome.map_err(|failure| self.failure = Some(failure)).ok()
    }
}
