//! Files of a finished run, kept during follow-up work that a signal may interrupt.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Files, PATIENCE};
use crate::program::Signals;
use crate::record::Document;

/// The files of a run and their contents during follow-up work. A signal that ends the process writes them.
#[derive(Clone, Default)]
pub struct KeptFiles(Arc<Mutex<Option<(Files, Document)>>>);

impl KeptFiles {
    /// Keeps nothing yet. Call before [`Files::for_plan`], which gives up unwritten files on a signal.
    pub fn before_quitting(signals: &Signals) -> Self {
        let kept = Self::default();
        let this = kept.clone();
        signals.before_quitting(move || this.write());
        kept
    }

    /// Keeps these files.
    pub fn keep(&self, files: Files, document: Document) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((files, document));
    }

    /// Returns the files; `None` if the process is ending and has written them.
    pub fn take(&self) -> Option<Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map(|(files, _)| files)
    }

    fn write(&self) {
        // Keeps the lock, so that the follow-up work waits for the end of the process.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((files, document)) = kept.take() {
            let states = files.states().clone();
            files.write(&document);
            states.wait(PATIENCE);
            std::mem::forget(kept);
        }
    }
}
