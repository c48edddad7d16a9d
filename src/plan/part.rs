//! Which requests of a schedule, or which connections, a thread or a machine takes.

use serde::{Deserialize, Serialize};

/// Which requests of a schedule, or which connections, fall to whom: of `of` parts, part `index` has every one whose number
/// leaves that remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which one, from 0.
    pub index: u64,
    /// Of how many, at least one.
    pub of: u64,
}

impl Part {
    /// All of them.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Part `index` of `of`.
    pub fn new(index: u32, of: u32) -> Self {
        Self { index: index.into(), of: of.into() }
    }

    /// A part of this part.
    pub fn part(self, inner: Self) -> Self {
        Self { index: self.index + self.of * inner.index, of: self.of * inner.of }
    }

    /// What is wrong with a part from another source.
    pub fn contradiction(self) -> Option<&'static str> {
        (self.index >= self.of || self.of > u64::from(u32::MAX)).then_some("there is no such part of the whole")
    }
}
