//! The lines of a search: one for each run, and the result.

use std::time::Duration;

use super::{AGAINST_MAX, Bracket, Ended, Fault, Limit, Point, contradicting, doubted, interval};

use crate::plan::search::{Over, Search};
use crate::report::result::NO_RESPONSE;
use crate::report::{Judged, units};

/// The line before the first run.
pub fn opening(search: &Search) -> String {
    let Search { objective, over, budget, .. } = search;
    format!("searching for the highest {} at which {objective} holds, for up to {}", noun(*over), units::exact(*budget))
}

/// The line about the closed loop that the first rate comes from.
pub fn first(connections: u32, per_s: f64) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("a closed loop on {connections} connection{plural} reached {per_s:.1}/s")
}

/// The line if that closed loop had no response.
pub fn silent(over: Over) -> String {
    let first_rate = if over == Over::Rate { ", or set the first rate with -R" } else { "" };
    format!("the target did not respond within the first second; check it with onrush --once{first_rate}")
}

/// The note on high rates.
pub const GATHERED: &str = "note: above 10,000/s sends are batched every 200us, which adds up to 200us of latency";

/// The headings of the columns of [`run`].
pub fn headings(search: &Search) -> String {
    format!("{:>12}  {:<7}  reached, measured", search.over.name(), "result")
}

/// The line of a run.
pub fn run(search: &Search, point: &Point) -> String {
    let load = load(search.over, point.load);
    let was = |term: &Judged| format!("{}: {}", term.term, term.was.as_deref().unwrap_or("unknown"));
    let terms: Vec<String> = point.terms.iter().map(was).collect();
    let holds = match point.fault {
        None => "holds",
        Some(Fault::Limited(_)) => "limited",
        Some(_) => "fails",
    };
    let why = why(point).map_or_else(String::new, |why| format!(", but {why}"));
    format!("{load:>12}  {holds:<7}  {:.1}/s, {}{why}", point.per_s, terms.join(", "))
}

/// Why a load does not hold, if the terms of the objective do not show it.
fn why(point: &Point) -> Option<String> {
    Some(match point.fault? {
        Fault::Objective => return None,
        Fault::Limited(Limit::Stalled) => {
            format!("onrush was stalled for {}", units::time_us(point.stalled.as_secs_f64() * 1e6))
        }
        Fault::Limited(limit) => format!("{} was the limit", limit.words()),
        Fault::Unanswered => format!("there was {NO_RESPONSE}"),
        Fault::Unreached => "the load was not reached".to_owned(),
        Fault::Rising => {
            let slope = units::time_us(point.slope_ns_per_s.unwrap_or_default() / 1e3);
            format!("the mean rises by {slope} per second")
        }
    })
}

/// The lowest load that fails, with what went wrong there, for the end of the result.
fn beyond(over: Over, points: &[Point], fails: u64) -> String {
    let is_it = |point: &&Point| point.load == fails && point.is_clean() && !point.holds();
    let last = points.iter().rev().find(is_it);
    let terms = last.into_iter().flat_map(|point| &point.terms).filter(|term| !term.holds);
    let broken: Vec<String> =
        terms.filter_map(|term| term.was.as_ref().map(|was| format!("{}: {was}", term.term))).collect();
    let why = last.and_then(why).or((!broken.is_empty()).then(|| broken.join(", ")));
    format!("; {} fails{}", load(over, fails), why.map_or_else(String::new, |why| format!(" ({why})")))
}

/// Why a search cannot begin.
pub fn too_long(search: &Search, needed: f64, per_s: f64, length: Duration, warm_up: Duration) -> String {
    let Search { objective, budget, .. } = search;
    if length <= *budget {
        let [warm_up, length, budget] = [warm_up, length, *budget].map(units::exact);
        return format!(
            "--find-max {objective}: a warm-up of {warm_up} and a run of {length} do not fit into the rest of the {budget}; \
             shorten --warmup, or raise the limit with -d"
        );
    }
    format!(
        "--find-max {objective}: each run needs {} responses ({:.0}s at {per_s:.1}/s), but the search is limited to {}; \
         raise the limit with -d, or ask for a lower percentile",
        units::thousands(needed as u64),
        needed / per_s,
        units::exact(*budget)
    )
}

