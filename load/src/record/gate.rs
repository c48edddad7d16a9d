//! The result of a gate, as documents have it.

use onrush_plan::metric::{LatencyView, Metric};
use serde::{Deserialize, Serialize};

use super::Verdict;

/// What stands for the condition of the gate that `--strict` is.
const STRICT: &str = "--strict";

/// A gate (`--fail-if`) and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Gate {
    /// Whether it is broken, which means that all its terms hold.
    pub broken: bool,
    /// Set if the outcome is unknown: a term could not be judged, and the others hold. Left out if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub undecided: bool,
    /// Its terms.
    pub terms: Vec<Judged>,
}

/// A term of a condition, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Judged {
    /// As it was typed.
    pub term: String,
    /// What its figure was; left out if there was none, for instance because no response had such a status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Whether it holds.
    pub holds: bool,
    /// Set if the outcome is unknown: there is no such figure, or it depends on requests that were open when the run stopped. Left
    /// out if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub undecided: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Gate {
    /// A gate with these terms.
    pub fn of(terms: Vec<Judged>) -> Self {
        let broken = terms.iter().all(|term| term.holds);
        let undecided = !broken && terms.iter().all(|term| term.holds || term.undecided);
        Self { broken, undecided, terms }
    }

    /// The gate that `--strict` is: it breaks if onrush itself limited the run.
    pub fn strict(verdict: &Verdict) -> Self {
        let broken = verdict.limited_by.is_generator();
        let was = Some(verdict.limited_by.name().to_owned());
        Self::of(vec![Judged { term: STRICT.to_owned(), was, holds: broken, undecided: false }])
    }

    /// Whether it is that of `--strict`, which has an exit code of its own.
    pub fn is_strict(&self) -> bool {
        matches!(&self.terms[..], [only] if only.term == STRICT)
    }

    /// Returns whether it passed because something that it is about did not occur.
    pub fn lacks_figure(&self) -> bool {
        !self.undecided && self.terms.iter().any(|term| term.was.is_none())
    }

    /// The condition as it was typed.
    pub fn condition(&self) -> String {
        self.terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>().join(",")
    }

    /// The sentence for a broken or undecided gate: `--fail-if p99>50ms: it was 63.20ms`.
    pub fn sentence(&self) -> String {
        let option = if self.is_strict() { "" } else { "--fail-if " };
        let undecided = if self.undecided { "undecided: " } else { "" };
        format!("{option}{}: {undecided}{}", self.condition(), self.was())
    }

    /// What the figures of its terms were: `it was 63.20ms`, or `rate>1k was 2000.00, p99>50ms was 63.20ms`.
    pub fn was(&self) -> String {
        match &self.terms[..] {
            [term] => format!("it was {}", term.figure()),
            terms => {
                let was = |term: &Judged| format!("{} was {}", term.term, term.figure());
                terms.iter().map(was).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

impl Judged {
    /// What its figure was, or why there was none.
    pub fn figure(&self) -> String {
        let name = self.term.split(['<', '>', '=', '!']).next().unwrap_or_default();
        if let (Some((_, of_name)), None) = (name.trim().trim_end_matches(']').split_once('['), &self.was) {
            return format!("unknown, no request of the name {of_name}");
        }
        self.was.clone().unwrap_or_else(|| match name.trim().parse() {
            Ok(Metric::Latency(LatencyView::Class(class), _)) => {
                format!("unknown, no response with a status of {class}xx")
            }
            Ok(Metric::Latency(..)) => "unknown, no response".to_owned(),
            _ => "unknown".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_without_a_figure_says_what_there_was_none_of() {
        let figure = |term: &str| Judged { term: term.to_owned(), was: None, holds: false, undecided: true }.figure();
        assert_eq!(figure("p99.5xx <= 50ms"), "unknown, no response with a status of 5xx");
        assert_eq!(figure("service.max>50ms"), "unknown, no response");
        assert_eq!(figure("unavailable=0"), "unknown");
        assert_eq!(figure("p99[log-in]>1ms"), "unknown, no request of the name log-in");
        let known =
            Judged { term: "p99>50ms".to_owned(), was: Some("63.20ms".to_owned()), holds: true, undecided: false };
        assert_eq!(known.figure(), "63.20ms");
    }
}
