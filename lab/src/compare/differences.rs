//! Differences between the plans of two sides whose runs are from different experiments.

use onrush_text::escape_controls;

use super::contest::Contest;
use crate::saved::SavedRun;

/// The reason why these runs are compared only with `--force`: their plans differ in more than one key. `None` if they
/// may be compared.
pub fn plan_difference_refusal(contest: &Contest<'_>) -> Option<String> {
    let [a, b] = &contest.sides;
    if is_one_experiment(contest) {
        return None;
    }
    for (side, name) in [a, b].into_iter().zip(&contest.names) {
        let first = side.first()?;
        let other = side.iter().find_map(|run| Some((run, plan_differences(first, run).into_iter().next()?)));
        if let Some((run, (_, words))) = other {
            return Some(format!(
                "{:?} has a different plan from the rest of {name}: {words}; --force compares them anyway",
                run.origin.file
            ));
        }
    }
    let differences = plan_differences(a.first()?, b.first()?);
    let mut keys: Vec<&str> = differences.iter().map(|(key, _)| key.as_str()).collect();
    keys.dedup();
    if keys.len() < 2 {
        return None;
    }
    let words: Vec<&str> = differences.iter().map(|(_, words)| words.as_str()).collect();
    let [one, other] = &contest.names;
    Some(format!(
        "the plans of {one} and {other} differ in several respects, so a difference would have no clear cause: {}; \
         --force compares them anyway",
        words.join(", ")
    ))
}

/// A sentence on differences outside the plans: between machines, or between measuring programs. `None` if there are
/// none.
pub fn differences_outside_plans(contest: &Contest<'_>) -> Option<String> {
    let [a, b] = contest.sides.each_ref().map(|side| side.iter().find_map(|run| run.document.as_deref()));
    let (a, b) = (a?, b?);
    let pairs = [
        ("kernel", a.host.kernel.clone(), b.host.kernel.clone()),
        ("processor", a.host.cpu_model.clone(), b.host.cpu_model.clone()),
        ("number of processors", Some(a.host.cpus.to_string()), Some(b.host.cpus.to_string())),
        ("version of onrush", Some(a.tool.version.clone()), Some(b.tool.version.clone())),
    ];
    let differing = pairs.into_iter().filter(|(_, one, other)| one != other);
    let words: Vec<String> = differing
        .map(|(name, one, other)| {
            let [one, other] = [one, other].map(|it| it.map_or("unknown".to_owned(), |it| escape_controls(&it)));
            format!("{name} ({one}, {other})")
        })
        .collect();
    (!words.is_empty()).then(|| format!("the sides also differ in the {}", words.join(", the ")))
}

/// True if all runs are from the same experiment, so that they differ only in its factors.
fn is_one_experiment(contest: &Contest<'_>) -> bool {
    let mut ids = contest.sides.iter().flatten().map(|run| run.position.as_ref().map(|position| &position.id));
    let first = ids.next().flatten();
    first.is_some() && ids.all(|id| id == first)
}

/// The differences between the plans of two runs, each as a key and a description.
fn plan_differences(one: &SavedRun, other: &SavedRun) -> Vec<(String, String)> {
    if let (Some(one), Some(other)) = (&one.document, &other.document) {
        let differences = one.plan.differences(&other.plan);
        return differences.iter().map(|it| (it.key().to_owned(), it.to_string())).collect();
    }
    let rate = |run: &SavedRun| run.rate.clone().unwrap_or_else(|| "none".to_owned());
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let pairs = [
        ("tool", Some(one.origin.tool.to_owned()), Some(other.origin.tool.to_owned())),
        ("url", one.url.clone(), other.url.clone()),
        ("threads", number(one.threads), number(other.threads)),
        ("connections", number(one.connections), number(other.connections)),
        ("rate", Some(rate(one)), Some(rate(other))),
    ];
    // If a file lacks a value, that is not a difference.
    let differing = pairs.into_iter().filter(|(_, was, is)| was.is_some() && is.is_some() && was != is);
    differing
        .map(|(key, was, is)| {
            let [was, is] = [was, is].map(|it| it.map_or("unknown".to_owned(), |it| escape_controls(&it)));
            (key.to_owned(), format!("{key} is {is} instead of {was}"))
        })
        .collect()
}
