//! The table of stages: a row for each stage of each run.

use onrush_plan::column::RUN;
use onrush_stats::Corrupt;

use super::Form;
use super::build::levels;
use super::grid::{Cell, Grid, Head};
use super::group::Group;
use super::number::Number;
use super::short::told_apart;
use crate::figures::NS_PER_US;
use crate::record::StageRow;
use crate::report::parts;
use crate::saved::Measured;

/// What people read of a stage.
const SHOWN: [&str; 7] = ["stage", "asked", "reached", "p50", "p99", "late", "errors"];
/// What programs read.
const PLAIN: [&str; 10] = [
    "stage",
    "start_s",
    "length_s",
    "asked_per_s",
    "requests_per_sec",
    "p50_us",
    "p99_us",
    "late_requests",
    "dropped_requests",
    "errors",
];

/// The stages of a run; none if it does not have several.
pub fn of(run: &Measured) -> &[StageRow] {
    run.document.as_deref().map_or(&[], |document| &document.stages)
}

/// The table of the stages of these groups, with the fields of the key.
///
/// # Errors
///
/// When a histogram cannot be read.
pub fn stages(groups: &[Group<'_>], key: &[String], form: Form) -> Result<Grid, Corrupt> {
    let is_plain = matches!(form, Form::Csv | Form::Json);
    let fields: Vec<usize> = if is_plain { (0..key.len()).collect() } else { told_apart(groups, key) };
    let has_several = is_plain || groups.iter().any(|group| group.runs.len() > 1);
    let names: &[&str] = if is_plain { &PLAIN } else { &SHOWN };
    let keys = fields.iter().map(|&index| key[index].as_str()).chain(has_several.then_some(RUN));
    let heads = keys.chain(names.iter().copied()).map(Head::new).collect();
    let mut rows = Vec::new();
    for group in groups {
        let levels: Vec<Cell> = levels(group, key).collect();
        for (number, run) in &group.runs {
            for (stage, index) in of(run).iter().zip(1..) {
                let mut row: Vec<Cell> = fields.iter().map(|&index| levels[index].clone()).collect();
                row.extend(has_several.then(|| Cell::level(number.to_string())));
                if is_plain {
                    row.extend(plain(stage, index)?);
                } else {
                    row.extend(parts::row(stage, true)?.into_iter().map(|text| Cell::shown_as(Some(text))));
                }
                rows.push(row);
            }
        }
    }
    Ok(Grid { heads, rows })
}

/// The figures of a stage as numbers.
fn plain(stage: &StageRow, index: u64) -> Result<Vec<Cell>, Corrupt> {
    let latency = stage.latency.values()?;
    let us = |percent: f64| (latency.count() > 0).then(|| latency.percentile(percent) as f64 / NS_PER_US);
    let number = |value: Option<f64>| Cell::number(value.and_then(Number::of), false);
    let count = |count: Option<u64>| Cell::number(count.map(Number::whole), true);
    Ok(vec![
        count(Some(index)),
        number(Some(stage.start_s)),
        number(Some(stage.length_s)),
        number(stage.asked_per_s),
        number(Some(stage.rate_per_s)),
        number(us(50.0)),
        number(us(99.0)),
        count(stage.late),
        count(stage.dropped),
        count(Some(stage.errors.total())),
    ])
}
