//! Files of a finished run, kept during follow-up work that a signal may interrupt.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Files, PATIENCE};
use crate::program::Signals;
use crate::record::Document;

/// The files of a finished run and their contents, while follow-up work is in progress. A signal that ends the process
/// writes them.
#[derive(Clone, Default)]
pub struct KeptFiles(Arc<Mutex<Option<(Files, Document)>>>);

impl KeptFiles {
    /// Keeps nothing yet. Must be called before [`Files::for_plan`], which makes a signal give up unwritten files.
    pub fn write_before_quitting(signals: &Signals) -> Self {
        let kept = Self::default();
        let this = kept.clone();
        signals.before_quitting(move || this.write());
        kept
    }

    /// Keeps these files until they are taken, or until a signal writes them.
    pub fn keep(&self, files: Files, document: Document) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((files, document));
    }

    /// Returns the files; `None` if none are kept. Never returns while a signal is ending the process and has the files
    /// written.
    pub fn take(&self) -> Option<Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map(|(files, _)| files)
    }

    fn write(&self) {
        // The lock is not released, so that the follow-up work waits until the process ends.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((files, document)) = kept.take() {
            let states = files.states().clone();
            files.write(&document);
            states.wait_until_final(PATIENCE);
            std::mem::forget(kept);
        }
    }
}
