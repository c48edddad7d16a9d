//! The notes, which qualify a result: what happened, to what, why, and what to do next.
//!
//! Each note is decided and worded in one place: `ending` covers the end of a run, `connections` and `flight` its
//! connections and requests in flight, `open_loop` requests due but not sent in time, `unanswered` requests without a
//! response, `gaps` times without a response, `statuses` the responses, and `failures` the ledger. `http2` and
//! `machines` cover their subjects. `hints` covers everything that casts no doubt. `lines` formats the notes.
//! Everything received from a server is escaped.

mod connections;
mod ending;
mod facts;
mod failures;
mod flight;
mod gaps;
mod hints;
mod http2;
mod lines;
mod machines;
mod open_loop;
mod statuses;
mod unanswered;

pub use lines::{NoteRoom, format_notes};

use onrush_plan::LimitedBy;

use super::verdict::finding_note;
use crate::record::evidence::Evidence;
use crate::record::{Document, Ended, Note, NoteId, Verdict};
use facts::NoteFacts;
use open_loop::ConnectionsAdvice;

/// All notes on a run, most important first. With `is_printed` (the verdict is printed), notes that would only repeat
/// it are left out.
pub fn all_notes(document: &Document, verdict: Option<&Verdict>, is_printed: bool) -> Vec<Note> {
    let facts = &NoteFacts::from_document(document);
    let printed = verdict.filter(|_| is_printed);
    let says = printed.map_or(&[][..], |verdict| verdict.says);
    let verdict = verdict.zip(document.evidence.as_ref());
    // The requests and connections of a thread that never returned are unknown ...
    let is_known = document.lost_threads == 0 && document.ended != Some(Ended::NeverBegun);
    // ... and a lost machine had no more connections.
    let is_whole = is_known && document.machines.iter().all(|machine| machine.lost.is_none());
    let mut flight = if is_whole { flight::flight_notes(facts) } else { Vec::new() };
    // If every request was sent when it was due, no connection was missing.
    let is_kept = document.open_loop.is_some() && !open_loop::is_missed(&document.requests);
    flight.retain(|note| !(is_kept && note.id == NoteId::Idle));
    let has_hanging = has_note(&flight, NoteId::Hanging);

    let mut notes: Vec<Note> =
        gaps::machine_suspension(document).into_iter().chain(gaps::generator_stalls(facts)).collect();
    notes.extend(connections::fewer_connections(facts).filter(|_| is_whole));
    notes.extend(flight);
    notes.extend(connections::capped_buffers(document));
    let more = advise_on_connections(verdict, has_hanging);
    notes.extend(open_loop::open_loop_notes(facts, more, says.contains(&NoteId::Behind)));
    notes.extend(ending::early_end(document));
    notes.extend(ending::ended_by_script(document));
    notes.extend(ending::until_outcome(document));
    notes.extend(unanswered::unanswered_note(facts, has_hanging).filter(|_| is_known));
    notes.extend(gaps::response_gaps(facts));
    let is_said = has_note(&notes, NoteId::FewerConnections) && !says.contains(&NoteId::FewerConnections);
    notes.extend(failures::failure_notes(document, is_said));
    notes.extend(statuses::status_note(document));
    notes.extend(statuses::early_responses(document));
    notes.extend(finding_notes(verdict));
    notes.extend(http2::http2_notes(document, more));
    notes.extend(machines::machine_notes(document));
    notes.extend(hints::hint_notes(facts));
    // Notes on a backlog say more than the verdict. So does the note on statuses after redirects.
    let has_more = |id: NoteId| match id {
        NoteId::Behind | NoteId::Crowded => true,
        NoteId::Statuses => document.location.is_some(),
        _ => false,
    };
    notes.retain(|note| !says.contains(&note.id) || has_more(note.id));
    // Equally important notes keep their order.
    notes.sort_by_key(|note| note.weight);
    notes
}

fn has_note(notes: &[Note], id: NoteId) -> bool {
    notes.iter().any(|note| note.id == id)
}

/// Consequence of the verdict and of hanging requests for more connections.
fn advise_on_connections(verdict: Option<(&Verdict, &Evidence)>, has_hanging: bool) -> ConnectionsAdvice {
    let Some((Verdict { limited_by, .. }, evidence)) = verdict else { return ConnectionsAdvice::Unknown };
    let load = &evidence.load;
    match limited_by {
        // Hanging requests occupy any number of connections.
        _ if has_hanging || load.hanging > 0 => ConnectionsAdvice::Useless,
        LimitedBy::Target | LimitedBy::GeneratorCpu | LimitedBy::GeneratorScript | LimitedBy::Ports => {
            ConnectionsAdvice::Useless
        }
        LimitedBy::Network => ConnectionsAdvice::Uncounted,
        LimitedBy::Schedule | LimitedBy::Connections | LimitedBy::Knee | LimitedBy::Unclear if load.quiet_s > 0.0 => {
            ConnectionsAdvice::Uncounted
        }
        LimitedBy::Schedule | LimitedBy::Connections | LimitedBy::Knee | LimitedBy::Unclear => {
            ConnectionsAdvice::Unknown
        }
    }
}

/// The notes on the verdict's findings, except those that another note covers.
fn finding_notes(verdict: Option<(&Verdict, &Evidence)>) -> Vec<Note> {
    let Some((verdict, evidence)) = verdict else { return Vec::new() };
    verdict.findings.iter().filter_map(|finding| finding_note(*finding, evidence)).collect()
}

/// The verb form for a count.
fn was_or_were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Formats a time since measuring began.
fn format_seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests;
