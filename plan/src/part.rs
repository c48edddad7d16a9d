//! A thread's or machine's part of a schedule's requests, or of the connections.

use serde::{Deserialize, Serialize};

/// A part of a schedule's requests, or of the connections: those whose number is `index` modulo `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The part's index, from 0.
    pub index: u64,
    /// Number of parts, at least one.
    pub of: u64,
}

impl Partition {
    /// The whole, undivided.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Part `index` (from 0) of `of`; the index must be below `of`.
    pub fn new(index: u32, of: u32) -> Self {
        Self { index: index.into(), of: of.into() }
    }

    /// Part `inner` of this part, as a part of the whole.
    pub fn part_of_part(self, inner: Self) -> Self {
        Self { index: self.index + self.of * inner.index, of: self.of * inner.of }
    }

    /// The contradiction in a part read from a plan, if there is one.
    pub fn contradiction(self) -> Option<&'static str> {
        (self.index >= self.of || self.of > u64::from(u32::MAX)).then_some("there is no such part of the whole")
    }
}