/// The line on standard output.
pub fn result(search: &Search, points: &[Point], ended: Ended) -> String {
    let Search { objective, over, .. } = search;
    let (noun, bracket) = (noun(*over), Bracket::of(points));
    let show = |number: u64| load(*over, number);
    let last = points.last().map_or_else(|| "first".to_owned(), |point| show(point.load));
    let spoilt = match ended {
        Ended::Died if points.iter().any(|point| point.completed > 0) => {
            Some(format!("the target stopped responding at {last}"))
        }
        Ended::Died => Some(format!("the target did not respond at {last}")),
        Ended::Limited(limit) => Some(format!("{} was the limit at {last}, not the target", limit.words())),
        Ended::Done | Ended::Time | Ended::Signal => None,
    };
    let early = match ended {
        Ended::Time => "; give the search more time (-d)",
        Ended::Signal => "; the search was interrupted",
        Ended::Done | Ended::Died | Ended::Limited(_) => "",
    };
    let highest = format!("Highest {noun} with {objective}");
    match (bracket.holds, bracket.fails, spoilt) {
        (Some(holds), _, Some(spoilt)) => format!("{highest}: unknown, at least {}: {spoilt}", show(holds)),
        (None, _, Some(spoilt)) => format!("{highest}: unknown: {spoilt}"),
        (Some(holds), Some(fails), None) => {
            let (sure, few) = match interval(points, bracket) {
                Some(ends) => (sure(*over, ends), ""),
                None if contradicting(points, bracket).len() >= AGAINST_MAX => {
                    (String::new(), "; the runs contradict one another too much for an interval")
                }
                None => (String::new(), too_few(*over, ended)),
            };
            format!("{highest}: {}{sure}{}{few}", show(holds), beyond(*over, points, fails))
        }
        (Some(holds), None, None) => match doubted(points, holds) {
            Some(load) => {
                let (least, doubted) = (show(holds), show(load));
                format!("{highest}: unknown, at least {least}: the failure at {doubted} was not confirmed{early}")
            }
            None => format!("Every {noun} tried holds {objective}, up to {}{early}", show(holds)),
        },
        (None, None, None) => match doubted(points, 0) {
            Some(load) => format!("{highest}: unknown: the failure at {} was not confirmed{early}", show(load)),
            None => format!("{highest}: unknown: no run was conclusive{early}"),
        },
        (None, Some(fails), None) => {
            let lower = if ended == Ended::Time { ", or begin lower" } else { "" };
            format!("No {noun} tried holds {objective}, down to {}{early}{lower}", show(fails))
        }
    }
}

/// The 95 % interval of the limit.
fn sure(over: Over, (low, high): (f64, f64)) -> String {
    let plain = |load: f64| {
        let number = load * over.number(1);
        if over == Over::Rate { format!("{number:.1}") } else { format!("{number:.0}") }
    };
    format!(" (the limit is between {} and {}, with 95 % confidence)", plain(low), plain(high))
}

/// Why there is no interval.
fn too_few(over: Over, ended: Ended) -> &'static str {
    match (over, ended) {
        // A search for a whole number ends at two neighbours, however much time is left.
        (Over::Connections | Over::Threads, Ended::Done) => "",
        (_, Ended::Signal) => "; too few runs for an interval",
        _ => "; too few runs for an interval: give the search more time (-d)",
    }
}

/// The note on runs that contradict the result; `None`: there are none.
pub fn contradicted(over: Over, points: &[Point]) -> Option<String> {
    let against = contradicting(points, Bracket::of(points));
    let verb = match against.len() {
        0 => return None,
        1 => "contradicts",
        _ => "contradict",
    };
    let shown = against.iter().take(SHOWN_MAX).map(|point| {
        let ended = if point.holds() { "held" } else { "failed" };
        format!("{} {ended}", load(over, point.load))
    });
    let more = (against.len() > SHOWN_MAX).then(|| "…".to_owned());
    let runs: Vec<String> = shown.chain(more).collect();
    Some(format!(
        "{} of {} runs {verb} the result ({}): the target, or this machine, was slower in some runs; if the first ones \
         failed, add --warmup, otherwise repeat the search when its machine has nothing else to do",
        against.len(),
        points.len(),
        runs.join(", ")
    ))
}

