//! The target's command: starts a server, waits until the server is ready, and ends it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use onrush_load::program::screen;
use onrush_load::run::Interrupt;
use onrush_plan::secrets;
use onrush_text::error_reason;
use onrush_text::escape;
use thiserror::Error;

use super::process_group::{ProcessGroup, ProcessGroups, describe_exit};

/// How to start the target's command.
#[derive(Debug)]
pub struct TargetStart<'a> {
    /// The command, for `/bin/sh -c`.
    pub command: &'a str,
    /// Environment variables in addition to those of onrush.
    pub environment: &'a [(String, String)],
    /// The file to which the output is appended.
    pub output: &'a Path,
    /// Maximum time until the target is ready.
    pub timeout: Duration,
}

/// A target that was started and became ready. Dropping it ends its process group.
#[derive(Debug)]
pub struct TargetProcess(ProcessGroup);

/// Why a target did not become ready, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetNotReady {
    /// The command could not be started, for this reason.
    #[error("the target's command could not be started: {0}")]
    NotStarted(String),
    /// Another server already responds at the target's address.
    #[error(
        "the target's command was not started: a server already responds at the target's URL; stop that server first"
    )]
    Taken,
    /// The command ended before the target was ready.
    #[error("the target's command ended before the target was ready, with {}", describe_exit(*.status))]
    Died {
        /// Exit status of the command.
        status: ExitStatus,
        /// Last lines of the command's output.
        output: String,
    },
    /// The target was not ready in time. Its command was ended.
    #[error("the target was not ready within {timeout:?}, so its command was ended")]
    Late {
        /// The time that was allowed.
        timeout: Duration,
        /// Last lines of the command's output.
        output: String,
    },
    /// The experiment was interrupted. The command was ended.
    #[error("the target's command was ended before the target was ready: interrupted")]
    Interrupted,
}

impl TargetNotReady {
    /// The last lines that the command printed, for the terminal only, because they may contain secrets. `None` if the
    /// reason is not the command's end or delay.
    pub fn printed_lines(&self) -> Option<&str> {
        match self {
            Self::Died { output, .. } | Self::Late { output, .. } => Some(output),
            Self::NotStarted(_) | Self::Taken | Self::Interrupted => None,
        }
    }
}

impl TargetProcess {
    /// Starts the target's command and waits until the target is ready. `is_ready` asks the target once, and must
    /// return within the given time.
    ///
    /// # Errors
    ///
    /// Fails if another server already responds, or if the target does not become ready in time. None of its processes
    /// is left then.
    pub fn start(
        start: &TargetStart,
        mut is_ready: impl FnMut(Duration) -> bool,
        interrupt: &Interrupt,
        groups: &ProcessGroups,
    ) -> Result<Self, TargetNotReady> {
        if is_ready(start.timeout) {
            return Err(TargetNotReady::Taken);
        }
        let not_started = |error: io::Error| TargetNotReady::NotStarted(error_reason(&error));
        let open = OpenOptions::new().create(true).append(true).read(true).open(start.output);
        let mut output = open.map_err(not_started)?;
        let before = output.metadata().map_err(not_started)?.len();
        let deadline = Instant::now() + start.timeout;
        let group =
            ProcessGroup::start(start.command, start.environment, &output, GRACE, groups).map_err(not_started)?;
        let mut target = Self(group);
        loop {
            let was_ready = is_ready(deadline.saturating_duration_since(Instant::now()));
            if let Some(status) = target.exit_status() {
                return Err(TargetNotReady::Died { status, output: last_lines(&mut output, before) });
            }
            if was_ready {
                return Ok(target);
            }
            if interrupt.is_requested() {
                return Err(TargetNotReady::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(TargetNotReady::Late { timeout: start.timeout, output: last_lines(&mut output, before) });
            }
            thread::sleep(POLL);
        }
    }

    /// The exit status of a command that ended by itself; `None` while it is running.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.0.status()
    }
}

