//! Finds the files to read: named files, and those files in named folders that may contain a run.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onrush_plan::experiment::PLAN;
use onrush_text::{error_reason, order};

use super::name;

/// Extensions of the files read from a folder, from the most complete kind of record to the least.
const ENDINGS: [&str; 3] = ["json", "log", "txt"];

/// Files that describe an experiment itself and contain no run.
const NO_RESULTS: [&str; 3] = ["host.json", "targets.json", "comparison.txt"];

/// The files with the records of one run, or one file with several runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSource {
    /// The folder as named; for a named file, its parent folder.
    pub folder: String,
    /// True if the folder was named on the command line, not the file.
    pub is_listed: bool,
    /// Files in one folder whose names differ only in the extension, the most complete record
    /// first.
    pub paths: Vec<PathBuf>,
}

/// Finds the sources in files and folders, in the order named; within a folder, sorted by name. A
/// message about each unusable folder is added to `problems`.
pub fn sources(paths: &[PathBuf], problems: &mut Vec<String>) -> Vec<SavedSource> {
    let mut sources: Vec<SavedSource> = Vec::new();
    let mut known = HashMap::new();
    for path in paths {
        let is_listed = path.is_dir();
        let folder = if is_listed { path.as_path() } else { path.parent().unwrap_or(Path::new("")) };
        let files = if is_listed { files_or_problem(path, problems) } else { vec![path.clone()] };
        for file in files {
            // The records of one run have names that differ only in the extension.
            let key = (file.parent().map(Path::to_owned), name::stem(&file).to_owned());
            let place = known.get(&key).copied().filter(|_| record_rank(&file).is_some());
            match place.map(|place: usize| &mut sources[place]) {
                Some(source) if source.paths.contains(&file) => {}
                Some(source) => {
                    source.paths.push(file);
                    source.paths.sort_by_key(|path| record_rank(path));
                }
                None => {
                    known.entry(key).or_insert(sources.len());
                    let folder = folder.to_string_lossy().into_owned();
                    sources.push(SavedSource { folder, is_listed, paths: vec![file] });
                }
            }
        }
    }
    sources
}

/// Maximum number of subfolders that a message names.
const NAMED_MAX: usize = 5;

/// Files in a folder that may contain a run.
fn files_or_problem(folder: &Path, problems: &mut Vec<String>) -> Vec<PathBuf> {
    match result_files(folder) {
        Err(error) => problems.push(format!("{folder:?} cannot be read: {}", error_reason(&error))),
        Ok(files) if !files.is_empty() => return files,
        Ok(_) => problems.push(no_results_message(folder)),
    }
    Vec::new()
}

/// Files in a folder that may contain a run, sorted by name.
fn result_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_of_ss = |path: &Path| name::stem(path).starts_with("ss_output");
    let mut files = folder_entries(folder)?;
    files.retain(|path| record_rank(path).is_some() && !is_of_ss(path) && path.is_file());
    if folder.join(PLAN).is_file() {
        files.retain(|path| !path.file_name().is_some_and(|name| NO_RESULTS.iter().any(|other| name == *other)));
    }
    Ok(files)
}

/// Paths in a folder, in natural order.
fn folder_entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    entries.sort_by(|one, other| order::compare_natural(&one.to_string_lossy(), &other.to_string_lossy()));
    Ok(entries)
}

/// Message for a folder without results. It names subfolders, because each experiment has its own.
fn no_results_message(folder: &Path) -> String {
    let mut inner = folder_entries(folder).unwrap_or_default();
    inner.retain(|path| path.is_dir() && result_files(path).is_ok_and(|files| !files.is_empty()));
    // Names the last subfolders: their names often start with the time.
    let (earlier, last) = inner.split_at(inner.len().saturating_sub(NAMED_MAX));
    let last: Vec<String> = last.iter().map(|path| format!("{path:?}")).collect();
    let more = if earlier.is_empty() { String::new() } else { format!(" (and {} before these)", earlier.len()) };
    match &last[..] {
        [] => format!("{folder:?} has no results: none of its files ends with .json, .log or .txt"),
        [only] => format!("{folder:?} has no results itself, but a subfolder has some: {only}"),
        some => format!("{folder:?} has no results itself, but its subfolders have some: {}{more}", some.join(", ")),
    }
}

/// Rank of a file by its extension, the most complete record first; `None` for other files.
fn record_rank(path: &Path) -> Option<usize> {
    let name = path.file_name()?.to_str()?;
    let (_, ending) = name.strip_suffix(".gz").unwrap_or(name).rsplit_once('.')?;
    ENDINGS.iter().position(|known| ending.eq_ignore_ascii_case(known))
}
