//! How fast late requests may be sent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How fast late requests are made up for after a stall: the schedule is carried out this many times as fast, until it has
/// been caught up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct CatchUp {
    thousandths: u64,
}

impl CatchUp {
    /// wrk2's.
    pub const DOUBLE: Self = Self { thousandths: 2 * Self::ONE };

    /// The factor 1, in thousandths.
    const ONE: u64 = 1_000;

    /// A factor in thousandths; at least 1. `None`: it is less.
    pub fn from_thousandths(thousandths: u64) -> Option<Self> {
        (thousandths >= Self::ONE).then_some(Self { thousandths })
    }

    /// How long, in nanoseconds, what was to take this long takes while catching up.
    pub fn shortened_ns(self, planned_ns: u64) -> u64 {
        (u128::from(planned_ns) * u128::from(Self::ONE) / u128::from(self.thousandths)) as u64
    }
}

/// As `--catch-up` takes it.
impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.thousandths as f64 / Self::ONE as f64)
    }
}

impl TryFrom<u64> for CatchUp {
    type Error = &'static str;

    fn try_from(thousandths: u64) -> Result<Self, Self::Error> {
        Self::from_thousandths(thousandths).ok_or("late requests are not made up for more slowly than they are due")
    }
}

impl From<CatchUp> for u64 {
    fn from(factor: CatchUp) -> Self {
        factor.thousandths
    }
}
