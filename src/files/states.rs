//! The state of each output file of a run, shared by its thread and the thread that ends the program. The program's
//! last line reports it.

use std::fmt::Write;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

use onrush_plan::Output;

use crate::program::{Signals, say};

/// State of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Nothing was written; any previous content is intact.
    Untouched,
    /// Being written line by line, or not a regular file.
    Begun,
    /// Written completely.
    Complete,
}

/// The states of all files of a run.
#[derive(Clone, Debug)]
pub struct FileStates(Arc<SharedStates>);

#[derive(Debug)]
struct SharedStates {
    files: Mutex<Vec<OutputState>>,
    changed: Condvar,
}

#[derive(Clone, Debug)]
struct OutputState {
    file: Output,
    state: FileState,
    is_settled: bool,
    /// The reason why the file will never be complete.
    failure: Option<String>,
    /// A file to remove if nothing more is written: temporary, or new and still empty.
    leftover: Option<PathBuf>,
}

impl OutputState {
    fn clear(&mut self) {
        // A failure to remove the leftover is harmless: the file is gone already or does not matter.
        self.leftover.take().map(fs::remove_file);
    }
}

impl FileStates {
    /// States of files that no thread has touched yet.
    pub fn new(outputs: &[Output]) -> Self {
        let known = |output: &Output| OutputState {
            file: output.clone(),
            state: FileState::Untouched,
            is_settled: false,
            failure: None,
            leftover: None,
        };
        Self(Arc::new(SharedStates { files: Mutex::new(outputs.iter().map(known).collect()), changed: Condvar::new() }))
    }

    /// Records that file `index` is new and empty. It is removed unless writing starts.
    pub fn created(&self, index: usize, path: &Path) {
        self.lock()[index].leftover = Some(path.to_owned());
    }

    /// Records that writing to file `index` is about to start.
    pub fn begin(&self, index: usize) {
        let file = &mut self.lock()[index];
        file.state = FileState::Begun;
        file.leftover = None;
    }

    /// Removes the leftover of file `index`.
    pub fn clear(&self, index: usize) {
        self.lock()[index].clear();
    }

    /// Creates the temporary file for file `index`, unless abandoned. If the file is abandoned later, the temporary
    /// file is removed.
    ///
    /// # Errors
    ///
    /// The reason why there is no temporary file.
    pub fn temporary(
        &self,
        index: usize,
        make: impl FnOnce() -> io::Result<NamedTempFile>,
    ) -> io::Result<NamedTempFile> {
        let file = &mut self.lock()[index];
        if file.is_settled {
            return Err(io::ErrorKind::TimedOut.into());
        }
        make().inspect(|made| file.leftover = Some(made.path().to_owned()))
    }

    /// Moves file `index` to its destination, unless abandoned. Holds the lock, so that other threads see the state
    /// before or after, never in between.
    ///
    /// # Errors
    ///
    /// The reason why the file could not be moved.
    pub fn publish(&self, index: usize, put: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut files = self.lock();
        if files[index].is_settled {
            return Err(io::ErrorKind::TimedOut.into());
        }
        put().inspect(|()| (files[index].state, files[index].leftover) = (FileState::Complete, None))
    }

    /// Makes the state of file `index` final, with the reason if incomplete. Only the first call counts.
    pub fn settle(&self, index: usize, failure: Option<String>) {
        let mut files = self.lock();
        if !files[index].is_settled {
            (files[index].is_settled, files[index].failure) = (true, failure);
        }
        drop(files);
        self.0.changed.notify_all();
    }

