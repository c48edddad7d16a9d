//! Groups of runs with equal keys, which are averaged.

use std::collections::{HashMap, HashSet};

use onrush_load::judge;
use onrush_load::record::{Document, RunResult};
use onrush_plan::Metric;
use onrush_plan::column::FIELDS;

use super::column;
use super::number::Number;
use crate::saved::{SavedRun, factor_of_experiment};
use onrush_text::order;

/// Runs with equal values in all fields of a key.
#[derive(Debug)]
pub struct RunGroup<'a> {
    /// The values of the key's fields, in the order of the fields.
    pub key: Vec<String>,
    /// The runs, each with its number.
    pub runs: Vec<(u64, &'a SavedRun)>,
}

/// Groups runs by equal keys, ordered by the first field, then by the next.
pub fn groups<'a>(runs: &'a [SavedRun], fields: &[String]) -> Vec<RunGroup<'a>> {
    let mut groups: Vec<RunGroup<'a>> = Vec::new();
    let mut positions: HashMap<Vec<String>, usize> = HashMap::new();
    for run in runs {
        let key: Vec<String> = fields.iter().map(|field| column::field(run, field).unwrap_or_default()).collect();
        let position = *positions.entry(key).or_insert_with_key(|key| {
            groups.push(RunGroup { key: key.clone(), runs: Vec::new() });
            groups.len() - 1
        });
        groups[position].runs.push((0, run));
    }
    let order: Vec<HashMap<String, usize>> =
        (0..fields.len()).map(|index| levels(&groups, index, &fields[index]).into_iter().zip(0..).collect()).collect();
    groups.sort_by_cached_key(|group| {
        group.key.iter().zip(&order).map(|(level, order)| order.get(level).copied()).collect::<Vec<_>>()
    });
    groups.iter_mut().for_each(RunGroup::number_runs);
    groups
}

/// Levels of a field, in this order: as planned for an experiment's factor, ascending for other factors and for rates,
/// otherwise as they appear.
fn levels(groups: &[RunGroup<'_>], index: usize, field: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let all = groups.iter().map(|group| &group.key[index]);
    let mut levels: Vec<String> = all.filter(|level| known.insert(*level)).cloned().collect();
    let planned = planned(groups, field);
    if levels.iter().all(|level| planned.contains_key(&level[..])) {
        levels.sort_by_key(|level| planned.get(&level[..]).copied());
    } else if field == "rate" || !FIELDS.contains(&field) {
        levels.sort_by(|one, other| order::compare_levels(one, other));
    }
    levels
}

/// Levels of a field in the plan of its experiment, each with its index.
fn planned<'a>(groups: &'a [RunGroup<'_>], field: &str) -> HashMap<&'a str, u32> {
    let positions = groups.iter().flat_map(|group| &group.runs).filter_map(|(_, run)| run.position.as_ref());
    let levels = positions.flat_map(|position| &position.levels);
    let mut planned = HashMap::new();
    for level in levels.filter(|it| factor_of_experiment(&it.factor) == field) {
        planned.entry(&level.level[..]).or_insert(level.index);
    }
    planned
}

impl<'a> RunGroup<'a> {
    /// The runs included in figures: all except those that their experiment marked as failed.
    pub fn counted(&self) -> impl Iterator<Item = &'a SavedRun> {
        self.runs.iter().map(|(_, run)| *run).filter(|run| !run.is_failed())
    }

    /// The figure of each included run; `None` if one of them lacks it.
    pub fn figures(&self, metric: Metric) -> Option<Vec<Number>> {
        self.counted().map(|run| column::figure(run, metric)).collect()
    }

    /// Average over the included runs; `None` if one of them lacks the figure, or if their kinds of latency differ.
    pub fn average(&self, metric: Metric) -> Option<Number> {
        if metric.is_latency() && self.mixes_latencies() {
            return None;
        }
        Number::average(&self.figures(metric)?)
    }

    /// Sum over the included runs; `None` if one of them lacks the figure.
    pub fn sum(&self, metric: Metric) -> Option<Number> {
        Some(self.figures(metric)?.into_iter().sum())
    }

    /// Gives the runs their own numbers if all have one, otherwise consecutive numbers.
    fn number_runs(&mut self) {
        let is_numbered = self.runs.iter().all(|(_, run)| run.run.is_some());
        for (index, (number, run)) in (1..).zip(&mut self.runs) {
            *number = run.run.filter(|_| is_numbered).unwrap_or(index);
        }
        self.runs.sort_by_key(|(number, _)| *number);
    }

    /// True if in some runs latencies start when requests were due, and in others when they were sent.
    pub fn mixes_latencies(&self) -> bool {
        let mut kinds = self.counted().map(SavedRun::is_scheduled);
        kinds.next().is_some_and(|first| kinds.any(|kind| kind != first))
    }

    /// Sum of all included runs, with histograms added up. `None` if a run has no histogram, or if their kinds of
    /// latency differ.
    pub fn merged(&self) -> Option<Document> {
        if self.mixes_latencies() {
            return None;
        }
        let results: Option<Vec<_>> = self
            .counted()
            .map(|run| Some((run.origin.file.clone(), RunResult::clone(&run.document.as_deref()?.result))))
            .collect();
        // Gates are left out, because tables do not show them.
        Some(judge::judge_result(RunResult::sum(results?).ok()?, |_| None))
    }
}
