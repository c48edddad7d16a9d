//! A result file of onrush as a run.

use super::super::column::is_column;
use super::super::measured::{Figures, Measured, Origin};
use crate::report::result::{Document, Schedule, Stage, rate};

/// The run in a document.
pub fn read(origin: Origin, document: Document) -> Measured {
    let latency = document.shown_latency();
    let figures = Figures {
        requests: Some(document.requests.completed),
        duration_us: Some(document.duration_s * 1e6),
        bytes: Some(document.bytes_received),
        rate_per_s: Some(document.rate_per_s),
        bytes_per_s: Some(rate(document.bytes_received, document.duration_s)),
        mean_us: latency.mean_us,
        stdev_us: latency.stdev_us,
        min_us: latency.min_us,
        max_us: latency.max_us,
        percentiles_us: latency
            .percentiles_us
            .keys()
            .filter_map(|&percent| Some((percent, document.shown_percentile_us(percent)?)))
            .collect(),
        errors: Some(document.errors),
    };
    Measured {
        url: Some(document.plan.url.clone()),
        threads: Some(document.plan.threads.into()),
        connections: Some(document.plan.connections.into()),
        rate: document.plan.schedule.as_ref().map(asked_rate),
        factors: document.labels.iter().map(|(key, level)| (factor(key), level.clone())).collect(),
        place: document.experiment.clone(),
        figures,
        document: Some(Box::new(document)),
        ..Measured::new(Origin { tool: "onrush", ..origin })
    }
}

/// The rate over time as `--stages` takes it; without a length, as `--rate` does.
fn asked_rate(schedule: &Schedule) -> String {
    let stage = |stage: &Stage| {
        let length = stage.length_s.map_or(String::new(), |seconds| format!("{seconds}s:"));
        let end = if stage.from_per_s == stage.to_per_s { String::new() } else { format!("..{}", stage.to_per_s) };
        format!("{length}{}{end}", stage.from_per_s)
    };
    schedule.stages.iter().map(stage).collect::<Vec<_>>().join(",")
}

/// The factor that a label says the level of: `--label` takes no name of a column, but not every document came from it.
fn factor(key: &str) -> String {
    if is_column(key) { format!("label.{key}") } else { key.to_owned() }
}
