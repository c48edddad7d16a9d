//! `onrush merge`: combines several result files into one.

pub(crate) mod command;

pub use command::COMMAND;

use std::collections::HashMap;
use std::fs;
use std::io::{IsTerminal, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use onrush_lab::saved;
use onrush_load::cli;
use onrush_load::files::export;
use onrush_load::files::{self, FileStates, Files};
use onrush_load::judge;
use onrush_load::record::{self, Different, Document, Note, NoteId, RunResult};
use onrush_load::report::form::{self, PrintedReport, ReportForm};
use onrush_plan::{Output, OutputKind};
use onrush_text::escape_controls;

/// The results to add up, and where the sum goes.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The files to add up, at least one.
    pub inputs: Vec<PathBuf>,
    /// The files to which the sum is written; if there are none, it goes to standard output.
    pub outputs: Vec<Output>,
    /// True if the sum also goes to standard output, as JSON even on a terminal.
    pub is_piped: bool,
    /// True if results with different plans may be added up.
    pub force: bool,
}

/// Adds up the results and writes the sum. Returns the sum, and what to print. `open` is called with the states of the
/// sum's files, once these have been checked.
///
/// # Errors
///
/// Fails if a file cannot be read, added or written, if a result occurs twice, or if plans differ without `force`.
pub fn run(merge: &Merge, open: impl FnOnce(&FileStates)) -> anyhow::Result<(Document, PrintedReport)> {
    // If one of the files is private, so is the sum.
    let is_private = |path: &PathBuf| fs::metadata(path).is_ok_and(|there| there.mode() & 0o077 == 0);
    let files = Files::open(&merge.outputs, None, merge.inputs.iter().any(is_private))?;
    open(files.states());
    ensure!(!merge.inputs.is_empty(), "nothing to merge");
    if let Some((path, known)) = find_repeated_file(&merge.inputs) {
        bail!("{path:?} and {known:?} are the same file; a result counts once");
    }
    let mut results = Vec::new();
    for path in &merge.inputs {
        results.push((path.to_string_lossy().into_owned(), *saved::document(path)?.result));
    }
    if let Some((name, other)) = record::counted_twice(results.iter().map(|(name, result)| (&name[..], result))) {
        bail!("{name:?} and {other:?} hold the same run; a result counts once");
    }
    results.sort_by(|(one, first), (other, second)| {
        (first.runs[0].started_at, one).cmp(&(second.runs[0].started_at, other))
    });
    let mut notes = Vec::new();
    for (name, other) in &results[1..] {
        let (first, earliest) = &results[0];
        let Some(different) = earliest.plan.difference(&other.plan) else { continue };
        if !merge.force {
            bail!("{name:?} has a different plan from {first:?}: {different}; --force adds them anyway");
        }
        notes.push(Note::doubt(NoteId::DifferentPlans, mixed_note(&different)));
    }
    let mut result = RunResult::sum(results)?;
    notes.into_iter().for_each(|note| result.add_note(note));
    let sum = judge::judge_result(result, cli::parse_saved_gate);
    // Someone who reads only the exit code must learn of gates that were not judged.
    let notes =
        judge::notes_on_missing_gates(&sum).map(|note| format!("note: {}", escape_controls(&note.text))).collect();
    let printed = match (merge.is_piped, merge.outputs.is_empty()) {
        (false, false) => PrintedReport { text: String::new(), notes },
        (false, true) if stdout().is_terminal() => form::print(&sum, ReportForm::Report, false)?,
        _ => {
            let text =
                saved::check_readable(sum.to_json()).map_err(|why| anyhow!("the sum cannot be printed: {why}"))?;
            PrintedReport { text, notes }
        }
    };
    if merge.outputs.is_empty() {
        return Ok((sum, printed));
    }
    let states = files.states().clone();
    files.write_texts(|kind| {
        let text = export::render_output(kind, &sum).map_err(|corrupt| corrupt.to_string())?;
        if kind == OutputKind::Json { saved::check_readable(text) } else { Ok(text) }
    });
    states.wait_until_final(files::PATIENCE);
    states.abandon_incomplete();
    files::unwritable_files(&states).into_iter().next().map_or(Ok((sum, printed)), |error| Err(error.into()))
}

/// The note in a sum on a result that was added because of `--force`.
fn mixed_note(different: &Different) -> String {
    format!("a result of a different plan was added: {different}")
}

/// The first two paths that lead to the same file, the later one first.
fn find_repeated_file(paths: &[PathBuf]) -> Option<(&Path, &Path)> {
    let mut known: HashMap<PathBuf, &Path> = HashMap::new();
    let files = paths.iter().filter_map(|path| Some((path, fs::canonicalize(path).ok()?)));
    files.into_iter().find_map(|(path, file)| Some((path.as_path(), known.insert(file, path)?)))
}
