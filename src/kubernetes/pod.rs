//! The coordinator's pod: executes the run, then delivers its results, which are lost when the pod ends. Results are
//! written to the log while there is room. For those left over, the pod waits until they are fetched.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;
use onrush_load::cli::{Invocation, parse_with_plan_hook};
use onrush_load::input::InputFiles;
use onrush_load::program::{EXIT_WRONG, Signals, print, say};
use onrush_load::single;
use onrush_plan::file_contents;

use super::log::{LineMark, LogLine, ResultDigest};
use super::packed::{PodOrders, RESULTS, search_options};

/// Maximum wait for results to be fetched.
const WAIT: Duration = Duration::from_secs(600);
/// Poll interval while waiting for results to be fetched.
const LOOK: Duration = Duration::from_millis(200);
/// Name of the file whose existence shows that all results have been fetched.
const FETCHED: &str = ".fetched";

/// Executes the packed run; returns its exit code.
pub(super) fn run_pod(orders: &Path) -> u8 {
    let orders = fs::read(orders)
        .context("the run cannot be read")
        .and_then(|text| serde_json::from_slice(&text).context("this is not a run that was packed"));
    let PodOrders { words, files, log_max, mark } = match orders {
        Ok(orders) => orders,
        Err(error) => return report_failure(&error),
    };
    let files = InputFiles::brought(files);
    let words: Vec<_> = words.into_iter().map(Into::into).collect();
    let mut results = Vec::new();
    let invocation = parse_with_plan_hook(&words, search_options(), &files, &mut |plan| {
        // A file that cannot be read is reported when the run begins.
        let _ = files.read_files(plan);
        for output in &mut plan.output.outputs {
            let name = output.path.file_name().unwrap_or_default();
            output.path = Path::new(RESULTS).join(name);
            results.push(output.path.clone());
        }
    });
    let code = match invocation {
        Invocation::Print { stdout, stderr, exit } => {
            say(stderr.trim_end());
            print("onrush", Ok(stdout), exit)
        }
        Invocation::Command { work, warnings } => {
            warnings.iter().for_each(|line| say(line));
            work.carry_out()
        }
        Invocation::Run { mut plan, warnings } => {
            warnings.iter().for_each(|line| say(line));
            single::run_and_report(&mut plan)
        }
    };
    hand_over(&results, log_max, &mark, code);
    code
}

/// Writes results to the log, and waits until those for which the log has no room have been fetched.
fn hand_over(results: &[PathBuf], log_max: u64, mark: &LineMark, code: u8) {
    let mut lines = String::new();
    let (mut named, mut is_waiting) = (0, false);
    for path in results {
        // A missing file was already reported when it could not be written.
        let Ok(contents) = fs::read(path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        named += 1;
        let sum = ResultDigest { name, sha256: file_contents::sha256_hex(&contents) };
        let in_log = compress(&contents).map(|compressed| LogLine::format_result(mark, sum.clone(), &compressed));
        match in_log {
            Ok(in_log) if (lines.len() + in_log.len()) as u64 <= log_max => lines += &in_log,
            _ => {
                is_waiting = true;
                let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("onrush"));
                lines += &LogLine::Waiting(sum, program.display().to_string()).to_marked_line(mark);
            }
        }
    }
    lines += &LogLine::Exit(code, named).to_marked_line(mark);
    print("onrush kubernetes", Ok(lines), 0);
    if !is_waiting {
        return;
    }
    let Ok(signals) = Signals::listen(&[]) else { return };
    let begun = Instant::now();
    let fetched = Path::new(RESULTS).join(FETCHED);
    while !fetched.exists() && !signals.interrupt.is_requested() && begun.elapsed() < WAIT {
        thread::sleep(LOOK);
    }
}

fn compress(contents: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents)?;
    encoder.finish()
}

/// Writes a result, compressed, to standard output; returns the exit code.
pub(super) fn send_result(name: &str) -> u8 {
    let sent = fs::read(Path::new(RESULTS).join(Path::new(name).file_name().unwrap_or_default()))
        .and_then(|contents| compress(&contents))
        .and_then(|compressed| io::copy(&mut &compressed[..], &mut output()?));
    sent.map_or_else(|error| report_failure(&anyhow!(error)), |_| 0)
}

/// Opens standard output for binary data.
fn output() -> io::Result<fs::File> {
    Ok(fs::File::from(rustix::io::dup(rustix::stdio::stdout())?))
}

/// Records that the results have been fetched, which ends the wait; returns the exit code.
pub(super) fn mark_fetched() -> u8 {
    fs::write(Path::new(RESULTS).join(FETCHED), "").map_or_else(|error| report_failure(&anyhow!(error)), |()| 0)
}

fn report_failure(error: &anyhow::Error) -> u8 {
    say(&format!("onrush kubernetes: {error:#}"));
    EXIT_WRONG
}
