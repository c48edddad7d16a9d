//! Decides which runs are compared: those at equal levels of all other factors.

use std::collections::HashMap;

use onrush_plan::Position;
use onrush_text::escape_controls;

use super::input::{ComparedSide, factor_levels};
use crate::saved::SavedRun;

/// Two groups of runs to be compared, which differ in one thing.
#[derive(Debug)]
pub struct Contest<'a> {
    /// Names of the groups, the baseline first.
    pub names: [String; 2],
    /// Levels of all other factors, which both groups have in common.
    pub at: FactorLevels,
    /// The runs of each group, in the order of `names`.
    pub sides: [Vec<&'a SavedRun>; 2],
}

/// Names of factors, each with a level.
pub type FactorLevels = Vec<(String, String)>;

/// Pairs every level of an experiment with the baseline of its factor, at equal levels of the other factors.
///
/// # Errors
///
/// Fails if the runs are not from one experiment.
pub fn contests_of_experiment(runs: &[SavedRun]) -> Result<Vec<Contest<'_>>, String> {
    let factors = varied_factors(runs)?;
    Ok(factors.iter().flat_map(|factor| contests_against_baseline(runs, factor)).collect())
}

/// A factor that varies in an experiment.
#[derive(Debug)]
pub struct VariedFactor {
    /// Name of the factor, as in the plan.
    pub name: String,
    /// Levels of the factor, in the plan's order.
    pub levels: Vec<String>,
    /// The level with which the others are compared.
    baseline: String,
    is_alone: bool,
}

impl VariedFactor {
    /// A level as text. If it is the URL or name of a target, the name of the factor is left out.
    fn format_level(&self, level: &str) -> String {
        let is_plain = self.is_alone && ["url", "target"].contains(&self.name.as_str());
        escape_controls(&if is_plain { level.to_owned() } else { format!("{}={level}", self.name) })
    }
}

/// The factors that vary in the experiment of these runs.
///
/// # Errors
///
/// Fails if the runs are not from one experiment.
pub fn varied_factors(runs: &[SavedRun]) -> Result<Vec<VariedFactor>, String> {
    let positions: Vec<(&Position, &SavedRun)> =
        runs.iter().filter_map(|run| Some((run.position.as_ref()?, run))).collect();
    let Some((first, _)) = positions.first() else {
        return Err("no run is part of an experiment: name two sides to compare".to_owned());
    };
    if let Some((other, run)) = positions.iter().find(|(position, _)| position.id != first.id) {
        return Err(format!(
            "there are runs of two experiments, {:?} and {:?} ({:?}): name two sides to compare",
            first.name, other.name, run.origin.file
        ));
    }
    let is_alone = first.levels.len() == 1;
    let factor = |(name, baseline): (String, String)| VariedFactor {
        levels: levels_of_factor(&positions, &name),
        name,
        baseline,
        is_alone,
    };
    Ok(baseline_levels(&positions).into_iter().map(factor).collect())
}

/// Pairs every level of a factor with its baseline, at equal levels of the other factors.
pub fn contests_against_baseline<'a>(runs: &'a [SavedRun], factor: &VariedFactor) -> Vec<Contest<'a>> {
    let VariedFactor { name, levels, baseline, .. } = factor;
    let mut at_level: HashMap<Option<String>, Vec<&SavedRun>> = HashMap::new();
    let in_experiment = runs.iter().filter(|run| run.position.is_some());
    in_experiment.for_each(|run| at_level.entry(level_of(run, name)).or_default().push(run));
    let of = |level: &str| at_level.get(&Some(level.to_owned())).cloned().unwrap_or_default();
    let others = levels.iter().filter(|level| *level != baseline);
    let against = |level: &String| {
        let names = [factor.format_level(baseline), factor.format_level(level)];
        contests_at_equal_levels(&names, [of(baseline), of(level)], std::slice::from_ref(name)).0
    };
    others.flat_map(against).collect()
}

