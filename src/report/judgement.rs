//! Everything that is decided about a run: once, from the plan and the outcome, for everybody who shows it, writes it
//! or ends with an exit code.

use onrush_plan::Plan;

use super::gate::Gate;
use super::gates::gates;
use super::notes::{Note, notes};
use super::verdict::verdict;
use crate::run::Outcome;
use crate::verdict::Verdict;

/// What is decided about a run.
#[derive(Debug)]
pub struct Judgement {
    /// What limited it; `None` if nothing was measured, or for a single request.
    pub verdict: Option<Verdict>,
    /// The gates of the plan, in its order.
    pub gates: Vec<Gate>,
    /// What the user should know about the result, most important first; none if it is beyond doubt.
    pub notes: Vec<Note>,
}

impl Judgement {
    /// Judges a run.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let verdict = verdict(plan, outcome);
        let (gates, notes) = (gates(plan, outcome, verdict.as_ref()), notes(plan, outcome, verdict.as_ref()));
        Self { verdict, gates, notes }
    }

    /// The verdict if onrush itself was the limit, where `--strict` makes that a failure.
    pub fn strictly(&self, plan: &Plan) -> Option<&Verdict> {
        self.verdict.as_ref().filter(|verdict| plan.show.is_strict && verdict.limited_by.is_our_fault())
    }

    /// The gates as documents have them, with `--strict` as one of them.
    pub(super) fn all_gates(&self, plan: &Plan) -> Vec<Gate> {
        let strict = self.verdict.as_ref().filter(|_| plan.show.is_strict).map(Gate::strict);
        self.gates.iter().cloned().chain(strict).collect()
    }
}
