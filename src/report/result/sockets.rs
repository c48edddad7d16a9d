//! What the kernel made of the socket options that were asked for, and what it said of sockets, as a document has it.

use serde::{Deserialize, Serialize};

use super::Watched;
use crate::plan::Plan;
use crate::run::Outcome;
use crate::stats::buffers::Sizes;

/// The buffers of connections, where their sizes were asked for or settings of the host were varied, and what samples of sockets
/// say, where they were taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sockets {
    /// The receive buffers (`--rcvbuf`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<Buffer>,
    /// The send buffers (`--sndbuf`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<Buffer>,
    /// What samples of sockets add up to (`--sockets`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

/// The size of a buffer, in bytes, when a connection was opened; where settings of the host are varied, at the end of the run,
/// too. The kernel doubles what is asked for, as it needs room itself, but takes no more than `net.core.rmem_max` or
/// `net.core.wmem_max` of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Buffer {
    /// What was asked for, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u32>,
    /// What the connection with the smallest had, as `getsockopt` and `ss` say it.
    pub effective_min: u32,
    /// What the connection with the largest had.
    pub effective_max: u32,
}

impl Sockets {
    /// What became of the options of a run and was sampled; `None`: neither was asked for, or there was no connection.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let (options, buffers) = (&plan.way.socket, &outcome.buffers);
        let buffer = |requested: Option<u32>, sizes: Sizes| Buffer {
            requested,
            effective_min: sizes.min,
            effective_max: sizes.max,
        };
        let shown = Self {
            rcvbuf: buffers.rcvbuf.map(|sizes| buffer(options.rcvbuf, sizes)),
            sndbuf: buffers.sndbuf.map(|sizes| buffer(options.sndbuf, sizes)),
            watched: outcome.watched.as_ref().map(Watched::of),
        };
        (shown != Self::default()).then_some(shown)
    }
}
