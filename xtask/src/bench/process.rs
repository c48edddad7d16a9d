//! Starts targets and generators through the meter, and reads their usage.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::contender::Contender;
use super::machine::BenchMachine;
use super::measure::RoundSample;
use super::nginx;
use super::outputs;
use super::programs::{self, Programs};
use super::work::{BenchTarget, BenchWork, RESULT};

/// Time in seconds after which a generator is considered hung and killed.
const PATIENCE_S: &str = "300";

/// Everything a run needs other than its work.
#[derive(Debug)]
pub struct BenchSetup<'a> {
    /// The machine and the processors to use.
    pub machine: &'a BenchMachine,
    /// The programs.
    pub programs: &'a Programs,
    /// Output directory of the meter and the counters.
    pub directory: &'a Path,
}

impl BenchSetup<'_> {
    /// Why a contender cannot do this work on this machine; `None` if it can.
    pub fn missing(&self, contender: &Contender, work: &BenchWork) -> Option<String> {
        let target = (contender.change)(*work).target;
        let needed = if target.is_nginx() { &nginx::PROGRAMS[..] } else { &[] };
        let missing = needed.iter().find_map(|program| programs::reason_not_installed(program));
        missing.or_else(|| self.programs.missing(contender.program).map(str::to_owned))
    }

    /// Key of the target that a contender needs for some work; contenders with equal keys share a target.
    pub fn target_key(contender: &Contender, work: &BenchWork) -> (BenchTarget, bool) {
        (work.target, work.target == BenchTarget::Subject && contender.is_before)
    }

    /// Starts the target of some work, pinned or unpinned.
    ///
    /// # Errors
    ///
    /// If the target cannot be started, or does not print its address.
    pub fn target(&self, contender: &Contender, work: &BenchWork) -> io::Result<TargetProcess> {
        let cpus = if work.pinned { &self.machine.target } else { &self.machine.all };
        let mut command = Command::new(self.programs.path_of("meter"));
        command.args(["hold", cpus]);
        let onrush = match work.target {
            BenchTarget::Subject => self.programs.path_for(contender),
            _ => self.programs.path_of("onrush"),
        };
        match work.target {
            BenchTarget::Bare => command.arg(self.programs.path_of("bare-server")),
            BenchTarget::Gate(connections) => {
                command.arg(self.programs.path_of("bare-gate")).arg(connections.to_string())
            }
            BenchTarget::Serve | BenchTarget::Subject => command.arg(onrush).args(["serve", "--addr", "127.0.0.1:0"]),
            target @ (BenchTarget::Tls | BenchTarget::Http1 | BenchTarget::Http2 | BenchTarget::TlsHttp2) => {
                let origin = nginx::prepare(&mut command, self.directory, target)?;
                let server = TargetProcess { process: command.spawn()?, origin };
                nginx::wait(&server.origin)?;
                return Ok(server);
            }
        };
        TargetProcess::start(&mut command)
    }

    /// A command that runs the program in the following arguments through the meter, pinned to the generator's
    /// processor or unpinned, and kills it if it hangs.
    pub fn metered(&self, meter: &[&OsStr], work: &BenchWork) -> Command {
        let mut command = Command::new("timeout");
        command.current_dir(crate::root());
        command.args(["--foreground", PATIENCE_S]).arg(self.programs.path_of("meter")).args(meter);
        command.arg(if work.pinned { &self.machine.generator } else { &self.machine.all });
        command
    }

    /// Runs a contender on a target once. The inner error describes the fault of the measurement.
    ///
    /// # Errors
    ///
    /// If the meter cannot be started.
    pub fn round(
        &self,
        contender: &Contender,
        work: &BenchWork,
        server: &TargetProcess,
    ) -> io::Result<Result<RoundSample, String>> {
        let usage = self.directory.join("usage");
        let mut command = self.metered(&[OsStr::new("run"), usage.as_os_str()], work);
        command.arg(self.programs.path_for(contender)).args(contender.program.arguments(work, &server.origin));
        let before = server.cpu_us()?;
        let began = Instant::now();
        let output = command.output()?;
        let elapsed_s = began.elapsed().as_secs_f64();
        let target_cpu_us = server.cpu_us()? - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(counted) = outputs::read(contender.program.format(), &text) else {
            let words = String::from_utf8_lossy(&output.stderr);
            let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            return Ok(Err(format!("no report: {}", first.trim())));
        };
        if let Some(why) = reason_unusable(&counted, work) {
            return Ok(Err(why));
        }
        let usage = fs::read_to_string(&usage)?;
        let (cpu_us, memory_bytes) =
            parse_usage(&usage).ok_or_else(|| io::Error::other(format!("the meter wrote {usage:?}")))?;
        let result = if work.options.contains(&RESULT) {
            serde_json::from_slice(&fs::read(crate::root().join(RESULT))?)?
        } else {
            Value::Null
        };
        let outputs::ReportedCounts { requests, per_second, .. } = counted;
        let requests = requests as f64;
        Ok(Ok(RoundSample { requests, per_second, elapsed_s, cpu_us, memory_bytes, target_cpu_us, result }))
    }
}

