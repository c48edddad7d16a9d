//! How due times are spread at a given rate.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// How due times are spread at a given rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// One after the other, evenly.
    Uniform,
    /// Independently of one another, as those of many users are: a Poisson process.
    Poisson,
    /// This many at once, and the next ones when as many would be due evenly.
    Burst(NonZeroU64),
}
