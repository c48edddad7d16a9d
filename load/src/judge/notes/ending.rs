//! Notes on how a run ended.

use std::time::Duration;

use onrush_stats::BATCHES_MIN;
use onrush_text::units::{format_count, format_duration_exact, format_thousands, format_us, join_list};

use super::facts::duration;
use super::was_or_were;
use crate::figures::NS_PER_US;
use crate::record::{Document, Ended, Known, Note, NoteId, StoppedThread, Unknown, Until};

/// From this many threads on, a note counts threads instead of naming them.
const NAMED: usize = 9;

/// The note on a run that was interrupted, or ended before all its requests completed; otherwise
/// `None`.
pub fn early_end(document: &Document) -> Option<Note> {
    let (plan, elapsed) = (&document.plan, document.elapsed());
    let (id, text) = match document.ended {
        Some(Ended::Signal) => (NoteId::Interrupted, interrupted_line(elapsed, plan.duration_s.map(duration))),
        Some(Ended::NeverBegun) => {
            (NoteId::NeverBegun, "interrupted before anything was sent: there is nothing to report".to_owned())
        }
        Some(Ended::StayedAway) => {
            let give_up = plan.give_up_s.map_or(elapsed, duration);
            let line = unreachable_target_line(give_up, document.requests.started, plan.requests.unwrap_or_default());
            (NoteId::Unreachable, line)
        }
        None => return too_few_requests(document),
        // A run that could not start prints an error instead of a report.
        Some(Ended::Requests | Ended::Refused) => return None,
    };
    Some(Note::doubt(id, text))
}

/// The note on a duration too short for all requests of `-n`; `None` if the run ended before its
/// duration, as a script can make it.
fn too_few_requests(document: &Document) -> Option<Note> {
    let (plan, elapsed, completed) = (&document.plan, document.elapsed(), document.requests.completed);
    let asked = plan.requests?;
    let is_over = elapsed >= duration(plan.duration_s?) && document.incomplete.is_none() && completed > 0;
    let text = || too_few_requests_line(elapsed, completed, asked, plan.is_staged());
    is_over.then(|| Note::doubt(NoteId::TooFewRequests, text()))
}

/// The note on threads ended by the script; `None` if there are none.
pub fn ended_by_script(document: &Document) -> Option<Note> {
    let stopped = &document.stopped_threads;
    let times = || stopped.iter().map(|thread| thread.at_s);
    let (first, last) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    let unsent = document.plan.requests.map_or(0, |asked| asked.saturating_sub(document.requests.started));
    let goes_on = document.evidence.as_ref().is_some_and(|evidence| evidence.generator.stopped > 0);
    let text = ended_line(stopped, document.threads.len(), [first, last], unsent);
    let is_doubt = goes_on || unsent > 0 || document.duration_s == 0.0;
    Some(if is_doubt { Note::doubt(NoteId::ScriptEnded, text) } else { Note::hint(NoteId::ScriptEnded, text) })
}

/// The note on the outcome of `--until`; `None` without `--until`, or if there was no response.
pub fn until_outcome(document: &Document) -> Option<Note> {
    let until = document.until.as_ref().filter(|_| document.requests.completed > 0)?;
    let text = until_line(until, document.elapsed(), document.ended == Some(Ended::Requests));
    Some(if until.reached { Note::hint(NoteId::Until, text) } else { Note::failure(NoteId::Until, text) })
}

fn interrupted_line(elapsed: Duration, planned: Option<Duration>) -> String {
    if elapsed.is_zero() {
        return "interrupted before anything was measured: the warm-up was not over".to_owned();
    }
    let elapsed = format_us(elapsed.as_nanos() as f64 / NS_PER_US);
    let of = planned.map_or(String::new(), |planned| format!(" of {}", format_duration_exact(planned)));
    format!("interrupted after {elapsed}{of}: the report covers only that time")
}

