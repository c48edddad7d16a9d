//! Turns the options of a search into a [`Search`], and refuses options that cannot be combined with one.

use std::ffi::OsStr;
use std::time::Duration;

use onrush_load::cli::TypedSearch;
use onrush_load::cli::decide::CONNECTIONS;
use onrush_load::cli::flags::{self, Id};
use onrush_load::cli::refusal::{PlanRefusal, wrong};
use onrush_load::cli::typed::Typed;
use onrush_plan::condition::{ComparisonOperator, Term};
use onrush_plan::limits::{CONNECTIONS_MAX, RATE_MAX, THREADS_MAX};
use onrush_plan::metric::Better;
use onrush_plan::search::{Search, SearchVariable};
use onrush_plan::{Condition, OutputKind, Plan};
use onrush_text::units::format_duration_exact;

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
    /// Removes the options of a search from `typed` and checks them; `None` if no search was requested. The options
    /// left in `typed` describe a run.
    pub fn take_from(typed: &mut Typed) -> Result<Option<Self>, PlanRefusal> {
        let TypedSearch { objective, over } = std::mem::take(&mut typed.search);
        let Some(objective) = objective else {
            let line = "--over: no search was requested; add --find-max, for instance --find-max 'p99<50ms'";
            return if over.is_some() { Err(PlanRefusal::Misused(line.to_owned())) } else { Ok(None) };
        };
        let over = over.unwrap_or(SearchVariable::Rate);
        if typed.dialect.is_compat() {
            let tool = typed.dialect.name();
            return Err(PlanRefusal::Cannot(format!("--find-max: {tool} has no searches; leave it out")));
        }
        refuse_others(typed, over)?;
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
            SearchVariable::Rate => typed.pace.take_first_rate().map(|rate| rate.per_minute()),
            SearchVariable::Connections => Some(typed.connections.unwrap_or(CONNECTIONS)),
            SearchVariable::Threads => Some(typed.threads.unwrap_or(1)),
        };
        if over == SearchVariable::Rate && typed.connections.is_none() {
            typed.pace.max_inflight.get_or_insert(MAX_INFLIGHT);
        }
        let budget = typed.duration.take().unwrap_or(BUDGET);
        if budget < BUDGET_MIN {
            let right = format!("a search takes at least {}; try 60s", format_duration_exact(BUDGET_MIN));
            return Err(wrong(flags::by_id(Id::Duration), OsStr::new(&format_duration_exact(budget)), right));
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

/// Refuses options that conflict with a search.
fn refuse_others(typed: &Typed, over: SearchVariable) -> Result<(), PlanRefusal> {
    let is_other = |kind: OutputKind| kind != OutputKind::Json;
    let (sampling, log) = (typed.sampling.typed_option(), typed.log.typed_option());
    let reasons = [
        (typed.requests.is_some(), "-n", "a search decides how many requests a run has"),
        (typed.once, "--once", "a search sends many requests"),
        (typed.pace.has_stages(), "--stages", "each run of a search has one load"),
        (!typed.until.is_empty(), "--until", "a search decides the length of each run"),
        (!typed.gates.is_empty(), "--fail-if", "add the term to --find-max instead"),
        (over != SearchVariable::Rate && typed.pace.has_rate(), "-R", "only --over rate has a rate"),
        (typed.outputs.iter().any(|output| is_other(output.kind)), "-o", "a search writes .json only"),
        (sampling.is_some(), sampling.unwrap_or_default(), "a search has many runs; sample one at the rate found"),
        (log.is_some(), log.unwrap_or_default(), "a search has many runs; log one at the load found"),
        (typed.samples.is_some(), "--sample-responses", "a search has many runs; sample one at the load found"),
        (
            typed.machines.goes_on(),
            "--on-loss continue",
            "the runs would not be comparable after the loss of a machine",
        ),
    ];
    let line = |option: &str, reason: &str| format!("--find-max and {option}: {reason}; leave one of the two out");
    let wrong = reasons.into_iter().find(|(is_there, ..)| *is_there);
    wrong.map_or(Ok(()), |(_, option, reason)| Err(PlanRefusal::Misused(line(option, reason))))
}

/// True if a term holds only above some load, as a latency above a limit does: right for a gate, wrong for a search.
fn holds_only_above(term: &Term) -> bool {
    let is_lower_bound = matches!(term.comparison, ComparisonOperator::More | ComparisonOperator::AtLeast);
    is_lower_bound && term.metric.description().better == Better::Lower
}
