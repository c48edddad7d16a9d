//! The distribution of due times at a given rate.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// The distribution of due times at a given rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// At equal distances.
    Uniform,
    /// Independently of one another, like the requests of many users: a Poisson process.
    Poisson,
    /// This number at once, and the next burst when as many would have been due at equal distances.
    Burst(NonZeroU64),
}
