//! The log of requests that a run wrote, as a document has it.

use onrush_plan::Plan;
use onrush_stats::Counters;
use serde::{Deserialize, Serialize};

/// The log of requests (`--request-log`): how much of the run is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct RequestLog {
    /// Of so many requests it has one (`--log-sample`); left out of a sum of different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_of: Option<u64>,
    /// How many lines were passed on to its file.
    pub lines: u64,
    /// How many lines are missing, because the file was not written fast enough.
    pub lost: u64,
}

impl RequestLog {
    /// That of a run, if it had one.
    pub(super) fn of(plan: &Plan, counters: &Counters) -> Option<Self> {
        let log = plan.output.request_log.as_ref()?;
        Some(Self { one_of: Some(log.one_of), lines: counters.logged, lost: counters.unlogged })
    }

    /// The sum of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            one_of: self.one_of.filter(|_| self.one_of == other.one_of),
            lines: self.lines.saturating_add(other.lines),
            lost: self.lost.saturating_add(other.lost),
        }
    }
}
