//! The short table: one row per group of runs, in everyday units.

use onrush_load::record::{Document, Requests};
use onrush_plan::Metric;
use onrush_stats::has_enough_beyond;
use onrush_text::units;

use super::build::key_cells;
use super::column::{self, PER_SECOND};
use super::grid::{Cell, ColumnHead, Grid};
use super::group::RunGroup;
use super::number::Number;

/// Maximum number of columns, so that the table fits a terminal and a ticket.
const COLUMNS_MAX: usize = 10;

const PERCENTILES: [&str; 3] = ["p50", "p99", "p99.9"];

/// The short table for these groups, with the fields of the key.
pub fn short(groups: &[RunGroup<'_>], key: &[String]) -> Grid {
    let has_several = groups.iter().any(|group| group.counted().nth(1).is_some());
    let latencies = latency_metrics(groups);
    let mut figures = vec![PER_SECOND.to_owned()];
    if has_several {
        figures.splice(0..0, ["runs".to_owned()]);
        figures.push("spread".to_owned());
    }
    figures.extend(
        latencies
            .iter()
            .map(|metric| metric.percentile_percent().map_or_else(|| metric.heading(), |_| metric.to_string())),
    );
    // The reports of wrk do not contain the number of requests with errors.
    let are_told = groups.iter().flat_map(RunGroup::counted).all(|run| run.document.is_some());
    figures.push(if are_told { "errors" } else { "wrk's errors" }.to_owned());
    let shown = distinguishing_fields(groups, key);
    // If there are too many columns, the last fields share one.
    let is_joined = shown.len() + figures.len() > COLUMNS_MAX;
    let keys = match is_joined {
        true => vec!["point".to_owned()],
        false => shown.iter().map(|&index| key[index].clone()).collect(),
    };
    let heads = keys.iter().chain(&figures).map(|name| ColumnHead::new(name)).collect();
    let rows = groups.iter().map(|group| {
        let mut cells: Vec<Cell> = if is_joined {
            let words = shown.iter().map(|&index| format!("{}={}", key[index], group.key[index]));
            vec![Cell::text(Some(words.collect::<Vec<_>>().join(" ")))]
        } else {
            let cells: Vec<Cell> = key_cells(group, key).collect();
            shown.iter().map(|&index| cells[index].clone()).collect()
        };
        let rates = group.figures(Metric::Rate).unwrap_or_default();
        let rate = Cell::shown_as(Number::median(&rates).map(|rate| units::format_per_second(rate.value())));
        if has_several {
            cells.push(Cell::shown_as(Some(units::format_thousands(group.counted().count() as u64))));
            cells.push(rate);
            cells.push(Cell::shown_as(spread(&rates).map(units::format_percentage)));
        } else {
            cells.push(rate);
        }
        let merged = if group.counted().nth(1).is_some() { group.merged() } else { None };
        cells.extend(latencies.iter().map(|metric| {
            Cell::shown_as(latency_us(group, *metric, merged.as_ref()).map(|us| units::format_us(us.value())))
        }));
        cells.push(Cell::shown_as(if are_told { share_of_errors(group) } else { errors_of_wrk(group) }));
        cells
    });
    Grid { rows: rows.collect(), heads }.without_empty(keys.len())
}

/// The metric `errors` over all runs of the group.
fn share_of_errors(group: &RunGroup<'_>) -> Option<String> {
    let requests = group.counted().filter_map(|run| Some(&run.document.as_ref()?.requests));
    let add = |(errors, all), requests: &Requests| (errors + requests.errors(), all + requests.all());
    let (errors, all): (u64, u64) = requests.fold((0, 0), add);
    let share = if errors == 0 { "0 %".to_owned() } else { units::format_percentage(errors as f64 / all as f64) };
    (all > 0).then_some(share)
}

/// Counts of socket errors, unsuccessful statuses and failed checks, as in wrk.
fn errors_of_wrk(group: &RunGroup<'_>) -> Option<String> {
    let errors = [column::FAILED, column::BAD, column::UNFIT].map(|metric| group.sum(metric));
    let errors = errors.into_iter().sum::<Option<Number>>();
    errors.map(|errors| units::format_thousands(errors.value() as u64))
}

/// Indexes of the key's fields that distinguish groups; all fields if there is a single group.
pub fn distinguishing_fields(groups: &[RunGroup<'_>], key: &[String]) -> Vec<usize> {
    let differs = |index: &usize| groups.iter().any(|group| group.key[*index] != groups[0].key[*index]);
    (0..key.len()).filter(|index| groups.len() < 2 || differs(index)).collect()
}

/// The latency metrics that at least one group has, or the mean if no group has a percentile.
pub fn latency_metrics(groups: &[RunGroup<'_>]) -> Vec<Metric> {
    let is_known = |metric: &Metric| groups.iter().flat_map(RunGroup::counted).any(|run| run.value(*metric).is_some());
    let known: Vec<Metric> = column::metrics_named(&PERCENTILES).filter(is_known).collect();
    if known.is_empty() { Some(Metric::MEAN).filter(is_known).into_iter().collect() } else { known }
}

/// Difference between the highest and the lowest rate, as a share of the median; `None` for a single rate.
fn spread(rates: &[Number]) -> Option<f64> {
    let (least, most) = (rates.iter().min()?.value(), rates.iter().max()?.value());
    (rates.len() > 1).then(|| (most - least) / Number::median(rates).map_or(f64::NAN, Number::value))
}

/// A latency of a group, in microseconds: over all requests if the runs have histograms, otherwise the median over the
/// runs. `None` for mixed kinds of latency, and for a percentile that so few values exceed that it would hardly differ
/// from the maximum.
fn latency_us(group: &RunGroup<'_>, metric: Metric, merged: Option<&Document>) -> Option<Number> {
    let requests = || match merged {
        Some(sum) => Some(sum.requests.completed),
        None => group.counted().filter_map(|run| run.value(Metric::Requests)).map(|count| count as u64).min(),
    };
    let has_enough = metric
        .percentile_percent()
        .is_none_or(|percent| requests().is_none_or(|requests| has_enough_beyond(percent.value(), requests)));
    if group.mixes_latencies() || !has_enough {
        return None;
    }
    match merged.filter(|_| metric.percentile_percent().is_some()) {
        Some(sum) => Number::from_value(sum.value(metric)?),
        None => Number::median(&group.figures(metric)?),
    }
}
