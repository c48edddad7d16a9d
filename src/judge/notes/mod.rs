//! The notes, which qualify a result: what happened, to what, why, and what to do next.
//!
//! A note is made where it is decided, with its sentence: `ending` has those on how a run ended, `connections` and `flight`
//! those on connections and what was in flight on them, `open_loop` compares what was due with what was sent, `unanswered`
//! has the requests without a response, `gaps` the times without one, `statuses` the responses, and `hints` what casts no
//! doubt. `lines` says how they are printed. Everything that came from a server is escaped.

mod connections;
mod ending;
mod flight;
mod gaps;
mod hints;
mod lines;
mod open_loop;
mod statuses;
mod unanswered;

pub use lines::lines;
pub use statuses::EXPECTS_TLS;

use std::cmp::Reverse;

use onrush_plan::{LimitedBy, Plan};
use onrush_stats::{Phase, Row};

use crate::failure::Failure;
use crate::figures::silences::silences;
use crate::judge::verdict::note_on;
use crate::record::evidence::Evidence;
use crate::record::{Finding, Note, NoteId, Verdict, Weight};
use crate::run::{Breakdown, Ended, Outcome};
use open_loop::MoreConnections;

/// All notes on an outcome, most important first; none if it is beyond doubt.
pub fn notes(plan: &Plan, outcome: &Outcome, evidence: Option<&Evidence>, verdict: Option<&Verdict>) -> Vec<Note> {
    let verdict = verdict.zip(evidence);
    // What a thread that never returned opened and sent is unknown.
    let has_panicked = matches!(outcome.breakdown, Some(Breakdown::Bug(_)));
    let is_known = outcome.stuck.is_empty() && !has_panicked && outcome.ended != Ended::NeverBegun;
    let mut flight = if is_known { flight::notes(plan, outcome) } else { Vec::new() };
    // If every request was sent when it was due, no connection was missing.
    let is_kept = outcome.totals.open_loop.as_deref().is_some_and(|open_loop| !open_loop::is_missed(open_loop));
    flight.retain(|note| !(is_kept && note.id == NoteId::Idle));
    let has_hanging = has(&flight, NoteId::Hanging);

    let mut notes: Vec<Note> = gaps::suspended(outcome).into_iter().chain(gaps::stalled(outcome)).collect();
    notes.extend(connections::fewer(plan, outcome).filter(|_| is_known));
    notes.extend(flight);
    notes.extend(connections::capped(plan, outcome));
    let silences = silences(plan, outcome);
    let silent_ns = silences.iter().map(|(_, silent_ns)| silent_ns).sum();
    notes.extend(open_loop::notes(plan, outcome, silent_ns, more_connections(verdict)));
    notes.extend(ending::early(plan, outcome));
    notes.extend(ending::until(outcome));
    notes.extend(unanswered::note(plan, outcome, has_hanging).filter(|_| is_known));
    notes.extend(gaps::without_response(plan, outcome, &silences));
    notes.extend(failures(plan, outcome, has(&notes, NoteId::FewerConnections)));
    notes.extend(statuses::note(plan, outcome));
    notes.extend(found(verdict));
    notes.extend(hints::notes(plan, outcome));
    // Equally important ones keep their order.
    notes.sort_by_key(|note| note.weight);
    notes
}

fn has(notes: &[Note], id: NoteId) -> bool {
    notes.iter().any(|note| note.id == id)
}

/// The notes on the rows of the ledger. `is_said`: that there were too few open files has a note.
fn failures(plan: &Plan, outcome: &Outcome, is_said: bool) -> Vec<Note> {
    let mut rows: Vec<&Row> = outcome.totals.ledger.rows().iter().filter(|row| row.phase != Phase::Status).collect();
    // The order in which threads' rows were added is random and must not show.
    rows.sort_by_key(|row| (Reverse(row.count), row.phase, row.cause));
    let shortage = outcome.descriptors.filter(|_| !is_said);
    let note = |row| {
        let failure = Failure { shortage, ..Failure::of(plan, outcome, row) };
        let weight = if failure.is_ours() { Weight::Doubt } else { Weight::Failure };
        let lines = failure.example().map(|example| [failure.to_string(), example]);
        Note { lines, ..Note::new(NoteId::Failure, weight, failure.in_full()) }
    };
    rows.into_iter().map(note).collect()
}

/// What the verdict says about more connections.
fn more_connections(verdict: Option<(&Verdict, &Evidence)>) -> MoreConnections {
    let Some((Verdict { limited_by, findings, .. }, _)) = verdict else { return MoreConnections::Unknown };
    let more_help = findings.iter().any(|finding| matches!(finding, Finding::DelayedAck | Finding::ListenQueue));
    match limited_by {
        LimitedBy::Target if !more_help => MoreConnections::Useless,
        _ => MoreConnections::Unknown,
    }
}

/// Findings of the verdict that no other note covers.
fn found(verdict: Option<(&Verdict, &Evidence)>) -> Vec<Note> {
    let Some((verdict, evidence)) = verdict else { return Vec::new() };
    verdict.findings.iter().filter_map(|finding| note_on(*finding, evidence)).collect()
}

/// The verb for this number of things.
fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Time since measuring began.
fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests;
