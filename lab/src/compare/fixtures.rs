//! Runs and experiments for tests.

#![cfg(test)]

use onrush_plan::metric::ErrorKind;
use onrush_plan::{FactorLevel, Metric, Order, Position};

use super::comparison::Comparison;
use super::contest::contests_of_experiment;
use crate::saved::{RunOrigin, SavedRun};

/// A run with this rate and no errors.
pub fn run_at_rate(rate_per_s: f64) -> SavedRun {
    let mut run = SavedRun::new(RunOrigin { tool: "wrk", ..RunOrigin::default() });
    run.figures.extend([(Metric::Requests, (rate_per_s * 10.0).floor()), (Metric::Rate, rate_per_s)]);
    run.figures.extend([ErrorKind::Socket, ErrorKind::Status].map(|kind| (Metric::ErrorsOf(kind), 0.0)));
    run
}

/// A run of an interleaved experiment, at these levels of its factors.
pub fn run_in_round(rate_per_s: f64, round: u32, levels: Vec<FactorLevel>) -> SavedRun {
    let position = Position {
        name: "test".to_owned(),
        id: "1".to_owned(),
        order: Order::Interleaved,
        rounds: round,
        round,
        before: 0,
        point: 1,
        levels,
        failed: None,
    };
    SavedRun { position: Some(position), ..run_at_rate(rate_per_s) }
}

/// A level of the factor `target`, with its index in the plan.
pub fn target_level(level: &str, index: u32) -> FactorLevel {
    FactorLevel { factor: "target".to_owned(), level: level.to_owned(), index, baseline: index == 1 }
}

/// The runs of an experiment with these factors. A star marks the baseline level.
pub fn experiment_runs(factors: &[(&str, &[&str])], rounds: u32) -> Vec<SavedRun> {
    let mut points: Vec<Vec<FactorLevel>> = vec![Vec::new()];
    for (factor, levels) in factors {
        let with = |point: &Vec<FactorLevel>| {
            let more = (1..).zip(*levels).map(|(index, level)| FactorLevel {
                factor: (*factor).to_owned(),
                level: level.trim_start_matches('*').to_owned(),
                index,
                baseline: level.starts_with('*'),
            });
            more.map(|level| point.iter().cloned().chain([level]).collect()).collect::<Vec<_>>()
        };
        points = points.iter().flat_map(with).collect();
    }
    (1..=rounds).flat_map(|round| points.iter().map(move |point| run_in_round(100.0, round, point.clone()))).collect()
}

/// Runs of two targets, A and B, with these rates, round by round.
pub fn runs_of_two_targets(a: &[f64], b: &[f64]) -> Vec<SavedRun> {
    let of = |rates: &[f64], name: &str, index: u32| -> Vec<SavedRun> {
        (1..).zip(rates).map(|(round, rate)| run_in_round(*rate, round, vec![target_level(name, index)])).collect()
    };
    [of(a, "A", 1), of(b, "B", 2)].concat()
}

/// A comparison of two targets, A and B, with these rates, round by round.
pub fn compare_two_targets(a: &[f64], b: &[f64]) -> Comparison {
    let runs = runs_of_two_targets(a, b);
    let contests = contests_of_experiment(&runs).expect("it is one experiment");
    Comparison::new(&contests[0], contests.len(), &[]).expect("no run failed")
}
