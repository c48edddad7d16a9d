//! The options of a search for the highest load, as typed.

use onrush_plan::Condition;
use onrush_plan::search::SearchVariable;

use super::condition::Purpose;
use super::flag::{Flag, flag, put};
use super::refusal::PlanRefusal;

/// The reason why experiments refuse a search.
const NO_SEARCHES: &str = "an experiment consists of runs, not of searches";

pub(super) const OPTIONS: &[Flag] = &[
    flag("--find-max COND", |draft, value| {
        let objective = value.condition(Purpose::Objective)?;
        if let Some(earlier) = draft.search.objective.replace(objective) {
            let line = format!("--find-max is given twice; write one list: --find-max '{earlier},…'");
            return Err(PlanRefusal::Misused(line));
        }
        Ok(())
    })
    .common()
    .single_run_only(NO_SEARCHES)
    .native_only("has no searches")
    .excludes(&[
        ("requests", "a search decides how many requests a run has"),
        ("once", "a search sends many requests"),
        ("stages", "each run of a search has one load"),
        ("until", "a search decides the length of each run"),
        ("fail-if", "add the term to --find-max instead"),
        ("sockets", "a search has many runs; sample one at the rate found"),
        ("sockets-output", "a search has many runs; sample one at the rate found"),
        ("request-log", "a search has many runs; log one at the load found"),
        ("log-sample", "a search has many runs; log one at the load found"),
        ("sample-responses", "a search has many runs; sample one at the load found"),
    ])
    .help(
        "find the highest rate at which COND holds, such as\n\
         'p99<50ms'; -d is the time for the whole search\n\
         (60s), -R the first rate to try",
    )
    .reference(
        "[Finds](capacity.md) the highest rate at which a [condition](conditions.md) holds. `-d` limits the whole \
         search: 60 s by default, at least 5 s. `-R` is the first rate. Not with `-n`, `--once`, `--stages`, \
         `--until`, `--fail-if` and `--compat`; `-o` writes `.json` only.",
        "onrush --find-max 'p90<200ms,errors<0.1%' -o search.json 'http://127.0.0.1:8080/capacity?rps=500'",
    ),
    flag("--over WHAT", |draft, value| {
        let all = [SearchVariable::Rate, SearchVariable::Connections, SearchVariable::Threads];
        put(&mut draft.search.over, value.choice(&all))
    })
    .one_of(&["rate", "connections", "threads"])
    .single_run_only(NO_SEARCHES)
    .needs(&[(
        |draft| draft.has("find-max"),
        "no search was requested; add --find-max, for instance --find-max 'p99<50ms'",
    )])
    .help("what --find-max varies: rate, connections or threads\n(rate)")
    .reference(
        "`--find-max` varies the `rate`, or in a closed loop the `connections` (from `-c`) or `threads` (from \
         `-t`).",
        "onrush --find-max 'p50<50ms' --over connections http://127.0.0.1:8080/delay/20",
    ),
];

/// The options of a search, as typed.
#[derive(Debug, Default)]
pub struct SearchDraft {
    /// The condition of `--find-max`; `None` if no search is requested.
    pub objective: Option<Condition>,
    /// The quantity to vary (`--over`); `None` for the default.
    pub over: Option<SearchVariable>,
}
