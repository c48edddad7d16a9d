//! Saved results: reads runs of onrush, wrk and wrk's forks from files and folders.
//!
//! `files` finds the files, and `input` reads one. Runs in any format become [`SavedRun`]s. Copies of runs already read
//! are omitted. An unreadable file does not prevent reading the others: problems are collected for each file.

mod cmm_json;
mod factor;
mod files;
mod input;
mod line;
mod log;
mod measured;
mod name;
mod ours;
mod report;
#[cfg(test)]
mod tests;
mod units;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memchr::memmem;
use onrush_load::record::{self, Document, RunResult};
use onrush_load::{cli, judge};
use onrush_plan::file_contents::sha256_hex;
use serde_json::Value;

pub use factor::factor_of_experiment;
use files::SavedSource;
pub use input::check_readable;
pub use measured::{MetricValues, RunOrigin, SavedRun};
use name::ResultName;
use report::ParsedReport;

/// The runs that were read, and the problems with their files.
#[derive(Debug, Default)]
pub struct Read {
    /// The runs in the order of files, and of lines within a file.
    pub runs: Vec<SavedRun>,
    /// Problems, each a sentence that names the file and, if known, the line.
    pub problems: Vec<String>,
}

/// Reads the document in a file, which may be compressed, or on standard input for `-`.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a result of onrush, has another version, or contains impossible figures.
pub fn document(path: &Path) -> anyhow::Result<Document> {
    document_from_bytes(path, &input::read(path)?)
}

fn document_from_bytes(path: &Path, bytes: &[u8]) -> anyhow::Result<Document> {
    Ok(judge::judge_result(RunResult::parse(path, bytes)?, cli::parse_saved_gate))
}

/// Reads all named files, and in named folders the files that may contain a run. Never fails: the problems are returned
/// with the runs.
pub fn all(paths: &[PathBuf]) -> Read {
    let mut read = Read::default();
    for source in files::sources(paths, &mut read.problems) {
        let mut runs: Option<Vec<SavedRun>> = None;
        for path in &source.paths {
            let found = read_file(&source, path, &mut read.problems);
            match (&mut runs, found) {
                // If there are two records of one run, the first wins, and the second adds missing facts.
                (Some(runs), mut found) if !runs.is_empty() => match (&mut runs[..], found.pop()) {
                    ([run], Some(other)) if found.is_empty() => run.complete(other),
                    (_, Some(_)) => read
                        .problems
                        .push(format!("{path:?} is left out: a better record of its runs was already read")),
                    (_, None) => {}
                },
                (runs, found) => *runs = Some(found),
            }
        }
        read.runs.extend(runs.unwrap_or_default());
    }
    leave_out_copies(&mut read);
    read
}

fn read_file(source: &SavedSource, path: &Path, problems: &mut Vec<String>) -> Vec<SavedRun> {
    let bytes = match input::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            problems.push(format!("{error:#}"));
            return Vec::new();
        }
    };
    let ResultName { prefix, factors, run } = ResultName::from_path(path);
    let origin = RunOrigin {
        folder: source.folder.clone(),
        file: path.to_string_lossy().into_owned(),
        name: prefix,
        ..RunOrigin::default()
    };
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let mut runs = match first {
        // A file with samples of `ss` contains a list of sockets.
        Some(b'[') if source.is_listed => return Vec::new(),
        Some(b'{') => read_json(origin, path, &bytes, problems).into_iter().collect(),
        _ => read_log(&origin, path, &String::from_utf8_lossy(&bytes), problems),
    };
    for measured in &mut runs {
        // Factors in the result take precedence over those in its name.
        for (factor, level) in &factors {
            let factor = factor_of_experiment(factor);
            if measured.position.is_none() && !measured.factors.iter().any(|(name, _)| *name == factor) {
                measured.factors.push((factor, level.clone()));
            }
        }
        measured.run = measured.run.or(run);
    }
    runs
}

/// The run in a JSON file of onrush or wrk-cmm.
fn read_json(origin: RunOrigin, path: &Path, bytes: &[u8], problems: &mut Vec<String>) -> Option<SavedRun> {
    // A document of onrush is long, and must not be parsed twice.
    let may_be_one = memmem::find(bytes, cmm_json::OWN_KEY.as_bytes()).is_some();
    let value =
        if may_be_one { serde_json::from_slice::<Value>(bytes).ok().filter(cmm_json::claims_format) } else { None };
    let measured = match &value {
        Some(value) => match cmm_json::read(value) {
            Ok(figures) => Ok(SavedRun { figures, ..SavedRun::new(RunOrigin { tool: "wrk-cmm", ..origin }) }),
            Err(error) => Err(format!("{path:?} is no complete result of wrk-cmm: {error}")),
        },
        None => document_from_bytes(path, bytes)
            .map(|document| ours::read(origin, document))
            .map_err(|error| format!("{error:#}")),
    };
    match measured {
        Ok(mut measured) => {
            measured.digests =
                vec![value.map_or_else(|| sha256_hex(bytes), |value| sha256_hex(value.to_string().as_bytes()))];
            Some(measured)
        }
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

/// The runs in saved output.
fn read_log(origin: &RunOrigin, path: &Path, text: &str, problems: &mut Vec<String>) -> Vec<SavedRun> {
    let log = log::read(text);
    let mut found: Vec<(usize, String)> = log.problems;
    found.extend(first_mixed_run(&log.reports));
    found.sort();
    problems.extend(found.into_iter().map(|(line, words)| format!("{path:?} line {line}: {words}")));
    if log.reports.is_empty() {
        let no_run = || format!("{path:?} has no run of onrush, wrk, wrk-cmm or wrk2");
        problems.push(record::other_file(path, text.as_bytes()).unwrap_or_else(no_run));
    }
    log.reports.into_iter().map(|report| run_from_report(origin.clone(), report)).collect()
}

/// Message about the first run that follows a run of another program, with its line; `None` without such a run.
fn first_mixed_run(reports: &[ParsedReport]) -> Option<(usize, String)> {
    let pair = reports.windows(2).find(|pair| pair[0].tool() != pair[1].tool())?;
    let (above, below) = (pair[0].tool(), pair[1].tool());
    Some((pair[1].line, format!("a run of {below} follows one of {above}: they measure differently")))
}

fn run_from_report(origin: RunOrigin, report: ParsedReport) -> SavedRun {
    let origin = RunOrigin { tool: report.tool(), line: Some(report.line), ..origin };
    let ParsedReport { section, label, url, load, rate, figures, text, json, .. } = report;
    SavedRun {
        section,
        label,
        url: (!url.is_empty()).then_some(url),
        threads: load.map(|(threads, _)| threads),
        connections: load.map(|(_, connections)| connections),
        rate,
        figures,
        digests: json
            .iter()
            .chain((!text.is_empty()).then_some(&text))
            .map(|text| sha256_hex(text.as_bytes()))
            .collect(),
        ..SavedRun::new(origin)
    }
}

/// Removes byte-for-byte copies of earlier runs.
fn leave_out_copies(read: &mut Read) {
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    let problems = &mut read.problems;
    read.runs.retain(|run| {
        let keys: Vec<_> = run.digests.iter().map(|digest| (run.origin.folder.clone(), digest.clone())).collect();
        let is_copy = keys.iter().any(|key| known.contains(key));
        if is_copy {
            let line = run.origin.line.map_or(String::new(), |line| format!(" line {line}"));
            problems.push(format!("{:?}{line}: this run was already read, and counts once", run.origin.file));
        }
        known.extend(keys);
        !is_copy
    });
}
