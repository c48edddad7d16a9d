//! Notes on how a run ended.

use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::{BATCHES_MIN, Unknown};
use onrush_text::units::{counted, exact, listed, thousands, time_us};

use crate::figures::NS_PER_US;
use crate::record::{Note, NoteId};
use crate::run::{Ended, Known, Outcome, Until};

/// The note on a run that ended early, or before all its requests had ended.
pub fn early(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    match outcome.ended {
        Ended::Signal => Some(Note::doubt(NoteId::Interrupted, interrupted_line(outcome.elapsed, plan.stop.duration))),
        Ended::NeverBegun => {
            Some(Note::doubt(NoteId::NeverBegun, "interrupted before anything was sent: there is nothing to report"))
        }
        Ended::StayedAway => {
            let (give_up, asked) = (plan.give_up.unwrap_or(outcome.elapsed), plan.stop.requests.unwrap_or_default());
            Some(Note::doubt(NoteId::Unreachable, stayed_away_line(give_up, outcome.totals.counters.started, asked)))
        }
        Ended::Duration => too_few_requests(plan, outcome),
        // A run that could not start prints an error instead of a report.
        Ended::Requests | Ended::Refused { .. } => None,
    }
}

/// The duration ended before all requests completed. (A script may end a run before either.)
fn too_few_requests(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let elapsed = outcome.elapsed;
    let asked = plan.stop.requests?;
    let completed = outcome.totals.counters.completed;
    let is_over = elapsed >= plan.stop.duration? && outcome.breakdown.is_none() && completed > 0;
    let text = || too_few_requests_line(elapsed, completed, asked, plan.is_staged());
    is_over.then(|| Note::doubt(NoteId::TooFewRequests, text()))
}

/// The note on the outcome of `--until`.
pub fn until(outcome: &Outcome) -> Option<Note> {
    let until = outcome.until.as_ref().filter(|_| outcome.totals.counters.completed > 0)?;
    let text = until_line(until, outcome.elapsed, outcome.ended == Ended::Requests);
    Some(if until.reached { Note::hint(NoteId::Until, text) } else { Note::failure(NoteId::Until, text) })
}

fn interrupted_line(elapsed: Duration, planned: Option<Duration>) -> String {
    if elapsed.is_zero() {
        return "interrupted before anything was measured: the warm-up was not over".to_owned();
    }
    let elapsed = time_us(elapsed.as_nanos() as f64 / NS_PER_US);
    let of = planned.map_or(String::new(), |planned| format!(" of {}", exact(planned)));
    format!("interrupted after {elapsed}{of}: the report covers only that time")
}

fn stayed_away_line(give_up: Duration, started: u64, asked: u64) -> String {
    let give_up = exact(give_up);
    let started = thousands(started);
    let asked = counted(asked, "request");
    format!("the target was unreachable for {give_up}: the run ended after {started} of {asked}")
}

fn too_few_requests_line(elapsed: Duration, completed: u64, asked: u64, staged: bool) -> String {
    let elapsed = time_us(elapsed.as_nanos() as f64 / NS_PER_US);
    let completed = thousands(completed);
    let asked = counted(asked, "request");
    let remedy = if staged { "longer stages" } else { "a longer -d" };
    format!("the run ended after {elapsed} with only {completed} of {asked} completed: use {remedy}")
}

fn until_line(until: &Until, elapsed: Duration, is_counted: bool) -> String {
    // A batch lasts at least a second.
    let is_too_short = elapsed < Duration::from_secs(BATCHES_MIN as u64);
    let [after, elapsed] = [until.at, elapsed].map(|time| time_us(time.as_secs_f64() * 1e6));
    let sure = |known: &Known| match known.estimate {
        Ok(estimate) => format!("{} is known to ±{:.2} %", known.term.name(), estimate.half_width * 100.0),
        Err(_) => String::new(),
    };
    let unsure = |known: &Known| match (known.term.name(), known.estimate) {
        (name, Ok(estimate)) => {
            let [is, asked] = [estimate.half_width, known.term.half_width].map(|half_width| half_width * 100.0);
            format!("{name} is known to ±{is:.2} % instead of ±{asked} % (95 % confidence)")
        }
        (name, Err(Unknown::Short)) if is_too_short => {
            format!("the precision of {name} is unknown, because that takes a run of at least {BATCHES_MIN} s")
        }
        (name, Err(Unknown::Short)) => format!(
            "the precision of {name} is unknown, because the run has fewer than {BATCHES_MIN} sections of {}",
            counted(known.completed_min(), "response")
        ),
        (name, Err(Unknown::Dependent)) => {
            format!(
                "the precision of {name} is unknown: it changes so slowly that the run has fewer than \
                 {BATCHES_MIN} independent sections"
            )
        }
    };
    if until.reached {
        let sure: Vec<String> = until.terms.iter().map(sure).collect();
        let sure = listed(&sure);
        return format!("the run ended after {after}, when its figures were precise enough (95 % confidence): {sure}");
    }
    let unsure: Vec<String> = until.terms.iter().filter(|known| !known.is_enough()).map(unsure).collect();
    let remedy = if is_counted { "send more requests (-n)" } else { "measure longer (-d)" };
    format!("--until was not reached in {elapsed}: {}; {remedy}", unsure.join("; "))
}
