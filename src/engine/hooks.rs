//! What a script decides while requests are under way.
//!
//! The engine asks; it does not know who answers. A run without a script asks nobody.

use std::net::SocketAddr;

use onrush_proto::Request;

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

/// A callback failed: what happened and where, in the words for the user.
pub type Failure = String;

/// One worker's script.
pub trait Hooks: Send {
    /// What it wants to be asked and told.
    fn wants(&self) -> Wants;

    /// Before a batch: how long the connection is to pause, in nanoseconds.
    ///
    /// # Errors
    ///
    /// When the callback fails; the run then ends without a report.
    fn delay_ns(&mut self) -> Result<u64, Failure>;

    /// Adds the requests of the next batch, at least one, to an empty `batch`.
    ///
    /// # Errors
    ///
    /// As [`Hooks::delay_ns`], and when what the callback returned is not a sequence of complete requests.
    fn write(&mut self, batch: &mut Vec<Request>) -> Result<(), Failure>;

    /// A response is complete.
    ///
    /// # Errors
    ///
    /// As [`Hooks::delay_ns`].
    fn answered(&mut self, answer: &Answer<'_>) -> Result<(), Failure>;

    /// Whether the script has asked for this worker to end.
    fn is_stopped(&self) -> bool;

    /// Where the script wants further connections of this worker to go; `None`: where the plan says.
    fn address(&self) -> Option<SocketAddr>;

    /// How long the worker has been inside the script, in nanoseconds; an estimate from some of the calls.
    fn spent_ns(&self) -> u64;
}
