//! Writes the file with one line per request while the run is in progress.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};

use onrush_plan::Plan;
use onrush_stats::LogEntry;

use super::destination::FileDestination;
use super::export::requests::{HEAD, RequestLines};
use super::{FileStates, spawn_thread, write_lines};
use crate::run::{PassOn, Passed};

/// Maximum memory for entries that wait to be written, in bytes. Further entries are lost.
const WAITING_MAX: usize = 64 << 20;

/// The request log, which a thread of its own writes.
pub struct RequestLogWriter {
    index: usize,
    states: FileStates,
    /// Entries for the thread; `None` marks the end.
    pages: Sender<Option<Vec<LogEntry>>>,
    /// Number of entries waiting to be written.
    waiting: Arc<AtomicUsize>,
}

impl Drop for RequestLogWriter {
    fn drop(&mut self) {
        self.states.remove_leftover(self.index);
    }
}

impl RequestLogWriter {
    /// Opens the log, which is file `index`, without emptying it, and starts the thread that writes it.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file cannot be written.
    pub fn open(index: usize, destination: FileDestination, plan: &Plan, states: &FileStates) -> Result<Self, String> {
        let opened = destination.open().map_err(|error| destination.describe_error(&error))?;
        if let Some((_, true)) = opened {
            states.record_new_file(index, destination.path());
        }
        let (sender, pages) = mpsc::channel::<Option<Vec<LogEntry>>>();
        let log = Self { index, states: states.clone(), pages: sender, waiting: Arc::default() };
        let (waiting, states, lines) = (Arc::clone(&log.waiting), states.clone(), RequestLines::new(plan));
        spawn_thread("request log", move || {
            // If nothing is sent, the run never started.
            let Ok(first) = pages.recv() else { return };
            states.record_write_start(index);
            let text = |page: Vec<LogEntry>| {
                let text = lines.format(&page);
                waiting.fetch_sub(page.len(), Ordering::Relaxed);
                text
            };
            let rest = iter::once(first).chain(pages).map_while(|page| page).map(text);
            let all = iter::once(HEAD.to_owned()).chain(rest);
            let written = write_lines(&destination, opened.map(|(file, _)| file), all);
            let publish = || states.publish(index, &mut || Ok(())).map_err(|error| destination.describe_error(&error));
            states.settle(index, written.and_then(|()| publish()).err());
        })?;
        Ok(log)
    }

    /// Returns the function to which workers pass entries. It never blocks, and rejects entries for which there is no
    /// memory.
    pub fn entry_receiver(&self) -> PassOn {
        let (pages, waiting) = (self.pages.clone(), Arc::clone(&self.waiting));
        Arc::new(move |page| {
            let count = page.len();
            let has_room = (waiting.fetch_add(count, Ordering::Relaxed) + count) * size_of::<LogEntry>() <= WAITING_MAX;
            let passed = match has_room {
                true if pages.send(Some(page)).is_ok() => return Passed::On,
                true => Passed::Nowhere,
                false => Passed::NoRoom,
            };
            waiting.fetch_sub(count, Ordering::Relaxed);
            passed
        })
    }

    /// Marks the end of the entries. The file counts as begun from now on, even if its thread has not opened it yet.
    pub fn end(self) {
        self.states.record_write_start(self.index);
        let _ = self.pages.send(None);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::time::Duration;

    use onrush_plan::{Dialect, Output, OutputKind};
    use onrush_stats::Fate;

    use super::*;
    use crate::fixtures::plan;

    #[test]
    fn slow_log_readers_cost_only_lines() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let states = FileStates::new(&[Output { path: path.clone(), kind: OutputKind::Requests }]);
        let plan = plan(Dialect::Native, "http://h/", 1, 1, 1);
        let log = RequestLogWriter::open(0, FileDestination::for_path(&path, false).unwrap(), &plan, &states).unwrap();
        let entry = LogEntry {
            due_ns: 0,
            sent_ns: 0,
            first_ns: None,
            end_ns: None,
            body_bytes: 0,
            status: None,
            name: 0,
            fate: Fate::Open,
        };
        let (page, pass_on) = (vec![entry; 2048], log.entry_receiver());
        let taken = (0..).take_while(|_| pass_on(page.clone()) == Passed::On).count();
        assert_eq!(taken, WAITING_MAX / size_of::<LogEntry>() / page.len());
        log.end();
        let text = fs::read_to_string(&path).unwrap();
        assert!(states.wait_until_final(Duration::from_secs(60)) && states.failures().is_empty());
        assert_eq!(text.lines().count(), 1 + taken * page.len());
        assert!(text.starts_with(HEAD) && text.ends_with("in flight at the end\n"));
    }

    #[test]
    fn empty_request_logs_have_a_header() {
        let scratch = tempfile::tempdir().unwrap();
        let plan = plan(Dialect::Native, "http://h/", 1, 1, 1);
        // The thread may open its file before or after the end.
        for round in 0..50 {
            let path = scratch.path().join(format!("{round}.csv"));
            let states = FileStates::new(&[Output { path: path.clone(), kind: OutputKind::Requests }]);
            let log =
                RequestLogWriter::open(0, FileDestination::for_path(&path, false).unwrap(), &plan, &states).unwrap();
            log.end();
            assert!(states.wait_until_final(Duration::from_secs(60)) && states.failures().is_empty(), "{round}");
            assert_eq!(fs::read_to_string(&path).unwrap(), HEAD, "{round}");
        }
        let path = scratch.path().join("never.csv");
        let states = FileStates::new(&[Output { path: path.clone(), kind: OutputKind::Requests }]);
        drop(RequestLogWriter::open(0, FileDestination::for_path(&path, false).unwrap(), &plan, &states).unwrap());
        assert!(!path.exists());
    }
}
