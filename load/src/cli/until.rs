//! Checks `--until` against the other options.

use onrush_plan::limits::{UNTIL_CAP, UNTIL_MIN};
use onrush_plan::{Schedule, StopTerm};
use onrush_stats::BATCHES_MIN;
use onrush_text::units::{format_duration_exact, format_thousands};

use super::draft::PlanDraft;
use super::refusal::PlanRefusal;

impl PlanDraft {
    /// The stop terms, without duplicates; none for a single request.
    pub(super) fn to_stop_terms(&self, schedule: Option<&Schedule>) -> Result<Vec<StopTerm>, PlanRefusal> {
        let typed = &self.load.until;
        if typed.is_empty() || self.is_once() {
            return Ok(Vec::new());
        }
        if let Some(term) = typed.iter().find(|term| term.metric.needs_rate()).filter(|_| schedule.is_none()) {
            let line = format!("--until {}: there is no rate; add -R, for instance -R 1000", term.text);
            return Err(PlanRefusal::Misused(line));
        }
        if let Some(duration) = self.load.duration.filter(|duration| *duration < UNTIL_MIN) {
            return Err(PlanRefusal::Misused(format!(
                "--until: {} is too short for 20 batches of a second; write -d {} or longer",
                format_duration_exact(duration),
                format_duration_exact(UNTIL_MIN)
            )));
        }
        self.check_enough_responses(schedule)?;
        let mut terms: Vec<StopTerm> = Vec::new();
        for term in typed {
            let is_same = |known: &StopTerm| (known.metric, known.half_width) == (term.metric, term.half_width);
            if !terms.iter().any(is_same) {
                terms.push(term.clone());
            }
        }
        Ok(terms)
    }

    /// Rejects a term that needs more responses than the run can have.
    fn check_enough_responses(&self, schedule: Option<&Schedule>) -> Result<(), PlanRefusal> {
        let most = self.max_possible_responses(schedule);
        for term in &self.load.until {
            let needed = BATCHES_MIN as u64 * term.completed_min();
            if needed as f64 > most {
                let remedy = if self.load.requests.is_some() { "send more (-n)" } else { "make it longer (-d)" };
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
    fn max_possible_responses(&self, schedule: Option<&Schedule>) -> f64 {
        let requests = self.load.requests;
        let asked = requests.map_or(f64::INFINITY, |requests| requests as f64);
        let stage = schedule.and_then(|schedule| schedule.stages.first());
        let duration = self.load.duration.or(requests.is_none().then_some(UNTIL_CAP));
        let due = stage.zip(duration).map(|(stage, length)| stage.to.per_second() * length.as_secs_f64());
        due.unwrap_or(f64::INFINITY).min(asked)
    }
}
