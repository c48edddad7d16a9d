//! Output lines of a search: one for each run, and the result.

use onrush_load::record::NO_RESPONSE;
use onrush_load::record::gate::Judged;
use onrush_plan::Condition;
use onrush_plan::search::{Search, SearchVariable};
use onrush_text::units;

use super::fit::CONFIDENCE;
use super::found::{failed_confirmation, is_confident};
use super::{
    ClientLimit, ClosedLoop, LoadFailure, Point, ResultKind, SearchEnd, SearchResult, runs_before_first_success,
};

/// Line printed before the first run.
pub fn opening_line(search: &Search) -> String {
    let Search { objective, over, budget, .. } = search;
    format!(
        "searching for the highest {} at which {objective} holds, for up to {}",
        variable_noun(*over),
        units::format_duration_exact(*budget)
    )
}

/// Line about the closed loop from which the first rate is derived.
pub fn closed_loop_line(connections: u32, per_s: f64) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("a closed loop on {connections} connection{plural} reached {per_s:.1}/s")
}

/// Message for a first request without a response.
pub fn silent_target_message(over: SearchVariable) -> String {
    let first_rate = if over == SearchVariable::Rate {
        ", or, if it is just slow, give the rate at which the search starts (-R)"
    } else {
        ""
    };
    format!("no response to the first request; check the target with onrush --once{first_rate}")
}

/// Message for a signal before the first result.
pub fn interruption_message(search: &Search) -> String {
    let budget = units::format_duration_exact(search.budget);
    format!(
        "interrupted before the first run of the search was complete, so there is no result; allow up to {budget}, or \
         set another limit with -d"
    )
}

/// Note printed once, before the first run whose rate exceeds 10,000/s.
pub const GATHERED: &str = "note: above 10,000/s sends are batched every 200us, which adds up to 200us of latency";

/// Column headings above the lines of [`run_line`].
pub fn column_headings(search: &Search) -> String {
    format!("{:>12}  {:<7}  reached, measured", search.over.name(), "result")
}

/// The line of the table for one run.
pub fn run_line(search: &Search, point: &Point) -> String {
    let load = format_load(search.over, point.load);
    let was = |term: &Judged| format!("{}: {}", term.term, term.figure());
    let terms: Vec<String> = point.terms.iter().map(was).collect();
    let holds = match point.fault {
        None => "holds",
        Some(LoadFailure::Limited(_)) => "void",
        Some(_) => "fails",
    };
    let why = failure_reason(point).map(|why| format!("but {why}"));
    // Without a response, a percentile is only the time that passed without one.
    let measured = match point.fault {
        Some(LoadFailure::NoResponse) => NO_RESPONSE.to_owned(),
        _ => terms.into_iter().chain(why).collect::<Vec<_>>().join(", "),
    };
    let length = units::format_duration_spaced(point.length);
    let stopped = format!("stopped after {length}: already too many slow requests");
    let kind = match (point.confirms, point.is_early) {
        (true, true) => format!(" (confirmation, {stopped})"),
        (true, false) => format!(" (confirmation, {length})"),
        (false, true) => format!(", {stopped}"),
        (false, false) => String::new(),
    };
    let is_late = point.per_s == 0.0 && point.completed > 0;
    let late = if is_late { " (all responses arrived after the time was up)" } else { "" };
    format!("{load:>12}  {holds:<7}  {:.1}/s{late}, {measured}{kind}", point.per_s)
}

/// Why a load does not hold, if the terms of the objective do not show it.
fn failure_reason(point: &Point) -> Option<String> {
    Some(match point.fault? {
        LoadFailure::Objective => return None,
        LoadFailure::Limited(ClientLimit::Stalled) => {
            format!("onrush was stalled for {}", units::format_us(point.stalled.as_secs_f64() * 1e6))
        }
        LoadFailure::Limited(limit) => limit.clause(),
        LoadFailure::NoResponse => format!("there was {NO_RESPONSE}"),
        LoadFailure::Unreached => "the load was not reached".to_owned(),
        LoadFailure::Rising => {
            let slope = units::format_us(point.slope_ns_per_s.unwrap_or_default() / 1e3);
            format!("the mean latency rose by {slope} each second")
        }
    })
}