    /// Waits up to `most` until the states of all files are final; returns true if they are.
    pub fn wait(&self, most: Duration) -> bool {
        let is_open = |files: &mut Vec<OutputState>| files.iter().any(|file| !file.is_settled);
        let waited = self.0.changed.wait_timeout_while(self.lock(), most, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Abandons all incomplete files.
    pub fn give_up(&self) {
        give_up(&mut self.lock());
    }

    /// Before a signal ends the process, abandons these files and reports their states.
    pub fn give_up_before_quitting(&self, signals: &Signals) {
        let states = self.clone();
        signals.before_quitting(move || states.quit(|account| say(&format!("onrush: {account}"))));
    }

    /// Abandons incomplete files before the program quits. Reports the states of all files in one line, if there are
    /// any. Keeps the lock, so that no state changes afterwards and any other thread blocks.
    fn quit(&self, say: impl FnOnce(&str)) {
        let mut files = self.lock();
        give_up(&mut files);
        if let Some(text) = account(&files) {
            say(&text);
        }
        mem::forget(files);
    }

    /// The incomplete files with the reasons.
    pub fn failures(&self) -> Vec<(Output, String)> {
        let why = |file: &OutputState| {
            let unread = || "it has no reader or the disk is too slow: it is not complete".to_owned();
            (file.file.clone(), file.failure.clone().unwrap_or_else(unread))
        };
        self.lock().iter().filter(|file| file.state != FileState::Complete).map(why).collect()
    }

    /// One line with the states of all files; `None` without files.
    pub fn account(&self) -> Option<String> {
        account(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OutputState>> {
        self.0.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn give_up(files: &mut [OutputState]) {
    for file in files {
        file.is_settled = true;
        file.clear();
    }
}

/// The states of all files as text.
fn account(files: &[OutputState]) -> Option<String> {
    let mut text = String::new();
    for OutputState { file: Output { path, .. }, state, .. } in files {
        let words = match state {
            FileState::Untouched => "was not written",
            FileState::Begun => "is not complete",
            FileState::Complete => "is complete",
        };
        let _ = write!(text, "{}{path:?} {words}", if text.is_empty() { "" } else { ", " });
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use onrush_plan::OutputKind;

    use super::*;

    fn states_of<const N: usize>(paths: [&str; N]) -> FileStates {
        FileStates::new(&paths.map(|path| Output { path: path.into(), kind: OutputKind::Json }))
    }

    #[test]
    fn abandoned_files_leave_nothing_behind() {
        let scratch = tempfile::tempdir().unwrap();
        let (new, left) = (scratch.path().join("new.ndjson"), || fs::read_dir(scratch.path()).unwrap().count());
        fs::write(&new, "").unwrap();
        let states = states_of(["a.json", "new.ndjson"]);
        // The file's thread is still writing.
        let part = states.temporary(0, || NamedTempFile::new_in(&scratch)).unwrap();
        states.created(1, &new);
        assert_eq!(left(), 2);
        let mut said = String::new();
        states.quit(|text| said.push_str(text));
        assert_eq!(left(), 0);
        assert_eq!(said, r#""a.json" was not written, "new.ndjson" was not written"#);
        drop(part);
        // Writing cannot start after the file was abandoned.
        let states = states_of(["a.json"]);
        states.give_up();
        assert!(states.temporary(0, || NamedTempFile::new_in(&scratch)).is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn every_file_state_is_described() {
        let states = states_of(["a.json", "b.csv", "c.ndjson"]);
        assert!(!states.wait(Duration::ZERO));
        states.publish(0, &mut || Ok(())).unwrap();
        states.settle(0, None);
        assert!(states.publish(1, &mut || Err(io::ErrorKind::StorageFull.into())).is_err());
        states.settle(1, Some("the disk is full".to_owned()));
        states.begin(2);
        let account = states.account().unwrap();
        assert_eq!(account, r#""a.json" is complete, "b.csv" was not written, "c.ndjson" is not complete"#);
        let failures: Vec<String> = states.failures().into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(failures, ["the disk is full", "it has no reader or the disk is too slow: it is not complete"]);
        states.settle(2, None);
        assert!(states.wait(Duration::ZERO));
        assert!(states_of([]).account().is_none());
    }
}
