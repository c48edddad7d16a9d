//! The accuracy of comparisons of known targets: thousands of experiments in which each run has its own effect, the
//! seconds of a run are correlated, and rounds differ.

#![cfg(test)]

use onrush_plan::Random;

use super::comparison::Comparison;
use super::contest::{Contest, contests_of_experiment};
use super::fixtures;
use crate::saved::SavedRun;

/// Number of experiments of each kind. docs/statistics.md gives the results.
const TRIALS: usize = 2_000;
const SEED: u64 = 15;

/// Maximum share of comparisons of equal targets that may find a difference: 5 %, plus three deviations of a binomial
/// distribution with this many trials. In 20,000 trials, 3.5 to 5.3 % did.
const FALSE_MAX: f64 = 0.065;

/// Minimum share of intervals that must cover the true value: 95 %, less three deviations. In 20,000 trials, 94.7 to
/// 96.5 % did.
const COVERED_MIN: f64 = 0.935;

/// Length of a run in seconds; the next two are the correlation of neighbouring seconds, and their deviation.
const SECONDS: usize = 10;
const CORRELATION: f64 = 0.6;
const SECOND: f64 = 0.02;

/// The deviation of the rates of equal runs.
const RUN: f64 = 0.03;

/// The deviation of the rounds of an experiment: changes of the machines over time.
const ROUND: f64 = 0.05;

/// The mean of the deviations of the seconds of a run.
fn draw_mean_deviation(random: &mut Random) -> f64 {
    let mut deviation = random.normal();
    let mut sum = 0.0;
    for _ in 0..SECONDS {
        sum += deviation;
        deviation = CORRELATION * deviation + (1.0 - CORRELATION * CORRELATION).sqrt() * random.normal();
    }
    SECOND * sum / SECONDS as f64
}

/// The variance of the mean of a run's seconds.
fn seconds_variance() -> f64 {
    let count = SECONDS as f64;
    let neighbours = |lag: usize| (1.0 - lag as f64 / count) * CORRELATION.powi(lag as i32);
    SECOND * SECOND / count * (1.0 + 2.0 * (1..SECONDS).map(neighbours).sum::<f64>())
}

/// The rates of this many runs of A and of B. The rate of B is `ratio` times that of A.
fn draw_random_rates(random: &mut Random, rounds: usize, ratio: f64, round: f64) -> [Vec<f64>; 2] {
    let effect = (RUN * RUN - seconds_variance()).sqrt();
    let mut sides = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let round = round * random.normal();
        for (side, base) in sides.iter_mut().zip([10_000.0, 10_000.0 * ratio]) {
            let run = effect * random.normal() + draw_mean_deviation(random);
            side.push(base * (round + run).exp());
        }
    }
    sides
}

/// Shares of experiments in which the targets are called different, and in which the interval covers the true ratio.
struct SimulatedAccuracy {
    different: f64,
    covered: f64,
}

fn simulate_accuracy(
    rounds: usize,
    ratio: f64,
    compare: fn(&[Vec<f64>; 2]) -> Comparison,
    round: f64,
) -> SimulatedAccuracy {
    let mut random = Random::new(SEED);
    let (mut different, mut covered) = (0, 0);
    for _ in 0..TRIALS {
        let comparison = compare(&draw_random_rates(&mut random, rounds, ratio, round));
        let estimate = comparison.estimates[0];
        let (low, high) = estimate.ratio_range().expect("there is more than one round");
        different += usize::from(estimate.interval.is_some_and(|interval| interval.is_significant()));
        covered += usize::from((low..=high).contains(&ratio));
    }
    let share = |count: usize| count as f64 / TRIALS as f64;
    SimulatedAccuracy { different: share(different), covered: share(covered) }
}

fn compare_in_rounds([a, b]: &[Vec<f64>; 2]) -> Comparison {
    fixtures::compare_two_targets(a, b)
}

fn compare_as_groups([a, b]: &[Vec<f64>; 2]) -> Comparison {
    let of = |rates: &[f64]| rates.iter().map(|rate| fixtures::run_at_rate(*rate)).collect::<Vec<SavedRun>>();
    let (a, b) = (of(a), of(b));
    let sides = [a.iter().collect(), b.iter().collect()];
    let contest = Contest { names: ["A", "B"].map(str::to_owned), at: Vec::new(), sides };
    Comparison::new(&contest, 1, &[]).expect("no run failed")
}

#[test]
fn identical_targets_are_seldom_called_different() {
    for rounds in [3, 5, 10] {
        let paired = simulate_accuracy(rounds, 1.0, compare_in_rounds, ROUND);
        // Comparing groups is valid only without drift.
        let groups = simulate_accuracy(rounds, 1.0, compare_as_groups, 0.0);
        println!("{rounds} rounds: different {:.4} {:.4}", paired.different, groups.different);
        println!("{rounds} rounds: covered {:.4} {:.4}", paired.covered, groups.covered);
        for found in [paired, groups] {
            assert!(found.different <= FALSE_MAX, "{rounds} rounds: {}", found.different);
            // If more than 98.5 % covered the true value, the intervals would be too wide.
            assert!((COVERED_MIN..=0.985).contains(&found.covered), "{rounds} rounds: {}", found.covered);
        }
    }
}

#[test]
fn ten_rounds_find_five_percent() {
    let found = simulate_accuracy(10, 0.95, compare_in_rounds, ROUND);
    println!("power {:.4} covered {:.4}", found.different, found.covered);
    // In 20,000 trials, 92.1 % were called different; three deviations of a binomial distribution less is 90.3 %.
    assert!(found.different >= 0.9 && found.covered >= COVERED_MIN, "{} {}", found.different, found.covered);
}

#[test]
fn multiple_levels_keep_the_error_rate() {
    let mut random = Random::new(SEED);
    let mut different = 0;
    for _ in 0..TRIALS {
        // Six levels, all equal to the baseline.
        let effect = (RUN * RUN - seconds_variance()).sqrt();
        let mut runs = Vec::new();
        for round in 1..=5 {
            for level in 1..=7 {
                let rate = 10_000.0 * (effect * random.normal() + draw_mean_deviation(&mut random)).exp();
                runs.push(fixtures::run_in_round(rate, round, vec![fixtures::target_level(&level.to_string(), level)]));
            }
        }
        let contests = contests_of_experiment(&runs).expect("it is one experiment");
        let comparisons = contests.iter().filter_map(|contest| Comparison::new(contest, contests.len(), &[]));
        let significant = |it: &Comparison| it.estimates[0].interval.is_some_and(|it| it.is_significant());
        different += usize::from(comparisons.filter(significant).count() > 0);
    }
    let share = different as f64 / TRIALS as f64;
    println!("six levels: {share:.4}");
    assert!(share <= FALSE_MAX, "{share}");
}
