//! Values of the placeholders in requests, as set by `--templates`.

use serde::{Deserialize, Serialize};

use super::FileContents;

/// Sources of the values for placeholders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Templates {
    /// The value files named by placeholders, each once.
    pub files: Vec<FileContents>,
    /// The seed of `rand` and `uuid`.
    pub seed: u64,
    /// Selects the requests of the run belonging to this part: index and number of parts.
    pub part: (u64, u64),
}

impl Templates {
    /// Part `index` of `parts`, one per machine: each sends different requests of the run.
    #[must_use]
    pub fn share(&self, index: u32, parts: u32) -> Self {
        let (first, step) = self.part;
        Self { part: (first + u64::from(index) * step, step * u64::from(parts)), ..self.clone() }
    }
}
