//! The verdict: the limit of a run, as a pure function of its [`Evidence`].
//!
//! `decide` lists the rules in order. Each file of rules covers one subject. `find` holds the findings, `usage` reports
//! utilization, and `words` formats figures.

mod connections;
mod decide;
mod failures;
mod find;
mod generator;
mod network;
mod probe;
mod rate;
mod ruling;
mod target;
mod threads;
mod usage;
mod words;

use crate::record::evidence::Evidence;
use crate::record::{Document, Verdict};
use onrush_plan::LimitedBy;

pub use decide::needs_probe;
pub use find::finding_note;
pub use generator::HELD_UP;
pub use rate::{CROWDED, uses_all_connections};
pub use usage::usage_line;

/// The limit of one run or of several combined; `None` without evidence.
pub fn judge_limit(document: &Document) -> Option<Verdict> {
    let mut verdict = document.evidence.as_ref().map(judge_evidence)?;
    let machines = &document.machines;
    let lost = machines.iter().filter(|machine| machine.lost.is_some()).count();
    if lost > 0 {
        let (were, their) = if lost == 1 { ("was", "its") } else { ("were", "their") };
        (verdict.limited_by, verdict.summary) = (LimitedBy::Unclear, "the limit is unclear".to_owned());
        verdict.reason = match machines.len() {
            1 => "the machine was lost".to_owned(),
            all => format!("{lost} of {all} machines {were} lost, and {their} part of the load was missing"),
        };
        verdict.advice = None;
    }
    // A sum has no machines, but names the missing parts.
    if let (Some(incomplete), Some(_)) = (&document.incomplete, &document.sources) {
        (verdict.limited_by, verdict.summary) = (LimitedBy::Unclear, "the limit is unclear".to_owned());
        verdict.reason = format!("some of the merged runs are incomplete: {incomplete}");
        verdict.advice = None;
    }
    // No probe observes several machines.
    verdict.advice = verdict.advice.filter(|advice| machines.is_empty() || !advice.contains("--probe"));
    Some(verdict)
}

/// Derives the verdict from the evidence.
pub fn judge_evidence(evidence: &Evidence) -> Verdict {
    let findings = find::findings(evidence);
    let ruling::Ruling { limited_by, summary, reason, advice, says } = decide::decide_limit(evidence);
    Verdict { limited_by, summary, reason, advice, findings, says }
}

#[cfg(test)]
mod tests;
