//! The values of metrics in a run that has ended. `None`: it has none.

use onrush_plan::Plan;
use onrush_plan::metric::{Metric, Statistic, View};
use onrush_stats::Distribution;

use crate::figures::NS_PER_US;
use crate::figures::latency::Latency;
use crate::figures::rate::{counted, rate};
use crate::figures::unavailable::Unavailable;
use crate::record::value::errors;
use crate::run::Outcome;

/// The value in a run, in the metric's unit.
pub fn value(metric: Metric, plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let totals = &outcome.totals;
    let counters = &totals.counters;
    let open_loop = totals.open_loop.as_deref();
    let elapsed_s = outcome.elapsed.as_secs_f64();
    let count = match metric {
        Metric::Latency(view, statistic) => return latency(view, statistic, plan, outcome),
        Metric::Rate => return Some(rate(counted(outcome), elapsed_s)),
        Metric::Transfer => return Some(rate(counters.bytes_received, elapsed_s)),
        Metric::Duration => return Some(elapsed_s * 1e6),
        Metric::Errors => return share_of_errors(outcome),
        Metric::Unavailable => return Unavailable::of(plan, outcome).map(|unavailable| unavailable.share()),
        Metric::Requests => counters.completed,
        Metric::Started => counters.started,
        Metric::Received => counters.bytes_received,
        Metric::Sent => counters.bytes_sent,
        Metric::ErrorsOf(kind) => errors(kind, &totals.ledger.totals()),
        Metric::Status(status) => {
            totals.statuses.iter().find(|(known, _)| *known == status).map_or(0, |(_, count)| count)
        }
        Metric::StatusClass(class) => totals.statuses.class_total(class),
        Metric::Late => open_loop?.late,
        Metric::Dropped => open_loop?.dropped,
        Metric::Verdict => return None,
    };
    Some(count as f64)
}

/// The number of requests due, or without a rate sent.
pub fn total(outcome: &Outcome) -> f64 {
    let counters = &outcome.totals.counters;
    let open_loop = outcome.totals.open_loop.as_deref();
    let asked = open_loop.map_or(counters.started, |open_loop| open_loop.due + open_loop.carried);
    (asked + counters.carried) as f64
}

/// The share of requests without a good response in time, each counted once.
fn share_of_errors(outcome: &Outcome) -> Option<f64> {
    let counters = &outcome.totals.counters;
    let unsent = outcome.totals.open_loop.as_deref().map_or(0, |open_loop| open_loop.dropped + open_loop.unsent);
    let errors = counters.failed + counters.abandoned + counters.open_late_at_end + counters.unsuccessful + unsent;
    let total = total(outcome);
    (total > 0.0).then(|| errors as f64 / total)
}

/// A latency, of complete responses.
fn latency(view: View, statistic: Statistic, plan: &Plan, outcome: &Outcome) -> Option<f64> {
    let totals = &outcome.totals;
    let of = |complete: &Distribution<u64>| {
        let ns = match statistic {
            Statistic::Least => complete.min()? as f64,
            Statistic::Percentile(percent) => {
                (complete.count() > 0).then(|| complete.percentile(percent.value()))? as f64
            }
            Statistic::Mean => complete.mean()?,
            Statistic::Max => complete.max()? as f64,
            Statistic::Stdev => complete.mean().map(|_| complete.stdev())?,
        };
        Some(ns / NS_PER_US)
    };
    match (view, totals.open_loop.as_deref()) {
        (View::Service, _) => of(&totals.latency),
        (View::Scheduled, None) => None,
        (View::Shown, open_loop) if plan.dialect.is_compat() || open_loop.is_none() => {
            let shown = Latency::of(plan, outcome);
            let figures = shown.figures_us();
            figures.within.filter(|_| totals.counters.completed > 0)?;
            Some(match statistic {
                Statistic::Least => figures.min,
                Statistic::Percentile(percent) => shown.percentile_us(percent.value()),
                Statistic::Mean => figures.mean,
                Statistic::Max => figures.max,
                Statistic::Stdev => figures.stdev,
            })
        }
        (_, Some(open_loop)) => of(&open_loop.scheduled),
        (View::Shown, None) => None,
    }
}
