//! `--until`: what it goes with, and how long a run lasts whose figures are never known that well.

use std::time::Duration;

use super::refusal::Refusal;
use super::typed::Typed;
use crate::plan::limits::{UNTIL_CAP, UNTIL_MIN};
use crate::plan::{Schedule, StopTerm};
use crate::report::units::exact;

/// The stop terms, each once, which give the run a duration if nothing else ends it.
pub(super) fn decide(
    typed: &mut Typed,
    staged: Option<Duration>,
    schedule: Option<&Schedule>,
) -> Result<Vec<StopTerm>, Refusal> {
    if typed.until.is_empty() || typed.once {
        return Ok(Vec::new());
    }
    if staged.is_some() {
        let line = "--until and --stages: figures of a load that changes are never known; leave one of the two out";
        return Err(Refusal::Misused(line.to_owned()));
    }
    if let Some(term) = typed.until.iter().find(|term| term.metric.needs_rate()).filter(|_| schedule.is_none()) {
        let line = format!("--until {}: there is no rate; add -R, for instance -R 1000", term.text);
        return Err(Refusal::Misused(line));
    }
    if let Some(duration) = typed.duration.filter(|duration| *duration < UNTIL_MIN) {
        let (duration, least) = (exact(duration), exact(UNTIL_MIN));
        let line = format!("--until: {duration} have no 20 batches of a second; write -d {least} or longer");
        return Err(Refusal::Misused(line));
    }
    if typed.requests.is_none() {
        typed.duration.get_or_insert(UNTIL_CAP);
    }
    let mut terms: Vec<StopTerm> = Vec::new();
    for term in std::mem::take(&mut typed.until) {
        let is_same = |known: &StopTerm| (known.metric, known.half_width) == (term.metric, term.half_width);
        if !terms.iter().any(is_same) {
            terms.push(term);
        }
    }
    Ok(terms)
}
