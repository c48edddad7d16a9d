//! Hooks: commands that are executed before and after points and runs.

use std::fmt;
use std::fs::File;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use onrush_load::run::Interrupt;
use onrush_text::error_reason;

use super::process_group::{POLL, ProcessGroup, ProcessGroups, describe_exit};

/// A shell command that must succeed before its timeout.
#[derive(Debug)]
pub struct Hook<'a> {
    /// The command, for `/bin/sh -c`.
    pub command: &'a str,
    /// Environment variables in addition to those of onrush.
    pub environment: &'a [(String, String)],
    /// The file to which the output is appended.
    pub output: &'a File,
    /// Time after which the command is killed.
    pub timeout: Duration,
}

/// How a hook ended. As text, it follows the hook's name in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEnded {
    /// With exit status 0. Its background processes continue.
    Succeeded,
    /// With another exit status or by a signal. The process group was killed.
    Failed(ExitStatus),
    /// By its timeout. The process group was killed.
    TimedOut(Duration),
    /// By a signal to onrush. The process group was killed.
    Interrupted,
    /// The command could not be started, for this reason.
    NotStarted(String),
}

impl Hook<'_> {
    /// Runs the command until it ends by itself, its timeout has passed, or an interrupt is
    /// requested.
    pub fn run(&self, interrupt: &Interrupt, groups: &ProcessGroups) -> HookEnded {
        let deadline = Instant::now() + self.timeout;
        let mut group = match ProcessGroup::start(self.command, self.environment, self.output, GRACE, groups) {
            Ok(group) => group,
            Err(error) => return HookEnded::NotStarted(error_reason(&error)),
        };
        loop {
            if let Some(status) = group.status() {
                if status.success() {
                    group.leave();
                    return HookEnded::Succeeded;
                }
                return HookEnded::Failed(status);
            }
            if interrupt.is_requested() {
                return HookEnded::Interrupted;
            }
            if Instant::now() >= deadline {
                return HookEnded::TimedOut(self.timeout);
            }
            thread::sleep(POLL);
        }
    }
}

impl fmt::Display for HookEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed(status) => write!(f, "failed with {}", describe_exit(*status)),
            Self::TimedOut(timeout) => write!(f, "took longer than {timeout:?} and was killed"),
            Self::Interrupted => f.write_str("was interrupted"),
            Self::NotStarted(reason) => write!(f, "could not be started: {reason}"),
        }
    }
}

/// The time between SIGTERM and SIGKILL for a hook.
const GRACE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::fs;

    use onrush_load::proc;
    use rustix::process::Pid;
    use tempfile::TempDir;

    use super::*;

    fn run(command: &str, timeout: Duration, interrupt: &Interrupt) -> (HookEnded, String) {
        let scratch = TempDir::new().unwrap();
        let path = scratch.path().join("output");
        let environment = [("ONRUSH_ROUND".to_owned(), "2".to_owned())];
        let output = File::create(&path).unwrap();
        let hook = Hook { command, environment: &environment, output: &output, timeout };
        let groups = ProcessGroups::default();
        let ended = hook.run(interrupt, &groups);
        (ended, fs::read_to_string(path).unwrap())
    }

    /// True if the process whose id a hook printed is alive.
    fn lives(output: &str) -> bool {
        output.trim().parse::<u32>().expect("the hook wrote a process id");
        // An ended process exists until its new parent has waited for it.
        proc::read_stat(output.trim()).is_some_and(|stat| stat.is_alive)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn hook_output_and_end_are_kept() {
        let interrupt = Interrupt::default();
        let (ended, output) = run("read line; echo \"round $ONRUSH_ROUND$line\"; echo why >&2", LONG, &interrupt);
        assert_eq!((ended.to_string().as_str(), output.as_str()), ("succeeded", "round 2\nwhy\n"));
        let (ended, output) = run("echo no; exit 3", LONG, &interrupt);
        assert_eq!((ended.to_string().as_str(), output.as_str()), ("failed with exit status 3", "no\n"));
        let (ended, _) = run("kill -9 $$", LONG, &interrupt);
        assert_eq!(ended.to_string(), "failed with signal 9");
        let (ended, _) = run("exit\0", LONG, &interrupt);
        assert!(ended.to_string().starts_with("could not be started: "), "{ended}");
    }

    #[test]
    fn hanging_hooks_are_killed_with_their_group() {
        let timeout = Duration::from_millis(200);
        let (ended, output) = run("sleep 60 & echo $!; wait", timeout, &Interrupt::default());
        assert_eq!(ended.to_string(), "took longer than 200ms and was killed");
        assert!(!lives(&output));
    }

    #[test]
    fn stubborn_hooks_get_sigkill() {
        let start = Instant::now();
        let command = "trap '' TERM; sh -c 'echo $$; exec sleep 60' & wait; exit 0";
        // On a busy machine it takes a while until the shell ignores the signal.
        let (ended, output) = run(command, Duration::from_secs(1), &Interrupt::default());
        assert!(matches!(ended, HookEnded::TimedOut(_)) && start.elapsed() >= GRACE);
        assert!(!lives(&output));
    }

    #[test]
    fn failed_hooks_leave_no_processes() {
        let (ended, output) = run("sleep 60 & echo $!; exit 1", LONG, &Interrupt::default());
        assert!(matches!(ended, HookEnded::Failed(_)) && !lives(&output), "{ended}");
        let (ended, output) = run("sleep 5 & echo $!", LONG, &Interrupt::default());
        assert!(ended == HookEnded::Succeeded && lives(&output), "{ended}");
        let _ = rustix::process::kill_process(
            Pid::from_raw(output.trim().parse().unwrap()).unwrap(),
            rustix::process::Signal::KILL,
        );
    }

    #[test]
    fn interrupts_end_hooks() {
        let interrupt = Interrupt::default();
        interrupt.request_end();
        let (ended, _) = run("sleep 60", LONG, &interrupt);
        assert_eq!(ended.to_string(), "was interrupted");
    }
}
