//! Stages whose truth is known: so many responses come by chance as a target gives at a time and with a number in flight.

use std::f64::consts::TAU;
use std::time::Duration;

use onrush_plan::levels::ConnectionLevel;
use onrush_plan::{Dialect, Partition as PartOfAll, Random};
use onrush_stats::Counters;

use super::*;
use crate::fixtures::{outcome_with, plan};

/// The result for stages (seconds, connections at the beginning and at the end) at a target with this rate.
fn told(stages: &[(u64, u32, u32)], seed: u64, per_s: &dyn Fn(f64, f64) -> f64) -> Option<Elasticity> {
    let level = |&(seconds, from, to)| ConnectionLevel { length: Duration::from_secs(seconds), from, to };
    let levels = ConnectionLevels { stages: stages.iter().map(level).collect(), part: PartOfAll::WHOLE };
    let seconds = levels.length().as_secs();
    let mut random = Random::new(seed);
    let mut responses = |tick: u64| {
        let mean = per_s(tick as f64 / 10.0, f64::from(levels.connections_at(tick * 100_000_000).0)) / 10.0;
        let normal = (-2.0 * (1.0 - random.uniform()).ln()).sqrt() * (TAU * random.uniform()).cos();
        (mean + mean.sqrt() * normal).round().max(0.0)
    };
    let mut outcome = outcome_with(seconds * 1_000_000, Counters::default());
    outcome.recent = (0..seconds * 10).map(&mut responses).collect();
    let mut plan = plan(Dialect::Native, "http://h/", seconds, 1, 16);
    plan.levels = Some(levels);
    compare(&plan, &outcome)?.elasticity
}

/// In how many of a hundred runs the target, the number in flight and neither is said to be the limit.
fn counts(stages: &[(u64, u32, u32)], per_s: &dyn Fn(f64, f64) -> f64) -> [usize; 3] {
    let all: Vec<Elasticity> = (0..100).filter_map(|seed| told(stages, seed, per_s)).collect();
    let target = all.iter().filter(|it| it.high < Elasticity::STAYS).count();
    let follows = all.iter().filter(|it| it.low > Elasticity::FOLLOWS).count();
    [target, follows, all.len() - target - follows]
}

/// Half as many and all of them, half as many and all in a quarter of the time, and as a ramp up and down.
const UP: &[(u64, u32, u32)] = &[(8, 8, 8), (8, 16, 16)];
const AROUND: &[(u64, u32, u32)] = &[(5, 8, 8), (5, 16, 16), (5, 8, 8)];
const DOWN: &[(u64, u32, u32)] = &[(8, 16, 16), (8, 8, 8)];
const RAMP: &[(u64, u32, u32)] = &[(20, 0, 16)];
const RAMPS: &[(u64, u32, u32)] = &[(20, 0, 16), (20, 16, 0)];
const QUARTER: &[(u64, u32, u32)] = &[(8, 4, 4), (8, 16, 16)];

#[test]
fn stages_tell_whether_the_rate_follows_the_connections() {
    for stages in [UP, AROUND, DOWN, RAMP, RAMPS, QUARTER] {
        let [target, follows, knee] = counts(stages, &|_, in_flight| 600.0 * (in_flight / 4.0).min(1.0));
        assert!(target >= 90 && follows + knee == 0, "{stages:?}: {target} {follows} {knee}");
    }
    for stages in [UP, AROUND, DOWN, RAMPS] {
        let [target, follows, knee] = counts(stages, &|_, in_flight| 100.0 * in_flight);
        assert!(follows >= 90 && target + knee == 0, "{stages:?}: {target} {follows} {knee}");
    }
    // Eleven workers are three times as many as four connections, and fewer than sixteen.
    assert_eq!(counts(QUARTER, &|_, in_flight| 1_000.0 * in_flight.min(11.0)), [0; 3]);
    // From 8 to 16, eleven workers have 38 % more.
    for stages in [UP, AROUND, DOWN] {
        let [target, follows, knee] = counts(stages, &|_, in_flight| 1_000.0 * in_flight.min(11.0));
        assert!(knee >= 90 && target + follows == 0, "{stages:?}: {target} {follows} {knee}");
    }
}

#[test]
fn one_in_a_hundred_at_most_is_on_the_wrong_side_of_a_limit() {
    for stages in [UP, AROUND, DOWN, RAMPS] {
        let [target, ..] = counts(stages, &|_, in_flight| 500.0 * in_flight.powf(Elasticity::STAYS));
        let [_, follows, _] = counts(stages, &|_, in_flight| 500.0 * in_flight.powf(Elasticity::FOLLOWS));
        assert!(target <= 1 && follows <= 1, "{stages:?}: {target} {follows}");
    }
}

#[test]
fn a_target_that_becomes_faster_is_not_taken_for_one_that_follows() {
    for slow in [0.3, 0.6, 0.9] {
        for warm_s in [1.0, 3.0, 10.0, 30.0] {
            let warm = |at_s: f64| 1.0 - slow * (-at_s / warm_s).exp();
            for stages in [UP, AROUND, RAMP, RAMPS, QUARTER] {
                let [_, follows, knee] = counts(stages, &|at_s, _| 2_000.0 * warm(at_s));
                assert_eq!(follows + knee, 0, "{stages:?}: {slow} {warm_s}");
            }
            for stages in [AROUND, DOWN] {
                let [target, ..] = counts(stages, &|at_s, in_flight| 200.0 * in_flight * warm(at_s));
                assert_eq!(target, 0, "{stages:?}: {slow} {warm_s}");
            }
            // It becomes slower by as much.
            for stages in [UP, AROUND] {
                let [target, ..] = counts(stages, &|at_s, in_flight| 200.0 * in_flight * (1.0 - slow * at_s / 16.0));
                assert_eq!(target, 0, "{stages:?}: {slow}");
            }
        }
    }
}

#[test]
fn too_little_tells_nothing() {
    let flat = |_: f64, _: f64| 1_000.0;
    assert_eq!(counts(&[(10, 16, 16)], &flat), [0; 3], "one number");
    assert_eq!(counts(&[(5, 2, 2), (5, 16, 16)], &flat), [0; 3], "none about half as many");
    assert_eq!(counts(&[(1, 8, 8), (1, 16, 16)], &|_, _| 20.0), [0; 3], "each response takes nearly a second");
}
