//! What a script decides while requests are under way.
//!
//! The engine asks; it does not know who answers. A run without a script asks nobody.

use std::net::SocketAddr;
use std::sync::Arc;

use onrush_proto::{Nanos, Request};
use thiserror::Error;

use super::control::{Callback, Desk};
use super::kept::{Budget, Kept};

/// What a script wants to be asked and told. Decided once, before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// It writes the requests of every batch; if not, the plan's request is sent.
    pub request: bool,
    /// It says how long a connection pauses before a batch.
    pub delay: bool,
    /// It is told of every complete response.
    pub response: bool,
    /// It looks at the header fields of responses.
    pub headers: bool,
    /// It looks at their bodies.
    pub body: bool,
}

impl Wants {
    /// Whether it is called at all while requests are under way.
    pub fn any(&self) -> bool {
        self.request || self.delay || self.response
    }
}

/// A complete response, as far as the script wants to see it.
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

/// Why a script cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScriptFailure {
    /// A callback failed: what happened and where, in the words for the user.
    #[error("{0}")]
    Raised(String),
    /// It wants the program to end, with this code.
    #[error("the script ended the program")]
    Exit(i32),
}

/// One worker's script.
pub trait Hooks: Send {
    /// What it wants to be asked and told.
    fn wants(&self) -> Wants;

    /// Before a batch: how long the connection is to pause, in nanoseconds.
    ///
    /// # Errors
    ///
    /// When the callback fails; the run then ends, with what was measured until then.
    fn delay_ns(&mut self) -> Result<u64, ScriptFailure>;

    /// Adds the requests of the next batch, at least one, to an empty `batch`.
    ///
    /// # Errors
    ///
    /// As [`Hooks::delay_ns`], and when what the callback returned is not a sequence of complete requests.
    fn write(&mut self, batch: &mut Vec<Request>) -> Result<(), ScriptFailure>;

    /// A response is complete.
    ///
    /// # Errors
    ///
    /// As [`Hooks::delay_ns`].
    fn answered(&mut self, answer: &Answer<'_>) -> Result<(), ScriptFailure>;

    /// Whether the script has asked for this worker to end.
    fn is_stopped(&self) -> bool;

    /// Where the script wants further connections of this worker to go; `None`: where the plan says.
    fn address(&self) -> Option<SocketAddr>;

    /// How long the worker has been inside the script, in nanoseconds; an estimate from some of the calls.
    fn spent_ns(&self) -> u64;
}

/// Asks a worker's script, if there is one, and says meanwhile where it is: it may never come back.
pub(super) struct Caller {
    hooks: Option<Box<dyn Hooks>>,
    /// What the script wants; nothing without one.
    pub wants: Wants,
    /// What went wrong in it first.
    pub failure: Option<ScriptFailure>,
    /// Whether it has failed or wants this worker to end.
    pub has_ended: bool,
    desk: Arc<Desk>,
    /// The memory for bodies that it wants to see.
    bodies: Arc<Budget>,
}

impl Caller {
    /// Asks these hooks.
    pub fn new(hooks: Option<Box<dyn Hooks>>, desk: Arc<Desk>, bodies: Arc<Budget>) -> Self {
        let wants = hooks.as_ref().map_or_else(Wants::default, |hooks| hooks.wants());
        Self { hooks, wants, failure: None, has_ended: false, desk, bodies }
    }

    /// Where a new connection keeps what the script wants to see, if it wants to see more than statuses.
    pub fn keeps(&self) -> Option<Box<Kept>> {
        (self.wants.headers || self.wants.body).then(|| Box::new(Kept::new(&self.bodies)))
    }

    /// The run cannot go on, and the script is why.
    pub fn fail(&mut self, failure: ScriptFailure) {
        self.failure = Some(failure);
        self.has_ended = true;
    }

    /// How long a connection is to pause before its next batch.
    pub fn delay_ns(&mut self) -> u64 {
        self.call(Callback::Delay, |hooks| hooks.delay_ns()).unwrap_or(0)
    }

    /// Writes the next batch; returns whether there is one.
    pub fn write(&mut self, batch: &mut Vec<Request>) -> bool {
        batch.clear();
        self.call(Callback::Request, |hooks| hooks.write(batch)).is_some()
    }

    /// A response is complete.
    pub fn answered(&mut self, answer: &Answer<'_>) {
        self.call(Callback::Response, |hooks| hooks.answered(answer));
    }

    /// Where the script wants further connections to go.
    pub fn address(&self) -> Option<SocketAddr> {
        self.hooks.as_ref().and_then(|hooks| hooks.address())
    }

    /// How long the worker has been inside the script, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.hooks.as_ref().map_or(0, |hooks| hooks.spent_ns())
    }

    /// A script that has ended is not called again: the worker is about to end too.
    fn call<T>(
        &mut self,
        callback: Callback,
        ask: impl FnOnce(&mut Box<dyn Hooks>) -> Result<T, ScriptFailure>,
    ) -> Option<T> {
        let hooks = self.hooks.as_mut().filter(|_| !self.has_ended)?;
        self.desk.enter(callback);
        let outcome = ask(hooks);
        self.desk.enter(Callback::None);
        self.has_ended = outcome.is_err() || hooks.is_stopped();
        outcome.map_err(|failure| self.failure = Some(failure)).ok()
    }
}

/// Whether a connection has to ask before it begins a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pause {
    /// It has not asked yet.
    #[default]
    Unasked,
    /// It pauses until then.
    Until(Nanos),
    /// It has paused, or need not.
    Over,
}