/// The failure of a run, in parentheses; empty if unknown.
fn failure_in_parentheses(point: &Point) -> String {
    let terms = point.terms.iter().filter(|term| !term.holds);
    let broken: Vec<String> =
        terms.filter_map(|term| term.was.as_ref().map(|was| format!("{}: {was}", term.term))).collect();
    let why = failure_reason(point).or((!broken.is_empty()).then(|| broken.join(", ")));
    why.map_or_else(String::new, |why| format!(" ({why})"))
}

/// Message for a search that cannot start because it has too little time for the responses needed, or for the requested
/// warm-up.
pub fn too_short_search_message(search: &Search, needed: f64, per_s: f64) -> String {
    let Search { objective, budget, plan, .. } = search;
    let budget_s = budget.as_secs_f64();
    if needed / per_s <= budget_s {
        let [warm_up, budget] = [plan.warmup, *budget].map(units::format_duration_exact);
        return format!(
            "--find-max {objective}: runs with a warm-up of {warm_up} do not fit into a search of {budget}; shorten --warmup, \
             or raise the limit with -d"
        );
    }
    format!(
        "--find-max {objective}: judging this condition takes {} responses ({:.0}s at {per_s:.1}/s), but the search is \
         limited to {}; raise the limit with -d, or ask for a lower percentile",
        units::format_thousands(needed as u64),
        needed / per_s,
        units::format_duration_exact(*budget)
    )
}

/// The result as a line for standard output.
pub fn result_line(search: &Search, points: &[Point], found: &SearchResult) -> String {
    let Search { objective, over, .. } = search;
    let (noun, ended) = (variable_noun(*over), found.ended);
    let show = |number: u64| format_load(*over, number);
    let last = points.last().map_or_else(|| "first".to_owned(), |point| show(point.load));
    let spoilt = match ended {
        SearchEnd::Died if points.iter().any(|point| point.completed > 0) => {
            Some(format!("the target stopped responding at {}", show(load_of_silence(points))))
        }
        SearchEnd::Died => Some(format!("the target did not respond at {last}")),
        SearchEnd::Limited(limit) => Some(format!("at {last}, {}", limit.clause())),
        SearchEnd::Done
        | SearchEnd::Time
        | SearchEnd::Unconfirmed
        | SearchEnd::Signal
        | SearchEnd::Lost
        | SearchEnd::Hopeless(_) => None,
    };
    let early = match ended {
        SearchEnd::Time | SearchEnd::Unconfirmed => "; give the search more time (-d)",
        SearchEnd::Signal => "; the search was interrupted",
        SearchEnd::Lost => "; the search ended early, because a machine was lost",
        SearchEnd::Done | SearchEnd::Died | SearchEnd::Hopeless(_) | SearchEnd::Limited(_) => "",
    };
    let highest = format!("Highest {noun} with {objective}");
    let beyond = || {
        found
            .beyond
            .map_or_else(String::new, |point| format!("; {} failed{}", show(point.load), failure_in_parentheses(point)))
    };
    let within = || {
        found
            .interval
            .filter(|_| spoilt.is_none())
            .map(|ends| interval_text(*over, ends, is_confident(search, points, ended)))
    };
    match (found.kind, spoilt.as_deref()) {
        (ResultKind::Highest(load), _) => {
            let sure = within().map_or_else(String::new, |sure| format!(" ({sure})"));
            let early = if matches!(ended, SearchEnd::Signal | SearchEnd::Lost) { early } else { "" };
            format!("Highest confirmed {noun} with {objective}: {}{sure}{}{early}", show(load), beyond())
        }
        (ResultKind::AtLeast(load), Some(spoilt)) => format!("{highest}: unknown, at least {}: {spoilt}", show(load)),
        (_, Some(spoilt)) => format!("{highest}: unknown: {spoilt}"),
        (ResultKind::AtLeast(load), None) => {
            let why = match failed_confirmation(points) {
                Some(point) => failed_confirmation_text(*over, point),
                None => "there was no time for the confirming run".to_owned(),
            };
            let sure = within().map_or_else(String::new, |sure| format!("; {sure}"));
            format!("{highest}: not confirmed: {} held, but {why}{sure}{early}", show(load))
        }
        (ResultKind::All(load), None) => format!("{objective} held at every {noun} tried, up to {}{early}", show(load)),
        (ResultKind::Never(alone), _) => format!(
            "{objective} cannot hold at any {noun}: even when sent one at a time, every request took at least {} ({} measured over {:.0} s)",
            units::format_us(alone.least_ns as f64 / 1e3),
            units::format_count(alone.responses, "request"),
            alone.covered_time().as_secs_f64()
        ),
        (ResultKind::Unknown, None) => format!("{highest}: unknown: no run was conclusive{early}"),
        (ResultKind::None(load), None) => {
            let lower = if ended == SearchEnd::Time {
                format!(", or start lower ({})", first_load_option(*over))
            } else {
                String::new()
            };
            let runs = points.iter().filter(|point| point.load == load && point.is_clean()).count();
            let once = if runs == 1 { " (tried once)" } else { "" };
            format!("{objective} held at no {noun} tried, down to {}{once}{early}{lower}", show(load))
        }
    }
}

