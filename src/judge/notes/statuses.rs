//! Notes on responses that are not 2xx.

use std::cmp::Reverse;

use onrush_plan::Plan;
use onrush_text::escape;
use onrush_text::units::{listed, thousands};

use super::were;
use crate::record::{Note, NoteId, STATUSES_NAMED};
use crate::run::Outcome;

/// A class of statuses other than 2xx is worth a note above this percentage of the responses.
const STATUS_PERCENT: u64 = 1;
/// What to do about responses which say that the port expects TLS.
pub const EXPECTS_TLS: &str = "the server expects TLS at this port; write https://";

/// The note on them, if there are enough of one class.
pub fn note(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let answers = outcome.totals.counters.completed;
    let statuses = &outcome.totals.statuses;
    let doubtful = |class: u16| class != 2 && statuses.class_total(class) * 100 > answers * STATUS_PERCENT;
    if !(0..10).any(doubtful) {
        return None;
    }
    if outcome.totals.expects_tls && statuses.iter().all(|(status, _)| status == 400) {
        return Some(Note::doubt(NoteId::ExpectsTls, format!("{} 400: {EXPECTS_TLS}", all_were(answers))));
    }
    let location = outcome.totals.location.as_ref().map(|location| escape(location.as_bytes()));
    let mut counts: Vec<(u16, u64)> = statuses.iter().collect();
    if let (true, &[(status, _)]) = (plan.once, &counts[..]) {
        return Some(Note::failure(NoteId::Status, answer_line(status, location)));
    }
    counts.sort_by_key(|&(status, count)| (Reverse(count), status));
    Some(Note::failure(NoteId::Statuses, statuses_line(answers, &counts, location)))
}

/// The beginning of a sentence about all responses.
fn all_were(answers: u64) -> String {
    match answers {
        1 => "the only response was".to_owned(),
        2 => "both responses were".to_owned(),
        _ => format!("all {} responses were", thousands(answers)),
    }
}

fn statuses_line(answers: u64, counts: &[(u16, u64)], location: Option<String>) -> String {
    let all = all_were(answers);
    match (counts, location) {
        ([(status @ 300..400, _)], Some(location)) => {
            format!("{all} {status} to {location}: you measured the redirect")
        }
        ([(status, _)], _) => format!("{all} {status}: --once shows one in full"),
        (_, location) => {
            let (named, others) = counts.split_at(counts.len().min(STATUSES_NAMED));
            let mut parts: Vec<String> =
                named.iter().map(|&(status, count)| format!("{} {} {status}", thousands(count), were(count))).collect();
            let others: u64 = others.iter().map(|&(_, count)| count).sum();
            parts.extend((others > 0).then(|| format!("{} had other statuses", thousands(others))));
            let redirect = location.map_or(String::new(), |location| format!("; a redirect leads to {location}"));
            format!("of {} responses, {}{redirect}", thousands(answers), listed(&parts))
        }
    }
}

fn answer_line(status: u16, location: Option<String>) -> String {
    match (status, location) {
        (300..400, Some(location)) => {
            format!("the response was {status} to {location}: a run would measure the redirect")
        }
        (400.., _) => format!("the response was {status}: a run would measure the error page"),
        _ => format!("the response was {status}"),
    }
}
