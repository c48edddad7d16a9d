//! Measures features that should cost next to nothing: instructions and system calls of onrush with the feature and
//! without it, and the processor time.

use std::fs;
use std::io;

use super::contender::Contender;
use super::counter::Counter;
use super::experiment::{Comparison, Experiment, Limit, Measure, Overhead, Summary};
use super::load::Load;
use super::measure::{self, Figures, Outcome, Series};
use super::median::Estimate;
use super::options::Options;
use super::process::{Server, Stage};

/// The numbers of requests of two runs; their difference leaves out what starting costs.
const REQUESTS: [u32; 2] = [2_000, 22_000];
/// The comparison, without a limit.
const PAIR: Comparison =
    Comparison { ours: Contender::Uring, other: Some(Contender::Without), limit: None, measure: None };

/// Counts and measures; returns the unit and the figures of each comparison.
///
/// # Errors
/// A target or a program that cannot be started.
pub fn run(
    stage: &Stage<'_>,
    overhead: &Overhead,
    options: &Options,
) -> io::Result<Vec<(&'static str, Comparison, Outcome)>> {
    let limited = Comparison { limit: Some(Limit::AtMost(overhead.limit)), ..PAIR };
    let instructions = ("instructions/request, simulated", limited, instructions(stage, &overhead.load)?);
    let calls = ("system calls/request, epoll", limited, system_calls(stage, &overhead.load)?);
    let beside = measure::run(stage, &experiment(overhead), options)?;
    Ok([instructions, calls].into_iter().chain(beside).collect())
}

/// What is timed in addition to the counting.
pub fn experiment(overhead: &Overhead) -> Experiment {
    let (load, measure) = (overhead.load, Measure::CpuPerRequest);
    Experiment { load, measure, rounds_max: usize::MAX, summary: Summary::Median, comparisons: &[PAIR] }
}

/// The instructions of onrush, including its simulated server.
fn instructions(stage: &Stage<'_>, load: &Load) -> io::Result<Outcome> {
    let scenario = stage.directory.join("scenario.toml");
    fs::write(&scenario, "")?;
    per_request(stage, Counter::Instructions, load, &format!("sim:{}", scenario.display()), "http://127.0.0.1:80")
}

/// System calls with epoll, where each request needs its own. With io_uring one call serves as many requests as are
/// ready.
fn system_calls(stage: &Stage<'_>, load: &Load) -> io::Result<Outcome> {
    let server = stage.target(load.target, load.pinned)?;
    per_request(stage, Counter::SystemCalls, load, "epoll", &server.origin)
}

fn per_request(stage: &Stage<'_>, counter: Counter, load: &Load, io: &str, origin: &str) -> io::Result<Outcome> {
    if let Some(why) = counter.missing() {
        return Ok(Err(why));
    }
    let count = |contender| count_one(stage, counter, contender, load, io, origin);
    Ok(count(PAIR.ours)
        .and_then(|with| Ok(counted(with, count(Contender::Without)?)))
        .map_err(|error| error.to_string()))
}

/// Counts what onrush does for a request of `load`.
fn count_one(
    stage: &Stage<'_>,
    counter: Counter,
    contender: Contender,
    load: &Load,
    io: &str,
    origin: &str,
) -> io::Result<f64> {
    let program = stage.programs.own(Contender::Uring.program());
    let count = |requests| counter.count(&program, &arguments(contender, load, requests, io, origin), stage.directory);
    let [few, many] = REQUESTS.map(count);
    Ok((many? - few?) / f64::from(REQUESTS[1] - REQUESTS[0]))
}

/// System calls of onrush for a request of `load`, with epoll.
///
/// # Errors
/// A program that cannot be started, or is not counted.
pub fn calls_per_request(stage: &Stage<'_>, load: &Load, server: &Server) -> io::Result<f64> {
    count_one(stage, Counter::SystemCalls, Contender::Uring, load, "epoll", &server.origin)
}

/// The arguments that make onrush do `load` with `requests` requests.
fn arguments(contender: Contender, load: &Load, requests: u32, io: &str, origin: &str) -> Vec<String> {
    let Load { path, threads, connections, .. } = load;
    let words = [format!("-t{threads}"), format!("-c{connections}"), format!("-n{requests}"), "--io".to_owned()];
    let options = contender.options(load).iter().map(|&option| option.to_owned());
    words.into_iter().chain([io.to_owned()]).chain(options).chain([format!("{origin}{path}")]).collect()
}

/// Figures that do not come from rounds.
fn counted(ours: f64, other: f64) -> Figures {
    let series = |value| Series { values: vec![value], rates: Vec::new() };
    Figures {
        ours: series(ours),
        others: series(other),
        estimate: Estimate::exact(ours / other),
        repeated: 0,
        summary: Summary::Median,
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::Kind;
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn the_two_runs_differ_in_what_they_are_about_and_in_nothing_else() {
        let row = ROWS.iter().find(|row| row.name == "script-static").unwrap();
        let Kind::Counted(overhead) = &row.kind else { panic!("script-static is counted") };
        let words = |contender| arguments(contender, &overhead.load, 7, "epoll", "http://h:1").join("|");
        assert_eq!(words(Contender::Uring), "-t1|-c100|-n7|--io|epoll|-s|benches/scripts/static.lua|http://h:1/");
        assert_eq!(
            words(Contender::Without),
            "-t1|-c100|-n7|--io|epoll|-X|POST|--body|name=x&size=3|\
             -H|Content-Type: application/x-www-form-urlencoded|http://h:1/"
        );
    }
}
