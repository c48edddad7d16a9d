//! Names of a run's limits, for conditions and verdicts.

use serde::{Deserialize, Serialize};

/// The limit of a run: the reason why it did not reach more requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The target: more requests in flight bring no more responses, or the target's own counters show its limit.
    Target,
    /// The generator's threads had no time left.
    GeneratorCpu,
    /// The generator's threads had no time left because of the script.
    GeneratorScript,
    /// The rate was reached.
    Schedule,
    /// There were too few requests in flight, on too few connections or streams, to keep the target busy.
    Connections,
    /// The target is near its limit: more connections bring more responses, but not in proportion.
    Knee,
    /// Segments were lost or queued, or the round-trip time is long.
    Network,
    /// There were too few local ports.
    Ports,
    /// The evidence fits several limits, or none.
    Unclear,
}

impl LimitedBy {
    /// All limits.
    pub const ALL: [Self; 9] = [
        Self::Target,
        Self::GeneratorCpu,
        Self::GeneratorScript,
        Self::Schedule,
        Self::Connections,
        Self::Knee,
        Self::Network,
        Self::Ports,
        Self::Unclear,
    ];

    /// The limit's name in results and expressions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::GeneratorCpu => "generator_cpu",
            Self::GeneratorScript => "generator_script",
            Self::Schedule => "schedule",
            Self::Connections => "connections",
            Self::Knee => "knee",
            Self::Network => "network",
            Self::Ports => "ports",
            Self::Unclear => "unclear",
        }
    }

    /// Text for the middle of a sentence.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Target => "the target",
            Self::GeneratorCpu => "onrush itself",
            Self::GeneratorScript => "the script",
            Self::Schedule => "the rate asked for",
            Self::Connections => "the number of requests in flight",
            Self::Knee => "the target, near its limit",
            Self::Network => "the network",
            Self::Ports => "the number of local ports",
            Self::Unclear => "unclear",
        }
    }

    /// True if the measurements describe the generator and not the target (`--strict`).
    pub fn is_generator(self) -> bool {
        matches!(self, Self::GeneratorCpu | Self::GeneratorScript | Self::Ports)
    }
}
