//! Reads a document from a file.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;

use super::super::{input, printable};
use super::{Document, SCHEMA};
use crate::stats::Corrupt;

/// What every version of the format has in common.
#[derive(Deserialize)]
struct Version {
    schema: u64,
    /// What the document is of, if not of a run.
    kind: Option<String>,
}

impl Document {
    /// Reads a result file: plain, compressed, or standard input.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is not a result or one of another version, or has impossible figures.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        Self::parse(path, &input::read(path)?)
    }

    /// The document in these bytes of a file.
    ///
    /// # Errors
    ///
    /// As [`Document::read`].
    pub fn parse(path: &Path, text: &[u8]) -> anyhow::Result<Self> {
        let Version { schema, kind } = serde_json::from_slice(text)
            .map_err(shown)
            .with_context(|| format!("{path:?} is not a result of onrush"))?;
        if schema != u64::from(SCHEMA) {
            return Err(of_other_version(path, schema));
        }
        if let Some(kind) = kind {
            return Err(of_no_run(path, &kind));
        }
        let value: Value =
            serde_json::from_slice(text).map_err(shown).with_context(|| format!("{path:?} is damaged"))?;
        if !are_figures(&value) {
            bail!("{path:?} is damaged: it has impossible figures");
        }
        serde_json::from_value(value).map_err(shown).with_context(|| format!("{path:?} is damaged"))
    }
}

/// The error on a document in a version of the format that is not read.
fn of_other_version(path: &Path, schema: u64) -> anyhow::Error {
    anyhow!("{path:?} has schema {schema}, and this onrush reads schema {SCHEMA}: use the version that wrote it")
}

/// The error on a document of something else than a run.
fn of_no_run(path: &Path, kind: &str) -> anyhow::Error {
    let kind = printable(kind);
    anyhow!("{path:?} is the document of a {kind}, not of a run: read it as JSON, for instance with jq")
}

/// The error on a document with figures that cannot be read.
pub fn damaged(path: &Path, corrupt: &Corrupt) -> anyhow::Error {
    anyhow!("{path:?} is damaged: {corrupt}")
}

/// Escapes an error about a file, because it quotes the file, which is untrusted.
fn shown(error: serde_json::Error) -> anyhow::Error {
    anyhow!(printable(&error.to_string()))
}

/// Whether all numbers can be added up: none is negative, and none exceeds the range in which whole numbers are exact.
fn are_figures(value: &Value) -> bool {
    const FIGURE_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| (0.0..=FIGURE_MAX).contains(&number)),
        Value::Array(values) => values.iter().all(are_figures),
        // What is never added up may be any number.
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| ["plan", "host"].contains(&name.as_str()) || are_figures(value))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;

    #[test]
    fn what_a_foreign_file_says_moves_no_cursor() {
        for (text, words) in [
            (r#"{"schema": "\u001b]0;x\u0007"}"#, "is not a result of onrush: "),
            (r#"{"schema": 1, "kind": "\u001b]0;x\u0007"}"#, "is the document of a "),
            (r#"{"schema": 1, "verdict": {"limited_by": "\u001b]0;x\u0007"}}"#, "is damaged: "),
        ] {
            let error = format!("{:#}", Document::parse(Path::new("x.json"), text.as_bytes()).unwrap_err());
            assert!(error.contains(words) && error.contains(r"\u{1b}]0;x\u{7}"), "{error:?}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn a_document_is_read_again_and_one_of_another_version_is_refused() {
        let written = document([5]);
        let text = |schema: u32| Document { schema, ..written.clone() }.to_json();
        assert_eq!(Document::parse(Path::new("x.json"), text(SCHEMA).as_bytes()).unwrap(), written);
        for schema in [0, 2] {
            let error = Document::parse(Path::new("x.json"), text(schema).as_bytes()).unwrap_err().to_string();
            let words = format!("has schema {schema}, and this onrush reads schema 1: use the version that wrote it");
            assert!(error.ends_with(&words), "{error}");
        }
    }
}
