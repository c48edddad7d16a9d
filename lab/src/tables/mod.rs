//! `onrush table`: prints saved results of onrush, wrk and its forks as tables.
//!
//! [`SavedRun`]s with equal keys form a `group`. `build` makes tables from groups, `short` makes the table for people,
//! and `format` turns tables into text. Nothing here measures, prints, or changes a file.

pub(crate) mod command;

mod metrics;

mod number;

mod column;
mod group;

mod build;
mod grid;
mod parts;
mod short;

mod format;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

pub use build::Sort;
pub use command::COMMAND;
pub use parts::RunParts;

use onrush_load::record::{Between, Document};
use onrush_plan::column::FIELDS;
use onrush_plan::{Metric, Percent};
use onrush_text::escape_controls;

use crate::saved::{self, Read, SavedRun};
use column::TableColumn;

/// Contents and form of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Files and folders to read, at least one.
    pub inputs: Vec<PathBuf>,
    /// Fields by which runs are grouped and averaged; `None` for all fields in which the runs differ.
    pub by: Option<Vec<String>>,
    /// The columns to show.
    pub columns: Columns,
    /// The order of rows; `None` for the order of appearance.
    pub sort: Option<Sort>,
    /// The form in which tables are printed.
    pub form: TableForm,
}

/// The columns of the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// For people: one row per group of runs, with the most important figures. In [`TableForm::Csv`] and
    /// [`TableForm::Json`], all columns.
    #[default]
    Short,
    /// The two tables of centminmod's script for wrk-cmm's results: every run with averages, and the facts that
    /// averages hide.
    WrkCmm,
    /// One row for each part of each run.
    Parts(RunParts),
    /// Fields and figures with these names, for every run.
    Named(Vec<String>),
    /// No table: lists the figures instead.
    Help,
}

/// Name of [`Columns::WrkCmm`] in `--columns`.
pub const WRK_CMM: &str = "wrk-cmm";

/// Name of [`Columns::Help`] in `--columns`.
pub const HELP: &str = "help";

/// The form in which tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableForm {
    /// Tables in Markdown.
    #[default]
    Markdown,
    /// Tables for a terminal.
    Text,
    /// One table of comma-separated values, with one row per run.
    Csv,
    /// One table as a JSON array, with one object per run.
    Json,
}

/// The output of `onrush table`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintedTable {
    /// The tables, for standard output; empty if there are none.
    pub text: String,
    /// Messages about the files, for standard error.
    pub said: Vec<String>,
}

/// Reads the files and makes the tables, or a message for each reason not to.
pub fn run(table: &TableOptions) -> PrintedTable {
    if table.columns == Columns::Help {
        return PrintedTable { text: metrics::listing(), said: Vec::new() };
    }
    let Read { runs, problems: mut said } = saved::all(&table.inputs);
    let (failed, runs): (Vec<SavedRun>, Vec<SavedRun>) = runs.into_iter().partition(SavedRun::is_failed);
    said.extend(failed_run_lines(&failed, &runs));
    said.extend(incomplete_runs_line(&runs));
    if runs.is_empty() {
        return PrintedTable { text: String::new(), said };
    }
    match make_tables(table, &runs, &mut said) {
        Ok(text) => PrintedTable { text, said },
        Err(unknown) => {
            said.push(unknown);
            PrintedTable { text: String::new(), said }
        }
    }
}

