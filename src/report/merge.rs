//! `onrush merge`: several result files as one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::files::Files;
use super::result::{Document, SCHEMA};
use crate::plan::Output;

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
    let files = Files::open(&merge.outputs)?;
    let [first, others @ ..] = &merge.inputs[..] else { bail!("nothing to merge") };
    let mut sum = read(first)?;
    for path in others {
        let other = read(path)?;
        if let (Err(different), false) = (sum.matches(&other), merge.force) {
            bail!("{path:?} and {first:?} have different plans: {different}; --force adds them up nevertheless");
        }
        sum.add(&other).with_context(|| format!("{path:?} cannot be added to {first:?}"))?;
    }
    if merge.outputs.is_empty() {
        return Ok(sum.to_json());
    }
    files.write(&sum)?;
    Ok(String::new())
}

fn read(path: &Path) -> anyhow::Result<Document> {
    let text = fs::read_to_string(path).with_context(|| format!("{path:?} cannot be read"))?;
    let Version { schema } = serde_json::from_str(&text).with_context(|| format!("{path:?} is no result of onrush"))?;
    if schema != u64::from(SCHEMA) {
        bail!("{path:?} has schema {schema}, and this onrush reads schema {SCHEMA}: use the version that wrote it");
    }
    serde_json::from_str(&text).with_context(|| format!("{path:?} is damaged"))
}
