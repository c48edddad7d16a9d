//! `onrush merge`: several result files as one.

use std::fs;
use std::io::{IsTerminal, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::files::{self, Files};
use super::result::{self, Different, Document, Named};
use super::show::{self, Form, Printed};
use crate::plan::Output;

/// What to add up, and where the sum goes.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The files, at least one.
    pub inputs: Vec<PathBuf>,
    /// The files for the sum; none: standard output.
    pub outputs: Vec<Output>,
    /// Whether the sum goes to standard output even with files, and as JSON even on a terminal.
    pub is_piped: bool,
    /// Whether results of different plans are added, too.
    pub force: bool,
}

/// Adds up the results and writes the sum; returns what to print.
///
/// # Errors
///
/// When a file cannot be read, added or written.
pub fn run(merge: &Merge) -> anyhow::Result<Printed> {
    // A sum of private files is private, too.
    let is_private = |path: &PathBuf| fs::metadata(path).is_ok_and(|there| there.mode() & 0o077 == 0);
    let files = Files::open(&merge.outputs, merge.inputs.iter().any(is_private))?;
    ensure!(!merge.inputs.is_empty(), "nothing to merge");
    let mut named = Vec::new();
    for (index, path) in merge.inputs.iter().enumerate() {
        if let Some(known) = merge.inputs[..index].iter().find(|known| are_one(known, path)) {
            bail!("{path:?} and {known:?} are the same file; a result counts once");
        }
        let document = Document::read(path)?;
        document.check().with_context(|| format!("{path:?} cannot be added"))?;
        named.push(Named { name: path.to_string_lossy().into_owned(), document });
    }
    let named = result::in_order(named);
    if let Some((name, other)) = result::counted_twice(&named) {
        bail!("{name:?} and {other:?} hold the same run; a result counts once");
    }
    let mut sum = Document::sum(&named)?;
    for other in &named[1..] {
        let Some(different) = named[0].document.plan.difference(&other.document.plan) else { continue };
        if !merge.force {
            let (name, first) = (&other.name, &named[0].name);
            bail!("{name:?} has a different plan from {first:?}: {different}; --force adds them anyway");
        }
        sum.notes.push(mixed(&different));
    }
    let printed = match (merge.is_piped, merge.outputs.is_empty()) {
        (false, false) => Printed::default(),
        (false, true) if stdout().is_terminal() => show::print(&sum, Form::Report, false)?,
        _ => show::print(&sum, Form::Json, false)?,
    };
    if merge.outputs.is_empty() {
        return Ok(printed);
    }
    let fates = files.fates().clone();
    files.write(&sum);
    fates.wait(files::PATIENCE);
    fates.give_up();
    files::unwritable(&fates).into_iter().next().map_or(Ok(printed), |error| Err(error.into()))
}

/// The note of a sum on a result that `--force` added.
fn mixed(different: &Different) -> String {
    format!("a result of a different plan was added: {different}")
}

/// Whether two paths lead to one file.
fn are_one(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}
