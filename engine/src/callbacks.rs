//! A worker's callbacks into the script while requests are in flight.
//!
//! Each callback is independent of the others and may be absent; without a script there are none.

use std::net::SocketAddr;
use std::sync::Arc;

use onrush_proto::{Remark, Request};

use super::control::{Callback, WorkerLink};
use super::kept::{Budget, KeptResponsePool};
use super::script_failure::ScriptFailure;
use super::source::Source;

/// A worker's callbacks.
#[derive(Default)]
pub struct Callbacks {
    /// Called with every complete response, but not after a failed request.
    pub response: Option<OnResponse>,
    /// Returns a connection's pause before its next batch; `None`: no pauses.
    pub think_ns: Option<Think>,
    /// Returns true if this worker must end. Checked after each callback and after each batch from the source.
    pub is_stopped: Option<Box<dyn Fn() -> bool>>,
    /// Returns the address for a new connection; if it returns `None`, the plan decides.
    pub address: Option<Box<dyn Fn() -> Option<SocketAddr>>>,
    /// Returns the worker's total script time in nanoseconds; may be an estimate that later falls.
    pub spent_ns: Option<Box<dyn Fn() -> u64>>,
    /// Returns the long script calls since it was last called: start and end, in nanoseconds of the system's monotonic
    /// clock.
    pub take_long: Option<TakeLong>,
}

/// Makes a worker's callbacks, called in the worker's thread. Also makes its source, or `None` if the requests come
/// from the plan.
pub type MakeCallbacks = Box<dyn FnOnce() -> (Option<Box<dyn Source>>, Callbacks) + Send>;

/// Receives each line that a script logs, with its line ending.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Returns a connection's pause in nanoseconds; `None`: the script returned something that is not a time, so there is
/// no pause. Fails if the script raises an error or exits.
pub type Think = Box<dyn FnMut() -> Result<Option<u64>, ScriptFailure>>;

/// Returns periods, start and end, in nanoseconds of the system's monotonic clock.
pub type TakeLong = Box<dyn Fn() -> Vec<(u64, u64)>>;

/// A callback for every complete response, and the parts of the response that it reads.
pub struct OnResponse {
    /// True if `response()` reads the header fields.
    pub headers: bool,
    /// True if `response()` reads the body.
    pub body: bool,
    /// The callback. If it fails, the run ends and keeps the measurements so far.
    pub call: HandleResponse,
}

/// Called with a complete response. Fails if the script raises an error or exits.
pub type HandleResponse = Box<dyn FnMut(&Response<'_>) -> Result<(), ScriptFailure>>;

/// A complete response as the callback sees it.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The response's status.
    pub status: u16,
    /// The status line and the header fields, as received; empty unless wanted.
    pub head: &'a [u8],
    /// The trailer fields, as received; empty unless headers are wanted.
    pub trailers: &'a [u8],
    /// The body without its framing; empty unless wanted.
    pub body: &'a [u8],
    /// The service latency in nanoseconds: from the sending of the request, even with a schedule.
    pub latency_ns: u64,
    /// The source's remark on the request.
    pub remark: Option<&'a Remark>,
}

/// The callbacks that exist, and the parts that they read; fixed before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// True if the source is called for every batch instead of once.
    pub request: bool,
    /// True if connections pause before a batch.
    pub delay: bool,
    /// True if there is a callback for responses.
    pub response: bool,
    /// True if `response()` reads the header fields.
    pub headers: bool,
    /// True if `response()` reads the body.
    pub body: bool,
}

impl Wants {
    /// True if any callback runs while requests are in flight.
    pub fn has_callbacks(&self) -> bool {
        self.request || self.delay || self.response
    }
}

/// Calls a worker's source and callbacks. Shows the supervisor the running callback: a script may never return.
pub(super) struct Caller {
    source: Box<dyn Source>,
    callbacks: Callbacks,
    /// Existing callbacks.
    pub wants: Wants,
    /// The first failure of a callback.
    pub failure: Option<ScriptFailure>,
    /// True if `delay()` ever returned something that is not a time.
    pub pauses_unread: bool,
    /// True if a callback has failed, or wants this worker to end.
    pub has_ended: bool,
    worker_link: Arc<WorkerLink>,
    /// The memory for responses that the script reads.
    budget: Arc<Budget>,
}