fn make_tables(table: &TableOptions, runs: &[SavedRun], said: &mut Vec<String>) -> Result<String, String> {
    let key = table.by.clone().unwrap_or_else(|| default_key(runs));
    let factors = build::factor_names(runs);
    let named: Option<Vec<TableColumn>> = match &table.columns {
        Columns::Named(names) => Some(names.iter().map(|name| TableColumn::from_name(name, &factors)).collect()),
        Columns::Short | Columns::WrkCmm | Columns::Parts(_) | Columns::Help => None,
    };
    let sort = table.sort.as_ref();
    let sort = sort.map(|Sort { column, descends }| Sort {
        column: TableColumn::from_name(column, &factors),
        descends: *descends,
    });
    let columns = named.iter().flatten().chain(sort.as_ref().map(|sort| &sort.column));
    let fields = columns.filter_map(|column| match column {
        TableColumn::Field(name) => Some(name.as_str()),
        TableColumn::Figure(_) => None,
    });
    check_columns(key.iter().map(String::as_str).chain(fields), &factors)?;
    let named = named.map(|mut columns| {
        // The fields of the key already have columns.
        columns.retain(|column| !matches!(column, TableColumn::Field(name) if key.contains(name)));
        columns
    });
    let mut groups = group::groups(runs, &key);
    if let Some(sort) = &sort {
        sort.sort_groups(&mut groups);
    }
    if let Columns::Parts(parts) = table.columns {
        said.extend(missing_parts_line(parts, runs)?);
        let grid = parts.table(&groups, &key, table.form).map_err(|corrupt| corrupt.to_string())?;
        return Ok(format::for_form(table.form)(&grid));
    }
    Ok(match table.form {
        TableForm::Csv | TableForm::Json => {
            let columns = named.unwrap_or_else(|| match table.columns {
                Columns::WrkCmm => build::default_columns(runs),
                _ => build::all_columns(runs, &key),
            });
            said.extend(mean_kinds_line(runs, &columns));
            said.extend(unbounded_percentiles_line(runs, &columns));
            let grid = build::wide_table(&groups, &key, &columns, sort.as_ref());
            format::for_form(table.form)(&grid)
        }
        TableForm::Markdown | TableForm::Text => {
            let write = format::for_form(table.form);
            said.extend(mixed_latencies_line(&groups));
            if table.columns == Columns::Short {
                said.extend(medians_line(&groups));
                let columns: Vec<TableColumn> =
                    short::latency_metrics(&groups).into_iter().map(TableColumn::Figure).collect();
                said.extend(unbounded_percentiles_line(runs, &columns));
                return Ok(write(&short::short(&groups, &key)));
            }
            let columns = named.clone().unwrap_or_else(|| build::default_columns(runs));
            said.extend(mean_kinds_line(runs, &columns));
            said.extend(unbounded_percentiles_line(runs, &columns));
            let first = write(&build::runs_table(&groups, &key, &columns));
            if named.is_some() {
                return Ok(first);
            }
            said.extend(missing_histograms_line(&groups));
            first + "\n" + &write(&build::summary_table(&groups, &key))
        }
    })
}

/// Default key: the factors, and every other field that differs between runs with equal factors. This ensures that
/// different kinds of runs are never averaged silently.
fn default_key(runs: &[SavedRun]) -> Vec<String> {
    let factors = build::factor_names(runs);
    let levels = |run| factors.iter().map(|factor| column::field(run, factor)).collect::<Vec<_>>();
    let alike = runs.iter().map(levels).collect::<BTreeSet<_>>().len();
    let told_apart = |name: &str| {
        let with_it = runs.iter().map(|run| (levels(run), column::field(run, name)));
        with_it.collect::<BTreeSet<_>>().len()
    };
    // The host is shorter, and is preferred if it distinguishes as many runs as the URL does.
    let target = if told_apart("url") > told_apart("host") { "url" } else { "host" };
    let candidates =
        ["folder", "name", "section", "label", "tool", target, "threads", "connections", "protocol", "streams", "rate"];
    let differing = candidates.into_iter().filter(|name| told_apart(name) > alike);
    differing.map(str::to_owned).chain(factors.iter().cloned()).collect()
}

/// Checks that each name is that of a field; the error names the first that is not.
fn check_columns<'a>(mut names: impl Iterator<Item = &'a str>, factors: &[String]) -> Result<(), String> {
    let is_known = |name: &str| FIELDS.contains(&name) || factors.iter().any(|factor| factor == name);
    let Some(unknown) = names.find(|name| !is_known(name)) else { return Ok(()) };
    let known: Vec<&str> = factors.iter().map(String::as_str).chain(FIELDS).collect();
    Err(format!(
        "no column {unknown:?}; the columns are {}, and the figures in onrush table --columns help",
        known.join(", ")
    ))
}

/// Messages about failed runs that no table contains, without repetitions.
fn failed_run_lines(failed: &[SavedRun], whole: &[SavedRun]) -> Vec<String> {
    let turn = |run: &SavedRun| {
        run.position.as_ref().map(|position| (position.id.clone(), position.round, position.levels.clone()))
    };
    let is_repeated = |run: &&SavedRun| whole.iter().any(|other| turn(other) == turn(run));
    let words = |run: &SavedRun| {
        let reason = run.position.as_ref().and_then(|position| position.failed.as_deref()).unwrap_or_default();
        format!("{:?} failed and is left out: {}", run.origin.file, escape_controls(reason))
    };
    failed.iter().filter(|run| !is_repeated(run)).map(words).collect()
}

/// Message about incomplete and interrupted runs in the tables; `None` if there are none.
fn incomplete_runs_line(runs: &[SavedRun]) -> Option<String> {
    let flaw = |run: &SavedRun| {
        let document =
            run.document.as_deref().filter(|document| document.incomplete.is_some() || document.interrupted)?;
        Some(format!("{:?} ({})", run.origin.file, escape_controls(&document.flaw()?)))
    };
    let found: Vec<String> = runs.iter().filter_map(flaw).collect();
    (!found.is_empty()).then(|| format!("figures of incomplete runs: {}", first_and_count(&found)))
}

