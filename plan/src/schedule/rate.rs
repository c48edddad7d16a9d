//! A rate of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::RATE_MAX;

/// A rate of requests, stored as a whole number per minute so that no typed value is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate {
    per_minute: u64,
}

impl Rate {
    /// A rate in requests per second; `None` if it is above the limit.
    pub fn from_per_second(requests: u64) -> Option<Self> {
        Self::from_per_minute(requests.checked_mul(60)?)
    }

    /// A rate in requests per minute; `None` if it is above the limit.
    pub fn from_per_minute(per_minute: u64) -> Option<Self> {
        (per_minute <= 60 * RATE_MAX).then_some(Self { per_minute })
    }

    /// The rate in requests per minute, exactly.
    pub fn per_minute(self) -> u64 {
        self.per_minute
    }

    /// The rate in requests per second, rounded to floating point.
    pub fn per_second(self) -> f64 {
        self.per_minute as f64 / 60.0
    }
}

/// Writes the rate as it may be typed.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per_minute.is_multiple_of(60) {
            true => write!(f, "{}/s", self.per_minute / 60),
            false => write!(f, "{}/m", self.per_minute),
        }
    }
}

impl TryFrom<u64> for Rate {
    type Error = &'static str;

    fn try_from(per_minute: u64) -> Result<Self, Self::Error> {
        Self::from_per_minute(per_minute).ok_or("the rate is too high")
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> Self {
        rate.per_minute
    }
}
