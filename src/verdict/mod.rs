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

use serde::{Deserialize, Serialize};

pub use decide::{QUEUEING, SLOW, is_held};
pub use evidence::{Evidence, Generator, Latency, Listening, Load, Machine, Network, Target, Thirds, Thread};
pub use find::Finding;

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

/// What kept a run from more requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The target was as busy as it can be, or requests queued there.
    Target,
    /// The generator's threads had no time left.
    GeneratorCpu,
    /// They had no time left because of the script.
    GeneratorScript,
    /// The rate that was asked for was reached.
    Schedule,
    /// There were too few connections to keep the target busy.
    Connections,
    /// Segments were lost or queued, or the round trip is long.
    Network,
    /// There were too few local ports.
    Ports,
    /// The evidence fits more than one of the others, or none.
    Unclear,
}

impl LimitedBy {
    /// All limits.
    pub const ALL: [Self; 8] = [
        Self::Target,
        Self::GeneratorCpu,
        Self::GeneratorScript,
        Self::Schedule,
        Self::Connections,
        Self::Network,
        Self::Ports,
        Self::Unclear,
    ];

    /// Its name in results and expressions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::GeneratorCpu => "generator_cpu",
            Self::GeneratorScript => "generator_script",
            Self::Schedule => "schedule",
            Self::Connections => "connections",
            Self::Network => "network",
            Self::Ports => "ports",
            Self::Unclear => "unclear",
        }
    }

    /// Its words for the middle of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Target => "the target",
            Self::GeneratorCpu => "onrush itself",
            Self::GeneratorScript => "the script",
            Self::Schedule => "the rate asked for",
            Self::Connections => "the number of connections",
            Self::Network => "the network",
            Self::Ports => "the number of local ports",
            Self::Unclear => "unclear",
        }
    }

    /// Whether the figures describe the generator and not the target (`--strict`).
    pub fn is_our_fault(self) -> bool {
        matches!(self, Self::GeneratorCpu | Self::GeneratorScript | Self::Ports)
    }
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