/// Why a report is not usable: at most one request in a thousand may fail, and every connection must be established.
fn reason_unusable(counted: &outputs::ReportedCounts, work: &BenchWork) -> Option<String> {
    let &outputs::ReportedCounts { requests, errors, .. } = counted;
    if errors * 1000 > requests {
        return Some(format!("{errors} errors beside {requests} answers"));
    }
    let connections = work.connections;
    let is_short = work.all_answer && requests < u64::from(connections);
    is_short.then(|| format!("{requests} answers on {connections} connections"))
}

/// Processor time in microseconds and memory in bytes, from the meter's output: `CPU_US RSS_KIB`.
fn parse_usage(text: &str) -> Option<(f64, f64)> {
    let (cpu_us, memory_kib) = text.trim().split_once(' ')?;
    Some((cpu_us.parse().ok()?, memory_kib.parse::<f64>().ok()? * 1024.0))
}

/// A target in a separate process, which is killed when this is dropped.
#[derive(Debug)]
pub struct TargetProcess {
    process: Child,
    /// Scheme, host and port.
    pub origin: String,
}

impl TargetProcess {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut server = Self { process: command.stdout(Stdio::piped()).spawn()?, origin: String::new() };
        let mut line = String::new();
        // The pipe stays open after this line, so the server never writes to a closed pipe.
        if let Some(stdout) = &mut server.process.stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match origin(&line) {
            Some(origin) => origin.clone_into(&mut server.origin),
            None => return Err(io::Error::other("the target did not say where it listens")),
        }
        Ok(server)
    }

    /// Processor time of all threads so far, in microseconds.
    fn cpu_us(&self) -> io::Result<f64> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.process.id()));
        let mut sum_ns = 0.0;
        for task in fs::read_dir(tasks)? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            sum_ns += text.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default();
        }
        Ok(sum_ns / 1e3)
    }
}

impl Drop for TargetProcess {
    fn drop(&mut self) {
        // Both fail only if the server has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Scheme, host and port in a target's first line of output.
fn origin(line: &str) -> Option<&str> {
    let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    Some(line.split_whitespace().find(is_url)?.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn origins_are_read_from_the_first_line() {
        let line = "onrush serve: listening on http://127.0.0.1:40123/ (1 thread)\n";
        assert_eq!(origin(line), Some("http://127.0.0.1:40123"));
        assert_eq!(origin("listening on https://[::1]:443/\n"), Some("https://[::1]:443"));
        assert_eq!(origin("error: address in use\n"), None);
    }

    #[test]
    fn meter_output_is_read() {
        assert_eq!(parse_usage("307877 2040\n"), Some((307_877.0, 2_088_960.0)));
        assert_eq!(parse_usage(""), None);
    }

    #[test]
    fn failures_and_missing_connections_invalidate_rounds() {
        let judge = |requests, errors| {
            reason_unusable(&outputs::ReportedCounts { requests, errors, per_second: 1.0 }, &ROWS[0].work)
        };
        assert_eq!(judge(50_000, 50), None);
        assert_eq!(judge(50_000, 51).as_deref(), Some("51 errors beside 50000 answers"));
        assert_eq!(judge(99, 0).as_deref(), Some("99 answers on 100 connections"));
    }
}
