//! Reads the command lines of `onrush lab`, `onrush sweep` and `onrush vs`, and the file of `lab`, into an experiment.
//!
//! A `file` and the arguments of `sweep` and `vs` (`shorthand`) both give a `draft`, in which the `options` of the runs
//! are still text. `design` turns it into the experiment, with a plan for each point and `names` for its files;
//! `resolved` writes down what was decided.

mod design;
mod draft;
mod file;
mod help;
mod names;
mod options;
mod resolved;
mod shorthand;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::Arg;

use crate::plan::Experiment;
use crate::plan::experiment::Destination;
use design::Circumstances;
use draft::RETRIES_MAX;

/// What the three commands ask for.
#[derive(Debug)]
pub struct Lab {
    /// What was decided.
    pub experiment: Box<Experiment>,
    /// Whether the experiment is only shown, not carried out.
    pub is_plan: bool,
    /// What the user should know, one line each.
    pub warnings: Vec<String>,
}

/// The file in an experiment's folder that holds the experiment.
pub const PLAN_FILE: &str = "plan.toml";

pub(super) use help::{LAB, SWEEP, VERSUS};
pub(super) use shorthand::{sweep, versus};

/// Reads the arguments after `lab`; `None`: the help was asked for.
pub(super) fn parse(args: &[OsString]) -> Result<Option<Lab>, String> {
    let (mut path, mut is_plan, mut out, mut resume, mut is_forced) = (None, false, None, None, false);
    let (mut retries, mut may_change_host) = (None, false);
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Long("plan") => is_plan = true,
            Arg::Long("force") => is_forced = true,
            Arg::Long("allow-host-changes") => may_change_host = true,
            Arg::Long("out") => out = Some(PathBuf::from(parser.value().map_err(|error| error.to_string())?)),
            Arg::Long("resume") => resume = Some(PathBuf::from(parser.value().map_err(|error| error.to_string())?)),
            Arg::Long("retry") => retries = Some(count("retry", parser.value(), 0, RETRIES_MAX)?),
            Arg::Value(word) if path.is_none() => path = Some(PathBuf::from(word)),
            Arg::Value(word) => return Err(format!("{word:?} is a second file; an experiment is a single file")),
            _ => return Err(format!("{}; see: onrush lab --help", argument.unexpected())),
        }
    }
    let folder = folder(out, resume, is_forced)?;
    let kept = match &folder {
        Destination::Resumed { path, .. } => Some(path.join(PLAN_FILE)),
        Destination::New(_) => None,
    };
    let Some(path) = path.or(kept) else {
        return Err("no file; try onrush lab experiment.toml (onrush lab --help has an example)".to_owned());
    };
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{} cannot be read: {}", path.display(), crate::reason::reason(&error)))?;
    let place = |line: Option<usize>| line.map_or(String::new(), |line| format!(":{line}"));
    let draft =
        file::read(&text).map_err(|wrong| format!("{}{}: {}", path.display(), place(wrong.line), wrong.words))?;
    let around = Circumstances { folder, may_change_host, retries: retries.map(|number| number as u32) };
    let (experiment, warnings) =
        design::decide(draft, around).map_err(|words| format!("{}: {words}", path.display()))?;
    Ok(Some(Lab { experiment: Box::new(experiment), is_plan, warnings }))
}

/// Where results go.
fn folder(out: Option<PathBuf>, resume: Option<PathBuf>, is_forced: bool) -> Result<Destination, String> {
    match (out, resume) {
        (Some(_), Some(_)) => Err("--out and --resume both name a folder; leave one of the two out".to_owned()),
        (out, None) if is_forced => {
            let path = out.unwrap_or_else(|| PathBuf::from("DIR"));
            Err(format!("--force needs --resume: --resume {} --force", path.display()))
        }
        (out, None) => Ok(Destination::New(out)),
        (None, Some(path)) => Ok(Destination::Resumed { path, is_forced }),
    }
}

/// The value of an option that takes a whole number.
fn count(name: &str, value: Result<OsString, lexopt::Error>, least: u64, most: u64) -> Result<u64, String> {
    let value = value.map_err(|error| error.to_string())?;
    let number = value.to_str().and_then(|text| text.parse().ok()).filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("--{name} {value:?}: write a whole number from {least} to {most}"))
}
