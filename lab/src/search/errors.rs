//! Failed requests and error statuses that rule out an objective at any load.

use onrush_load::run::Outcome;
use onrush_plan::condition::Threshold;
use onrush_plan::{Condition, Metric};

use super::excess::percentile_limit;

/// True if errors alone break an objective, however fast the responses are. Either a percentile allows fewer slow
/// requests than failed, or the error limit is exceeded.
pub fn errors_break_objective(objective: &Condition, outcome: &Outcome) -> bool {
    let counters = &outcome.totals.counters;
    let all = (counters.completed + counters.failed).max(1) as f64;
    let (failed, errors) = (counters.failed as f64 / all, (counters.failed + counters.unsuccessful) as f64 / all);
    objective.terms.iter().any(|term| match (term.metric, term.value) {
        (Metric::Errors, Threshold::Share(value) | Threshold::Number(value)) => !term.comparison.holds(errors, value),
        _ => percentile_limit(term).is_some_and(|(_, allowed, _)| failed > allowed),
    })
}

#[cfg(test)]
mod tests {
    use onrush_load::fixtures;
    use onrush_plan::condition::{ComparisonOperator, Term};
    use onrush_plan::search::SearchVariable;

    use super::*;
    use crate::search::simulation::search;

    #[test]
    fn statuses_break_only_error_objectives() {
        // p99<50ms, and errors<3%.
        let p99 = search(SearchVariable::Rate).objective.terms.remove(0);
        let (metric, value) = (Metric::Errors, Threshold::Share(0.03));
        let errors =
            Term { text: "errors<3%".to_owned(), metric, name: None, comparison: ComparisonOperator::Less, value };
        for (term, failed, unsuccessful, expected) in [
            (&p99, 10, 0, false),
            (&p99, 20, 0, true),
            (&p99, 0, 980, false),
            (&errors, 20, 0, false),
            (&errors, 30, 0, true),
            (&errors, 20, 10, true),
            (&errors, 0, 1_000, true),
        ] {
            let mut outcome = fixtures::flawless(1_000 - failed, 1);
            (outcome.totals.counters.failed, outcome.totals.counters.unsuccessful) = (failed, unsuccessful);
            let objective = Condition { terms: vec![term.clone()] };
            assert_eq!(errors_break_objective(&objective, &outcome), expected, "{objective} {failed} {unsuccessful}");
        }
    }
}
