//! Notes on responses with an unexpected status and on early responses.

use std::cmp::Reverse;

use onrush_plan::checks::is_failure;
use onrush_text::units::{format_count, format_thousands, join_list};

use super::was_or_were;
use crate::failure::EXPECTS_TLS;
use crate::record::{Document, Note, NoteId, STATUSES_NAMED};

/// A status class other than 2xx is noted above this percentage of the responses.
const STATUS_PERCENT: u64 = 1;

/// Responses that arrived before their request was sent are noted above this percentage.
const EARLY_PERCENT: u64 = 1;

/// The note on responses that arrived before their request was sent; `None` unless frequent.
pub fn early_responses(document: &Document) -> Option<Note> {
    let (early, answers) = (document.requests.early, document.requests.completed);
    let which = match early {
        _ if early < answers => format!("{} of {}", format_thousands(early), format_count(answers, "response")),
        1 => "the response".to_owned(),
        _ => format!("all {}", format_count(answers, "response")),
    };
    let text = format!("{which} came before the whole request had been sent; the rest of the request was not sent");
    (early * 100 > answers * EARLY_PERCENT).then(|| Note::doubt(NoteId::Early, text))
}

/// The note on unexpected statuses: any status but the expected ones, or, if the user set none, any class but 2xx that
/// is frequent.
pub fn status_note(document: &Document) -> Option<Note> {
    let Document { status, location, plan, requests, .. } = document;
    let answers = requests.completed;
    let of_class =
        |class: u16| status.iter().filter(move |(status, _)| **status / 100 == class).map(|(_, count)| count);
    let doubtful = |class: u16| class != 2 && of_class(class).sum::<u64>() * 100 > answers * STATUS_PERCENT;
    let expected = plan.expected_status();
    // An expectation set by the user is exact.
    let is_doubtful = if expected.is_some() { document.errors.status > 0 } else { (0..10).any(doubtful) };
    if !is_doubtful {
        return None;
    }
    if document.expects_tls && status.keys().all(|status| *status == 400) {
        return Some(Note::doubt(NoteId::ExpectsTls, format!("{} 400: {EXPECTS_TLS}", all_were(answers))));
    }
    let mut counts: Vec<(u16, u64)> = status.iter().map(|(status, count)| (*status, *count)).collect();
    let instead = expected.map_or(String::new(), |expected| format!(" instead of {expected}"));
    if let (true, &[(status, _)]) = (plan.once, &counts[..]) {
        let line = match expected {
            Some(_) => format!("the response was {status}{instead}"),
            None => answer_line(status, location.as_deref()),
        };
        return Some(Note::failure(NoteId::Status, line));
    }
    counts.sort_by_key(|&(status, count)| (Reverse(count), status));
    let line = match expected {
        Some(_) => {
            counts.retain(|(status, _)| is_failure(expected, *status));
            let were = match counts[..] {
                [(status, count)] if count == answers => format!("{} {status}", all_were(answers)),
                _ => describe_statuses(answers, &counts),
            };
            format!("{were}{instead}; --once shows one in full")
        }
        None => statuses_line(answers, &counts, location.as_deref()),
    };
    Some(Note::failure(NoteId::Statuses, line))
}

/// The start of a sentence about all responses.
fn all_were(answers: u64) -> String {
    match answers {
        1 => "the only response was".to_owned(),
        2 => "both responses were".to_owned(),
        _ => format!("all {} responses were", format_thousands(answers)),
    }
}

fn statuses_line(answers: u64, counts: &[(u16, u64)], location: Option<&str>) -> String {
    let all = all_were(answers);
    match (counts, location) {
        ([(status @ 300..400, _)], Some(location)) => {
            format!("{all} {status} to {location}: you measured the redirect")
        }
        ([(status, _)], _) => format!("{all} {status}; --once shows one in full"),
        (_, location) => {
            let redirect = location.map_or(String::new(), |location| format!("; a redirect leads to {location}"));
            describe_statuses(answers, counts) + &redirect
        }
    }
}

/// Says how many responses had each of these statuses.
fn describe_statuses(answers: u64, counts: &[(u16, u64)]) -> String {
    let (named, others) = counts.split_at(counts.len().min(STATUSES_NAMED));
    let mut parts: Vec<String> = named
        .iter()
        .map(|&(status, count)| format!("{} {} {status}", format_thousands(count), was_or_were(count)))
        .collect();
    let others: u64 = others.iter().map(|&(_, count)| count).sum();
    parts.extend((others > 0).then(|| format!("{} had other statuses", format_thousands(others))));
    format!("of {}, {}", format_count(answers, "response"), join_list(&parts))
}

fn answer_line(status: u16, location: Option<&str>) -> String {
    match (status, location) {
        (300..400, Some(location)) => {
            format!("the response was {status} to {location}: a run would measure the redirect")
        }
        (400.., _) => format!("the response was {status}: a run would measure the error page"),
        _ => format!("the response was {status}"),
    }
}