fn ended_line(stopped: &[StoppedThread], threads: usize, [first, last]: [f64; 2], unsent: u64) -> String {
    let numbers = || stopped.iter().map(|thread| thread.thread.to_string()).collect::<Vec<_>>();
    let who = match stopped.len() {
        1 if threads == 1 => "its only thread".to_owned(),
        2 if threads == 2 => "both threads".to_owned(),
        all if all == threads => format!("all {all} threads"),
        1 => format!("thread {}", numbers().concat()),
        2..NAMED => format!("threads {}", join_list(&numbers())),
        several => format!("{several} of {threads} threads"),
    };
    let [first, last] = [first, last].map(|at_s| if at_s > 0.0 { format_us(at_s * 1e6) } else { String::new() });
    let when = match () {
        () if last.is_empty() => "in the warm-up".to_owned(),
        () if first.is_empty() => format!("up to {last} after the warm-up"),
        () if first == last => format!("after {last}"),
        () => format!("after {first} to {last}"),
    };
    let rest = match unsent {
        0 => String::new(),
        unsent => format!(": {} {} not sent", format_count(unsent, "request"), was_or_were(unsent)),
    };
    format!("the script ended {who} {when}{rest}")
}

fn unreachable_target_line(give_up: Duration, started: u64, asked: u64) -> String {
    let give_up = format_duration_exact(give_up);
    let started = format_thousands(started);
    let asked = format_count(asked, "request");
    format!("the target was unreachable for {give_up}: the run ended after {started} of {asked}")
}

fn too_few_requests_line(elapsed: Duration, completed: u64, asked: u64, staged: bool) -> String {
    let elapsed = format_us(elapsed.as_nanos() as f64 / NS_PER_US);
    let completed = format_thousands(completed);
    let asked = format_count(asked, "request");
    let remedy = if staged { "longer stages" } else { "a longer -d" };
    format!("the run ended after {elapsed} with only {completed} of {asked} completed; use {remedy}")
}

fn until_line(until: &Until, elapsed: Duration, is_counted: bool) -> String {
    // A batch takes at least a second.
    let is_too_short = elapsed < Duration::from_secs(BATCHES_MIN as u64);
    let [after, elapsed] = [until.at_s, elapsed.as_secs_f64()].map(|seconds| format_us(seconds * 1e6));
    let percent = |share: Option<f64>| share.unwrap_or_default() * 100.0;
    let sure = |known: &Known| format!("{} to ±{:.2} %", known.name(), percent(known.half_width));
    let unsure = |known: &Known| match (known.name(), known.unknown) {
        (name, None) => {
            let [is, asked] = [known.half_width, known.asked].map(percent);
            format!("{name} is known to ±{is:.2} % instead of ±{asked} % (95 % confidence)")
        }
        (name, Some(Unknown::Short)) if is_too_short => {
            format!("the precision of {name} is unknown, because the run was shorter than {BATCHES_MIN} s")
        }
        (name, Some(Unknown::Short)) => format!(
            "the precision of {name} is unknown, because the run has fewer than {BATCHES_MIN} sections of {}",
            format_count(known.completed_min.unwrap_or_default(), "response")
        ),
        (name, Some(Unknown::Dependent)) => {
            format!(
                "the precision of {name} is unknown: it changes so slowly that the run has fewer than \
                 {BATCHES_MIN} independent sections"
            )
        }
    };
    if until.reached {
        let sure: Vec<String> = until.terms.iter().map(sure).collect();
        let sure = join_list(&sure);
        return format!(
            "the run ended after {after} because its figures were precise enough (95 % confidence): {sure}"
        );
    }
    let unsure: Vec<String> = until.terms.iter().filter(|known| !known.is_enough()).map(unsure).collect();
    let remedy = if is_counted { "send more requests (-n)" } else { "measure longer (-d)" };
    format!("--until was not reached in {elapsed}: {}; {remedy}", unsure.join("; "))
}
