//! Turns a result file of onrush into a run.

use super::super::column::{factor_of_experiment, factor_of_label};
use super::super::measured::{Figures, Measured, Origin};
use crate::report::result::{Document, Schedule, rate};

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
    // The names of an experiment's files repeat its factors.
    let name = document.experiment.as_ref().map_or(origin.name, |place| place.name.clone());
    Measured {
        url: Some(document.plan.url.clone()),
        threads: Some(document.plan.threads.into()),
        connections: Some(document.plan.connections.into()),
        rate: document.plan.schedule.as_ref().map(Schedule::asked),
        factors: factors(&document),
        run: document.experiment.as_ref().map(|place| place.round.into()),
        place: document.experiment.clone(),
        figures,
        document: Some(Box::new(document)),
        ..Measured::new(Origin { tool: "onrush", name, ..origin })
    }
}

/// The factors in the order of the experiment's plan, and the labels.
fn factors(document: &Document) -> Vec<(String, String)> {
    let levels = document.experiment.iter().flat_map(|place| &place.levels);
    let mut factors: Vec<(String, String)> =
        levels.map(|level| (factor_of_experiment(&level.factor), level.level.clone())).collect();
    for (key, level) in &document.labels {
        let name = factor_of_label(key);
        if !factors.iter().any(|(known, _)| *known == name) {
            factors.push((name, level.clone()));
        }
    }
    factors
}
