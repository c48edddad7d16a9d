//! The judge: what limited a run, which gates are broken, and what its user should know; each decided once, for
//! everybody who shows it, writes it or ends with an exit code.
//!
//! `verdict` has the rules on the evidence of the document, `gates` compares metrics with the conditions of `--fail-if`,
//! and `notes` has every sentence of doubt. Nothing here measures or prints.

mod gates;
pub mod notes;
mod verdict;

use onrush_plan::Plan;
use onrush_plan::condition::Condition;
use onrush_stats::Corrupt;
use onrush_text::units::counted;

use crate::record::build::shown;
use crate::record::gate::Gate;
use crate::record::{Document, Named, Note, NoteId, VERDICT_MIN, Verdict};
use crate::run::Outcome;

use gates::gates;
use notes::{lines, notes};
use verdict::verdict;

pub use gates::{annotation, objective, on_missing};
pub use verdict::{needs_experiment, on, uses_all};

pub use notes::EXPECTS_TLS;

/// The sum of several documents, which must be in the order of [`in_order`](crate::record::in_order), judged anew: its
/// verdict, and the gates that all of them have, as far as `read` understands their conditions. Notes name the others.
///
/// # Errors
///
/// When one of them cannot be what a run measured.
pub fn sum(named: &[Named<'_>], read: impl Fn(&str) -> Option<Condition>) -> Result<Document, Corrupt> {
    let mut sum = Document::sum(named)?;
    sum.verdict = verdict(&sum);
    gates::judge_sum(&mut sum, named, read);
    Ok(sum)
}

/// What is decided about a run.
#[derive(Debug)]
pub struct Judgement {
    /// What limited it; `None` if nothing was measured, or for a single request.
    pub verdict: Option<Verdict>,
    /// What the user should know about the result, most important first; none if it is beyond doubt.
    pub notes: Vec<Note>,
}

impl Judgement {
    /// Judges a run.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let document = Document::of(plan, outcome);
        let verdict = verdict(&document);
        let notes = notes(plan, outcome, document.evidence.as_ref(), verdict.as_ref());
        Self { verdict, notes }
    }

    /// The verdict if onrush itself was the limit, where `--strict` makes that a failure.
    pub fn strictly(&self, plan: &Plan) -> Option<&Verdict> {
        self.verdict.as_ref().filter(|verdict| plan.show.is_strict && verdict.limited_by.is_our_fault())
    }

    /// The lines below a report: the notes and the verdict, as the plan asks for them; in colours if `colour`.
    pub fn lines(&self, plan: &Plan, outcome: &Outcome, colour: bool) -> String {
        if !plan.show.notes {
            return String::new();
        }
        let is_long = outcome.elapsed >= VERDICT_MIN || plan.show.verbose;
        let verdict = self.verdict.iter().filter(|_| is_long).map(|verdict| format!("verdict: {verdict}\n"));
        let probe = outcome.probe.iter().filter(|probe| probe.requests > 0).map(|probe| {
            let requests = counted(probe.requests, "request");
            format!("experiment: {requests} in {:.1} s after the run, in no other figure\n", probe.duration_s)
        });
        lines(&self.notes, plan.show.verbose, colour) + &probe.chain(verdict).collect::<String>()
    }

    /// The document of the run with this judgement, and with the gates of the plan in its order; the last one is
    /// `--strict`.
    pub fn document(&self, plan: &Plan, outcome: &Outcome) -> Document {
        let (verdict, notes) = (self.verdict.clone(), self.written(plan, outcome));
        let mut document = Document { verdict, notes, ..Document::of(plan, outcome) };
        document.gates = gates(&plan.show.gates, &document);
        document.gates.extend(self.verdict.as_ref().filter(|_| plan.show.is_strict).map(Gate::strict));
        document
    }

    /// The notes as files have them, without that which repeats a figure.
    fn written(&self, plan: &Plan, outcome: &Outcome) -> Vec<Note> {
        let notes = self.notes.iter().filter(|note| note.id != NoteId::WrkMean);
        let written = |note: &Note| Note::new(note.id, note.weight, shown(plan, outcome, note.text.clone()));
        notes.map(written).collect()
    }
}
