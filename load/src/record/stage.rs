//! The stages of a run, each with figures of its own.

use onrush_plan::Plan;
use onrush_stats::{Corrupt, Errors, Totals};
use serde::{Deserialize, Serialize};

use super::distribution::total;
use super::sources::nanos;
use super::{Distribution, Document, Sources, distribution};
use crate::figures::rate::count_per_second;
use crate::run::Outcome;

/// What was measured in one stage of `--stages`, whose times are rounded up to tenths of a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The stages that a run has begun.
    pub(super) fn of(plan: &Plan, outcome: &Outcome) -> Vec<Self> {
        let stages = plan.stages();
        let last = stages.len().saturating_sub(1);
        let begun = stages.into_iter().zip(&outcome.stages).enumerate();
        let rows = begun.filter(|(_, (stage, _))| stage.from < outcome.elapsed).map(|(index, (stage, totals))| {
            // What comes after the last stage belongs to it.
            let until = if index == last { outcome.elapsed } else { stage.until.min(outcome.elapsed) };
            let (from_s, until_s) = (stage.from.as_secs_f64(), until.as_secs_f64());
            let Totals { counters, open_loop, latency, ledger, .. } = totals;
            let open_loop = open_loop.as_deref();
            let shown = open_loop.map_or(latency, |open_loop| &open_loop.scheduled);
            Self {
                start_s: from_s,
                length_s: until_s - from_s,
                asked_per_s: plan.schedule.as_ref().map(|schedule| schedule.per_second_between(stage.from, until)),
                connections: plan.levels.as_ref().map(|levels| levels.connections_between(stage.from, until)),
                started: counters.started,
                completed: counters.completed,
                rate_per_s: count_per_second(counters.completed, until_s - from_s),
                late: open_loop.map(|open_loop| open_loop.late),
                dropped: open_loop.map(|open_loop| open_loop.dropped),
                errors: ledger.totals(),
                erroneous: totals.errors(),
                latency: distribution(shown, plan.output.percents.as_deref()),
            }
        });
        rows.collect()
    }
    /// Those of several runs, stage by stage; none unless all have the same and took place at the same time.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be read.
    pub(super) fn sum(documents: &[&Document], sources: &Sources) -> Result<Vec<Self>, Corrupt> {
        let [first, others @ ..] = documents else { return Ok(Vec::new()) };
        let planned = |document: &Document| (document.plan.schedule.clone(), document.plan.connection_stages.clone());
        let are_alike = others.iter().all(|other| planned(other) == planned(first));
        let have_all = documents.iter().all(|document| !document.stages.is_empty());
        match others {
            [] => Ok(first.stages.clone()),
            _ if !are_alike || !have_all || !sources.is_at_one_time() => Ok(Vec::new()),
            _ => {
                let count = documents.iter().map(|document| document.stages.len()).max().unwrap_or(0);
                (0..count).map(|index| Self::together(documents, index)).collect()
            }
        }
    }

    /// A stage of several runs, from the first beginning to the last end.
    fn together(documents: &[&Document], index: usize) -> Result<Self, Corrupt> {
        let first_us = documents.iter().map(|document| document.started_at.0).min().unwrap_or(0);
        let (mut parts, mut from_ns, mut until_ns) = (Vec::new(), u64::MAX, 0);
        for document in documents {
            let Some(part) = document.stages.get(index) else { continue };
            let starts_ns =
                (document.started_at.0 - first_us).saturating_mul(1_000).saturating_add(nanos(part.start_s));
            from_ns = from_ns.min(starts_ns);
            until_ns = until_ns.max(starts_ns.saturating_add(nanos(part.length_s)));
            parts.push(part);
        }
        let length_s = until_ns.saturating_sub(from_ns) as f64 / 1e9;
        // As whole thousandths of requests, so that the sum of sums is the same.
        let asked: Option<f64> = parts.iter().map(|part| Some((part.asked_per_s? * part.length_s * 1e3).round())).sum();
        let connections = |of: fn((u32, u32)) -> u32| {
            parts.iter().try_fold(0_u32, |sum, part| Some(sum.saturating_add(of(part.connections?))))
        };
        let count = |of: fn(&Self) -> u64| parts.iter().map(|part| of(part)).sum();
        let completed = count(|part| part.completed);
        let mut errors = Errors::default();
        parts.iter().for_each(|part| errors += part.errors);
        let latency = total(parts.iter().map(|part| &part.latency))?.ok_or(Corrupt::Count)?;
        Ok(Self {
            start_s: from_ns as f64 / 1e9,
            length_s,
            asked_per_s: asked.filter(|_| length_s > 0.0).map(|thousandths| thousandths / 1e3 / length_s),
            connections: Option::zip(connections(|(from, _)| from), connections(|(_, to)| to)),
            started: count(|part| part.started),
            completed,
            rate_per_s: count_per_second(completed, length_s),
            late: parts.iter().map(|part| part.late).sum(),
            dropped: parts.iter().map(|part| part.dropped).sum(),
            errors,
            erroneous: parts.iter().map(|part| part.erroneous).sum(),
            latency,
        })
    }
}
