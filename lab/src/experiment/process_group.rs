//! Process groups: a shell command and everything it starts, ended together.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use onrush_load::proc;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process_group, test_kill_process_group};

use super::output::CappedOutput;

/// The process groups that are alive. Clones share one list.
#[derive(Clone, Debug)]
pub struct ProcessGroups {
    known: Arc<Mutex<LiveGroups>>,
    /// The open-file limit for started processes: the one that this process had at its own start, because a run raises
    /// its own. `None`: unlimited.
    files: Option<u64>,
}

#[derive(Debug, Default)]
struct LiveGroups {
    ids: Vec<Pid>,
    /// True once no more groups may be started.
    is_over: bool,
}

/// A shell command and everything it starts. Dropping this ends all of these processes.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    child: Child,
    id: Pid,
    /// Time between SIGTERM and SIGKILL.
    grace: Duration,
    groups: ProcessGroups,
    output: CappedOutput,
}

impl ProcessGroups {
    /// Kills all groups and prevents new ones, before this process ends.
    pub fn kill(&self) {
        let mut known = self.lock();
        known.is_over = true;
        for &id in &known.ids {
            // If the group has ended in the meantime, it needs no signal.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LiveGroups> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ProcessGroups {
    fn default() -> Self {
        Self { known: Arc::default(), files: getrlimit(Resource::Nofile).current }
    }
}

impl ProcessGroup {
    /// Starts a command in a shell, without input and with additional environment variables. Its output is appended to
    /// a file. `grace`: time between SIGTERM and SIGKILL when the group is ended.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started.
    pub fn start(
        command: &str,
        environment: &[(String, String)],
        output: &File,
        grace: Duration,
        groups: &ProcessGroups,
    ) -> io::Result<Self> {
        let files = groups.files.map_or_else(|| "unlimited".to_owned(), |files| files.to_string());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", LIMITED, &files, command]).envs(environment.iter().map(|(name, value)| (name, value)));
        shell.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?).process_group(0);
        // Locked until the group is in the list, so that `kill` misses none.
        let mut known = groups.lock();
        if known.is_over {
            return Err(io::Error::other("the experiment has ended"));
        }
        let limited = CappedOutput::limit_file(output)?;
        let child = shell.spawn()?;
        let id = Pid::from_child(&child);
        known.ids.push(id);
        Ok(Self { child, id, grace, groups: groups.clone(), output: limited })
    }

    /// The exit status of the command itself; `None` while it is running.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends all processes left in the group, first with SIGTERM, then with SIGKILL. Waits until they have ended, but
    /// only for [`DYING_MAX`] after SIGKILL.
    pub fn end(&mut self) {
        if !self.groups.lock().ids.contains(&self.id) {
            return;
        }
        let deadline = Instant::now() + self.grace;
        // If the group has ended by itself, it needs no signal.
        let _ = kill_process_group(self.id, Signal::TERM);
        // A process that has ended stays in its group until somebody waits for it.
        while self.status().is_none() || is_group_alive(self.id) {
            if Instant::now() >= deadline {
                let _ = kill_process_group(self.id, Signal::KILL);
                let _ = self.child.kill();
                break;
            }
            thread::sleep(POLL);
        }
        let _ = self.child.wait();
        // A signal takes effect only when its process runs, which may take time on a busy machine.
        let deadline = Instant::now() + DYING_MAX;
        while is_group_alive(self.id) && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        self.remove_from_live_groups();
    }

    /// Lets the background processes of a command that has ended continue.
    pub fn leave(self) {
        self.output.leave_to(self.id);
        self.remove_from_live_groups();
    }

    fn remove_from_live_groups(&self) {
        self.groups.lock().ids.retain(|&id| id != self.id);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// True if a process of the group has not ended. Zombies have ended.
pub(super) fn is_group_alive(id: Pid) -> bool {
    is_group_alive_in(id, "/proc")
}

/// [`is_group_alive`] for the processes listed in this directory. If none of the group is listed, for instance because
/// `/proc` is missing, only the kernel knows whether the group exists, and for the kernel, zombies belong to it.
fn is_group_alive_in(id: Pid, proc: &str) -> bool {
    if test_kill_process_group(id).is_err() {
        return false;
    }
    let listed = proc::numeric_entries(proc).unwrap_or_default().into_iter();
    let mut members = listed.filter_map(|process| proc::read_stat(&process.to_string()));
    let mut is_listed = false;
    let has_live_one = members.any(|stat| {
        let is_member = stat.group == id.as_raw_pid();
        is_listed |= is_member;
        is_member && stat.is_alive
    });
    has_live_one || !is_listed
}

/// A shell command that runs its second argument with the first one as the open-file limit.
const LIMITED: &str = r#"ulimit -S -n "$0"; exec /bin/sh -c "$1""#;

/// Maximum wait for the end of killed processes. A process that waits for a broken disk does not end.
const DYING_MAX: Duration = Duration::from_secs(5);

/// Poll interval for the end of a process.
pub(super) const POLL: Duration = Duration::from_millis(5);

/// Describes how a command ended: its exit status, or the signal.
pub fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    #[test]
    fn commands_keep_the_original_file_limit() {
        let mut output = tempfile::tempfile().unwrap();
        for (files, expected) in [(Some(64), "64\n"), (Some(80), "80\n")] {
            let groups = ProcessGroups { files, ..ProcessGroups::default() };
            output.set_len(0).unwrap();
            output.rewind().unwrap();
            let mut group = ProcessGroup::start("ulimit -S -n", &[], &output, Duration::ZERO, &groups).unwrap();
            assert!(group.child.wait().unwrap().success());
            let mut text = String::new();
            output.rewind().unwrap();
            output.read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn groups_live_while_any_process_does() {
        let (groups, output) = (ProcessGroups::default(), tempfile::tempfile().unwrap());
        let empty = tempfile::tempdir().unwrap();
        let nothing = empty.path().to_str().unwrap();
        let mut group = ProcessGroup::start("sleep 60 & exit", &[], &output, Duration::ZERO, &groups).unwrap();
        assert!(group.child.wait().unwrap().success());
        let lives = || ["/proc", nothing].map(|proc| is_group_alive_in(group.id, proc));
        assert_eq!(lives(), [true; 2], "the shell has ended, and its child has not");
        kill_process_group(group.id, Signal::KILL).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        // The process is a zombie until its new parent has waited for it.
        while lives()[0] && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        assert!(!lives()[0]);
    }

    #[test]
    fn nothing_is_started_after_all_were_killed() {
        let (groups, output) = (ProcessGroups::default(), tempfile::tempfile().unwrap());
        let start = || ProcessGroup::start("sleep 60", &[], &output, Duration::ZERO, &groups);
        let mut group = start().unwrap();
        groups.kill();
        assert_eq!(group.child.wait().unwrap().signal(), Some(9));
        assert_eq!(start().unwrap_err().to_string(), "the experiment has ended");
    }
}
