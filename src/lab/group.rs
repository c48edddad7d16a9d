//! Processes that are started by one command and ended together.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process groups that are there now. Copies are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Groups(Arc<Mutex<Vec<Pid>>>);

/// A shell command and everything it starts. Dropped, it is ended.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    id: Pid,
    /// How long it has between SIGTERM and SIGKILL.
    grace: Duration,
    groups: Groups,
}

impl Groups {
    /// Kills them all, for whoever is about to end the process without another step.
    pub fn kill(&self) {
        for &id in self.lock().iter() {
            // Whoever has ended meanwhile needs no signal.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    /// Has a shell carry out a command, with this added to the environment. It reads nothing and writes into a file.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(
        command: &str,
        environment: &[(String, String)],
        output: &File,
        grace: Duration,
        groups: &Groups,
    ) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).envs(environment.iter().map(|(name, value)| (name, value)));
        shell.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?).process_group(0);
        // A process that is about to end kills a group that it knows.
        let mut known = groups.lock();
        let child = shell.spawn()?;
        let id = Pid::from_child(&child);
        known.push(id);
        Ok(Self { child, id, grace, groups: groups.clone() })
    }

    /// How the command ended; `None`: it has not.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends whatever is left of it: first with SIGTERM, then with SIGKILL.
    pub fn end(&mut self) {
        if !self.groups.lock().contains(&self.id) {
            return;
        }
        let deadline = Instant::now() + self.grace;
        // Whoever has ended by itself needs no signal.
        let _ = kill_process_group(self.id, Signal::TERM);
        // One that has ended is in its group until somebody has waited for it.
        while self.status().is_none() || lives(self.id) {
            if Instant::now() >= deadline {
                let _ = kill_process_group(self.id, Signal::KILL);
                let _ = self.child.kill();
                break;
            }
            thread::sleep(POLL);
        }
        let _ = self.child.wait();
        self.forget();
    }

    /// Leaves to themselves what a command has started that has ended.
    pub fn leave(self) {
        self.forget();
    }

    /// Takes it off the list of those that are to be ended.
    fn forget(&self) {
        self.groups.lock().retain(|&id| id != self.id);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether a process group has a process that has not ended. What nobody has waited for yet has ended.
pub(super) fn lives(id: Pid) -> bool {
    let is_living = |process: DirEntry| -> Option<bool> {
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
        Some(group == id.as_raw_pid().to_string() && !["Z", "X"].contains(&state))
    };
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    test_kill_process_group(id).is_ok() && processes.any(|process| is_living(process).unwrap_or_default())
}

/// How often somebody looks whether a process has ended.
pub(super) const POLL: Duration = Duration::from_millis(5);

/// How a command ended, in words.
pub(super) fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
