//! Checks that a run has the figures that its gates (`--fail-if`) compare.

use onrush_plan::condition::{Condition, Term};
use onrush_plan::limits::NAMES_MAX;
use onrush_plan::list::RequestList;
use onrush_plan::metric::{ErrorKind, Metric};
use onrush_plan::{Checks, Http, Schedule};
use onrush_text::escape_controls;

use super::flaw::nearest_word;
use super::refusal::PlanRefusal;

/// Maximum number of names that a message lists.
const SHOWN: usize = 10;

/// Rejects a gate on a figure that a run with these parts does not have.
pub(super) fn check_gates(
    gates: &[Condition],
    schedule: Option<&Schedule>,
    list: Option<&RequestList>,
    checks: &Checks,
    http: &Http,
) -> Result<(), PlanRefusal> {
    check_gates_have_rate(gates, schedule)?;
    check_gates_have_names(gates, list)?;
    check_gates_have_checks(gates, checks, http)
}

/// Rejects a gate on a figure that only a run with a rate has, if there is none.
fn check_gates_have_rate(gates: &[Condition], schedule: Option<&Schedule>) -> Result<(), PlanRefusal> {
    let term = gates.iter().find_map(Condition::needs_rate).filter(|_| schedule.is_none());
    let line = |text: &str| format!("--fail-if {text}: there is no rate; add -R, for instance -R 1000");
    term.map_or(Ok(()), |term| Err(PlanRefusal::Misused(line(&term.text))))
}

/// Rejects a gate on failed checks without checks. Over HTTP/2, gRPC calls are always checked.
fn check_gates_have_checks(gates: &[Condition], checks: &Checks, http: &Http) -> Result<(), PlanRefusal> {
    if http.may_be_http2() {
        return Ok(());
    }
    let is_about_checks = |term: &&Term| term.metric == Metric::ErrorsOf(ErrorKind::Check);
    let found = gates.iter().flat_map(|gate| &gate.terms).find(is_about_checks).filter(|_| checks.count() == 0);
    let line = |text: &str| {
        let of_status = if checks.status.is_some() { ", or errors.status for the statuses" } else { "" };
        format!("--fail-if {text}: nothing is checked; add --expect-body or --expect-header{of_status}")
    };
    found.map_or(Ok(()), |term| Err(PlanRefusal::Misused(line(&term.text))))
}

/// Rejects a gate on named requests if the list has none of that name.
fn check_gates_have_names(gates: &[Condition], list: Option<&RequestList>) -> Result<(), PlanRefusal> {
    let names = list.map_or(&[][..], |list| &list.names);
    let of_name = |term: &'_ Term| term.name.clone().map(|name| (term.text.clone(), name));
    let mut named = gates.iter().flat_map(|gate| &gate.terms).filter_map(of_name);
    let Some((text, name)) = named.find(|(_, name)| !names.contains(name)) else { return Ok(()) };
    let reason = match nearest_word(&name, names.iter().map(String::as_str)) {
        _ if list.is_none() => "names are those of a list; add --urls FILE, whose lines have name=X".to_owned(),
        _ if names.is_empty() => format!("no request of the list has a name; write name={name} behind its URL"),
        _ if names.len() == NAMES_MAX => {
            format!("{name} is not among the first {NAMES_MAX} names of the list, which have results of their own")
        }
        Some(near) => format!("no request of the list is called {name}; did you mean {near}?"),
        None => {
            let known: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
            format!("no request of the list is called {name}; there are {}", escape_controls(&known.join(", ")))
        }
    };
    Err(PlanRefusal::Misused(format!("--fail-if {text}: {reason}")))
}