/// Lists the first of several strings, and gives the number of the others.
fn first_and_count(found: &[String]) -> String {
    let named = found[..found.len().min(NAMED_MAX)].join(", ");
    let more = found.len() - found.len().min(NAMED_MAX);
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// Message about runs without these parts; `None` if all have some.
///
/// # Errors
///
/// Returns the remedy if no run has any.
fn missing_parts_line(parts: RunParts, runs: &[SavedRun]) -> Result<Option<String>, String> {
    let mut without = runs.iter().filter(|run| !parts.are_in(run));
    let Some(first) = without.next() else { return Ok(None) };
    let others = without.count();
    if others + 1 == runs.len() {
        return Err(format!("no result has {}; {}", parts.name(), parts.example()));
    }
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    Ok(Some(format!("left out, because they have no {}: {:?}{more}", parts.name(), first.origin.file)))
}

/// Message about a mean shown beside percentiles, if only the percentiles include unanswered requests.
fn mean_kinds_line(runs: &[SavedRun], columns: &[TableColumn]) -> Option<String> {
    let is_shown = |wanted: fn(Metric) -> bool| {
        columns
            .iter()
            .any(|column| matches!(column, TableColumn::Figure(metric) if metric.is_latency() && wanted(*metric)))
    };
    let has_both = is_shown(|metric| metric.percentile_percent().is_some())
        && is_shown(|metric| metric.percentile_percent().is_none());
    let is_censored = |run: &SavedRun| {
        let open_loop = run.document.as_deref().and_then(Document::bounded);
        open_loop.and_then(|it| it.censored.as_ref()).is_some_and(|censored| censored.count > 0)
    };
    let words = "of runs with a rate, percentiles cover all requests that were due; mean, deviation, minimum and \
                 maximum only those with a complete response";
    (has_both && runs.iter().any(is_censored)).then(|| words.to_owned())
}

/// Message about runs whose percentiles have no upper bound, because too many due requests have no response.
fn unbounded_percentiles_line(runs: &[SavedRun], columns: &[TableColumn]) -> Option<String> {
    let shown = |percent: &Percent| {
        columns.iter().any(
            |column| matches!(column, TableColumn::Figure(metric) if metric.percentile_percent() == Some(*percent)),
        )
    };
    let first = |run: &SavedRun| {
        let open_loop = run.document.as_deref().and_then(Document::bounded)?;
        let is_bound = |(_, between): &(_, &Between)| between.estimate.is_none() || between.upper.is_none();
        let unbounded = open_loop.percentiles_us.iter().filter(is_bound);
        let percent = unbounded.map(|(percent, _)| percent).find(|percent| shown(percent))?;
        Some(format!("{:?} from p{percent} up", run.origin.file))
    };
    let found: Vec<String> = runs.iter().filter_map(first).collect();
    let words = "percentiles may be larger, because requests that were due have no response";
    (!found.is_empty()).then(|| format!("{words}: {}", first_and_count(&found)))
}

/// Number of runs that a message names.
const NAMED_MAX: usize = 3;

/// Message about percentiles over several runs that are missing because a run has no histogram.
fn missing_histograms_line(groups: &[group::RunGroup<'_>]) -> Option<String> {
    let words = "the second table has no percentiles of runs without a histogram: only result files of onrush have one";
    groups.iter().any(lacks_histograms).then(|| words.to_owned())
}

/// Message about percentiles over several runs that are medians of the runs' percentiles, not percentiles of all their
/// requests.
fn medians_line(groups: &[group::RunGroup<'_>]) -> Option<String> {
    let words = "percentiles of several runs without histograms are medians over the runs: only result files of onrush \
                 have histograms";
    let are_shown = |group: &group::RunGroup<'_>| {
        lacks_histograms(group) && group.counted().any(|run| run.percents().next().is_some())
    };
    groups.iter().any(are_shown).then(|| words.to_owned())
}

/// True if a group has several runs, at least one of them without a histogram.
fn lacks_histograms(group: &group::RunGroup<'_>) -> bool {
    group.runs.len() > 1 && group.runs.iter().any(|(_, run)| run.document.is_none())
}

/// Message about groups that mix two kinds of latency.
fn mixed_latencies_line(groups: &[group::RunGroup<'_>]) -> Option<String> {
    let words = "latencies are not averaged over runs with and without a rate: some count from when a request was due, \
                 others from when it was sent; add rate and tool to --by";
    groups.iter().any(group::RunGroup::mixes_latencies).then(|| words.to_owned())
}
