//! Turns the options of a search into a [`Search`], and refuses options that cannot be combined with one.

use std::time::Duration;

use onrush_plan::condition::{ComparisonOperator, Term};
use onrush_plan::limits::{CONNECTIONS_MAX, RATE_MAX, THREADS_MAX};
use onrush_plan::machines::OnLoss;
use onrush_plan::metric::Better;
use onrush_plan::search::{Search, SearchVariable};
use onrush_plan::{Condition, OutputKind, Plan};
use onrush_text::units::format_duration_exact;

use onrush_load::cli::SearchDraft;
use onrush_load::cli::draft::PlanDraft;
use onrush_load::cli::flags;
use onrush_load::cli::load::CONNECTIONS;
use onrush_load::cli::refusal::PlanRefusal;

/// The options of a search, checked but not yet joined with a plan.
pub(super) struct Draft {
    objective: Condition,
    over: SearchVariable,
    budget: Duration,
    first: Option<u64>,
}

/// Default time limit of a search, and the shortest limit that is useful.
const BUDGET: Duration = Duration::from_secs(60);
const BUDGET_MIN: Duration = Duration::from_secs(5);

/// Default maximum number of connections for a search over the rate.
const MAX_INFLIGHT: u64 = 1_000;

impl Draft {
    /// Removes the options of a search from the draft of the plan and checks them; `None` if no search was requested.
    /// The options left in the draft describe a run.
    pub fn take_from(plan: &mut PlanDraft) -> Result<Option<Self>, PlanRefusal> {
        let SearchDraft { objective, over } = std::mem::take(&mut plan.search);
        let Some(objective) = objective.filter(|_| !plan.dialect.is_compat()) else { return Ok(None) };
        let over = over.unwrap_or(SearchVariable::Rate);
        refuse_others(plan, over)?;
        if let Some(term) = objective.terms.iter().find(|term| holds_only_above(term)) {
            let line = format!(
                "--find-max {}: this condition holds above a load, not below; reverse it, as in p99<50ms",
                term.text
            );
            return Err(PlanRefusal::Misused(line));
        }
        let is_exact = |term: &&Term| {
            term.metric.is_latency()
                && matches!(term.comparison, ComparisonOperator::Equal | ComparisonOperator::Unequal)
        };
        if let Some(term) = objective.terms.iter().find(is_exact) {
            let line = format!("--find-max {}: no latency has exactly this value; use < instead", term.text);
            return Err(PlanRefusal::Misused(line));
        }
        if let Some(term) = objective.needs_rate().filter(|_| over != SearchVariable::Rate) {
            let line = format!("--find-max {}: this term needs a rate; use --over rate or another term", term.text);
            return Err(PlanRefusal::Misused(line));
        }
        let first = match over {
            SearchVariable::Rate => plan.pace.take_first_rate().map(|rate| rate.per_minute()),
            SearchVariable::Connections => Some(plan.load.connections.unwrap_or(CONNECTIONS)),
            SearchVariable::Threads => Some(plan.load.threads.unwrap_or(1)),
        };
        if over == SearchVariable::Rate && plan.load.connections.is_none() {
            plan.pace.max_inflight.get_or_insert(MAX_INFLIGHT);
        }
        let budget = plan.load.duration.take().unwrap_or(BUDGET);
        if budget < BUDGET_MIN {
            let right = format!("a search takes at least {}; try 60s", format_duration_exact(BUDGET_MIN));
            return Err(flags::named("duration").wrong(format_duration_exact(budget), right));
        }
        Ok(Some(Self { objective, over, budget, first }))
    }

    /// Completes the search with the plan of its runs.
    pub fn with_plan(self, mut plan: Plan) -> Search {
        let Self { objective, over, budget, first } = self;
        plan.phases = false;
        let most = match over {
            SearchVariable::Rate => over.load_from_number(RATE_MAX as f64),
            SearchVariable::Connections => CONNECTIONS_MAX,
            SearchVariable::Threads => THREADS_MAX.min(u64::from(plan.load.connections)),
        };
        Search { plan, objective, over, budget, first, most }
    }
}

/// Refuses options whose values conflict with a search. Options that do so with any value are in the definition of
/// `--find-max`.
fn refuse_others(plan: &PlanDraft, over: SearchVariable) -> Result<(), PlanRefusal> {
    let writes_other = plan.output.outputs.iter().any(|output| output.kind != OutputKind::Json);
    let reasons = [
        (over != SearchVariable::Rate && plan.has("rate"), "-R", "only --over rate has a rate"),
        (writes_other, "-o", "a search writes .json only"),
        (
            plan.machines.on_loss == OnLoss::Continue,
            "--on-loss continue",
            "the runs would not be comparable after the loss of a machine",
        ),
    ];
    let wrong = reasons.into_iter().find(|(is_there, ..)| *is_there);
    wrong.map_or(Ok(()), |(_, option, reason)| Err(PlanRefusal::both("--find-max", option, reason)))
}

/// True if a term holds only above some load, as a latency above a limit does: right for a gate, wrong for a search.
fn holds_only_above(term: &Term) -> bool {
    let is_lower_bound = matches!(term.comparison, ComparisonOperator::More | ComparisonOperator::AtLeast);
    is_lower_bound && term.metric.description().better == Better::Lower
}
