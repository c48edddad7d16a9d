//! Output files of commands, limited in size.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use onrush_load::run;
use onrush_plan::limits::OUTPUT_MAX_MIB;
use rustix::process::{Pid, test_kill_process_group};

/// Limits the size of a file while a command writes to it. The command writes to the file itself and not to a pipe, so
/// that its background processes can continue to write after onrush has ended. Dropping this ends the limit, unless the
/// file was left to a process group.
#[derive(Debug)]
pub(super) struct CappedOutput(Arc<Mutex<CappedFile>>);

#[derive(Debug)]
struct CappedFile {
    file: File,
    most: u64,
    /// Number of bytes removed beyond the limit; a lower bound, because bytes written during a removal are not counted.
    left_out: u64,
    /// The process group that continues to write after its command has ended, if any.
    left_to: Option<Pid>,
    is_over: bool,
}

impl CappedOutput {
    /// Limits a file opened for appending to [`OUTPUT_MAX_MIB`]. If no thread to watch it can be created, the file is
    /// cut only after its command has ended.
    ///
    /// # Errors
    ///
    /// Fails if the file descriptor cannot be duplicated.
    pub fn limit_file(file: &File) -> io::Result<Self> {
        Self::limit_to(file, OUTPUT_MAX_MIB << 20)
    }

    fn limit_to(file: &File, most: u64) -> io::Result<Self> {
        let limited = CappedFile { file: file.try_clone()?, most, left_out: 0, left_to: None, is_over: false };
        let limited = Arc::new(Mutex::new(limited));
        let watched = Arc::clone(&limited);
        // Without a thread, the limit is enforced only after the command has ended.
        let _ = run::spawn_detached("output", move || watch(&watched));
        Ok(Self(limited))
    }

    /// Keeps the limit after this is dropped, until the group has no process left or onrush ends.
    pub fn leave_to(&self, group: Pid) {
        lock(&self.0).left_to = Some(group);
    }
}

impl Drop for CappedOutput {
    fn drop(&mut self) {
        lock(&self.0).end_unless_left();
    }
}

fn watch(limited: &Mutex<CappedFile>) {
    loop {
        thread::sleep(LOOK);
        let mut limited = lock(limited);
        limited.trim();
        if limited.left_to.is_some() {
            limited.end_unless_left();
        }
        if limited.is_over {
            return;
        }
    }
}

impl CappedFile {
    /// Ends the limit, unless the file was left to a live process group. If output was removed, a line in the file says
    /// so.
    fn end_unless_left(&mut self) {
        self.trim();
        if self.is_over || self.left_to.is_some_and(|group| test_kill_process_group(group).is_ok()) {
            return;
        }
        self.is_over = true;
        if self.left_out > 0 {
            let line = format!(
                "\n[onrush keeps the first {OUTPUT_MAX_MIB} MiB of this output; the rest, at least {} bytes, is left out]\n",
                self.left_out
            );
            // If the disk is full, the line is lost.
            let _ = self.file.write_all(line.as_bytes());
        }
    }

    /// Removes output beyond the limit. The next piece is appended at the new end.
    fn trim(&mut self) {
        let length = self.file.metadata().map_or(0, |there| there.len());
        if length > self.most && !self.is_over && self.file.set_len(self.most).is_ok() {
            self.left_out += length - self.most;
        }
    }
}

fn lock(limited: &Mutex<CappedFile>) -> MutexGuard<'_, CappedFile> {
    limited.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Poll interval for the length of a file.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn output_beyond_the_limit_is_counted() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("output");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let output = CappedOutput::limit_to(&file, 10).unwrap();
        file.write_all(b"0123456789abc").unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while fs::metadata(&path).unwrap().len() > 10 && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        assert_eq!(fs::read(&path).unwrap(), b"0123456789", "while the command runs");
        file.write_all(b"de").unwrap();
        drop(output);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "0123456789\n[onrush keeps the first 16 MiB of this output; the rest, at least 5 bytes, is left out]\n"
        );
        file.write_all(b"f").unwrap();
        drop(CappedOutput::limit_to(&file, 1_000).unwrap());
        assert!(fs::read_to_string(&path).unwrap().ends_with("]\nf"), "what fits stays as it is");
    }

    #[test]
    fn background_output_is_limited() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("output");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut left = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        CappedOutput::limit_to(&file, 10).unwrap().leave_to(Pid::from_child(&left));
        let deadline = Instant::now() + Duration::from_secs(30);
        let wait_for = |what: &dyn Fn(&str) -> bool| {
            while !what(&fs::read_to_string(&path).unwrap()) {
                assert!(Instant::now() < deadline);
                thread::sleep(LOOK);
            }
        };
        for _ in 0..2 {
            file.write_all(b"0123456789abc").unwrap();
            wait_for(&|text| text == "0123456789");
        }
        left.kill().unwrap();
        left.wait().unwrap();
        wait_for(&|text| text.ends_with("at least 16 bytes, is left out]\n"));
    }
}
