//! Counts instructions per request with callgrind, and system calls with strace. Processor time varies between runs by
//! more than the cost of a careless change; counts are nearly constant.
//!
//! A count is the difference between two runs of different length, to exclude the start. Only the workers are counted,
//! because the work of other threads depends on time.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use super::contender::{Contender, GeneratorProgram};
use super::measure::{Counter, MeasureComparison};
use super::median::MedianEstimate;
use super::outputs;
use super::process::BenchSetup;
use super::programs;
use super::rounds::{ComparisonFigures, ComparisonResult, Series};
use super::work::{BenchTarget, BenchWork};

/// Number of runs with a real target. The lowest count is used, because each additional tenth of a second adds some
/// instructions and calls.
const TIMES: u32 = 5;
/// Scenario of simulated runs, relative to the root of the repository, and the backend that reads it.
const SCENARIO: &str = "target/bench/scenario.toml";
const SIMULATED: GeneratorProgram = GeneratorProgram::Onrush("sim:target/bench/scenario.toml");
/// Calls of [`Counter::Evidence`].
const EVIDENCE: &str = "--trace=getsockopt,pread64,clock_gettime,getrusage";
/// Calls for evidence depend on time: they are counted at full speed, for this multiple of the requests.
const EVIDENCE_FOR: u32 = 25;

/// Counts per request for both sides of a comparison.
///
/// # Errors
///
/// The reason why nothing was counted, for the table.
pub fn compare(
    stage: &BenchSetup<'_>,
    work: &BenchWork,
    comparison: &MeasureComparison,
    counter: Counter,
) -> ComparisonResult {
    let missing = programs::reason_not_installed(counter.program());
    let count = |contender: Contender| match missing.clone().or_else(|| stage.missing(&contender, work)) {
        Some(why) => Err(why),
        None => count(stage, work, &contender, counter).map_err(|error| error.to_string()),
    };
    let ours = count(comparison.ours)?;
    let other = comparison.other.map(count).transpose()?;
    let series = |value: Option<f64>| Series { values: value.into_iter().collect(), rates: Vec::new() };
    let estimate = MedianEstimate::exact(ours / other.unwrap_or(1.0));
    Ok(ComparisonFigures { ours: series(Some(ours)), others: series(other), estimate, rates: None, repeated: 0 })
}

/// A contender's count per request, over all workers.
fn count(stage: &BenchSetup<'_>, work: &BenchWork, contender: &Contender, counter: Counter) -> io::Result<f64> {
    let work = (contender.change)(*work);
    if work.target == BenchTarget::Subject {
        return Err(io::Error::other("not countable: onrush is the target here, not the generator"));
    }
    let (program, work) = match (counter, work.simulation()) {
        (Counter::Instructions, Some(scenario)) => {
            fs::write(crate::root().join(SCENARIO), scenario)?;
            (SIMULATED, work)
        }
        // valgrind 3.19 does not know onrush's system call for waiting on epoll.
        (Counter::Instructions, None) => (GeneratorProgram::Onrush("uring"), BenchWork { connections: 1, ..work }),
        (Counter::SystemCalls, _) => (GeneratorProgram::Onrush("epoll"), work),
        (Counter::Evidence, _) => {
            (GeneratorProgram::Onrush("epoll"), BenchWork { counted: work.counted * EVIDENCE_FOR, ..work })
        }
    };
    let contender = Contender { program, ..*contender };
    let few = match work.target {
        BenchTarget::Gate(_) => work.counted / 10,
        _ => work.connections.max(work.counted / 10),
    };
    let run = |requests| lowest_counts(stage, &work.of_requests(requests), &contender, counter);
    let (few, many) = (run(few)?, run(few + work.counted)?);
    let mut growth: Vec<f64> = many.iter().zip(&few).map(|(many, few)| many - few).collect();
    // The workers are the threads with the largest growth.
    growth.sort_by(|one, other| other.total_cmp(one));
    Ok(growth.iter().take(work.threads as usize).sum::<f64>() / f64::from(work.counted))
}

