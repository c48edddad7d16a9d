//! `onrush merge`: several result files as one.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::files::{self, Files};
use super::result::{self, Document, Named, SCHEMA};
use crate::plan::Output;
use crate::reason::reason;

/// No result is longer, in bytes, by far.
const LENGTH_MAX: u64 = 256 << 20;

/// What is to be added up, and where the sum goes.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The files, at least one.
    pub inputs: Vec<PathBuf>,
    /// Where the sum goes; nowhere: to standard output, as JSON.
    pub outputs: Vec<Output>,
    /// Whether results of different plans are added too.
    pub force: bool,
}

/// What every version of the format has.
#[derive(Deserialize)]
struct Version {
    schema: u64,
}

/// Adds up and writes; returns what is to be printed.
///
/// # Errors
///
/// What cannot be read, added up or written.
pub fn run(merge: &Merge) -> anyhow::Result<String> {
    // What nobody else may read stays so in the sum.
    let is_private = |path: &PathBuf| fs::metadata(path).is_ok_and(|there| there.mode() & 0o077 == 0);
    let files = Files::open(&merge.outputs, merge.inputs.iter().any(is_private))?;
    ensure!(!merge.inputs.is_empty(), "nothing to merge");
    let mut named = Vec::new();
    for (index, path) in merge.inputs.iter().enumerate() {
        if let Some(known) = merge.inputs[..index].iter().find(|known| are_one(known, path)) {
            bail!("{path:?} and {known:?} are the same file; a result counts once");
        }
        let document = read(path)?;
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
            bail!("{name:?} has another plan than {first:?}: {different}; --force adds them up nevertheless");
        }
        sum.notes.push(format!("a result of another plan was added: {different}"));
    }
    if merge.outputs.is_empty() {
        return Ok(sum.to_json());
    }
    let fates = files.fates().clone();
    files.write(&sum);
    fates.wait(files::PATIENCE);
    fates.give_up();
    files::unwritable(&fates).into_iter().next().map_or(Ok(String::new()), |error| Err(error.into()))
}

/// Whether two paths lead to one file.
fn are_one(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn read(path: &Path) -> anyhow::Result<Document> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LENGTH_MAX + 1).read_to_string(&mut text))
        .map_err(|error| anyhow!("{path:?} cannot be read: {}", reason(&error)))?;
    ensure!(text.len() as u64 <= LENGTH_MAX, "{path:?} is no result of onrush: none is longer than 256 MiB");
    let Version { schema } = serde_json::from_str(&text).with_context(|| format!("{path:?} is no result of onrush"))?;
    if schema != u64::from(SCHEMA) {
        bail!("{path:?} has schema {schema}, and this onrush reads schema {SCHEMA}: use the version that wrote it");
    }
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{path:?} is damaged"))?;
    if !are_figures(&value) {
        bail!("{path:?} is damaged: it has figures that no test can have");
    }
    serde_json::from_value(value).with_context(|| format!("{path:?} is damaged"))
}

/// Whether all numbers are small enough to be added up: there is nothing below zero, and no test goes beyond the
/// largest number up to which all whole ones are exact.
fn are_figures(value: &Value) -> bool {
    const FIGURE_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| (0.0..=FIGURE_MAX).contains(&number)),
        Value::Array(values) => values.iter().all(are_figures),
        // What is not added up may be any number.
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| ["plan", "host"].contains(&name.as_str()) || are_figures(value))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
