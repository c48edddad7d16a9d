//! The arguments of `done` as Lua values.

use std::rc::Rc;

use mlua::{Lua, Table, Value};
use onrush_stats::{Distribution, hdr_rank, rank};

use super::ScriptSummary;

/// A distribution as the script's `done` sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticsView {
    /// Minimum; 2⁶⁴ − 1 without values, as in wrk. Native scripts see nil without values.
    pub min: f64,
    /// Maximum; zero without values.
    pub max: f64,
    /// Arithmetic mean; zero without values.
    pub mean: f64,
    /// Sample standard deviation.
    pub stdev: f64,
    /// Distinct values in ascending order, each with its cumulative count.
    values: Vec<(f64, u64)>,
    /// True if percentiles are computed from HdrHistogram bins.
    is_binned: bool,
    /// The view as measured, if it differs from this one.
    pub raw: Option<Box<Self>>,
    /// The view measured from the due time, if there is a schedule.
    pub scheduled: Option<Box<Self>>,
}

impl StatisticsView {
    /// A view of distinct ascending values, each with its number of occurrences.
    pub fn new(mean: f64, stdev: f64, values: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut seen = 0;
        let summed = values.into_iter().map(|(value, count)| {
            seen += count;
            (value, seen)
        });
        let values: Vec<_> = summed.collect();
        let min = values.first().map_or(u64::MAX as f64, |&(value, _)| value);
        let max = values.last().map_or(0.0, |&(value, _)| value);
        Self { min, max, mean, stdev, values, is_binned: false, raw: None, scheduled: None }
    }

    /// A distribution as shown by wrk2: everything is computed from the bins.
    pub fn binned(distribution: &Distribution<u64>) -> Self {
        let binned = distribution.binned();
        let values = binned.bins().map(|(values, count)| (*values.end() as f64, count));
        let view = Self::new(binned.mean(), binned.stdev(), values);
        Self { min: binned.min() as f64, max: binned.max() as f64, is_binned: true, ..view }
    }

    /// The distribution as measured, with all values divided by `unit`.
    pub fn measured(distribution: &Distribution<u64>, unit: f64) -> Self {
        let values = distribution.values().map(|(value, count)| (value as f64 / unit, count));
        let mut view = Self::new(distribution.mean().unwrap_or(0.0) / unit, distribution.stdev() / unit, values);
        // Minimum and maximum are known exactly.
        if let (Some(min), Some(max)) = (distribution.min(), distribution.max()) {
            view.min = min as f64 / unit;
            view.max = max as f64 / unit;
        }
        view
    }

    /// Number of values.
    fn count(&self) -> u64 {
        self.values.last().map_or(0, |&(_, seen)| seen)
    }

    /// The value at rank floor(`p` / 100 · count) + 1, at most count, or for bins at [HdrHistogram's rank](hdr_rank);
    /// zero without values.
    fn percentile(&self, p: f64) -> f64 {
        let rank = if self.is_binned { hdr_rank(p, self.count()) } else { rank(p, self.count()) };
        // Minimum and maximum are known exactly, unless there are only bins.
        if rank >= self.count() && !self.is_binned {
            return self.max;
        }
        if rank == 1 && !self.is_binned {
            return self.min;
        }
        let at = self.values.partition_point(|&(_, seen)| seen < rank);
        self.values.get(at).map_or(self.max, |&(value, _)| value)
    }

    /// The `i`-th distinct value, from 1, and its number of occurrences; for any other `i`, zero and the number of
    /// distinct values.
    fn value_and_count(&self, i: f64) -> (f64, u64) {
        let index = (i >= 1.0).then(|| i as usize - 1);
        match index.and_then(|index| Some((index, self.values.get(index)?))) {
            Some((index, &(value, seen))) => {
                (value, seen - index.checked_sub(1).map_or(0, |before| self.values[before].1))
            }
            None => (0.0, self.values.len() as u64),
        }
    }

    /// The table from which `wrk.lua` creates a statistics object. If `is_native`, statistics without values are nil.
    fn to_table(&self, lua: &Lua, is_native: bool) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        let has_figures = self.count() > 0 || !is_native;
        for (name, number) in [("min", self.min), ("max", self.max), ("mean", self.mean), ("stdev", self.stdev)] {
            table.raw_set(name, has_figures.then_some(number))?;
        }
        table.raw_set("count", self.count() as f64)?;
        table.raw_set("distinct", self.values.len() as f64)?;
        let view = Rc::new(self.clone());
        let same = Rc::clone(&view);
        table.raw_set(
            "percentile",
            lua.create_function(move |_, p: f64| Ok(has_figures.then(|| same.percentile(p))))?,
        )?;
        let at = move |_: &Lua, i: f64| {
            let (value, count) = view.value_and_count(i);
            Ok((value, count as f64))
        };
        table.raw_set("at", lua.create_function(at)?)?;
        table.raw_set("raw", self.raw.as_ref().map(|view| view.to_table(lua, is_native)).transpose()?)?;
        table.raw_set("scheduled", self.scheduled.as_ref().map(|view| view.to_table(lua, is_native)).transpose()?)?;
        Ok(table)
    }
}

/// The arguments of `done`: the summary, and the tables for the two statistics objects.
pub fn done_arguments(lua: &Lua, summary: &ScriptSummary) -> mlua::Result<(Value, Table, Table)> {
    let table = lua.create_table()?;
    let totals = [("duration", summary.duration_us), ("requests", summary.requests), ("bytes", summary.bytes)];
    for (name, number) in totals {
        table.raw_set(name, number as f64)?;
    }
    let errors = lua.create_table()?;
    let totals = &summary.errors;
    let totals = [
        ("connect", totals.connect),
        ("read", totals.read),
        ("write", totals.write),
        ("status", totals.status),
        ("timeout", totals.timeout),
    ];
    for (name, number) in totals {
        errors.raw_set(name, number as f64)?;
    }
    table.raw_set("errors", errors)?;
    let ledger = lua.create_table()?;
    for row in &summary.ledger {
        let entry = lua.create_table()?;
        entry.raw_set("phase", row.phase.as_str())?;
        entry.raw_set("cause", row.cause.as_str())?;
        entry.raw_set("count", row.count as f64)?;
        ledger.raw_push(entry)?;
    }
    table.raw_set("ledger", ledger)?;
    let of = |view: &StatisticsView| view.to_table(lua, summary.is_native);
    Ok((Value::Table(table), of(&summary.latency)?, of(&summary.rates)?))
}
