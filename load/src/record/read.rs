//! Reads a document from the bytes of a file.

use std::fmt;
use std::path::Path;

use anyhow::anyhow;
use memchr::memmem;
use onrush_plan::OutputKind;
use onrush_text::escape_controls;
use onrush_text::units::format_count;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{RunResult, SCHEMA};

/// What every version of the format has in common.
#[derive(Deserialize)]
struct Version {
    schema: u64,
    /// What the document is of, if not of a run.
    kind: Option<String>,
}

impl RunResult {
    /// The result in these bytes of a file.
    ///
    /// # Errors
    ///
    /// When they are not a result or one of another version, or have impossible figures.
    pub fn parse(path: &Path, text: &[u8]) -> anyhow::Result<Self> {
        let Version { schema, kind } = serde_json::from_slice(text).map_err(|error| of_no_result(path, text, error))?;
        if let Some(kind) = kind {
            return Err(of_no_run(path, &kind));
        }
        if schema != u64::from(SCHEMA) {
            return Err(of_other_version(path, schema));
        }
        if memmem::find_iter(text, FINE_BINS).count() > DISTRIBUTIONS_MAX {
            return Err(damaged(path, "it has more histograms than a result can have"));
        }
        let _: ResultOf<Figures> = serde_json::from_slice(text).map_err(|error| damaged(path, error))?;
        let ResultOf { result } =
            serde_json::from_slice::<ResultOf<Self>>(text).map_err(|error| damaged(path, error))?;
        result.check().map_err(|contradiction| damaged(path, contradiction))?;
        Ok(result)
    }
}

/// Start of the bins of a fine distribution, which takes far more memory than its text.
const FINE_BINS: &[u8] = b"\"bins\":\"";
/// Largest number of these: more than the stages of any plan.
const DISTRIBUTIONS_MAX: usize = 10_000;

/// The part of a file that is read back.
#[derive(Deserialize)]
struct ResultOf<T> {
    result: T,
}

/// The error on a document in a version of the format that is not read.
fn of_other_version(path: &Path, schema: u64) -> anyhow::Error {
    anyhow!("{path:?} has schema {schema}, and this onrush reads schema {SCHEMA}: use the version that wrote it")
}

/// The error on a document of something else than a run.
fn of_no_run(path: &Path, kind: &str) -> anyhow::Error {
    let kind = escape_controls(kind);
    anyhow!("{path:?} is the document of a {kind}, not of a run: read it as JSON, for instance with jq")
}

/// The error on a document that cannot be what a run measured. The reason is escaped, because it may quote the file,
/// which is untrusted.
pub fn damaged(path: &Path, why: impl fmt::Display) -> anyhow::Error {
    anyhow!("{path:?} is damaged: {}", escape_controls(&why.to_string()))
}

/// The error on a file without a document.
fn of_no_result(path: &Path, text: &[u8], error: serde_json::Error) -> anyhow::Error {
    if let Some(line) = other_file(path, text) {
        return anyhow!(line);
    }
    // A number that ends too soon is one that is wrong.
    let last = text.split(|byte| *byte == b'\n').next_back().map_or(0, <[u8]>::len);
    let is_at_end = || error.line() == text.iter().filter(|byte| **byte == b'\n').count() + 1 && error.column() >= last;
    // What follows a whole document, or a comma, was written by somebody.
    let is_too_much = error.to_string().starts_with("trailing ");
    match error.classify() {
        Category::Eof | Category::Syntax if error.is_eof() || (is_at_end() && !is_too_much) => anyhow!(
            "{path:?} is cut off after {}: use a complete copy of it, or repeat the run",
            format_count(text.len() as u64, "byte")
        ),
        Category::Syntax => anyhow!(
            "{path:?} is not a result of onrush: it is not JSON, from line {}, column {} on; give a file that -o FILE.json \
             wrote, or use another copy of it",
            error.line(),
            error.column()
        ),
        _ => anyhow!(
            "{path:?} is not a result of onrush: it is JSON of another kind; give a file that -o FILE.json wrote"
        ),
    }
}

/// What to say about a file that cannot have a run: it is empty, or has another form of a result.
pub fn other_file(path: &Path, text: &[u8]) -> Option<String> {
    if text.trim_ascii().is_empty() {
        return Some(format!("{path:?} is empty: use another copy of it, or repeat the run"));
    }
    let form = match OutputKind::for_path(path)? {
        OutputKind::Json => return None,
        OutputKind::Csv => "a row per second",
        OutputKind::Lines => "a line per second",
        OutputKind::Hgrm => "percentiles",
        OutputKind::Markdown | OutputKind::Junit | OutputKind::Sockets | OutputKind::Requests | OutputKind::Samples => {
            "text"
        }
    };
    Some(format!("{path:?} has {form}, not the whole result: give the file that -o FILE.json wrote"))
}