impl Caller {
    /// A caller for this source and these callbacks.
    pub fn new(
        source: Box<dyn Source>,
        callbacks: Callbacks,
        worker_link: Arc<WorkerLink>,
        budget: Arc<Budget>,
    ) -> Self {
        let response = callbacks.response.as_ref();
        let wants = Wants {
            request: !source.repeats_one_batch(),
            delay: callbacks.think_ns.is_some(),
            response: response.is_some(),
            headers: response.is_some_and(|response| response.headers),
            body: response.is_some_and(|response| response.body),
        };
        Self { source, callbacks, wants, failure: None, pauses_unread: false, has_ended: false, worker_link, budget }
    }

    /// A new connection's pool of memory for the response parts that the script reads. `None`: the script reads at most
    /// the status.
    pub fn new_response_pool(&self) -> Option<KeptResponsePool> {
        (self.wants.headers || self.wants.body).then(|| KeptResponsePool::new(&self.budget))
    }

    /// Ends the run with a failure.
    pub fn end_with_failure(&mut self, failure: ScriptFailure) {
        self.failure.get_or_insert(failure);
        self.has_ended = true;
    }

    /// A connection's pause before its next batch, in nanoseconds; zero if the script returned no time.
    pub fn pause_before_batch_ns(&mut self) -> u64 {
        let asked = self.run_callback(Callback::Delay, |caller| {
            caller.callbacks.think_ns.as_mut().map_or(Ok(Some(0)), |ask| ask())
        });
        self.pauses_unread |= asked == Some(None);
        asked.flatten().unwrap_or(0)
    }

    /// Gets the next batch. Returns true if there is one, `None` if the source failed.
    pub fn next_batch(&mut self, batch: &mut Vec<Request>) -> Option<bool> {
        batch.clear();
        let is_there = self.run_callback(Callback::Request, |caller| caller.source.next_batch(batch));
        debug_assert!(is_there.is_none_or(|is_there| is_there != batch.is_empty()), "a batch has at least one request");
        is_there
    }

    /// The number of the name shared by the batch's requests.
    pub fn batch_name(&self) -> u16 {
        self.source.batch_name()
    }

    /// Passes a complete response to the script.
    pub fn pass_response_to_script(&mut self, response: &Response<'_>) {
        self.run_callback(Callback::Response, |caller| match &mut caller.callbacks.response {
            Some(on_response) => (on_response.call)(response),
            None => Ok(()),
        });
    }

    /// The address for a new connection; `None`: the plan decides.
    pub fn choose_address(&self) -> Option<SocketAddr> {
        self.callbacks.address.as_ref().and_then(|ask| ask())
    }

    /// Counts no script time from now on, neither its total nor long calls.
    pub fn ignore_script_time(&mut self) {
        (self.callbacks.spent_ns, self.callbacks.take_long) = (None, None);
    }

    /// Takes the long script times since the last call, in nanoseconds of the system's monotonic clock.
    pub fn take_long_script_times(&self) -> Vec<(u64, u64)> {
        self.callbacks.take_long.as_ref().map_or_else(Vec::new, |take| take())
    }

    /// Total script time of the worker, in nanoseconds.
    pub fn script_time_ns(&self) -> u64 {
        self.callbacks.spent_ns.as_ref().map_or(0, |ask| ask())
    }

    /// Runs a callback, unless an earlier one has failed or ended the worker. Responses that arrived before the
    /// worker's end are still passed to the script, because they count.
    fn run_callback<T>(
        &mut self,
        callback: Callback,
        call: impl FnOnce(&mut Self) -> Result<T, ScriptFailure>,
    ) -> Option<T> {
        if self.has_ended && (self.failure.is_some() || callback != Callback::Response) {
            return None;
        }
        self.worker_link.show_callback(callback);
        let outcome = call(self);
        self.worker_link.show_callback(Callback::None);
        self.has_ended = outcome.is_err() || self.callbacks.is_stopped.as_ref().is_some_and(|is_stopped| is_stopped());
        outcome.map_err(|failure| self.failure = Some(failure)).ok()
    }
}
