//! Starts targets and generators through the meter, and reads what they used.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::contender::Contender;
use super::experiment::Sample;
use super::load::{Load, RESULT, Target};
use super::machine::Machine;
use super::nginx;
use super::outputs;
use super::programs::Programs;

/// A generator that has not ended after this many seconds hangs.
const PATIENCE_S: &str = "60";

/// Everything a round needs other than its load.
#[derive(Debug)]
pub struct Stage<'a> {
    /// The processors.
    pub machine: &'a Machine,
    /// The programs.
    pub programs: &'a Programs,
    /// Where the meter writes.
    pub directory: &'a Path,
}

impl Stage<'_> {
    /// Starts a target, pinned to its processor or not.
    ///
    /// # Errors
    /// A target that cannot be started, or does not say where it listens.
    pub fn target(&self, target: Target, pinned: bool) -> io::Result<Server> {
        let cpus = if pinned { &self.machine.target } else { &self.machine.all };
        let mut command = Command::new(self.programs.own("meter"));
        command.args(["hold", cpus]);
        match target {
            Target::Bare => command.arg(self.programs.own("bare-server")),
            Target::Gate(connections) => command.arg(self.programs.own("bare-gate")).arg(connections.to_string()),
            Target::Serve => command.arg(self.programs.own("onrush")).args(["serve", "--addr", "127.0.0.1:0"]),
            Target::Tls => {
                let origin = nginx::prepare(&mut command, self.directory)?;
                let server = Server { process: command.spawn()?, origin };
                nginx::wait(&server.origin)?;
                return Ok(server);
            }
        };
        Server::start(&mut command)
    }

    /// Makes a contender put its load on a target once. The inner error says what was wrong with the measurement.
    ///
    /// # Errors
    /// A meter that cannot be started.
    pub fn round(&self, contender: Contender, load: &Load, server: &Server) -> io::Result<Result<Sample, String>> {
        let usage = self.directory.join("usage");
        let cpus = if load.pinned { &self.machine.generator } else { &self.machine.all };
        let mut command = Command::new("timeout");
        command.current_dir(crate::root());
        command.args(["--foreground", PATIENCE_S]).arg(self.programs.own("meter"));
        command.arg("run").arg(&usage).arg(cpus).arg(self.programs.of(contender));
        command.args(contender.arguments(load, &server.origin));
        let before = server.cpu_us()?;
        let output = command.output()?;
        let target_cpu_us = server.cpu_us()? - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(counted) = outputs::read(contender.format(), &text) else {
            let words = String::from_utf8_lossy(&output.stderr);
            let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            return Ok(Err(format!("no report: {}", first.trim())));
        };
        if let Some(why) = doubt(&counted, load) {
            return Ok(Err(why));
        }
        let usage = fs::read_to_string(&usage)?;
        let (cpu_us, memory_bytes) =
            used(&usage).ok_or_else(|| io::Error::other(format!("the meter wrote {usage:?}")))?;
        let outputs::Counted { requests, per_second, .. } = counted;
        let lateness_us = if matches!(contender, Contender::Paced(_)) {
            let result = fs::read_to_string(crate::root().join(RESULT))?;
            lateness_us(&result).ok_or_else(|| io::Error::other(format!("{RESULT} has no lateness")))?
        } else {
            [0.0; 2]
        };
        Ok(Ok(Sample { requests, per_second, cpu_us, memory_bytes, target_cpu_us, lateness_us }))
    }
}

/// Why a report gives no figure, if so: at most one request in a thousand may fail, and every connection must be
/// established.
fn doubt(counted: &outputs::Counted, load: &Load) -> Option<String> {
    let &outputs::Counted { requests, errors, .. } = counted;
    if errors * 1000 > requests {
        return Some(format!("{errors} errors beside {requests} answers"));
    }
    let connections = load.connections;
    (requests < u64::from(connections)).then(|| format!("{requests} answers on {connections} connections"))
}

/// The processor time in microseconds and the memory in bytes, from what the meter writes: `CPU_US RSS_KIB`.
fn used(text: &str) -> Option<(f64, f64)> {
    let (cpu_us, memory_kib) = text.trim().split_once(' ')?;
    Some((cpu_us.parse().ok()?, memory_kib.parse::<f64>().ok()? * 1024.0))
}

/// The median and the 99th percentile of lateness in microseconds, from a result file.
fn lateness_us(result: &str) -> Option<[f64; 2]> {
    let result: Value = serde_json::from_str(result).ok()?;
    let percentiles = &result["open_loop"]["lateness"]["percentiles_us"];
    Some([percentiles["50"].as_f64()?, percentiles["99"].as_f64()?])
}

/// A target in its own process, which is ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    /// Scheme, host and port.
    pub origin: String,
}

impl Server {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut server = Self { process: command.stdout(Stdio::piped()).spawn()?, origin: String::new() };
        let mut line = String::new();
        // The pipe stays open after this line, so that the server never writes into a closed one.
        if let Some(stdout) = &mut server.process.stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match origin(&line) {
            Some(origin) => origin.clone_into(&mut server.origin),
            None => return Err(io::Error::other("the target did not say where it listens")),
        }
        Ok(server)
    }

    /// The processor time of all its threads so far, in microseconds.
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

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the server has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Scheme, host and port in what a target prints when it is ready.
fn origin(line: &str) -> Option<&str> {
    let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    Some(line.split_whitespace().find(is_url)?.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::super::experiment::Kind;
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn the_origin_is_read_from_the_targets_first_line() {
        let line = "onrush serve: listening on http://127.0.0.1:40123/ (1 thread)\n";
        assert_eq!(origin(line), Some("http://127.0.0.1:40123"));
        assert_eq!(origin("listening on https://[::1]:443/\n"), Some("https://[::1]:443"));
        assert_eq!(origin("error: address in use\n"), None);
    }

    #[test]
    fn the_meters_words_are_read() {
        assert_eq!(used("307877 2040\n"), Some((307_877.0, 2_088_960.0)));
        assert_eq!(used(""), None);
    }

    #[test]
    fn lateness_is_read_from_the_result_file() {
        let result = r#"{"open_loop": {"lateness": {"percentiles_us": {"50": 2.5, "75": 3, "99": 48}}}}"#;
        assert_eq!(lateness_us(result), Some([2.5, 48.0]));
        assert_eq!(lateness_us("{}"), None);
    }

    #[test]
    fn failed_requests_and_missing_connections_are_no_measurement() {
        let Kind::Rounds(small) = &ROWS[0].kind else { panic!("small is measured in rounds") };
        let judge = |requests, errors| doubt(&outputs::Counted { requests, errors, per_second: 1.0 }, &small.load);
        assert_eq!(judge(50_000, 50), None);
        assert_eq!(judge(50_000, 51).as_deref(), Some("51 errors beside 50000 answers"));
        assert_eq!(judge(99, 0).as_deref(), Some("99 answers on 100 connections"));
    }
}
