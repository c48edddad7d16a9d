//! Why a run ended.

use serde::{Deserialize, Serialize};

use crate::run;

/// Why a run ended before its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
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
    pub fn of(ended: run::RunEnd) -> Option<Self> {
        match ended {
            run::RunEnd::Duration => None,
            run::RunEnd::Requests => Some(Self::Requests),
            run::RunEnd::Signal => Some(Self::Signal),
            run::RunEnd::NeverBegun => Some(Self::NeverBegun),
            run::RunEnd::Refused { .. } => Some(Self::Refused),
            run::RunEnd::StayedAway => Some(Self::StayedAway),
        }
    }
}
