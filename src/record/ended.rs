//! Why a run ended.

use serde::{Deserialize, Serialize};

use crate::run;

/// Why a run ended before its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All its requests had ended.
    Requests,
    /// A signal arrived.
    Signal,
    /// A signal arrived before anything was sent to the target.
    NeverBegun,
    /// Every first connection was refused.
    Refused,
    /// No connection could be established any more.
    StayedAway,
}

impl Ended {
    /// `None`: its time was up.
    pub fn of(ended: run::Ended) -> Option<Self> {
        match ended {
            run::Ended::Duration => None,
            run::Ended::Requests => Some(Self::Requests),
            run::Ended::Signal => Some(Self::Signal),
            run::Ended::NeverBegun => Some(Self::NeverBegun),
            run::Ended::Refused { .. } => Some(Self::Refused),
            run::Ended::StayedAway => Some(Self::StayedAway),
        }
    }
}
