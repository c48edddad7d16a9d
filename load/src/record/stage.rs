//! The stages of a run, each with figures of its own.

use std::time::Duration;

use onrush_stats::Errors;
use serde::Serialize;

use super::result::{StageFacts, StageSum};
use super::{Distribution, RunFacts, Sources};
use crate::figures::rate::count_per_second;

/// Measurements of one stage of `--stages`, whose times are rounded up to tenths of a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct StageRow {
    /// When it began, in seconds since measuring began.
    pub start_s: f64,
    /// How long it lasted, until the end of the run at most.
    pub length_s: f64,
    /// The rate that was asked for, as the mean over its length; left out without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// The connections that were asked for, at its beginning and at its end; left out if the stages do not set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<(u32, u32)>,
    /// Requests whose first byte was handed to the kernel.
    pub started: u64,
    /// Complete responses.
    pub completed: u64,
    /// Complete responses per second.
    pub rate_per_s: f64,
    /// With a rate: requests that were sent more than a millisecond after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// With a rate: requests that were not sent because they would have been too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// The error totals by kind.
    pub errors: Errors,
    /// Requests without a good response in time, each once: what the metric `errors` counts.
    pub erroneous: u64,
    /// The latency of complete responses: with a rate since requests were due.
    pub latency: Distribution,
}

impl StageRow {
    /// The stages that the runs have begun; none unless all have the same and took place at the same time.
    pub(super) fn from_runs(
        sums: Option<&[StageSum]>,
        runs: &[RunFacts],
        sources: &Sources,
        view: impl Fn(&onrush_stats::Distribution<u64>) -> Distribution,
    ) -> Vec<Self> {
        let sums = sums.filter(|_| runs.len() == 1 || sources.is_at_one_time()).unwrap_or_default();
        sums.iter().enumerate().map(|(index, sum)| Self::from_sum(sum, StageSpan::new(runs, index), &view)).collect()
    }

    fn from_sum(
        sum: &StageSum,
        span: StageSpan,
        view: impl Fn(&onrush_stats::Distribution<u64>) -> Distribution,
    ) -> Self {
        let StageSum { started, completed, late, dropped, errors, erroneous, latency } = sum;
        let StageSpan { start_s, length_s, asked_per_s, connections } = span;
        Self {
            start_s,
            length_s,
            asked_per_s,
            connections,
            started: *started,
            completed: *completed,
            rate_per_s: count_per_second(*completed, length_s),
            late: *late,
            dropped: *dropped,
            errors: *errors,
            erroneous: *erroneous,
            latency: view(latency),
        }
    }
}

/// Time and load of a stage.
struct StageSpan {
    start_s: f64,
    length_s: f64,
    asked_per_s: Option<f64>,
    connections: Option<(u32, u32)>,
}

impl StageSpan {
    /// The stage with this index, from the first start to the last end in any of the runs.
    fn new(runs: &[RunFacts], index: usize) -> Self {
        let first_ns = runs.first().map_or(0, RunFacts::start_ns);
        let stages = || runs.iter().filter_map(|run| Some((run, run.stages.get(index)?)));
        let since = |run: &RunFacts, at_ns: u64| {
            u64::try_from(run.start_ns() - first_ns).unwrap_or(u64::MAX).saturating_add(at_ns)
        };
        let from_ns = stages().map(|(run, stage)| since(run, stage.from_ns)).min().unwrap_or(0);
        let until_ns = stages().map(|(run, stage)| since(run, stage.until_ns)).max().unwrap_or(0);
        let length_s = Duration::from_nanos(until_ns.saturating_sub(from_ns)).as_secs_f64();
        let asked = |(_, stage): (_, &StageFacts)| {
            Some(stage.asked_per_s? * Duration::from_nanos(stage.until_ns.saturating_sub(stage.from_ns)).as_secs_f64())
        };
        let asked_per_s = match runs {
            [run] => run.stages.get(index).and_then(|stage| stage.asked_per_s),
            _ => stages().map(asked).sum::<Option<f64>>().filter(|_| length_s > 0.0).map(|asked| asked / length_s),
        };
        let connections = |of: fn((u32, u32)) -> u32| {
            stages().try_fold(0_u32, |sum, (_, stage)| Some(sum.saturating_add(of(stage.connections?))))
        };
        Self {
            start_s: Duration::from_nanos(from_ns).as_secs_f64(),
            length_s,
            asked_per_s,
            connections: Option::zip(connections(|(from, _)| from), connections(|(_, to)| to)),
        }
    }
}
