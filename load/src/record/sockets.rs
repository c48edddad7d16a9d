//! The effective socket options and the socket samples, as a document has them.

use onrush_plan::Plan;
use onrush_stats::buffers::Sizes;
use serde::{Deserialize, Serialize};

use super::{RunFacts, SocketSamples};
use crate::run::Outcome;

/// The buffers of connections, where their sizes were requested or settings of the host were varied, and a summary of
/// socket samples, where they were taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Sockets {
    /// The receive buffers (`--rcvbuf`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<Buffer>,
    /// The send buffers (`--sndbuf`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<Buffer>,
    /// A summary of the socket samples (`--sockets`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SocketSamples>,
}

/// The size of a buffer, in bytes, when a connection was opened and, where settings of the host are varied, at the end
/// of the run. The kernel caps the requested size at `net.core.rmem_max` or `net.core.wmem_max` and doubles it for its
/// own overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Buffer {
    /// The requested size, if there was one. In a sum: that of all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u32>,
    /// The smallest effective size, as reported by `getsockopt` and `ss`.
    pub effective_min: u32,
    /// The largest effective size.
    pub effective_max: u32,
}

impl Sockets {
    /// The effective options and samples of a run; `None`: neither was asked for, or there was no connection.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let (options, buffers) = (&plan.connect.socket, &outcome.buffers);
        let buffer = |requested: Option<u32>, sizes: Sizes| Buffer {
            requested,
            effective_min: sizes.min,
            effective_max: sizes.max,
        };
        let shown = Self {
            rcvbuf: buffers.rcvbuf.map(|sizes| buffer(options.rcvbuf, sizes)),
            sndbuf: buffers.sndbuf.map(|sizes| buffer(options.sndbuf, sizes)),
            sampled: outcome.sampled.as_ref().map(SocketSamples::of),
        };
        (shown != Self::default()).then_some(shown)
    }

    /// The figures of all these runs; each part only if all have it.
    pub(super) fn of_runs(runs: &[RunFacts]) -> Option<Self> {
        let parts: Vec<&Self> = runs.iter().map(|run| run.sockets.as_ref()).collect::<Option<_>>()?;
        let buffers = |of: fn(&Self) -> Option<Buffer>| {
            let buffers: Option<Vec<Buffer>> = parts.iter().map(|part| of(part)).collect();
            buffers?.into_iter().reduce(Buffer::with)
        };
        let samples: Option<Vec<&SocketSamples>> = parts.iter().map(|part| part.sampled.as_ref()).collect();
        let sum = Self {
            rcvbuf: buffers(|part| part.rcvbuf),
            sndbuf: buffers(|part| part.sndbuf),
            sampled: samples.and_then(|samples| samples.into_iter().cloned().reduce(SocketSamples::with)),
        };
        (sum != Self::default()).then_some(sum)
    }
}

impl Buffer {
    /// Both together.
    fn with(self, other: Self) -> Self {
        Self {
            requested: self.requested.filter(|size| other.requested == Some(*size)),
            effective_min: self.effective_min.min(other.effective_min),
            effective_max: self.effective_max.max(other.effective_max),
        }
    }
}