/// Groups the runs of an experiment by their levels of all factors except this one.
pub fn group_by_other_levels<'a>(
    runs: &'a [SavedRun],
    factor: &VariedFactor,
) -> Vec<(FactorLevels, Vec<&'a SavedRun>)> {
    let mut groups: Vec<(FactorLevels, Vec<&SavedRun>)> = Vec::new();
    let mut positions: HashMap<FactorLevels, usize> = HashMap::new();
    for run in runs.iter().filter(|run| run.position.is_some()) {
        let at: FactorLevels = factor_levels(run).into_iter().filter(|(name, _)| *name != factor.name).collect();
        let position = *positions.entry(at).or_insert_with_key(|at| {
            groups.push((at.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[position].1.push(run);
    }
    groups
}

/// The factors, each with its baseline. If no factor has a baseline, all factors with their first levels.
fn baseline_levels(positions: &[(&Position, &SavedRun)]) -> FactorLevels {
    let Some((first, _)) = positions.first() else { return Vec::new() };
    let marked: FactorLevels = first
        .levels
        .iter()
        .filter_map(|factor| {
            let mut all = positions.iter().flat_map(|(position, _)| &position.levels);
            let level = all.find(|level| level.factor == factor.factor && level.baseline)?;
            Some((level.factor.clone(), level.level.clone()))
        })
        .collect();
    if !marked.is_empty() {
        return marked;
    }
    let first_level = |factor: &String| levels_of_factor(positions, factor).into_iter().next();
    first.levels.iter().filter_map(|it| Some((it.factor.clone(), first_level(&it.factor)?))).collect()
}

/// The levels of a factor in the order of the plan.
fn levels_of_factor(positions: &[(&Position, &SavedRun)], factor: &str) -> Vec<String> {
    let levels = positions.iter().flat_map(|(position, _)| &position.levels).filter(|level| level.factor == factor);
    let mut levels: Vec<(u32, &String)> = levels.map(|level| (level.index, &level.level)).collect();
    levels.sort();
    levels.dedup();
    levels.into_iter().map(|(_, level)| level.clone()).collect()
}

/// The level that a factor has in a run; `None` if the run does not have the factor.
pub fn level_of(run: &SavedRun, factor: &str) -> Option<String> {
    factor_levels(run).into_iter().find(|(name, _)| name == factor).map(|(_, level)| level)
}

/// Pairs the runs of two sides at equal levels of every factor for which they have a level in common. Also returns
/// sentences about levels that only one side has.
pub fn contests_between_sides<'a>(a: &'a ComparedSide, b: &'a ComparedSide) -> (Vec<Contest<'a>>, Vec<String>) {
    let names = [a.name.clone(), b.name.clone()];
    let sides = [&a.runs, &b.runs].map(|runs| runs.iter().collect::<Vec<_>>());
    let mut factors: Vec<String> =
        sides.iter().flatten().flat_map(|run| factor_levels(run)).map(|(name, _)| name).collect();
    factors.sort();
    factors.dedup();
    let [of_a, of_b] = [0, 1].map(|side: usize| {
        let sides = &sides;
        move |factor: &String| sides[side].iter().map(|run| level_of(run, factor)).collect::<Vec<_>>()
    });
    factors.retain(|factor| {
        let there = of_b(factor);
        !of_a(factor).iter().any(|level| there.contains(level))
    });
    contests_at_equal_levels(&names, sides, &factors)
}

/// Pairs the runs of two sides, which may differ in these factors.
fn contests_at_equal_levels<'a>(
    names: &[String; 2],
    sides: [Vec<&'a SavedRun>; 2],
    factors: &[String],
) -> (Vec<Contest<'a>>, Vec<String>) {
    let others = |run: &SavedRun| -> FactorLevels {
        factor_levels(run).into_iter().filter(|(name, _)| !factors.contains(name)).collect()
    };
    let mut contests: Vec<Contest<'a>> = Vec::new();
    let mut positions: HashMap<FactorLevels, usize> = HashMap::new();
    for (side, runs) in sides.into_iter().enumerate() {
        for run in runs {
            let position = *positions.entry(others(run)).or_insert_with_key(|at| {
                contests.push(Contest { names: names.clone(), at: at.clone(), sides: [Vec::new(), Vec::new()] });
                contests.len() - 1
            });
            contests[position].sides[side].push(run);
        }
    }
    let (contests, alone): (Vec<_>, Vec<_>) =
        contests.into_iter().partition(|contest| contest.sides.iter().all(|side| !side.is_empty()));
    let alone = alone.iter().map(|contest| {
        let side = if contest.sides[0].is_empty() { &names[1] } else { &names[0] };
        format!("only {side} has runs with {}: they are left out", format_levels(&contest.at))
    });
    (contests, alone.collect())
}

/// Levels as text: `c=10, rmem=4096`.
pub fn format_levels(at: &[(String, String)]) -> String {
    if at.is_empty() {
        return "no levels".to_owned();
    }
    escape_controls(&at.iter().map(|(factor, level)| format!("{factor}={level}")).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{experiment_runs, run_at_rate};
    use super::*;

    fn shown_all(contests: &[Contest<'_>]) -> Vec<String> {
        let line = |it: &Contest<'_>| {
            let [a, b] = [0, 1].map(|side| it.sides[side].len());
            format!("{} ({b}) against {} ({a}) at {}", it.names[1], it.names[0], format_levels(&it.at))
        };
        contests.iter().map(line).collect()
    }

    #[test]
    fn levels_meet_at_equal_other_factors() {
        let runs = experiment_runs(&[("c", &["1", "10"]), ("rmem", &["*4k", "8k", "16k"])], 2);
        assert_eq!(
            shown_all(&contests_of_experiment(&runs).unwrap()),
            [
                "rmem=8k (2) against rmem=4k (2) at c=1",
                "rmem=8k (2) against rmem=4k (2) at c=10",
                "rmem=16k (2) against rmem=4k (2) at c=1",
                "rmem=16k (2) against rmem=4k (2) at c=10",
            ]
        );
        let runs = experiment_runs(&[("target", &["a", "b"])], 3);
        assert_eq!(shown_all(&contests_of_experiment(&runs).unwrap()), ["b (3) against a (3) at no levels"]);
    }

    #[test]
    fn sides_meet_at_equal_other_levels() {
        let with = |factors: &[(&str, &str)]| {
            let mut run = run_at_rate(100.0);
            run.factors = factors.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
            run
        };
        let side = |name: &str, runs: Vec<SavedRun>| ComparedSide { name: name.to_owned(), runs };
        let a = side("A", vec![with(&[("s", "x"), ("c", "1")]), with(&[("s", "x"), ("c", "10")])]);
        let b = side("B", vec![with(&[("s", "y"), ("c", "10")]), with(&[("s", "y"), ("c", "99")])]);
        let (contests, alone) = contests_between_sides(&a, &b);
        assert_eq!(shown_all(&contests), ["B (1) against A (1) at c=10"]);
        assert_eq!(
            alone,
            ["only A has runs with c=1: they are left out", "only B has runs with c=99: they are left out"]
        );
    }
}
