//! Rules on failures, refusals and too few responses, and the sentences shared with other rules.

use super::ruling::{Ruling, make_ruling};
use super::words::{format_count, format_number, format_percent};
use crate::record::NoteId;
use crate::record::evidence::{Evidence, Load, MainFailure, Refusal, Unreadable};
use onrush_plan::LimitedBy;
use onrush_text::units::join_list;

/// Without a rate, a run with this share of unsuccessful responses measured mostly error pages.
const REFUSED: f64 = 0.1;
/// Failed requests and unsuccessful responses matter if they are at least this share of the responses.
pub(super) const FAILED: f64 = 0.01;
/// All failures count as alike if at least this share has the same cause.
const ALIKE: f64 = 0.995;
/// The summary of an unclear verdict; the reason follows.
const UNCLEAR: &str = "the limit is unclear";
/// Minimum number of responses for any conclusion.
const RESPONSES_MIN: u64 = 20;

/// True if too many responses are unsuccessful.
pub(super) fn refuses_too_many(load: &Load) -> bool {
    count_refused_responses(load) as f64 >= FAILED * load.completed as f64 && count_refused_responses(load) > 0
}

/// The number of unsuccessful responses, by status or by check, whichever is larger.
pub(super) fn count_refused_responses(load: &Load) -> u64 {
    load.refused.max(load.failed_checks)
}

/// Describes the unsuccessful responses: `83 % of the responses were 429`.
pub(super) fn describe_refusals(load: &Load) -> String {
    let share = format_percent(count_refused_responses(load) as f64 / load.completed as f64);
    if load.failed_checks > load.refused {
        return format!("{share} of the responses failed a check");
    }
    let others = load.expected.as_ref().map_or("neither 2xx nor 3xx".to_owned(), |list| format!("other than {list}"));
    let were = load.refusal.map_or(others.clone(), |Refusal { status, is_only }| {
        if is_only { status.to_string() } else { format!("{others}, most of them {status}") }
    });
    format!("{share} of the responses were {were}")
}

/// A closed loop with too many failures for a meaningful rate.
pub(super) fn rule_on_failures(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let failures = describe_failures(load).filter(|_| load.asked_per_s.is_none() && fails_often(load))?;
    make_ruling(LimitedBy::Unclear, UNCLEAR, failures, advice_on_failures(load).unwrap_or("find out why first"))
}

/// A closed loop that measured the rate of error pages.
pub(super) fn rule_on_refusals(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let is_refused =
        count_refused_responses(load) as f64 >= REFUSED * load.completed as f64 && count_refused_responses(load) > 0;
    (load.asked_per_s.is_none() && is_refused).then_some(())?;
    Some(
        make_ruling(LimitedBy::Unclear, UNCLEAR, describe_refusals(load), "find out why first")?
            .saying(&[NoteId::Statuses]),
    )
}

/// The failures by kind, with their numbers; `None` without failures.
pub(super) fn describe_failures(load: &Load) -> Option<String> {
    let counted = |number: u64, noun| (number > 0).then(|| format_count(number, noun));
    let failed = [
        counted(load.connect_errors, "connection attempt"),
        counted(load.failed_requests(), "request"),
        counted(load.failed_connections(), "connection"),
    ];
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    let failed = (!failed.is_empty()).then(|| format!("{} failed{}", join_list(&failed), describe_main_failure(load)));
    // Some of the late requests may be among the failed ones.
    let late = counted(load.timeouts, "request").map(|requests| format!("{requests} took longer than --timeout"));
    // If --give-up is shorter than --timeout, nothing times out.
    let abandoned = counted(load.abandoned, "request").filter(|_| load.abandoned > load.timeouts);
    let late = abandoned.map(|requests| format!("{requests} were abandoned (--give-up)")).or(late);
    let all: Vec<String> = failed.into_iter().chain(late).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The most frequent cause of failure and its share, if it explains at least half of the failures.
fn describe_main_failure(load: &Load) -> String {
    let Some(MainFailure { count, why, .. }) = main_failure(load) else { return String::new() };
    match *count as f64 / load.failures().saturating_sub(load.abandoned) as f64 {
        share if share < ALIKE => format!(" ({} of them: {why})", format_percent(share)),
        _ => format!(" ({why})"),
    }
}

fn main_failure(load: &Load) -> Option<&MainFailure> {
    let failed = load.failures().saturating_sub(load.abandoned);
    load.main_failure.as_ref().filter(|main| main.count.saturating_mul(2) >= failed)
}

/// The remedy for the most frequent failures, if their cause is known.
pub(super) fn advice_on_failures(load: &Load) -> Option<&str> {
    main_failure(load).filter(|_| fails_often(load))?.advice.as_deref()
}

pub(super) fn rule_on_few_responses(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    // Failed requests and due requests without a response count as evidence too.
    let failed = load.failures();
    let all = load.completed.saturating_add(load.behind().unwrap_or(0)).saturating_add(failed);
    (all < RESPONSES_MIN || load.completed == 0 && failed == 0).then_some(())?;
    if load.completed == 0 {
        return make_ruling(LimitedBy::Unclear, UNCLEAR, "there were no responses".to_owned(), "");
    }
    let were = if load.completed == 1 { "was" } else { "were" };
    let only = format!("there {were} only {}", format_count(load.completed, "response"));
    match describe_failures(load).filter(|_| fails_often(load)) {
        Some(failures) => {
            let advice = advice_on_failures(load).unwrap_or("find out why first");
            make_ruling(LimitedBy::Unclear, UNCLEAR, format!("{only}: {failures}"), advice)
        }
        None => make_ruling(LimitedBy::Unclear, UNCLEAR, only, "run longer (-d)"),
    }
}

/// A target whose responses cannot be read.
pub(super) fn rule_on_unreadable_responses(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let Unreadable { requests, why } = load.unreadable.as_ref()?;
    // A failure before any request was sent concerns only the connection.
    let failed = match load.failed_requests() {
        failed if *requests <= failed => format_count(*requests, "request"),
        0 => format_count(*requests, "connection"),
        _ => format!("{} requests and connections", format_number(*requests as f64)),
    };
    let reason = format!("{failed} failed ({why})");
    let advice = main_failure(load).filter(|main| main.why == *why).and_then(|main| main.advice.as_deref());
    make_ruling(LimitedBy::Target, "none of the target's responses could be read", reason, advice.unwrap_or_default())
}

/// True if failures are frequent enough to disturb every figure.
pub(super) fn fails_often(load: &Load) -> bool {
    // In a closed loop, a late response is like any other. The time to replace a connection is missing from the rate.
    let (late, connections) = match load.asked_per_s {
        Some(_) => (load.timeouts.max(load.abandoned), 0),
        None => (load.abandoned, load.failed_connections()),
    };
    let requests = load.failed_requests().saturating_add(late);
    let failed = load.connect_errors.saturating_add(requests).saturating_add(connections);
    failed as f64 >= FAILED * load.completed as f64 && failed > 0
}
