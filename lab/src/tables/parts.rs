//! Table of parts of runs: one row per stage, or per request name in a list.

use onrush_load::figures::NS_PER_US;
use onrush_load::figures::rate::count_per_second;
use onrush_load::record::{OfName, StageRow};
use onrush_load::report::parts;
use onrush_plan::column::RUN;
use onrush_stats::Corrupt;

use super::TableForm;
use super::build::key_cells;
use super::grid::{Cell, ColumnHead, Grid};
use super::group::RunGroup;
use super::number::Number;
use super::short::distinguishing_fields;
use crate::saved::SavedRun;

/// The kinds of parts into which a run can be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunParts {
    /// The stages of `--stages`.
    Stages,
    /// The names of the requests of `--urls`.
    Names,
}

impl RunParts {
    /// All kinds of parts.
    pub const ALL: [Self; 2] = [Self::Stages, Self::Names];

    /// Name of this kind in `--columns`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stages => "stages",
            Self::Names => "names",
        }
    }

    /// Advice on making a run with such parts, for the end of a message.
    pub fn example(self) -> &'static str {
        match self {
            Self::Stages => "make one with onrush --stages 10s:100,10s:200 -o FILE.json URL",
            Self::Names => "give requests of a list name=X, and run onrush --urls LIST -o FILE.json",
        }
    }

    /// True if a run has these parts.
    pub fn are_in(self, run: &SavedRun) -> bool {
        let Some(document) = run.document.as_deref() else { return false };
        match self {
            Self::Stages => !document.stages.is_empty(),
            Self::Names => !document.names.is_empty(),
        }
    }

    /// Headings: with plain names for programs if `is_plain`, otherwise for people.
    fn headings(self, is_plain: bool) -> &'static [&'static str] {
        match (self, is_plain) {
            (Self::Stages, false) => &["stage", "asked", "reached", "p50", "p99", "late", "errors"],
            (Self::Stages, true) => &[
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
            ],
            (Self::Names, false) => &["request", "p50", "p99", "responses", "errors"],
            (Self::Names, true) => &[
                "request",
                "requests",
                "requests_per_sec",
                "mean_us",
                "p50_us",
                "p99_us",
                "max_us",
                "failed",
                "errors",
            ],
        }
    }

    fn rows(self, run: &SavedRun, is_plain: bool) -> Result<Vec<Vec<Cell>>, Corrupt> {
        let Some(document) = run.document.as_deref() else { return Ok(Vec::new()) };
        let shown = |row: Vec<String>| row.into_iter().map(|text| Cell::shown_as(Some(text))).collect();
        match (self, is_plain) {
            (Self::Stages, true) => {
                document.stages.iter().zip(1..).map(|(stage, index)| stage_cells(stage, index)).collect()
            }
            (Self::Stages, false) => document.stages.iter().map(|stage| Ok(shown(parts::row(stage, true)?))).collect(),
            (Self::Names, true) => document.names.iter().map(|name| name_cells(name, document.duration_s)).collect(),
            (Self::Names, false) => document.names.iter().map(|name| Ok(shown(parts::of_name(name)?))).collect(),
        }
    }

    /// Table of the parts of these groups' runs, with the fields of the key in front.
    ///
    /// # Errors
    ///
    /// Fails if a histogram is unreadable.
    pub fn table(self, groups: &[RunGroup<'_>], key: &[String], form: TableForm) -> Result<Grid, Corrupt> {
        let is_plain = matches!(form, TableForm::Csv | TableForm::Json);
        let fields: Vec<usize> = if is_plain { (0..key.len()).collect() } else { distinguishing_fields(groups, key) };
        let has_several = is_plain || groups.iter().any(|group| group.runs.len() > 1);
        let keys = fields.iter().map(|&index| key[index].as_str()).chain(has_several.then_some(RUN));
        let heads = keys.chain(self.headings(is_plain).iter().copied()).map(ColumnHead::new).collect();
        let mut rows = Vec::new();
        for group in groups {
            let levels: Vec<Cell> = key_cells(group, key).collect();
            for (number, run) in &group.runs {
                for part in self.rows(run, is_plain)? {
                    let mut row: Vec<Cell> = fields.iter().map(|&index| levels[index].clone()).collect();
                    row.extend(has_several.then(|| Cell::level(number.to_string())));
                    row.extend(part);
                    rows.push(row);
                }
            }
        }
        Ok(Grid { heads, rows })
    }
}

fn number_cell(value: Option<f64>) -> Cell {
    Cell::number(value.and_then(Number::from_value), false)
}

fn count_cell(count: Option<u64>) -> Cell {
    Cell::number(count.map(Number::from_whole), true)
}

/// A stage's figures as plain numbers, for programs.
fn stage_cells(stage: &StageRow, index: u64) -> Result<Vec<Cell>, Corrupt> {
    let latency = stage.latency.values()?;
    let us = |percent: f64| (latency.count() > 0).then(|| latency.percentile(percent) as f64 / NS_PER_US);
    Ok(vec![
        count_cell(Some(index)),
        number_cell(Some(stage.start_s)),
        number_cell(Some(stage.length_s)),
        number_cell(stage.asked_per_s),
        number_cell(Some(stage.rate_per_s)),
        number_cell(us(50.0)),
        number_cell(us(99.0)),
        count_cell(stage.late),
        count_cell(stage.dropped),
        count_cell(Some(stage.erroneous)),
    ])
}

/// The figures of a request name as plain numbers, for programs.
fn name_cells(of_name: &OfName, duration_s: f64) -> Result<Vec<Cell>, Corrupt> {
    let latency = of_name.latency.values()?;
    let us = |percent: f64| (latency.count() > 0).then(|| latency.percentile(percent) as f64 / NS_PER_US);
    Ok(vec![
        Cell::text(of_name.name.clone()),
        count_cell(Some(of_name.completed)),
        number_cell(Some(count_per_second(of_name.completed, duration_s))),
        number_cell(of_name.latency.mean_us),
        number_cell(us(50.0)),
        number_cell(us(99.0)),
        number_cell(of_name.latency.max_us),
        count_cell(Some(of_name.failed)),
        count_cell(Some(of_name.errors())),
    ])
}
