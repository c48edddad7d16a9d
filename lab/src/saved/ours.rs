//! Converts a result file of onrush into a run.

use onrush_load::record::{Document, Schedule};

use super::factor::{factor_of_experiment, factor_of_label};
use super::measured::{RunOrigin, SavedRun};

/// Converts the document of a run from this source.
pub fn read(origin: RunOrigin, document: Document) -> SavedRun {
    // The names of an experiment's files contain its factors; the document has the name without
    // them.
    let name = document.experiment.as_ref().map_or(origin.name, |position| position.name.clone());
    SavedRun {
        url: Some(document.plan.url.clone()),
        threads: Some(document.plan.threads.into()),
        connections: Some(document.plan.connections.into()),
        rate: document.plan.schedule.as_ref().map(Schedule::asked),
        factors: factors(&document),
        run: document.experiment.as_ref().map(|position| position.round.into()),
        position: document.experiment.clone(),
        document: Some(Box::new(document)),
        ..SavedRun::new(RunOrigin { tool: "onrush", name, ..origin })
    }
}

/// The document's factors in the order of the experiment's plan, followed by its labels.
fn factors(document: &Document) -> Vec<(String, String)> {
    let levels = document.experiment.iter().flat_map(|position| &position.levels);
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
