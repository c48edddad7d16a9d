//! Builds the tables: runs with averages, facts that averages hide, or everything in one table.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use onrush_plan::Metric;
use onrush_plan::column::{COMPUTED, FIELDS, RUN};

use super::column::{self, AFTER_PERCENTILES, BEFORE_PERCENTILES, TableColumn, USUAL_PERCENTILES, metrics_named};
use super::grid::{Cell, ColumnHead, Grid};
use super::group::RunGroup;
use super::number::Number;
use crate::saved::SavedRun;
use onrush_text::order;

/// Name of the rows with averages.
const AVERAGE: &str = "avg";

/// Columns of wrk-cmm's table of runs, as in centminmod's script. If no run has percentiles, the mean latency replaces
/// them.
pub fn default_columns(runs: &[SavedRun]) -> Vec<TableColumn> {
    let is_known = |metric: &Metric| runs.iter().any(|run| run.value(*metric).is_some());
    let mut latencies: Vec<Metric> = metrics_named(&USUAL_PERCENTILES).filter(is_known).collect();
    if latencies.is_empty() {
        latencies.push(Metric::MEAN);
    }
    let figures = metrics_named(&BEFORE_PERCENTILES[..5]).chain(latencies).filter(is_known);
    figures.map(TableColumn::Figure).collect()
}