/// Result of the last run that was to confirm a load.
fn failed_confirmation_text(over: SearchVariable, point: &Point) -> String {
    let (load, length, wrong) =
        (format_load(over, point.load), units::format_duration_spaced(point.length), failure_in_parentheses(point));
    if point.is_early {
        format!("the long run to confirm {load} was stopped after {length}: it could no longer pass{wrong}")
    } else {
        format!("the run of {length} that was to confirm {load} failed{wrong}")
    }
}

/// The load at which the target fell silent: that of the first in the last series of silent runs, the later of which
/// retry the highest load that held.
fn load_of_silence(points: &[Point]) -> u64 {
    let silent = points.iter().rev().take_while(|point| point.fault == Some(LoadFailure::NoResponse));
    silent.last().or(points.last()).map_or(0, |point| point.load)
}

/// The interval of the limit. `is_confident`: the search was long enough for stating a confidence.
fn interval_text(over: SearchVariable, (low, high): (f64, f64), is_confident: bool) -> String {
    let plain = |load: f64| {
        let number = load * over.load_for_users(1);
        if over == SearchVariable::Rate { format!("{number:.1}") } else { format!("{number:.0}") }
    };
    let (low, high) = (plain(low), plain(high));
    if is_confident {
        format!("the estimated limit is between {low} and {high}, with {:.0} % confidence", CONFIDENCE * 100.0)
    } else {
        format!("the estimated limit is roughly between {low} and {high}")
    }
}

/// Note on runs that contradict the result, or one another; `None` if there are none.
pub fn contradiction_note(search: &Search, points: &[Point], found: &SearchResult) -> Option<String> {
    let against = &found.contradicting;
    if against.is_empty() {
        return doubt_note(&search.objective, found);
    }
    let shown = against.iter().take(SHOWN_MAX).map(|point| {
        let load = match search.over {
            SearchVariable::Rate => format_load(search.over, point.load),
            SearchVariable::Connections => units::format_count(point.load, "connection"),
            SearchVariable::Threads => units::format_count(point.load, "thread"),
        };
        let ended = if point.holds() { "held" } else { "failed" };
        format!("the run at {load} {ended}")
    });
    let more = (against.len() > SHOWN_MAX).then(|| "…".to_owned());
    let runs: Vec<String> = shown.chain(more).collect();
    let first = runs_before_first_success(points);
    let number = against.iter().filter(|point| first.iter().any(|early| std::ptr::eq(early, **point))).count();
    let gone = absence_signs(found);
    let advice = match gone.is_empty() {
        true => "repeat the search with the machines of onrush and the target otherwise idle",
        false => "find out why, and repeat the search",
    };
    let observed: Vec<String> = gone.into_iter().chain(found.starved.wait_clauses()).collect();
    let these = if against.len() == 1 { "this run" } else { "these runs" };
    let why = match () {
        () if !observed.is_empty() => format!("in {these}, {}; {advice}", units::join_list(&observed)),
        () if number == against.len() => {
            "the target was slower at first; add --warmup, or search for longer (-d)".to_owned()
        }
        () if number > 0 => {
            format!("the target was slower at first, and no cause of the later differences was observed; {advice}")
        }
        () => format!("the target or this machine was slower in some runs, and no cause was observed; {advice}"),
    };
    Some(format!(
        "{} of {} runs {} the others ({}): {why}",
        against.len(),
        points.len(),
        if against.len() == 1 { "contradicts" } else { "contradict" },
        runs.join(", ")
    ))
}

