//! The state of each output file of a run, shared between the file's thread and the thread that ends the program, whose
//! last line reports the states.

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

/// How far the writing of a file has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Nothing has been written; any previous content is intact.
    Untouched,
    /// Writing has started, line by line or to something other than a regular file.
    Begun,
    /// The file has been written completely.
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
    /// A file to remove if writing is abandoned: a temporary file, or a new one that is still empty.
    leftover: Option<PathBuf>,
}

impl OutputState {
    fn clear(&mut self) {
        // It does not matter if the leftover cannot be removed.
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

    /// Records that file `index` was created empty. It is removed if writing never starts.
    pub fn record_new_file(&self, index: usize, path: &Path) {
        self.lock()[index].leftover = Some(path.to_owned());
    }

    /// Records that writing to file `index` is about to start. From now on, its leftover is not removed.
    pub fn record_write_start(&self, index: usize) {
        let file = &mut self.lock()[index];
        file.state = FileState::Begun;
        file.leftover = None;
    }

    /// Removes the leftover of file `index`.
    pub fn remove_leftover(&self, index: usize) {
        self.lock()[index].clear();
    }

    /// Creates the temporary file for file `index`. If the file is abandoned later, the temporary file is removed.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no temporary file, or `TimedOut` if the file has been abandoned.
    pub fn create_temporary(
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

    /// Lets `put` move file `index` to its destination, and records that the file is complete. Other threads see the
    /// state before or after, never in between.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file could not be moved, or `TimedOut` if the file has been abandoned.
    pub fn publish(&self, index: usize, put: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut files = self.lock();
        if files[index].is_settled {
            return Err(io::ErrorKind::TimedOut.into());
        }
        put().inspect(|()| (files[index].state, files[index].leftover) = (FileState::Complete, None))
    }

    /// Makes the state of file `index` final. `failure`: why the file is not complete, if it is not. Only the first
    /// call has an effect.
    pub fn settle(&self, index: usize, failure: Option<String>) {
        let mut files = self.lock();
        if !files[index].is_settled {
            (files[index].is_settled, files[index].failure) = (true, failure);
        }
        drop(files);
        self.0.changed.notify_all();
    }

    /// Waits until the states of all files are final, but at most for `most`. True if they are.
    pub fn wait_until_final(&self, most: Duration) -> bool {
        let is_open = |files: &mut Vec<OutputState>| files.iter().any(|file| !file.is_settled);
        let waited = self.0.changed.wait_timeout_while(self.lock(), most, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Makes the states of all files final as they are, and removes temporary and empty files.
    pub fn abandon_incomplete(&self) {
        give_up(&mut self.lock());
    }

    /// Abandons all incomplete files and reports their states if a signal ends the process.
    pub fn abandon_before_quitting(&self, signals: &Signals) {
        let states = self.clone();
        signals.before_quitting(move || states.quit(|account| say(&format!("onrush: {account}"))));
    }

    /// Abandons incomplete files because the program quits, and reports the states of all files in one line, if there
    /// are any. Keeps the lock, so that no state changes afterwards and any thread that needs it blocks.
    fn quit(&self, say: impl FnOnce(&str)) {
        let mut files = self.lock();
        give_up(&mut files);
        if let Some(text) = describe_states(&files) {
            say(&text);
        }
        mem::forget(files);
    }

    /// The files that are not complete, each with the reason.
    pub fn failures(&self) -> Vec<(Output, String)> {
        let why = |file: &OutputState| {
            let unread = || "no reader, or the disk is too slow: the file is not complete".to_owned();
            (file.file.clone(), file.failure.clone().unwrap_or_else(unread))
        };
        self.lock().iter().filter(|file| file.state != FileState::Complete).map(why).collect()
    }

    /// One line of text with the states of all files; `None` without files.
    pub fn describe_states(&self) -> Option<String> {
        describe_states(&self.lock())
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
fn describe_states(files: &[OutputState]) -> Option<String> {
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
        let part = states.create_temporary(0, || NamedTempFile::new_in(&scratch)).unwrap();
        states.record_new_file(1, &new);
        assert_eq!(left(), 2);
        let mut said = String::new();
        states.quit(|text| said.push_str(text));
        assert_eq!(left(), 0);
        assert_eq!(said, r#""a.json" was not written, "new.ndjson" was not written"#);
        drop(part);
        // Writing cannot start after the file was abandoned.
        let states = states_of(["a.json"]);
        states.abandon_incomplete();
        assert!(states.create_temporary(0, || NamedTempFile::new_in(&scratch)).is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn every_file_state_is_described() {
        let states = states_of(["a.json", "b.csv", "c.ndjson"]);
        assert!(!states.wait_until_final(Duration::ZERO));
        states.publish(0, &mut || Ok(())).unwrap();
        states.settle(0, None);
        assert!(states.publish(1, &mut || Err(io::ErrorKind::StorageFull.into())).is_err());
        states.settle(1, Some("the disk is full".to_owned()));
        states.record_write_start(2);
        let account = states.describe_states().unwrap();
        assert_eq!(account, r#""a.json" is complete, "b.csv" was not written, "c.ndjson" is not complete"#);
        let failures: Vec<String> = states.failures().into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(failures, ["the disk is full", "no reader, or the disk is too slow: the file is not complete"]);
        states.settle(2, None);
        assert!(states.wait_until_final(Duration::ZERO));
        assert!(states_of([]).describe_states().is_none());
    }
}
