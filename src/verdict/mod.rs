//! The verdict: what limited a run, as a pure function of plain [`Evidence`] that was gathered while it ran.
//!
//! `evidence` holds the input, `decide` the rules in order and `find` the findings; `words` formats figures. Nothing
//! here measures anything.

mod decide;
mod evidence;
mod find;
mod network;
mod words;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use decide::{QUEUEING, SLOW, is_held};
pub use evidence::{Evidence, Generator, Latency, Listening, Load, Machine, Network, Silence, Target, Thirds, Thread};
pub use find::Finding;
pub use onrush_plan::LimitedBy;

/// The verdict on a shorter run is printed only with `-v`.
pub const VERDICT_MIN: Duration = Duration::from_secs(1);

/// What limited a run, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The limit.
    pub limited_by: LimitedBy,
    /// The reason, with the figures.
    pub reason: String,
    /// What to change to measure more; left out if nothing was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What else is worth knowing.
    pub findings: Vec<Finding>,
    /// The facts that it rests on.
    pub evidence: Evidence,
    /// What could not be observed, and why.
    pub unseen: Vec<String>,
}

impl fmt::Display for Verdict {
    /// The sentence: what, why, and what to change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limited = if self.limited_by == LimitedBy::Unclear { "" } else { "limited by " };
        write!(f, "{limited}{}: {}", self.limited_by.words(), self.reason)?;
        self.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl Verdict {
    /// Decides what limited a run.
    pub fn of(evidence: Evidence, unseen: Vec<String>) -> Self {
        let findings = find::findings(&evidence);
        let ruling = decide::decide(&evidence);
        Self { limited_by: ruling.limited_by, reason: ruling.reason, advice: ruling.advice, findings, evidence, unseen }
    }
}

#[cfg(test)]
mod tests;