/// Signs in the contradicting runs that the target was unreachable for a time.
fn absence_signs(found: &SearchResult) -> Vec<String> {
    let silent = (!found.silent.is_zero())
        .then(|| format!("the target did not respond for {}", units::format_us(found.silent.as_secs_f64() * 1e6)));
    let unconnected = (found.unconnected > 0)
        .then(|| format!("{} to connect failed", units::format_count(found.unconnected, "attempt")));
    silent.into_iter().chain(unconnected).collect()
}

/// Note on evidence that some load holds, although none was found.
fn doubt_note(objective: &Condition, found: &SearchResult) -> Option<String> {
    let look = found.look.map(|ClosedLoop { connections, per_s, .. }| {
        format!(
            "{objective} held at {per_s:.1}/s in the closed loop on {}",
            units::format_count(connections.into(), "connection")
        )
    });
    let starved = found.starved.wait_clauses();
    let starved = (!starved.is_empty() && matches!(found.kind, ResultKind::None(_)))
        .then(|| format!("in the runs that failed, {}", units::join_list(&starved)));
    let doubts: Vec<String> = look.into_iter().chain(starved).collect();
    (!doubts.is_empty()).then(|| {
        format!(
            "the target may sustain more than this search has shown: {}; repeat the search with the machines of onrush \
             and the target otherwise idle",
            doubts.join(", and ")
        )
    })
}

/// Number of contradicting runs that a note names.
const SHOWN_MAX: usize = 3;

/// A load with its unit, as printed: a rate per second, or a number of connections or threads.
pub fn format_load(over: SearchVariable, load: u64) -> String {
    match over {
        SearchVariable::Rate => format!("{:.1}/s", over.load_for_users(load)),
        SearchVariable::Connections | SearchVariable::Threads => load.to_string(),
    }
}

/// The option that sets the first load.
fn first_load_option(over: SearchVariable) -> &'static str {
    match over {
        SearchVariable::Rate => "-R",
        SearchVariable::Connections => "-c",
        SearchVariable::Threads => "-t",
    }
}

