//! Reads a document from a file.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;

use super::super::{input, printable};
use super::{Document, SCHEMA};
use crate::stats::Corrupt;

/// The oldest version of the format that is read.
const SCHEMA_OLDEST: u32 = 1;

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
        if !(u64::from(SCHEMA_OLDEST)..=u64::from(SCHEMA)).contains(&schema) {
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
        let document: Self =
            serde_json::from_value(value).map_err(shown).with_context(|| format!("{path:?} is damaged"))?;
        // The keys of older versions are aliases of today's.
        Ok(Self { schema: SCHEMA, ..document })
    }
}

/// The error on a document in a version of the format that is not read.
fn of_other_version(path: &Path, schema: u64) -> anyhow::Error {
    anyhow!(
        "{path:?} has schema {schema}, and this onrush reads schemas {SCHEMA_OLDEST} to {SCHEMA}: use the version that \
         wrote it"
    )
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
    use super::super::{Sources, Tls};
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
    fn documents_of_the_first_version_are_read_as_documents_of_today() {
        let tls = Tls { handshakes: 1, resumed: 0, negotiated: Vec::new() };
        let new = Document { tls: Some(tls), ..document([5]) };
        let new = Document { sources: Some(Sources::of("a.json", &new).unwrap()), ..new };
        let mut old = serde_json::to_value(&new).unwrap();
        for (place, today, before) in [
            ("/connections", "established", "lived"),
            ("/sources/files/0", "established", "lived"),
            ("/tls", "negotiated", "agreed"),
            ("/threads/0", "busy_polled_s", "spin_s"),
            ("/verdict", "reason", "because"),
            ("/verdict/evidence/generator", "stalled_s", "stopped_s"),
            ("/verdict/evidence/load", "completed", "answered"),
            ("/verdict/evidence/latency", "min_us", "least_us"),
        ] {
            let fields = old.pointer_mut(place).and_then(Value::as_object_mut).expect(place);
            let value = fields.remove(today).expect(today);
            fields.insert(before.to_owned(), value);
        }
        old["schema"] = 1.into();
        assert_eq!(Document::parse(Path::new("x.json"), old.to_string().as_bytes()).unwrap(), new);
        for schema in [0, 3] {
            old["schema"] = schema.into();
            let error = Document::parse(Path::new("x.json"), old.to_string().as_bytes()).unwrap_err().to_string();
            let words = "has schema 0, and this onrush reads schemas 1 to 2: use the version that wrote it";
            assert!(error.ends_with(&words.replace('0', &schema.to_string())), "{error}");
        }
    }
}
