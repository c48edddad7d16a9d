//! The judge: a run's limit, its broken gates, and the notes for its user. Each is decided once, from the document
//! alone, for all outputs and the exit code.
//!
//! `verdict` holds the rules on the evidence, `gates` compares metrics with the conditions of `--fail-if`, and `notes`
//! words every doubt. Nothing here measures or prints.

mod gates;
mod notes;
mod verdict;

use onrush_plan::condition::Condition;
use onrush_plan::{LimitedBy, OutputOptions, Plan};
use onrush_text::units::format_count;

use crate::record::gate::Gate;
use crate::record::{Document, Http2, Note, NoteId, RunResult, VERDICT_MIN, Verdict, Weight};
use crate::run::Outcome;
use gates::judge_gates;
use notes::{NoteRoom, all_notes, format_notes};
use verdict::{judge_limit, usage_line as usage_of};

pub use gates::{annotation, judge_objective, notes_on_missing_gates};
pub use verdict::{judge_evidence, needs_probe, uses_all_connections};

/// The document of a result. A sum is judged anew: its verdict, and those gates that all its runs have in common and
/// whose conditions `read` understands. Notes name the other gates.
pub fn judge_result(result: RunResult, read: impl Fn(&str) -> Option<Condition>) -> Document {
    let mut document = Document::from_result(result);
    if document.result.single().is_none() {
        document.verdict = judge_limit(&document);
        gates::judge_sum(&mut document, read);
    }
    document
}

/// Maximum number of lines below the report of a run without failures and with a known limit.
const LINES_MAX: usize = 3;

/// Decisions of the judge about a run.
#[derive(Debug)]
pub struct Judgement {
    /// The limit of the run; `None` if nothing was measured, or for a single request.
    pub verdict: Option<Verdict>,
    /// Doubts about the result, most important first; empty if there are none.
    pub notes: Vec<Note>,
    /// Outcomes of the gates, in their order; `--strict` is last.
    pub gates: Vec<Gate>,
}

/// Judges a run: its limit, the notes on it, and the gates of the user's options.
pub fn judge_document(document: &Document, asked: &OutputOptions) -> Judgement {
    let verdict = judge_limit(document);
    let mut notes = all_notes(document, verdict.as_ref(), is_printed(document, asked));
    let mut gates = judge_gates(&asked.gates, document, verdict.as_ref());
    gates.extend(verdict.as_ref().filter(|_| asked.is_strict).map(Gate::strict));
    notes.extend(
        gates.iter().filter(|gate| gate.lacks_figure() && !gate.is_strict()).map(|gate| {
            Note::doubt(NoteId::NoFigure, format!("--fail-if {} passed: {}", gate.condition(), gate.was()))
        }),
    );
    Judgement { verdict, notes, gates }
}

/// The record of a run, judged, and its notes.
#[derive(Debug)]
pub struct JudgedRun {
    /// The record of the run, including the judgement.
    pub document: Document,
    /// The notes, some of which were already printed before the run.
    notes: Vec<Note>,
}

/// True if the verdict is printed even without `-v`, so that no note need repeat it. This is not so for a short run,
/// unless a probe followed it or an option asked for the verdict.
fn is_printed(document: &Document, output: &OutputOptions) -> bool {
    let was_probed = document.evidence.iter().filter_map(|evidence| evidence.probe.as_ref()).any(|it| it.requests > 0);
    let is_asked = output.is_strict || output.probing.is_some() || output.gates.iter().any(Condition::asks_for_verdict);
    document.elapsed() >= VERDICT_MIN || was_probed || is_asked
}

impl JudgedRun {
    /// Records a run as a document and judges it.
    pub fn from_outcome(plan: &Plan, outcome: &Outcome) -> Self {
        let document = Document::of(plan, outcome);
        let Judgement { verdict, notes, gates } = judge_document(&document, &plan.output);
        let mut document = document;
        document.keep_judgement(verdict, gates, notes.iter().map(Note::written).collect());
        Self { document, notes }
    }

    /// The verdict if onrush itself was the limit and `--strict` makes that a failure; otherwise `None`.
    pub fn strict_failure(&self, plan: &Plan) -> Option<&Verdict> {
        self.document.verdict.as_ref().filter(|verdict| plan.output.is_strict && verdict.limited_by.is_generator())
    }

    /// The lines printed below a report: notes and verdict, in colour if `colour`; empty if notes are turned off. A run
    /// without failures and with a known limit gets at most three lines, plus those of `-v`.
    pub fn lines(&self, output: &OutputOptions, colour: bool) -> String {
        if !output.notes {
            return String::new();
        }
        let Document { evidence, verdict, ledger, latency, http2, .. } = &self.document;
        let probe = evidence.iter().filter_map(|evidence| evidence.probe.as_ref()).find(|probe| probe.requests > 0);
        let verdict = verdict.as_ref().filter(|_| output.verbose || is_printed(&self.document, output));
        let is_known = verdict.is_some_and(|verdict| verdict.limited_by != LimitedBy::Unclear);
        let is_plain = is_known && ledger.is_empty() && self.notes.iter().all(|note| note.weight != Weight::Doubt);
        let lingered = http2.as_ref().filter(|http2| http2.lingers > 0).map_or(String::new(), linger_clause);
        let usage = evidence
            .as_ref()
            .filter(|_| output.verbose)
            .map(|evidence| format!("usage: {}{lingered}\n", usage_of(evidence)));
        let probe = probe.map(|probe| {
            let requests = format_count(probe.requests, "request");
            format!("probe: {requests} in {:.1} s after the run, not counted elsewhere\n", probe.duration_s)
        });
        let verdict = verdict.map(|verdict| format!("verdict: {verdict}\n"));
        let room = match &probe {
            _ if output.verbose => NoteRoom::All,
            _ if !is_plain => NoteRoom::Few,
            Some(_) => NoteRoom::Lines(LINES_MAX - 2),
            None => NoteRoom::Lines(LINES_MAX - 1),
        };
        let others: String = [usage, probe, verdict].into_iter().flatten().collect();
        format_notes(&self.notes, latency.wrk_mean_us, room, colour) + &others
    }
}

/// A clause on how often threads waited to collect several HTTP/2 responses, a wait that latencies include.
fn linger_clause(http2: &Http2) -> String {
    let (times, longest) = (format_count(http2.lingers, "time"), http2.linger_max_us);
    format!("; onrush waited {times} to collect several responses, for at most {longest} µs each")
}
