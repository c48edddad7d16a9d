//! `onrush compare`: do saved results differ, by how much, and how certainly?
//!
//! `input` reads runs. A `contest` is two groups of runs that differ in one thing. A `comparison` is its result: runs
//! paired by rounds or in two groups, one of `student`'s intervals for each `metric`, and `checks` of its fairness.
//! `words` and `json` format comparisons, and `answer` sums up an experiment. Nothing here measures or prints.
//! docs/statistics.md gives the formulas.

pub(crate) mod command;

mod input;

mod differences;

mod checks;
mod metric;
mod outlier;
mod rank;
mod student;

mod comparison;
mod contest;

mod answer;
mod json;
mod limit;
mod words;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use onrush_plan::Metric;

pub use command::COMMAND;
pub use limit::RegressionLimit;
pub use metric::{DECISIVE, RESPONSES_NEEDED, is_compared};

use comparison::{Comparison, Pairing};
use contest::Contest;
use input::ComparedSide;
use limit::LimitVerdict;

/// The exit code if nothing could be compared.
const EXIT_NOTHING: u8 = 1;

/// The exit code if a metric is worse than `--fail-if-worse` allows.
const EXIT_WORSE: u8 = 3;

/// The exit code if a limit of `--fail-if-worse` is undecided.
const EXIT_UNKNOWN: u8 = 6;

/// The line printed about runs that are not paired.
const APART: &str = "these runs are not interleaved rounds of one experiment, so drift is not cancelled; onrush vs and \
                     onrush sweep make such rounds";

/// The results to compare, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The baseline and the runs to compare with it, or the folder of one experiment. If there are none, an example is
    /// printed.
    pub inputs: Vec<PathBuf>,
    /// True if runs may be compared although their plans differ.
    pub force: bool,
    /// Limits on how much worse than the baseline metrics may be.
    pub limits: Vec<RegressionLimit>,
    /// The form in which comparisons are printed.
    pub form: ComparisonForm,
}

/// The form in which comparisons are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparisonForm {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs.
    Json,
}

/// The output of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintedComparison {
    /// The comparisons, for standard output; empty if there are none.
    pub text: String,
    /// Lines about the comparisons and their files, for standard error.
    pub said: Vec<String>,
    /// The exit code of the command.
    pub exit: u8,
}

/// The answer that the experiment in a folder gives, in a few lines. The exit code is always zero.
pub fn answer_experiment(path: &Path) -> PrintedComparison {
    let lines = input::read_side(path, &mut Vec::new()).and_then(|side| answer::answer_lines(&side.runs));
    let (lines, said) = lines.map_or_else(|why| (Vec::new(), vec![why]), |lines| (lines, Vec::new()));
    PrintedComparison { text: lines.iter().map(|line| format!("{line}\n")).collect(), said, exit: 0 }
}

/// Compares every level of the experiment in a folder with the baseline of its factor.
pub fn compare_folder(path: &Path) -> PrintedComparison {
    compare_files(&Compare {
        inputs: vec![path.to_path_buf()],
        force: false,
        limits: Vec::new(),
        form: ComparisonForm::Text,
    })
}

/// Reads files, compares their runs, and judges the comparisons by the limits.
pub fn compare_files(compare: &Compare) -> PrintedComparison {
    let mut said = Vec::new();
    match compare_sides(compare, &mut said) {
        Ok(comparisons) => {
            let exit = judge_limits(&comparisons, &compare.limits, &mut said);
            let text = match compare.form {
                ComparisonForm::Text => words::format_comparisons(&comparisons),
                ComparisonForm::Json => json::comparisons_to_json(&comparisons, &said),
            };
            PrintedComparison { text, said, exit }
        }
        Err(why) => {
            said.push(why);
            PrintedComparison { text: String::new(), said, exit: EXIT_NOTHING }
        }
    }
}