/// The varied quantity, for the middle of a sentence.
fn variable_noun(over: SearchVariable) -> &'static str {
    match over {
        SearchVariable::Rate => "rate",
        SearchVariable::Connections => "number of connections",
        SearchVariable::Threads => "number of threads",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::search::Starvation;
    use crate::search::simulation::{points, search};
    use onrush_plan::LimitedBy;

    fn line(search: &Search, points: &[Point], ended: SearchEnd) -> String {
        result_line(search, points, &SearchResult::new(search.over, points, None, ended))
    }

    /// Runs at these rates. The last was to confirm its load.
    fn per_s(runs: &[(u64, bool)], confirms: bool) -> Vec<Point> {
        let mut points = points(&runs.iter().map(|(load, holds)| (load * 60, *holds)).collect::<Vec<_>>());
        if let Some(last) = points.last_mut() {
            last.confirms = confirms;
        }
        points
    }

    #[test]
    fn results_are_one_line() {
        let rate = search(SearchVariable::Rate);
        let narrow = [(3_010, false), (3_010, false), (2_890, true), (2_920, true), (2_950, true)];
        let (none, once) = ([(10, false), (10, false)], [(20, false), (10, false)]);
        let all = [(10, true), (20, true)];
        let failed = [(2_890, true), (3_010, false), (2_950, false)];
        let limited = || SearchEnd::Limited(ClientLimit::Verdict(LimitedBy::Connections));
        for (runs, confirms, ended, expected) in [
            (
                &narrow[..],
                true,
                SearchEnd::Done,
                "Highest confirmed rate with p99<50ms: 2950.0/s (the estimated limit is between 2756.8 and 3261.3, with \
                 95 % confidence); 3010.0/s failed",
            ),
            (
                &narrow,
                true,
                SearchEnd::Signal,
                "Highest confirmed rate with p99<50ms: 2950.0/s (the estimated limit is roughly between 2756.8 and \
                 3261.3); 3010.0/s failed; the search was interrupted",
            ),
            (
                &narrow,
                false,
                SearchEnd::Time,
                "Highest rate with p99<50ms: not confirmed: 2950.0/s held, but there was no time for the confirming run; \
                 the estimated limit is between 2756.8 and 3261.3, with 95 % confidence; give the search more time \
                 (-d)",
            ),
            (
                &failed,
                true,
                SearchEnd::Unconfirmed,
                "Highest rate with p99<50ms: not confirmed: 2890.0/s held, but the run of 2 s that was to confirm 2950.0/s \
                 failed; the estimated limit is between 2629.8 and 3244.1, with 95 % confidence; give the search more \
                 time (-d)",
            ),
            (&none, false, SearchEnd::Done, "p99<50ms held at no rate tried, down to 10.0/s"),
            (
                &once,
                false,
                SearchEnd::Time,
                "p99<50ms held at no rate tried, down to 10.0/s (tried once); give the search more time (-d), or start \
                 lower (-R)",
            ),
            (
                &[],
                false,
                SearchEnd::Time,
                "Highest rate with p99<50ms: unknown: no run was conclusive; give the search more time (-d)",
            ),
            (&all, false, SearchEnd::Done, "p99<50ms held at every rate tried, up to 20.0/s"),
            (
                &narrow,
                false,
                limited(),
                "Highest rate with p99<50ms: unknown, at least 2950.0/s: at 2950.0/s, the number of requests in flight was the \
                 limit",
            ),
        ] {
            assert_eq!(line(&rate, &per_s(runs, confirms), ended), expected);
        }
        let short = Search { budget: Duration::from_secs(59), ..rate };
        assert_eq!(
            line(&short, &per_s(&narrow, true), SearchEnd::Done),
            "Highest confirmed rate with p99<50ms: 2950.0/s (the estimated limit is roughly between 2756.8 and 3261.3); \
             3010.0/s failed"
        );
    }

    #[test]
    fn silent_targets_and_counts_have_own_results() {
        let rate = search(SearchVariable::Rate);
        let fault = Some(LoadFailure::NoResponse);
        let silent: Vec<Point> =
            points(&[(600, false)]).into_iter().map(|point| Point { completed: 0, fault, ..point }).collect();
        assert_eq!(
            line(&rate, &silent, SearchEnd::Died),
            "Highest rate with p99<50ms: unknown: the target did not respond at 10.0/s"
        );
        // The last good rate failed as well.
        let mut died = per_s(&[(10, true), (20, false), (10, false)], false);
        died[1..].iter_mut().for_each(|point| point.fault = fault);
        assert_eq!(
            line(&rate, &died, SearchEnd::Died),
            "Highest rate with p99<50ms: unknown, at least 10.0/s: the target stopped responding at 20.0/s"
        );
        let (connections, threads) = (search(SearchVariable::Connections), search(SearchVariable::Threads));
        let mut runs = points(&[(65, false), (65, false), (64, true)]);
        runs[2].confirms = true;
        let exact = "Highest confirmed number of connections with p99<50ms: 64; 65 failed";
        assert_eq!(line(&connections, &runs, SearchEnd::Done), exact);
        runs[2].confirms = false;
        assert_eq!(
            line(&threads, &runs[2..], SearchEnd::Done),
            "p99<50ms held at every number of threads tried, up to 64"
        );
    }

    #[test]
    fn run_failures_are_in_parentheses() {
        let mut point = points(&[(65, false)]).remove(0);
        let judged = |term: &str, was: Option<&str>, holds| Judged {
            term: term.to_owned(),
            was: was.map(str::to_owned),
            holds,
            undecided: false,
        };
        assert_eq!(failure_in_parentheses(&point), "", "nothing more is known");
        point.terms = vec![judged("p99<50ms", Some("58.11ms"), false), judged("errors=0", Some("0"), true)];
        assert_eq!(failure_in_parentheses(&point), " (p99<50ms: 58.11ms)");
        point.terms = vec![judged("p99<50ms", None, false)];
        point.fault = Some(LoadFailure::NoResponse);
        assert_eq!(failure_in_parentheses(&point), " (there was no response)");
        (point.fault, point.slope_ns_per_s) = (Some(LoadFailure::Rising), Some(9.3e6));
        assert_eq!(failure_in_parentheses(&point), " (the mean latency rose by 9.30ms each second)");
    }

    #[test]
    fn contradictory_runs_are_named_with_their_cause() {
        let search = search(SearchVariable::Connections);
        let note = |points: &[Point]| {
            contradiction_note(&search, points, &SearchResult::new(search.over, points, None, SearchEnd::Done))
        };
        let agree = [(90, true), (95, true), (100, true), (100, true), (103, false), (103, false), (105, false)];
        assert_eq!(note(&points(&agree)), None);
        let disturbed = [&agree[..], &[(50, false)]].concat();
        assert_eq!(
            note(&points(&disturbed)).unwrap(),
            "1 of 8 runs contradicts the others (the run at 50 connections failed): the target or this machine was \
             slower in some runs, and no cause was observed; repeat the search with the machines of onrush and the \
             target otherwise idle"
        );
        let mut starved = points(&disturbed);
        starved[7].starved = Starvation { generator: 0.004, target: 0.31, stolen: 0.02 };
        assert_eq!(
            note(&starved).unwrap(),
            "1 of 8 runs contradicts the others (the run at 50 connections failed): in this run, the target waited for \
             a processor 31 % of the time and the hypervisor gave 2 % of the processor time to others; repeat the \
             search with the machines of onrush and the target otherwise idle"
        );
        let cold = [&[(50, false)][..], &agree].concat();
        let mut dead = points(&cold);
        (dead[0].silent, dead[0].unconnected) = (Duration::from_millis(489), 3);
        assert_eq!(
            note(&dead).unwrap(),
            "1 of 8 runs contradicts the others (the run at 50 connections failed): in this run, the target did not respond \
             for 489.00ms and 3 attempts to connect failed; find out why, and repeat the search"
        );
        assert_eq!(
            note(&points(&cold)).unwrap(),
            "1 of 8 runs contradicts the others (the run at 50 connections failed): the target was slower at first; add \
             --warmup, or search for longer (-d)"
        );
        // A failure beyond the limit contradicts nothing.
        let between = points(&[&[(120, false), (50, false)][..], &agree].concat());
        assert!(note(&between).unwrap().contains(
            "runs contradicts the others (the run at 50 connections failed): the target was slower at first;"
        ));
        let later = points(&[&cold[..], &[(50, false)]].concat());
        assert_eq!(
            note(&later).unwrap(),
            "2 of 9 runs contradict the others (the run at 50 connections failed, the run at 50 connections failed): \
             the target was slower at first, and no cause of the later differences was observed; repeat the search \
             with the machines of onrush and the target otherwise idle"
        );
    }

    /// Runs that do not count because the target was cold contradict the others like any run.
    #[test]
    fn a_third_of_contradictions_leaves_no_result() {
        let agree = [(90, true), (95, true), (100, true), (100, true), (103, false), (103, false), (105, false)];
        for (cold, expected) in [(1, false), (3, false), (4, true), (5, true)] {
            let mut runs = points(&[&vec![(50, false); cold][..], &agree].concat());
            runs.iter_mut().take(cold).for_each(|point| point.set_client_limit(Some(ClientLimit::Cold)));
            runs[cold + 3].confirms = true;
            let found = SearchResult::new(SearchVariable::Rate, &runs, None, SearchEnd::Time);
            assert_eq!((found.contradicting.len(), found.is_contradicted(&runs)), (cold, expected));
            assert_eq!(found.is_inconclusive(&runs), expected);
        }
    }

    #[test]
    fn never_holding_is_doubted_after_starvation() {
        let look = |per_s, holds| Some(ClosedLoop { connections: 10, per_s, holds });
        let mut runs = per_s(&[(480, false), (480, false)], false);
        let of = |runs: &[Point], look| {
            let found = SearchResult::new(SearchVariable::Rate, runs, look, SearchEnd::Time);
            (found.is_inconclusive(runs), contradiction_note(&search(SearchVariable::Rate), runs, &found))
        };
        assert_eq!(of(&runs, None), (false, None));
        assert_eq!(of(&runs, look(980.0, false)), (false, None));
        assert_eq!(of(&runs, look(470.0, true)), (false, None), "a lower rate says nothing");
        runs[1].starved.generator = 0.2;
        let (is_inconclusive, note) = of(&runs, look(980.0, true));
        assert!(is_inconclusive);
        let mut broken = runs.clone();
        broken.iter_mut().for_each(|point| point.is_broken_by_errors = true);
        assert_eq!(of(&broken, look(980.0, false)), (false, None), "processor time is no cure for errors");
        assert_eq!(
            note.unwrap(),
            "the target may sustain more than this search has shown: p99<50ms held at 980.0/s in the closed loop on 10 \
             connections, and in the runs that failed, onrush waited for a processor 20 % of the time; repeat the \
             search with the machines of onrush and the target otherwise idle"
        );
    }

    #[test]
    fn never_holding_takes_two_undoubted_runs() {
        let look = Some(ClosedLoop { connections: 10, per_s: 980.0, holds: true });
        let (once, twice) = (per_s(&[(480, false)], false), per_s(&[(480, false), (480, false)], false));
        for (runs, look, ended, expected) in [
            (&once, None, SearchEnd::Signal, (false, false)),
            (&once, None, SearchEnd::Time, (false, true)),
            (&once, look, SearchEnd::Signal, (false, true)),
            (&twice, None, SearchEnd::Signal, (true, false)),
            (&twice, None, SearchEnd::Time, (true, false)),
            (&twice, look, SearchEnd::Signal, (false, true)),
            (&twice, look, SearchEnd::Time, (false, true)),
            (&twice, None, SearchEnd::Limited(ClientLimit::Stalled), (false, true)),
        ] {
            let found = SearchResult::new(SearchVariable::Rate, runs, look, ended);
            assert_eq!((found.is_none(runs), found.is_inconclusive(runs)), expected, "{look:?} {ended:?}");
        }
    }

    #[test]
    fn run_lines_give_the_reason_of_failure() {
        let judged = |was: Option<&str>| Judged {
            term: "p99<50ms".to_owned(),
            was: was.map(str::to_owned),
            holds: false,
            undecided: false,
        };
        let point = Point { per_s: 493.21, slope_ns_per_s: Some(1.5e6), ..points(&[(30_000, true)]).remove(0) };
        assert_eq!(column_headings(&search(SearchVariable::Rate)), "        rate  result   reached, measured");
        for (fault, was, line) in [
            (None, Some("1.21ms"), "     500.0/s  holds    493.2/s, p99<50ms: 1.21ms"),
            (Some(LoadFailure::Objective), Some("60.00ms"), "     500.0/s  fails    493.2/s, p99<50ms: 60.00ms"),
            (
                Some(LoadFailure::Unreached),
                Some("1.21ms"),
                "     500.0/s  fails    493.2/s, p99<50ms: 1.21ms, but the load was not reached",
            ),
            (
                Some(LoadFailure::Limited(ClientLimit::Verdict(LimitedBy::Ports))),
                Some("9.00ms"),
                "     500.0/s  void     493.2/s, p99<50ms: 9.00ms, but onrush ran out of local ports",
            ),
            (
                Some(LoadFailure::Rising),
                Some("9.00ms"),
                "     500.0/s  fails    493.2/s, p99<50ms: 9.00ms, but the mean latency rose by 1.50ms each second",
            ),
            (Some(LoadFailure::NoResponse), None, "     500.0/s  fails    493.2/s, no response"),
        ] {
            let point = Point { fault, terms: vec![judged(was)], ..point.clone() };
            assert_eq!(run_line(&search(SearchVariable::Rate), &point), line);
        }
        let early = Point {
            is_early: true,
            fault: Some(LoadFailure::Objective),
            terms: vec![judged(Some("60.00ms"))],
            ..point
        };
        assert_eq!(
            run_line(&search(SearchVariable::Rate), &early),
            "     500.0/s  fails    493.2/s, p99<50ms: 60.00ms, stopped after 2 s: already too many slow requests"
        );
        assert_eq!(
            run_line(&search(SearchVariable::Rate), &Point { confirms: true, ..early.clone() }),
            "     500.0/s  fails    493.2/s, p99<50ms: 60.00ms (confirmation, stopped after 2 s: already too many slow \
             requests)"
        );
        let late = Point { per_s: 0.0, is_early: false, ..early.clone() };
        assert_eq!(
            run_line(&search(SearchVariable::Rate), &late),
            "     500.0/s  fails    0.0/s (all responses arrived after the time was up), p99<50ms: 60.00ms"
        );
        assert_eq!(
            failed_confirmation_text(SearchVariable::Rate, &early),
            "the long run to confirm 500.0/s was stopped after 2 s: it could no longer pass (p99<50ms: \
             60.00ms)"
        );
    }
}
