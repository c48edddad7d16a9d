//! The verdict: what limited a run, as a pure function of its [`Evidence`].
//!
//! `decide` has the rules in order and `find` the findings; `usage` says how busy everything was, and `words` formats
//! figures.

mod decide;
mod find;
mod usage;
mod words;

use crate::record::evidence::Evidence;
use crate::record::{Document, Verdict};

pub use decide::{CROWDED, needs_probe, uses_all};
pub use find::note_on;
pub use usage::usage;

/// What limited a run, or several together; `None` if there is no evidence.
pub fn verdict(document: &Document) -> Option<Verdict> {
    document.evidence.as_ref().map(on)
}

/// The verdict that this evidence leads to.
pub fn on(evidence: &Evidence) -> Verdict {
    let findings = find::findings(evidence);
    let decide::Ruling { limited_by, reason, advice, says } = decide::decide(evidence);
    Verdict { limited_by, reason, advice, findings, says }
}

#[cfg(test)]
mod tests;
