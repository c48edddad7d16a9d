//! The pace at which late requests are sent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The pace at which late requests are sent after a stall: the schedule runs faster by this factor until onrush has
/// caught up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct CatchUp {
    thousandths: u64,
}

impl CatchUp {
    /// wrk2's factor: twice the rate of the schedule.
    pub const DOUBLE: Self = Self { thousandths: 2 * Self::ONE };

    /// The factor 1, in thousandths.
    const ONE: u64 = 1_000;

    /// A factor in thousandths; `None` if it is below 1.
    pub fn from_thousandths(thousandths: u64) -> Option<Self> {
        (thousandths >= Self::ONE).then_some(Self { thousandths })
    }

    /// The time that a planned time takes while catching up, both in nanoseconds.
    pub fn catch_up_time_ns(self, planned_ns: u64) -> u64 {
        (u128::from(planned_ns) * u128::from(Self::ONE) / u128::from(self.thousandths)) as u64
    }
}

/// Writes the factor as typed after `--catch-up`.
impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.thousandths as f64 / Self::ONE as f64)
    }
}

impl TryFrom<u64> for CatchUp {
    type Error = &'static str;

    fn try_from(thousandths: u64) -> Result<Self, Self::Error> {
        Self::from_thousandths(thousandths)
            .ok_or("catching up cannot be slower than the schedule; the factor is at least 1")
    }
}

impl From<CatchUp> for u64 {
    fn from(factor: CatchUp) -> Self {
        factor.thousandths
    }
}