/// The last lines written to a file after its first `before` bytes, without known secrets; empty if they cannot be
/// read.
fn last_lines(file: &mut File, before: u64) -> String {
    let mut read = || {
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(before.max(end.saturating_sub(OUTPUT_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    // Redacted before the text is split into lines and these are shortened: a part of a secret would not be recognised.
    let text = screen::hidden(&secrets::redact_text(&String::from_utf8_lossy(&read().unwrap_or_default())));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last: Vec<String> = lines.iter().rev().take(OUTPUT_LINES).rev().map(|line| escape(line.as_bytes())).collect();
    last.join(" | ")
}

/// Poll interval for a started target.
const POLL: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL for a target's command.
const GRACE: Duration = Duration::from_secs(5);
/// Number of lines of a target's output that messages quote.
const OUTPUT_LINES: usize = 3;
/// Bytes at the end of the output that are searched for these lines.
const OUTPUT_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use rustix::process::Pid;
    use tempfile::TempDir;

    use super::super::process_group::is_group_alive;
    use super::*;

    /// Starts a target that is ready as soon as a file exists.
    fn start(command: &str, timeout: Duration, scratch: &TempDir) -> Result<TargetProcess, TargetNotReady> {
        let path = scratch.path().to_str().unwrap().to_owned();
        let (environment, output) = ([("IN".to_owned(), path)], scratch.path().join("output"));
        let start = TargetStart { command, environment: &environment, output: &output, timeout };
        let ready = scratch.path().join("ready");
        TargetProcess::start(&start, |_| ready.exists(), &Interrupt::default(), &ProcessGroups::default())
    }

    /// True if the group whose id is in the output has a process left.
    fn is_left(scratch: &TempDir) -> bool {
        let output = fs::read_to_string(scratch.path().join("output")).unwrap();
        let id = output.split_whitespace().next().and_then(|id| Pid::from_raw(id.parse().ok()?));
        is_group_alive(id.expect("the target wrote its process id"))
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn targets_live_until_dropped() {
        let scratch = TempDir::new().unwrap();
        let mut target = start("echo $$; sleep 0.05; touch \"$IN/ready\"; sleep 60 & wait", LONG, &scratch).unwrap();
        assert!(scratch.path().join("ready").exists() && target.exit_status().is_none() && is_left(&scratch));
        drop(target);
        assert!(!is_left(&scratch));
    }

    #[test]
    fn targets_ending_by_themselves_are_noticed() {
        let scratch = TempDir::new().unwrap();
        let mut target = start("touch \"$IN/ready\"; sleep 0.05; exit 7", LONG, &scratch).unwrap();
        let deadline = Instant::now() + LONG;
        while target.exit_status().is_none() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        assert_eq!(target.exit_status().and_then(|status| status.code()), Some(7));
    }

    #[test]
    fn early_deaths_quote_the_targets_output() {
        let scratch = TempDir::new().unwrap();
        fs::write(scratch.path().join("output"), "of another round\n").unwrap();
        let unready = start("printf 'a\\nb\\n\\nc\\n\\033[31md\\n' >&2; exit 1", LONG, &scratch).unwrap_err();
        let died = "the target's command ended before the target was ready, with exit status 1";
        assert_eq!((unready.to_string(), unready.printed_lines()), (died.to_owned(), Some("b | c | \\x1b[31md")));
        let unready = start("exit 2", LONG, &scratch).unwrap_err();
        assert_eq!(unready.printed_lines(), Some(""));
    }

    #[test]
    fn targets_never_ready_are_ended() {
        let scratch = TempDir::new().unwrap();
        let unready = start("echo $$; sleep 60", Duration::from_millis(100), &scratch).unwrap_err().to_string();
        assert_eq!(unready, "the target was not ready within 100ms, so its command was ended");
        assert!(!is_left(&scratch));
    }

    #[test]
    fn readiness_checks_stay_within_the_timeout() {
        let scratch = TempDir::new().unwrap();
        let (output, timeout) = (scratch.path().join("output"), Duration::from_millis(200));
        let start = TargetStart { command: "sleep 60", environment: &[], output: &output, timeout };
        let mut given = Vec::new();
        let asked = |within: Duration| {
            given.push(within);
            thread::sleep(within.min(Duration::from_millis(100)));
            false
        };
        let unready =
            TargetProcess::start(&start, asked, &Interrupt::default(), &ProcessGroups::default()).unwrap_err();
        assert!(matches!(unready, TargetNotReady::Late { .. }), "{unready}");
        // The first query comes before the command is started.
        assert!(given[0] == timeout && given[1..].iter().all(|within| *within <= timeout), "{given:?}");
        assert!(given[1..].is_sorted_by(|one, next| one > next) && given.len() >= 3, "{given:?}");
    }

    #[test]
    fn targets_on_taken_addresses_are_not_started() {
        let scratch = TempDir::new().unwrap();
        fs::write(scratch.path().join("ready"), "").unwrap();
        assert_eq!(start("echo $$", LONG, &scratch).unwrap_err(), TargetNotReady::Taken);
        assert!(!scratch.path().join("output").exists());
    }

    #[test]
    fn interrupts_end_the_wait_for_targets() {
        let scratch = TempDir::new().unwrap();
        let (interrupt, groups, output) =
            (Interrupt::default(), ProcessGroups::default(), scratch.path().join("output"));
        let command = "echo $$; sleep 60";
        let start = TargetStart { command, environment: &[], output: &output, timeout: LONG };
        let is_written = || fs::metadata(&output).is_ok_and(|metadata| metadata.len() > 0);
        let interrupted = |_| {
            if is_written() {
                interrupt.request_end();
            }
            false
        };
        assert_eq!(
            TargetProcess::start(&start, interrupted, &interrupt, &groups).unwrap_err(),
            TargetNotReady::Interrupted
        );
        assert!(!is_left(&scratch));
        let asked = Cell::new(0);
        let second_time = |_| asked.replace(asked.get() + 1) > 0;
        let mut target = TargetProcess::start(&start, second_time, &Interrupt::default(), &groups).unwrap();
        groups.kill();
        let deadline = Instant::now() + LONG;
        while target.exit_status().is_none() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        assert!(target.exit_status().is_some());
    }
}