/// Lowest count of several runs, per thread.
fn lowest_counts(
    stage: &BenchSetup<'_>,
    work: &BenchWork,
    contender: &Contender,
    counter: Counter,
) -> io::Result<Vec<f64>> {
    let is_simulated = contender.program == SIMULATED;
    let server = if is_simulated { None } else { Some(stage.target(contender, work)?) };
    let origin = server.as_ref().map_or("http://127.0.0.1", |server| &server.origin);
    let times = if is_simulated { 1 } else { TIMES };
    let mut lowest = run(stage, work, contender, counter, origin)?;
    for _ in 1..times {
        let again = run(stage, work, contender, counter, origin)?;
        lowest = lowest.iter().zip(again).map(|(one, other)| one.min(other)).collect();
    }
    Ok(lowest)
}

/// Runs onrush and counts: instructions per thread, or calls of all workers.
fn run(
    stage: &BenchSetup<'_>,
    work: &BenchWork,
    contender: &Contender,
    counter: Counter,
    origin: &str,
) -> io::Result<Vec<f64>> {
    let directory = stage.directory.join("count");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir(&directory)?;
    let file = directory.join("threads");
    let (words, output) = match counter {
        Counter::Instructions => {
            (&["valgrind", "--tool=callgrind", "--separate-threads=yes"][..], "callgrind-out-file")
        }
        Counter::SystemCalls => (&["strace", "--follow-forks", "--decode-pids=comm"][..], "output"),
        Counter::Evidence => {
            (&["strace", "--follow-forks", "--decode-pids=comm", "--seccomp-bpf", EVIDENCE][..], "output")
        }
    };
    let mut command = stage.metered(&[OsStr::new("hold")], work);
    command.args(words).arg(format!("--{output}={}", file.display())).arg(stage.programs.path_for(contender));
    // A script's instructions depend on random numbers.
    command.env("LD_PRELOAD", stage.programs.path_of("examples/libunvaried.so"));
    // The number of polls during a wait depends on time.
    command.args(["--spin", "off"]).args(contender.program.arguments(work, origin));
    let output = command.output()?;
    let report = outputs::read(contender.program.format(), &String::from_utf8_lossy(&output.stdout));
    if report.is_none_or(|report| report.requests < u64::from(work.requests) || report.errors > 0) {
        let words = String::from_utf8_lossy(&output.stderr);
        let first = words.lines().find(|line| !line.is_empty() && !line.starts_with(['=', '-'])).unwrap_or_default();
        return Err(io::Error::other(format!("{} did not count: {first}", counter.program())));
    }
    if counter == Counter::Instructions {
        instructions(&directory)
    } else {
        Ok(vec![count_worker_calls(&fs::read_to_string(file)?)])
    }
}

/// Instructions executed by each thread, from callgrind's files, one per thread.
fn instructions(directory: &Path) -> io::Result<Vec<f64>> {
    let mut files: Vec<_> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.sort();
    // The first file belongs to no thread.
    files.iter().map(|file| Ok(parse_instructions(&fs::read_to_string(file)?).unwrap_or_default())).collect()
}

/// Number of instructions in one of callgrind's files.
fn parse_instructions(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

/// Number of the workers' calls in strace's output. A call interrupted by another thread's has two lines, and counts
/// once.
fn count_worker_calls(log: &str) -> f64 {
    let is_call = |line: &&str| line.contains("<worker") && !line.contains(" resumed>");
    log.lines().filter(is_call).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_number_is_read() {
        assert_eq!(parse_instructions("events: Ir\nsummary: 5\n\nfn=(1)\ntotals: 387947\n"), Some(387_947.0));
        assert_eq!(parse_instructions("desc: no thread\n"), None);
    }

    #[test]
    fn calls_of_workers_are_counted_once() {
        let log = "\
7<onrush> read(3, \"\", 1) = 0
9<worker-0> epoll_pwait2(4,  <unfinished ...>
8<sight> read(3, \"\", 1) = 0
9<worker-0> <... epoll_pwait2 resumed>[], 512, NULL, NULL, 8) = 1
9<worker-0> recvfrom(6, \"\", 65536, 0, NULL, NULL) = 78
";
        assert_eq!(count_worker_calls(log), 2.0);
    }
}