/// How many contradicting runs a note names.
const SHOWN_MAX: usize = 3;

/// A load with its unit.
pub fn load(over: Over, load: u64) -> String {
    match over {
        Over::Rate => format!("{:.1}/s", over.number(load)),
        Over::Connections | Over::Threads => load.to_string(),
    }
}

/// What is varied, for the middle of a sentence.
fn noun(over: Over) -> &'static str {
    match over {
        Over::Rate => "rate",
        Over::Connections => "number of connections",
        Over::Threads => "number of threads",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::simulation::{points, search};
    use crate::verdict::LimitedBy;

    #[test]
    fn the_result_is_one_line() {
        let rate = search(Over::Rate);
        let per_s =
            |runs: &[(u64, bool)]| points(&runs.iter().map(|(load, holds)| (load * 60, *holds)).collect::<Vec<_>>());
        let narrow = [(2_950, true), (3_010, false), (3_010, false)];
        let once = [(2_950, true), (3_010, false)];
        let (none, all) = ([(20, false), (10, false), (10, false)], [(10, true), (20, true)]);
        let sure: Vec<(u64, bool)> = narrow
            .into_iter()
            .chain([2_890, 2_920, 2_950].map(|load| (load, true)))
            .chain([(3_010, false), (3_040, false)])
            .collect();
        let died = || Ended::Died;
        let limited = || Ended::Limited(Limit::Verdict(LimitedBy::Connections));
        for (runs, ended, line) in [
            (
                &narrow[..],
                Ended::Time,
                "Highest rate with p99<50ms: 2950.0/s; 3010.0/s fails; too few runs for an interval: give the search more \
                 time (-d)",
            ),
            (
                &sure,
                Ended::Done,
                "Highest rate with p99<50ms: 2950.0/s (the limit is between 2950.0 and 2982.7, with 95 % confidence); \
                 3010.0/s fails",
            ),
            (&none, Ended::Done, "No rate tried holds p99<50ms, down to 10.0/s"),
            (
                &none,
                Ended::Time,
                "No rate tried holds p99<50ms, down to 10.0/s; give the search more time (-d), or begin lower",
            ),
            (
                &once,
                Ended::Signal,
                "Highest rate with p99<50ms: unknown, at least 2950.0/s: the failure at 3010.0/s was not confirmed; the search was \
                 interrupted",
            ),
            (
                &once[1..],
                Ended::Time,
                "Highest rate with p99<50ms: unknown: the failure at 3010.0/s was not confirmed; give the search more time (-d)",
            ),
            (
                &[],
                Ended::Time,
                "Highest rate with p99<50ms: unknown: no run was conclusive; give the search more time (-d)",
            ),
            (&all, Ended::Done, "Every rate tried holds p99<50ms, up to 20.0/s"),
            (
                &narrow,
                died(),
                "Highest rate with p99<50ms: unknown, at least 2950.0/s: the target stopped responding at 3010.0/s",
            ),
            (
                &none,
                limited(),
                "Highest rate with p99<50ms: unknown: the number of connections was the limit at 10.0/s, not the target",
            ),
        ] {
            assert_eq!(result(&rate, &per_s(runs), ended), line);
        }
    }

    #[test]
    fn a_silent_target_and_whole_numbers_have_their_own_results() {
        let rate = search(Over::Rate);
        let silent = points(&[(600, false)]).remove(0);
        let silent = [Point { completed: 0, ..silent }];
        assert_eq!(
            result(&rate, &silent, Ended::Died),
            "Highest rate with p99<50ms: unknown: the target did not respond at 10.0/s"
        );
        let (connections, threads) = (search(Over::Connections), search(Over::Threads));
        let runs = points(&[(64, true), (65, false), (65, false)]);
        assert_eq!(
            result(&connections, &runs, Ended::Done),
            "Highest number of connections with p99<50ms: 64; 65 fails"
        );
        assert_eq!(result(&threads, &runs[..1], Ended::Done), "Every number of threads tried holds p99<50ms, up to 64");
    }

    #[test]
    fn the_result_says_what_went_wrong_at_the_lowest_load_that_fails() {
        let mut runs = points(&[(64, true), (65, false), (65, false)]);
        let end = |runs: &[Point]| beyond(Over::Connections, runs, 65);
        let judged =
            |term: &str, was: Option<&str>, holds| Judged { term: term.to_owned(), was: was.map(str::to_owned), holds };
        assert_eq!(end(&runs), "; 65 fails", "nothing more is known");
        runs[2].terms = vec![judged("p99<50ms", Some("58.11ms"), false), judged("errors=0", Some("0"), true)];
        assert_eq!(end(&runs), "; 65 fails (p99<50ms: 58.11ms)");
        runs[2].terms = vec![judged("p99<50ms", None, false)];
        runs[2].fault = Some(Fault::Unanswered);
        assert_eq!(end(&runs), "; 65 fails (there was no response)");
        (runs[2].fault, runs[2].slope_ns_per_s) = (Some(Fault::Rising), Some(9.3e6));
        assert_eq!(end(&runs), "; 65 fails (the mean rises by 9.30ms per second)");
    }

    #[test]
    fn runs_that_contradict_the_result_are_named() {
        let note = |runs: &[(u64, bool)]| contradicted(Over::Connections, &points(runs));
        let runs = [(90, true), (100, true), (103, false), (103, false), (80, false), (110, true)];
        assert_eq!(note(&runs[..4]), None);
        let why = "the target, or this machine, was slower in some runs; if the first ones failed, add --warmup, otherwise \
                   repeat the search when its machine has nothing else to do";
        assert_eq!(note(&runs[..5]), Some(format!("1 of 5 runs contradicts the result (80 failed): {why}")));
        assert_eq!(note(&runs), Some(format!("2 of 6 runs contradict the result (80 failed, 110 held): {why}")));
        let many: Vec<(u64, bool)> = runs.into_iter().chain([(61, false), (62, false)]).collect();
        let named = "4 of 8 runs contradict the result (80 failed, 110 held, 61 failed, …): ";
        assert!(note(&many).is_some_and(|note| note.starts_with(named)));
    }

    #[test]
    fn a_run_is_a_line_with_the_reason_why_it_does_not_hold() {
        let judged =
            |was: Option<&str>| Judged { term: "p99<50ms".to_owned(), was: was.map(str::to_owned), holds: false };
        let point = Point { per_s: 493.21, slope_ns_per_s: Some(1.5e6), ..points(&[(30_000, true)]).remove(0) };
        assert_eq!(headings(&search(Over::Rate)), "        rate  result   reached, measured");
        for (fault, was, line) in [
            (None, Some("1.21ms"), "     500.0/s  holds    493.2/s, p99<50ms: 1.21ms"),
            (Some(Fault::Objective), Some("60.00ms"), "     500.0/s  fails    493.2/s, p99<50ms: 60.00ms"),
            (
                Some(Fault::Unreached),
                Some("1.21ms"),
                "     500.0/s  fails    493.2/s, p99<50ms: 1.21ms, but the load was not reached",
            ),
            (
                Some(Fault::Limited(Limit::Verdict(LimitedBy::Ports))),
                Some("9.00ms"),
                "     500.0/s  limited  493.2/s, p99<50ms: 9.00ms, but the number of local ports was the limit",
            ),
            (
                Some(Fault::Rising),
                Some("9.00ms"),
                "     500.0/s  fails    493.2/s, p99<50ms: 9.00ms, but the mean rises by 1.50ms per second",
            ),
            (
                Some(Fault::Unanswered),
                None,
                "     500.0/s  fails    493.2/s, p99<50ms: unknown, but there was no response",
            ),
        ] {
            let point = Point { fault, terms: vec![judged(was)], ..point.clone() };
            assert_eq!(run(&search(Over::Rate), &point), line);
        }
    }
}
