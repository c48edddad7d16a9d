//! The result of a gate, as documents have it.

use serde::{Deserialize, Serialize};

use super::Verdict;

/// What stands for the condition of the gate that `--strict` is.
const STRICT: &str = "--strict";
/// The figure of a term that has none.
const UNKNOWN: &str = "unknown, no response";

/// A gate (`--fail-if`) and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gate {
    /// Whether it is broken, which means that all its terms hold.
    pub broken: bool,
    /// Its terms.
    pub terms: Vec<Judged>,
}

/// A term of a condition, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judged {
    /// As it was typed.
    pub term: String,
    /// What its figure was; left out if there was none because there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Whether it holds.
    pub holds: bool,
}

impl Gate {
    /// The gate that `--strict` is: it breaks if onrush itself limited the run.
    pub fn strict(verdict: &Verdict) -> Self {
        let broken = verdict.limited_by.is_our_fault();
        let was = Some(verdict.limited_by.name().to_owned());
        Self { broken, terms: vec![Judged { term: STRICT.to_owned(), was, holds: broken }] }
    }

    /// Whether it is that of `--strict`, which has an exit code of its own.
    pub fn is_strict(&self) -> bool {
        matches!(&self.terms[..], [only] if only.term == STRICT)
    }

    /// The condition as it was typed.
    pub fn condition(&self) -> String {
        self.terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>().join(",")
    }

    /// That it is broken, in a sentence: `--fail-if p99>50ms: it was 63.20ms`.
    pub fn sentence(&self) -> String {
        let option = if self.is_strict() { "" } else { "--fail-if " };
        format!("{option}{}: {}", self.condition(), self.was())
    }

    /// What the figures of its terms were: `it was 63.20ms`, or `rate>1k was 2000.00, p99>50ms was 63.20ms`.
    pub fn was(&self) -> String {
        let was = |term: &Judged| term.was.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        match &self.terms[..] {
            [term] => format!("it was {}", was(term)),
            terms => terms.iter().map(|term| format!("{} was {}", term.term, was(term))).collect::<Vec<_>>().join(", "),
        }
    }
}