/// A table of all runs, with a row of averages below each group of runs.
pub fn runs_table(groups: &[RunGroup<'_>], key: &[String], columns: &[TableColumn]) -> Grid {
    let mut heads: Vec<ColumnHead> = key.iter().map(|field| ColumnHead::new(field)).collect();
    heads.push(ColumnHead::new(RUN));
    heads.extend(columns.iter().map(ColumnHead::for_column));
    let is_averaged = groups.iter().any(|group| group.runs.len() > 1);
    let mut rows = Vec::new();
    for group in groups {
        for (number, run) in &group.runs {
            rows.push(key_row(group, key, number.to_string(), columns.iter().map(|column| cell(run, column))));
        }
        if is_averaged {
            rows.push(key_row(
                group,
                key,
                AVERAGE.to_owned(),
                columns.iter().map(|column| average_cell(group, column)),
            ));
        }
    }
    Grid { heads, rows }
}

/// A table of facts that averages hide, one row per group: the spread of the rates, the failures, and percentiles of
/// all requests together.
pub fn summary_table(groups: &[RunGroup<'_>], key: &[String]) -> Grid {
    let percentiles: Vec<Metric> = metrics_named(&USUAL_PERCENTILES).collect();
    let mut heads: Vec<ColumnHead> = key.iter().map(String::as_str).chain(COMPUTED).map(ColumnHead::new).collect();
    let figures = [column::FAILED, column::BAD];
    heads
        .extend(figures.iter().chain(&percentiles).map(|&metric| ColumnHead::for_column(&TableColumn::Figure(metric))));
    let rows = groups.iter().map(|group| {
        let counted: Vec<&SavedRun> = group.counted().collect();
        let alone = counted.first().filter(|_| counted.len() == 1);
        let rates = group.figures(Metric::Rate).filter(|_| alone.is_none()).unwrap_or_default();
        let median = Number::median(&rates);
        let min = rates.iter().min();
        let max = rates.iter().max();
        let merged = if alone.is_some() { None } else { group.merged() };
        let count = Number::from_whole(counted.len() as u64);
        let mut cells: Vec<Cell> = key_cells(group, key).collect();
        cells.push(Cell::number(Some(count), true));
        cells.extend(
            [median, min.copied(), max.copied(), spread_percent(median, min, max)]
                .map(|rate| Cell::number(rate, false)),
        );
        cells.extend(figures.map(|metric| Cell::number(group.sum(metric), true)));
        cells.extend(percentiles.iter().map(|&metric| {
            let merged = || Number::from_value(merged.as_ref()?.value(metric)?);
            Cell::number(alone.map_or_else(merged, |run| column::figure(run, metric)), true)
        }));
        cells
    });
    let rows = rows.collect();
    Grid { heads, rows }.without_empty(key.len() + 1)
}

/// Difference between the largest and the smallest value, in per cent of the median; `None` if a value is unknown or
/// the median is zero.
fn spread_percent(median: Option<Number>, min: Option<&Number>, max: Option<&Number>) -> Option<Number> {
    let (median, min, max) = (median?.value(), min?.value(), max?.value());
    Number::from_value((max - min) / median * 100.0)
}

/// A table of all runs with these columns, after those of the key and the run's number. Rows are sorted by `sort`
/// across groups, if given.
pub fn wide_table(
    groups: &[RunGroup<'_>],
    key: &[String],
    columns: &[TableColumn],
    sort: Option<&Sort<TableColumn>>,
) -> Grid {
    let mut heads: Vec<ColumnHead> = key.iter().map(|field| ColumnHead::new(field)).collect();
    heads.push(ColumnHead::new(RUN));
    heads.extend(columns.iter().map(ColumnHead::for_column));
    let runs = groups.iter().flat_map(|group| group.runs.iter().map(move |(number, run)| (group, number, *run)));
    let mut runs: Vec<(&RunGroup<'_>, &u64, &SavedRun)> = runs.collect();
    if let Some(sort) = sort {
        runs.sort_by(|(_, _, one), (_, _, other)| sort.compare_runs(one, other));
    }
    let rows = runs.into_iter();
    let rows = rows
        .map(|(group, number, run)| {
            key_row(group, key, number.to_string(), columns.iter().map(|column| cell(run, column)))
        })
        .collect();
    Grid { heads, rows }
}

/// Columns of a wide table: every field and figure, except the fields of the key.
pub fn all_columns(runs: &[SavedRun], key: &[String]) -> Vec<TableColumn> {
    let mut fields: Vec<String> = FIELDS.map(str::to_owned).to_vec();
    fields.extend(factor_names(runs).into_iter().filter(|factor| !FIELDS.contains(&factor.as_str())));
    fields.retain(|field| !key.contains(field));
    let percents: BTreeSet<_> = runs.iter().flat_map(SavedRun::percents).collect();
    let percentiles = percents.into_iter().map(Metric::percentile);
    let figures = metrics_named(&BEFORE_PERCENTILES).chain(percentiles).chain(metrics_named(&AFTER_PERCENTILES));
    let is_known = runs.iter().any(|run| run.value(Metric::Unavailable).is_some());
    let figures = figures.chain(is_known.then_some(Metric::Unavailable));
    fields.into_iter().map(TableColumn::Field).chain(figures.map(TableColumn::Figure)).collect()
}

/// Names of all factors of these runs, in order of appearance.
pub fn factor_names(runs: &[SavedRun]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.factors) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn key_row(group: &RunGroup<'_>, key: &[String], name: String, cells: impl Iterator<Item = Cell>) -> Vec<Cell> {
    key_cells(group, key).chain([Cell::level(name)]).chain(cells).collect()
}

/// The cells with the values of a group's key.
pub fn key_cells(group: &RunGroup<'_>, key: &[String]) -> impl Iterator<Item = Cell> {
    key.iter().zip(&group.key).map(|(name, level)| field_cell(name, Some(level.clone())))
}

/// The cell for a field: a string for the names below, otherwise a level, which may be a number.
fn field_cell(name: &str, text: Option<String>) -> Cell {
    const TEXTS: [&str; 8] = ["folder", "file", "name", "tool", "section", "label", "url", "host"];
    if TEXTS.contains(&name) { Cell::text(text) } else { text.map_or(Cell::Empty, Cell::level) }
}

fn cell(run: &SavedRun, column: &TableColumn) -> Cell {
    match column {
        TableColumn::Field(name) => field_cell(name, column::field(run, name)),
        TableColumn::Figure(metric) => Cell::number(column::figure(run, *metric), column::is_whole(*metric)),
    }
}

/// Average of a figure over the group, or the value of a field if all runs have the same.
fn average_cell(group: &RunGroup<'_>, column: &TableColumn) -> Cell {
    match column {
        TableColumn::Field(name) => {
            let mut values = group.runs.iter().map(|(_, run)| column::field(run, name));
            let first = values.next().flatten();
            field_cell(name, first.filter(|first| values.all(|value| value.as_ref() == Some(first))))
        }
        TableColumn::Figure(metric) => Cell::number(group.average(*metric), false),
    }
}

/// The order of rows: by one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort<C = String> {
    /// The column, as typed or resolved.
    pub column: C,
    /// True to sort from the largest to the smallest value.
    pub descends: bool,
}

impl Sort<TableColumn> {
    /// Sorts groups by their common value or average in the column, and the runs within each group by their own.
    pub fn sort_groups(&self, groups: &mut [RunGroup<'_>]) {
        for group in groups.iter_mut() {
            group.runs.sort_by(|(_, one), (_, other)| self.compare_runs(one, other));
        }
        groups.sort_by(|one, other| match &self.column {
            TableColumn::Field(_) => self.compare_runs(one.runs[0].1, other.runs[0].1),
            TableColumn::Figure(metric) => self.compare_values(one.average(*metric), other.average(*metric), Ord::cmp),
        });
    }

    fn compare_runs(&self, one: &SavedRun, other: &SavedRun) -> Ordering {
        match &self.column {
            TableColumn::Field(name) => {
                let [one, other] = [one, other].map(|run| column::field(run, name));
                self.compare_values(one, other, |one, other| order::compare_levels(one, other))
            }
            TableColumn::Figure(metric) => {
                let [one, other] = [one, other].map(|run| column::figure(run, *metric));
                self.compare_values(one, other, Ord::cmp)
            }
        }
    }

    /// Compares two values. An unknown value is last in either direction.
    fn compare_values<T>(&self, one: Option<T>, other: Option<T>, compare: fn(&T, &T) -> Ordering) -> Ordering {
        match (one, other) {
            (Some(one), Some(other)) if self.descends => compare(&other, &one),
            (Some(one), Some(other)) => compare(&one, &other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        }
    }
}
