//! Reads the runs of a side, which is a file, a folder, or those runs in either that have a label.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use onrush_plan::OutputKind;
use onrush_plan::experiment::{PLAN, RESULTS};
use onrush_text::escape_controls;
use onrush_text::units::format_count;
use strsim::damerau_levenshtein;

use crate::saved::{self, Read, SavedRun};

/// Runs that are compared together.
#[derive(Debug)]
pub struct ComparedSide {
    /// The side as typed; with a label, only the label.
    pub name: String,
    /// The runs, at least one.
    pub runs: Vec<SavedRun>,
}

/// Reads one side: a file, a folder, or `PATH:LABEL`. Adds a sentence about each faulty file to `said`.
///
/// # Errors
///
/// Fails if the side has no runs.
pub fn read_side(typed: &Path, said: &mut Vec<String>) -> Result<ComparedSide, String> {
    let name = escape_controls(&typed.to_string_lossy());
    match split_label(typed) {
        None => Ok(ComparedSide { runs: read_runs(typed, said)?, name }),
        Some((path, label)) => {
            let mut runs = read_runs(&path, said)?;
            let known: Vec<String> = all_labels(&runs);
            runs.retain(|run| labels_of_run(run).contains(&label));
            if runs.is_empty() {
                return Err(unknown_label_message(&path, &label, &known));
            }
            Ok(ComparedSide { name: escape_controls(&label), runs })
        }
    }
}

/// Maximum number of files that are read in search of an example.
const TRIED_MAX: usize = 10;

/// The message for `onrush compare` without arguments, in one line: what to name, with examples from this folder, or
/// how to make results.
pub fn input_example(folder: &Path) -> String {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let shown = |path: &Path| escape_controls(&path.strip_prefix(folder).unwrap_or(path).to_string_lossy());
    let mut experiments = entries(&folder.join(RESULTS));
    experiments.retain(|path| path.join(PLAN).is_file());
    // The newest comes last, because the names start with the time.
    let newest = experiments.into_iter().max().map(|path| format!("onrush compare {}", shown(&path)));

    let mut files = entries(folder);
    files.retain(|path| OutputKind::for_path(path) == Some(OutputKind::Json) && path.is_file());
    files.sort_by_key(|path| Reverse(fs::metadata(path).and_then(|file| file.modified()).ok()));
    let is_run = |path: &&PathBuf| saved::document(path).is_ok_and(|document| document.sources.is_none());
    let results: Vec<&PathBuf> = files.iter().take(TRIED_MAX).filter(is_run).take(2).collect();
    let two = match results[..] {
        [later, earlier] => Some(format!("onrush compare {} {}", shown(earlier), shown(later))),
        _ => None,
    };
    match newest.into_iter().chain(two).collect::<Vec<_>>() {
        none if none.is_empty() => {
            "name two results, or an experiment's folder; onrush -o before.json URL makes a result, \
                                    and onrush vs URL_A URL_B measures two targets in turns"
                .to_owned()
        }
        here => format!("name two results, or an experiment's folder; here for instance {}", here.join(", or ")),
    }
}

/// The runs in a file or folder, without sums.
fn read_runs(path: &Path, said: &mut Vec<String>) -> Result<Vec<SavedRun>, String> {
    let Read { mut runs, mut problems } = saved::all(&[path.to_path_buf()]);
    if let Some(problem) = problems.pop_if(|_| runs.is_empty()) {
        said.extend(problems);
        return Err(problem);
    }
    said.extend(problems);
    runs.retain(|run| {
        let sum = run.document.as_deref().and_then(|document| document.sources.as_ref());
        said.extend(sum.map(|sum| {
            let runs = format_count(sum.count, "run");
            format!("{:?} is the sum of {runs} and is left out; compare the runs themselves", run.origin.file)
        }));
        sum.is_none()
    });
    if runs.is_empty() { Err(format!("{path:?} has no runs to compare")) } else { Ok(runs) }
}

/// Splits a path from its label; `None` if there is no label, or if a file has the whole name.
fn split_label(typed: &Path) -> Option<(PathBuf, String)> {
    let text = typed.to_str().filter(|text| *text != "-" && !typed.exists())?;
    let colons = text.match_indices(':').map(|(at, _)| (PathBuf::from(&text[..at]), text[at + 1..].to_owned()));
    colons.into_iter().find(|(path, label)| path.exists() && !label.is_empty())
}

/// The labels by which a run can be selected: its levels (`rmem=4096` or `4096`), its own labels, the line above it,
/// its heading, and its file name with and without the number of the run.
fn labels_of_run(run: &SavedRun) -> Vec<String> {
    let levels = factor_levels(run).into_iter().flat_map(|(factor, level)| [format!("{factor}={level}"), level]);
    let labels = run.document.iter().flat_map(|document| &document.labels);
    let labels = labels.flat_map(|(key, level)| [format!("{key}={level}"), level.clone()]);
    let file = run.origin.file.strip_suffix(".gz").unwrap_or(&run.origin.file);
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let unnumbered = stem.as_deref().and_then(|stem| stem.rsplit_once('-')).map(|(name, _)| name.to_owned());
    let names = [run.label.clone(), run.section.clone(), Some(run.origin.name.clone()), stem, unnumbered];
    levels.chain(labels).chain(names.into_iter().flatten()).collect()
}

fn all_labels(runs: &[SavedRun]) -> Vec<String> {
    let mut labels: Vec<String> = runs.iter().flat_map(labels_of_run).collect();
    labels.sort();
    labels.dedup();
    labels
}

fn unknown_label_message(path: &Path, label: &str, known: &[String]) -> String {
    let nearest = known.iter().min_by_key(|known| damerau_levenshtein(known, label));
    let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest:?}?"));
    format!("no run in {path:?} is called {label:?}{hint}")
}

/// The factors of a run with their levels: those of its experiment, else those from its labels or its file name.
pub fn factor_levels(run: &SavedRun) -> Vec<(String, String)> {
    match &run.position {
        Some(position) => position.levels.iter().map(|it| (it.factor.clone(), it.level.clone())).collect(),
        None => run.factors.clone(),
    }
}

/// The reason why two sides cannot be compared: they have a run in common. `None` if they have none.
pub fn common_run_refusal(a: &ComparedSide, b: &ComparedSide) -> Option<String> {
    let file = |run: &SavedRun| Some((fs::canonicalize(&run.origin.file).ok()?, run.origin.line));
    let by_digest: HashMap<&String, &SavedRun> =
        b.runs.iter().flat_map(|run| run.digests.iter().map(move |digest| (digest, run))).collect();
    let by_file: HashMap<_, &SavedRun> = b.runs.iter().filter_map(|run| Some((file(run)?, run))).collect();
    let same = |one: &SavedRun| {
        let copy = one.digests.iter().find_map(|digest| by_digest.get(digest));
        copy.or_else(|| by_file.get(&file(one)?)).copied()
    };
    let (one, other) = a.runs.iter().find_map(|one| Some((one, same(one)?)))?;
    let (one, other) = (&one.origin.file, &other.origin.file);
    let what =
        if one == other { format!("{one:?} is") } else { format!("{one:?} and {other:?} hold the same run, which is") };
    Some(format!("{what} on both sides; compare other runs"))
}
