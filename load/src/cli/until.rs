//! Checks `--until` against the other options, and limits runs that never become precise enough.

use std::time::Duration;

use onrush_plan::limits::{UNTIL_CAP, UNTIL_MIN};
use onrush_plan::{Schedule, StopTerm};
use onrush_stats::BATCHES_MIN;
use onrush_text::units::{format_duration_exact, format_thousands};

use super::refusal::PlanRefusal;
use super::typed::Typed;

/// Decides the stop terms, without duplicates. If neither a duration nor a number of requests ends
/// the run, a duration is set.
pub(super) fn decide_stop_terms(
    typed: &mut Typed,
    staged: Option<Duration>,
    schedule: Option<&Schedule>,
) -> Result<Vec<StopTerm>, PlanRefusal> {
    if typed.until.is_empty() || typed.once {
        return Ok(Vec::new());
    }
    if staged.is_some() {
        let line = "--until and --stages: a changing load has no steady figures; leave one of the two out";
        return Err(PlanRefusal::Misused(line.to_owned()));
    }
    if let Some(term) = typed.until.iter().find(|term| term.metric.needs_rate()).filter(|_| schedule.is_none()) {
        let line = format!("--until {}: there is no rate; add -R, for instance -R 1000", term.text);
        return Err(PlanRefusal::Misused(line));
    }
    if let Some(duration) = typed.duration.filter(|duration| *duration < UNTIL_MIN) {
        return Err(PlanRefusal::Misused(format!(
            "--until: {} is too short for 20 batches of a second; write -d {} or longer",
            format_duration_exact(duration),
            format_duration_exact(UNTIL_MIN)
        )));
    }
    if typed.requests.is_none() {
        typed.duration.get_or_insert(UNTIL_CAP);
    }
    check_enough_responses(typed, schedule)?;
    let mut terms: Vec<StopTerm> = Vec::new();
    for term in std::mem::take(&mut typed.until) {
        let is_same = |known: &StopTerm| (known.metric, known.half_width) == (term.metric, term.half_width);
        if !terms.iter().any(is_same) {
            terms.push(term);
        }
    }
    Ok(terms)
}

/// Rejects a term that needs more responses than the run can have.
fn check_enough_responses(typed: &Typed, schedule: Option<&Schedule>) -> Result<(), PlanRefusal> {
    let most = max_possible_responses(typed, schedule);
    for term in &typed.until {
        let needed = BATCHES_MIN as u64 * term.completed_min();
        if needed as f64 > most {
            let remedy = if typed.requests.is_some() { "send more (-n)" } else { "make it longer (-d)" };
            return Err(PlanRefusal::Misused(format!(
                "--until {}: needs at least {} responses, but the run has at most {}; {remedy}, or ask for a lower \
                 percentile",
                term.text,
                format_thousands(needed),
                format_thousands(most as u64)
            )));
        }
    }
    Ok(())
}

/// Maximum number of responses that the run can have; infinite if nothing limits it.
fn max_possible_responses(typed: &Typed, schedule: Option<&Schedule>) -> f64 {
    let asked = typed.requests.map_or(f64::INFINITY, |requests| requests as f64);
    let stage = schedule.and_then(|schedule| schedule.stages.first());
    let due = stage.zip(typed.duration).map(|(stage, length)| stage.to.per_second() * length.as_secs_f64());
    due.unwrap_or(f64::INFINITY).min(asked)
}
