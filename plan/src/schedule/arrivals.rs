//! The distribution of due times at a given rate.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// The distribution of due times at a given rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Evenly spaced in time.
    Uniform,
    /// Independent of one another, like the requests of many users: a Poisson process.
    Poisson,
    /// This number at once. The next burst is due when that many would have been due at even
    /// spacing.
    Burst(NonZeroU64),
}
