//! Parses the command lines of `onrush lab`, `onrush sweep` and `onrush vs`, and the file of `lab`, into an experiment.
//!
//! A `file` and the arguments of `sweep` and `vs` (`shorthand`) both give an `outline`, in which the `options` of the
//! runs are still text. `levels` parses lists of values, and `typed` holds the options of the commands. `design` turns
//! the outline into the experiment, with a plan for each point and `names` for its files. `resolved` records the
//! decisions.

mod design;
mod file;
mod help;
mod names;
mod options;
mod outline;
mod resolved;
mod shorthand;
#[cfg(test)]
mod tests;
mod typed;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use onrush_load::cli::arguments::Subcommand;
use onrush_load::input::read_at_most;
use onrush_plan::Experiment;
use onrush_plan::experiment::{PLAN, ResultDestination};
use onrush_plan::limits::PLAN_MAX_MIB;

use design::Circumstances;
use typed::TypedLab;

/// The parsed command line of one of the three commands.
#[derive(Debug)]
pub struct LabCommand {
    /// The experiment to carry out.
    pub experiment: Box<Experiment>,
    /// True if the plan of the experiment is only printed, and nothing is executed.
    pub is_plan: bool,
    /// True if a line about every run, and all figures, are printed.
    pub is_verbose: bool,
    /// Warnings for the user, one line each.
    pub warnings: Vec<String>,
}

pub(super) use help::{sweep_help, sweep_options, versus_help, versus_options};
pub(super) use shorthand::{parse_sweep, parse_versus};

pub(crate) const LAB_ARGUMENTS: Subcommand<TypedLab> = Subcommand {
    name: "lab",
    help: help::LAB,
    options: &typed::OPTIONS,
    word: |typed, word| match typed.file.replace(PathBuf::from(&word)) {
        None => Ok(()),
        Some(_) => Err(format!("{word:?} is a second file; an experiment is a single file")),
    },
};

/// Parses the arguments after `lab`; `None` if help was requested.
pub(super) fn parse(args: &[OsString]) -> Result<Option<LabCommand>, String> {
    let Some(mut typed) = LAB_ARGUMENTS.read(args, TypedLab::default())? else { return Ok(None) };
    let folder = typed.result_destination()?;
    let kept = match &folder {
        ResultDestination::Resumed { path, .. } => Some(path.join(PLAN)),
        ResultDestination::New(_) => None,
    };
    // A file that the user names may be a pipe, but nobody writes to a pipe in a folder.
    let is_pipe = |path: &PathBuf| fs::metadata(path).is_ok_and(|there| !there.is_file());
    if let Some(path) = kept.as_ref().filter(|path| typed.file.is_none() && is_pipe(path)) {
        return Err(format!("{} cannot be read: not a regular file", path.display()));
    }
    let Some(path) = typed.file.or(kept) else {
        return Err("no file; try onrush lab experiment.toml (onrush lab --help has an example)".to_owned());
    };
    let text = read_at_most(&path, PLAN_MAX_MIB).map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
    let text = String::from_utf8(text).map_err(|_| format!("{} is not text in UTF-8", path.display()))?;
    let place = |line: Option<usize>| line.map_or(String::new(), |line| format!(":{line}"));
    let outline = file::parse_outline(&text)
        .map_err(|wrong| format!("{}{}: {}", path.display(), place(wrong.line), wrong.words))?;
    let around = Circumstances { folder, may_change_host: typed.may_change_host, retries: typed.retries };
    let (experiment, warnings) =
        design::decide_experiment(outline, around).map_err(|words| format!("{}: {words}", path.display()))?;
    Ok(Some(LabCommand {
        experiment: Box::new(experiment),
        is_plan: typed.is_plan,
        is_verbose: typed.is_verbose,
        warnings,
    }))
}