fn compare_sides(compare: &Compare, said: &mut Vec<String>) -> Result<Vec<Comparison>, String> {
    let mut sides: Vec<ComparedSide> = Vec::new();
    for typed in &compare.inputs {
        sides.push(input::read_side(typed, said)?);
    }
    let contests = match &sides[..] {
        [only] => contest::contests_of_experiment(&only.runs)?,
        [a, b, ..] => {
            if let Some(why) = input::common_run_refusal(a, b) {
                return Err(why);
            }
            let (contests, alone) = contest::contests_between_sides(a, b);
            said.extend(alone);
            contests
        }
        [] => return Err(input::input_example(Path::new("."))),
    };
    if contests.is_empty() {
        return Err("there are no two levels to compare; give two files, or the folder of an experiment".to_owned());
    }
    let asked: Vec<Metric> = compare.limits.iter().filter_map(|limit| limit.metric).collect();
    compare_contests(&contests, compare.force, &asked, said)
}

/// Makes the comparisons of these contests. Adds lines about them to `said`.
fn compare_contests(
    contests: &[Contest<'_>],
    force: bool,
    asked: &[Metric],
    said: &mut Vec<String>,
) -> Result<Vec<Comparison>, String> {
    let mut comparisons = Vec::new();
    // Comparisons that are impossible are not included in the correction for several.
    let together = contests.iter().filter(|contest| Comparison::is_possible(contest)).count();
    for contest in contests {
        if let Some(why) = differences::plan_difference_refusal(contest).filter(|_| !force) {
            return Err(why);
        }
        let names = format!("{} and {}", contest.names[0], contest.names[1]);
        let names =
            if contest.at.is_empty() { names } else { format!("{names} at {}", contest::format_levels(&contest.at)) };
        match Comparison::new(contest, together, asked) {
            Some(comparison) => comparisons.push(comparison),
            None => {
                let failures = comparison::failed_run_lines(contest).join(", ");
                said.push(format!("{names} have no complete runs to compare: {failures}"));
            }
        }
        let elsewhere = differences::differences_outside_plans(contest).filter(|words| !said.contains(words));
        said.extend(elsewhere);
    }
    if comparisons.is_empty() {
        return Err("nothing could be compared".to_owned());
    }
    let is_apart = |it: &Comparison| it.pairing == Pairing::Apart && it.runs.iter().all(|runs| *runs > 1);
    if comparisons.iter().any(is_apart) {
        said.push(APART.to_owned());
    }
    for comparison in &comparisons {
        let of = comparison_prefix(comparison);
        let failures = comparison.failures.iter().map(|words| format!("{of}left out: {words}"));
        said.extend(failures.chain(comparison.notes.iter().map(|words| format!("{of}{words}"))));
    }
    Ok(comparisons)
}

/// The start of a line that names one comparison among several.
fn comparison_prefix(comparison: &Comparison) -> String {
    match (comparison.together, &comparison.at[..]) {
        (1, _) => String::new(),
        (_, []) => format!("{}: ", comparison.names[1]),
        (_, at) => format!("{} at {}: ", comparison.names[1], contest::format_levels(at)),
    }
}

/// Judges comparisons by limits, with a line in `said` for each limit that is not kept; returns the exit code. An
/// undecided limit does not count as kept.
fn judge_limits(comparisons: &[Comparison], limits: &[RegressionLimit], said: &mut Vec<String>) -> u8 {
    let mut exit = 0;
    for comparison in comparisons {
        for limit in limits {
            match limit.judge(comparison) {
                LimitVerdict::Worse(words) => {
                    exit = EXIT_WORSE;
                    said.push(comparison_prefix(comparison) + &words);
                }
                LimitVerdict::Open(words) => {
                    exit = if exit == EXIT_WORSE { exit } else { EXIT_UNKNOWN };
                    said.push(comparison_prefix(comparison) + &words);
                }
                LimitVerdict::Kept => {}
            }
        }
    }
    exit
}
