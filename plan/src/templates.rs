//! Values of the placeholders of requests, as `--templates` asks.

use serde::{Deserialize, Serialize};

use super::limits::VALUES_MAX_MIB;
use super::{FileContents, UnreadableFile};

/// Values of placeholders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Templates {
    /// The files with values that they name, each once.
    pub files: Vec<FileContents>,
    /// The seed of random values.
    pub seed: u64,
    /// Which of the run's requests these are: of every so many, the one with this number.
    pub part: (u64, u64),
}

impl Templates {
    /// Part `index` of `parts`, one per machine: each sends other requests of the run.
    #[must_use]
    pub fn share(&self, index: u32, parts: u32) -> Self {
        let (first, step) = self.part;
        Self { part: (first + u64::from(index) * step, step * u64::from(parts)), ..self.clone() }
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub fn read_files(&mut self) -> Result<(), UnreadableFile> {
        self.files.iter_mut().try_for_each(|file| file.read("the values", VALUES_MAX_MIB))
    }
}
