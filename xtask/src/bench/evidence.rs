//! Measures what the evidence for the verdict costs. It cannot be switched off, so there is nothing to compare with:
//! its parts are measured in a normal run, as shares of the whole.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::contender::Contender::{self, Epoll, Uring};
use super::counter::Counter;
use super::experiment::{Comparison, Limit, Summary};
use super::load::Load;
use super::measure::{Figures, Outcome, Series};
use super::median::Estimate;
use super::outputs;
use super::overhead;
use super::process::{Server, Stage};

/// More rounds than this add nothing.
const ROUNDS_MAX: usize = 7;
/// How often threads are read.
const LOOK: Duration = Duration::from_millis(100);
/// The thread that watches the target and the machine.
const WATCHER: &str = "sight";
/// The calls in which a worker reads its account and the state of its connections. Requests need none of them.
const CALLS: &str = "getsockopt,pread64,clock_gettime,getrusage";
/// What counting calls takes, in seconds.
const COUNTED_S: f64 = 10.0;
/// What each part may cost, in per cent.
const LIMIT: f64 = 1.0;

/// How long [`run`] takes, in seconds.
pub fn seconds(load: &Load, rounds: usize) -> f64 {
    rounds.min(ROUNDS_MAX) as f64 * f64::from(load.seconds) + COUNTED_S
}

/// Measures each part; returns the unit, the contender and the outcome.
///
/// # Errors
/// A target or a program that cannot be started.
pub fn run(stage: &Stage<'_>, load: &Load, rounds: usize) -> io::Result<Vec<(&'static str, Comparison, Outcome)>> {
    let server = stage.target(load.target, load.pinned)?;
    let shares: Vec<f64> = (0..rounds.min(ROUNDS_MAX))
        .filter_map(|_| cpu_share(stage, load, &server).transpose())
        .collect::<Result<_, _>>()?;
    let calls = call_share(stage, load, &server)?;
    let limited = |ours| Comparison { ours, other: None, limit: Some(Limit::AtMost(LIMIT)), measure: None };
    Ok(vec![
        ("% of the CPU time: the watcher thread", limited(Uring), figures(shares)),
        (
            "% of the system calls, epoll: accounts and TCP_INFO",
            limited(Epoll),
            calls.and_then(|share| figures(vec![share])),
        ),
    ])
}

fn figures(values: Vec<f64>) -> Outcome {
    let estimate = match values[..] {
        [value] => Estimate::exact(value),
        _ => Estimate::of(&values).ok_or("the watcher thread was not found")?,
    };
    let ours = Series { values, rates: Vec::new() };
    Ok(Figures { ours, others: Series::default(), estimate, repeated: 0, summary: Summary::Median })
}

/// The share of the watcher in the processor time of a run, in per cent; `None`: it was not seen.
fn cpu_share(stage: &Stage<'_>, load: &Load, server: &Server) -> io::Result<Option<f64>> {
    let mut command = onrush(stage, Uring, load, server);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let tasks = format!("/proc/{}/task", child.id());
    let mut share = None;
    while child.try_wait()?.is_none() {
        thread::sleep(LOOK);
        share = watchers_share(&threads(Path::new(&tasks))).or(share);
    }
    Ok(share)
}

/// The threads of a process and their processor time; threads that end meanwhile are left out.
fn threads(tasks: &Path) -> Vec<(String, f64)> {
    let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
    let read = |path: &Path| {
        let name = fs::read_to_string(path.join("comm")).ok()?.trim().to_owned();
        let cpu = fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()?;
        Some((name, cpu))
    };
    tasks.filter_map(|task| read(&task.path())).collect()
}

/// The share of the watcher, in per cent, as long as there are workers.
fn watchers_share(threads: &[(String, f64)]) -> Option<f64> {
    let (_, watcher) = threads.iter().find(|(name, _)| name == WATCHER)?;
    threads.iter().find(|(name, _)| name.starts_with("worker"))?;
    let all: f64 = threads.iter().map(|(_, cpu)| cpu).sum();
    Some(watcher / all * 100.0)
}

/// The share of [`CALLS`] in the system calls of a run, in per cent. Their number depends on time, that of all calls on
/// requests: only the former are traced, so that the run is not slowed down.
fn call_share(stage: &Stage<'_>, load: &Load, server: &Server) -> io::Result<Result<f64, String>> {
    if let Some(why) = Counter::SystemCalls.missing() {
        return Ok(Err(why));
    }
    let in_all = overhead::calls_per_request(stage, load, server)?;
    let summary = stage.directory.join("evidence-calls");
    let plain = onrush(stage, Epoll, load, server);
    let mut strace = Command::new(Counter::SystemCalls.program());
    strace.args(["-f", "--seccomp-bpf", "-c", "-e"]).arg(format!("trace={CALLS}")).arg("-o").arg(&summary);
    let output = strace.arg(plain.get_program()).args(plain.get_args()).output()?;
    let counted = super::counter::total(&fs::read_to_string(&summary).unwrap_or_default());
    let report = outputs::read(Epoll.format(), &String::from_utf8_lossy(&output.stdout));
    Ok(counted
        .zip(report)
        .map(|(calls, report)| calls / (report.requests as f64 * in_all) * 100.0)
        .ok_or_else(|| format!("strace did not count: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// The command that puts the load on a server.
fn onrush(stage: &Stage<'_>, contender: Contender, load: &Load, server: &Server) -> Command {
    let mut command = Command::new(stage.programs.own(contender.program()));
    command.args(contender.arguments(load, &server.origin));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_watcher_is_that_in_all_threads_while_there_are_workers() {
        let threads =
            |names: &[(&str, f64)]| names.iter().map(|&(name, cpu)| (name.to_owned(), cpu)).collect::<Vec<_>>();
        let share = |names| watchers_share(&threads(names));
        assert_eq!(share(&[("onrush", 10.0), ("worker-0", 980.0), ("sight", 10.0)]), Some(1.0));
        assert_eq!(share(&[("onrush", 10.0), ("sight", 10.0)]), None, "the workers have ended");
        assert_eq!(share(&[("onrush", 10.0), ("worker-0", 980.0)]), None);
    }

    #[test]
    fn the_threads_of_this_process_are_seen() {
        let thread = thread::Builder::new().name("sight".to_owned()).spawn(|| threads(Path::new("/proc/self/task")));
        let seen = thread.unwrap().join().unwrap();
        assert!(seen.iter().any(|(name, _)| name == WATCHER), "{seen:?}");
    }
}
