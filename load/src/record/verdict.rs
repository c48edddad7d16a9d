//! The verdict on a run, as documents have it.

use std::fmt;
use std::time::Duration;

use onrush_plan::LimitedBy;
use serde::{Deserialize, Serialize};

use super::NoteId;

/// The verdict on a shorter run is printed only with `-v`.
pub const VERDICT_MIN: Duration = Duration::from_secs(1);

/// What limited a run, and what else is worth knowing; it rests on the evidence of the document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The limit.
    pub limited_by: LimitedBy,
    /// In short: one line without most of the figures.
    pub summary: String,
    /// The reason, with the figures.
    pub reason: String,
    /// What to change to measure more; left out if nothing was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What else is worth knowing.
    pub findings: Vec<Finding>,
    /// The notes that would say it again, wholly or in part.
    #[serde(skip)]
    pub says: &'static [NoteId],
}

impl fmt::Display for Verdict {
    /// The sentence: what, why, and what to change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.summary, self.reason)?;
        self.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

/// Something that makes a result doubtful, or explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Responses waited about 40 ms for an acknowledgement.
    DelayedAck,
    /// The target's accept queue was full.
    ListenQueue,
    /// The generator was stalled.
    Stalled,
    /// The control group of the generator was throttled.
    Throttled,
    /// The control group of the target was throttled.
    TargetThrottled,
    /// The target responded at first and later stopped.
    TargetDied,
    /// The rate fell during the run.
    Unsteady,
    /// The rate rose during the run.
    WarmingUp,
    /// The wall clock was stepped.
    ClockStep,
    /// One connection served far more requests than others.
    HotConnection,
    /// A closed loop had a silence that hardly any latency shows.
    StallHidden,
    /// The hypervisor gave the machine's processors to others.
    Stolen,
    /// With a rate, slow responses make the 99th percentile, and not waiting for a connection.
    SlowResponses,
    /// The target did not read as fast as onrush sent.
    PeerWindow,
    /// The generator's send buffers were full.
    SendBuffer,
}