/// Any JSON without impossible numbers: none is negative, and none exceeds the range in which whole numbers are exact.
/// [`RunResult::check`] bounds times. Nothing of it is kept, so that reading a long file takes no more memory than the result.
struct Figures;

/// What is never added up may be any number. A clock can be set back, and go more slowly than another.
const NO_FIGURES: [&str; 7] = ["plan", "host", "labels", "clock_step_s", "drift_s", "elasticity", "min"];

/// Sums with 128 bits.
const WIDE: [&str; 2] = ["sum", "sum_of_squares"];

/// The largest of these sums: room for adding up a hundred thousand of them.
const WIDE_MAX: f64 = (1u128 << 110) as f64;

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Figures {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self, E> {
        const FIGURE_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
        if (0.0..=FIGURE_MAX).contains(&number) { Ok(self) } else { Err(E::custom("it has impossible figures")) }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self, E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self, E> {
        self.visit_f64(number as f64)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            // Total times over many connections are larger.
            if NO_FIGURES.contains(&name.as_str()) || name.ends_with("_ns") {
                fields.next_value::<IgnoredAny>()?;
            } else if WIDE.contains(&name.as_str()) {
                let sum = fields.next_value::<f64>()?;
                if !(0.0..=WIDE_MAX).contains(&sum) {
                    return Err(A::Error::custom("it has impossible figures"));
                }
            } else {
                fields.next_value::<Self>()?;
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{document, read};
    use super::*;
    use crate::record::Document;
    use crate::record::evidence::{Elasticity, Probe};

    #[test]
    fn foreign_files_move_no_cursor() {
        for (text, words) in [
            (r#"{"schema": 1, "kind": "\u001b]0;x\u0007"}"#, "is the document of a "),
            (r#"{"schema": 3, "result": {"plan": "\u001b]0;x\u0007"}}"#, "is damaged: "),
        ] {
            let text = text.replace("3", &SCHEMA.to_string());
            let error = format!("{:#}", RunResult::parse(Path::new("x.json"), text.as_bytes()).unwrap_err());
            assert!(error.contains(words) && error.contains(r"\u{1b}]0;x\u{7}"), "{error:?}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn differences_may_be_negative() {
        let mut result = *document(1..=100).result;
        let machine = r#"{"name": "a", "kernel": "6.1", "backend": "epoll", "processors": 2, "threads": 1, "connections": 1,
            "started": 1, "completed": 1, "failures": 0, "duration_s": 1, "round_trip_s": 0.001, "drift_s": -0.0002}"#;
        result.runs[0].machines = vec![serde_json::from_str(machine).unwrap()];
        let evidence = result.runs[0].evidence.as_mut().unwrap();
        evidence.machine.clock_step_s = Some(-1.5);
        let elasticity = Some(Elasticity { value: -0.01, low: -0.2, high: 0.18 });
        evidence.probe = Some(Probe { elasticity, ..Probe::default() });
        let document = Document::from_result(result);
        assert_eq!(read(&document), document);
    }

    #[test]
    fn messages_name_the_kind_of_foreign_files() {
        let whole = document([5]).to_json();
        for (name, text, expected) in [
            ("x.json", "", "is empty: use another copy of it, or repeat the run"),
            (
                "x.csv",
                "a,b\n1,2\n",
                "has a row per second, not the whole result: give the file that -o FILE.json wrote",
            ),
            ("x.ndjson", "{}\n{}\n", "has a line per second, not the whole result: give the file"),
            ("x.json", "{\n\"schema\": 1.", "is cut off after 14 bytes"),
            ("x.json", &whole[..300], "is cut off after 300 bytes: use a complete copy of it, or repeat the run"),
            (
                "x.json",
                "Running",
                "is not a result of onrush: it is not JSON, from line 1, column 1 on; give a file that",
            ),
            ("x.json", "{}", "is not a result of onrush: it is JSON of another kind; give a file that -o"),
        ] {
            let error = RunResult::parse(Path::new(name), text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name:?} {expected}")), "{error}");
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let written = document([5]);
        let text = |schema: u32| Document { schema, ..written.clone() }.to_json();
        assert_eq!(read(&written), written);
        for schema in [1, SCHEMA - 1, SCHEMA + 1] {
            let error = RunResult::parse(Path::new("x.json"), text(schema).as_bytes()).unwrap_err().to_string();
            let words =
                format!("has schema {schema}, and this onrush reads schema {SCHEMA}: use the version that wrote it");
            assert!(error.ends_with(&words), "{error}");
        }
    }
}
